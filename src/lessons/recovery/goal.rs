//! Goal of a step: for a command its programs and their operands, for an edit its file, for another
//! tool its arguments.

use std::collections::HashSet;

use crate::lessons::call::{Run, Simple, code_words, commands, leaves};
use crate::lessons::vocabulary::WORDS;
use crate::model::text::one_line;
use memctl_sessions::Step;

/// Goal of a step.
#[derive(Debug, Clone)]
pub(crate) struct Goal {
    /// Kind of goal.
    pub(crate) kind: GoalKind,
    /// Programs that only filter the output of others.
    pub(crate) filters: Vec<Run>,
    /// Input as one text, for exact comparison.
    pub(crate) whole: String,
    /// The exit code may belong to a program after the last relevant one.
    pub(super) hides_its_code: bool,
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
            hides_its_code: false,
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
        let simples = commands(command);
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
        self.hides_its_code = !last_matters && runs.last().is_some_and(|run: &Run| !run.looks);
        if runs.is_empty() {
            runs = around;
        }
        GoalKind::Shell(runs)
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

/// Returns `true` for a shell line that writes a file by a redirection.
pub(crate) fn writes(step: &Step) -> bool {
    let commands = step.command().map(|line| memctl_shell::commands(&line));
    let mut commands = commands.iter().flatten();
    commands.any(|simple| simple.targets.iter().any(|target| target != "/dev/null"))
}

/// Returns `true` for a call that changes nothing: every command of it asks for information.
pub(super) fn only_observes(step: &Step) -> bool {
    if !matches!(Goal::of(step).kind, GoalKind::Shell(_)) || writes(step) {
        return false;
    }
    let is_observation = |word: &str| {
        let listed = |first| ["describe", "get", "list", "show"].contains(&first);
        WORDS.observations.contains(word)
            || word.split_once('-').is_some_and(|(first, _)| listed(first))
    };
    // `-h` before a value is the host of a database.
    let asks = |words: &[String]| {
        let is_long = |word: &String| {
            let lists = ["--list", "--dry-run", "--just-print", "--tasks", "-version"];
            matches!(word.as_str(), "--help" | "--version") || lists.contains(&word.as_str())
        };
        let last = words.last().map_or("", String::as_str);
        words.iter().any(is_long) || matches!(last, "-h" | "-V")
    };
    let asks_database = |words: &[String]| {
        let mut statements = words
            .iter()
            .skip(1)
            .filter(|word| is_statement(word))
            .peekable();
        statements.peek().is_some() && statements.all(|text| reads(text))
    };
    let observes = |simple: &Simple| {
        let run = Run::of(simple);
        let bare = simple.words.iter().skip(1);
        let mut bare = bare.take_while(|word| !word.starts_with('-'));
        // `poetry env info`, `aws configure list-profiles`.
        let first = bare.next().is_some_and(|word| !acts(word));
        let second = bare.next().is_some_and(|word| is_observation(word));
        let last = run.name.rsplit(' ').next().unwrap_or_default();
        run.looks
            || WORDS.around.contains(&run.name) && !acts(&run.name)
            || is_observation(last)
            || is_observation(&run.name)
            || simple.words.get(1).is_some_and(|option| {
                option.starts_with('-') && is_observation(&format!("{} {option}", simple.program()))
            })
            || first && second
            || asks(&simple.words)
            || asks_database(&simple.words)
    };
    let line = step.command().unwrap_or_default();
    let commands = commands(&line);
    !commands.is_empty() && commands.iter().all(observes)
}

/// Returns `true` for a word that makes, runs, sets, ends or destroys something, or lets time pass.
fn acts(word: &str) -> bool {
    WORDS.acts.contains(word) || WORDS.destroys.contains(word)
}

/// Returns `true` for text that asks a database, and changes nothing in it: `select …`, `\d orders`.
fn reads(text: &str) -> bool {
    let mut statements = text.split(';').map(str::trim).filter(|one| !one.is_empty());
    let begins = |one: &str| {
        let first = one.split_whitespace().next().unwrap_or_default();
        WORDS
            .reading_statements
            .contains(&first.to_ascii_lowercase())
    };
    statements.all(begins)
}

/// Returns `true` for text that may be a statement for a database.
fn is_statement(text: &str) -> bool {
    text.contains(char::is_whitespace) || text.starts_with('\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_to_a_database_changes_nothing() {
        let check = |command: &str, expected: bool| {
            let observes = only_observes(&Step::of_call("Bash", command));
            assert_eq!(observes, expected, "{command}");
        };
        check(r"psql -d app -c '\d users'", true);
        check("psql -c 'SELECT count(*) FROM carts; select 1'", true);
        check("mysql shop -e 'show tables'", true);
        check("psql -c 'select 1; delete from carts'", false);
        check("psql -c 'insert into carts values (1)'", false);
        check("psql -f select", false);
        check("psql -h localhost -c 'insert into carts values (1)'", false);
        check("psql -h localhost -c 'select 1'", true);
        check("psql -c 'select 1' -c 'delete from carts'", false);
        check("shop -h", true);
        check("rake -T rows && make -n pack && npm run", true);
        check("npm run seed", false);
    }
}
