//! `hook` and `statusline`: what agent hosts call.
//!
//! An agent never notices an error here: the exit code is 0, nothing is printed on standard output, and the
//! process ends [`DEADLINE`] after the event is complete, even with work left. The store repairs an
//! interrupted write. A call whose rules could not be checked in that time is counted, and the answer says
//! so.
//!
//! Here are the input, the time limit, the memory and its settings. [`HookCall`] decides about the answer. At the
//! end of a session no agent waits, so learning from the session gets more time. The status line of Claude Code is read
//! from the notes of the session and the newest rules, and nothing is written for it.

use std::cell::LazyCell;
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use memctl_files::{Directory, named};
use serde_json::{Value, json};

use crate::cli::config::{Config, Environment, Places, prompt};
use crate::cli::connections::Connection;
use crate::cli::context::{Off, audit_context, random};
use crate::cli::ending::{Deadline, OnLate};
use crate::cli::output::{Style, plural};
use crate::host::{Asks, Delivery, Event, EventKind, HookCall, HookSettings, Host, SessionCounts};
use crate::lessons::{HintService, Marks, carries_lessons};
use crate::model::{Kind, Scope, Viewer};
use crate::rules::forbids_advice;
use crate::store::{AuditContext, Here, LateCalls, Project, Scoped};

/// Maximum wait for the event. An agent host that writes slowly still gets an answer: with
/// [`DEADLINE`] it is below the host's timeout of 5 s.
const WAITING: Duration = Duration::from_secs(4);
/// Time from the complete event to the answer. Leaves room for the start of the process within the
/// promised 500 ms.
#[cfg(not(debug_assertions))]
const DEADLINE: Duration = Duration::from_millis(400);
/// A build without optimisation takes several times as long: its tests are about answers, not about speed.
#[cfg(debug_assertions)]
const DEADLINE: Duration = Duration::from_millis(1_200);
/// Time from start to end of learning at the end of a session: below the shortest timeout of any
/// agent host.
const LEARNING: Duration = Duration::from_millis(2_500);
/// Maximum wait for another writer.
const LOCK: Duration = Duration::from_millis(120);
/// Maximum size of an event: 16 MiB. Larger ones are not read.
const LARGEST: u64 = 16 << 20;
/// Maximum size of a data file of others that a hook reads: 4 MiB.
const LARGEST_FOREIGN: u64 = 4 << 20;

/// Handle an agent hook event from stdin (installed by `hooks install`)
///
/// Always exits with 0, prints nothing if it has no hint, and ends within half a second of the
/// event. Only the end of a session takes up to two seconds more, to learn from it.
///
/// ```console
/// $ memctl hook claude-code < event.json
/// $ memctl hook codex --read-only < event.json
/// ```
#[derive(Debug, Args)]
pub(crate) struct HookArgs {
    /// Agent host, as in `hooks install`
    pub(crate) host: String,
    /// Write nothing to the memory: no outcome, no session, nothing learned
    #[arg(long)]
    pub(crate) read_only: bool,
}

/// Returns the text for the agent host to print, or `None`. An error is one of the settings that call this: a host
/// or an event that does not exist.
pub(crate) fn hook(
    environment: &Environment,
    connection: &Connection,
    host: &str,
    read_only: bool,
    root: Option<&Path>,
) -> Result<Option<String>, String> {
    let Some(host) = Host::from_name(host).filter(|host| host.has_hooks()) else {
        let all: Vec<&str> = Host::with_hooks().map(Host::name).collect();
        let all = all.join("`, `");
        let host = host.escape_debug();
        return Err(format!(
            "`{host}` is no agent host with hooks; these are: `{all}`"
        ));
    };
    let Some(deadline) = Deadline::start(WAITING) else {
        return Ok(None);
    };
    let bytes = input(LARGEST).unwrap_or_default();
    deadline.restart(DEADLINE, None);
    // Cursor runs the hooks of Claude Code too, and understands other answers.
    if host == Host::ClaudeCode && environment.var("CURSOR_VERSION").is_some() {
        return Ok(None);
    }
    let Some(event) = host.event(&bytes) else {
        return host.unknown_event(&bytes).map_or(Ok(None), Err);
    };
    let received = Received {
        host,
        event: &event,
        root,
        read_only,
    };
    let answer = answer(environment, connection, &received, &deadline);
    let silent = answer.as_ref().err().copied().unwrap_or(NOTHING);
    let answer = answer.ok().flatten();
    let delivery = Delivery::of(&event, answer.as_deref(), silent, environment.now);
    delivery.note(environment.state_dir.as_deref(), host);
    deadline.end();
    Ok(answer)
}

/// Event of an agent host, as the command received it.
struct Received<'a> {
    host: Host,
    event: &'a Event,
    root: Option<&'a Path>,
    read_only: bool,
}

/// Reason for silence where a memory has nothing about an event.
const NOTHING: &str = "nothing to say";

/// Opens the memory of an event and returns the answer, or the reason why no memory is asked.
fn answer(
    environment: &Environment,
    connection: &Connection,
    received: &Received<'_>,
    deadline: &Deadline,
) -> Result<Option<String>, &'static str> {
    let event = received.event;
    let mut environment = environment.clone();
    environment.distrust();
    if let Some(cwd) = event.cwd.clone().filter(|cwd| named::is_dir(cwd)) {
        environment.current_dir = cwd;
    }
    let (places, memory, is_of_user) =
        memory_of(&environment, received.root).ok_or("no memory in this folder: memctl init")?;
    if Off::of(&environment, &places, None).is_some() {
        return Err("memory is off here: memctl memory enable");
    }
    // Agents are answered even if nothing can be written.
    let is_read_only = received.read_only
        || Scoped::new(memory.clone(), Scope::All)
            .unwritable()
            .is_some();
    let memory = if is_read_only {
        memory.read_only()
    } else {
        memory
    };
    set_limit(&environment, received, &memory, deadline);
    let config = LazyCell::new(|| Config::load(&environment, &places.memory, &[]).ok());
    // A call that has worked prints no rules, needs no user and is far more frequent.
    let is_quiet = event.kind == EventKind::ToolSucceeded;
    let known = if is_quiet { None } else { config.as_ref() };
    let wants_user_store = known.and_then(|config| config.parsed("memory.user_store").ok());
    if is_of_user && wants_user_store == Some(false) {
        return Ok(None);
    }
    // Unreadable settings do not suppress hints, but leave the user unknown.
    let viewer = known.and_then(|config| config.viewer().ok());
    let viewer = viewer.unwrap_or(Viewer::Nobody);
    let why = format!("hook {}", received.host.name());
    let change = AuditContext::change_name(&random());
    let audit_context = audit_context(&environment, &viewer, &why, change);
    let store = Scoped::new(memory, Scope::All)
        .at(environment.now)
        .seen_by(viewer)
        .with_lock_limit(LOCK)
        .trusting(environment.approvals(&places.memory))
        .of_user_if(is_of_user)
        .acting(audit_context);
    let store = match known {
        Some(config) => config.with_user_store(store, &environment),
        None if is_quiet => store,
        None => Config::defaults().with_user_store(store, &environment),
    };
    let project = Project::of(&environment.current_dir, environment.home.as_deref());
    let project = project.map(|project| project.identified(&places.memory));
    let identity = store.identity();
    let call = HookCall {
        host: received.host,
        event,
        hints: HintService {
            store: &store,
            now: environment.now,
            random,
            forbids: forbids_advice,
            here: Here {
                directory: event.cwd.as_deref(),
                root: places.memory.parent(),
                skills: Some(&places.skills),
                project: project.as_ref(),
                named: None,
                former: identity.as_ref().map_or(&[], |own| &own.folders),
                is_of_user,
            },
        },
        is_read_only,
        settings: &|| Some(settings(&environment, &places, config.as_ref()?)),
        primary: &|| connection.back(&environment, store.clone()).ok(),
    };
    Ok(call.answer())
}

/// Sets the time limit of an event.
fn set_limit(
    environment: &Environment,
    received: &Received<'_>,
    memory: &Directory,
    deadline: &Deadline,
) {
    let event = received.event;
    match event.kind {
        EventKind::BeforeTool if has_rules(environment, memory) => {
            deadline.restart(DEADLINE, Some(late(received.host, event, memory)));
        }
        EventKind::Stop if !carries_lessons(&event.output) => {}
        // The outcome of hints, the lessons of a session and those of an answer are written now or never.
        EventKind::SessionEnd | EventKind::Stop => {
            deadline.restart(LEARNING.saturating_sub(deadline.elapsed()), None);
        }
        _ => {}
    }
}

/// Name of the file with the words of the question.
const WORDS: &str = "ask_lesson.md";

/// Returns the settings of hooks.
fn settings(environment: &Environment, places: &Places, config: &Config) -> HookSettings {
    HookSettings {
        hears_chat: config.parsed("learning.chat").unwrap_or(false),
        asks: config.parsed("learning.ask").unwrap_or(Asks::Never),
        is_attended: is_attended(environment),
        words: prompt(environment, &places.memory, WORDS).0,
        person: environment.person(),
        home: environment.home.clone(),
    }
}

/// Returns `true` unless Claude Code says that a program started the session and reads its result: `claude -p`, an SDK.
fn is_attended(environment: &Environment) -> bool {
    let of_claude = |name: &str| environment.var(&format!("CLAUDE_CODE_{name}"));
    of_claude("SESSION_ATTENDED").as_deref() != Some("0")
        && !of_claude("ENTRYPOINT").is_some_and(|entry| entry.starts_with("sdk"))
}

/// Returns `true` for a memory that this user neither began nor trusts, if somebody else has switched
/// it off or filled it beyond the time of a hook. Neither keeps the user's own rules back.
fn is_left_out(environment: &Environment, places: &Places, memory: &Directory) -> bool {
    let is_off = matches!(Off::of(environment, places, None), Some(Off::Marker(_)));
    let is_huge = |kind: &Kind| {
        let file = memory.open(kind.file()).ok().flatten();
        let size = file.and_then(|file| Some(file.metadata().ok()?.len()));
        size.is_some_and(|size| size > LARGEST_FOREIGN)
    };
    (is_off || Kind::ALL.iter().any(is_huge)) && !environment.approvals(&places.memory).is_trusted()
}

/// Reads standard input; `None` if it is larger than this.
fn input(largest: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut input = std::io::stdin().lock().take(largest + 1);
    input.read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= largest).then_some(bytes)
}

/// Returns the memory of a session, and `true` if it is that of the user: an agent's work in a directory
/// does not create a memory there, and the rules of the user apply anyway.
pub(crate) fn memory_of(
    environment: &Environment,
    root: Option<&Path>,
) -> Option<(Places, Directory, bool)> {
    let places = Places::of_session(environment, root);
    let memory = Directory::at(&places.memory).hold().ok();
    if let Some(memory) = memory.filter(|memory| !is_left_out(environment, &places, memory)) {
        return Some((places, memory, false));
    }
    let places = Places::of_user(environment)?;
    let memory = Directory::at(&places.memory).hold().ok()?;
    Some((places, memory, true))
}

/// Returns `true` if the memory or the user has rules, which may be about a call.
fn has_rules(environment: &Environment, memory: &Directory) -> bool {
    let file = Kind::Reflexion.file();
    memory.is_file(file)
        || Places::of_user(environment).is_some_and(|user| Directory::at(user.memory).is_file(file))
}

/// Returns the last words about a call whose rules were not checked in time.
fn late(host: Host, event: &Event, memory: &Directory) -> OnLate {
    let answer = host.late_answer(event);
    let calls = LateCalls::of(memory);
    Box::new(move || {
        let mut output = std::io::stdout().lock();
        drop(
            output
                .write_all(answer.as_bytes())
                .and_then(|()| output.flush()),
        );
        calls.add();
    })
}

/// Time after which the process ends without a line.
const LINE_WITHIN: Duration = Duration::from_millis(400);
/// Maximum size of the input: 1 MiB. That of Claude Code 2.1.329 has 2 kB.
const LARGEST_SESSION: u64 = 1 << 20;

/// Returns the line with its line feed; `None` to print nothing.
pub(crate) fn statusline(environment: &Environment, root: Option<&Path>) -> Option<String> {
    let deadline = Deadline::start(LINE_WITHIN)?;
    let line = line(environment, root);
    deadline.end();
    line
}

fn line(environment: &Environment, root: Option<&Path>) -> Option<String> {
    let input = if std::io::stdin().is_terminal() {
        json!({})
    } else {
        session_input()?
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

fn session_input() -> Option<Value> {
    let input: Value = serde_json::from_slice(&input(LARGEST_SESSION)?).ok()?;
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
