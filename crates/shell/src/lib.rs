//! A shell line as the simple commands that it runs.
//!
//! - `scan`: the line split at its operators: words with their places, joins, redirections, lines within.
//! - `wrappers`: layers before the program of a command, and programs that run another one.
//! - `options`: options between a program and its subcommand. `runners`: the command of a runner such as `npx`.
//! - `prose`: text for people within a command.
//! - `handed`: values of the variables that the line sets, and files that a search or a pipe hands on to a command.
//!
//! [`commands`] combines them. Chains, pipes, subshells, substitutions, `sh -c '…'`, `ssh HOST '…'` and
//! `find -exec` are split, and so is the input of a shell that the line contains. Assignments and wrappers
//! such as `sudo -u X` are removed one after the other, so that a pattern may begin with the program, a
//! wrapper or an assignment.
//!
//! Nothing is executed, and no line makes it fail.
//!
//! Deliberately not read: the content of variables that the line does not set, of aliases, functions and scripts; brace
//! and glob expansion; the result of `eval`; PowerShell and `cmd`. Lines within lines are read four levels deep, and of
//! a line at most 64 commands.

mod handed;
mod options;
mod prose;
mod runners;
mod scan;
mod wrappers;

use handed::{MOST_FILES, Variables, listed};
pub use options::{Bare, shows_help, takes_value};
pub use prose::{EXTENSIONS as PROSE_EXTENSIONS, is_prose, takes_text};
pub use scan::{Join, KEYWORDS, Raw, Word, scan};
pub use wrappers::{Layer, is_assignment, layer};

/// Maximum depth of lines within lines.
const DEEPEST: usize = 4;
/// Maximum number of simple commands of a line.
const MOST: usize = 64;

/// Texts of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// The command as written, then without one layer after the other.
    pub forms: Vec<String>,
    /// The last form without quotes.
    pub plain: String,
    /// The command with its input, if the line contains that.
    pub fed: Option<String>,
    /// The last form with each value of a variable that the line sets, or with the files that are handed to it.
    pub filled: Vec<String>,
    /// The last form without the options before its subcommand, and without a runner.
    pub bare: Vec<Bare>,
}

impl Reading {
    /// All texts, with and without quotes.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let written = self.forms.iter().chain(std::iter::once(&self.plain));
        let bare = self.bare.iter().flat_map(|bare| &bare.forms);
        let with_values = self.fed.iter().chain(&self.filled);
        written.chain(with_values).chain(bare).map(String::as_str)
    }
}

/// Simple command of a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Simple {
    /// As it is typed.
    pub typed: Reading,
    /// Without options in its text for people, if it has such text.
    pub quiet: Option<Reading>,
    /// Without its text for people, if it has such text.
    pub silent: Option<Reading>,
    /// The pipeline that ends with it, if it is not the first: as typed, and without layers.
    pub pipeline: Vec<String>,
    /// Program and arguments, without layers and quotes.
    pub words: Vec<String>,
    /// The same behind a runner on this machine, with the values of variables and the files that are handed to it.
    /// Empty in a container.
    pub executed: Vec<String>,
    /// Names of the runner whose shell runs it: `docker exec web sh -c '…'`.
    pub runners: Vec<String>,
    /// Files that its output goes to.
    pub targets: Vec<String>,
    /// Standard input, if the line contains it.
    pub body: String,
    /// Variables that commands before it in the line have set.
    pub variables: String,
    /// Directory that commands before it in the line have changed to; empty if none has.
    pub directory: String,
    /// Number of the chain: commands of one chain run only if those before them succeeded.
    pub chain: usize,
    /// The line goes on, or succeeds, although this command failed: `x || true`, `! x`.
    pub may_fail: bool,
}

impl Simple {
    /// All texts that a pattern may be tried on.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let others = self.quiet.iter().chain(&self.silent);
        let readings = std::iter::once(&self.typed).chain(others);
        let pipeline = self.pipeline.iter().map(String::as_str);
        readings.flat_map(Reading::texts).chain(pipeline)
    }
}

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

/// Command without its layers: `sudo`, `env A=b`, `timeout 5`, `xargs`.
#[derive(Default)]
struct Peeled {
    /// Place of the first word that is left.
    at: usize,
    /// Words that the forms begin with.
    starts: Vec<usize>,
    /// It runs what it reads from its input.
    reads_lines: bool,
    /// What is handed to it is appended to its words.
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
            let place = self.command(line, &raw, &raw.words, raw.end, depth);
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

    /// Reads the command of these words, which ends at `end`. Returns its place among those found.
    fn command(
        &mut self,
        line: &str,
        raw: &Raw,
        words: &[Word],
        end: usize,
        depth: usize,
    ) -> Option<usize> {
        if self.found.len() >= MOST {
            return None;
        }
        let handed = std::mem::take(&mut self.listed);
        let Peeled {
            at,
            starts,
            mut reads_lines,
            is_appended,
            lines,
        } = self.peeled(line, raw, words, end, depth)?;
        let inner = words.get(at..).unwrap_or_default();
        let program = inner.first().map_or("", |word| basename(&word.text));
        let (place, runners) = runners::run(inner).unwrap_or_default();
        let own = &inner[place..];
        let lines_of_runner = match layer(own) {
            Layer::Lines(inner) if place > 0 => inner,
            Layer::Input if place > 0 => {
                reads_lines = true;
                vec![raw.input.clone()]
            }
            _ => Vec::new(),
        };
        let has_body = !reads_lines && !raw.input.is_empty() && !matches!(program, "cat" | "tee");
        let body = if has_body { raw.input.as_str() } else { "" };
        let is_shown = !raw.is_piped && raw.targets.iter().all(|target| is_prose(target));
        let prose: Vec<_> = prose::in_command(inner, is_shown)
            .into_iter()
            .map(|(place, from)| (at + place, from))
            .collect();
        let takes_text = takes_text(program) && !body.is_empty();
        let filled = |words: &[Word]| {
            let inner = words.get(at..).unwrap_or_default();
            self.set.texts(inner, &handed, is_appended)
        };
        let other = |with: fn(&str) -> String| {
            let (line, words) = prose::replaced(line, words, &prose, with);
            let body = if takes_text {
                with(body)
            } else {
                body.to_owned()
            };
            reading(&line, &words, &starts, at, end, &body, filled(&words))
        };
        let has_prose = takes_text || !prose.is_empty();
        let simple = Simple {
            typed: reading(line, words, &starts, at, end, body, filled(words)),
            quiet: has_prose.then(|| other(prose::quiet)),
            silent: has_prose.then(|| other(prose::silent)),
            pipeline: Vec::new(),
            words: inner.iter().map(|word| one_line(&word.text)).collect(),
            executed: if self.is_in_container(&runners) {
                Vec::new()
            } else {
                self.set.with_files(own, &handed, is_appended)
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
        for line in &lines {
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
    fn peeled(
        &mut self,
        line: &str,
        raw: &Raw,
        words: &[Word],
        end: usize,
        depth: usize,
    ) -> Option<Peeled> {
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
                    peeled.lines.push(raw.input.clone());
                    break;
                }
                Layer::Commands(parts) if depth < DEEPEST => {
                    for part in parts {
                        let part = &rest[part];
                        self.listed = listed(rest);
                        let end = part.last().map_or(end, |word| word.end);
                        self.command(line, raw, part, end, depth + 1);
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
        names.any(|name| name == runners::CONTAINER)
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

/// Reads the words of a command that ends at `end`, whose forms begin with the words of `starts`, and whose
/// program is the word `at`.
fn reading(
    line: &str,
    words: &[Word],
    starts: &[usize],
    at: usize,
    end: usize,
    body: &str,
    filled: Vec<String>,
) -> Reading {
    let mut forms: Vec<String> = Vec::new();
    let mut add = |text: &str| {
        let text = text.trim();
        if !text.is_empty() && forms.iter().all(|form| form != text) {
            forms.push(text.to_owned());
        }
    };
    for start in starts {
        add(words.get(*start).map_or("", |word| &line[word.start..end]));
    }
    let inner = words.get(at..).unwrap_or_default();
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

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Last name of a path.
pub fn basename(path: &str) -> &str {
    let last = path.trim_end_matches('/').rsplit('/').next();
    last.filter(|name| !name.is_empty()).unwrap_or(path)
}

/// Returns `true` for a program that reads commands.
pub fn is_shell(program: &str) -> bool {
    ["sh", "bash", "zsh", "dash", "ksh", "ash", "fish"].contains(&basename(program))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Each command without layers and quotes.
    fn peeled(line: &str) -> Vec<String> {
        commands(line)
            .into_iter()
            .map(|simple| simple.typed.plain)
            .collect()
    }

    #[test]
    fn chains_wrappers_and_quotes_are_taken_off() {
        let check = |line: &str, expected: &[&str]| assert_eq!(peeled(line), expected, "{line}");
        check("npm i", &["npm i"]);
        check(
            "cd x && FOO=1 npm i; ls | wc -l",
            &["cd x", "npm i", "ls", "wc -l"],
        );
        check("sudo -u deploy -E npm i", &["npm i"]);
        check("doas -u www npm i", &["npm i"]);
        check(
            "env -i -u B A=1 nice -n 5 timeout -k 3 60 npm i",
            &["npm i"],
        );
        check("nohup setsid npm i &", &["npm i"]);
        check("time -p exec npm i", &["npm i"]);
        check("coproc npm i", &["npm i"]);
        check("ls | xargs -n 1 -I {} npm i {}", &["ls", "npm i {}"]);
        check(
            "find . -name '*.js' -exec npm i {} \\; -exec rm {} +",
            &[
                "npm i {}",
                "rm {}",
                "find . -name *.js -exec npm i {} ; -exec rm {} +",
            ],
        );
        check(
            "ssh -p 22 me@box 'cd app && npm i'",
            &["ssh -p 22 me@box cd app && npm i", "cd app", "npm i"],
        );
        check(
            "bash -lc \"cd x && npm i\"",
            &["bash -lc cd x && npm i", "cd x", "npm i"],
        );
        check(
            "echo $(npm root) `npm bin`",
            &["npm root", "npm bin", "echo $(npm root) `npm bin`"],
        );
        check(
            "echo \"in $(npm root)\"",
            &["npm root", "echo in $(npm root)"],
        );
        check("(npm i)", &["npm i"]);
        check("{ npm i; }", &["npm i"]);
        check("if true; then npm i; fi", &["true", "npm i"]);
        check("for a in npm yarn; do $a i; done", &["$a i"]);
        check("bash <<'EOF'\nnpm i\nEOF\nls", &["bash", "npm i", "ls"]);
        check("cat > a <<EOF\nnpm i\nEOF", &["cat"]);
        check("/usr/bin/npm i", &["npm i"]);
        check("\"npm\" 'i'", &["npm i"]);
        check("echo 'npm i' # npm i", &["echo npm i"]);
        check("! npm i", &["npm i"]);
        check("command -v npm", &["command -v npm"]);
        check("eval 'npm i'", &["eval npm i", "npm i"]);
        check("npm \\\n  i", &["npm i"]);
        check("a\nb", &["a", "b"]);
    }

    #[test]
    fn each_layer_is_a_form() {
        let simple = &commands("A=1 sudo /bin/npm 'i x' > out")[0];
        let forms = &simple.typed.forms;
        let expected = [
            "A=1 sudo /bin/npm 'i x' > out",
            "sudo /bin/npm 'i x' > out",
            "/bin/npm 'i x' > out",
            "npm 'i x' > out",
        ];
        assert_eq!(forms, &expected);
        assert_eq!(simple.typed.plain, "npm i x");
    }

    #[test]
    fn earlier_commands_of_the_line_are_reported() {
        let all = commands("export CI=1; cd web && A=2; rm x && ls");
        let rm = &all[3];
        assert_eq!((rm.words[0].as_str(), rm.directory.as_str()), ("rm", "web"));
        assert_eq!(rm.variables, "export CI=1\nA=2\n");
        let chains: Vec<usize> = all.iter().map(|one| one.chain).collect();
        assert_eq!(chains, [1, 2, 2, 3, 3]);
        assert_eq!(commands("echo a > b 2>&1")[0].targets, ["b"]);
    }

    #[test]
    fn command_after_a_success_is_in_its_chain() {
        // Does `y` run only if `x` succeeded, and does the line fail if `x` does?
        let check = |line: &str, is_chained: bool, fails: bool| {
            let all = commands(line);
            let of = |name: &str| all.iter().find(|one| one.typed.plain == name).unwrap();
            assert_eq!(of("x").chain == of("y").chain, is_chained, "{line}");
            assert_eq!(!of("x").may_fail, fails, "{line}");
        };
        check("x && y", true, true);
        check("x; y", false, true);
        check("x | tail && y", false, true);
        check("set -euo pipefail; x | tail && y", true, true);
        check("x && a | tail && y", true, true);
        check("a && x && b; y", false, true);
        check("x || true; y", false, false);
        check("x || true && y", false, false);
        check("x || exit 1; y", true, true);
        check("x || exit 1\na && y", true, true);
        check("set -e\nx\ny", true, true);
        check("if x; then y; fi", true, true);
        check("x && if a; then y; fi", true, true);
        check("x && bash -c 'y'", true, true);
        check("bash -c 'a; x' && y", false, true);
        check("x && (a; b) && y", false, true);
        check("x && sudo sh -c 'a && b' && y", true, true);
        check("! x && y", true, false);
        check("x && a &\ny", false, true);
    }

    #[test]
    fn files_that_are_handed_on_stand_in_the_command() {
        let check = |line: &str, program: &str, expected: &str| {
            let all = commands(line);
            let of = all
                .iter()
                .find(|one| one.executed.first().is_some_and(|name| name == program));
            let of = of.map(|one| [&one.executed[..], &one.targets[..]].concat().join(" "));
            assert_eq!(of.as_deref(), Some(expected), "{line}");
        };
        check(
            "find a -name '*.c' -exec shred -u {} +",
            "shred",
            "shred -u a/*.c",
        );
        check(
            r"find a b/ ! -name x -exec shred {} \;",
            "shred",
            "shred a/* b/*",
        );
        check("find a | xargs -0 shred", "shred", "shred a/*");
        check(
            "find a | grep -v x | xargs -I{} cp {} {}.old",
            "cp",
            "cp a/* a/*.old",
        );
        check("grep -rl spell a | xargs shred", "shred", "shred a");
        check("git ls-files a | xargs shred", "shred", "shred ls-files a");
        check("cat list | xargs shred", "shred", "shred");
        check(
            "for f in a/*.c b; do shred \"$f\"; done",
            "shred",
            "shred a/*.c b",
        );
        check(
            "for f in a; do shred $file > ${f}.log; done",
            "shred",
            "shred $file a.log",
        );
        check(
            "find a | while read -r f; do shred $f; done",
            "shred",
            "shred a/*",
        );
        check("shred $(rg -l spell a)", "shred", "shred a");
        check("uv run shred a", "shred", "shred a");
        assert_eq!(commands("docker exec web shred a")[0].executed, [""; 0]);
    }

    #[test]
    fn values_that_the_line_gives_stand_in_the_command() {
        let check = |line: &str, expected: &[&str]| {
            let last = commands(line).pop().unwrap();
            assert_eq!(last.typed.filled, expected, "{line}");
        };
        check(
            "for s in spell potion; do $s cast; done",
            &["spell cast", "potion cast"],
        );
        check(
            "for n in 1 2; do spell cast \"${n}.txt\" b; done",
            &["spell cast 1.txt b", "spell cast 2.txt b"],
        );
        check(
            "BOOK=a/b; export PAGE=$BOOK/1; spell cast $PAGE",
            &["spell cast a/b/1"],
        );
        check("ls a | xargs spell -v", &["spell -v a"]);
        check("spell $PAGE", &[]);
        check("PAGE=1 spell $PAGE", &[]);
        check("spell {} a", &[]);
        let said = commands("for n in spell; do git commit -m \"$n\"; done").pop();
        assert_eq!(said.unwrap().silent.unwrap().filled, [""; 0]);
        let cd = commands("BOOK=a/b; cd $BOOK; spell cast").pop().unwrap();
        assert_eq!(cd.directory, "a/b");
    }

    #[test]
    fn line_of_a_shell_behind_a_runner_is_read() {
        for line in [
            "docker exec -it web sh -c 'cd a && spell cast'",
            "docker compose exec web bash -lc \"spell cast\"",
            "kubectl -n far exec web-0 -- sh -c 'spell cast > a'",
            "docker exec -i web sh <<E\nspell cast\nE",
            "poetry run sh -c 'spell cast'",
        ] {
            let all = commands(line);
            let inner = all.iter().find(|one| one.typed.plain == "spell cast");
            let inner = inner.unwrap_or_else(|| panic!("{line}"));
            assert!(
                !inner.runners.is_empty() && inner.targets.is_empty(),
                "{line}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic(line in "[a-zé \"'\\\\$()<>|&;\n#={}`!-]{0,80}") {
            drop(commands(&line));
        }

        #[test]
        fn no_wrappers_make_it_panic(line in "(sudo |env |-u |x |timeout |xargs |find |-exec |ssh |bash |-c |A=1 |nice |; |docker |exec |for |in |\\{\\} |\\$x |\\| |uv |run ){0,12}") {
            drop(commands(&line));
        }
    }
}
