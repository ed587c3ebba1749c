//! Records a heard rule as a candidate, with its relation to similar rules.
//!
//! The quote must be part of a message that a hook saw. Recording the same quote again changes the candidate,
//! so that an agent can add how it relates to its neighbours.
//!
//! An earlier *candidate* that the rule replaces is superseded at once. An earlier rule in force stays in force
//! until a person approves the candidate, so that one of the two always is. It does so, too, if the rule only takes it
//! back.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::HeardArgs;
use super::heard::{Earlier, Heard};
use super::messages::{MadeCall, Message, witness};
use super::patterns::refused;
use crate::model::text::{key_words, similarity};
use crate::model::{AGENT, CANDIDATE, CHAT, Kind, LessonScope, Reflexion, Said};
use crate::rules::acting::call::Call;
use crate::rules::acting::matching::breaks;
use crate::rules::in_use::mark_observed;
use crate::rules::place::activation::UNUSED;
use crate::rules::place::changes::{superseded, update_rule};
use crate::rules::place::neighbours::same_words;
use crate::rules::place::neighbours::{SimilarRule, nearest};
use crate::store::files::directory::project_of;
use crate::store::workspace::{Error, Workspace, repair_warnings, stamp};
use crate::store::{Selection, Writer, same_project};

/// Number of neighbours in the answer.
const SHOWN: usize = 3;
/// Minimum cosine of a neighbour.
const NEAR: f64 = 0.3;
/// Minimum similarity of two wordings of one rule, by their words.
const REWORDED: f64 = 0.75;

/// Outcome of recording a heard rule.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HeardReport {
    /// Id of the candidate.
    pub id: String,
    /// Text of the rule, with both halves.
    pub rule: String,
    /// `candidate`: a person approves it.
    pub status: &'static str,
    /// Project that it is for; empty for every project.
    pub project: String,
    /// Earlier rule that it takes the place of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier: Option<EarlierRule>,
    /// Nearest other rules, best first.
    pub nearest: Vec<SimilarRule>,
    /// Calls just before the message that the patterns match; `None` without patterns or calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<Vec<String>>,
    /// `true` if no call can be seen to break it.
    #[serde(skip)]
    pub is_silent_at_calls: bool,
    /// Command with which a person approves it.
    pub approve: String,
    /// Non-fatal problems.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Earlier rule and what became of it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EarlierRule {
    /// Id of the rule.
    pub id: String,
    /// Text of the rule.
    pub rule: String,
    /// State of the earlier rule now.
    pub now: EarlierState,
}

/// State of an earlier rule after a later one was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EarlierState {
    /// It was a candidate, and the new one took its place.
    Superseded,
    /// It stays in force until a person decides.
    InForce,
}

/// Records a rule that an agent heard. Fails with the field to correct.
pub fn record_heard(workspace: &Workspace, args: HeardArgs) -> Result<HeardReport, Error> {
    let heard = Heard::of(args)?;
    let message = witness(&workspace.store, &heard.quote).ok_or_else(|| {
        refused(
            "quote",
            "does not stand in the person's last messages",
            "repeat their exact words; a person types a rule with: memctl correct \"…\"",
        )
    })?;
    record(workspace, heard, &message, AGENT)
}

/// Records what a person types themselves, for the agents of a project. It needs no message as its
/// witness, and waits for the approval like any other.
pub fn record_said(
    workspace: &Workspace,
    args: HeardArgs,
    project: String,
) -> Result<HeardReport, Error> {
    let heard = Heard::of(args)?;
    let message = Message {
        project,
        text: heard.quote.clone(),
        ..Message::default()
    };
    record(workspace, heard, &message, "person")
}

fn record(
    workspace: &Workspace,
    mut heard: Heard,
    message: &Message,
    by: &'static str,
) -> Result<HeardReport, Error> {
    let store = &workspace.store;
    // Only a person can say again what they removed.
    if by == AGENT && store.tombstone_of(Kind::Reflexion, &heard.rule)?.is_some() {
        return Err(refused(
            "rule",
            "was removed on purpose by the person",
            "only they say it again: memctl correct \"…\"",
        ));
    }
    let root = store.directory().parent();
    let project = project_for(heard.scope, message, root)?;
    let mut rules = store.list::<Reflexion>(&Selection::default())?.records;
    mark_observed(store, &mut rules);
    // A candidate is data of this memory; another unapproved rule comes from elsewhere.
    rules.retain(|rule| {
        let is_here = is_of(rule, &message.project);
        !rule.observed && is_here && (rule.is_in_use() || rule.is_candidate())
    });
    let own = rules.iter().position(|rule| is_same(rule, &heard, message));
    let own = own.map(|at| rules.swap_remove(at));
    if let (Some(own), Some(Earlier::Id(id))) = (&own, &heard.earlier)
        && own.reflexion_id == *id
    {
        // A candidate that is said again, by its id, changes itself.
        heard.earlier = None;
    }
    let words = format!("{} {}", heard.rule, heard.quote);
    let mut near = nearest(&words, rules.clone(), SHOWN)?;
    near.retain(|(score, _)| *score >= NEAR);
    let mut warnings = heard.left_out.clone();
    let is_whole = warnings.is_empty();
    if !is_whole {
        warnings.push(match by {
            AGENT => "to add it, call again with the same `rule` and `quote`".to_owned(),
            _ => "to add it, type the same rule again with another --command".to_owned(),
        });
    }
    let is_change = heard.earlier.is_some();
    if !is_change && own.is_none() {
        heard.earlier = said_again(&heard, &rules)?;
    }
    let earlier = match &heard.earlier {
        Some(earlier) => earlier_rule(earlier, rules, &mut near, heard.withdraws)?,
        None => None,
    };
    if earlier.is_none() && is_change {
        // The person's words are not lost because the rule before them was never recorded.
        warnings.push("no earlier rule is near: to replace one, give its id".to_owned());
    }
    let seen = seen(&heard, &message.calls, root.and_then(Path::to_str));
    let rule = Reflexion {
        created_at: stamp(workspace.now),
        rule: heard.rule,
        applies_when: heard.when,
        seen_by: heard.seen_by,
        distilled_by: by.to_owned(),
        utility_score: Some(UNUSED),
        source: CHAT.to_owned(),
        status: CANDIDATE.to_owned(),
        said: vec![Said {
            quote: heard.quote,
            session: message.session.clone(),
            workspace: project.clone(),
        }],
        replaces: earlier
            .iter()
            .map(|rule| rule.reflexion_id.clone())
            .collect(),
        withdraws: heard.withdraws,
        ..Reflexion::default()
    };
    // The embedder is done: nobody waits for it at the lock.
    let mut writer = workspace.writer()?;
    let rule = match own {
        None => writer.append(rule, workspace.now)?,
        Some(own) => change_candidate(&mut writer, &own, rule, is_whole)?,
    };
    let earlier = earlier.map(|old| give_way(&mut writer, &rule, old));
    let earlier = earlier.transpose()?;
    warnings.extend(repair_warnings(writer.take_repairs()));
    drop(writer);
    if seen.as_ref().is_some_and(Vec::is_empty) {
        warnings.push(unmatched(message));
    }
    let is_other = |id: &String| earlier.as_ref().is_none_or(|old| old.id != *id);
    near.retain(|(_, other)| is_other(&other.reflexion_id));
    Ok(HeardReport {
        status: CANDIDATE,
        project,
        nearest: near.into_iter().map(SimilarRule::from).collect(),
        seen,
        is_silent_at_calls: rule.seen_by.is_empty() && !rule.withdraws,
        approve: format!("memctl approve {}", rule.reflexion_id),
        id: rule.reflexion_id,
        rule: rule.rule,
        earlier,
        warnings,
    })
}

/// Warning that no pattern of a rule matches a call before the message.
fn unmatched(message: &Message) -> String {
    let calls = message.calls.iter();
    let calls: Vec<String> = calls.map(|call| format!("`{}`", call.shown())).collect();
    format!(
        "no pattern matches the last calls ({}); if the person corrects one of them, call again \
         with the same `rule` and `quote`, and a pattern that matches it",
        calls.join(", ")
    )
}

/// Returns the project that a rule is for; empty for every one.
fn project_for(
    scope: LessonScope,
    message: &Message,
    root: Option<&Path>,
) -> Result<String, Error> {
    match scope {
        LessonScope::Everywhere => Ok(String::new()),
        LessonScope::Project if !message.project.is_empty() => Ok(message.project.clone()),
        // A rule without a project would act everywhere.
        LessonScope::Project => root.and_then(project_of).ok_or_else(|| {
            let hint = "run it in the folder of a project, or give the scope `everywhere`";
            refused("scope", "`project` is not known here", hint)
        }),
    }
}

/// Returns the rule in force with the same words, whose place the heard one takes: it is seen by more.
fn said_again(heard: &Heard, rules: &[Reflexion]) -> Result<Option<Earlier>, Error> {
    let in_force = rules
        .iter()
        .find(|rule| rule.is_in_use() && same_words(&rule.rule, &heard.rule));
    let Some(same) = in_force else {
        return Ok(None);
    };
    let id = &same.reflexion_id;
    if heard.seen_by.iter().all(|one| same.seen_by.contains(one)) {
        let message = format!("this rule is in force already, as `{id}`");
        return Err(Error::input(message, format!("memctl show {id}")));
    }
    Ok(Some(Earlier::Id(id.clone())))
}

/// Returns the rule that a heard one replaces. The nearest one is removed from `near`.
fn earlier_rule(
    earlier: &Earlier,
    rules: Vec<Reflexion>,
    near: &mut Vec<(f64, Reflexion)>,
    withdraws: bool,
) -> Result<Option<Reflexion>, Error> {
    match earlier {
        Earlier::Id(id) => {
            let found = rules.into_iter().find(|rule| rule.reflexion_id == *id);
            let unknown = || {
                let reason = format!("`{id}` is no rule of this project");
                refused("replaces", reason, "memctl list rules")
            };
            found.ok_or_else(unknown).map(Some)
        }
        Earlier::Nearest if near.is_empty() && withdraws => {
            let reason = "names no rule, and none is near";
            let hint = "give its id: memctl list rules";
            Err(refused("withdraws", reason, hint))
        }
        Earlier::Nearest => Ok((!near.is_empty()).then(|| near.remove(0).1)),
    }
}

/// Calls that one of the patterns matches; `None` without patterns or calls. Earlier
/// calls do not count: the person corrects this one.
fn seen(heard: &Heard, calls: &[MadeCall], root: Option<&str>) -> Option<Vec<String>> {
    let is_seen = |call: &&MadeCall| {
        let call = Call::of(&call.step(), root.as_slice());
        breaks(&call, &heard.rule, &heard.seen_by, &|_| false)
    };
    let matched = calls.iter().filter(is_seen).map(MadeCall::shown);
    (!heard.seen_by.is_empty() && !calls.is_empty()).then(|| matched.collect())
}

/// Returns `true` for a rule that acts in a project.
fn is_of(rule: &Reflexion, project: &str) -> bool {
    let projects = rule.projects();
    let is_here = |name: &&str| same_project(name, project);
    rule.skill.is_empty() && (projects.is_empty() || projects.iter().any(is_here))
}

/// Returns `true` for the candidate of the same words, or of the same quote in other words. Another rule
/// of the same message is another candidate.
fn is_same(rule: &Reflexion, heard: &Heard, message: &Message) -> bool {
    let said = |said: &Said| said.quote == heard.quote && said.session == message.session;
    let is_reworded = || {
        let (one, other) = (key_words(&rule.rule), key_words(&heard.rule));
        let has_words = !one.is_empty() && !other.is_empty();
        let says_more = has_words && (one.is_subset(&other) || other.is_subset(&one));
        says_more || similarity(&one, &other, &|_| 1.0) >= REWORDED
    };
    let is_one =
        same_words(&rule.rule, &heard.rule) || (rule.said.iter().any(said) && is_reworded());
    rule.is_candidate() && rule.source == CHAT && is_one
}

/// Changes the candidate that the same rule made. Omitted fields stay. If a pattern cannot act (`is_whole` is
/// `false`), the stored patterns stay beside it.
fn change_candidate(
    writer: &mut Writer,
    own: &Reflexion,
    mut rule: Reflexion,
    is_whole: bool,
) -> Result<Reflexion, Error> {
    if rule.seen_by.is_empty() || !is_whole {
        let new = std::mem::replace(&mut rule.seen_by, own.seen_by.clone());
        let new = new.into_iter().filter(|one| !own.seen_by.contains(one));
        rule.seen_by.extend(new);
    }
    if rule.applies_when.is_empty() {
        rule.applies_when.clone_from(&own.applies_when);
    }
    if rule.replaces.is_empty() {
        rule.replaces.clone_from(&own.replaces);
    }
    let mut said = own.said.clone();
    said.retain(|one| rule.said.iter().all(|new| new.quote != one.quote));
    said.extend(rule.said);
    let mut changed = Reflexion {
        rule: rule.rule,
        applies_when: rule.applies_when,
        seen_by: rule.seen_by,
        said,
        replaces: rule.replaces,
        withdraws: rule.withdraws,
        ..own.clone()
    };
    update_rule(writer, own, &mut changed)?;
    Ok(changed)
}

/// Lets an earlier candidate give way to a new one.
fn give_way(writer: &mut Writer, rule: &Reflexion, old: Reflexion) -> Result<EarlierRule, Error> {
    let mut now = EarlierState::InForce;
    if old.is_candidate() {
        update_rule(writer, &old, &mut superseded(&old, &rule.reflexion_id))?;
        now = EarlierState::Superseded;
    }
    Ok(EarlierRule {
        id: old.reflexion_id,
        rule: old.rule,
        now,
    })
}
