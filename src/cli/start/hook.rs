//! `hook`: handler of agent hook events.
//!
//! An agent never notices an error here: the exit code is 0, nothing is printed on standard output, and the
//! process ends [`DEADLINE`] after the event is complete, even with work left. The store repairs an
//! interrupted write. A call whose rules could not be checked in that time is counted, and the answer says
//! so.
//!
//! Each call of a session is appended to its log. At a stop the agent is asked once to word the findings of its
//! session, and the lessons in its last message are stored.
//!
//! At the end of a session no agent waits, so learning from the session gets more time.
//! `memctl learn` catches up on the rest.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use clap::Args;
use memctl_files::{Directory, named};
use serde_json::Value;

use crate::cli::config::{Config, Environment, Places, prompt};
use crate::cli::connections::primary;
use crate::cli::context::Off;
use crate::cli::context::{audit_context, random};
use crate::cli::ending::{Deadline, OnLate};
use crate::host::{Delivery, Event, EventKind, Host, respond};
use crate::lessons::{
    self, AnswerBy, Asking, HintService, LearnOptions, Marks, PROMPT, SessionCall, SessionHead,
    append_call, carries_lessons,
};
use crate::model::{Kind, Scope, Viewer};
use crate::rules::hearing::Message;
use crate::rules::{forbids_advice, session_receipts};
use crate::store::workspace::Records;
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
    let bytes = input().unwrap_or_default();
    deadline.restart(DEADLINE, None);
    // Cursor runs the hooks of Claude Code too, and understands other answers.
    if host == Host::ClaudeCode && environment.var("CURSOR_VERSION").is_some() {
        return Ok(None);
    }
    match host.event(&bytes) {
        Some(event) => {
            let received = Received {
                host,
                event: &event,
                root,
                read_only,
            };
            Ok(answered(environment, &received, deadline))
        }
        None => host.unknown_event(&bytes).map_or(Ok(None), Err),
    }
}

/// Event of an agent host, as the command received it.
struct Received<'a> {
    host: Host,
    event: &'a Event,
    root: Option<&'a Path>,
    read_only: bool,
}

fn answered(
    environment: &Environment,
    received: &Received<'_>,
    deadline: Deadline,
) -> Option<String> {
    let mut silent = "nothing to say";
    let answer = answer(environment, received, &deadline, &mut silent);
    let delivery = Delivery::of(received.event, answer.as_deref(), silent, environment.now);
    delivery.note(environment.state_dir.as_deref(), received.host);
    deadline.end();
    answer
}

#[expect(
    clippy::too_many_lines,
    reason = "one event from top to bottom: an agent waits for each line"
)]
fn answer(
    environment: &Environment,
    received: &Received<'_>,
    deadline: &Deadline,
    silent: &mut &'static str,
) -> Option<String> {
    let &Received {
        host,
        event,
        root,
        read_only,
    } = received;
    if event.kind == EventKind::Prompt && read_only {
        return None;
    }
    let mut environment = environment.clone();
    if let Some(cwd) = event.cwd.clone().filter(|cwd| named::is_dir(cwd)) {
        environment.current_dir = cwd;
    }
    let Some((places, memory, is_of_user)) = memory_of(&environment, root) else {
        *silent = "no memory in this folder: memctl init";
        return None;
    };
    if Off::of(&environment, &places, None).is_some() {
        *silent = "memory is off here: memctl memory enable";
        return None;
    }
    // Agents are answered even if nothing can be written.
    let read_only = read_only
        || Scoped::new(memory.clone(), Scope::All)
            .unwritable()
            .is_some();
    let memory = if read_only {
        memory.read_only()
    } else {
        memory
    };
    if event.kind == EventKind::BeforeTool && has_rules(&environment, &memory) {
        deadline.restart(DEADLINE, Some(late(host, event, &memory)));
    }
    // It prints nothing, needs no user and is far more frequent.
    let tells = event.kind != EventKind::ToolSucceeded;
    // Unreadable settings do not suppress hints, but leave the user unknown.
    let load = || Config::load(&environment, &places.memory, &[]).ok();
    let config = tells.then(load).flatten();
    let viewer = config.as_ref().and_then(|config| config.viewer().ok());
    let viewer = viewer.unwrap_or(Viewer::Nobody);
    let (why, change) = (
        format!("hook {}", host.name()),
        AuditContext::change_name(&random()),
    );
    let audit_context = audit_context(&environment, &viewer, why, change);
    let store = Scoped::new(memory, Scope::All)
        .at(environment.now)
        .seen_by(viewer)
        .with_lock_limit(LOCK)
        .trusting(environment.approvals(&places.memory))
        .of_user_if(is_of_user)
        .acting(audit_context);
    let wants_user_store = || -> Option<bool> { config.as_ref()?.parsed("memory.user_store").ok() };
    if is_of_user && (event.kind == EventKind::Prompt || wants_user_store() == Some(false)) {
        return None;
    }
    let project = Project::of(&environment.current_dir, environment.home.as_deref());
    let project = project.map(|project| project.identified(&places.memory));
    let here = Here {
        directory: event.cwd.as_deref(),
        root: places.memory.parent(),
        skills: Some(&places.skills),
        project: project.as_ref(),
        named: None,
        is_of_user,
    };
    let store = match &config {
        Some(config) => config.with_user_store(store, &environment),
        None if tells => Config::defaults().with_user_store(store, &environment),
        None => store,
    };
    let hint_service = HintService {
        store: &store,
        now: environment.now,
        random,
        forbids: forbids_advice,
        here,
    };
    // Without readable settings, nobody has agreed to it.
    if event.kind == EventKind::Prompt {
        let project = here.project_name().unwrap_or_default();
        let message = Message::read(&event.output, &event.session_id, &project)?;
        let hears = config.as_ref()?.parsed("learning.chat").unwrap_or(false);
        return hears.then(|| host.hear(event, &store, message))?;
    }
    let lessons = LessonEvent {
        environment: &environment,
        places: &places,
        host,
        store: &store,
        event,
        here: &here,
    };
    if event.kind == EventKind::Stop {
        let config = config.as_ref().filter(|_| !read_only && !is_of_user)?;
        if !carries_lessons(&event.output) {
            return lessons.at_stop(config);
        }
        deadline.restart(LEARNING.saturating_sub(deadline.elapsed()), None);
        let store = &with_primary(&environment, &store)?;
        return LessonEvent { store, ..lessons }.at_stop(config);
    }
    let session = host.session(event);
    let is_end = event.kind == EventKind::SessionEnd;
    if is_end {
        // The outcome of its hints is written now or never.
        deadline.restart(LEARNING.saturating_sub(deadline.elapsed()), None);
    }
    let receipts = is_end.then(|| session_receipts(&store, &session));
    let answer = respond(host, event, &hint_service, &here).ok()?;
    if read_only || is_of_user {
        return answer;
    }
    if matches!(event.kind, EventKind::ToolFailed | EventKind::ToolSucceeded) {
        lessons.keep();
    }
    if event.kind == EventKind::ToolSucceeded && answer.is_none() && lessons.may_ask() {
        return lessons.at_recovery(&load()?);
    }
    if let (EventKind::SessionEnd, Some(transcript)) = (event.kind, event.transcript_path.clone()) {
        // Hints come from the files as they are.
        let store = with_primary(&environment, &store)?;
        let (rules_at_calls, rules_heeded) = receipts.unwrap_or_default();
        let options = LearnOptions {
            paths: vec![transcript],
            host_session: Some(session),
            rules_at_calls,
            rules_heeded,
            project_name: here.project_name(),
            ..LearnOptions::default()
        };
        let (store, now) = (&store, environment.now);
        let records = Records { store, now, random };
        // A session that cannot be read or stored is not reported here.
        drop(lessons::learn(&records, &options, &mut |_, _| {}));
    }
    answer
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

/// Returns a store whose new records go to the primary.
fn with_primary(environment: &Environment, store: &Scoped) -> Option<Scoped> {
    let (store, primary) = (store.clone(), primary(environment, store).ok()?);
    Some(primary.map_or(store.clone(), |primary| store.backed_by(primary)))
}

/// Reads the event from standard input.
fn input() -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut input = std::io::stdin().lock().take(LARGEST + 1);
    input.read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= LARGEST).then_some(bytes)
}

/// Returns the memory of a session, and `true` if it is that of the user: an agent's work in a directory
/// does not create a memory there, and the rules of the user apply anyway.
pub(crate) fn memory_of(
    environment: &Environment,
    root: Option<&Path>,
) -> Option<(Places, Directory, bool)> {
    let places = Places::find(environment, root);
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

/// Name of the file with the words of the question.
const WORDS: &str = "ask_lesson.md";
/// Maximum size of a settings file.
const LARGEST_SETTINGS: u64 = 1 << 20;

/// An event and the memory that it concerns.
pub(crate) struct LessonEvent<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) places: &'a Places,
    pub(crate) host: Host,
    pub(crate) store: &'a Scoped,
    pub(crate) event: &'a Event,
    pub(crate) here: &'a Here<'a>,
}

impl LessonEvent<'_> {
    /// Appends a call to the log of its session.
    pub(crate) fn keep(&self) {
        let event = self.event;
        let project = self.here.project_name();
        let head = SessionHead {
            session: self.host.session(event),
            project: project.unwrap_or_default(),
        };
        let failed = event.kind == EventKind::ToolFailed;
        let call = SessionCall::new(event.tool.as_deref(), &event.input, &event.output, failed);
        // A call that is not kept cannot bear out a lesson; nothing else depends on it.
        drop(append_call(self.store, &head, &call));
    }

    /// Returns `true` if a failure of this session waits for its recovery, and the agent was not asked.
    pub(crate) fn may_ask(&self) -> bool {
        let marks = Marks::of(self.store, &self.host.session(self.event));
        marks.has_failed && !marks.was_asked
    }

    /// Returns the answer to an agent that is about to stop; `None` lets it stop.
    pub(crate) fn at_stop(&self, config: &Config) -> Option<String> {
        if !self.host.asks_at_stop() || config.text("learning.ask") != Some("stop") {
            return None;
        }
        let session = self.host.session(self.event);
        let by = self.answer_by();
        let text = self.asking(|asking| asking.at_stop(&session, &self.event.output, by));
        Some(self.host.answer_stop(&text?))
    }

    /// Returns the answer to a call that has worked, if the agent is asked there.
    pub(crate) fn at_recovery(&self, config: &Config) -> Option<String> {
        // At a stop, or at a recovery on agent hosts without such an event.
        let is_asked = match config.text("learning.ask") {
            Some("recovery") => true,
            Some("stop") => !self.host.asks_at_stop(),
            _ => false,
        };
        if !is_asked {
            return None;
        }
        let session = self.host.session(self.event);
        let text = self.asking(|asking| asking.at_recovery(&session))?;
        Some(self.host.answer(self.event, &text))
    }

    fn asking<E>(
        &self,
        ask: impl FnOnce(&Asking<'_>) -> Result<Option<String>, E>,
    ) -> Option<String> {
        let (words, _) = prompt(self.environment, &self.places.memory, WORDS);
        let asking = Asking {
            records: Records {
                store: self.store,
                now: self.environment.now,
                random,
            },
            words: words.as_deref().unwrap_or(PROMPT),
            person: &self.environment.person(),
            root: self.event.cwd.as_deref(),
        };
        ask(&asking).ok().flatten()
    }

    /// Returns the way to answer that opens no dialog.
    fn answer_by(&self) -> AnswerBy {
        if self.host != Host::ClaudeCode {
            return AnswerBy::Lines;
        }
        if self.event.runs_unasked {
            return AnswerBy::Command;
        }
        let (home, project) = (self.environment.home.as_deref(), self.event.cwd.as_deref());
        let files = [
            (home, "settings.json"),
            (project, "settings.json"),
            (project, "settings.local.json"),
        ];
        let found = files
            .iter()
            .filter_map(|(dir, file)| allowed(&(*dir)?.join(".claude").join(file)));
        let by = found.min_by_key(|by| *by != AnswerBy::Tool);
        by.unwrap_or(AnswerBy::Lines)
    }
}

/// Returns the way to answer that a settings file of Claude Code allows.
fn allowed(settings: &Path) -> Option<AnswerBy> {
    let text = named::read_text(settings, LARGEST_SETTINGS).ok()?;
    let settings: Value = serde_json::from_str(&text).ok()?;
    let allow = settings["permissions"]["allow"].as_array()?;
    let has = |names: &[&str]| allow.iter().any(|one| names.iter().any(|name| one == name));
    if has(&["mcp__memctl__lesson", "mcp__memctl", "mcp__memctl__*"]) {
        Some(AnswerBy::Tool)
    } else if has(&[
        "Bash(memctl lesson add:*)",
        "Bash(memctl lesson:*)",
        "Bash(memctl:*)",
    ]) {
        Some(AnswerBy::Command)
    } else {
        None
    }
}
