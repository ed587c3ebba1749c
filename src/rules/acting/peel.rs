//! A shell line as the simple commands that it runs, each in all its forms.
//!
//! Chains, pipes, subshells, substitutions, `sh -c '…'`, `ssh HOST '…'` and `find -exec` are taken
//! apart, and so is the input of a shell that the line contains. Assignments and wrappers such as
//! `sudo -u X` are taken off one after the other, so that a pattern may begin with the program, a
//! wrapper or an assignment.
//!
//! Deliberately absent: expansion. The content of a variable, an alias or a script is not seen.

use super::shell_scan::{Join, Raw, Word, scan};
use super::wrappers::{Layer, layer};

/// Maximum depth of lines within lines.
const DEEPEST: usize = 4;
/// Maximum number of simple commands of a line.
const MOST: usize = 64;

/// Simple command of a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Simple {
    /// The command as written, then without one layer after the other.
    pub(crate) forms: Vec<String>,
    /// The last form without quotes.
    pub(crate) plain: String,
    /// Program and arguments, without layers and quotes.
    pub(crate) words: Vec<String>,
    /// Files that its output goes to.
    pub(crate) targets: Vec<String>,
    /// Standard input, if the line contains it.
    pub(crate) body: String,
    /// Variables that commands before it in the line have set.
    pub(crate) variables: String,
    /// Directory that commands before it in the line have changed to; empty if none has.
    pub(crate) directory: String,
    /// Number of the chain: commands of one chain run only if those before them succeeded.
    pub(crate) chain: usize,
}

impl Simple {
    /// All forms, with and without quotes.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        let forms = self.forms.iter().map(String::as_str);
        forms.chain(std::iter::once(self.plain.as_str()))
    }
}

/// State of a line while its commands are read.
#[derive(Default)]
struct Peeler {
    found: Vec<Simple>,
    variables: String,
    directory: String,
    chain: usize,
}

/// Returns the simple commands of a line, in order.
pub(crate) fn commands(line: &str) -> Vec<Simple> {
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

impl Peeler {
    /// Reads a line whose standard input is `input`.
    fn line(&mut self, line: &str, depth: usize, input: &str) {
        if depth > DEEPEST {
            return;
        }
        let mut printed_before = String::new();
        for mut raw in scan(line) {
            if raw.join != Join::Success {
                self.chain += 1;
            }
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
            self.command(line, &raw, &raw.words, raw.end, depth);
        }
    }

    /// Reads the command of these words, which ends at `end`.
    fn command(&mut self, line: &str, raw: &Raw, words: &[Word], end: usize, depth: usize) {
        if self.found.len() >= MOST {
            return;
        }
        let mut forms: Vec<String> = Vec::new();
        let mut add = |text: &str| {
            let text = text.trim();
            if !text.is_empty() && forms.iter().all(|form| form != text) {
                forms.push(text.to_owned());
            }
        };
        let mut at = 0;
        let text_from = |at: usize| words.get(at).map_or("", |word| &line[word.start..end]);
        add(text_from(0));
        let mut lines: Vec<String> = Vec::new();
        loop {
            let rest = &words[at..];
            match layer(rest) {
                Layer::Dropped(count) => at += count.clamp(1, rest.len().max(1)),
                Layer::Lines(inner) => {
                    lines.extend(inner);
                    break;
                }
                Layer::Input => {
                    lines.push(raw.input.clone());
                    break;
                }
                Layer::Commands(parts) if depth < DEEPEST => {
                    for part in parts {
                        let part = &rest[part];
                        let end = part.last().map_or(end, |word| word.end);
                        self.command(line, raw, part, end, depth + 1);
                    }
                    break;
                }
                Layer::Commands(_) | Layer::Program => break,
                Layer::Nothing => return,
            }
            if at >= words.len() {
                break;
            }
            add(text_from(at));
        }
        let plain: Vec<String> = words[at.min(words.len())..]
            .iter()
            .map(|word| word.text.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        if let Some(first) = words.get(at) {
            let name = basename(&first.text);
            if name.len() < first.text.len() {
                add(&format!("{name}{}", &line[first.end..end]));
            }
        }
        let mut unquoted = plain.clone();
        if let Some(first) = unquoted.first_mut() {
            *first = basename(first).to_owned();
        }
        let simple = Simple {
            forms,
            plain: unquoted.join(" "),
            words: plain,
            targets: raw.targets.clone(),
            body: raw.input.clone(),
            variables: self.variables.clone(),
            directory: self.directory.clone(),
            chain: self.chain,
        };
        self.remember(&simple, at > 0 && at >= words.len());
        self.found.push(simple);
        for inner in &lines {
            self.line(inner, depth + 1, &raw.input);
        }
    }

    /// Remembers a change of directory, and variables that are set for what follows.
    fn remember(&mut self, simple: &Simple, only_assigns: bool) {
        let program = simple.words.first().map(String::as_str);
        if only_assigns || matches!(program, Some("export" | "declare" | "set")) {
            self.variables.push_str(&simple.forms[0]);
            self.variables.push('\n');
        }
        if let (Some("cd" | "pushd"), Some(to)) = (program, simple.words.get(1)) {
            self.directory = match to.as_str() {
                to if to.starts_with('/') || self.directory.is_empty() => to.to_owned(),
                to => format!("{}/{to}", self.directory),
            };
        }
    }
}

/// Last name of a path.
pub(crate) fn basename(path: &str) -> &str {
    let last = path.trim_end_matches('/').rsplit('/').next();
    last.filter(|name| !name.is_empty()).unwrap_or(path)
}

/// Returns `true` for a program that reads commands.
pub(crate) fn is_shell(program: &str) -> bool {
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
            .map(|simple| simple.plain)
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
        let forms = &simple.forms;
        let expected = [
            "A=1 sudo /bin/npm 'i x' > out",
            "sudo /bin/npm 'i x' > out",
            "/bin/npm 'i x' > out",
            "npm 'i x' > out",
        ];
        assert_eq!(forms, &expected);
        assert_eq!(simple.plain, "npm i x");
    }

    #[test]
    fn what_came_before_in_the_line_is_known() {
        let all = commands("export CI=1; cd web && A=2; rm x && ls");
        let rm = &all[3];
        assert_eq!((rm.words[0].as_str(), rm.directory.as_str()), ("rm", "web"));
        assert_eq!(rm.variables, "export CI=1\nA=2\n");
        let chains: Vec<usize> = all.iter().map(|one| one.chain).collect();
        assert_eq!(chains, [1, 2, 2, 3, 3]);
        assert_eq!(commands("echo a > b 2>&1")[0].targets, ["b"]);
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic(line in "[a-zé \"'\\\\$()<>|&;\n#={}`!-]{0,80}") {
            drop(commands(&line));
        }

        #[test]
        fn no_wrappers_make_it_panic(line in "(sudo |env |-u |x |timeout |xargs |find |-exec |ssh |bash |-c |A=1 |nice |; ){0,12}") {
            drop(commands(&line));
        }
    }
}
