//! Goal of a step: for a command its programs and their operands, for an edit its file, for another
//! tool its arguments.

use std::collections::HashSet;

use memctl_sessions::Step;

use crate::lessons::call::{self, Run, code_words, leaves};
use crate::lessons::vocabulary::WORDS;
use crate::model::text::one_line;

/// Goal of a step.
#[derive(Debug, Clone)]
pub(crate) struct Goal {
    /// Kind of goal.
    pub(crate) kind: GoalKind,
    /// Programs that only filter the output of others.
    pub(crate) filters: Vec<Run>,
    /// Input as one text, for exact comparison.
    pub(crate) whole: String,
    /// Set if a program after the last relevant one determines the exit code.
    hidden: bool,
    /// Tool of the step.
    pub(crate) tool: String,
}

/// Kind of goal.
#[derive(Debug, Clone)]
pub(crate) enum GoalKind {
    /// Shell line: the relevant programs, in order.
    Shell(Vec<Run>),
    /// Read of a file.
    Read(String),
    /// Write of files: their paths, and the words written.
    Edit(Vec<String>, HashSet<String>),
    /// Call of another tool: its flattened arguments.
    Tool(Vec<(String, String)>),
}

impl Goal {
    /// Goal of a step.
    pub(crate) fn of(step: &Step) -> Self {
        let command = step.command();
        let whole = command.clone().unwrap_or_else(|| step.input.to_string());
        let mut goal = Self {
            kind: GoalKind::Tool(Vec::new()),
            filters: Vec::new(),
            whole: one_line(&whole),
            hidden: false,
            tool: step.tool.clone(),
        };
        let tool = step.tool.to_ascii_lowercase();
        let path = step.argument(&[
            "file_path", "path", "filename", "notebook_path", "absolute_path", "filePath",
        ]);
        goal.kind =
            if let Some(command) = command.filter(|_| !tool.contains("editor") || path.is_none()) {
                goal.of_shell(&command)
            } else if tool == "apply_patch" || tool.ends_with("patch") {
                of_patch(
                    step.input
                        .as_str()
                        .or_else(|| step.argument(&["input", "patch"]))
                        .unwrap_or_default(),
                )
            } else if let Some(path) = path {
                of_file(step, &tool, path)
            } else {
                GoalKind::Tool(leaves(&step.input))
            };
        goal
    }

    fn of_shell(&mut self, command: &str) -> GoalKind {
        let simples = call::commands(command);
        let mut runs = Vec::new();
        let mut around = Vec::new();
        let mut last_matters = false;
        for simple in &simples {
            let run = Run::of(simple);
            if WORDS.around.contains(&run.name) {
                last_matters = false;
                around.push(run);
            } else if simple.fallback || (simple.piped && run.looks) {
                last_matters = false;
                self.filters.push(run);
            } else {
                last_matters = true;
                runs.push(run);
            }
        }
        // The output of a search can contain anything, including error messages.
        self.hidden = !last_matters && runs.last().is_some_and(|run: &Run| !run.looks);
        if runs.is_empty() {
            runs = around;
        }
        GoalKind::Shell(runs)
    }

    /// Returns true if the exit code may belong to an irrelevant program.
    pub(crate) fn hides_its_code(&self) -> bool {
        self.hidden
    }

    /// Returns true if the last program asks a question, which may be answered with "no".
    pub(crate) fn ends_in_probe(&self) -> bool {
        let GoalKind::Shell(runs) = &self.kind else {
            return false;
        };
        let last = self.filters.last().or_else(|| runs.last());
        last.is_some_and(|run| WORDS.probes.contains(&run.name))
    }

    /// Returns true if the step only searches or reads.
    pub(crate) fn is_search(&self) -> bool {
        match &self.kind {
            GoalKind::Shell(runs) => runs.iter().all(|run| run.looks),
            GoalKind::Read(_) => true,
            GoalKind::Edit(..) => false,
            GoalKind::Tool(_) => ["glob", "grep", "ls", "search", "find", "list"]
                .iter()
                .any(|name| self.tool.to_ascii_lowercase().contains(name)),
        }
    }

    /// Returns true if the step asks a program for its help or its version.
    pub(crate) fn asks_only(&self) -> bool {
        let asks = |word: &str| ["--help", "-help", "--version"].contains(&word);
        matches!(self.kind, GoalKind::Shell(_)) && self.whole.split_whitespace().any(asks)
    }

    /// Returns true if the step reads a single named file.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self.kind, GoalKind::Read(_))
    }

    /// Name of the goal, for people.
    pub(crate) fn name(&self) -> String {
        match &self.kind {
            GoalKind::Shell(runs) => runs
                .last()
                .map_or_else(|| self.tool.clone(), |run| run.name.clone()),
            _ => self.tool.clone(),
        }
    }
}

fn of_file(step: &Step, tool: &str, path: &str) -> GoalKind {
    let new = step.argument(&[
        "new_string", "content", "new_str", "file_text", "insert_text", "new_source",
    ]);
    let old = step.argument(&["old_string", "old_str"]);
    let view = step.argument(&["command"]) == Some("view");
    let editing = step.argument(&["command"]).is_some() && !view;
    let edits = step.input.get("edits").map(ToString::to_string);
    if new.is_some() || old.is_some() || edits.is_some() || editing {
        let mut words = code_words(new.unwrap_or_default());
        words.extend(code_words(old.unwrap_or_default()));
        words.extend(code_words(edits.as_deref().unwrap_or_default()));
        return GoalKind::Edit(vec![path.to_owned()], words);
    }
    let reads = ["read", "view", "cat", "open"]
        .iter()
        .any(|name| tool.contains(name));
    if view || reads && !tool.contains("grep") {
        return GoalKind::Read(path.to_owned());
    }
    GoalKind::Tool(leaves(&step.input))
}

fn of_patch(patch: &str) -> GoalKind {
    let marks = [
        "*** Update File: ", "*** Add File: ", "*** Delete File: ", "+++ b/",
    ];
    let paths = patch
        .lines()
        .filter_map(|line| {
            marks
                .iter()
                .find_map(|mark| line.trim_start().strip_prefix(mark))
        })
        .map(|path| path.trim().to_owned())
        .collect();
    GoalKind::Edit(paths, code_words(patch))
}
