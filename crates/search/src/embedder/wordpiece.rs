//! BERT's tokenizer (Devlin et al., *BERT*, 2019; Wu et al., *Google's Neural Machine Translation
//! System*, 2016, §4.1 for word pieces), for the built-in model. Case and
//! accents are ignored.
//!
//! The tokens equal those of the reference implementation, which a fixture verifies. Other kinds of
//! tokenizers and token positions are not supported.

use hashbrown::HashMap;
use unicode_normalization::UnicodeNormalization as _;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory as _};

/// Maximum length of a known word, in characters.
const LONGEST_WORD: usize = 100;

/// Vocabulary with its spelling settings. It is built for every semantic search, so its text is not copied.
#[derive(Debug)]
pub(crate) struct WordPiece {
    /// Numbers of the pieces at the start of a word.
    starts: HashMap<&'static str, u16>,
    /// Numbers of the pieces inside a word, without their `##`.
    inside: HashMap<&'static str, u16>,
    /// Token for a word that the vocabulary cannot form.
    unknown: u16,
    /// Token before every text.
    begin: u16,
    /// Token after every text.
    end: u16,
}

impl WordPiece {
    /// Builds a tokenizer from a text with one piece per line, numbered by line; `##` marks a piece
    /// inside a word. Of duplicates the last one counts. Returns `None` if `[CLS]`, `[SEP]` or `[UNK]` is
    /// missing.
    pub(crate) fn of_lines(vocabulary: &'static str) -> Option<Self> {
        // Most pieces are words.
        let mut starts = HashMap::with_capacity(vocabulary.len() / 9);
        let mut inside = HashMap::with_capacity(vocabulary.len() / 36);
        for (line, number) in vocabulary.lines().zip(0..) {
            match line.strip_prefix("##").filter(|rest| !rest.is_empty()) {
                Some(rest) => inside.insert(rest, number),
                None => starts.insert(line, number),
            };
        }
        Some(Self {
            unknown: *starts.get("[UNK]")?,
            begin: *starts.get("[CLS]")?,
            end: *starts.get("[SEP]")?,
            starts,
            inside,
        })
    }

    /// Token numbers of a text between start and end token; at most `limit` in total.
    pub(crate) fn encode(&self, text: &str, limit: usize) -> Vec<u16> {
        let room = limit.saturating_sub(1);
        let mut out = vec![self.begin];
        // Stops at the limit: a text of megabytes costs no more than its head.
        for chunk in text.split(is_space) {
            if out.len() >= room {
                break;
            }
            self.encode_chunk(chunk, room, &mut out);
        }
        out.truncate(room);
        out.push(self.end);
        out
    }

    /// Encodes text without white space, which can still be several words.
    fn encode_chunk(&self, chunk: &str, room: usize, out: &mut Vec<u16>) {
        let plain = plain(chunk);
        let mut word_start = 0;
        for (at, c) in plain.char_indices() {
            if out.len() >= room {
                return;
            }
            // Ideographs and punctuation are separate words.
            if is_ideograph(c) || is_punctuation(c) {
                let end = at + c.len_utf8();
                self.push_word(&plain[word_start..at], out);
                self.push_word(&plain[at..end], out);
                word_start = end;
            }
        }
        self.push_word(&plain[word_start..], out);
    }

    /// Splits a word greedily into the longest pieces, from its start.
    fn push_word(&self, word: &str, out: &mut Vec<u16>) {
        if word.is_empty() {
            return;
        }
        let before = out.len();
        let mut rest = word;
        while !rest.is_empty() {
            let pieces = if rest.len() < word.len() {
                &self.inside
            } else {
                &self.starts
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
                    out.push(self.unknown);
                    return;
                }
            }
        }
    }
}

/// Text with spelling normalized for the model.
fn plain(chunk: &str) -> String {
    let shown = chunk.chars().filter(|c| !is_hidden(*c));
    let mut plain: String = shown.collect();
    if plain.is_ascii() {
        plain.make_ascii_lowercase();
        return plain;
    }
    let is_bare = |c: &char| c.general_category() != GeneralCategory::NonspacingMark;
    // Lower-cases each letter alone, independent of its neighbours.
    let letters = plain.nfd().filter(is_bare);
    letters.flat_map(char::to_lowercase).collect()
}

/// Returns true for removed characters: control, format, private use and replacement
/// characters.
fn is_hidden(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    let hidden = [
        GeneralCategory::Control,
        GeneralCategory::Format,
        GeneralCategory::PrivateUse,
    ];
    c == '\u{fffd}' || hidden.contains(&c.general_category())
}

fn is_punctuation(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_punctuation();
    }
    c.general_category_group() == GeneralCategoryGroup::Punctuation
}

/// Returns true for white space, without control characters that the model does not treat as such.
fn is_space(c: char) -> bool {
    c.is_whitespace() && (!c.is_control() || matches!(c, '\t' | '\n' | '\r'))
}

/// Returns true for characters that are tokens of their own.
fn is_ideograph(c: char) -> bool {
    matches!(u32::from(c),
        0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x2A6DF
        | 0x2A700..=0x2B73F | 0x2B740..=0x2B81F | 0x2B820..=0x2CEAF | 0x2F800..=0x2FA1F)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts with token numbers from the reference implementation, generated by
    /// `convert.py --fixture`.
    const EXPECTED: &str = include_str!("../../assets/tokens.json");

    const VOCABULARY: &str = include_str!("../../assets/vocab.txt");

    fn tokenizer() -> WordPiece {
        WordPiece::of_lines(VOCABULARY).unwrap()
    }

    #[test]
    fn the_same_pieces_as_the_reference_implementation() {
        let tokenizer = tokenizer();
        let expected: Vec<(String, Vec<u16>)> = serde_json::from_str(EXPECTED).unwrap();
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
        let (unknown, begin, end) = (tokenizer.unknown, tokenizer.begin, tokenizer.end);
        assert_eq!(
            tokenizer.encode(&"x".repeat(1_000_000), 256),
            [begin, unknown, end]
        );
        assert_eq!(tokenizer.encode("", 256), [begin, end]);
    }

    #[test]
    fn case_and_accents_are_ignored() {
        let pieces = "[CLS]
[SEP]
[UNK]
Été
ete
##s";
        let tokenizer = WordPiece::of_lines(pieces).unwrap();
        assert_eq!(tokenizer.encode("Été étés", 10), [0, 4, 4, 5, 1]);
        assert!(
            WordPiece::of_lines(
                "a
b"
            )
            .is_none()
        );
    }
}
