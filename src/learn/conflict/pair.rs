//! Compares two claims: same demand, or contradiction.
//!
//! Words are weighted: it means little that two claims are both about files. Whole rules, whose
//! claims complement each other, are compared in the parent module.

use super::super::claim::{Claim, Stance, Terms};
use super::alternatives::choices;

/// Minimum similarity of equal claims.
const ALIKE: f64 = 0.6;
/// Minimum similarity of equal scopes.
const SAME_PLACE: f64 = 0.35;
/// Minimum similarity of the other words of two claims that choose differently.
const SAME_REST: f64 = 0.3;
/// Weight of a generic word.
const GENERIC_WEIGHT: f64 = 0.3;
/// Generic words, stemmed as in search.
const GENERIC: &[&str] = &[
    "file", "code", "type", "new", "name", "data", "project", "valu", "function", "method",
    "messag", "text", "item", "thing", "way", "good", "clean", "clear", "strict", "consist",
    "case", "user", "output", "result", "format",
];

/// Returns true if two claims with the same stance demand the same.
pub(super) fn is_same(x: &Claim, y: &Claim) -> bool {
    let things = similarity(&x.whole(), &y.whole());
    let all = similarity(&x.all(), &y.all());
    x.exception == y.exception && (all >= ALIKE || (things >= ALIKE && same_place(x, y)))
}

/// Reason for a contradiction: one claim is for a thing that the other is against, in the same
/// scope.
pub(super) fn opposed(x: &Claim, y: &Claim) -> Option<String> {
    let against = if x.stance == Stance::Against { x } else { y };
    let other = if x.stance == Stance::Against { y } else { x };
    // `Never push to trunk` does not forbid pushing, but `never push` forbids pushing to trunk.
    if x.stance == y.stance || !same_place(x, y) || !covers(other, &against.about) {
        return None;
    }
    Some(format!(
        "one is for {}, the other against",
        text_of(&common_thing(x, y)?)
    ))
}

/// Thing that both claims are about.
pub(super) fn common_thing(x: &Claim, y: &Claim) -> Option<Terms> {
    let each = x
        .things
        .iter()
        .flat_map(|x| y.things.iter().map(move |y| (x, y)));
    let whole = (x.whole(), y.whole());
    each.chain([(&whole.0, &whole.1)])
        .find(|(x, y)| similarity(x, y) >= ALIKE)
        .map(|(x, _)| x.clone())
}

/// Reason for a contradiction: the claims choose mutually exclusive things.
pub(super) fn excluded(x: &Claim, y: &Claim) -> Option<String> {
    if (x.stance, y.stance) != (Stance::For, Stance::For) {
        return None;
    }
    let (one, other) = (x.all(), y.all());
    let rest = |terms: &Terms, word: &str| -> Terms {
        terms.iter().filter(|term| *term != word).cloned().collect()
    };
    let (chosen, instead) = choices(&one, &other).find(|(chosen, instead)| {
        let (rest_x, rest_y) = (rest(&one, chosen), rest(&other, instead));
        chosen != instead
            && (rest_x.is_empty() || rest_y.is_empty() || similarity(&rest_x, &rest_y) >= SAME_REST)
    })?;
    Some(format!("one says `{chosen}`, the other `{instead}`"))
}

/// Returns true if neither claim has a scope, or if their scopes overlap.
fn same_place(x: &Claim, y: &Claim) -> bool {
    x.scope.is_empty() == y.scope.is_empty() && meets(&x.scope, &y.scope)
}

/// Returns true if a claim mentions one of these circumstances, or if there are none.
fn covers(claim: &Claim, about: &Terms) -> bool {
    about.is_empty() || claim.all().intersection(about).next().is_some()
}

pub(super) fn meets(x: &Terms, y: &Terms) -> bool {
    x.is_empty() || y.is_empty() || similarity(x, y) >= SAME_PLACE
}

/// Weighted Jaccard index of two sets of words.
pub(super) fn similarity(x: &Terms, y: &Terms) -> f64 {
    let weight = |word: &String| {
        if GENERIC.contains(&word.as_str()) {
            GENERIC_WEIGHT
        } else {
            1.0
        }
    };
    let all: f64 = x.union(y).map(weight).sum();
    let common: f64 = x.intersection(y).map(weight).sum();
    if all > 0.0 { common / all } else { 0.0 }
}

/// Terms, formatted for a reason.
pub(super) fn text_of(terms: &Terms) -> String {
    let terms: Vec<&str> = terms.iter().map(String::as_str).collect();
    format!("`{}`", terms.join(" "))
}
