//! Reads a line command by command, and takes off the layers of each.
//!
//! The state of the [`Peeler`] is what a command leaves behind for those after it: variables, the directory, chains, files
//! that it lists, and what it prints.

use crate::handed::{MOST_FILES, Variables, listed};
use crate::scan::{Join, Raw, Word, scan};
use crate::wrappers::{Layer, layer};
use crate::{Reading, Simple, basename, is_prose, one_line, options, prose, takes_text};

/// Maximum depth of lines within lines.
const DEEPEST: usize = 4;
/// Maximum number of simple commands of a line.
const MOST: usize = 1_000;

/// State of a line while its commands are read.
#[derive(Default)]
struct Peeler {
    found: Vec<Simple>,
    variables: String,
    directory: String,
    /// Chain of the next command, and the number of chains so far.
    chain: usize,
    chains: usize,
    /// `set -e` and `set -o pipefail` were seen.
    ends_at_failure: bool,
    pipes_fail: bool,
    /// Files that the commands before in the pipeline, or a search around it, list.
    listed: Vec<String>,
    set: Variables,
    /// Names of the runners around the line.
    runners: Vec<String>,
}

/// Returns the simple commands of a line, in order.
pub fn commands(line: &str) -> Vec<Simple> {
    let mut peeler = Peeler::default();
    peeler.line(line, 0, "");
    peeler.found
}

/// Text that a command prints, as far as the line tells it.
fn printed(raw: &Raw, input: &str) -> String {
    let words: Vec<&str> = raw.words.iter().map(|word| word.text.as_str()).collect();
    match words.as_slice() {
        ["cat" | "tee", ..] => input.to_owned(),
        ["echo" | "printf", texts @ ..] => texts.join(" ").replace("\\n", "\n"),
        _ => String::new(),
    }
}

/// Command as a part of a line.
#[derive(Clone, Copy)]
struct Part<'l> {
    line: &'l str,
    /// The command that it is, or that holds it: with its input and targets.
    raw: &'l Raw,
    words: &'l [Word],
    /// Place in the line behind its last word.
    end: usize,
    /// Number of lines and commands around it.
    depth: usize,
}

/// Command without its layers: `sudo`, `env A=b`, `timeout 5`, `xargs`.
#[derive(Default)]
struct Peeled {
    /// Place of the first word that is left.
    at: usize,
    /// Words that the forms begin with.
    starts: Vec<usize>,
    /// It runs what it reads from its input.
    reads_lines: bool,
    /// Files that are handed to it are appended to its words.
    is_appended: bool,
    /// Lines of a shell that it runs.
    lines: Vec<String>,
}

impl Peeler {
    /// Reads a line whose standard input is `input`.
    fn line(&mut self, line: &str, depth: usize, input: &str) {
        if depth > DEEPEST {
            return;
        }
        let mut printed_before = String::new();
        // Chain and first command of the part before.
        let (outer, mut before) = (self.chain, self.found.len());
        let mut left = None;
        let mut pipeline: Vec<String> = Vec::new();
        let mut files: Vec<String> = Vec::new();
        let all = scan(line);
        let joins: Vec<Join> = all.iter().map(|raw| raw.join).collect();
        for (at, mut raw) in all.into_iter().enumerate() {
            raw.is_piped = joins.get(at + 1) == Some(&Join::Pipe);
            self.join(&raw, depth, at, before, &mut left);
            before = self.found.len();
            // Substituted commands run first.
            for inner in &raw.inner {
                self.line(inner, depth + 1, "");
            }
            if raw.input.is_empty() {
                raw.input = match raw.join {
                    Join::Pipe => printed_before,
                    _ => input.to_owned(),
                };
            }
            printed_before = printed(&raw, &raw.input);
            if raw.join != Join::Pipe {
                files.clear();
            }
            self.listed.clone_from(&files);
            let place = self.command(Part {
                line,
                raw: &raw,
                words: &raw.words,
                end: raw.end,
                depth,
            });
            files.append(&mut self.listed);
            files.truncate(MOST_FILES);
            let simple = place.and_then(|place| self.found.get_mut(place));
            let stages = simple.as_ref().map(|simple| simple.stages());
            let stages = stages.unwrap_or_default();
            if raw.join == Join::Pipe && !pipeline.is_empty() {
                for (whole, stage) in pipeline.iter_mut().zip(&stages) {
                    whole.extend([" | ", stage]);
                }
                if let Some(simple) = simple {
                    simple.pipeline.clone_from(&pipeline);
                }
            } else {
                pipeline = stages;
            }
        }
        if depth > 0 {
            self.chain = outer;
        }
    }

    /// Decides on the chain of a command. `before` is the place of the one before it; `left` is the chain
    /// that a command such as `|| exit` guards.
    fn join(
        &mut self,
        raw: &Raw,
        depth: usize,
        at: usize,
        before: usize,
        left: &mut Option<usize>,
    ) {
        let first = raw.words.first().map_or("", |word| word.text.as_str());
        let guarded = left.take();
        match raw.join {
            Join::Success => {}
            // A line within a command runs where that command does.
            Join::Any if at == 0 && depth > 0 => {}
            // Commands behind a condition run only if it succeeded.
            Join::Any if self.ends_at_failure || matches!(first, "then" | "do") => {}
            Join::Pipe => {
                if !self.pipes_fail && before < self.found.len() {
                    self.chains += 1;
                    for simple in &mut self.found[before..] {
                        simple.chain = self.chains;
                    }
                }
            }
            Join::Failure if matches!(first, "exit" | "return" | "die" | "break" | "continue") => {
                *left = Some(self.chain);
                self.begin_chain();
            }
            Join::Failure => {
                for simple in &mut self.found[before..] {
                    simple.may_fail = true;
                }
                self.begin_chain();
            }
            Join::Any => match guarded {
                Some(chain) => self.chain = chain,
                None => self.begin_chain(),
            },
        }
    }

    fn begin_chain(&mut self) {
        self.chains += 1;
        self.chain = self.chains;
    }

    /// Reads a command. Returns its place among those found.
    fn command(&mut self, part: Part<'_>) -> Option<usize> {
        if self.found.len() >= MOST {
            return None;
        }
        let Part {
            raw, words, depth, ..
        } = part;
        let handed = std::mem::take(&mut self.listed);
        let peeled = self.peeled(part)?;
        let mut reads_lines = peeled.reads_lines;
        let inner = peeled.program_in(words);
        let program = inner.first().map_or("", |word| basename(&word.text));
        let (place, runners) = options::run(inner).unwrap_or_default();
        let own = &inner[place..];
        let lines_of_runner = match layer(own) {
            Layer::Lines(inner) if place > 0 => inner,
            Layer::Input if place > 0 => {
                reads_lines = true;
                vec![raw.input.clone()]
            }
            _ => Vec::new(),
        };
        // The input of another machine is sought beside its name, too.
        let is_sought = !reads_lines || program == "ssh";
        let has_body = is_sought && !raw.input.is_empty() && !matches!(program, "cat" | "tee");
        let body = if has_body { raw.input.as_str() } else { "" };
        let is_for_people = |target: &String| is_prose(target) || target.starts_with("/dev/");
        let is_shown = !raw.is_piped && raw.targets.iter().all(is_for_people);
        let prose: Vec<_> = prose::in_command(inner, is_shown)
            .into_iter()
            .map(|(place, from)| (peeled.at + place, from))
            .collect();
        let takes_text = takes_text(program) && !body.is_empty();
        let reading = |part: Part<'_>, body: &str| {
            let program = peeled.program_in(part.words);
            let filled = self.set.texts(program, &handed, peeled.is_appended);
            part.reading(&peeled, body, filled)
        };
        let other = |with: fn(&str) -> String| {
            let (line, words) = prose::replaced(part.line, words, &prose, with);
            let (line, words) = (line.as_str(), words.as_slice());
            let part = Part {
                line,
                words,
                ..part
            };
            if takes_text {
                reading(part, &with(body))
            } else {
                reading(part, body)
            }
        };
        let has_prose = takes_text || !prose.is_empty();
        let simple = Simple {
            typed: reading(part, body),
            quiet: has_prose.then(|| other(prose::quiet)),
            silent: has_prose.then(|| other(prose::silent)),
            pipeline: Vec::new(),
            words: inner.iter().map(|word| one_line(&word.text)).collect(),
            executed: if self.is_in_container(&runners) {
                Vec::new()
            } else {
                self.set.with_files(own, &handed, peeled.is_appended)
            },
            runners: self.runners.clone(),
            targets: if self.is_in_container(&[]) {
                Vec::new()
            } else {
                let targets = raw.targets.iter();
                targets
                    .flat_map(|target| self.set.files(target, &handed))
                    .collect()
            },
            body: raw.input.clone(),
            variables: self.variables.clone(),
            directory: self.directory.clone(),
            chain: self.chain,
            may_fail: words.first().is_some_and(|word| word.text == "!"),
        };
        let assigned = match program {
            "" | "export" | "declare" => words,
            _ => &[],
        };
        self.remember(&simple, assigned, &handed);
        let found_at = self.found.len();
        self.found.push(simple);
        for line in &peeled.lines {
            self.line(line, depth + 1, &raw.input);
        }
        let outer = self.runners.len();
        self.runners.extend(runners);
        for line in &lines_of_runner {
            self.line(line, depth + 1, &raw.input);
        }
        self.runners.truncate(outer);
        self.listed = listed(inner);
        Some(found_at)
    }

    /// Takes the layers off a command, and reads the commands that one of them holds; `None` for words of the shell
    /// that run nothing.
    fn peeled(&mut self, part: Part<'_>) -> Option<Peeled> {
        let words = part.words;
        let mut peeled = Peeled {
            starts: vec![0],
            ..Peeled::default()
        };
        loop {
            let rest = &words[peeled.at..];
            match layer(rest) {
                Layer::Dropped(count) => {
                    let first = rest.first().map_or("", |word| basename(&word.text));
                    peeled.is_appended |= first == "xargs";
                    peeled.at += count.clamp(1, rest.len().max(1));
                }
                Layer::Lines(inner) => {
                    peeled.lines.extend(inner);
                    break;
                }
                Layer::Input => {
                    peeled.reads_lines = true;
                    peeled.lines.push(part.raw.input.clone());
                    break;
                }
                Layer::Commands(places) if part.depth < DEEPEST => {
                    for place in places {
                        let words = &rest[place];
                        self.listed = listed(rest);
                        self.command(Part {
                            words,
                            end: words.last().map_or(part.end, |word| word.end),
                            depth: part.depth + 1,
                            ..part
                        });
                    }
                    break;
                }
                Layer::Commands(_) | Layer::Program => break,
                Layer::Nothing => {
                    self.set.remember(rest);
                    return None;
                }
            }
            if peeled.at >= words.len() {
                break;
            }
            peeled.starts.push(peeled.at);
        }
        Some(peeled)
    }

    /// Returns `true` for a command in a container, given the names of its own runner.
    fn is_in_container(&self, runners: &[String]) -> bool {
        let mut names = self.runners.iter().chain(runners);
        names.any(|name| name == options::CONTAINER)
    }

    /// Remembers a change of directory, and variables that are set for what follows; `read` takes what is handed.
    fn remember(&mut self, simple: &Simple, assigned: &[Word], handed: &[String]) {
        let program = simple.words.first().map(String::as_str);
        if let (Some("read"), Some(name), false) = (program, simple.words.last(), handed.is_empty())
        {
            self.set.add(name, handed.to_vec());
        }
        if !assigned.is_empty() || program == Some("set") {
            self.variables.push_str(&simple.typed.forms[0]);
            self.variables.push('\n');
        }
        for word in assigned {
            self.set.assign(&word.text);
        }
        if program == Some("set") {
            let is_set = |name: &str| simple.words.iter().any(|word| word == name);
            let is_short = |word: &&String| word.starts_with('-') && !word.starts_with("--");
            let mut short = simple.words.iter().filter(is_short);
            self.ends_at_failure |= short.any(|word| word.contains('e')) || is_set("errexit");
            self.pipes_fail |= is_set("pipefail");
        }
        if let (Some("cd" | "pushd"), Some(to)) = (program, simple.executed.get(1)) {
            self.directory = match to.as_str() {
                to if to.starts_with('/') || self.directory.is_empty() => to.to_owned(),
                to => format!("{}/{to}", self.directory),
            };
        }
    }
}

impl Simple {
    /// The command as a stage of a pipeline: as it is typed, and without layers and text for people.
    fn stages(&self) -> Vec<String> {
        let last = self.silent.as_ref().unwrap_or(&self.typed);
        let forms = [self.typed.forms.first(), last.forms.last()];
        let stages = forms.map(|form| form.map_or("", String::as_str).replace("\\\n", " "));
        stages.to_vec()
    }
}

impl Part<'_> {
    /// Returns the texts of the command, given its forms, its input and the texts with the values of variables.
    fn reading(self, peeled: &Peeled, body: &str, filled: Vec<String>) -> Reading {
        let Self {
            line, words, end, ..
        } = self;
        let mut forms: Vec<String> = Vec::new();
        let mut add = |text: &str| {
            let text = text.trim();
            if !text.is_empty() && forms.iter().all(|form| form != text) {
                forms.push(text.to_owned());
            }
        };
        for start in &peeled.starts {
            add(words.get(*start).map_or("", |word| &line[word.start..end]));
        }
        let inner = peeled.program_in(words);
        let mut plain: Vec<String> = inner.iter().map(|word| one_line(&word.text)).collect();
        if let (Some(first), Some(program)) = (inner.first(), plain.first_mut()) {
            let name = basename(&first.text);
            if name.len() < first.text.len() {
                add(&format!("{name}{}", &line[first.end..end]));
            }
            *program = basename(program).to_owned();
        }
        let plain = plain.join(" ");
        Reading {
            fed: (!body.is_empty()).then(|| format!("{plain} {}", one_line(body))),
            filled,
            forms,
            plain,
            bare: options::shorter(line, inner, end),
        }
    }
}

impl Peeled {
    /// The words of a command without its layers.
    fn program_in<'w>(&self, words: &'w [Word]) -> &'w [Word] {
        words.get(self.at..).unwrap_or_default()
    }
}
