//! Verdicts of a model on a batch of records.
//!
//! A verdict that cannot be used leaves its record undecided, with a reason. The other verdicts of
//! the answer count.

use std::collections::HashMap;

use serde::Deserialize;

use crate::model::{Kind, Verdict};

use super::{Decision, Item, Rewording, sentence};

/// Usable verdicts of an answer.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// Verdicts, in the order of the records.
    pub(crate) decisions: Vec<Decision>,
    /// Ids of records without a usable verdict, each with the reason.
    pub(crate) undecided: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct Reply {
    verdicts: Vec<Said>,
}

#[derive(Deserialize)]
struct Said {
    id: String,
    verdict: Verdict,
    #[serde(default)]
    into: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    worked: String,
    #[serde(default)]
    cause: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    steps: Vec<String>,
    #[serde(default)]
    rule: String,
    #[serde(default)]
    applies_when: String,
}

/// Reads the verdicts on `items`. Verdicts on other records are ignored.
///
/// # Errors
///
/// Returns a lower-case fragment that says why the answer has another form.
pub(crate) fn accept(reply: &str, items: &[Item], known: &[Item]) -> Result<Answer, String> {
    let reply: Reply = serde_json::from_str(reply).map_err(|error| error.to_string())?;
    let mut said: HashMap<String, Said> = HashMap::new();
    for verdict in reply.verdicts {
        said.entry(verdict.id.clone()).or_insert(verdict);
    }
    let stays = |id: &str| {
        let verdict = said.get(id).map(|said| said.verdict);
        verdict.is_none_or(|verdict| verdict == Verdict::Keep)
    };
    let mut answer = Answer::default();
    for item in items {
        let usable = said
            .get(&item.id)
            .ok_or_else(|| "the answer has no verdict on it".to_owned())
            .and_then(|said| {
                let into = target(item, said, (items, known), &stays)?;
                Ok(decision(item, said, into))
            });
        match usable {
            Ok(decision) => answer.decisions.push(decision),
            Err(reason) => answer.undecided.push((item.id.clone(), reason)),
        }
    }
    Ok(answer)
}

/// Record that an item is merged into; `None` for other verdicts.
fn target(
    item: &Item,
    said: &Said,
    (items, known): (&[Item], &[Item]),
    stays: &dyn Fn(&str) -> bool,
) -> Result<Option<String>, String> {
    if said.verdict != Verdict::Merge {
        return Ok(None);
    }
    let into = said.into.trim();
    let mut all = known.iter().chain(items);
    let Some(other) = all.find(|other| other.id == into && other.id != item.id) else {
        return Err(format!(
            "it was to be merged into `{into}`, which was not asked about"
        ));
    };
    let is_known = known.iter().any(|known| known.id == into);
    if other.kind != item.kind || other.group != item.group {
        return Err(match item.kind {
            Kind::Fix => format!("it was to be merged into `{into}`, a fix of another error"),
            _ => format!("it was to be merged into `{into}`, a record of another kind or skill"),
        });
    }
    if !is_known && !stays(into) {
        return Err(format!(
            "it was to be merged into `{into}`, which does not stay"
        ));
    }
    Ok(Some(into.to_owned()))
}

fn decision(item: &Item, said: &Said, into: Option<String>) -> Decision {
    let rewording = if said.verdict == Verdict::Keep {
        Rewording {
            worked: said.worked.trim().to_owned(),
            cause: said.cause.clone(),
            name: said.name.clone(),
            steps: said.steps.clone(),
            rule: said.rule.clone(),
            applies_when: said.applies_when.clone(),
        }
    } else {
        Rewording::default()
    };
    Decision {
        id: item.id.clone(),
        kind: item.kind,
        verdict: said.verdict,
        into,
        reason: sentence(&said.reason).unwrap_or_default(),
        rewording,
    }
}
