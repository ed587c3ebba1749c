//! Rules around a call of an agent: told before the call, counted by the calls after it.
//!
//! The host waits for the answer at every call. A call without a match therefore reads only derived tables
//! and the notes of the session. No answer here permits a call.
//!
//! Each agent of a session is told a note once. A rule that asks or refuses answers every call that breaks
//! it.

use memctl_sessions::Step;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use super::call::Call;
use super::receipts::{Credit, Made, RuleNotes};
use super::{Tables, prepare};
use crate::model::text::{plain_words, told_line};
use crate::model::{CallAction, Kind, Reflexion, USER_STORE, split_origin};
use crate::rules::in_use::RULE;
use crate::rules::place::changes::{add_receipts, update_rule};
use crate::store::Scoped;
use crate::store::workspace::Error;

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
    /// Ids of these rules.
    pub ids: Vec<String>,
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
    let notes = notes_of(store, call.session);
    let parsed = Call::of(call.step, call.roots);
    let mut broken = tables.broken(&parsed, &|after| notes.done.iter().any(|one| one == after));
    broken.retain(covers);
    once(store, &mut broken, covers);
    broken.retain(|rule| call.filter.has(rule));
    if broken.is_empty() && notes.told.is_empty() {
        return Ok(Warning::default());
    }
    // Only a call that breaks a rule is recognised again.
    let is_kept = !broken.is_empty();
    let made = Made {
        agent: call.agent,
        begins: parsed.beginnings().map(str::to_owned).collect(),
        key: if is_kept { key(call) } else { 0 },
    };
    let mut changed = notes.clone();
    let mut told: Vec<&Reflexion> = changed.called(&made, &broken);
    // A rule that is broken again and again changes nothing in the notes, and is told again. Notes that cannot be
    // written, on a full disk, keep back no answer to the call.
    if changed != notes {
        drop(record(store, call.session, |notes| {
            told = notes.called(&made, &broken);
        }));
    }
    let Some(action) = told.iter().map(|rule| rule.action).max() else {
        return Ok(Warning::default());
    };
    told.retain(|rule| rule.action == action);
    let lines: Vec<String> = told.iter().map(|rule| line(rule)).collect();
    let ids = told.iter().map(|rule| rule.reflexion_id.clone());
    Ok(Warning {
        action,
        rules: lines.join("\n"),
        ids: ids.collect(),
    })
}

/// Leaves out the rules of the user store that this memory has as well, where the person let them act:
/// its record decides, even if that one is off, retired, or has been edited since.
fn once(store: &Scoped, broken: &mut Vec<Reflexion>, covers: &dyn Fn(&Reflexion) -> bool) {
    let Some(user) = store.user_store() else {
        return;
    };
    let of_user = |rule: &Reflexion| split_origin(&rule.reflexion_id).1 == Some(USER_STORE);
    let own = broken.iter().filter(|rule| !of_user(rule));
    let own: Vec<Vec<String>> = own.map(|rule| plain_words(&rule.rule)).collect();
    let original = |rule: &Reflexion| -> Option<Reflexion> {
        let copy = user.find(Kind::Reflexion, split_origin(&rule.reflexion_id).0);
        let copy: Value = serde_json::from_slice(&copy.ok()??.text).ok()?;
        let original = store.find(Kind::Reflexion, copy["promoted_from"]["id"].as_str()?);
        original.ok()??.parse().ok()
    };
    let seals = |rule: &Reflexion| store.approvals().own_words().seals(rule);
    broken.retain(|rule| {
        let text = plain_words(&rule.rule);
        let counts = |one: &Reflexion| covers(one) && seals(one);
        !of_user(rule) || !(own.contains(&text) || original(rule).is_some_and(|one| counts(&one)))
    });
}

/// Records that a call ran, and stores what is known about rules by then.
pub fn after(
    store: &Scoped,
    call: &AgentCall<'_>,
    succeeded: bool,
    random: fn() -> String,
) -> Result<(), Error> {
    let tables = Tables::open(store)?;
    let notes = notes_of(store, call.session);
    if tables.is_blank() && notes == RuleNotes::default() {
        return Ok(());
    }
    let mut done = Vec::new();
    if succeeded && !tables.is_blank() {
        done = tables.fulfilled(&Call::of(call.step, call.roots));
    }
    let is_awaited = notes.told.iter().any(|told| told.awaited != 0);
    if done.is_empty() && !is_awaited && notes.pending.is_empty() {
        return Ok(());
    }
    let key = is_awaited.then(|| key(call));
    record(store, call.session, |notes| {
        notes.fulfilled(done);
        if let Some(key) = key {
            notes.ran(key);
        }
    })?;
    settle(store, call.session, random)
}

/// Records that the context of a session is new: rules are told again.
pub fn compacted(store: &Scoped, session: &str) -> Result<(), Error> {
    record(store, session, RuleNotes::compacted)
}

/// Notes how far the session file has been read. Returns how far it was before; `None` at the first time.
pub fn read_to(store: &Scoped, session: &str, size: u64) -> Option<u64> {
    let before = notes_of(store, session).file_read;
    drop(record(store, session, |notes| notes.file_read = Some(size)));
    before
}

/// Records the end of a session.
pub fn ended(store: &Scoped, session: &str, random: fn() -> String) -> Result<(), Error> {
    let notes = notes_of(store, session);
    if notes.told.is_empty() && notes.pending.is_empty() {
        return Ok(());
    }
    record(store, session, RuleNotes::ended)?;
    settle(store, session, random)
}

/// Returns the number of rules that a session was told at calls, and of those that it heeded so far.
pub fn session_receipts(store: &Scoped, session: &str) -> (usize, usize) {
    notes_of(store, session).counts()
}

/// Stores the pending counts of a session. If the lock is held, a later event of the session stores them.
fn settle(store: &Scoped, session: &str, random: fn() -> String) -> Result<(), Error> {
    let mut pending = Vec::new();
    record(store, session, |notes| pending.append(&mut notes.pending))?;
    let is_of_user = |credit: &Credit| split_origin(&credit.id).1 == Some(USER_STORE);
    let (of_user, own): (Vec<Credit>, Vec<Credit>) = pending.into_iter().partition(is_of_user);
    let mut left = Vec::new();
    let user = store.user_store().or(store.is_of_user().then_some(store));
    for (store, credits) in [(Some(store), own), (user, of_user)] {
        if let Some(store) = store.filter(|_| !credits.is_empty())
            && !count(store, &credits, random)?
        {
            left.extend(credits);
        }
    }
    if left.is_empty() {
        return Ok(());
    }
    record(store, session, |notes| notes.pending.extend(left))
}

/// Adds to the counts of rules. Returns `false` if the lock is held.
#[expect(clippy::cast_precision_loss, reason = "counts of sessions stay far below 2^52")]
fn count(store: &Scoped, credits: &[Credit], random: fn() -> String) -> Result<bool, Error> {
    if store.is_apart()? {
        return Ok(true);
    }
    let mut writer = match store.impatient().write(&mut || random()) {
        Err(Error::Locked { .. }) => return Ok(false),
        writer => writer?,
    };
    for credit in credits {
        let id = split_origin(&credit.id).0;
        // A rule may have been deleted in the meantime.
        let entry = writer.store().find(Kind::Reflexion, id)?;
        let Some(rule) = entry.and_then(|entry| entry.parse::<Reflexion>().ok()) else {
            continue;
        };
        let mut after = rule.clone();
        let more = [
            credit.told, credit.heeded, credit.recurred, credit.overridden,
        ];
        add_receipts(&mut after, more.map(|count| count as f64));
        update_rule(&mut writer, &rule, &mut after)?;
    }
    prepare(writer.store())?;
    Ok(true)
}

/// Name of the notes about rules of a session.
fn name(session: &str) -> String {
    format!("rules {session}")
}

fn notes_of(store: &Scoped, session: &str) -> RuleNotes {
    store.scratch_of(&name(session))
}

/// Changes the notes of a session. If another process holds the lock, or the store is read-only, the
/// change is made to a copy, and the answer is the same.
fn record(store: &Scoped, session: &str, change: impl FnOnce(&mut RuleNotes)) -> Result<(), Error> {
    store.try_change_scratch(&name(session), change)
}

/// Hash of a call, to recognise it in the events after it; never 0.
fn key(call: &AgentCall<'_>) -> u64 {
    let code = (call.code)();
    xxh3_64(format!("{}\0{code}", call.step.tool).as_bytes()) | 1
}

/// Rule with its condition on one line. Only approved rules get here, so it is outside of a
/// fence.
fn line(rule: &Reflexion) -> String {
    let mut text = format!("{} ({})", told_line(&rule.rule, RULE), rule.reflexion_id);
    if !rule.applies_when.trim().is_empty() {
        text.extend([" It applies: ", &told_line(&rule.applies_when, RULE)]);
    }
    text
}
