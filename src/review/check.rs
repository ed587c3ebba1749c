//! Checks of rules: a person confirms which calls a rule acts on.
//!
//! The check is stored with the rule, and the confirmation in the user's state directory. A check
//! that anyone else writes or changes there does not act until this user confirms it.
//!
//! Deliberately absent: the match with calls (`learn::check`), and the firing (`hints::checks`).

use serde::Serialize;
use serde_json::json;

use crate::hints::checks;
use crate::learn::check::{NoProposal, Proposal, propose, refused};
use crate::model::{Check, Kind, Reflexion, Trust};
use crate::store::Entry;

use crate::workspace::Error;
use crate::workspace::Workspace;
use crate::workspace::document::level;
use crate::workspace::locate::locate;
use crate::workspace::repair_warnings;

/// Rule that may have a check.
#[derive(Debug)]
pub struct CheckedRule {
    /// Rule as stored.
    pub rule: Reflexion,
    /// `true` if its check acts: this user confirmed it.
    pub confirmed: bool,
}

/// Check of a rule after a change.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct CheckReport {
    /// Id of the rule.
    pub id: String,
    /// Text of the rule.
    pub rule: String,
    /// Check; `None` if the rule has none now.
    pub check: Option<Check>,
    /// `true` if the check acts on calls.
    pub active: bool,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Returns a rule by its id. Fails for other kinds, and for rules that do not count.
pub fn checked_rule(workspace: &Workspace, id: &str) -> Result<CheckedRule, Error> {
    let (kind, id) = locate(&workspace.store, id)?;
    let refused = |reason, approvable| Error::NotCheckable {
        id: id.clone(),
        reason,
        approvable,
    };
    if kind != Kind::Reflexion {
        return Err(refused("only rules have checks", false));
    }
    let entry = found(workspace.store.find(kind, &id)?, &id)?;
    let rule: Reflexion = entry.parse().map_err(crate::store::Error::from)?;
    match rule.state() {
        "candidate" => return Err(refused("it is a candidate", true)),
        "superseded" => return Err(refused("another rule replaces it", false)),
        "retired" => return Err(refused("it is retired", false)),
        _ if level(&workspace.store, &entry) == Trust::Observed => {
            return Err(refused("nobody has approved the rule here", true));
        }
        _ => {}
    }
    let own = workspace.store.approvals().own_words();
    Ok(CheckedRule {
        confirmed: own.confirms_check(&rule),
        rule,
    })
}

/// Proposes a check from the words of a rule.
pub fn propose_check(
    rule: &Reflexion,
    is_program: &dyn Fn(&str) -> bool,
) -> Result<Proposal, NoProposal> {
    propose(rule, is_program)
}

/// Stores a check and confirms it. The counts of another check before are reset.
pub fn check(workspace: &Workspace, id: &str, check: &Check) -> Result<CheckReport, Error> {
    for (name, pattern) in check.patterns() {
        if let Some(reason) = refused(name, pattern) {
            return Err(Error::BadPattern { name, reason });
        }
    }
    let CheckedRule { rule, .. } = checked_rule(workspace, id)?;
    let id = rule.reflexion_id;
    let mut changes = vec![("check", json!(check))];
    let counts = ["check_fired", "check_overridden", "check_needless"];
    let is_new = rule.check.as_ref() != Some(check);
    let gone: &[&str] = if is_new { &counts } else { &[] };
    let mut writer = workspace.writer()?;
    if is_new {
        writer.update_without(Kind::Reflexion, &id, &changes, gone)?;
    }
    changes.clear();
    writer.confirm_check(&id)?;
    checks::prepare(writer.store())?;
    let mut warnings: Vec<String> = repair_warnings(writer.take_repairs()).collect();
    drop(writer);
    let stored = checked_rule(workspace, &id)?;
    if !stored.confirmed {
        warnings.push("the confirmation could not be stored, so the check does not act".to_owned());
    }
    Ok(CheckReport {
        id,
        rule: stored.rule.rule,
        check: stored.rule.check,
        active: stored.confirmed,
        warnings,
    })
}

/// Removes the check of a rule. Does nothing if it has none.
pub fn remove_check(workspace: &Workspace, id: &str) -> Result<CheckReport, Error> {
    let (kind, id) = locate(&workspace.store, id)?;
    let entry = found(workspace.store.find(kind, &id)?, &id)?;
    let gone = ["check", "check_fired", "check_overridden", "check_needless"];
    let mut writer = workspace.writer()?;
    if kind == Kind::Reflexion {
        writer.update_without::<()>(kind, &id, &[], &gone)?;
        checks::prepare(writer.store())?;
    }
    let warnings = repair_warnings(writer.take_repairs()).collect();
    let rule: Reflexion = entry.parse().map_err(crate::store::Error::from)?;
    Ok(CheckReport {
        id,
        rule: rule.rule,
        check: None,
        active: false,
        warnings,
    })
}

fn found(entry: Option<Entry>, id: &str) -> Result<Entry, Error> {
    Ok(entry.ok_or_else(|| crate::store::Error::NotFound {
        kind: Some(Kind::Reflexion),
        id: id.to_owned(),
        similar: Vec::new(),
    })?)
}
