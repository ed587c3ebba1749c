//! BERT's tokenizer (Devlin et al., *BERT*, 2019; Wu et al., *Google's Neural Machine Translation
//! System*, 2016, §4.1 for word pieces), for the built-in model. Case and
//! accents are ignored.
//!
//! The tokens equal those of the reference implementation, which a fixture verifies. Other kinds of
//! tokenizers and token positions are not supported.

use std::ops::Range;

use hashbrown::HashTable;
use memchr::memchr_iter;
use unicode_normalization::UnicodeNormalization as _;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory as _};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Maximum length of a known word, in characters.
const LONGEST_WORD: usize = 100;

/// Vocabulary with its spelling settings.
#[derive(Debug)]
pub(crate) struct WordPiece {
    pieces: Pieces,
    /// Token for a word that the vocabulary cannot form.
    unknown: i32,
    /// Token before every text.
    begin: i32,
    /// Token after every text.
    end: i32,
}

impl WordPiece {
    /// Builds a tokenizer from a text with one piece per line, numbered by line; `##` marks a piece
    /// inside a word. Returns `None` if `[CLS]`, `[SEP]` or `[UNK]` is missing.
    pub(crate) fn of_lines(vocabulary: &'static str) -> Option<Self> {
        let mut start = 0;
        let line = |end| {
            let line = start..start + vocabulary[start..end].trim_end_matches('\r').len();
            start = end + 1;
            line
        };
        let ends = memchr_iter(b'\n', vocabulary.as_bytes()).chain([vocabulary.len()]);
        let lines: Vec<Range<usize>> = ends.map(line).collect();
        let pieces = Pieces::new(vocabulary, lines.into_iter().zip(0..));
        Some(Self {
            unknown: pieces.number("[UNK]", false)?,
            begin: pieces.number("[CLS]", false)?,
            end: pieces.number("[SEP]", false)?,
            pieces,
        })
    }

    /// Token numbers of a text between start and end token; at most `limit` in total.
    pub(crate) fn encode(&self, text: &str, limit: usize) -> Vec<i32> {
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
    fn encode_chunk(&self, chunk: &str, room: usize, out: &mut Vec<i32>) {
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
    fn push_word(&self, word: &str, out: &mut Vec<i32>) {
        if word.is_empty() {
            return;
        }
        let before = out.len();
        let mut rest = word;
        while !rest.is_empty() {
            let goes_on = rest.len() < word.len();
            let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8());
            let ends: Vec<usize> = ends.take(LONGEST_WORD + 1).collect();
            let found = ends
                .iter()
                .rev()
                .find_map(|end| Some((*end, self.pieces.number(&rest[..*end], goes_on)?)));
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

/// Lookup of pieces by spelling. It is built for every semantic search, so construction is cheap:
/// the text is not copied, and a table maps hashes to spans.
#[derive(Debug)]
struct Pieces {
    text: &'static str,
    all: Vec<Piece>,
    /// Indices into `all`, by hash of the spelling.
    table: HashTable<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    start: u32,
    end: u32,
    number: i32,
    /// True for a piece inside a word; the span excludes its `##`.
    goes_on: bool,
}

impl Pieces {
    /// Builds the lookup from spans of the text. For duplicates the last one counts.
    fn new(text: &'static str, spans: impl Iterator<Item = (Range<usize>, i32)>) -> Self {
        let (count, _) = spans.size_hint();
        let mut all: Vec<Piece> = Vec::with_capacity(count);
        let mut table = HashTable::with_capacity(count);
        for (span, number) in spans {
            let whole = &text[span.clone()];
            let rest = whole.strip_prefix("##").filter(|rest| !rest.is_empty());
            let (goes_on, spelling) = (rest.is_some(), rest.unwrap_or(whole));
            // Vocabularies stay far below the 32-bit limit.
            let (Ok(start), Ok(end), Ok(place)) = (
                u32::try_from(span.end - spelling.len()),
                u32::try_from(span.end),
                u32::try_from(all.len()),
            ) else {
                break;
            };
            all.push(Piece {
                start,
                end,
                number,
                goes_on,
            });
            let same = |other: &u32| is(text, all[*other as usize], spelling, goes_on);
            let hash_of = |other: &u32| {
                let other = all[*other as usize];
                hash(read(text, other), other.goes_on)
            };
            *table
                .entry(hash(spelling, goes_on), same, hash_of)
                .or_insert(place)
                .get_mut() = place;
        }
        Self { text, all, table }
    }

    /// Number of a piece at the start of a word, or inside one.
    fn number(&self, spelling: &str, goes_on: bool) -> Option<i32> {
        let piece = |place: &u32| self.all[*place as usize];
        let same = |place: &u32| is(self.text, piece(place), spelling, goes_on);
        let found = self.table.find(hash(spelling, goes_on), same)?;
        Some(piece(found).number)
    }
}

fn read(text: &str, piece: Piece) -> &str {
    &text[piece.start as usize..piece.end as usize]
}

fn is(text: &str, piece: Piece, spelling: &str, goes_on: bool) -> bool {
    piece.goes_on == goes_on && read(text, piece) == spelling
}

fn hash(spelling: &str, goes_on: bool) -> u64 {
    xxh3_64_with_seed(spelling.as_bytes(), u64::from(goes_on))
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
