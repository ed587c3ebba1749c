//! Call of an agent as what patterns are matched with: commands, changed paths, new content.

use std::ops::Range;

use memctl_sessions::Step;

use super::changed_paths::{changed, cleaned};
use memctl_shell::{Simple, commands};

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
}

/// New content of an edit.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) new: String,
    pub(crate) old: String,
    /// Its files, among the changed paths of the call.
    files: Range<usize>,
}

/// Name that no tool has.
const UNNAMED: &str = "\u{1}";

const PATHS: &[&str] = &[
    "file_path", "path", "notebook_path", "absolute_path", "filePath",
];
const NEW: &[&str] = &[
    "new_string", "content", "new_str", "file_text", "insert_text", "new_source", "newString",
];
const OLD: &[&str] = &["old_string", "old_str", "oldString"];

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
        if call.paths.is_empty() {
            call.of_tool(step, cwd, roots);
        }
        call
    }

    fn of_shell(&mut self, line: &str, cwd: &str, roots: &[&str]) {
        line.trim().clone_into(&mut self.line);
        self.commands = commands(line);
        for simple in &self.commands {
            let at = cleaned(&simple.directory, cwd);
            let first = self.paths.len();
            let paths = changed(&simple.words, &simple.targets);
            self.paths
                .extend(paths.iter().map(|path| forms(path, &at, roots)));
            let new = match simple.words.split_first() {
                // What a shell writes without a here-document.
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
    fn of_tool(&mut self, step: &Step, cwd: &str, roots: &[&str]) {
        let path = step.argument(PATHS);
        let mut texts: Vec<String> = vec![step.tool.clone()];
        if let Some(path) = path {
            texts.extend(forms(path, cwd, roots).into_iter().next());
        }
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

    /// Texts of commands: all forms, and the whole line.
    pub(crate) fn command_texts(&self) -> impl Iterator<Item = &str> {
        let forms = self.commands.iter().flat_map(Simple::texts);
        let line = (!self.line.is_empty()).then_some(self.line.as_str());
        forms.chain(line)
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

fn cut(text: &str) -> &str {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
