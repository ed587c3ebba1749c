//! Repetitions in past sessions, as a page, and the keys that end them.
//!
//! `setup` and `stats` show the page. On a terminal, `setup` goes through it. One key keeps the waiting
//! record or the person's own words, another takes new words. A third lets the person's own agent word the
//! lessons of that session, after it shows the price.

use crate::cli::ask::{answer, choice, confirms, price};
use crate::cli::context::Context;
use crate::cli::ending::wait;
use crate::cli::learn::sessions::show_past;
use crate::cli::output::{Page, Style, end, plural};
use crate::cli::review::past_sessions;
use crate::cli::skills::correct::at_calls_too;
use crate::lessons::call::beginning_of;
use crate::lessons::past::past_sessions as past;
use crate::lessons::{Asking, LearnOptions, LessonArgs, PROMPT};
use crate::model::error::{self, UserError};
use crate::model::{Kind, Trust};
use crate::review::{Approved, Repeat, RepeatKind, Repeats, Waits, approve, repeats};
use crate::rules::hearing::{HeardArgs, record_said};
use crate::store::workspace::Workspace;

/// Maximum number of rows of a text.
const ROWS: usize = 3;
/// Returns what the past sessions of this project repeat.
pub(crate) fn of_project(context: &Context, workspace: &Workspace) -> Result<Repeats, UserError> {
    let project = context.git_project();
    let here = context.here(project.as_ref());
    Ok(repeats(&workspace.store, &here, &past_sessions(context))?)
}

/// Shows the page.
pub(crate) fn show(found: &Repeats, page: &mut Page) {
    if found.sessions == 0 {
        return;
    }
    head(found, page);
    for (number, repeat) in (1..).zip(&found.repeats) {
        show_one(number, repeat, page);
    }
    if found.repeats.iter().any(|one| one.waits.is_none()) {
        page.dim("`memctl setup` goes through them: one key keeps a rule or a lesson.");
    }
}

fn head(found: &Repeats, page: &mut Page) {
    let cut = if found.is_cut { " (the newest)" } else { "" };
    let ends = match found.repeats.len() {
        0 => "Nothing repeats.",
        _ => "What they repeat:",
    };
    let head = format!("Past sessions of this project{cut}: ");
    let counts = format!(
        "{} in {}, {}, {} failed",
        plural(found.sessions as u64, "session"),
        plural(found.days.unsigned_abs(), "day"),
        plural(found.calls as u64, "call"),
        found.failures
    );
    page.styled(&[(Style::Strong, &head), (Style::Plain, &counts)]);
    page.line(ends);
}

fn show_one(number: usize, repeat: &Repeat, page: &mut Page) {
    let verb = match repeat.kind {
        RepeatKind::Correction => "you said it",
        RepeatKind::Failure => "failed",
    };
    let mut line = format!(
        "{verb} {} in {}",
        plural(repeat.times as u64, "time"),
        plural(repeat.sessions as u64, "session")
    );
    if repeat.calls > 0 {
        let (calls, tokens) = (plural(repeat.calls as u64, "call"), rounded(repeat.tokens));
        line = format!("{line}: {calls}, about {tokens} tokens");
    }
    page.styled(&[
        (Style::Strong, &format!("{number}  ")),
        (Style::Warn, &line),
    ]);
    let what = match repeat.kind {
        RepeatKind::Correction => format!("\u{201c}{}\u{201d}", repeat.what),
        RepeatKind::Failure => repeat.what.clone(),
    };
    let mut text = |label: &str, text: &str, style: Style| {
        if !text.is_empty() {
            let text = end(text, page.width.saturating_sub(label.len()) * ROWS);
            page.sentence(style, label, &text);
        }
    };
    text("   ", &what, Style::Plain);
    // Many errors say of themselves that they are one.
    let error = repeat.error.strip_prefix("error: ");
    text("   error: ", error.unwrap_or(&repeat.error), Style::Bad);
    text("   then: ", &repeat.worked, Style::Good);
    if let Some(waits) = &repeat.waits {
        page.dim(format!("   to have it told: memctl approve {}", waits.id));
        if waits.text != repeat.worked {
            page.sentence(Style::Dim, "   ", &end(&waits.text, page.width * ROWS));
        }
    }
}

/// Rounds to two digits.
fn rounded(tokens: u64) -> u64 {
    let scale = 10_u64.pow(tokens.checked_ilog10().unwrap_or(0).saturating_sub(1));
    tokens / scale * scale
}

/// Goes through the page: asks what is to end each repeat. `model` words lessons if the person wants it. What one
/// key did is a change of its own.
pub(crate) fn go_through(
    context: &Context,
    found: &Repeats,
    model: Option<&str>,
) -> Result<(), UserError> {
    context.printer.note_page(|page| {
        page.line("");
        head(found, page);
    });
    for (number, repeat) in (1..).zip(&found.repeats) {
        let keeps = repeat.waits.is_some() || repeat.kind == RepeatKind::Correction;
        let words = repeat.kind != RepeatKind::Correction && model.is_some();
        let keys = [
            keeps.then_some(('y', "keep")),
            Some(('e', "your words")),
            words.then_some(('w', "let your agent word it")),
            Some(('n', "next")),
            Some(('q', "later")),
        ];
        let keys: Vec<(char, &str)> = keys.into_iter().flatten().collect();
        context.printer.note_page(|page| {
            page.line("");
            show_one(number, repeat, page);
        });
        loop {
            let context = &context.for_next_change();
            let done = match choice(context, &keys)?.0 {
                'y' => keep(context, repeat.waits.as_ref(), &repeat.what),
                'e' => in_own_words(context, repeat),
                'w' => worded(context, repeat, model.unwrap_or_default()),
                'n' => Ok(true),
                _ => return Ok(()),
            };
            match done {
                Ok(true) => break,
                Ok(false) => note(context, "nothing kept"),
                Err(error) if error.kind == error::Kind::Interrupted => return Err(error),
                Err(error) => context.printer.error(&error),
            }
        }
    }
    Ok(())
}

/// Says what became of a repeat.
fn note(context: &Context, what: &str) {
    let note = |page: &mut Page| page.sentence(Style::Plain, "   ", what);
    context.printer.note_page(note);
}

/// Lets what waits, or the person's words, act from now on. Returns `false` if nothing was kept, as those below do.
fn keep(context: &Context, waits: Option<&Waits>, words: &str) -> Result<bool, UserError> {
    let workspace = context.workspace(None)?;
    let id = if let Some(waits) = waits {
        waits.id.clone()
    } else {
        let heard = HeardArgs {
            rule: words.to_owned(),
            quote: words.to_owned(),
            ..HeardArgs::default()
        };
        let project = context.project_name().unwrap_or_default();
        record_said(&workspace, heard, project)?.id
    };
    approved(context, &workspace, &[id])
}

fn approved(context: &Context, workspace: &Workspace, ids: &[String]) -> Result<bool, UserError> {
    let approved = approve(workspace, ids, None, None)?;
    let ids: Vec<String> = approved.iter().map(|one| one.id.clone()).collect();
    let mut lines = vec![format!("kept {}", ids.join(", "))];
    // Words alone say nothing of the calls that break them.
    let is_silent = |one: &&Approved| one.kind == Kind::Reflexion && one.at_calls.is_none();
    lines.extend(
        approved
            .iter()
            .filter(is_silent)
            .map(|rule| at_calls_too(&rule.id)),
    );
    note(context, &lines.join("\n"));
    Ok(true)
}

/// Asks for a line of the person, and keeps it.
fn in_own_words(context: &Context, repeat: &Repeat) -> Result<bool, UserError> {
    let line = answer("One line for agents: ")?.unwrap_or_default();
    if line.is_empty() {
        return Ok(false);
    }
    if repeat.kind == RepeatKind::Correction {
        return keep(context, None, &line);
    }
    let workspace = context.workspace(None)?;
    let person = context.environment.person();
    let asking = Asking {
        records: workspace.records(),
        words: PROMPT,
        person: &person,
        root: Some(context.project()),
    };
    let lesson = LessonArgs {
        lesson: line,
        commands: vec![beginning_of(&repeat.what)],
        ..LessonArgs::default()
    };
    let project = context.project_name().unwrap_or_default();
    let stored = asking.add_of_person(&project, Trust::User, &lesson)?;
    note(context, &format!("kept {}", stored.id));
    Ok(true)
}

/// Lets a model word the lessons of the newest session with a repeat, and asks about them.
fn worded(context: &Context, repeat: &Repeat, model: &str) -> Result<bool, UserError> {
    let workspace = context.workspace(Some(model))?;
    let sessions = LearnOptions {
        project_name: context.project_name(),
        paths: vec![repeat.path.clone()],
        session: context.session(None),
        ..LearnOptions::default()
    };
    let plan = wait(past::plan(&workspace, &sessions, 1))??;
    let Some(plan) = plan.filter(|plan| plan.calls() > 0) else {
        let before = "this session was asked about before: memctl review";
        note(context, before);
        return Ok(false);
    };
    let price = price(plan.report.cost_usd);
    let prompt = match model.strip_prefix("exec:") {
        Some(command) => format!("One call of `{command}`, {price}: your plan. Go on?"),
        None => format!("One call of `{}`, {price}. Go on?", plan.report.model),
    };
    if !confirms(&prompt, true)? {
        return Ok(false);
    }
    let report = wait(past::ask(&workspace, plan, &mut |_| {}))??;
    context.printer.note_page(|page| show_past(&report, page));
    let lessons = report
        .sessions
        .into_iter()
        .flat_map(|session| session.lessons);
    let ids: Vec<String> = lessons.map(|lesson| lesson.id).collect();
    if ids.is_empty() {
        return Ok(false);
    }
    let keys = [('y', "keep them"), ('n', "later, in memctl review")];
    if choice(context, &keys)?.0 == 'y' {
        return approved(context, &workspace, &ids);
    }
    note(context, "they wait in memctl review");
    Ok(true)
}
