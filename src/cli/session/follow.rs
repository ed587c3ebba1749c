//! Following of sessions: on a terminal a screen that redraws in place, through a pipe one line per
//! event.

use std::collections::HashMap;
use std::collections::HashSet;
use std::io::IsTerminal as _;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::cli::context::Context;
use crate::cli::follow::{Event, Follower};
use crate::cli::live::{self, Live};
use crate::cli::output::{Page, Style, plural};
use crate::cli::primary;
use crate::error::{self, UserError};
use crate::json::compact;
use crate::model::{ExecutionLog, Kind, Session, SessionState};
use crate::sessions::{self, SessionReport, SessionsReport};
use crate::store::Scoped;
use crate::workspace::Error;
use crate::workspace::Workspace;

use super::{ListArgs, ShowArgs, pages};

/// Line of a followed session.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::cli) enum Line<'a> {
    /// Session as stored, after a change.
    Session(&'a RawValue),
    /// Action that was logged.
    Log(&'a ExecutionLog),
}

const LIST: &[&str] = &[Kind::Session.file()];
const SHOW: &[&str] = &[Kind::Session.file(), Scoped::EXECUTION_LOGS];

pub(super) fn list(context: &Context, args: &ListArgs) -> Result<u8, UserError> {
    let workspace = context.workspace(None)?;
    primary::follow(&context.environment, &workspace)?;
    let mut follower = Follower::new(&context.places.memory, LIST)?;
    let mut list = List {
        context,
        workspace,
        status: args.status.clone(),
        limit: args.limit as usize,
        seen: SessionsReport {
            total: 0,
            sessions: Vec::new(),
            warnings: Vec::new(),
        },
    };
    if is_screen(context) {
        live::redraw(context, &mut follower, &mut list)
    } else {
        list.lines(&mut follower)
    }
}

pub(super) fn show(context: &Context, args: &ShowArgs) -> Result<u8, UserError> {
    let workspace = context.workspace(None)?;
    primary::follow(&context.environment, &workspace)?;
    let mut follower = Follower::new(&context.places.memory, SHOW)?;
    // A missing session is an error now; later reads use its full id.
    let seen = sessions::show(&workspace, &args.session, args.limit as usize)?;
    let mut show = Show {
        context,
        workspace,
        limit: args.limit as usize,
        seen,
        gone: None,
    };
    let code = if is_screen(context) {
        live::redraw(context, &mut follower, &mut show)?
    } else {
        show.lines(&mut follower)?
    };
    show.gone.map_or(Ok(code), |error| Err(error.into()))
}

fn is_screen(context: &Context) -> bool {
    std::io::stdout().is_terminal() && !context.printer.is_json()
}

struct List<'a> {
    context: &'a Context,
    workspace: Workspace,
    status: Option<SessionState>,
    limit: usize,
    seen: SessionsReport,
}

impl Live for List<'_> {
    fn look(&mut self) {
        // A file that cannot be read yet is read again at the next event.
        if let Ok(seen) = sessions::list(&self.workspace, self.status.as_ref(), self.limit) {
            self.seen = seen;
        }
    }

    fn frame(&self, rows: usize, columns: usize, since: Duration) -> String {
        let now = self.context.environment.now + since;
        let colour = self.context.printer.page_has_colour();
        // Heading, totals, and the row of the cursor.
        let room = rows.saturating_sub(4).max(1);
        let shown = &self.seen.sessions[..self.seen.sessions.len().min(room)];
        let live = shown.iter().filter(|session| !session.status.is_final());
        let sums = format!(
            "{} shown of {}  |  {} running",
            plural(shown.len() as u64, "session"),
            self.seen.total,
            live.count(),
        );
        let sums = if colour {
            Style::Dim.paint(&sums)
        } else {
            sums
        };
        let table = pages::sessions_table(shown, now).render(columns, colour);
        format!("{table}\n\n{sums}")
    }
}

impl List<'_> {
    /// Prints a line for each session, and another one after each change.
    fn lines(&mut self, follower: &mut Follower) -> Result<u8, UserError> {
        let mut shown: HashMap<String, String> = HashMap::new();
        loop {
            self.look();
            for session in self.seen.sessions.iter().rev() {
                let now = serde_json::to_string(session)?;
                if shown.get(&session.session_id) == Some(&now) {
                    continue;
                }
                if !self
                    .context
                    .printer
                    .line(&session_line(self.context, session)?)
                {
                    return Ok(0);
                }
                shown.insert(session.session_id.clone(), now);
            }
            if let Some(code) = wait(self.context, follower)? {
                return Ok(code);
            }
        }
    }
}

struct Show<'a> {
    context: &'a Context,
    workspace: Workspace,
    limit: usize,
    seen: SessionReport,
    /// Reason why the session is gone; `None` while it exists.
    gone: Option<Error>,
}

impl Live for Show<'_> {
    fn look(&mut self) {
        self.look_at(self.limit);
    }

    fn frame(&self, rows: usize, columns: usize, since: Duration) -> String {
        let now = self.context.environment.now + since;
        let colour = self.context.printer.page_has_colour();
        let mut page = Page::new(columns, colour);
        pages::head(&mut page, &self.seen.session, now);
        let head = page.into_text();
        // Empty line, table heading, and the row of the cursor.
        let lines = head.lines().count();
        let room = rows.saturating_sub(lines + 3);
        let logs = &self.seen.logs;
        if logs.is_empty() || room == 0 {
            let head: Vec<&str> = head.lines().take(rows.saturating_sub(1)).collect();
            return head.join("\n");
        }
        let newest = &logs[logs.len().saturating_sub(room)..];
        let table = pages::actions_table(newest, now).render(columns, colour);
        format!("{head}\n{table}")
    }

    fn is_over(&self) -> bool {
        self.gone.is_some() || self.seen.session.status.is_final()
    }
}

impl Show<'_> {
    /// Prints a line for the session, one after each change, and one per action.
    fn lines(&mut self, follower: &mut Follower) -> Result<u8, UserError> {
        let mut session = String::new();
        let mut shown: HashSet<String> = HashSet::new();
        loop {
            let mut lines = Vec::new();
            if session != self.seen.record.get() {
                self.seen.record.get().clone_into(&mut session);
                lines.push(if self.context.printer.is_json() {
                    document(&Line::Session(&self.seen.record))?
                } else {
                    session_line(self.context, &self.seen.session)?
                });
            }
            for line in &self.seen.logs {
                if shown.insert(line.id.clone()) {
                    lines.push(self.action_line(line)?);
                }
            }
            if !lines.iter().all(|line| self.context.printer.line(line)) || self.is_over() {
                return Ok(0);
            }
            if let Some(code) = wait(self.context, follower)? {
                return Ok(code);
            }
            self.look_back(&shown);
        }
    }

    /// Reads the session, and enough older actions that none is missed.
    fn look_back(&mut self, shown: &HashSet<String>) {
        let mut limit = self.limit;
        while self.look_at(limit) {
            let meets = self.seen.logs.iter().any(|line| shown.contains(&line.id));
            if meets || shown.is_empty() || !self.seen.has_older_logs {
                return;
            }
            limit *= 2;
        }
    }

    /// Reads the session with its newest `limit` actions. Returns `false` if that fails. A file
    /// that cannot be read yet is read again at the next event.
    fn look_at(&mut self, limit: usize) -> bool {
        match sessions::show(&self.workspace, &self.seen.session.session_id, limit) {
            Ok(seen) => {
                self.seen = seen;
                return true;
            }
            Err(error @ Error::Forgotten { .. }) => self.gone = Some(error),
            Err(_) => {}
        }
        false
    }

    fn action_line(&self, line: &ExecutionLog) -> Result<String, UserError> {
        if self.context.printer.is_json() {
            return Ok(document(&Line::Log(line))?);
        }
        let time: String = line.created_at.chars().take(19).collect();
        Ok(one_line(self.context, pages::action(line, &time)))
    }
}

/// Returns a session on one line.
fn session_line(context: &Context, session: &Session) -> Result<String, UserError> {
    if context.printer.is_json() {
        return Ok(compact(&serde_json::to_string(session)?) + "\n");
    }
    let time: String = session.updated_at.chars().take(19).collect();
    let cells = vec![
        (Style::Dim, time),
        (Style::Plain, session.session_id.clone()),
        (pages::style(&session.status), session.status.to_string()),
        (Style::Plain, pages::percent(session)),
        (
            Style::Plain,
            session.current_step.clone().unwrap_or_default(),
        ),
    ];
    Ok(one_line(context, cells))
}

fn one_line(context: &Context, cells: Vec<(Style, String)>) -> String {
    let cells: Vec<String> = cells.into_iter().map(|(_, text)| text).collect();
    let flat: Vec<&str> = cells.iter().flat_map(|text| text.lines().take(1)).collect();
    let mut page = context.printer.page();
    page.line(flat.join("  "));
    page.into_text()
}

fn document(line: &Line<'_>) -> Result<String, serde_json::Error> {
    Ok(compact(&serde_json::to_string(line)?) + "\n")
}

/// Waits for the next change; returns the exit code after an interrupt.
fn wait(context: &Context, follower: &mut Follower) -> Result<Option<u8>, UserError> {
    match follower.next(None)? {
        Event::Changed | Event::Nothing => {}
        Event::Interrupted => return Ok(Some(error::Kind::Interrupted.code())),
        Event::Quit => return Ok(Some(0)),
        Event::Failed(reason) => context.printer.warn(&reason),
    }
    Ok(None)
}
