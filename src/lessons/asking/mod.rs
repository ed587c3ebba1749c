//! The question to an agent about its session, and the handling of its answer.
//!
//! An agent is asked at most once a session, only after a finding, and never in a loop: the log of the session
//! has a mark, regardless of what the agent host reports. An empty answer is a good answer. Lessons in the
//! last message are stored like those of the tool. Refusals are reported once, so that the agent can correct
//! them.
//!
//! People can replace the words of the question by a file. Its calls are shortened, redacted, and only of this
//! session.

use std::collections::HashSet;
use std::path::Path;

use crate::lessons::call::{Run, commands};
use crate::lessons::failure::error_line::error_line;
use crate::lessons::recovery::episodes::analyse;
use crate::lessons::session::call_match::{Occurrence, occurrence, peeled};
use crate::lessons::session::calls::{
    Marks, NewestCalls, SessionCall, SessionCalls, SessionHead, setting,
};
use crate::lessons::storage::advice::covers;
use crate::lessons::storage::new_lesson::{LessonOrigin, StoredLesson, is_in_use, store_lesson};
use crate::lessons::storage::words::{LessonArgs, check, check_words, refuse};
use crate::lessons::vocabulary::WORDS;
use crate::model::text::one_line;
use crate::model::{Pattern, Procedure, Trust};
use crate::store::workspace::{Error, Records};
use crate::store::{Selection, same_project};
use memctl_redact::{Person, beginning};

/// Number of calls in which a recovery follows its failure, where it is asked about at once.
const RECENT: usize = 8;

/// The question to the agent of a running session.
#[derive(Debug)]
pub struct Asking<'a> {
    /// The records.
    pub records: Records<'a>,
    /// Words of the question.
    pub words: &'a str,
    /// The person at this machine.
    pub person: &'a Person,
    /// Directory of the project.
    pub root: Option<&'a Path>,
}

impl Asking<'_> {
    /// Returns what to say to an agent that is about to stop: the question, or what was refused of its
    /// answer; `None` lets it stop. `message` is its last message.
    pub fn at_stop(
        &self,
        session: &str,
        message: &str,
        by: AnswerBy,
    ) -> Result<Option<String>, Error> {
        let store = self.records.store;
        let marks = Marks::of(store, session);
        if marks.was_asked {
            return self.take(session, message, marks);
        }
        let calls = SessionCalls::of_session(store, session);
        let found = self.news(&calls)?;
        if found.is_empty() {
            return Ok(None);
        }
        store.session_log(session).mark("asked")?;
        Ok(Some(question(self.words, &calls, &found, by)))
    }

    /// Returns the line for a call that has just worked, on an agent host without an event at the stop;
    /// `None` if it recovered nothing new.
    pub fn at_recovery(&self, session: &str, project: &str) -> Result<Option<String>, Error> {
        let store = self.records.store;
        if Marks::of(store, session).was_asked {
            return Ok(None);
        }
        let calls = SessionCalls {
            head: SessionHead {
                session: session.to_owned(),
                project: project.to_owned(),
            },
            calls: NewestCalls::of_session(store, session, RECENT).calls,
        };
        // Only a failure just before is worth the search.
        if !calls.calls.iter().any(|call| call.failed) {
            return Ok(None);
        }
        let last = calls.calls.len().saturating_sub(1);
        let mut found = self.news(&calls)?.into_iter();
        if !found.any(|one| one.worked == last && one.failed.is_some()) {
            return Ok(None);
        }
        store.session_log(session).mark("asked")?;
        Ok(Some(format!(
            "If the next agent in this project should know what made this call work, and if you have the tool \
             `lesson` of memctl: record it there once, in one imperative line with the exact command \
             (`session` is \"{session}\"). Otherwise go on."
        )))
    }

    /// Returns what the session found out and no lesson says.
    fn news(&self, calls: &SessionCalls) -> Result<Vec<FoundOut>, Error> {
        let mut news = found_out(calls);
        if news.is_empty() {
            return Ok(news);
        }
        let store = self.records.store;
        let mut existing = store.list::<Procedure>(&Selection::default())?.records;
        let trust = store.trust_snapshot();
        existing.retain(|one| {
            let is_told = is_in_use(one) || one.is_active() && trust.level(one) != Trust::Observed;
            is_told && one.is_of(&|name| same_project(name, &calls.head.project))
        });
        news.retain(|one| !existing.iter().any(|own| says(own, calls, one)));
        Ok(news)
    }

    /// Stores the lessons in a message. Returns what was refused, the first time.
    fn take(&self, session: &str, message: &str, marks: Marks) -> Result<Option<String>, Error> {
        let mut refused = Vec::new();
        let given = in_message(message);
        if given.is_empty() {
            return Ok(None);
        }
        for lesson in given {
            let refusal = match lesson {
                Ok(args) => match self.add(session, &args) {
                    Ok(_) => continue,
                    Err(Error::Lesson(refusal)) => format!("{refusal}; {}", refusal.passes),
                    Err(error) => return Err(error),
                },
                Err(reason) => format!("a line is no lesson: {reason}"),
            };
            refused.push(format!("- {refusal}"));
        }
        if refused.is_empty() || marks.was_refused {
            return Ok(None);
        }
        self.records.store.session_log(session).mark("refused")?;
        Ok(Some(format!(
            "Not recorded:\n{}\nSend the corrected lines once more (LESSON {{…}}), or leave them out and stop.",
            refused.join("\n")
        )))
    }

    /// Returns the session that a lesson is of: the named one, the caller's own, or the newest.
    pub fn session(&self, named: Option<&str>, own: Option<&str>) -> Option<String> {
        let store = self.records.store;
        let is_known = |session: &&str| !store.session_log(session).calls().is_empty();
        let newest = || SessionCalls::newest(store).map(|found| found.head.session);
        let named = named.map(str::trim).filter(|name| !name.is_empty());
        let own = own.filter(is_known).map(str::to_owned);
        named.map(str::to_owned).or(own).or_else(newest)
    }

    /// Stores a lesson of a person, which needs no session.
    pub fn add_of_person(
        &self,
        project: &str,
        trust: Trust,
        args: &LessonArgs,
    ) -> Result<StoredLesson, Error> {
        let checked = check_words(args, self.person)?;
        let origin = LessonOrigin {
            by: "person".to_owned(),
            trust,
            session: String::new(),
            project: project.to_owned(),
            root: self.root,
        };
        store_lesson(&self.records, &checked, args, &origin)
    }

    /// Checks and stores a lesson of a running session.
    pub fn add(&self, session: &str, args: &LessonArgs) -> Result<StoredLesson, Error> {
        let store = self.records.store;
        let calls = SessionCalls::of_session(store, session);
        if calls.calls.is_empty() {
            return refuse(
                "session",
                format!("no calls of `{session}` are known here"),
                "use the session that the question named; the hooks must be installed",
            );
        }
        let (host, id) = session.split_once('/').unwrap_or((session, session));
        let origin = LessonOrigin {
            by: format!("agent:{host}"),
            trust: Trust::Observed,
            session: id.to_owned(),
            project: calls.head.project.clone(),
            root: self.root,
        };
        let checked = check(args, &calls, false, self.person)?;
        let stored = store_lesson(&self.records, &checked, args, &origin)?;
        let mark = format!("lesson {}", stored.id);
        // A mark that cannot be written is missing in the status line alone.
        drop(store.session_log(session).mark(&mark));
        Ok(stored)
    }
}

/// Returns `true` if a lesson says what was found out: its error is that of the failure, the call that worked is one
/// of its commands, or does what it advises. So does an approved pattern.
fn says(own: &Procedure, session: &SessionCalls, found: &FoundOut) -> bool {
    let call = |at: usize| session.calls.get(at);
    let (failed, worked) = (found.failed.and_then(call), call(found.worked));
    let recovery = failed.zip(worked).map(|(failed, worked)| Pattern {
        failing_code: failed.call.clone(),
        working_code: worked.call.clone(),
        ..Pattern::default()
    });
    if recovery.is_some_and(|recovery| covers(own, &recovery)) {
        return true;
    }
    let Some(applies) = &own.applies else {
        return false;
    };
    let of_error = failed.is_some_and(|call| {
        let output = call.output.to_lowercase();
        let mut phrases = applies.errors.iter().chain(&applies.expected);
        phrases.any(|phrase| output.contains(&phrase.to_lowercase()))
    });
    let peeled = peeled(worked.map(std::slice::from_ref).unwrap_or_default());
    let mut commands = applies.commands.iter();
    of_error || commands.any(|command| occurrence(command, &peeled) > Occurrence::Nowhere)
}

/// Default words; users can replace them.
pub const PROMPT: &str = include_str!("prompts/ask_lesson.md");
/// Maximum number of calls that are named: as many as the lessons that it asks for.
const MOST_CALLS: usize = 8;
/// Maximum length of a call and of an error, in characters.
const LONGEST_CALL: usize = 110;
const LONGEST_ERROR: usize = 80;

/// Way in which an agent can answer without a dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerBy {
    /// The tool of the MCP server.
    Tool,
    /// The command line.
    Command,
    /// Lines of its last message, which the next event carries.
    Lines,
}

/// Returns the question. `words` are [`PROMPT`] or the user's own.
pub(crate) fn question(
    words: &str,
    session: &SessionCalls,
    found: &[FoundOut],
    by: AnswerBy,
) -> String {
    let calls: Vec<String> = found
        .iter()
        .rev()
        .take(MOST_CALLS)
        .rev()
        .map(|one| line(session, one))
        .collect();
    let how = how(by, &session.head.session);
    words
        .replace("{calls}", &calls.join("\n"))
        .replace("{how}", &how)
        .replace("{session}", &session.head.session)
        .trim_end()
        .to_owned()
}

const EXAMPLE: &str =
    r#"{"lesson": "…", "commands": ["…"], "errors": ["…"], "not": [], "scope": "project"}"#;

fn how(by: AnswerBy, session: &str) -> String {
    match by {
        AnswerBy::Tool => {
            format!("Record each with the tool `lesson` of memctl, with `session` \"{session}\".")
        }
        AnswerBy::Command => {
            format!("Record each with `memctl lesson add --session {session} '{EXAMPLE}'`.")
        }
        AnswerBy::Lines => format!(
            "Answer with nothing but one line for each, which is recorded: LESSON {EXAMPLE}"
        ),
    }
}

/// One line about a call: what failed, and what worked.
fn line(session: &SessionCalls, found: &FoundOut) -> String {
    let call = |at: usize| {
        let call = session.calls.get(at).map_or("", |call| &call.call);
        beginning(&one_line(call), LONGEST_CALL).into_owned()
    };
    let worked = call(found.worked);
    let Some(failed) = found.failed else {
        return format!(
            "- after {} looks at files and help pages: {worked}",
            found.effort
        );
    };
    let output = session.calls.get(failed).map_or("", |call| &call.output);
    let error = error_line(output).unwrap_or_default();
    let error = beginning(&error, LONGEST_ERROR);
    format!("- {} ({error}), then: {worked}", call(failed))
}

/// Mark of a line that is a lesson, in the last message of an agent.
const MARK: &str = "LESSON";

/// Returns `true` if a message may carry lessons.
pub fn carries_lessons(message: &str) -> bool {
    message.contains(MARK)
}

/// Returns the lessons in a message: each a line `LESSON {…}`, also in a list or in bold type. An unreadable one is an
/// error with its reason.
pub(crate) fn in_message(message: &str) -> Vec<Result<LessonArgs, String>> {
    let lines = message.lines().filter_map(|line| {
        let is_mark = |c: char| c.is_ascii_digit() || "-*•`.)_ ".contains(c);
        let line = line.trim().trim_start_matches(is_mark);
        let json = line
            .strip_prefix(MARK)?
            .trim_start_matches(['*', '_', '`', ':', ' ']);
        json.starts_with('{')
            .then(|| json.trim_end_matches(['`', '*', ' ']))
    });
    let read = lines.map(|json| serde_json::from_str(json).map_err(|error| error.to_string()));
    read.collect()
}

/// Number of things looked at and of failures that make a detour.
const DETOUR: usize = 3;
/// Number of calls that are looked back at.
const BACK: usize = 12;

/// A call that worked, and the failure or the search before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoundOut {
    /// Index of the failing call; `None` for a detour without one.
    pub(crate) failed: Option<usize>,
    /// Index of the call that worked.
    pub(crate) worked: usize,
    /// Number of calls that it took.
    pub(crate) effort: usize,
}

/// Finds what a session found out, in the order of its calls, from the calls alone: reasons to ask its agent for a lesson.
///
/// - A *recovery*: a command failed, and another form of it worked. The same command that works after an edit is a repair
///   of the project, not knowledge for others.
/// - A *detour*: before a command first worked, the agent failed or looked at several things, and one of them showed an
///   option or a variable of that command. One call can look at many things.
///
/// The findings only decide whether to ask, and name the calls. The agent explains them.
pub(crate) fn found_out(session: &SessionCalls) -> Vec<FoundOut> {
    let mut all = recoveries(session);
    for found in detours(&session.calls) {
        let is_same = |existing: &FoundOut| {
            existing.worked == found.worked
                || existing.failed.is_some() && existing.failed == found.failed
        };
        if !all.iter().any(is_same) {
            all.push(found);
        }
    }
    all.sort_by_key(|found| found.worked);
    all
}

fn recoveries(session: &SessionCalls) -> Vec<FoundOut> {
    let calls = &session.calls;
    let analysis = analyse(&session.steps(), &[]);
    let found = analysis.episodes.into_iter().filter_map(|episode| {
        let failed = calls.get(episode.fail_step)?.command()?;
        let call = calls.get(episode.success_step)?;
        let worked = call.command()?;
        (one_line(failed) != one_line(worked) && Work::of(worked).is_some()).then(|| FoundOut {
            failed: Some(episode.fail_step),
            worked: episode.success_step,
            effort: 1 + episode.also_fail_steps.len(),
        })
    });
    found.collect()
}

/// Finds commands that first worked after several looks around.
fn detours(calls: &[SessionCall]) -> Vec<FoundOut> {
    let mut all = Vec::new();
    let mut worked: HashSet<String> = HashSet::new();
    // Calls of looking around and failing since something first worked: index, and what was looked at.
    let mut before: Vec<(usize, usize)> = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        let work = call.command().and_then(Work::of);
        let Some(work) = work.filter(|_| !call.failed) else {
            let things = things_looked_at(call);
            if call.failed || things > 0 {
                before.push((at, things.max(1)));
            }
            continue;
        };
        if !worked.insert(work.name) {
            continue;
        }
        let recent = &before[before.len().saturating_sub(BACK)..];
        let effort = recent.iter().map(|(_, things)| things).sum();
        let is_shown = |(seen, _): &(usize, usize)| {
            let mut words = work.unguessed.iter();
            words.any(|word| calls[*seen].output.contains(word))
        };
        if effort >= DETOUR && recent.iter().any(is_shown) {
            let seen = recent.iter().map(|(seen, _)| *seen);
            all.push(FoundOut {
                // A look without a hit is no failure that the command cured.
                failed: seen
                    .into_iter()
                    .find(|seen| calls[*seen].failed && !looks(&calls[*seen])),
                worked: at,
                effort,
            });
            before.clear();
        }
    }
    all
}

/// A command that does something: neither looking around nor moving about.
struct Work {
    /// Programs with their subcommands.
    name: String,
    /// Words that nobody guesses: options and variables. A path is in each listing.
    unguessed: Vec<String>,
}

impl Work {
    fn of(command: &str) -> Option<Self> {
        let simples = commands(command);
        let runs = simples
            .iter()
            .map(Run::of)
            .filter(|run| !run.looks && !run.name.is_empty() && !WORDS.around.contains(&run.name));
        let names: Vec<String> = runs.map(|run| run.name).collect();
        let is_help = |word: &str| matches!(word, "--help" | "-h" | "help" | "--version" | "-V");
        if names.is_empty() || command.split_whitespace().any(is_help) {
            return None;
        }
        let words = command.split_whitespace();
        let words = words.map(|word| word.trim_matches(['"', '\'', '`', '(', ')', ';', ',']));
        Some(Self {
            name: names.join(" && "),
            unguessed: words.filter_map(setting).map(str::to_owned).collect(),
        })
    }
}

/// Returns `true` for a call that only reads: a look at files, a help page.
pub(crate) fn looks(call: &SessionCall) -> bool {
    things_looked_at(call) > 0
}

/// Number of files, searches and help pages that a call reads; 0 for a call that does something.
fn things_looked_at(call: &SessionCall) -> usize {
    if let Some(command) = call.command() {
        if Work::of(command).is_some() {
            return 0;
        }
        let simples = commands(command);
        let things = simples
            .iter()
            .map(|simple| Run::of(simple).operands.len().max(1));
        return things.sum::<usize>().max(1);
    }
    let tool = call.tool.to_lowercase();
    let reads = [
        "read", "grep", "glob", "search", "ls", "list", "fetch", "view",
    ];
    usize::from(reads.iter().any(|name| tool.contains(name)))
}

#[cfg(test)]
mod tests_of_questions {
    use super::*;

    #[test]
    fn the_question_names_the_calls_and_the_way_to_answer() {
        let session = SessionCalls {
            head: SessionHead {
                session: "claude-code/s-1".to_owned(),
                project: "shop".to_owned(),
            },
            calls: vec![
                SessionCall::new(Some("Bash"), "make  db", "make: *** No rule", true),
                SessionCall::new(Some("Bash"), "make db-up", "up", false),
            ],
        };
        let found = FoundOut {
            failed: Some(0),
            worked: 1,
            effort: 1,
        };
        for (by, part) in [
            (AnswerBy::Tool, "tool `lesson`"),
            (
                AnswerBy::Command,
                "memctl lesson add --session claude-code/s-1 '{",
            ),
            (AnswerBy::Lines, "LESSON {"),
        ] {
            let text = question(PROMPT, &session, &[found], by);
            assert!(
                text.contains("- make db (make: *** No rule), then: make db-up"),
                "{text}"
            );
            assert!(text.contains(part), "{text}");
            assert!(
                !text.contains("{calls}") && !text.contains("{how}"),
                "{text}"
            );
            assert!(
                crate::skills::prompt::tokens(&text) < 330,
                "{}",
                crate::skills::prompt::tokens(&text)
            );
        }
    }
}

#[cfg(test)]
mod tests_of_lesson_args {
    use super::*;
    use crate::model::LessonScope;

    #[test]
    fn lessons_stand_on_lines_of_a_message() {
        let message = "Done.\n\nLESSON {\"lesson\": \"Use a.\", \"commands\": [\"a\"]}\n- `LESSON {\"lesson\": 3}`\nLESSON learned\n";
        let found = in_message(message);
        assert_eq!(found.len(), 2);
        let first = found[0].as_ref().unwrap();
        assert_eq!(
            (first.lesson.as_str(), first.scope),
            ("Use a.", LessonScope::Project)
        );
        assert!(found[1].as_ref().unwrap_err().contains("invalid type"));
    }
}

#[cfg(test)]
mod tests_of_findings {
    use super::*;

    fn session(calls: &[(&str, &str, bool)]) -> SessionCalls {
        let calls = calls.iter().map(|(command, output, failed)| {
            SessionCall::new(Some("Bash"), command, output, *failed)
        });
        SessionCalls {
            calls: calls.collect(),
            ..SessionCalls::default()
        }
    }

    #[test]
    fn a_recovery_is_found_out_and_a_repair_is_not() {
        let check = |worked: &str, expected: usize| {
            let calls = [
                (
                    "tools/build web",
                    "error: output would not be reproducible",
                    true,
                ),
                (worked, "ok", false),
            ];
            let found = found_out(&session(&calls));
            assert_eq!(found.len(), expected, "{worked}: {found:?}");
        };
        check("tools/build --epoch 0 web", 1);
        // An edit in between repaired the project.
        check("tools/build web", 0);
        check("ls", 0);
    }

    #[test]
    fn several_looks_before_a_telling_command_are_a_detour() {
        let look = [
            ("ls", "Makefile README.md bin src tests", false),
            (
                "cat README.md",
                "Tests run with `PYTHONPATH=src bin/py -m pytest`.",
                false,
            ),
            ("cat Makefile", "db-up:\n\t./gateway", false),
        ];
        let run = (
            "PYTHONPATH=src bin/py -m pytest tests/test_cart.py",
            "3 passed",
            false,
        );
        let found = found_out(&session(&[&look[..], &[run]].concat()));
        assert_eq!(
            found,
            [FoundOut {
                failed: None,
                worked: 3,
                effort: 3
            }]
        );
        // Nobody had to find this: nothing of it was shown.
        let plain = ("cargo test", "ok", false);
        assert_eq!(found_out(&session(&[&look[..], &[plain]].concat())), []);
        // One look is no detour, and neither is a second one.
        assert_eq!(found_out(&session(&[look[1], run])), []);
        // One call can look at all of it.
        let at_once = ("ls; cat README.md Makefile", look[1].1, false);
        assert_eq!(found_out(&session(&[at_once, run])).len(), 1);
        // A look that ends with a code of failure is a look.
        let missed = ("ls kites; cat README Makefile", look[1].1, true);
        let found = found_out(&session(&[missed, run]));
        assert_eq!(found.first().map(|one| one.failed), Some(None), "{found:?}");
        // A path is in each listing.
        let path = ("tools/pack src/shop", "ok", false);
        let listing = ("ls src bin tests", "src/shop", false);
        assert_eq!(found_out(&session(&[listing, path])), []);
        let again = [&look[..], &[run], &look[..], &[run]].concat();
        assert_eq!(found_out(&session(&again)).len(), 1);
    }
}
