//! Demands that a person made in more than one session.
//!
//! The gate for lasting messages chooses them, and the built-in embedder says which are about the same. The
//! newest words are shown. What a rule in force says already is not repeated.

use std::collections::HashSet;
use std::path::PathBuf;

use memctl_redact::Clean;
use memctl_search::embedder::built_in;
use memctl_sessions::{Session, Speaker};

use super::{Repeat, RepeatKind, SESSIONS, Waits};
use crate::model::Reflexion;
use crate::rules::hearing::{self, Message};
use crate::store::workspace::Error;
use crate::store::{Here, Scoped, Selection};

/// Maximum number of messages that are compared, the newest ones.
const COMPARED: usize = 80;
/// Minimum cosine of two messages about the same, and of a rule that says what a message says.
const SAME: f32 = 0.65;
/// Minimum cosine where there are only two of them. In real sessions, pairs below it were tasks about one thing,
/// and no demands.
const SAME_TWICE: f32 = 0.8;
/// Maximum length of what is shown, in characters: that of a rule.
const LONGEST: usize = 240;

/// Message that may be lasting.
#[derive(Debug)]
pub(super) struct Said {
    session: usize,
    text: String,
}

/// Lasting messages of a session, but for those that another session file has too.
pub(super) fn said(session: &Session, copies: &HashSet<usize>, number: usize) -> Vec<Said> {
    let by_person = session.remarks.iter().rev().filter(|remark| {
        let is_copy =
            copies.contains(&remark.before) && copies.contains(&remark.before.saturating_sub(1));
        remark.by == Speaker::User && !is_copy
    });
    let lasting = by_person.filter_map(|remark| {
        let text = hearing::demands(&Message::read(&remark.text, "", "")?.text)?;
        if text.chars().count() > LONGEST {
            return None;
        }
        Some(Said {
            session: number,
            text: Clean::of_owned(text).into_string(),
        })
    });
    lasting.collect()
}

/// Groups messages about the same, without those that a rule in force says. They come newest first.
pub(super) fn repeated(
    store: &Scoped,
    here: &Here<'_>,
    mut said: Vec<Said>,
) -> Result<Vec<Repeat>, Error> {
    said.truncate(COMPARED);
    let sessions: HashSet<usize> = said.iter().map(|one| one.session).collect();
    if sessions.len() < SESSIONS {
        return Ok(Vec::new());
    }
    let mut rules = store.list::<Reflexion>(&Selection::default())?.records;
    rules.retain(|rule| {
        let is_open = rule.is_in_use() || rule.is_candidate();
        rule.skill.is_empty() && is_open && here.covers(rule)
    });
    let texts = said.iter().map(|one| one.text.as_str());
    let texts: Vec<&str> = texts.chain(rules.iter().map(|rule| &*rule.rule)).collect();
    let vectors = built_in(true)?.embed(&texts)?;
    let (own, of_rules) = vectors.split_at(said.len());
    let cosine = |a: &[f32], b: &[f32]| -> f32 { a.iter().zip(b).map(|(x, y)| x * y).sum() };
    let mut taken = vec![false; said.len()];
    let mut all = Vec::new();
    for at in 0..said.len() {
        let alike: Vec<usize> = (at..said.len())
            .filter(|other| !taken[*other] && cosine(&own[at], &own[*other]) >= SAME)
            .collect();
        let sessions: HashSet<usize> = alike.iter().map(|at| said[*at].session).collect();
        let is_close = |other: &usize| *other == at || cosine(&own[at], &own[*other]) >= SAME_TWICE;
        let is_enough = sessions.len() > SESSIONS || alike.iter().all(is_close);
        if taken[at] || sessions.len() < SESSIONS || !is_enough {
            continue;
        }
        for other in &alike {
            taken[*other] = true;
        }
        let mut known = rules.iter().zip(of_rules);
        let rule = known.find(|(_, vector)| cosine(&own[at], vector) >= SAME);
        let waits = match rule {
            Some((rule, _)) if rule.is_in_use() => continue,
            rule => rule.map(|(rule, _)| Waits {
                id: rule.reflexion_id.clone(),
                text: rule.rule.clone(),
            }),
        };
        all.push(Repeat {
            kind: RepeatKind::Correction,
            times: alike.len(),
            sessions: sessions.len(),
            calls: 0,
            tokens: 0,
            what: said[at].text.clone(),
            error: String::new(),
            worked: String::new(),
            waits,
            path: PathBuf::new(),
        });
    }
    Ok(all)
}
