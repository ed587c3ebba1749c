//! `statusline`: one line about the running session, for the status line of Claude Code.
//!
//! The agent host calls it after every message and shows its output. On any error it prints nothing; it
//! always exits with 0, within [`DEADLINE`]. It reads the notes of the session and the newest rules, and
//! writes nothing: no audit event, no session, no derived file.
//!
//! Deliberately absent: the model, the costs and the directory, which other status lines show.

use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use memctl_files::named;
use serde_json::{Value, json};

use crate::cli::config::{Config, Environment};
use crate::cli::context::{Off, random};
use crate::cli::ending::Deadline;
use crate::cli::output::{Style, plural};
use crate::cli::start::hook::memory_of;
use crate::host::{Host, SessionCounts};
use crate::lessons::{HintService, Marks};
use crate::model::{Scope, Viewer};
use crate::rules::forbids_advice;
use crate::store::{Here, Scoped};

/// Time after which the process ends without a line.
const DEADLINE: Duration = Duration::from_millis(400);
/// Maximum size of the input: 1 MiB. That of Claude Code 2.1.329 has 2 kB.
const LARGEST: u64 = 1 << 20;

/// Print a status line for Claude Code: rules and lessons told, candidates
///
/// Claude Code calls it after each message, with the session as JSON on stdin. `memctl setup` installs it
/// in `settings.json` if there is no status line yet. It only reads, and prints nothing if it cannot.
/// To show it beside your own status line, call both from one script that passes the input to each.
///
/// ```console
/// $ memctl statusline
/// $ memctl statusline < session.json
/// ```
#[derive(Debug, Args)]
pub(crate) struct StatuslineArgs {}

/// Returns the line with its line feed; `None` to print nothing.
pub(crate) fn statusline(environment: &Environment, root: Option<&Path>) -> Option<String> {
    let deadline = Deadline::start(DEADLINE)?;
    let line = line(environment, root);
    deadline.end();
    line
}

fn line(environment: &Environment, root: Option<&Path>) -> Option<String> {
    let input = if std::io::stdin().is_terminal() {
        json!({})
    } else {
        input()?
    };
    let of_project = &input["workspace"];
    // Claude Code shows colours, and says by this field that it is the one that asks.
    let colour = of_project.is_object() && environment.var("NO_COLOR").is_none();
    let mut environment = environment.clone();
    // The agent may have gone to a directory outside of the project.
    let directories = [
        &of_project["project_dir"],
        &of_project["current_dir"],
        &input["cwd"],
    ];
    let mut directories = directories
        .iter()
        .filter_map(|dir| Some(PathBuf::from(dir.as_str()?)));
    if let Some(directory) = directories.find(|dir| dir.is_absolute() && named::is_dir(dir)) {
        environment.current_dir = directory;
    }
    let (places, memory, _) = memory_of(&environment, root)?;
    if Off::of(&environment, &places, None).is_some() {
        return Some("memctl: off\n".to_owned());
    }
    let viewer = Config::load(&environment, &places.memory, &[])
        .and_then(|config| config.viewer())
        .unwrap_or(Viewer::Nobody);
    let store = Scoped::new(memory.read_only(), Scope::All)
        .at(environment.now)
        .seen_by(viewer)
        .trusting(environment.approvals(&places.memory));
    let hints = HintService {
        store: &store,
        now: environment.now,
        random,
        forbids: forbids_advice,
        here: Here::default(),
    };
    let session = input["session_id"].as_str();
    let session = session.map(|id| format!("{}/{id}", Host::ClaudeCode.name()));
    let counts = hints.session_counts(session.as_deref()).ok()?;
    let marks = session.as_deref().map(|session| Marks::of(&store, session));
    Some(text(counts, marks, colour) + "\n")
}

fn input() -> Option<Value> {
    let mut bytes = Vec::new();
    let mut stdin = std::io::stdin().lock().take(LARGEST);
    stdin.read_to_end(&mut bytes).ok()?;
    let input: Value = serde_json::from_slice(&bytes).ok()?;
    let session = &input["session_id"];
    let is_known = session.is_null() || session.is_string();
    (input.is_object() && is_known).then_some(input)
}

/// Returns the line. A part with the number 0 is left out; a session without any part was told nothing.
fn text(counts: SessionCounts, marks: Option<Marks>, colour: bool) -> String {
    let has_session = marks.is_some();
    let told = |count: usize, noun: &str| (count > 0).then(|| plural(count as u64, noun) + " told");
    let mut parts = vec![
        told(counts.told, "rule"),
        told(counts.told_at_calls, "rule")
            .map(|told| format!("{told} at calls, {} heeded", counts.heeded)),
        told(counts.lessons, "lesson"),
        (counts.helped > 0).then(|| format!("{} helped", counts.helped)),
    ];
    parts.extend(marks.map(|marks| {
        match marks.lessons {
            0 => marks
                .was_asked
                .then(|| "asked for lessons, none".to_owned()),
            lessons => Some(plural(lessons as u64, "lesson") + " recorded"),
        }
    }));
    let mut parts: Vec<String> = parts.into_iter().flatten().collect();
    if counts.waiting > 0 {
        let verb = if counts.waiting == 1 { "waits" } else { "wait" };
        let waits = format!(
            "{} {verb}: memctl review",
            plural(counts.waiting as u64, "candidate")
        );
        parts.push(if colour {
            Style::Warn.paint(&waits)
        } else {
            waits
        });
    } else if !has_session {
        parts.push("no candidates wait".to_owned());
    } else if parts.is_empty() {
        parts.push("nothing told yet".to_owned());
    }
    format!("memctl: {}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_what_there_is() {
        let check = |[told, told_at_calls, heeded, lessons, helped, waiting]: [usize; 6],
                     has_session: bool,
                     expected: &str| {
            let counts = SessionCounts {
                told,
                told_at_calls,
                heeded,
                lessons,
                helped,
                waiting,
            };
            let marks = has_session.then(Marks::default);
            assert_eq!(text(counts, marks, false), expected);
        };
        check(
            [4, 3, 2, 1, 1, 2],
            true,
            "memctl: 4 rules told, 3 rules told at calls, 2 heeded, 1 lesson told, 1 helped, 2 candidates wait: memctl review",
        );
        check([0; 6], true, "memctl: nothing told yet");
        let expected = "memctl: 1 rule told at calls, 1 heeded";
        check([0, 1, 1, 0, 0, 0], true, expected);
        let expected = "memctl: 2 lessons told, 1 helped";
        check([0, 0, 0, 2, 1, 0], true, expected);
        let expected = "memctl: 1 candidate waits: memctl review";
        check([0, 0, 0, 0, 0, 1], true, expected);
        check([0; 6], false, "memctl: no candidates wait");
    }

    #[test]
    fn the_line_says_that_the_agent_was_asked_and_what_came_of_it() {
        let check = |was_asked, lessons, expected: &str| {
            let counts = SessionCounts {
                told: 2,
                ..SessionCounts::default()
            };
            let marks = Marks {
                was_asked,
                lessons,
                ..Marks::default()
            };
            assert_eq!(text(counts, Some(marks), false), expected);
        };
        check(false, 0, "memctl: 2 rules told");
        check(true, 0, "memctl: 2 rules told, asked for lessons, none");
        check(true, 2, "memctl: 2 rules told, 2 lessons recorded");
        check(false, 1, "memctl: 2 rules told, 1 lesson recorded");
    }
}
