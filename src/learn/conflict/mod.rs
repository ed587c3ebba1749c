//! Detects duplicate and contradictory rules.
//!
//! Rules are compared by their claims (see `claim`). Two rules are duplicates if they share a claim
//! with the same stance and circumstances. They contradict each other if one is for what the other
//! is against, if they demand different numbers, or if they choose mutually exclusive things. A
//! rule for one language or place is an exception to a general rule, not a contradiction. Vector
//! similarity is only a second opinion: it finds duplicates in other words, among rules without
//! opposed claims.
//!
//! `pair` compares two claims and uses `alternatives`; this module compares two rules.
//!
//! Looking up rules and resolving conflicts happen elsewhere.

mod alternatives;
mod pair;

use std::collections::{BTreeSet, HashMap};

use super::claim::{Claim, Stance, Terms, claims, numbers};
use pair::{common_thing, excluded, is_same, meets, opposed, similarity, text_of};

/// Minimum share of common words for a partial match, which also needs `SOUNDS_ALIKE`.
const PERHAPS_ALIKE: f64 = 0.3;
/// Minimum share of common words for duplicates that demand one thing among others. A shared
/// prohibition suffices by itself.
const NEAR: f64 = 0.2;
/// Minimum cosine of similar rules.
const SOUNDS_ALIKE: f64 = 0.7;
/// Minimum cosine of rules with the same meaning.
const SOUNDS_THE_SAME: f64 = 0.85;
/// Relation between two rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// Both demand the same.
    Duplicate,
    /// Both cannot be obeyed at once.
    Contradiction,
}

/// Relation between two rules, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Relation of the rules.
    pub relation: Relation,
    /// Reason, as a lower-case fragment.
    pub reason: String,
}

/// Rule prepared for comparison.
#[derive(Debug, Clone)]
pub struct Statement {
    claims: Vec<Claim>,
    numbers: Vec<String>,
    words: String,
}

impl Statement {
    /// Parses a rule.
    pub fn of(rule: &str) -> Self {
        Self {
            claims: claims(rule),
            numbers: numbers(rule),
            words: rule
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .to_lowercase(),
        }
    }

    /// Returns true if the rule has a single term: `Use tabs`.
    fn is_short(&self) -> bool {
        matches!(&self.claims[..], [claim] if claim.all().len() == 1)
    }

    /// Terms of all claims.
    fn terms(&self) -> BTreeSet<String> {
        let mut terms = BTreeSet::new();
        for claim in &self.claims {
            terms.extend(claim.all());
        }
        terms
    }
}

/// Compares all pairs of rules. Returns index pairs, lower index first, with findings. `cosine`
/// returns the cosine of two rules' vectors, or `None` without vectors.
pub fn compare(
    rules: &[Statement],
    cosine: &dyn Fn(usize, usize) -> Option<f64>,
) -> Vec<(usize, usize, Finding)> {
    // Rules without a common word can only match by cosine.
    let mut holding: HashMap<&str, Vec<usize>> = HashMap::new();
    let terms: Vec<Terms> = rules.iter().map(Statement::terms).collect();
    for (at, terms) in terms.iter().enumerate() {
        for term in terms {
            holding.entry(term).or_default().push(at);
        }
    }
    let mut found = Vec::new();
    for (at, rule) in rules.iter().enumerate() {
        let sharing: BTreeSet<usize> = terms[at]
            .iter()
            .flat_map(|term| &holding[term.as_str()])
            .copied()
            .filter(|other| *other > at)
            .collect();
        for (other, statement) in rules.iter().enumerate().skip(at + 1) {
            let sound = cosine(at, other);
            let worth_it = sharing.contains(&other)
                || rule.words == statement.words
                || sound.is_some_and(|sound| sound >= SOUNDS_THE_SAME)
                || (rule.is_short() && statement.is_short());
            if worth_it && let Some(finding) = relation(rule, statement, sound) {
                found.push((at, other, finding));
            }
        }
    }
    found
}

/// Returns true if every claim of the new rule is also in the known one, with the same words.
/// `When a student applies` differs from `when a veteran applies`, even if the rest is equal.
pub fn adds_nothing(new: &Statement, known: &Statement) -> bool {
    let stands_there = |claim: &Claim| {
        known.claims.iter().any(|other| {
            claim.stance == other.stance
                && is_same(claim, other)
                && claim.all().is_subset(&other.all())
        })
    };
    new.words == known.words
        || (new.numbers == known.numbers && new.claims.iter().all(stands_there))
}

/// Finding for two rules with identical words.
pub fn same_words() -> Finding {
    Finding {
        relation: Relation::Duplicate,
        reason: "both have the same words".to_owned(),
    }
}

/// Relation between two rules; `None` if they are unrelated. `cosine` is that of their vectors, if
/// there are any.
pub fn relation(a: &Statement, b: &Statement, cosine: Option<f64>) -> Option<Finding> {
    if a.words == b.words {
        return Some(same_words());
    }
    let near = similarity(&a.terms(), &b.terms()) >= NEAR;
    let shared = pairs(a, b)
        .filter(|(x, y)| x.stance == y.stance && is_same(x, y))
        .find(|(x, _)| near || x.stance == Stance::Against);
    if shared.is_none()
        && let Some(reason) = pairs(a, b)
            .find_map(|(x, y)| opposed(x, y))
            .or_else(|| reversed(a, b))
    {
        return found(Relation::Contradiction, reason);
    }
    if let Some(reason) = pairs(a, b).find_map(|(x, y)| excluded(x, y)) {
        return found(Relation::Contradiction, reason);
    }
    let (one, other) = (&a.numbers, &b.numbers);
    let numbers_differ = !one.is_empty() && !other.is_empty() && one != other;
    if let Some((x, _)) = shared {
        if !numbers_differ {
            return found(
                Relation::Duplicate,
                format!("both are {} {}", side(x.stance), text_of(&x.whole())),
            );
        }
        let reason = format!(
            "one says {}, the other {}",
            one.join(", "),
            other.join(", ")
        );
        return (one.len() == other.len()).then_some(Finding {
            relation: Relation::Contradiction,
            reason,
        });
    }
    let same = !numbers_differ && cosine.is_some_and(|cosine| sounds_the_same(a, b, cosine));
    same.then(|| Finding {
        relation: Relation::Duplicate,
        reason: "both say it in other words".to_owned(),
    })
}

/// Returns true if two rules with different claims mean the same, by their cosine.
fn sounds_the_same(a: &Statement, b: &Statement, cosine: f64) -> bool {
    let common = |x: &Claim, y: &Claim| {
        similarity(&x.all(), &y.all()).max(similarity(&x.whole(), &y.whole()))
    };
    let opposite = pairs(a, b).any(|(x, y)| x.stance != y.stance && common(x, y) > 0.0);
    let exceptions = |of: &Statement| of.claims.iter().any(|claim| claim.exception);
    if opposite || exceptions(a) != exceptions(b) || apart(a, b) {
        return false;
    }
    let partly = || pairs(a, b).any(|(x, y)| x.stance == y.stance && common(x, y) >= PERHAPS_ALIKE);
    cosine >= SOUNDS_THE_SAME || (cosine >= SOUNDS_ALIKE && partly())
}

#[expect(clippy::unnecessary_wraps, reason = "what its callers answer")]
fn found(relation: Relation, reason: String) -> Option<Finding> {
    Some(Finding { relation, reason })
}

fn pairs<'a>(a: &'a Statement, b: &'a Statement) -> impl Iterator<Item = (&'a Claim, &'a Claim)> {
    a.claims
        .iter()
        .flat_map(|x| b.claims.iter().map(move |y| (x, y)))
}

/// Reason for a contradiction if two rules make the same choice in reverse. In `A over B for C` the
/// scope belongs to both sides, even if only one claim carries it.
fn reversed(a: &Statement, b: &Statement) -> Option<String> {
    let opposite = |x: &&Claim, y: &&Claim| {
        x.stance != y.stance && meets(&x.scope, &y.scope) && common_thing(x, y).is_some()
    };
    let of = |stance: Stance| {
        let mut found = pairs(a, b).filter(|(x, _)| x.stance == stance);
        found.find(|(x, y)| opposite(x, y))
    };
    let (x, _) = of(Stance::For)?;
    let (y, _) = of(Stance::Against)?;
    Some(format!(
        "one prefers {} to {}, the other the reverse",
        text_of(&x.whole()),
        text_of(&y.whole())
    ))
}

/// Returns true if the rules' scopes have nothing in common.
fn apart(a: &Statement, b: &Statement) -> bool {
    pairs(a, b).all(|(x, y)| !meets(&x.scope, &y.scope))
}

fn side(stance: Stance) -> &'static str {
    match stance {
        Stance::For => "for",
        Stance::Against => "against",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: Option<Relation>, pairs: &[(&str, &str)]) {
        for (a, b) in pairs {
            let (x, y) = (Statement::of(a), Statement::of(b));
            for (x, y) in [(&x, &y), (&y, &x)] {
                let found = relation(x, y, None);
                let named = found.as_ref().map(|found| found.relation);
                assert_eq!(named, expected, "{a} | {b}: {found:?} {x:?} {y:?}");
            }
        }
    }

    #[test]
    fn the_same_demand_is_found_in_other_words() {
        let pairs = [
            ("Use ISO dates", "use ISO  dates"),
            (
                "Always write dates in ISO format",
                "Dates must always be written in ISO format.",
            ),
            (
                "Never name competitors",
                "Do not name competitors; say \"other vendors\" instead",
            ),
            ("No emojis in headings", "Avoid using emojis in headings"),
            (
                "Prefer euros over dollars",
                "Use euros rather than dollars for amounts",
            ),
            ("Keep the signature", "Never remove the signature"),
            (
                "Never recommend candidates without references",
                "Do not recommend candidates who have no references",
            ),
            ("Return at most 3 items", "Return 3 items at most."),
        ];
        check(Some(Relation::Duplicate), &pairs);
    }

    #[test]
    fn the_opposite_is_found_however_alike_it_sounds() {
        let pairs = [
            (
                "Always include the candidate's name",
                "Never include the candidate's name",
            ),
            ("Prefer euros over dollars", "Prefer dollars over euros"),
            (
                "Prefer tables over lists in reports",
                "Prefer lists over tables in reports",
            ),
            ("Use tabs for indentation", "Use spaces for indentation"),
            (
                "Scores below 60 should be rejected",
                "Scores below 50 should be rejected",
            ),
            (
                "Write the summary in German",
                "Write the summary in English",
            ),
            (
                "Delete temporary tables afterwards",
                "Keep temporary tables afterwards",
            ),
            ("Round totals to whole euros", "Totals must not be rounded"),
            (
                "Sort results in ascending order",
                "Results should be sorted in descending order",
            ),
        ];
        check(Some(Relation::Contradiction), &pairs);
    }

    #[test]
    fn of_many_rules_those_are_found_that_go_together() {
        let rules = [
            "Use tabs", "Use spaces", "Never log names", "Do not log names", "Be brief",
        ];
        let rules = rules.map(Statement::of);
        let found = compare(&rules, &|_, _| None);
        let found: Vec<_> = found.iter().map(|(a, b, f)| (*a, *b, f.relation)).collect();
        let expected = [(0, 1, Relation::Contradiction), (2, 3, Relation::Duplicate)];
        assert_eq!(found, expected);
        let sounds = |a: usize, b: usize| (a + b == 8).then_some(0.9);
        assert_eq!(compare(&rules[4..], &sounds).len(), 0);
        let others = ["Be brief", "Answer concisely"].map(Statement::of);
        assert_eq!(compare(&others, &|_, _| Some(0.9)).len(), 1);
    }

    #[test]
    fn a_duplicate_may_say_more() {
        let of = Statement::of;
        assert!(adds_nothing(
            &of("Do not name rivals"),
            &of("Never name rivals; be polite")
        ));
        assert!(!adds_nothing(
            &of("Never name rivals; be polite"),
            &of("Do not name rivals")
        ));
    }

    #[test]
    fn what_only_shares_words_is_neither() {
        let pairs = [
            ("Mention the salary range", "Mention the start date"),
            (
                "Never mention competitors by name",
                "Mention the customer by name",
            ),
            (
                "Do not use abbreviations in titles",
                "Use abbreviations in tables",
            ),
            ("Avoid globals", "Use globals in configuration scripts"),
            (
                "Do not return more than 3 items",
                "Return at least one item",
            ),
            (
                "Use snake_case for Python functions",
                "Use camelCase for Java methods",
            ),
            (
                "Use bullet points for lists",
                "Use numbered headings for chapters",
            ),
            (
                "Weigh system design separately",
                "Weigh communication higher for leads",
            ),
            ("No globals unless unavoidable", "Never use globals"),
        ];
        check(None, &pairs);
    }
}
