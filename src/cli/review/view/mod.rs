//! Full-screen view of the queue.
//!
//! - `state` changes by keys and is pure; `draw` shows it; this file carries decisions out by the
//!   verbs of the commands, each as a change of its own in the undo journal.
//! - `record`: an entry as lines of styled text.
//!
//! Entries that single records tell are shown at once. Another thread compares the rules meanwhile.
//!
//! The terminal is restored at the end, on errors, on a panic, and while an editor runs.

pub(crate) mod draw;
pub(crate) mod record;
pub(crate) mod state;

use std::path::Path;
use std::sync::mpsc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use console::Term;
use crossterm::event;

use crate::cli::context::Context;
use crate::cli::ending::restore_at_termination;
use crate::cli::memory::edit::in_editor;
use crate::cli::output::Style;
use crate::cli::review::undo::revert;
use crate::cli::review::view::draw::Theme;
use crate::cli::review::view::record::{Piece, shown};
use crate::cli::review::view::state::{Action, Decision, State};
use crate::cli::review::whole;
use crate::cli::screen;
use crate::cli::screen::{FullScreen, Pressed};
use crate::lessons::HintService;
use crate::model::error::{Kind, UserError};
use crate::model::{Reflexion, SkillPath};
use crate::review::queue::{Queue, Rest, Waiting};
use crate::rules::forbids_advice;
use crate::skills::prompt::tokens;
use crate::store::Here;
use crate::store::workspace::{Error, Workspace};
use crate::upkeep::merge;
use crate::{review, rules, skills, upkeep};

/// Time between two looks for entries that are still searched.
const LOOK: Duration = Duration::from_millis(50);

/// Channel of the entries that take longer to find; `None` if they are there.
type Searching = Option<Receiver<Result<Rest, Error>>>;

/// Shows the queue until the user ends it. `queue` is without [`Rest`].
pub(crate) fn show(
    context: &Context,
    workspace: Workspace,
    skill: Option<&SkillPath>,
    queue: Queue,
) -> Result<u8, UserError> {
    let mut state = State::new(queue.waiting);
    if let Some(warning) = queue.warnings.first() {
        state.status = (Style::Warn, warning.clone());
    }
    let mut searching = Some(search(workspace, skill.cloned(), queue.rules)?);
    let theme = Theme {
        has_colour: context.printer.page_has_colour(),
        now: context.environment.now,
    };
    restore_at_termination(|| screen::leave(&mut Term::stdout()))?;
    let mut terminal = Term::stdout();
    let mut full = FullScreen::enter(&terminal)?;
    loop {
        state.is_searching = searching.is_some();
        state.screen_selected();
        let (rows, columns) = terminal.size();
        let lines = draw::frame(&state, theme, columns.into(), rows.into());
        screen::draw(&mut terminal, &lines)?;
        if searching.is_some() && !event::poll(LOOK)? {
            look(&mut searching, &mut state);
            continue;
        }
        let key = match Pressed::of(&event::read()?) {
            Some(Pressed::Key(key)) => key,
            Some(Pressed::Interrupt) => return Ok(Kind::Interrupted.code()),
            None => continue,
        };
        let must_read = match state.update(key) {
            Action::Nothing => Ok(false),
            Action::Quit => return Ok(0),
            Action::Reload => Ok(true),
            Action::Show => show_seen(context, &mut state),
            Action::Undo(change) => undo(context, &change, &mut state),
            Action::Decide(Decision::Edit) => {
                drop(full);
                let done = decide(context, Decision::Edit, &mut state);
                full = FullScreen::enter(&terminal)?;
                done
            }
            Action::Decide(decision) => decide(context, decision, &mut state),
        };
        let done = must_read.and_then(|must_read| {
            if must_read {
                // A queue that is read again is whole.
                searching = None;
                state.replace(whole(context, &context.workspace(None)?, skill)?.waiting);
            }
            Ok(())
        });
        if let Err(error) = done {
            state.status = (Style::Bad, error.message);
        }
    }
}

/// Starts to look for the entries that take longer to find. The thread ends with the process.
fn search(
    workspace: Workspace,
    skill: Option<SkillPath>,
    rules: Vec<Reflexion>,
) -> std::io::Result<Receiver<Result<Rest, Error>>> {
    let (send, receive) = mpsc::channel();
    let search = move || {
        let rest = Rest::read(&workspace, skill.as_ref(), &rules, &mut |_, _| {});
        drop(send.send(rest));
    };
    std::thread::Builder::new().spawn(search)?;
    Ok(receive)
}

/// Adds the entries of the search, if it has ended.
fn look(searching: &mut Searching, state: &mut State) {
    match searching.as_ref().map(Receiver::try_recv) {
        None | Some(Err(TryRecvError::Empty)) => return,
        Some(Ok(Ok(rest))) => state.add(rest),
        Some(Ok(Err(error))) => state.status = (Style::Bad, error.to_string()),
        Some(Err(TryRecvError::Disconnected)) => {
            state.status = (Style::Bad, "rules could not be compared".to_owned());
        }
    }
    *searching = None;
}

/// Shows the text that agents get now.
fn show_seen(context: &Context, state: &mut State) -> Result<bool, UserError> {
    let workspace = context.workspace(None)?;
    let skill = state.selected().and_then(|one| one.skill.clone());
    state.mode = state::Mode::Seen(seen(&workspace, skill.as_deref())?);
    state.scroll = 0;
    Ok(false)
}

/// Decides about the selected entry. Returns `true` if the queue must be read again. After an error,
/// nothing has changed.
fn decide(context: &Context, decision: Decision, state: &mut State) -> Result<bool, UserError> {
    let Some(waiting) = state.selected().cloned() else {
        return Ok(false);
    };
    let context = context.for_next_change();
    let workspace = context.workspace(None)?;
    let change = workspace.store.audit_context().change.clone();
    let id = &waiting.id;
    // Of a pair, the newer rule.
    let newer = waiting.other.as_ref().unwrap_or(id).clone();
    let mut gone = None;
    let (did, warnings) = match decision {
        Decision::Approve(action) => {
            let action = (!waiting.patterns.is_empty()).then_some(action);
            let done = review::approve(&workspace, std::slice::from_ref(id), action)?;
            let warnings = done.into_iter().flat_map(|one| one.warnings).collect();
            (format!("approved {id}"), warnings)
        }
        Decision::Edit => {
            let draft = review::draft(&workspace, &newer)?;
            let done = in_editor(&context, &workspace, &draft)?;
            if done.changed.is_empty() {
                state.status = (Style::Dim, format!("{newer} is unchanged"));
                return Ok(false);
            }
            state.decided(change, |_| false);
            report(state, &format!("edited {newer}"), &done.warnings);
            return Ok(true);
        }
        Decision::Reject { reason } => {
            let done = review::reject(&workspace, id, &reason)?;
            (format!("rejected {}", done.id), done.warnings)
        }
        Decision::Forget => {
            let done = upkeep::forget(&workspace, &newer, false)?;
            let did = format!("forgot {newer}");
            gone = Some(newer);
            (did, done.warnings)
        }
        Decision::Merge { keep, other } => {
            let done = rules::merge(&workspace, &keep, &other)?;
            let did = format!("merged {other} into {keep}");
            gone = Some(other);
            (did, done.warnings)
        }
        Decision::KeepBoth => {
            rules::keep_both(&workspace, id, &newer)?;
            (format!("kept {id} and {newer}"), Vec::new())
        }
        Decision::Pin => {
            let done = rules::pin(&workspace, id, true)?;
            (format!("pinned {id}"), done.warnings)
        }
        Decision::Resolve(side) => {
            let done = merge::resolve(&workspace, id, side, None)?;
            (format!("resolved {id}"), done.warnings)
        }
    };
    state.decided(change, |one| {
        is_same(one, &waiting) || gone.as_ref().is_some_and(|id| one.names(id))
    });
    report(state, &did, &warnings);
    Ok(false)
}

/// Reverts a decision of this view. Returns `true` if the queue must be read again.
fn undo(context: &Context, change: &str, state: &mut State) -> Result<bool, UserError> {
    let done = revert(&context.for_next_change(), Some(change), false)?;
    let must_read = !state.undone();
    report(state, "undone", &done.warnings);
    Ok(must_read)
}

fn is_same(a: &Waiting, b: &Waiting) -> bool {
    a.kind == b.kind && a.id == b.id && a.other == b.other
}

fn report(state: &mut State, did: &str, warnings: &[String]) {
    state.status = match warnings.first() {
        None => (Style::Good, did.to_owned()),
        Some(warning) => (Style::Warn, format!("{did}; {warning}")),
    };
}

/// Returns the texts line by line, for the skill of the selected entry if it has one.
pub(crate) fn seen(workspace: &Workspace, skill: Option<&str>) -> Result<Vec<Piece>, Error> {
    let workspace = Workspace {
        store: workspace.store.read_only(),
        ..workspace.clone()
    };
    let start = at_start(&workspace)?;
    let mut lines = section("At the start of a session in this project", &start);
    let Some(skill) = skill.and_then(|skill| skill.parse::<SkillPath>().ok()) else {
        return Ok(lines);
    };
    let assembly = skills::prompt(&workspace, &skill, None)?.assembly;
    lines.push((Style::Plain, String::new()));
    let what = format!("Learned part of the prompt of {skill}");
    lines.extend(section(&what, &assembly.learned));
    lines.push((Style::Plain, String::new()));
    for layer in &assembly.layers {
        let size = format!(
            "layer {}  {:>6} tokens  {}",
            layer.layer, layer.tokens, layer.source
        );
        lines.push((Style::Dim, shown(&size)));
    }
    for omitted in &assembly.omitted {
        let reason = format!("{} is left out: {}", omitted.id, omitted.reason);
        lines.push((Style::Dim, shown(&reason)));
    }
    Ok(lines)
}

fn at_start(workspace: &Workspace) -> Result<String, Error> {
    let hints = HintService {
        store: &workspace.store,
        now: workspace.now,
        random: workspace.random,
        forbids: forbids_advice,
        here: Here::default(),
    };
    let root = workspace.store.directory().parent();
    let here = Here {
        directory: root,
        root,
        skills: Some(Path::new(&workspace.skills_dir)),
        ..Here::default()
    };
    hints.session_text("", &here)
}

fn section(heading: &str, text: &str) -> Vec<Piece> {
    let heading = format!("{heading} ({} tokens)", tokens(text));
    let mut lines = vec![(Style::Strong, heading)];
    if text.trim().is_empty() {
        lines.push((Style::Dim, "nothing".to_owned()));
    }
    lines.extend(
        shown(text)
            .lines()
            .map(|line| (Style::Plain, line.to_owned())),
    );
    lines
}

#[cfg(test)]
mod tests;
