//! Rules that the user's own text in a file says already.
//!
//! Equal words decide alone: such a rule is left out of the block. A near statement is only shown,
//! because similar words may say the opposite.

use memctl_search::embedder::built_in;

use crate::model::text::{key_words, plain_words, similarity};
use crate::store::workspace::Error;
use crate::upkeep::exchange::notes;

/// Maximum number of statements that are compared with a rule by their meaning.
const COMPARED: usize = 4;
/// Minimum cosine of a near statement. Of 100 pairs of rules about different things one is above
/// 0.41.
const NEAR: f64 = 0.6;
/// Maximum length of a shown statement, in characters.
const SHOWN: usize = 120;

/// Statements of a file, outside of the block.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    /// Sentences and list items of each note, in order.
    notes: Vec<Vec<String>>,
}

impl Statements {
    /// Reads the parts of a file around its block.
    pub(crate) fn of(parts: &[&str]) -> Self {
        let notes = parts.iter().flat_map(|part| notes::read("", part).records);
        Self {
            notes: notes.map(|note| pieces(&note.text)).collect(),
        }
    }

    /// Returns the statement with the same words as a rule: whole sentences of one note.
    pub(crate) fn same(&self, rule: &str) -> Option<String> {
        let wanted = plain_words(rule);
        if wanted.is_empty() {
            return None;
        }
        self.notes.iter().find_map(|pieces| {
            (0..pieces.len()).find_map(|from| {
                let mut found = Vec::new();
                for (n, piece) in pieces[from..].iter().enumerate() {
                    found.extend(plain_words(piece));
                    if found.len() >= wanted.len() {
                        let text = || shown(&pieces[from..=from + n].join(" "));
                        return (found == wanted).then(text);
                    }
                }
                None
            })
        })
    }

    /// Returns for each rule the nearest statement and its cosine, if it is near.
    pub(crate) fn near(&self, rules: &[&str]) -> Result<Vec<Option<(String, f64)>>, Error> {
        let pieces: Vec<(&str, _)> = self
            .notes
            .iter()
            .flatten()
            .map(|piece| (piece.as_str(), key_words(piece)))
            .collect();
        let candidates: Vec<Vec<&str>> = rules
            .iter()
            .map(|rule| {
                let own = key_words(rule);
                let mut shared: Vec<(f64, &str)> = pieces
                    .iter()
                    .map(|(piece, words)| (similarity(&own, words, &|_| 1.0), *piece))
                    .filter(|(shared, _)| *shared > 0.0)
                    .collect();
                shared.sort_by(|a, b| b.0.total_cmp(&a.0));
                shared
                    .into_iter()
                    .take(COMPARED)
                    .map(|(_, piece)| piece)
                    .collect()
            })
            .collect();
        // The embedder takes a while to load.
        if candidates.iter().all(Vec::is_empty) {
            return Ok(vec![None; rules.len()]);
        }
        let embedder = built_in(true)?;
        rules
            .iter()
            .zip(candidates)
            .map(|(rule, candidates)| {
                let mut texts = vec![*rule];
                texts.extend(&candidates);
                let vectors = embedder.embed(&texts)?;
                let cosine = |at: usize| -> f64 {
                    let pairs = vectors[0].iter().zip(vectors[at + 1].iter());
                    pairs.map(|(x, y)| f64::from(x * y)).sum()
                };
                let scored = candidates.iter().enumerate();
                let scored = scored.map(|(at, piece)| (shown(piece), cosine(at)));
                let best = scored.max_by(|a, b| a.1.total_cmp(&b.1));
                Ok(best.filter(|(_, score)| *score >= NEAR))
            })
            .collect()
    }
}

/// Splits a note at the ends of sentences and before list items.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for line in text.lines() {
        let line = line.trim();
        let item = line.strip_prefix(['-', '*', '+']);
        if item.is_some_and(|rest| rest.starts_with(' ')) {
            pieces.push(String::new());
        }
        for word in line.split_whitespace() {
            if let Some(piece) = pieces.last_mut() {
                if !piece.is_empty() {
                    piece.push(' ');
                }
                piece.push_str(word);
            }
            let bare = word.trim_end_matches(['*', '_', '`', ')', '"', '\'']);
            if bare.ends_with(['.', '!', '?', ';']) {
                pieces.push(String::new());
            }
        }
    }
    pieces.retain(|piece| !plain_words(piece).is_empty());
    pieces
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_words_are_whole_sentences_or_items() {
        let text = "# House\n\nUse **pnpm**, never\nnpm. Ask before a push.\n\n- Run `make lint`\n  - first item\n";
        let said = Statements::of(&[text]);
        let check = |rule: &str, expected: bool| {
            assert_eq!(said.same(rule).is_some(), expected, "{rule}");
        };
        check("use pnpm, never npm", true);
        check("Ask before a push!", true);
        check("Use pnpm, never npm. Ask before a push.", true);
        check("run make lint", true);
        check("First item.", true);
        check("use pnpm", false);
        check("never npm", false);
        check("House", false);
        check("Ask before a push. Run make lint", false);
        check("", false);
        check("…", false);
    }

    #[test]
    fn near_statement_is_found_by_its_meaning() {
        let said = Statements::of(&["- Always install packages with pnpm\n- Deploy on Mondays\n"]);
        let rules = ["Install packages with pnpm, always.", "Answer in German."];
        let near = said.near(&rules).unwrap();
        let (text, score) = near[0].clone().unwrap();
        assert!(text.contains("pnpm") && score > NEAR, "{text} {score}");
        assert_eq!(near[1], None);
    }
}
