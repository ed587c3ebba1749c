//! Call of an agent in the form that patterns match: commands, changed paths, new content.
//!
//! - `changed_paths`: files that a command changes, by its program, and the forms of a path.
//! - `scripts`: what a script within the command changes, of `sed` or of another language.

mod changed_paths;
mod scripts;

use std::ops::Range;

use changed_paths::{changed, cleaned, forms, with_directories};
use memctl_sessions::Step;
use memctl_shell::{Simple, basename, commands};
use scripts::{substituted, written};
use serde_json::Value;

use super::patterns::Expression;
use crate::model::text::one_line;

/// Maximum length of a text that patterns are matched with, in bytes.
const LONGEST: usize = 128 << 10;
/// Maximum length of an argument of a tool that is no shell, in bytes, and their number.
const ARGUMENT: usize = 500;
const ARGUMENTS: usize = 64;

/// Call of an agent, ready to match.
#[derive(Debug, Default)]
pub struct Call {
    /// Name of the tool.
    tool: String,
    /// Whole command line; empty for a call of another tool.
    pub(crate) line: String,
    /// Simple commands of the line.
    pub(crate) commands: Vec<Simple>,
    /// Changed paths, each in all its forms.
    pub(crate) paths: Vec<Vec<String>>,
    /// New texts, each with the text that it replaces.
    pub(crate) contents: Vec<Content>,
    /// Other texts of the call: of a tool that is no shell, or of commands in another directory.
    equivalents: Vec<Equivalent>,
}

/// Text that says the same as a call.
#[derive(Debug)]
struct Equivalent {
    text: String,
    /// The call with a name that no tool and no place has: a pattern that matches it is not about that.
    unnamed: String,
    of: Of,
}

/// Kind of call that a text is equivalent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// The command with this number, in the directory that it runs in.
    Command(usize),
    /// A tool that is no shell.
    Tool,
    /// Command for a file tool: `cat a.txt` for a tool that reads it.
    FileTool,
}

/// New content of an edit.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) new: String,
    pub(crate) old: String,
    /// Files of the command, among the changed paths of the call.
    files: Range<usize>,
}

/// Name that no tool and no place has.
const UNNAMED: &str = "\u{1}";

const PATHS: &[&str] = &[
    "file_path", "path", "notebook_path", "absolute_path", "filePath", "target_file",
];
const NEW: &[&str] = &[
    "new_string", "content", "new_str", "file_text", "insert_text", "new_source", "newString",
    "newText", "new_text",
];
const OLD: &[&str] = &["old_string", "old_str", "oldString", "oldText", "old_text"];
/// Verbs in the names of tools that delete a file.
const REMOVALS: [&str; 3] = ["delete", "remove", "unlink"];
/// First line of a patch of Codex.
const BEGIN: &str = "*** Begin Patch";
/// Beginning of the line of a unified patch that names the new file.
const HEADER: &str = "\n+++ ";
/// Target of a tool that moves or copies a file.
const TO: &[&str] = &["destination", "new_path", "to"];

impl Call {
    /// Reads a call. `roots` are the directories that paths are also tried relative to: the work
    /// tree, and the project.
    pub fn of(step: &Step, roots: &[&str]) -> Self {
        let mut call = Self {
            tool: step.tool.clone(),
            ..Self::default()
        };
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
            let is_like = |names: &[&str]| names.iter().any(|name| tool.contains(name));
            if is_like(&["read", "view"]) {
                call.alike(&["cat"], path.as_deref());
            } else if is_like(&["grep", "search"]) {
                call.alike(&["rg", "grep"], path.as_deref());
            } else if is_like(&["glob", "list"]) || tool == "ls" {
                let at = cleaned(step.argument(PATHS).unwrap_or_default(), cwd);
                let files = step
                    .argument(&["pattern"])
                    .map(|files| forms(files, &at, roots));
                let files = files.and_then(|forms| forms.into_iter().next());
                call.alike(&["ls"], files.or(path).as_deref());
            }
        } else if REMOVALS.iter().any(|verb| tool.contains(verb)) {
            call.alike(&["rm"], path.as_deref());
        } else if call.contents.iter().all(|content| content.old.is_empty()) {
            call.alike(&[">", "tee"], path.as_deref());
        }
        call
    }

    fn alike(&mut self, programs: &[&str], path: Option<&str>) {
        // In a shell, such a path is in quotation marks.
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
            self.add_equivalent(Of::FileTool, &|place| format!("{program} {place}"), path);
        }
    }

    fn add_equivalent(&mut self, of: Of, with: &dyn Fn(&str) -> String, name: &str) {
        self.equivalents.push(Equivalent {
            text: with(name),
            unnamed: with(UNNAMED),
            of,
        });
    }

    /// Adds a command in another directory as one that names the place: `cd a && mv b c` is `mv a/b a/c`, too.
    fn add_place(&mut self, number: usize, at: &str, roots: &[&str]) {
        let place = forms(".", at, roots).swap_remove(0);
        if roots.iter().any(|root| cleaned(root, "") == place) {
            return;
        }
        let simple = &self.commands[number];
        let plain = simple
            .silent
            .as_ref()
            .unwrap_or(&simple.typed)
            .plain
            .clone();
        // Text for people is in no place.
        let words = Some(simple.words.clone()).filter(|_| simple.silent.is_none());
        self.add_equivalent(
            Of::Command(number),
            &|place| format!("{plain} {place}/"),
            &place,
        );
        let in_place = |words: &[String], place: &str| {
            let words = words.iter().enumerate().map(|(at, word)| match word {
                word if at == 0 || word.starts_with(['-', '/']) => word.clone(),
                word => format!("{place}/{word}"),
            });
            words.collect::<Vec<_>>().join(" ")
        };
        if let Some(words) = words {
            self.add_equivalent(
                Of::Command(number),
                &|place| in_place(&words, place),
                &place,
            );
        }
    }

    fn of_shell(&mut self, line: &str, cwd: &str, roots: &[&str]) {
        line.trim().clone_into(&mut self.line);
        self.commands = commands(line);
        let mut patches = Vec::new();
        for number in 0..self.commands.len() {
            let at = cleaned(&self.commands[number].directory, cwd);
            self.add_place(number, &at, roots);
            let simple = &self.commands[number];
            let first = self.paths.len();
            let words = &simple.executed;
            let makes_directory = words
                .first()
                .is_some_and(|program| basename(program) == "mkdir");
            // A file of the project that is copied out of it stays as it is.
            let is_copy = |path: &[String]| {
                let is_of_project = |word: &&String| forms(word, &at, roots).len() > 1;
                let mut same = words
                    .iter()
                    .filter(|word| basename(word) == basename(&path[0]));
                path.len() == 1 && same.any(|word| is_of_project(&word))
            };
            for path in changed(words, &simple.targets) {
                let path = forms(&path, &at, roots);
                if makes_directory {
                    self.paths.push(path);
                } else if !is_copy(&path) {
                    self.paths.push(with_directories(path));
                }
            }
            let mut contents = substituted(words);
            match words.first().map(|program| basename(program)) {
                Some("patch" | "git") if simple.body.contains(HEADER) => {
                    patches.push((simple.body.clone(), at));
                    continue;
                }
                // Paths that a shell writes to without a here-document.
                Some("echo" | "printf") => contents.push((String::new(), words[1..].join(" "))),
                _ if contents.is_empty() => contents.push((String::new(), simple.body.clone())),
                _ => {}
            }
            contents.retain(|(_, new)| !new.is_empty() && self.paths.len() > first);
            let files = first..self.paths.len();
            self.contents
                .extend(contents.into_iter().map(|(old, new)| Content {
                    new,
                    old,
                    files: files.clone(),
                }));
            let of_script = written(simple);
            let of_script = of_script.iter().map(|path| forms(path, &at, roots));
            self.paths.extend(of_script.map(with_directories));
        }
        for (patch, at) in patches {
            self.of_patch(&patch, &at, roots);
        }
        // Agents of Codex edit by a patch behind a command.
        if line.contains(BEGIN) {
            self.of_patch(line, cwd, roots);
        }
    }

    fn of_edit(&mut self, step: &Step, cwd: &str, roots: &[&str]) {
        let file = step.argument(PATHS);
        let fields = step.input.as_object().into_iter().flatten();
        let mut texts = fields.filter_map(|(_, value)| value.as_str());
        let is_patch = |text: &&str| text.contains(BEGIN) || text.contains(HEADER);
        if let Some(patch) = texts.find(is_patch).filter(|_| file.is_none()) {
            self.of_patch(cut(patch), cwd, roots);
            return;
        }
        let edits = step.input.get("edits").and_then(|edits| edits.as_array());
        let inputs = std::iter::once(&step.input).chain(edits.into_iter().flatten());
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
        let tool = step.tool.to_lowercase();
        let is_of = |verbs: &[&str]| verbs.iter().any(|verb| tool.contains(verb));
        if !self.contents.is_empty() || is_of(&REMOVALS) || is_of(&["write", "edit"]) {
            self.paths
                .extend(file.map(|file| with_directories(forms(file, cwd, roots))));
        }
        if is_of(&["move", "copy", "rename"]) && !is_of(&REMOVALS) {
            let to = step.argument(TO);
            self.paths.extend(to.map(|to| forms(to, cwd, roots)));
        }
    }

    /// Reads a patch of Codex, or a unified one.
    fn of_patch(&mut self, patch: &str, cwd: &str, roots: &[&str]) {
        const MOVED: &str = "*** Move to: ";
        let marks = [
            "*** Update File: ", "*** Add File: ", "*** Delete File: ", MOVED,
        ];
        let is_unified = !patch.contains(BEGIN);
        let mut content = Content::default();
        let mut before = "";
        for line in patch.lines() {
            let named = match line.strip_prefix("+++ ").filter(|_| is_unified) {
                Some("/dev/null") => Some(before),
                Some(named) => Some(without_side(named)),
                None => marks.iter().find_map(|mark| line.strip_prefix(mark)),
            };
            if let Some(named) = line.strip_prefix("--- ").filter(|_| is_unified) {
                before = without_side(named);
            } else if let Some(named) = named {
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

    /// Another tool is a command: its name and its short arguments, and these with their names, `Name key=value`.
    fn of_tool(&mut self, step: &Step, path: Option<&str>) {
        let mut arguments: Vec<(String, String)> = Vec::new();
        arguments.extend(path.map(|path| ("path".to_owned(), path.to_owned())));
        add_arguments("", &step.input, &mut arguments);
        let values: Vec<&str> = arguments.iter().map(|(_, value)| value.as_str()).collect();
        let named = arguments
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let lines = [values.join(" "), named.collect::<Vec<_>>().join(" ")];
        for line in lines {
            for name in [step.tool.clone(), step.tool.to_lowercase()] {
                self.add_equivalent(Of::Tool, &|name| format!("{name} {line}"), &name);
            }
        }
    }

    /// Returns the programs, or the name of the tool: how calls of one kind begin.
    pub(crate) fn beginnings(&self) -> impl Iterator<Item = &str> {
        let programs = self.commands.iter().filter_map(|one| one.words.first());
        let tool = Some(self.tool.as_str()).filter(|_| self.commands.is_empty());
        programs.map(String::as_str).chain(tool)
    }

    /// Texts of commands: all forms, the whole line, and what says the same.
    pub(crate) fn command_texts(&self) -> impl Iterator<Item = &str> {
        let forms = self.commands.iter().flat_map(Simple::texts);
        let line = (!self.line.is_empty()).then_some(self.line.as_str());
        let others = self.equivalents.iter().map(|other| other.text.as_str());
        forms.chain(line).chain(others)
    }

    /// Texts that say the same as the call of a tool.
    pub(crate) fn tool_texts(&self) -> impl Iterator<Item = &str> {
        let of_tool = |one: &&Equivalent| matches!(one.of, Of::Tool | Of::FileTool);
        let texts = self.equivalents.iter().filter(of_tool);
        texts.map(|one| one.text.as_str())
    }

    /// Returns `true` if an expression matches what says the same as these, because of the tool or the place.
    pub(crate) fn is_matched(&self, of: &[Of], expression: &Expression) -> bool {
        let mut others = self.equivalents.iter().filter(|one| of.contains(&one.of));
        others.any(|one| expression.is_match(&one.text) && !expression.is_match(&one.unnamed))
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

/// Name of a file in a unified patch, without `a/` or `b/` and the time behind it.
fn without_side(named: &str) -> &str {
    let named = named.split('\t').next().unwrap_or(named);
    named
        .strip_prefix("a/")
        .or(named.strip_prefix("b/"))
        .unwrap_or(named)
}

/// Collects the arguments of a tool by their names, without its paths. Each is one line, cut.
fn add_arguments(name: &str, value: &Value, found: &mut Vec<(String, String)>) {
    if found.len() >= ARGUMENTS {
        return;
    }
    match value {
        Value::Object(fields) => {
            let others = fields
                .iter()
                .filter(|(name, _)| !PATHS.contains(&name.as_str()));
            others.for_each(|(name, value)| add_arguments(name, value, found));
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| add_arguments(name, item, found)),
        Value::Null => {}
        Value::String(text) => {
            let line = one_line(text);
            let cut = line[..line.floor_char_boundary(ARGUMENT)].to_owned();
            found.push((name.to_owned(), cut));
        }
        other => found.push((name.to_owned(), other.to_string())),
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}
