//! The tokenizer of the built-in model: BERT's, without case and accents (Devlin et al., *BERT*,
//! 2019; Wu et al., *Google's Neural Machine Translation System*, 2016, §4.1 for word pieces).
//!
//! Token for token the same as the model was trained with; a fixture made by the reference
//! implementation says so. Deliberately absent: every other kind of tokenizer, and positions in the
//! text, which nobody asks for.

use std::collections::HashMap;

use icu_normalizer::DecomposingNormalizerBorrowed;
use icu_properties::props::{GeneralCategory, GeneralCategoryGroup};
use icu_properties::{CodePointMapData, CodePointMapDataBorrowed};

/// What a word becomes that cannot be put together from pieces.
const UNKNOWN: i32 = 100;
/// Stands before every text.
const BEGIN: i32 = 101;
/// Stands after every text.
const END: i32 = 102;
/// Longer words are unknown, in characters.
const LONGEST_WORD: usize = 100;

/// A vocabulary, ready to cut text into the numbers of its pieces.
#[derive(Debug)]
pub(super) struct WordPiece {
    /// Pieces that begin a word.
    first: HashMap<&'static str, i32>,
    /// Pieces that go on with one.
    next: HashMap<&'static str, i32>,
    categories: CodePointMapDataBorrowed<'static, GeneralCategory>,
    decomposer: DecomposingNormalizerBorrowed<'static>,
}

impl WordPiece {
    /// Reads a vocabulary: a piece a line, its number being the line's; `##` goes on with a word.
    pub(super) fn new(vocabulary: &'static str) -> Self {
        let mut first = HashMap::with_capacity(32_768);
        let mut next = HashMap::with_capacity(8_192);
        for (number, piece) in (0..).zip(vocabulary.lines()) {
            match piece.strip_prefix("##") {
                Some(rest) if !rest.is_empty() => next.insert(rest, number),
                _ => first.insert(piece, number),
            };
        }
        Self {
            first,
            next,
            categories: CodePointMapData::new(),
            decomposer: DecomposingNormalizerBorrowed::new_nfd(),
        }
    }

    /// The numbers of a text's pieces between the marks of its beginning and end; at most `limit`
    /// numbers, of which the marks are two.
    pub(super) fn encode(&self, text: &str, limit: usize) -> Vec<i32> {
        let room = limit.saturating_sub(1);
        let mut out = vec![BEGIN];
        // What cannot matter is not looked at: a text of megabytes costs no more than its head.
        for chunk in text.split(is_space) {
            if out.len() >= room {
                break;
            }
            self.encode_chunk(chunk, room, &mut out);
        }
        out.truncate(room);
        out.push(END);
        out
    }

    /// Encodes text without white space: it may still be many words.
    fn encode_chunk(&self, chunk: &str, room: usize, out: &mut Vec<i32>) {
        let kept = chunk.chars().filter(|c| !self.is_hidden(*c));
        let plain: String = if chunk.is_ascii() {
            kept.map(|c| c.to_ascii_lowercase()).collect()
        } else {
            let kept: String = kept.collect();
            let whole = self.decomposer.normalize(&kept);
            let bare = whole
                .chars()
                .filter(|c| self.categories.get(*c) != GeneralCategory::NonspacingMark);
            bare.flat_map(char::to_lowercase).collect()
        };
        let mut word_start = 0;
        for (at, c) in plain.char_indices() {
            if out.len() >= room {
                return;
            }
            // Ideographs and punctuation are words of their own.
            if is_ideograph(c) || self.is_punctuation(c) {
                let end = at + c.len_utf8();
                self.push_word(&plain[word_start..at], out);
                self.push_word(&plain[at..end], out);
                word_start = end;
            }
        }
        self.push_word(&plain[word_start..], out);
    }

    /// Cuts a word into the longest pieces there are, from its beginning on.
    fn push_word(&self, word: &str, out: &mut Vec<i32>) {
        if word.is_empty() {
            return;
        }
        let before = out.len();
        let mut rest = word;
        while !rest.is_empty() {
            let pieces = if rest.len() == word.len() {
                &self.first
            } else {
                &self.next
            };
            let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8());
            let ends: Vec<usize> = ends.take(LONGEST_WORD + 1).collect();
            let found = ends
                .iter()
                .rev()
                .find_map(|end| Some((*end, *pieces.get(&rest[..*end])?)));
            match found {
                Some((end, number)) if ends.len() <= LONGEST_WORD => {
                    out.push(number);
                    rest = &rest[end..];
                }
                _ => {
                    out.truncate(before);
                    out.push(UNKNOWN);
                    return;
                }
            }
        }
    }

    /// Whether a character is left out: control and format characters, and what is no character.
    fn is_hidden(&self, c: char) -> bool {
        if c.is_ascii() {
            return c.is_ascii_control();
        }
        let hidden = [
            GeneralCategory::Control,
            GeneralCategory::Format,
            GeneralCategory::PrivateUse,
        ];
        c == '\u{fffd}' || hidden.contains(&self.categories.get(c))
    }

    fn is_punctuation(&self, c: char) -> bool {
        if c.is_ascii() {
            return c.is_ascii_punctuation();
        }
        GeneralCategoryGroup::Punctuation.contains(self.categories.get(c))
    }
}

/// White space, without the control characters that the model never saw as such.
fn is_space(c: char) -> bool {
    c.is_whitespace() && (!c.is_control() || matches!(c, '\t' | '\n' | '\r'))
}

/// The blocks that the model takes character by character.
fn is_ideograph(c: char) -> bool {
    matches!(u32::from(c),
        0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x2A6DF
        | 0x2A700..=0x2B73F | 0x2B740..=0x2B81F | 0x2B820..=0x2CEAF | 0x2F800..=0x2FA1F)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts are ours; `convert.py --fixture` has the reference implementation fill in the
    /// numbers.
    const EXPECTED: &str = include_str!("../../assets/embedder/tokens.json");

    fn tokenizer() -> WordPiece {
        WordPiece::new(include_str!("../../assets/embedder/vocab.txt"))
    }

    #[test]
    fn the_same_pieces_as_the_reference_implementation() {
        let tokenizer = tokenizer();
        let expected: Vec<(String, Vec<i32>)> = serde_json::from_str(EXPECTED).unwrap();
        assert!(expected.len() > 30);
        for (text, numbers) in expected {
            assert_eq!(tokenizer.encode(&text, 256), numbers, "{text:?}");
        }
    }

    #[test]
    fn a_long_text_costs_no_more_than_its_head() {
        let tokenizer = tokenizer();
        assert_eq!(tokenizer.encode(&"word ".repeat(1_000_000), 256).len(), 256);
        assert_eq!(tokenizer.encode(&"字".repeat(1_000_000), 256).len(), 256);
        assert_eq!(
            tokenizer.encode(&"x".repeat(1_000_000), 256),
            [BEGIN, UNKNOWN, END]
        );
        assert_eq!(tokenizer.encode("", 256), [BEGIN, END]);
    }
}
