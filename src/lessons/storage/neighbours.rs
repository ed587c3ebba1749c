//! Lessons that say nearly the same as a new one, by their words.
//!
//! No model is loaded: rare words weigh more, and a shared command or error counts. Whether two lessons
//! are the same is for the agent or the person to say; only equal words are the same by themselves.

use std::collections::{HashMap, HashSet};

use crate::model::{Applies, Procedure};

/// Least likeness of a neighbour, from 0 to 1.
const NEAR: f64 = 0.3;
/// Maximum number of neighbours.
const MOST: usize = 3;

/// A lesson near a new one.
#[derive(Debug, Clone, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct Neighbour {
    /// Id of the lesson.
    pub id: String,
    /// The lesson.
    pub lesson: String,
}

/// Returns the nearest of `all`, nearest first.
pub(crate) fn nearest(lesson: &str, applies: &Applies, all: &[&Procedure]) -> Vec<Neighbour> {
    let texts: Vec<HashSet<String>> = all
        .iter()
        .map(|known| words(&known.lesson, known.applies.as_ref()))
        .collect();
    let own = words(lesson, Some(applies));
    let mut known_in: HashMap<&str, usize> = HashMap::new();
    for text in &texts {
        for word in text {
            *known_in.entry(word).or_default() += 1;
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "numbers of lessons stay far below 2^52")]
    let weight = |word: &str| {
        let number = known_in.get(word).copied().unwrap_or_default();
        (1.0 + (texts.len() + 1) as f64 / (number + 1) as f64).ln()
    };
    let total = |words: &HashSet<String>| words.iter().map(|word| weight(word)).sum::<f64>();
    let mut near: Vec<(f64, &Procedure)> = texts
        .iter()
        .zip(all)
        .map(|(text, known)| {
            let shared: f64 = text.intersection(&own).map(|word| weight(word)).sum();
            let least = total(text).min(total(&own)).max(f64::MIN_POSITIVE);
            (shared / least, *known)
        })
        .filter(|(score, _)| *score >= NEAR)
        .collect();
    near.sort_by(|a, b| {
        b.0.total_cmp(&a.0)
            .then_with(|| a.1.procedure_id.cmp(&b.1.procedure_id))
    });
    let near = near.into_iter().take(MOST).map(|(_, known)| Neighbour {
        id: known.procedure_id.clone(),
        lesson: known.lesson.clone(),
    });
    near.collect()
}

/// Returns `true` if two lessons have the same words.
pub(crate) fn is_same(a: &str, b: &str) -> bool {
    plain(a) == plain(b)
}

fn plain(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Words of a lesson and of its conditions.
fn words(lesson: &str, applies: Option<&Applies>) -> HashSet<String> {
    let mut words: HashSet<String> = plain(lesson).into_iter().collect();
    if let Some(applies) = applies {
        let phrases = applies
            .commands
            .iter()
            .chain(&applies.errors)
            .chain(&applies.expected);
        words.extend(phrases.flat_map(|phrase| plain(phrase)));
    }
    words.retain(|word| word.len() > 2);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_share_rare_words() {
        let of = |id: &str, lesson: &str| Procedure {
            procedure_id: id.to_owned(),
            lesson: lesson.to_owned(),
            ..Procedure::default()
        };
        let all = [
            of(
                "PROC-001",
                "Run the tests with `PYTHONPATH=src bin/py -m pytest`.",
            ),
            of("PROC-002", "Start the gateway with `make db-up` first."),
            of(
                "PROC-003",
                "Run the build with `BUILD_EPOCH=0 tools/build <bundle>`.",
            ),
        ];
        let all: Vec<&Procedure> = all.iter().collect();
        let near = nearest(
            "Use `PYTHONPATH=src bin/py -m pytest -q` for tests.",
            &Applies::default(),
            &all,
        );
        assert_eq!(near.len(), 1, "{near:?}");
        assert_eq!(near[0].id, "PROC-001");
        assert!(is_same("Run `make db-up`.", "run make db-up"));
        assert!(!is_same("Run `make db-up`.", "run make db-down"));
    }
}
