//! Places later notes and rules before earlier ones about the same thing.
//!
//! People change a decision by writing a new one, and rarely say which record it replaces. The earlier record
//! often has more words of the query, so the ranking alone would show an outdated decision. Two signs move a
//! later record before an earlier one with a similar meaning:
//! - it says that it changes something ("amended", "new rule", "from now on");
//! - both match the query equally well: nearly the same text, the same words of the query.
//!
//! Without a sign nothing moves: on texts with random dates, an order by date alone lost half of the first
//! hits. A record never moves before one with a higher trust.
//!
//! Deliberately absent: a decision that the earlier record is wrong. `--replaces` says that.

use std::collections::BTreeSet;

use memctl_search::{Nearness, words};

/// Number of hits that are compared.
pub(crate) const COMPARED: usize = 10;

/// Minimum share of the earlier one's score that a later one has, if it says that it changes
/// something, and if both answer equally well.
const CHANGED_SCORE: f64 = 0.35;
const EQUAL_SCORE: f64 = 0.95;
/// Minimum cosine of the nearest passages of two records about one thing, and of the whole texts of
/// two that are nearly the same; without vectors, the share of the shorter one's words in both.
const ABOUT_ONE: (f32, f64) = (0.6, 0.35);
const ALIKE: (f32, f64) = (0.8, 0.7);

/// Forms of a change, in lower case. A form at the beginning of a text ends with a colon.
const FORMS: &[&str] = &[
    "amend", "supersed", "overrul", "changed our mind", "changed my mind", "changed their mind",
    "new rule", "scrapped", "decision revised", "revised decision", "revised rule", "rule changed",
    "changed rule", "replaces the", "replaces what", "went back on", "goes back on", "from now on",
    "anymore", "any more", "change:", "changed:", "update:", // de
    "geändert", "ersetzt die", "ersetzt den", "ersetzt das", "ab sofort", "ab jetzt",
    "nicht mehr", // fr
    "désormais", "dorénavant", "modifié", "remplace la", "remplace le", // es
    "a partir de ahora", "ya no", "reemplaza", "sustituye", // pt, it
    "a partir de agora", "substitui", "d'ora in poi", "sostituisce", // ja, zh, ko, ru
    "今後は", "変更:", "改为", "从现在起", "앞으로는", "변경:", "отныне", "больше не", "заменяет",
];

/// Facts about a hit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dated<'t> {
    /// Number of the document in the ranker.
    pub(crate) document: usize,
    /// Records of other groups are about other things; `None` for kinds that are never amended.
    pub(crate) group: Option<u8>,
    /// Time of creation in seconds since 1970; [`i64::MIN`] if unknown.
    pub(crate) created: i64,
    /// Trust; a later record needs as much as the earlier one.
    pub(crate) standing: u8,
    pub(crate) score: f64,
    pub(crate) text: &'t str,
}

/// Returns the new order of hits, as indices, each with the index of the hit whose place it takes.
/// `query_words` are the words of the query; hits after the first [`COMPARED`] stay where they are.
pub(crate) fn newer_first(
    hits: &[Dated<'_>],
    query_words: &[String],
    near: impl Fn(usize, usize) -> Option<Nearness>,
) -> Vec<(usize, Option<usize>)> {
    let compared = hits.len().min(COMPARED);
    let of_hit = |hit: &Dated<'_>| words(hit.text).into_iter().collect::<BTreeSet<String>>();
    let words_of: Vec<BTreeSet<String>> = hits[..compared].iter().map(of_hit).collect();
    let replaces = |later: usize, earlier: usize| {
        let (new, old) = (&hits[later], &hits[earlier]);
        let share = new.score / old.score.max(f64::MIN_POSITIVE);
        let may = new.group.is_some()
            && new.group == old.group
            && new.standing >= old.standing
            && (new.created, new.document) > (old.created, old.document)
            && old.created > i64::MIN
            && share >= CHANGED_SCORE;
        if !may {
            return false;
        }
        let (is_about_one, is_alike) = near(new.document, old.document).map_or_else(
            || {
                let shared = shared(&words_of[later], &words_of[earlier]);
                (shared >= ABOUT_ONE.1, shared >= ALIKE.1)
            },
            |near| (near.passages >= ABOUT_ONE.0, near.whole >= ALIKE.0),
        );
        let answers =
            |word: &&String| !words_of[earlier].contains(*word) || words_of[later].contains(*word);
        let is_equal =
            is_alike && share >= EQUAL_SCORE && query_words.iter().all(|word| answers(&word));
        is_equal || (is_about_one && says_change(new.text))
    };
    let mut rest: Vec<usize> = (0..compared).collect();
    let mut order = Vec::with_capacity(hits.len());
    while let Some(first) = rest.first().copied() {
        let later = rest[1..]
            .iter()
            .copied()
            .filter(|other| replaces(*other, first));
        let newest = later.max_by_key(|other| (hits[*other].created, hits[*other].document));
        let next = newest.unwrap_or(first);
        order.push((next, newest.map(|_| first)));
        rest.retain(|other| *other != next);
    }
    order.extend((compared..hits.len()).map(|other| (other, None)));
    order
}

/// Share of the words of the smaller set that both have.
#[expect(clippy::cast_precision_loss, reason = "a text has few words")]
fn shared(one: &BTreeSet<String>, other: &BTreeSet<String>) -> f64 {
    let common = one.intersection(other).count();
    common as f64 / one.len().min(other.len()).max(1) as f64
}

/// Returns `true` if a text says that it changes something that was said before.
fn says_change(text: &str) -> bool {
    let lower = text.to_lowercase();
    FORMS.iter().any(|form| match form.strip_suffix(':') {
        Some(begin) => lower
            .trim_start()
            .strip_prefix(begin)
            .is_some_and(|rest| rest.starts_with(':')),
        None => lower.contains(form),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(document: usize, created: i64, score: f64, text: &str) -> Dated<'_> {
        Dated {
            document,
            group: Some(0),
            created,
            standing: 1,
            score,
            text,
        }
    }

    #[test]
    fn only_a_sign_moves_a_later_record() {
        let check = |later: Dated<'_>, whole: f32, passages: f32, expected: bool| {
            let hits = [hit(0, 10, 1.0, "ship on thursday"), later];
            let query_words = ["ship".to_owned(), "thursday".to_owned()];
            let order = newer_first(&hits, &query_words, |_, _| {
                Some(Nearness { whole, passages })
            });
            let moved = order == [(1, Some(0)), (0, None)];
            assert_eq!(moved, expected, "{:?} {whole} {passages}", hits[1]);
            assert!(moved || order == [(0, None), (1, None)]);
        };
        let amended = hit(1, 20, 0.5, "Amended: ship on friday");
        check(amended, 0.2, 0.7, true);
        check(amended, 0.5, 0.5, false);
        check(
            Dated {
                score: 0.3,
                ..amended
            },
            0.7,
            0.7,
            false,
        );
        check(
            Dated {
                created: 5,
                ..amended
            },
            0.7,
            0.7,
            false,
        );
        check(
            Dated {
                created: 10,
                ..amended
            },
            0.7,
            0.7,
            true,
        );
        check(
            Dated {
                standing: 0,
                ..amended
            },
            0.7,
            0.7,
            false,
        );
        check(
            Dated {
                group: Some(1),
                ..amended
            },
            0.7,
            0.7,
            false,
        );
        check(
            Dated {
                group: None,
                ..amended
            },
            0.7,
            0.7,
            false,
        );
        let equal = hit(1, 20, 0.97, "ship on friday, not thursday");
        check(equal, 0.9, 0.9, true);
        check(
            Dated {
                score: 0.9,
                ..equal
            },
            0.9,
            0.9,
            false,
        );
        check(equal, 0.7, 0.9, false);
        // The question is about what only the earlier one has.
        check(
            Dated {
                text: "ship on friday",
                ..equal
            },
            0.9,
            0.9,
            false,
        );
    }

    #[test]
    fn newest_of_several_comes_first_and_the_rest_stay() {
        let hits = [
            hit(0, 10, 1.0, "a"),
            hit(1, 20, 0.9, "new rule"),
            hit(2, 30, 0.8, "new rule"),
        ];
        let near = |one: usize, other: usize| {
            let passages = if one + other == 3 { 0.1 } else { 0.9 };
            Some(Nearness {
                whole: 0.0,
                passages,
            })
        };
        let order = newer_first(&hits, &[], near);
        assert_eq!(order, [(2, Some(0)), (1, Some(0)), (0, None)]);
    }

    #[test]
    fn change_is_said_in_other_words_too() {
        for text in [
            "Change: x", "x, from now on", "Das wurde geändert", "从现在起用 x",
        ] {
            assert!(says_change(text), "{text}");
        }
        for text in ["exchange: x", "change the tyres", ""] {
            assert!(!says_change(text), "{text}");
        }
    }
}
