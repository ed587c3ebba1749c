//! Rules that a new rule may repeat, narrow or contradict: the nearest ones of its skill.
//!
//! The program decides alone only what is sure (see `learn::conflict`). Of the rest a person sees the
//! nearest rules and says which are the same. The search is that of `memctl memory search`; with an
//! embedder on a server it uses keywords alone, because a correction must not wait for a network.

use std::cmp::Ordering;

use serde::Serialize;

use crate::learn::rewrite::Rewrite;
use crate::model::{Kind, Reflexion, SkillPath};
use crate::search::{Filter, Fusion};
use crate::store::Selection;
use crate::workspace::{Error, Workspace};

use super::contradictions::replaced_by;
use super::find::{FindOptions, Found, find, rounded};

/// Maximum number of similar rules to show.
const SHOWN: usize = 3;
/// Number of results to read: some are retired, superseded, or named already.
const READ: usize = 12;
/// Minimum cosine. Of 100 pairs of rules about different things one is above 0.41, and of 100 with
/// the same meaning 90 are above 0.34.
const FLOOR: f64 = 0.3;

/// Rule near a new one.
#[derive(Debug, Serialize)]
pub struct SimilarRule {
    /// Id of the rule.
    pub id: String,
    /// Text of the rule.
    pub rule: String,
    /// Cosine of the two rules' vectors, from 0 to 1; `None` if they were compared by keywords.
    pub score: Option<f64>,
}

/// Returns the rules of the same skill that are nearest to a rule, best first, without those in
/// `named`.
pub(crate) fn similar_rules(
    workspace: &Workspace,
    rule: &Reflexion,
    named: &[&str],
) -> Result<Vec<SimilarRule>, Error> {
    let skill: SkillPath = rule.skill.parse()?;
    let of_skill = Selection {
        skill: Some(&skill),
        newest: None,
    };
    // The first rule of a skill need not wait for the embedder.
    if workspace.store.list::<Reflexion>(&of_skill)?.records.len() < 2 {
        return Ok(Vec::new());
    }
    let is_here = matches!(workspace.providers.embedder.destination(), Ok(None));
    let options = FindOptions {
        query: rule.rule.clone(),
        limit: READ,
        filter: Filter {
            kind: Some(Kind::Reflexion),
            skill: Some(skill),
            ..Filter::default()
        },
        fusion: if is_here {
            Fusion::default()
        } else {
            Fusion::Keyword
        },
        rewrite: Rewrite::Not,
        explain: true,
    };
    let found = find(workspace, &options, &mut |_, _| {})?.results;
    let cosine = |found: &Found| found.explain.as_ref().and_then(|why| why.semantic);
    let is_near = |found: &Found| match cosine(found) {
        Some(cosine) => cosine >= FLOOR,
        None => found
            .explain
            .as_ref()
            .is_some_and(|why| why.matched.len() > 1),
    };
    let mut near = Vec::new();
    for found in found {
        let is_other = found.id != rule.reflexion_id && !named.contains(&found.id.as_str());
        let is_used = matches!(found.status.as_deref(), Some("active" | "candidate"));
        if is_other && is_used && !found.pulled && is_near(&found) {
            let other: Reflexion = workspace.store.get(&found.id)?;
            near.push(SimilarRule {
                score: cosine(&found).map(rounded),
                id: found.id,
                rule: other.rule,
            });
        }
    }
    // Words in common rank well in a search; here the meaning decides.
    near.sort_by(|a, b| b.score.partial_cmp(&a.score).unwrap_or(Ordering::Equal));
    near.truncate(SHOWN);
    Ok(near)
}

/// Lets a rule take the place of another, which stays in its file and names it as its successor.
pub fn replace_rule(workspace: &Workspace, rule: &str, other: &str) -> Result<(), Error> {
    let changes = replaced_by(rule);
    workspace
        .writer()?
        .update(Kind::Reflexion, other, &changes)?;
    Ok(())
}
