//! Rules around a call of an agent: told before it, counted by what comes after.
//!
//! A host waits for this at every call, so a call without a match reads derived tables and the notes
//! of the session, and nothing else. Nothing here permits a call.
//!
//! A note is told once to each agent of a session. A rule that asks or refuses answers every call
//! that breaks it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use memctl_sessions::Step;
use serde_json::json;

use super::call::Call;
use super::receipts::{Credit, Made, RuleNotes};
use super::{Tables, prepare};
use crate::model::{
    ActionType, CallAction, ExecutionLog, Kind, Reflexion, USER_STORE, split_origin,
};
use crate::rules::briefing::{RULE, line as one_line};
use crate::store::workspace::Error;
use crate::store::workspace::records::{Scribe, data};
use crate::store::{self, Scoped};

/// Maximum wait for the lock while an agent waits for an answer.
const PATIENCE: Duration = Duration::from_millis(120);

/// Call of an agent.
pub struct AgentCall<'a> {
    /// Tool, arguments and working directory.
    pub step: &'a Step,
    /// Directories that paths are relative to: the work tree, and the project.
    pub roots: &'a [&'a str],
    /// Returns the redacted text of the call, as the events after it have it. Called only if a rule
    /// acts: redaction costs more than the rest.
    pub code: &'a dyn Fn() -> String,
    /// Session of the call.
    pub session: &'a str,
    /// Subagent that makes the call; empty for the main agent.
    pub agent: &'a str,
    /// Rules to consider.
    pub filter: RuleFilter,
}

/// Rules to consider, by their action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleFilter {
    /// All rules.
    All,
    /// Rules that ask or refuse.
    Decisions,
    /// Rules that note.
    Notes,
}

impl RuleFilter {
    fn has(self, rule: &Reflexion) -> bool {
        match self {
            Self::All => true,
            Self::Decisions => rule.action > CallAction::Note,
            Self::Notes => rule.action == CallAction::Note,
        }
    }
}

/// Rules that act on a call.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Warning {
    /// Strictest action among the rules.
    pub action: CallAction,
    /// Rules with that action, or all notes, one per line; empty if no rule acts.
    pub rules: String,
}

/// Returns the rules that act on a call, and records them in the session. A rule that `covers`
/// refuses belongs to another project.
pub fn before(
    store: &Scoped,
    call: &AgentCall<'_>,
    covers: &dyn Fn(&Reflexion) -> bool,
) -> Result<Warning, Error> {
    let tables = Tables::open(store)?;
    if tables.is_blank() {
        return Ok(Warning::default());
    }
    let notes = RuleNotes::read(&store.read_notes(&name(call.session)));
    let parsed = Call::of(call.step, call.roots);
    let mut broken = tables.broken(&parsed, &|after| notes.done.iter().any(|one| one == after));
    broken.retain(|rule| call.filter.has(rule) && covers(rule));
    if broken.is_empty() && notes.told.is_empty() {
        return Ok(Warning::default());
    }
    let made = Made {
        agent: call.agent,
        begins: parsed.beginnings().map(str::to_owned).collect(),
        // Only a call that breaks a rule is recognised again.
        key: if broken.is_empty() {
            0
        } else {
            key(&call.step.tool, &(call.code)())
        },
    };
    let mut changed = notes.clone();
    let mut told: Vec<&Reflexion> = changed.called(&made, &broken);
    // A rule that is broken again and again changes nothing in the notes, and is told all the same.
    if changed != notes {
        record(store, call.session, |notes| {
            told = notes.called(&made, &broken);
        })?;
    }
    let Some(action) = told.iter().map(|rule| rule.action).max() else {
        return Ok(Warning::default());
    };
    let lines = told.iter().filter(|rule| rule.action == action);
    let lines: Vec<String> = lines.map(|rule| line(rule)).collect();
    Ok(Warning {
        action,
        rules: lines.join("\n"),
    })
}

/// Records that a call ran, and stores what is known about rules by then.
pub fn after(
    store: &Scoped,
    call: &AgentCall<'_>,
    succeeded: bool,
    random: fn() -> String,
) -> Result<(), Error> {
    let tables = Tables::open(store)?;
    let notes = RuleNotes::read(&store.read_notes(&name(call.session)));
    if tables.is_blank() && notes == RuleNotes::default() {
        return Ok(());
    }
    let done = if succeeded && !tables.is_blank() {
        tables.fulfilled(&Call::of(call.step, call.roots))
    } else {
        Vec::new()
    };
    let is_awaited = notes.told.iter().any(|told| told.awaited != 0);
    if done.is_empty() && !is_awaited && notes.owed.is_empty() {
        return Ok(());
    }
    let key = if is_awaited {
        key(&call.step.tool, &(call.code)())
    } else {
        0
    };
    record(store, call.session, |notes| {
        notes.fulfilled(done);
        if is_awaited {
            notes.ran(key);
        }
    })?;
    settle(store, call.session, random)
}

/// Records that the context of a session is new: rules are told again.
pub fn compacted(store: &Scoped, session: &str) -> Result<(), Error> {
    record(store, session, RuleNotes::compacted)
}

/// Records that the context of a session is about to go, where the agent host takes no text: what was told at
/// the start is owed.
pub fn compacting(store: &Scoped, session: &str) -> Result<(), Error> {
    record(store, session, |notes| {
        notes.compacted();
        notes.owes_start = true;
    })
}

/// Returns `true`, once, if what was told at the start of the session has to be told again.
pub fn start_is_owed(store: &Scoped, session: &str) -> Result<bool, Error> {
    let is_owed = RuleNotes::read(&store.read_notes(&name(session))).owes_start;
    if is_owed {
        record(store, session, |notes| notes.owes_start = false)?;
    }
    Ok(is_owed)
}

/// Records the end of a session.
pub fn ended(
    store: &Scoped,
    session: &str,
    now: DateTime<Utc>,
    random: fn() -> String,
) -> Result<(), Error> {
    let notes = RuleNotes::read(&store.read_notes(&name(session)));
    if notes.told.is_empty() && notes.owed.is_empty() {
        return Ok(());
    }
    let mut rules = Vec::new();
    record(store, session, |notes| rules = notes.ended())?;
    settle(store, session, random)?;
    if !rules.is_empty() {
        // A failed log write is no reason not to learn from the session.
        drop(log(store, session, &rules, (now, random)));
    }
    Ok(())
}

/// Returns the number of rules that a session was told at calls, and of those that it heeded so far.
pub fn session_receipts(store: &Scoped, session: &str) -> (usize, usize) {
    RuleNotes::read(&store.read_notes(&name(session))).counts()
}

/// Adds the rules that acted in a session to the action log, at its end: only then the hook knows
/// the user.
fn log(
    store: &Scoped,
    session: &str,
    rules: &[String],
    (now, random): (DateTime<Utc>, fn() -> String),
) -> Result<(), Error> {
    let scribe = Scribe::new(now, random, Some(session));
    let line = ExecutionLog {
        output_data: data(&json!({ "rules": rules })),
        ..scribe.line("rule", ActionType::MemoryRead)
    };
    let mut writer = impatient(store).write_logs(&mut || random())?;
    Ok(writer.note_execution_logs(vec![line])?)
}

/// Stores the counts that a session owes. If the lock is held, a later event of the session does.
fn settle(store: &Scoped, session: &str, random: fn() -> String) -> Result<(), Error> {
    let mut owed = Vec::new();
    record(store, session, |notes| {
        owed = std::mem::take(&mut notes.owed);
    })?;
    let (of_user, own): (Vec<Credit>, Vec<Credit>) = owed
        .into_iter()
        .partition(|credit| split_origin(&credit.id).1 == Some(USER_STORE));
    let mut left = Vec::new();
    for (store, credits) in [(Some(store), own), (store.user_store(), of_user)] {
        if let Some(store) = store.filter(|_| !credits.is_empty())
            && !count(store, &credits, random)?
        {
            left.extend(credits);
        }
    }
    if left.is_empty() {
        return Ok(());
    }
    record(store, session, |notes| notes.owed.extend(left))
}

/// Adds to the counts of rules. Returns `false` if the lock is held.
fn count(store: &Scoped, credits: &[Credit], random: fn() -> String) -> Result<bool, Error> {
    if store.is_apart()? {
        return Ok(true);
    }
    let mut writer = match impatient(store).write(&mut || random()) {
        Err(store::Error::Locked { .. }) => return Ok(false),
        writer => writer?,
    };
    for credit in credits {
        let id = split_origin(&credit.id).0;
        // A rule may have been deleted in the meantime.
        let entry = writer.store().find(Kind::Reflexion, id)?;
        let Some(rule) = entry.and_then(|entry| entry.parse::<Reflexion>().ok()) else {
            continue;
        };
        let before = rule.receipts();
        let counts = [
            ("times_told", before.told, credit.told),
            ("times_heeded", before.heeded, credit.heeded),
            ("times_recurred", before.recurred, credit.recurred),
            ("times_overridden", before.overridden, credit.overridden),
        ];
        let moved = counts.into_iter().filter(|(.., more)| *more != 0);
        let changes: Vec<_> = moved
            .map(|(name, before, more)| (name, json!(before.saturating_add_signed(more))))
            .collect();
        if !changes.is_empty() {
            writer.update(Kind::Reflexion, id, &changes)?;
        }
    }
    prepare(writer.store())?;
    Ok(true)
}

/// Store with a short lock timeout, for writes that an agent waits for.
fn impatient(store: &Scoped) -> Scoped {
    let limit = store.lock_limit().min(PATIENCE);
    store.clone().with_lock_limit(limit)
}

/// Name of the notes about rules of a session.
fn name(session: &str) -> String {
    format!("rules {session}")
}

/// Changes the notes of a session. If another process holds the lock, or the store is read-only, the
/// change is made to a copy, and its answer is given all the same.
fn record(store: &Scoped, session: &str, change: impl FnOnce(&mut RuleNotes)) -> Result<(), Error> {
    let session = name(session);
    let held = if store.directory().is_read_only() {
        None
    } else {
        match store.notes(&session) {
            Err(store::Error::Locked { .. }) => None,
            notes => Some(notes?),
        }
    };
    let mut notes = RuleNotes::read(&store.read_notes(&session));
    let before = notes.clone();
    change(&mut notes);
    if let Some(held) = held.filter(|_| notes != before) {
        held.save(&serde_json::to_vec(&notes).map_err(store::Error::from)?)?;
    }
    Ok(())
}

/// Hash of a call, to recognise it in the events after it; never 0.
fn key(tool: &str, code: &str) -> u64 {
    let bytes = tool.bytes().chain([0]).chain(code.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash | 1
}

/// Rule with its condition on one line. Only approved rules get here, so it stands outside of a
/// fence.
fn line(rule: &Reflexion) -> String {
    let mut text = format!("{} ({})", one_line(&rule.rule, RULE), rule.reflexion_id);
    if !rule.applies_when.trim().is_empty() {
        text.extend([" It applies: ", &one_line(&rule.applies_when, RULE)]);
    }
    text
}
