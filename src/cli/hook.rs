//! `hook`: what a coding agent's host calls at every event.
//!
//! Whatever goes wrong here, the agent must not notice: the exit code is 0, nothing is said, and
//! after [`DEADLINE`] the process is gone, whether the work is done or not. An interrupted write is
//! mended by the store, like any other.
//!
//! At the end of a session no agent waits any more, and the session is learnt from; that may take a
//! little longer. What was not learnt then, `memctl learn` learns.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use clap::Args;

use crate::config::{Config, Environment, Places};
use crate::engine::{
    Adviser, AuditReads, Engine, LearnOptions, Providers, RewriteBy, Settings, Share,
};
use crate::host::{EventKind, Host, respond};
use crate::model::{Scope, Viewer};
use crate::platform::{Directory, named};
use crate::store::{Act, Scoped};

use super::context::{act, random};
use super::primary::primary;
use super::switch::Off;

/// From start to end, with room for the start of the process in the 500 ms that are promised.
const DEADLINE: Duration = Duration::from_millis(400);
/// So much longer at the end of a session: in all, less than the shortest time that a host gives.
const LEARNING: Duration = Duration::from_millis(2_100);
/// How long another writer is waited for.
const LOCK: Duration = Duration::from_millis(120);
/// A larger event is not read: 16 MiB.
const LARGEST: u64 = 16 << 20;

/// Answer an event of a coding agent, given on standard input; `hooks install` arranges for it
///
/// Always exits with 0, says nothing where it has nothing to say, and never takes longer than half
/// a second; only at the end of a session, when no agent waits any more, two more for learning from it.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  memctl hook claude-code < event.json")]
pub(super) struct HookArgs {
    /// The host: `claude-code`, `codex` or `gemini`
    pub(super) host: String,
}

/// What the host is to print, if anything.
pub(super) fn hook(environment: Environment, host: &str, root: Option<PathBuf>) -> Option<String> {
    let host = Host::of_name(host)?;
    let (send, receive) = mpsc::channel();
    let work = move || {
        let answer = answer(&environment, host, root.as_deref(), &|| {
            drop(send.send(Said::SessionEnds));
        });
        drop(send.send(Said::Answer(answer)));
    };
    std::thread::Builder::new().spawn(work).ok()?;
    match receive.recv_timeout(DEADLINE).ok()? {
        Said::Answer(answer) => answer,
        Said::SessionEnds => {
            // There is nothing to say any more, only something to be waited for.
            drop(receive.recv_timeout(LEARNING));
            None
        }
    }
}

/// What the thread that does the work says of it.
enum Said {
    Answer(Option<String>),
    SessionEnds,
}

fn answer(
    environment: &Environment,
    host: Host,
    root: Option<&Path>,
    session_ends: &dyn Fn(),
) -> Option<String> {
    // Cursor runs the hooks of Claude Code too, and understands other answers.
    if host == Host::ClaudeCode && environment.var("CURSOR_VERSION").is_some() {
        return None;
    }
    let mut bytes = Vec::new();
    let mut input = std::io::stdin().lock().take(LARGEST + 1);
    input.read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > LARGEST {
        return None;
    }
    let event = host.event(&bytes)?;
    let mut environment = environment.clone();
    if let Some(cwd) = event.cwd.clone().filter(|cwd| named::is_dir(cwd)) {
        environment.current_dir = cwd;
    }
    let places = Places::find(&environment, root);
    // An agent at work somewhere is no reason to begin a memory there.
    let memory = Directory::at(&places.memory).hold().ok()?;
    if Off::of(&environment, &places).is_some() {
        return None;
    }
    // The other events show nothing and are nobody's in particular, and come far more often.
    let tells = matches!(
        event.kind,
        EventKind::ToolFailed | EventKind::SessionStart | EventKind::SessionEnd
    );
    // Settings that cannot be read are no reason to be silent; but who works here is not known then.
    let config = tells
        .then(|| Config::load(&environment, &places.memory, &[]).ok())
        .flatten();
    let viewer = config.as_ref().and_then(|config| config.viewer().ok());
    let viewer = viewer.unwrap_or(Viewer::Nobody);
    let act = act(
        &environment,
        &viewer,
        format!("hook {}", host.name()),
        Act::change_name(&random()),
    );
    let store = Scoped::new(memory, Scope::All)
        .at(environment.now)
        .seen_by(viewer)
        .with_lock_limit(LOCK)
        .trusting(environment.approvals(&places.memory))
        .acting(act);
    let adviser = Adviser {
        store: &store,
        now: environment.now,
        random,
        withhold: config
            .and_then(|config| config.parsed("experiment.withhold").ok())
            .unwrap_or_default(),
    };
    let answer = respond(host, &event, &adviser).ok()?;
    let session = host.session(&event);
    if let (EventKind::SessionEnd, Some(transcript)) = (event.kind, event.transcript_path) {
        session_ends();
        // Hints come from the files as they are. What is learnt goes to where the memory lies.
        let store = match primary(&environment, &store).ok()? {
            Some(primary) => store.backed_by(primary),
            None => store,
        };
        learn(&environment, places, store, (session, transcript));
    }
    answer
}

/// Learns from the session that has just ended, without a model and without the settings, and makes a
/// record of it.
fn learn(
    environment: &Environment,
    places: Places,
    store: Scoped,
    (session, transcript): (String, PathBuf),
) {
    let engine = Engine {
        store,
        skills_dir: places.skills,
        settings: Settings {
            rules_tokens: 0,
            max_output_tokens: 0,
            min_similarity: 1.0,
            reflect_prompt: None,
            analyse_prompt: None,
            judge_prompt: None,
            rewrite_prompt: None,
            rewrite: RewriteBy::Off,
            withhold: Share::NONE,
            audit_reads: AuditReads::default(),
            task_days: 0,
        },
        providers: Providers::default(),
        spare_dir: environment.temp_dir.clone(),
        now: environment.now,
        random,
    };
    let options = LearnOptions {
        paths: vec![transcript],
        host_session: Some(session),
        ..LearnOptions::default()
    };
    // A session that cannot be read, or a memory that takes nothing, is nobody's trouble here.
    drop(engine.learn(&options, &mut |_, _| {}));
}
