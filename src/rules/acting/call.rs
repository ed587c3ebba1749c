//! Call of an agent as what patterns are matched with: commands, changed paths, new content.

use std::ops::Range;

use super::patterns::Expression;
use memctl_sessions::Step;
use memctl_shell::{Simple, basename, commands};

/// Maximum length of a text that patterns are matched with, in bytes.
const LONGEST: usize = 128 << 10;
/// Maximum length of an argument of a tool that is no shell, in bytes.
const ARGUMENT: usize = 500;

/// Call of an agent, ready to match.
#[derive(Debug, Default)]
pub struct Call {
    /// Whole command line; empty if the call is none.
    pub(crate) line: String,
    /// For a tool that is no shell, the same call of a tool without a name.
    pub(crate) unnamed: String,
    /// Simple commands of the line.
    pub(crate) commands: Vec<Simple>,
    /// Changed paths, each in all its forms.
    pub(crate) paths: Vec<Vec<String>>,
    /// New texts, each with the text that it replaces.
    pub(crate) contents: Vec<Content>,
    /// For a tool that reads or writes a file, commands that do the same.
    pub(crate) alike: Vec<Alike>,
}

/// Command that does the same to a file as a tool.
#[derive(Debug)]
pub(crate) struct Alike {
    pub(crate) command: String,
    /// The form with a path that no file has: a pattern that matches it is about the program, not the path.
    pub(crate) pathless: String,
}

/// New content of an edit.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) new: String,
    pub(crate) old: String,
    /// Files of the command, among the changed paths of the call.
    files: Range<usize>,
}

/// Name that no tool and no file has.
const UNNAMED: &str = "\u{1}";

const PATHS: &[&str] = &[
    "file_path", "path", "notebook_path", "absolute_path", "filePath",
];
const NEW: &[&str] = &[
    "new_string", "content", "new_str", "file_text", "insert_text", "new_source", "newString",
    "newText", "new_text",
];
const OLD: &[&str] = &["old_string", "old_str", "oldString", "oldText", "old_text"];
/// Where a tool that moves or copies a file puts it.
const TO: &[&str] = &["destination", "new_path", "to"];

impl Call {
    /// Reads a call. `roots` are the directories that paths are also tried relative to: the work
    /// tree, and the project.
    pub fn of(step: &Step, roots: &[&str]) -> Self {
        let mut call = Self::default();
        let cwd = step.cwd.as_deref().or(roots.first().copied());
        let cwd = cwd.unwrap_or_default();
        if let Some(command) = step.command().filter(|_| step.argument(PATHS).is_none()) {
            call.of_shell(cut(&command), cwd, roots);
            return call;
        }
        call.of_edit(step, cwd, roots);
        let tool = step.tool.to_lowercase();
        let path = step.argument(PATHS).map(|path| forms(path, cwd, roots));
        let path = path.and_then(|forms| forms.into_iter().next());
        if call.paths.is_empty() {
            call.of_tool(step, path.as_deref());
            if tool.contains("read") || tool.contains("view") {
                call.alike(&["cat"], path.as_deref());
            }
        } else if call.contents.iter().all(|content| content.old.is_empty()) {
            call.alike(&[">", "tee"], path.as_deref());
        }
        call
    }

    fn alike(&mut self, programs: &[&str], path: Option<&str>) {
        // In a shell such a path stands between quotation marks.
        let is_plain = |path: &str| {
            path.chars()
                .all(|c| c.is_alphanumeric() || "./_-+@,:=%~".contains(c))
        };
        let path = path.map(|path| {
            if is_plain(path) {
                path.to_owned()
            } else {
                format!("'{path}'")
            }
        });
        for (program, path) in programs.iter().zip(path.iter().cycle()) {
            self.alike.push(Alike {
                command: format!("{program} {path}"),
                pathless: format!("{program} {UNNAMED}"),
            });
        }
    }

    fn of_shell(&mut self, line: &str, cwd: &str, roots: &[&str]) {
        line.trim().clone_into(&mut self.line);
        self.commands = commands(line);
        for simple in &self.commands {
            let at = cleaned(&simple.directory, cwd);
            let first = self.paths.len();
            let paths = changed(&simple.words, &simple.targets);
            let of = |path: &String| {
                if takes_directories(&simple.words) {
                    with_directories(forms(path, &at, roots))
                } else {
                    forms(path, &at, roots)
                }
            };
            self.paths.extend(paths.iter().map(of));
            let new = match simple.words.split_first() {
                // Paths that a shell writes to without a here-document.
                Some((name, text)) if matches!(name.as_str(), "echo" | "printf") => text.join(" "),
                _ => simple.body.clone(),
            };
            if !new.is_empty() && !paths.is_empty() {
                self.contents.push(Content {
                    new,
                    old: String::new(),
                    files: first..self.paths.len(),
                });
            }
        }
        // Agents of Codex edit by a patch behind a command.
        if line.contains("*** Begin Patch") {
            self.of_patch(line, cwd, roots);
        }
    }

    fn of_edit(&mut self, step: &Step, cwd: &str, roots: &[&str]) {
        let patch = step.argument(&["input", "patch"]);
        if let Some(patch) = patch.filter(|patch| patch.contains("*** Begin Patch")) {
            self.of_patch(cut(patch), cwd, roots);
            return;
        }
        let edits = step.input.get("edits").and_then(|edits| edits.as_array());
        let inputs = std::iter::once(&step.input).chain(edits.into_iter().flatten());
        let file = step.argument(PATHS);
        let files = 0..usize::from(file.is_some());
        for input in inputs {
            let text = |names: &[&str]| names.iter().find_map(|name| input.get(name)?.as_str());
            if let Some(new) = text(NEW) {
                self.contents.push(Content {
                    new: cut(new).to_owned(),
                    old: cut(text(OLD).unwrap_or_default()).to_owned(),
                    files: files.clone(),
                });
            }
        }
        if !self.contents.is_empty() {
            self.paths.extend(file.map(|file| forms(file, cwd, roots)));
        }
        let tool = step.tool.to_lowercase();
        if ["move", "copy", "rename"]
            .iter()
            .any(|verb| tool.contains(verb))
        {
            let to = step.argument(TO);
            self.paths.extend(to.map(|to| forms(to, cwd, roots)));
        }
    }

    fn of_patch(&mut self, patch: &str, cwd: &str, roots: &[&str]) {
        const MOVED: &str = "*** Move to: ";
        let marks = [
            "*** Update File: ", "*** Add File: ", "*** Delete File: ", MOVED,
        ];
        let mut content = Content::default();
        for line in patch.lines() {
            let named = marks.iter().find_map(|mark| line.strip_prefix(mark));
            if let Some(named) = named {
                let at = self.paths.len();
                if !line.starts_with(MOVED) {
                    self.add(std::mem::take(&mut content));
                    content.files = at..at;
                }
                content.files.end = at + 1;
                self.paths.push(forms(named.trim(), cwd, roots));
            } else if let Some(new) = line.strip_prefix('+') {
                content.new.extend([new, "\n"]);
            } else if let Some(old) = line.strip_prefix('-') {
                content.old.extend([old, "\n"]);
            }
        }
        self.add(content);
    }

    fn add(&mut self, content: Content) {
        if !content.new.is_empty() {
            self.contents.push(content);
        }
    }

    /// Another tool is a command: its name, and its short arguments.
    fn of_tool(&mut self, step: &Step, path: Option<&str>) {
        let mut texts: Vec<String> = vec![step.tool.clone()];
        texts.extend(path.map(str::to_owned));
        let fields = step.input.as_object().into_iter().flatten();
        let others = fields.filter(|(name, _)| !PATHS.contains(&name.as_str()));
        let others = others.filter_map(|(_, value)| value.as_str());
        texts.extend(
            others
                .filter(|text| text.len() <= ARGUMENT)
                .map(str::to_owned),
        );
        self.line = texts.join(" ");
        // A pattern acts on such a call only if it names the tool.
        UNNAMED.clone_into(&mut texts[0]);
        self.unnamed = texts.join(" ");
    }

    /// Returns the program, or the name of the tool: how calls of one kind begin.
    pub(crate) fn beginnings(&self) -> impl Iterator<Item = &str> {
        let programs = self.commands.iter().filter_map(|one| one.words.first());
        let tool = self.line.split_whitespace().next();
        let tool = tool.filter(|_| self.commands.is_empty());
        programs.map(String::as_str).chain(tool)
    }

    /// Texts of commands: all forms, the whole line, and what does the same.
    pub(crate) fn command_texts(&self) -> impl Iterator<Item = &str> {
        let forms = self.commands.iter().flat_map(Simple::texts);
        let line = (!self.line.is_empty()).then_some(self.line.as_str());
        let alike = self.alike.iter().map(|alike| alike.command.as_str());
        forms.chain(line).chain(alike)
    }

    /// Returns `true` if the call is none of a shell.
    pub(crate) fn is_tool(&self) -> bool {
        !self.unnamed.is_empty()
    }

    /// Returns `true` if an expression matches the same call of a tool without a name: it does not name it.
    pub(crate) fn is_match_unnamed(&self, expression: &Expression) -> bool {
        self.is_tool() && expression.is_match(&self.unnamed)
    }

    /// All forms of the changed paths.
    pub(crate) fn path_texts(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().flatten().map(String::as_str)
    }

    /// Files of new text, each in all its forms.
    pub(crate) fn files_of(&self, content: &Content) -> &[Vec<String>] {
        self.paths.get(content.files.clone()).unwrap_or_default()
    }

    /// New texts of edits.
    pub(crate) fn content_texts(&self) -> impl Iterator<Item = &str> {
        self.contents.iter().map(|content| content.new.as_str())
    }
}

/// A path relative to each of the directories that it is below, and absolute as the last.
fn forms(path: &str, cwd: &str, roots: &[&str]) -> Vec<String> {
    let whole = cleaned(path, cwd);
    let mut forms: Vec<String> = Vec::new();
    for root in roots {
        let root = cleaned(root, "");
        let below = whole.strip_prefix(root.trim_end_matches('/'));
        if let Some(below) = below.and_then(|rest| rest.strip_prefix('/'))
            && !forms.iter().any(|form| form == below)
        {
            forms.push(below.to_owned());
        }
    }
    forms.push(whole);
    forms
}

/// Programs whose operands may be directories, and are changed with all that is in them.
const RECURSIVE: [&str; 14] = [
    "rm", "mv", "rmdir", "rsync", "cp", "sed", "black", "isort", "ruff", "terraform", "tofu",
    "prettier", "patch", "git",
];

fn takes_directories(words: &[String]) -> bool {
    let program = words.first().map_or("", |word| basename(word));
    RECURSIVE.contains(&program)
}

/// The forms of a path without an extension, also as a directory: `vendor/`.
fn with_directories(mut forms: Vec<String>) -> Vec<String> {
    let is_directory = |path: &&String| !basename(path).contains('.') && !path.ends_with('/');
    let directories = forms.iter().filter(is_directory);
    let mut directories: Vec<String> = directories.map(|path| format!("{path}/")).collect();
    // The absolute path stays the last.
    directories.append(&mut forms);
    directories
}

fn cut(text: &str) -> &str {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Returns the files that a command changes, as it names them. What is moved away is not among them: a
/// rule about places is obeyed by it.
fn changed(words: &[String], targets: &[String]) -> Vec<String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut all = match words.as_slice() {
        ["git", command, rest @ ..] => changed_by_git(command, rest),
        [program, rest @ ..] => changed_by(basename(program), rest),
        [] => Vec::new(),
    };
    all.splice(0..0, targets.iter().cloned());
    all.retain(|path| !path.is_empty() && path != "/dev/null");
    all
}

fn owned(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

/// Words that are no options.
fn operands<'w>(words: &[&'w str]) -> Vec<&'w str> {
    let all = words.iter().copied();
    all.filter(|word| !word.starts_with('-')).collect()
}

/// Returns the value of the first of these options, in the next word or behind `=`. A letter may stand at the
/// end of others: `-qO`.
fn value<'w>(words: &[&'w str], options: &[&str]) -> Option<&'w str> {
    let is_letter = |word: &str, option: &str| {
        let letters = word
            .strip_prefix('-')
            .filter(|letters| !letters.starts_with('-'));
        option.len() == 2 && letters.is_some_and(|letters| letters.ends_with(&option[1..]))
    };
    let is_one = |word: &str| {
        let mut options = options.iter();
        options.any(|option| *option == word || is_letter(word, option))
    };
    let mut found = words.iter().enumerate().filter_map(|(at, word)| {
        let (name, value) = word
            .split_once('=')
            .map_or((*word, None), |(name, value)| (name, Some(value)));
        is_one(name).then(|| value.or(words.get(at + 1).copied()))
    });
    found.next().flatten()
}

fn in_directory(directory: &str, path: &str) -> String {
    format!("{}/{}", directory.trim_end_matches('/'), basename(path))
}

fn changed_by_git(command: &str, rest: &[&str]) -> Vec<String> {
    let behind = rest.iter().position(|word| *word == "--");
    let behind = behind.map(|at| owned(&rest[at + 1..]));
    match command {
        "rm" => owned(&operands(rest)),
        "mv" => copied(rest),
        // A branch is one operand; paths stand behind it.
        "checkout" => behind.unwrap_or_else(|| {
            let makes_branch = rest
                .iter()
                .any(|word| matches!(*word, "-b" | "-B" | "--orphan"));
            let mut paths = operands(rest);
            paths.drain(..1.min(paths.len()));
            paths.retain(|_| !makes_branch);
            owned(&paths)
        }),
        "apply" | "am" => {
            let directory = value(rest, &["--directory"]);
            directory
                .map(|path| format!("{path}/"))
                .into_iter()
                .collect()
        }
        "restore" if rest.iter().any(|word| matches!(*word, "--staged" | "-S")) => Vec::new(),
        "restore" => behind.unwrap_or_else(|| {
            let from = value(rest, &["-s", "--source"]);
            let mut paths = operands(rest);
            paths.retain(|path| Some(*path) != from);
            owned(&paths)
        }),
        _ => Vec::new(),
    }
}

/// Targets of a program that copies: its last operand, or its operands in a directory.
fn copied(rest: &[&str]) -> Vec<String> {
    let operands = operands(rest);
    let directory = value(rest, &["-t", "--target-directory"]);
    let within = |directory: &str, from: &[&str]| -> Vec<String> {
        let from = from.iter().filter(|path| **path != directory);
        from.map(|path| in_directory(directory, path)).collect()
    };
    let is_directory = |path: &str| path.ends_with('/') || matches!(basename(path), "." | "..");
    match (directory, operands.split_last()) {
        (Some(directory), _) => within(directory, &operands),
        (None, Some((to, from @ [_, ..]))) if is_directory(to) || from.len() > 1 => {
            within(to, from)
        }
        (None, Some((to, _))) => owned(&[to]),
        (None, None) => Vec::new(),
    }
}

fn changed_by(program: &str, rest: &[&str]) -> Vec<String> {
    let short = |letter: char| {
        let mut flags = rest.iter().filter(|flag| !flag.starts_with("--"));
        flags.any(|flag| flag.starts_with('-') && flag.contains(letter))
    };
    match program {
        "rm" | "rmdir" | "unlink" | "shred" | "touch" | "truncate" | "mkdir" | "tee" => {
            owned(&operands(rest))
        }
        "mv" | "cp" | "install" | "ln" | "rsync" => copied(rest),
        "sed" | "perl" => {
            let is_changed = short('i') || rest.iter().any(|flag| flag.starts_with("--in-place"));
            let has_script = rest.iter().any(|flag| matches!(*flag, "-e" | "-f"));
            let mut files = operands(rest);
            files.drain(..usize::from(!has_script).min(files.len()));
            owned(&files[..if is_changed { files.len() } else { 0 }])
        }
        "patch" => {
            let directory = value(rest, &["-d", "--directory"]);
            let patches = [value(rest, &["-i", "--input"]), directory];
            let output = value(rest, &["-o", "--output"]);
            let mut files = operands(rest);
            files.retain(|path| !patches.contains(&Some(*path)));
            files.truncate(1);
            files.extend(output.or(directory));
            owned(&files)
        }
        "sort" | "pandoc" | "shuf" => value(rest, &["-o", "--output"])
            .map(str::to_owned)
            .into_iter()
            .collect(),
        "sponge" | "dos2unix" | "unix2dos" | "gunzip" | "chmod" | "chown" => {
            let modes = usize::from(program.starts_with("ch"));
            owned(&operands(rest)[modes.min(operands(rest).len())..])
        }
        "curl" | "wget" => fetched(program, rest).into_iter().collect(),
        // Nobody knows the names within: an archive usually holds a directory of its own name.
        "tar" if short('x') || rest.first().is_some_and(|word| word.contains('x')) => {
            unpacked(rest, &["-C", "--directory"])
        }
        "unzip" => unpacked(rest, &["-d"]),
        "dd" => {
            let to = rest.iter().filter_map(|word| word.strip_prefix("of="));
            to.map(str::to_owned).collect()
        }
        "npx" | "bunx" | "pnpx" | "uvx" if !operands(rest).is_empty() => {
            let at = rest.iter().position(|word| !word.starts_with('-'));
            let (inner, rest) = rest.split_at(at.map_or(0, |at| at + 1));
            inner
                .last()
                .map_or_else(Vec::new, |inner| changed_by(inner, rest))
        }
        _ => formatted(program, rest, short('w') || short('i')),
    }
}

/// Formatters that write without an option, and their subcommand for it; what they only look with.
const FORMATTERS: [(&str, &str); 14] = [
    ("autoflake8", ""),
    ("biome", "format"),
    ("black", ""),
    ("cargo", "fmt"),
    ("dart", "format"),
    ("deno", "fmt"),
    ("isort", ""),
    ("mix", "format"),
    ("php-cs-fixer", "fix"),
    ("ruff", "format"),
    ("rustfmt", ""),
    ("swiftformat", ""),
    ("terraform", "fmt"),
    ("tofu", "fmt"),
];

/// Files that a formatter or a linter writes. Many write only with an option.
fn formatted(program: &str, rest: &[&str], is_short: bool) -> Vec<String> {
    let is_set = |options: &[&str]| rest.iter().any(|flag| options.contains(flag));
    let formatter = FORMATTERS.iter().find(|(name, subcommand)| {
        *name == program && (subcommand.is_empty() || rest.first() == Some(subcommand))
    });
    let only_looks = is_set(&[
        "--check", "-check", "--diff", "--dry-run", "-c", "--check-only",
    ]);
    let has_name = ["fmt", "format", "prettier", "imports"]
        .iter()
        .any(|part| program.contains(part));
    let writes = has_name && is_short || is_set(&["--write", "--fix", "--in-place", "--inplace"]);
    let mut files = operands(rest);
    match formatter {
        Some(_) if only_looks => files.clear(),
        // Such an operand is a place.
        Some((_, subcommand)) => {
            files.drain(..usize::from(!subcommand.is_empty()));
        }
        None => files.retain(|path| writes && path.contains(['.', '/'])),
    }
    owned(&files)
}

/// Returns the file that a download is written to.
fn fetched(program: &str, rest: &[&str]) -> Option<String> {
    let is_curl = program == "curl";
    let named = [
        "--output",
        "--output-document",
        if is_curl { "-o" } else { "-O" },
    ];
    let directory = value(rest, &["--output-dir", "-P", "--directory-prefix"]);
    if let Some(path) = value(rest, &named) {
        let path = Some(path).filter(|path| !path.starts_with('-'))?;
        return Some(match directory.filter(|_| is_curl) {
            Some(directory) => in_directory(directory, path),
            None => path.to_owned(),
        });
    }
    let is_saved = |flag: &&str| {
        let is_short = flag.starts_with('-') && !flag.starts_with("--");
        is_short && flag.contains('O') || matches!(*flag, "--remote-name" | "--remote-name-all")
    };
    if is_curl && !rest.iter().any(is_saved) {
        return None;
    }
    let mut urls = rest.iter().filter_map(|word| word.split_once("://"));
    let (_, url) = urls.next()?;
    let path = url.split(['?', '#']).next().unwrap_or(url);
    path.contains('/')
        .then(|| in_directory(directory.unwrap_or("."), path))
}

fn unpacked(rest: &[&str], options: &[&str]) -> Vec<String> {
    let Some(directory) = value(rest, options) else {
        return Vec::new();
    };
    let is_archive = |word: &&&str| **word != directory && word.contains('.');
    let archive = rest
        .iter()
        .find(is_archive)
        .map_or("", |path| basename(path));
    let stem = archive.split('.').next().unwrap_or(archive);
    vec![in_directory(directory, stem)]
}

/// Returns a path below a directory without `.` and `..`, with `/` between its names also on
/// Windows.
pub(crate) fn cleaned(path: &str, cwd: &str) -> String {
    let is_windows = has_drive(path) || has_drive(cwd);
    let plain = |path: &str| match (is_windows, has_drive(path)) {
        (false, _) => path.to_owned(),
        (true, false) => path.replace('\\', "/"),
        (true, true) => format!("/{}", path.replace('\\', "/")),
    };
    let (path, cwd) = (plain(path), plain(cwd));
    let whole = if path.starts_with('/') {
        path
    } else {
        format!("{cwd}/{path}")
    };
    let mut names: Vec<&str> = Vec::new();
    for name in whole.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

/// Returns `true` for an absolute path of Windows with a drive: `C:\a` or `C:/a`.
fn has_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_that_a_command_changes_are_found() {
        let check = |line: &str, expected: &[&str]| {
            let simple = &commands(line)[0];
            assert_eq!(changed(&simple.words, &simple.targets), expected, "{line}");
        };
        check("echo a > b.txt", &["b.txt"]);
        check("make >> log 2>&1", &["log"]);
        check("make 2> /dev/null", &[]);
        check("cat a b", &[]);
        check("rm -rf a b", &["a", "b"]);
        check("git rm a", &["a"]);
        check("git add a", &[]);
        check("mv a b", &["b"]);
        check("cp a b docs/", &["docs/a", "docs/b"]);
        check("cp a b", &["b"]);
        check("sed -i s/a/b/ c d", &["c", "d"]);
        check("sed -n 1p c", &[]);
        check("tee -a x", &["x"]);
        check("curl -o x http://y", &["x"]);
        check("cp notes/a.md .", &["./a.md"]);
        check("mv a/b ..", &["../b"]);
        check("cp -t docs a x/b", &["docs/a", "docs/b"]);
        check("curl -fsSLO https://x.example/a/b.tgz?c=1", &["./b.tgz"]);
        check("curl --output=lib/x https://y.example/x", &["lib/x"]);
        check("curl https://x.example/a", &[]);
        check("wget -P lib https://x.example/a/b.js", &["lib/b.js"]);
        check("wget https://x.example/b.js", &["./b.js"]);
        check("tar -xzf lib-1.tar.gz -C third", &["third/lib-1"]);
        check("tar -czf a.tgz -C third b", &[]);
        check("unzip -q x.zip -d third", &["third/x"]);
        check("git checkout HEAD -- a b", &["a", "b"]);
        check("git checkout main", &[]);
        check("git restore -s HEAD~1 a", &["a"]);
        check("git restore --staged a", &[]);
        check("shfmt -w run.sh", &["run.sh"]);
        check("npx neat --write src/a.ts", &["src/a.ts"]);
        check("fold -w 80 a.txt", &[]);
        check("black a.py b", &["a.py", "b"]);
        check("black --check a.py", &[]);
        check("ruff format a.py", &["a.py"]);
        check("ruff check a.py", &[]);
        check("terraform fmt net/a.tf", &["net/a.tf"]);
        check("prettier -w a.js", &["a.js"]);
        check("prettier a.js", &[]);
        check("patch -p1 a.js a.diff", &["a.js"]);
        check("patch -d lib -p1 -i a.diff", &["lib"]);
        check("sort -u -o a.txt b.txt", &["a.txt"]);
        check("sort b.txt", &[]);
        check("git checkout HEAD~1 a.js", &["a.js"]);
        check("git checkout -b a origin/b", &[]);
        check("git apply --directory=lib a.diff", &["lib/"]);
    }

    #[test]
    fn a_directory_that_is_changed_is_in_its_place() {
        let call = |tool: &str, input: serde_json::Value| {
            let step = Step {
                tool: tool.to_owned(),
                input,
                ..Step::default()
            };
            Call::of(&step, &["/p"])
        };
        let forms = |line: &str| {
            let call = call("Bash", serde_json::json!({ "command": line }));
            call.path_texts().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(forms("rm -rf lib"), ["lib/", "/p/lib/", "lib", "/p/lib"]);
        assert_eq!(forms("rm a.txt"), ["a.txt", "/p/a.txt"]);
        let edit = serde_json::json!({"path": "a.js", "edits": [{"oldText": "a", "newText": "b"}]});
        let call = call("mcp__files__edit_file", edit);
        assert_eq!(call.path_texts().next(), Some("a.js"));
        assert_eq!(call.contents[0].old, "a");
    }

    #[test]
    fn paths_are_clean() {
        let check = |path: &str, cwd: &str, expected: &str| {
            assert_eq!(cleaned(path, cwd), expected, "{path} in {cwd}");
        };
        check("a/./b/../c", "/p", "/p/a/c");
        check("../x", "/p/q", "/p/x");
        check("/x", "/p", "/x");
        check("../../../x", "/p", "/x");
        check(r"src\main.rs", r"C:\p", "/C:/p/src/main.rs");
        check(r"C:\p\a", r"C:\p", "/C:/p/a");
        check(r"a\b", "/p", r"/p/a\b");
    }
}
