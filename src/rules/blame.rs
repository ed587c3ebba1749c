//! The rule that the rejection of an output counts against.
//!
//! It is the one that a person names, or that the reason is clearly about. If neither is clear, no
//! rule is blamed: a wrong blame retires a good rule.

use serde::Serialize;

use crate::model::{Execution, Kind};
use crate::rules::credit::{Fault, at_fault};
use crate::rules::evidence::concerned;
use crate::rules::place::similar::cosines;
use crate::store::workspace::error::chain;
use crate::store::workspace::{Error, Workspace};

/// Rules of a prompt, and which of them a rejection counts against.
#[derive(Debug, Default)]
pub struct Blame {
    /// Rules that applied to the execution, each with its text.
    pub candidates: Vec<(String, String)>,
    /// Rules that the rejection counts against.
    pub blamed: Vec<BlamedRule>,
    /// Non-fatal problem.
    pub warning: Option<String>,
}

/// Rule that a rejection counts against.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct BlamedRule {
    /// Id of the rule.
    pub id: String,
    /// Ground for the blame.
    pub reason: &'static str,
}

/// Finds the rules that a rejection of an execution counts against: `named` ones, or the one that
/// the reason is about.
///
/// # Errors
///
/// [`Error::NotInjected`] if a named rule was not in the prompt or does not apply.
pub fn blame(
    workspace: &Workspace,
    execution: &str,
    reason: &str,
    named: &[String],
) -> Result<Blame, Error> {
    let id = workspace.store.resolve(Kind::Execution, execution, None)?;
    let execution: Execution = workspace.store.get(&id)?;
    let rules = concerned(&workspace.writer()?, &execution)?;
    let mut found = Blame {
        candidates: rules
            .iter()
            .map(|rule| (rule.reflexion_id.clone(), rule.rule.clone()))
            .collect(),
        blamed: Vec::new(),
        warning: None,
    };
    for name in named {
        let name = &workspace.store.resolve(Kind::Reflexion, name, None)?;
        if found.blamed.iter().any(|known| known.id == *name) {
            continue;
        }
        if !rules.iter().any(|rule| rule.reflexion_id == *name) {
            return Err(Error::NotInjected {
                rule: name.clone(),
                execution: id,
                injected: rules.into_iter().map(|rule| rule.reflexion_id).collect(),
            });
        }
        found.blamed.push(blamed(name, Fault::Named));
    }
    if named.is_empty() && !rules.is_empty() {
        let cosines = if reason.trim().is_empty() {
            Vec::new()
        } else {
            let texts: Vec<&str> = rules.iter().map(|rule| rule.rule.as_str()).collect();
            // A verdict is worth more than its blame: without vectors, the words decide.
            cosines(reason, &texts).unwrap_or_else(|error| {
                found.warning = Some(format!(
                    "no rule was compared by meaning: {}",
                    chain(&error)
                ));
                Vec::new()
            })
        };
        let fault = at_fault(reason, &rules, &cosines);
        found
            .blamed
            .extend(fault.map(|(at, fault)| blamed(&rules[at].reflexion_id, fault)));
    }
    Ok(found)
}

fn blamed(id: &str, fault: Fault) -> BlamedRule {
    BlamedRule {
        id: id.to_owned(),
        reason: match fault {
            Fault::Named => "you named it",
            Fault::Opposed => "the reason repeats it",
            Fault::Nearest => "the reason is about it",
            Fault::Alone => "no other rule applied",
        },
    }
}
