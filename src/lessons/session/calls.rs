//! Calls of a session: what an agent ran, and the results.
//!
//! A hook appends each call to the log of its session, redacted and shortened; a session file is read into the
//! same form. Recoveries are found in these calls, and lessons are checked against them. A call is therefore as
//! long as any that is compared. An output retains its beginning and its end, and between them the lines that may
//! state an error, or that show options and variables.

use std::ops::ControlFlow;

use crate::lessons::call;
use crate::lessons::failure::error_line::error_lines;
use crate::lessons::recovery::episodes::{Episode, NEAR_WITHIN, analyse};
use crate::lessons::recovery::pattern::{self, of_files};
use crate::model::Pattern;
use crate::store::{self, Scoped, SessionLog};
use memctl_redact::beginning;
use memctl_sessions::Step;
use serde::{Deserialize, Serialize};

/// Maximum length of the stored input of a tool for files, in characters: the rest is content.
const LONGEST_INPUT: usize = 240;
/// Bytes kept of the beginning and of the end of an output.
const ENDS_OF_FAILURE: (usize, usize) = (700, 900);
const ENDS_OF_SUCCESS: (usize, usize) = (500, 300);
/// Maximum number and length of the error lines that are kept beside the ends.
const ERROR_LINES: usize = 4;
const LONGEST_LINE: usize = 240;
/// Maximum number of options and variables that are kept of the middle of an output, and their length.
const SETTINGS: usize = 30;
const LONGEST_SETTING: usize = 40;

/// One call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SessionCall {
    /// Tool of the agent host.
    #[serde(rename = "t")]
    pub(crate) tool: String,
    /// Command, or the input of another tool as JSON.
    #[serde(rename = "c")]
    pub(crate) call: String,
    /// The call failed.
    #[serde(rename = "f", skip_serializing_if = "std::ops::Not::not")]
    pub(crate) failed: bool,
    /// Parts of the output.
    #[serde(rename = "o", skip_serializing_if = "String::is_empty")]
    pub(crate) output: String,
}

/// First line of a log: the session that it belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SessionHead {
    /// Session, with the name of its agent host before it.
    pub(crate) session: String,
    /// Name of the directory that it began in.
    pub(crate) project: String,
}

/// Calls of a session, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SessionCalls {
    pub(crate) head: SessionHead,
    pub(crate) calls: Vec<SessionCall>,
}

impl SessionCall {
    /// Shortens a call. All texts are redacted already.
    pub(crate) fn new(tool: Option<&str>, call: &str, output: &str, failed: bool) -> Self {
        let is_content = call.starts_with('{') && tool.is_some_and(of_files);
        let most = if is_content {
            LONGEST_INPUT
        } else {
            call::LONGEST
        };
        let output = memctl_redact::strip_fenced(output);
        Self {
            tool: tool.unwrap_or_default().to_owned(),
            call: beginning(call, most).into_owned(),
            failed,
            output: telling(&output, failed),
        }
    }

    /// Returns the shell command; `None` if another tool was called.
    pub(crate) fn command(&self) -> Option<&str> {
        (!self.call.starts_with('{') && !self.call.trim().is_empty()).then_some(&self.call)
    }

    /// Returns the call in the form of a session file.
    pub(crate) fn step(&self, index: usize) -> Step {
        Step {
            index,
            output: self.output.clone(),
            is_error: Some(self.failed),
            answered: true,
            ..Step::of_call(&self.tool, &self.call)
        }
    }
}

/// Ends of an output, and the lines between them that may say an error.
fn telling(output: &str, failed: bool) -> String {
    let (head, tail) = if failed {
        ENDS_OF_FAILURE
    } else {
        ENDS_OF_SUCCESS
    };
    let output = output.trim();
    if output.len() <= head + tail {
        return output.to_owned();
    }
    let first = &output[..output.floor_char_boundary(head)];
    let last = &output[output.ceil_char_boundary(output.len() - tail)..];
    let mut extract = first.to_owned();
    if failed {
        let lines = error_lines(output).into_iter().take(ERROR_LINES);
        for line in lines.filter(|line| !first.contains(line) && !last.contains(line)) {
            extract.push('\n');
            extract.push_str(&beginning(&line, LONGEST_LINE));
        }
    } else {
        let middle = &output[first.len()..output.len() - last.len()];
        let mut names: Vec<&str> = settings(middle).collect();
        names.sort_unstable();
        names.dedup();
        extract.push_str("\n… ");
        extract.push_str(&names[..names.len().min(SETTINGS)].join(" "));
    }
    extract.push_str("\n…\n");
    extract.push_str(last);
    extract
}

/// Options and names of variables in a text.
fn settings(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_=".contains(c);
    let names = text.split(move |c: char| !is_part(c)).filter_map(setting);
    names.filter(|name| name.len() <= LONGEST_SETTING)
}

/// Returns the name if a word is an option (`--profile=std`) or a variable (`EPOCH=0`, `BUILD_EPOCH`).
pub(crate) fn setting(word: &str) -> Option<&str> {
    let (name, is_set) = match word.split_once('=') {
        Some((name, _)) => (name, true),
        None => (word, false),
    };
    let is_option = name
        .strip_prefix("--")
        .is_some_and(|rest| rest.len() > 1 && rest.starts_with(|c: char| c.is_ascii_lowercase()));
    let is_upper = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    let is_variable = name.len() > 3
        && name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.bytes().all(is_upper)
        && (is_set || name.contains('_'));
    (is_option || is_variable).then_some(name)
}

impl SessionCalls {
    /// Reads the calls of a session; without calls if there is no log.
    pub(crate) fn of_session(store: &Scoped, session: &str) -> Self {
        Self::read(&store.session_log(session))
    }

    /// Reads the calls of the session that changed last.
    pub(crate) fn newest(store: &Scoped) -> Option<Self> {
        let newest = store.newest_session_log()?;
        Some(Self::read(&newest)).filter(|found| !found.head.session.is_empty())
    }

    /// Reads a log. A damaged line is no call.
    fn read(log: &SessionLog) -> Self {
        let mut all = Self::default();
        for line in log.calls().split(|byte| *byte == b'\n') {
            match Line::read(line) {
                Some(Line::Head(head)) => all.head = head,
                Some(Line::Call(call)) => all.calls.push(call),
                Some(Line::Message) | None => {}
            }
        }
        all
    }

    /// Returns the calls in the form of a session file.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let calls = self.calls.iter().enumerate();
        calls.map(|(at, call)| call.step(at)).collect()
    }
}

/// Newest calls of a running session, oldest first. An agent waits while they are read: the rest of the log is not.
#[derive(Debug, Default)]
pub(crate) struct NewestCalls {
    /// The calls.
    pub(crate) calls: Vec<SessionCall>,
    /// Number of them before the newest message of the person.
    pub(crate) before_message: usize,
}

impl NewestCalls {
    /// Reads at most this number of calls.
    pub(crate) fn of_session(store: &Scoped, session: &str, most: usize) -> Self {
        let mut calls = Vec::new();
        let mut since_message = None;
        store.session_log(session).newest(&mut |line| {
            match Line::read(line) {
                Some(Line::Call(call)) => calls.push(call),
                Some(Line::Message) => {
                    since_message.get_or_insert(calls.len());
                }
                Some(Line::Head(_)) | None => {}
            }
            if calls.len() < most {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        calls.reverse();
        Self {
            before_message: since_message.map_or(0, |since| calls.len() - since),
            calls,
        }
    }
}

/// Line of a log.
enum Line {
    Head(SessionHead),
    Call(SessionCall),
    /// The person has said something.
    Message,
}

/// Line for a message of the person.
const MESSAGE: &str = "{\"message\":true}";

impl Line {
    /// Reads a line; `None` if it is damaged.
    fn read(line: &[u8]) -> Option<Self> {
        if line == MESSAGE.as_bytes() {
            return Some(Self::Message);
        }
        if line.starts_with(b"{\"session\"") {
            return serde_json::from_slice(line).ok().map(Self::Head);
        }
        serde_json::from_slice(line).ok().map(Self::Call)
    }
}

/// Records in the log of a session that the person has said something, which may be what cures a failure.
pub(crate) fn append_message(store: &Scoped, session: &str) -> Result<(), store::Error> {
    store.session_log(session).append_beside_calls(MESSAGE)
}

/// Appends a call to the log of its session. All texts are redacted already.
pub(crate) fn append_call(
    store: &Scoped,
    head: &SessionHead,
    call: &SessionCall,
) -> Result<(), store::Error> {
    let log = store.session_log(&head.session);
    log.append_call(&serde_json::to_string(head)?, &serde_json::to_string(call)?)?;
    if call.failed && !Marks::of(store, &head.session).has_failed {
        log.mark("failed")?;
    }
    Ok(())
}

/// Outcome of the question in a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marks {
    /// A call has failed, and the agent was not asked since.
    pub has_failed: bool,
    /// The agent was asked.
    pub was_asked: bool,
    /// The agent was told what was refused.
    pub was_refused: bool,
    /// Number of lessons that the session brought.
    pub lessons: usize,
}

impl Marks {
    /// Reads the marks of a session.
    pub fn of(store: &Scoped, session: &str) -> Self {
        let mut marks = Self::default();
        let bytes = store.session_log(session).marks();
        for line in String::from_utf8_lossy(&bytes).lines() {
            match line.split(' ').next() {
                Some("failed") => marks.has_failed = true,
                Some("asked") => marks.was_asked = true,
                Some("refused") => marks.was_refused = true,
                Some("lesson") => marks.lessons += 1,
                _ => {}
            }
        }
        marks
    }
}

/// Number of calls; a failure that is older is given up.
const MOST: usize = 16;

/// Returns the patterns of the failures that a call of the log has recovered. A message of the person since then may be
/// what helped.
///
/// A session is searched for recoveries by one analysis, [`analyse`], at three moments that need three readings:
/// - here, at the call that worked, while an agent waits: the newest calls alone;
/// - at a stop, to ask about it (`asking::found_out`): the whole log, and the detours in it;
/// - at the end (`past::learn`): the session file, which has whole outputs, the messages of the person and the
///   calls that no hook has seen.
pub(crate) fn recovered(store: &Scoped, session: &str, call: &SessionCall) -> Vec<Pattern> {
    let NewestCalls {
        mut calls,
        before_message,
    } = NewestCalls::of_session(store, session, MOST);
    // Calls that ran at the same time may be behind it.
    let place = calls.iter().rposition(|one| one == call);
    calls.truncate(place.map_or(0, |place| place + 1));
    recovered_by_last(calls.get(before_message..).unwrap_or_default())
}

/// Returns the patterns of the failures that the last of these calls has recovered.
fn recovered_by_last(calls: &[SessionCall]) -> Vec<Pattern> {
    let Some(first) = calls.iter().position(|call| call.failed) else {
        return Vec::new();
    };
    let steps = calls[first..].iter().enumerate();
    let steps: Vec<Step> = steps.map(|(at, call)| call.step(at)).collect();
    let last = steps.len() - 1;
    // A look at the failed object may come between a failure and its recovery.
    let is_over = |episode: &&Episode| {
        let wait = if episode.is_near { NEAR_WITHIN } else { 0 };
        episode.success_step + wait == last
    };
    let episodes = analyse(&steps, &[]).episodes;
    let over = episodes.iter().filter(is_over);
    over.filter_map(|episode| pattern::of_episode(episode, &steps).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;

    #[test]
    fn calls_come_back_in_their_order() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        let head = SessionHead {
            session: "claude-code/s".to_owned(),
            project: "shop".to_owned(),
        };
        let failed = SessionCall::new(Some("Bash"), "make", "make: *** no rule", true);
        let read = SessionCall::new(Some("Read"), r#"{"file_path": "Makefile"}"#, "all:", false);
        for call in [&failed, &read] {
            append_call(&store, &head, call).unwrap();
        }
        let found = SessionCalls::of_session(&store, "claude-code/s");
        assert_eq!(found.head, head);
        let newest = NewestCalls::of_session(&store, "claude-code/s", 1);
        assert_eq!(newest.calls, found.calls[1..]);
        assert_eq!(found.calls, [failed, read]);
        assert_eq!(found.calls[0].command(), Some("make"));
        assert_eq!(found.calls[1].command(), None);
        append_message(&store, "claude-code/s").unwrap();
        append_call(&store, &head, &found.calls[0]).unwrap();
        let newest = NewestCalls::of_session(&store, "claude-code/s", 9);
        assert_eq!((newest.calls.len(), newest.before_message), (3, 2));
        let all = SessionCalls::newest(&store).unwrap().calls;
        assert_eq!(all, newest.calls);
    }

    #[test]
    fn a_long_output_keeps_its_ends_and_its_errors() {
        let noise = "compiling a module\n".repeat(150);
        let output = format!("first\n{noise}error: no such profile `std`\n{noise}last");
        let call = SessionCall::new(Some("Bash"), "build", &output, true);
        assert!(call.output.starts_with("first"));
        assert!(call.output.ends_with("last"));
        assert!(
            call.output.contains("error: no such profile `std`"),
            "{}",
            call.output
        );
        assert!(call.output.len() < 3_000);
        let worked = SessionCall::new(Some("Bash"), "build", &output, false);
        assert!(worked.output.len() < 900);
        let docs = format!("{noise}Set BUILD_EPOCH and use --profile=std, or EPOCH=0. {noise}");
        let read = SessionCall::new(Some("Bash"), "cat docs/*", &docs, false);
        assert!(
            read.output.contains("… --profile BUILD_EPOCH EPOCH\n…"),
            "{}",
            read.output
        );
    }
}

#[cfg(test)]
mod tests_of_recoveries {
    use super::*;

    /// Working calls of the patterns at each call that worked.
    fn check(calls: &[(&str, &str, bool)], expected: &[&[&str]]) {
        let made = calls
            .iter()
            .map(|(call, output, failed)| SessionCall::new(Some("Bash"), call, output, *failed));
        let made: Vec<SessionCall> = made.collect();
        let worked = (0..made.len()).filter(|at| !made[*at].failed);
        let found = worked.map(|at| {
            let patterns = recovered_by_last(&made[..=at]).into_iter();
            patterns.map(|one| one.working_code).collect::<Vec<_>>()
        });
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_recovery_is_seen_once_at_its_success() {
        check(
            &[
                ("ls", "", false),
                ("rtk bun run test", "rtk: unknown command bun", true),
                ("ls -l", "go.sh", false),
                ("bun run test", "ok", false),
                ("ls", "", false),
            ],
            &[&[], &[], &["bun run test"], &[]],
        );
    }

    #[test]
    fn a_look_between_failure_and_cure_is_no_success() {
        let cure = "psql -d app -c 'ALTER TABLE users ADD COLUMN age INTEGER;'";
        check(
            &[
                (
                    "psql -d app -c 'ALTER TABLE users ADD COLUMN age;'",
                    "ERROR:  syntax error at or near \";\"",
                    true,
                ),
                (r"psql -d app -c '\d users'", "age | text", false),
                ("psql -d app -c 'select 1'", "1", false),
                (cure, "ALTER TABLE", false),
            ],
            &[&[], &[], &[cure]],
        );
    }

    #[test]
    fn a_change_in_between_is_no_pattern() {
        check(
            &[
                ("./go.sh", "bash: ./go.sh: Permission denied", true),
                ("chmod +x go.sh", "", false),
                ("./go.sh", "hi", false),
            ],
            &[&[], &[]],
        );
    }
}
