//! `review` and its neighbours in the help: `approve`, `why`, `undo`, `stats`, `watch`.
//!
//! `review` shows everything that waits for a person, in one queue.
//!
//! On a terminal, one entry after the other with a key for each decision; through a pipe, one line
//! for each entry with the command that decides about it.

pub(crate) mod approve;
pub(crate) mod history;
mod one_by_one;
pub(crate) mod stats;
pub(crate) mod watch;

use std::io::IsTerminal as _;
use std::time::Duration;

use clap::Args;

use crate::cli::context::Context;
use crate::cli::learn::sessions::host_sessions;
use crate::cli::output::{Page, Report, change, end, plural};
use crate::model::error::UserError;
use crate::model::{Kind, SkillPath};
use crate::review::PastSessions;
use crate::review::queue::{Part, Queue, Waiting, WaitingKind};

/// Maximum time of a replay: a person waits.
const REPLAY: Duration = Duration::from_secs(3);
/// Width of a title on a line.
const TITLE: usize = 60;
/// Maximum width of the line with a change.
const CHANGE: usize = 100;

/// Review what was learned: approve, edit, reject, merge
///
/// Lists candidate rules, and lessons from sessions, contradictions and similar rules, and rules with
/// evidence against them. On a terminal, shows one entry after the other, and asks: a letter and Enter
/// decide. Through a pipe, one line for each entry with the command that decides about it.
///
/// ```console
/// $ memctl review
/// $ memctl review --skills hr/resume-screen
/// $ memctl review --json | jq '.waiting[] | {kind, id, title}'
/// ```
#[derive(Debug, Args)]
pub(crate) struct ReviewArgs {
    /// Review only the rules and lessons of this skill, as `domain/skill`
    #[arg(long = "skills", alias = "skill", value_name = "SKILL")]
    skill: Option<String>,
}

pub(crate) fn review(context: &Context, args: &ReviewArgs) -> Result<u8, UserError> {
    let skill: Option<SkillPath> = args.skill.as_deref().map(str::parse).transpose()?;
    if context.is_interactive() && std::io::stdout().is_terminal() {
        return one_by_one::one_by_one(context, skill.as_ref());
    }
    let mut queue = queue(context, skill.as_ref())?;
    queue.waiting.iter_mut().for_each(Waiting::screen);
    context.printer.show(&queue)
}

/// Reads everything that waits, and tries the rules that wait on past calls.
pub(crate) fn queue(context: &Context, skill: Option<&SkillPath>) -> Result<Queue, UserError> {
    let workspace = context.workspace(None)?;
    let past = past_sessions(context);
    let read = || Queue::read(&workspace, skill, &past);
    Ok(context.printer.during("reading past calls", read)?)
}

/// Returns the user's own sessions of this project, which rules are tried on and in which they said something. No
/// file of a project is one.
pub(crate) fn past_sessions(context: &Context) -> PastSessions {
    let mut paths = host_sessions(context);
    paths.retain(|path| !context.environment.is_of_project(path));
    PastSessions {
        paths,
        project: context.project().display().to_string(),
        now: context.environment.now,
        limit: REPLAY,
    }
}

/// Word of an entry for people.
fn word(kind: WaitingKind) -> &'static str {
    match kind {
        WaitingKind::Procedure => Kind::Procedure.noun(),
        WaitingKind::Memory => Kind::Memory.noun(),
        kind => kind.name(),
    }
}

/// Maximum number of lines of one text.
const LONGEST: usize = 200;

/// Adds the texts of a record. A rule that a person typed is its own quote, and is shown once.
fn parts(page: &mut Page, parts: &[Part]) {
    for (at, part) in (1..).zip(parts) {
        if parts[at..].iter().any(|other| other.text == part.text) {
            continue;
        }
        // At the beginning of a line, `error:` is that of a command.
        let label = match part.name {
            "error" => "at the error",
            name => name,
        };
        // Redacted before it is wrapped, so that no secret is cut in two.
        let text = memctl_redact::redact(&part.text).text;
        let lines: Vec<&str> = text.lines().take(LONGEST).collect();
        page.field(label, &lines.join("\n"));
        let more = text.lines().count() - lines.len();
        if more > 0 {
            page.dim(format!("… and {}", plural(more as u64, "more line")));
        }
    }
}

/// Ids of an entry: one, or two with a comma.
fn ids(waiting: &Waiting) -> String {
    match &waiting.other {
        Some(other) => format!("{},{other}", waiting.id),
        None => waiting.id.clone(),
    }
}

impl Report for Queue {
    fn page(&self, page: &mut Page) {
        if self.waiting.is_empty() {
            return page.line("Nothing waits for a decision.");
        }
        let all: Vec<String> = self.waiting.iter().map(ids).collect();
        let kinds = self.waiting.iter().map(|one| word(one.kind).len());
        let widths = (
            kinds.max().unwrap_or_default(),
            all.iter().map(String::len).max().unwrap_or_default(),
        );
        for (waiting, ids) in self.waiting.iter().zip(&all) {
            page.line(format!(
                "{:<2$}  {ids:<3$}  {}  → {4}",
                word(waiting.kind),
                end(&waiting.title, TITLE),
                widths.0,
                widths.1,
                waiting.command
            ));
            if let (Some(failing), Some(working)) = (waiting.text("failed"), waiting.text("worked"))
            {
                let indent = widths.0 + widths.1 + 4;
                page.line(format!(
                    "{:indent$}{}",
                    "",
                    change(failing, working, CHANGE)
                ));
            }
        }
    }
}
