//! Two claims side by side: whether they demand the same, or cannot both be obeyed.
//!
//! Words are weighed: that two claims are both about files says little. Deliberately absent: whole
//! rules, whose claims may make up for each other.

use super::super::claim::{Claim, Stance, Terms};
use super::alternatives::choices;

/// Claims are alike from this share of their words on.
const ALIKE: f64 = 0.6;
/// Two places are the same from this share of their words on.
const SAME_PLACE: f64 = 0.35;
/// What two claims say besides the thing that each chooses is the same from this share of words on.
const SAME_REST: f64 = 0.3;
/// What a word weighs that could stand in any rule.
const GENERIC_WEIGHT: f64 = 0.3;
/// Words that could stand in any rule, as the search stems them.
const GENERIC: &[&str] = &[
    "file", "code", "type", "new", "name", "data", "project", "valu", "function", "method",
    "messag", "text", "item", "thing", "way", "good", "clean", "clear", "strict", "consist",
    "case", "user", "output", "result", "format",
];

/// Whether two claims of the same sense demand the same.
pub(super) fn is_same(x: &Claim, y: &Claim) -> bool {
    let things = similarity(&x.whole(), &y.whole());
    let all = similarity(&x.all(), &y.all());
    x.exception == y.exception && (all >= ALIKE || (things >= ALIKE && same_place(x, y)))
}

/// Why two claims cannot both be obeyed: one is against what the other is for, at the same place.
pub(super) fn opposed(x: &Claim, y: &Claim) -> Option<String> {
    let against = if x.stance == Stance::Against { x } else { y };
    let other = if x.stance == Stance::Against { y } else { x };
    // `Never push to trunk` says nothing against pushing; `never push` says something against
    // pushing to trunk.
    if x.stance == y.stance || !same_place(x, y) || !covers(other, &against.about) {
        return None;
    }
    Some(format!(
        "one is for {}, the other against",
        told(&common_thing(x, y)?)
    ))
}

/// The thing that two claims are about.
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

/// Why two claims cannot both be obeyed: each chooses another of things that exclude each other.
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

/// Whether neither names a place, or both name places that have something in common.
fn same_place(x: &Claim, y: &Claim) -> bool {
    x.scope.is_empty() == y.scope.is_empty() && meets(&x.scope, &y.scope)
}

/// Whether a claim speaks of one of these circumstances, where there are any.
fn covers(claim: &Claim, about: &Terms) -> bool {
    about.is_empty() || claim.all().intersection(about).next().is_some()
}

pub(super) fn meets(x: &Terms, y: &Terms) -> bool {
    x.is_empty() || y.is_empty() || similarity(x, y) >= SAME_PLACE
}

/// The share of their weight that two sets of words have in common (a weighted Jaccard index).
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

/// Words as they are told in a reason.
pub(super) fn told(terms: &Terms) -> String {
    let terms: Vec<&str> = terms.iter().map(String::as_str).collect();
    format!("`{}`", terms.join(" "))
}
