//! BERT's tokenizer (Devlin et al., *BERT*, 2019; Wu et al., *Google's Neural Machine Translation
//! System*, 2016, §4.1 for word pieces): that of the built-in model and of most others of its kind.
//!
//! Token for token the same as the models were trained with; a fixture made by the reference
//! implementation says so. Deliberately absent: every other kind of tokenizer, and positions in the
//! text, which nobody asks for.

use std::borrow::Cow;
use std::ops::Range;

use hashbrown::HashTable;
use icu_normalizer::DecomposingNormalizerBorrowed;
use icu_properties::props::{GeneralCategory, GeneralCategoryGroup};
use icu_properties::{CodePointMapData, CodePointMapDataBorrowed};
use memchr::memchr_iter;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Longer words are unknown, in characters.
const LONGEST_WORD: usize = 100;

/// A vocabulary, ready to cut text into the numbers of its pieces.
#[derive(Debug)]
pub(super) struct WordPiece {
    pieces: Pieces,
    /// What a word becomes that cannot be put together from pieces.
    unknown: i32,
    /// Stands before every text.
    begin: i32,
    /// Stands after every text.
    end: i32,
    spelling: Spelling,
    categories: CodePointMapDataBorrowed<'static, GeneralCategory>,
    decomposer: DecomposingNormalizerBorrowed<'static>,
}

/// What a model has been taught to overlook in the spelling of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spelling {
    /// Capital letters are small ones.
    pub(super) no_case: bool,
    /// Letters have no accents.
    pub(super) no_accents: bool,
}

impl Spelling {
    /// Neither case nor accents count.
    pub(super) const PLAIN: Self = Self {
        no_case: true,
        no_accents: true,
    };
}

impl WordPiece {
    /// Takes the pieces of a vocabulary with their numbers; `##` goes on with a word. `None` where
    /// one of the three marks is not among them: `[CLS]`, `[SEP]` and `[UNK]`, or `<s>`, `</s>`
    /// and `<unk>`.
    pub(super) fn new<'p>(
        pieces: impl Iterator<Item = (&'p str, i32)>,
        spelling: Spelling,
    ) -> Option<Self> {
        let mut text = String::new();
        let mut numbered = Vec::new();
        for (piece, number) in pieces {
            let start = text.len();
            text.push_str(piece);
            numbered.push((start..text.len(), number));
        }
        Self::of(
            Pieces::new(Cow::Owned(text), numbered.into_iter()),
            spelling,
        )
    }

    /// The pieces of a text with one a line, the number being the line's.
    pub(super) fn of_lines(vocabulary: Cow<'static, str>, spelling: Spelling) -> Option<Self> {
        let mut start = 0;
        let line = |end| {
            let line = start..start + vocabulary[start..end].trim_end_matches('\r').len();
            start = end + 1;
            line
        };
        let ends = memchr_iter(b'\n', vocabulary.as_bytes()).chain([vocabulary.len()]);
        let lines: Vec<Range<usize>> = ends.map(line).collect();
        let numbered = lines.into_iter().zip(0..);
        Self::of(Pieces::new(vocabulary, numbered), spelling)
    }

    fn of(pieces: Pieces, spelling: Spelling) -> Option<Self> {
        let mark = |names: [&str; 2]| names.iter().find_map(|name| pieces.number(name, false));
        Some(Self {
            unknown: mark(["[UNK]", "<unk>"])?,
            begin: mark(["[CLS]", "<s>"])?,
            end: mark(["[SEP]", "</s>"])?,
            pieces,
            spelling,
            categories: CodePointMapData::new(),
            decomposer: DecomposingNormalizerBorrowed::new_nfd(),
        })
    }

    /// The numbers of a text's pieces between the marks of its beginning and end; at most `limit`
    /// numbers, of which the marks are two.
    pub(super) fn encode(&self, text: &str, limit: usize) -> Vec<i32> {
        let room = limit.saturating_sub(1);
        let mut out = vec![self.begin];
        // What cannot matter is not looked at: a text of megabytes costs no more than its head.
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

    /// Encodes text without white space: it may still be many words.
    fn encode_chunk(&self, chunk: &str, room: usize, out: &mut Vec<i32>) {
        let plain = self.plain(chunk);
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

    /// The text without what the model does not know of spelling.
    fn plain(&self, chunk: &str) -> String {
        let kept = chunk.chars().filter(|c| !self.is_hidden(*c));
        let mut plain: String = kept.collect();
        if self.spelling.no_accents && !plain.is_ascii() {
            let whole = self.decomposer.normalize(&plain);
            let is_bare = |c: &char| self.categories.get(*c) != GeneralCategory::NonspacingMark;
            plain = whole.chars().filter(is_bare).collect();
        }
        if !self.spelling.no_case {
            return plain;
        }
        if plain.is_ascii() {
            plain.make_ascii_lowercase();
            return plain;
        }
        // Letter by letter: the small letters of a word do not depend on its neighbours here.
        plain.chars().flat_map(char::to_lowercase).collect()
    }

    /// Cuts a word into the longest pieces there are, from its beginning on.
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

/// The pieces by their spelling. Made at every search by meaning, so it is made to be made fast: the
/// text stays where it is, and a table of numbers says where a piece stands in it.
#[derive(Debug)]
struct Pieces {
    text: Cow<'static, str>,
    all: Vec<Piece>,
    /// Places among them, by the hash of the spelling.
    table: HashTable<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    start: u32,
    end: u32,
    number: i32,
    /// Whether it goes on with a word; the `##` that says so is not part of it.
    goes_on: bool,
}

impl Pieces {
    /// The pieces that stand in these spans of the text. Of equal ones the last counts.
    fn new(text: Cow<'static, str>, spans: impl Iterator<Item = (Range<usize>, i32)>) -> Self {
        let (count, _) = spans.size_hint();
        let mut all: Vec<Piece> = Vec::with_capacity(count);
        let mut table = HashTable::with_capacity(count);
        for (span, number) in spans {
            let whole = &text[span.clone()];
            let rest = whole.strip_prefix("##").filter(|rest| !rest.is_empty());
            let (goes_on, spelling) = (rest.is_some(), rest.unwrap_or(whole));
            // Vocabularies are far smaller than what would not fit.
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
            let same = |other: &u32| is(&text, all[*other as usize], spelling, goes_on);
            let hash_of = |other: &u32| {
                let other = all[*other as usize];
                hash(read(&text, other), other.goes_on)
            };
            *table
                .entry(hash(spelling, goes_on), same, hash_of)
                .or_insert(place)
                .get_mut() = place;
        }
        Self { text, all, table }
    }

    /// The number of a piece that begins a word, or goes on with one.
    fn number(&self, spelling: &str, goes_on: bool) -> Option<i32> {
        let piece = |place: &u32| self.all[*place as usize];
        let same = |place: &u32| is(&self.text, piece(place), spelling, goes_on);
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

    const VOCABULARY: &str = include_str!("../../assets/embedder/vocab.txt");

    fn tokenizer() -> WordPiece {
        WordPiece::of_lines(Cow::Borrowed(VOCABULARY), Spelling::PLAIN).unwrap()
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
    fn case_and_accents_count_where_the_model_knows_them() {
        let check = |no_case, no_accents, expected: &[i32]| {
            let pieces = "<s>\n</s>\n<unk>\nÉté\nété\nEte\nete\n##s".to_owned();
            let spelling = Spelling {
                no_case,
                no_accents,
            };
            let tokenizer = WordPiece::of_lines(Cow::Owned(pieces), spelling).unwrap();
            let found = tokenizer.encode("Été étés", 10);
            assert_eq!(found, expected, "{spelling:?}");
        };
        check(false, false, &[0, 3, 4, 7, 1]);
        check(true, false, &[0, 4, 4, 7, 1]);
        check(false, true, &[0, 5, 6, 7, 1]);
        check(true, true, &[0, 6, 6, 7, 1]);
        let without = WordPiece::of_lines(Cow::Borrowed("a\nb"), Spelling::PLAIN);
        assert!(without.is_none());
    }
}
