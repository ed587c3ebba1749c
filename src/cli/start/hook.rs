//! `hook`: handler of agent hook events.
//!
//! An agent never notices an error here: the exit code is 0, nothing is printed on standard output, and the
//! process ends [`DEADLINE`] after the event is complete, even with work left. The store repairs an
//! interrupted write. A call whose rules could not be checked in that time is counted, and the answer says
//! so.
//!
//! Here are the input, the time limit, the memory and its settings. [`HookCall`] decides about the answer. At the
//! end of a session no agent waits, so learning from the session gets more time.

use std::cell::LazyCell;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use clap::Args;
use memctl_files::{Directory, named};

use crate::cli::config::{Config, Environment, Places, prompt};
use crate::cli::connections::Connection;
use crate::cli::context::{Off, audit_context, random};
use crate::cli::ending::{Deadline, OnLate};
use crate::host::{Asks, Delivery, Event, EventKind, HookCall, HookSettings, Host};
use crate::lessons::{HintService, carries_lessons};
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
            Ok(answered(environment, connection, &received, deadline))
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

/// Returns the answer, and notes the event with it.
fn answered(
    environment: &Environment,
    connection: &Connection,
    received: &Received<'_>,
    deadline: Deadline,
) -> Option<String> {
    let answer = answer(environment, connection, received, &deadline);
    let silent = answer.as_ref().err().copied().unwrap_or(NOTHING);
    let answer = answer.ok().flatten();
    let delivery = Delivery::of(received.event, answer.as_deref(), silent, environment.now);
    delivery.note(environment.state_dir.as_deref(), received.host);
    deadline.end();
    answer
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
