//! Whether two rules say the same, or the opposite.
//!
//! Both are read as claims (see `claim`): two rules are duplicates where they share a claim in the
//! same sense and in the same circumstances, and contradict each other where one is for what the
//! other is against, demands another number, or chooses the other of two things that exclude each
//! other. A rule for one language or place is no contradiction of a general one: it is its exception.
//! How alike two rules sound is no more than a second opinion: it finds duplicates in other
//! words, and only among rules whose claims do not differ.
//!
//! Two claims are compared in `pair`, which knows of `alternatives` too; here it is two rules.
//!
//! Deliberately absent: looking rules up, and deciding which of two holds.

mod alternatives;
mod pair;

use std::collections::{BTreeSet, HashMap};

use super::claim::{Claim, Stance, Terms, claims, numbers};
use pair::{common_thing, excluded, is_same, meets, opposed, similarity, told};

/// Claims may be alike from this share of their words on, if the rules sound alike too.
const PERHAPS_ALIKE: f64 = 0.3;
/// Two rules that demand one thing among others are the same only if they share so much of all
/// their words. What a rule is against says enough by itself.
const NEAR: f64 = 0.2;
/// Rules sound alike from this cosine on, …
const SOUNDS_ALIKE: f64 = 0.7;
/// … and the same from this one on.
const SOUNDS_THE_SAME: f64 = 0.85;
/// How two rules stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// They demand the same.
    Duplicate,
    /// They cannot both be obeyed.
    Contradiction,
}

/// How two rules stand to each other, and by what one sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How they stand to each other.
    pub relation: Relation,
    /// By what one sees it, as a lower-case fragment.
    pub reason: String,
}

/// A rule, taken apart for comparing.
#[derive(Debug, Clone)]
pub struct Statement {
    claims: Vec<Claim>,
    numbers: Vec<String>,
    words: String,
}

impl Statement {
    /// Takes a rule apart.
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

    /// Whether it names one thing and nothing else: `Use tabs`.
    fn is_short(&self) -> bool {
        matches!(&self.claims[..], [claim] if claim.all().len() == 1)
    }

    /// The words that its demands are about.
    fn terms(&self) -> BTreeSet<String> {
        let mut terms = BTreeSet::new();
        for claim in &self.claims {
            terms.extend(claim.all());
        }
        terms
    }
}

/// Compares each of some rules with each other: positions, the lower one first, and what was found.
/// `cosine` is that of two rules' vectors, where there are vectors.
pub fn compare(
    rules: &[Statement],
    cosine: &dyn Fn(usize, usize) -> Option<f64>,
) -> Vec<(usize, usize, Finding)> {
    // Rules that share no word can only be the same by their sound.
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

/// Whether a rule demands nothing that another does not demand as well: each of its claims is one of
/// the other's, in words that all stand there. `When a student applies` is not `when a veteran
/// applies`, however much of the rest is the same.
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

/// What is found of two rules with the same words.
pub fn same_words() -> Finding {
    Finding {
        relation: Relation::Duplicate,
        reason: "both have the same words".to_owned(),
    }
}

/// How two rules stand to each other; `None` where neither says anything about the other. `cosine`
/// is that of their vectors, where there are vectors.
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
                format!("both are {} {}", side(x.stance), told(&x.whole())),
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

/// Whether two rules whose claims are not the same word for word are so by their sound.
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

/// Why two rules cannot both be obeyed: they make the same choice the other way round. In `A over B
/// for C` the place belongs to both sides, so that it need not stand on each.
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
        told(&x.whole()),
        told(&y.whole())
    ))
}

/// Whether the rules name places that have nothing in common.
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
