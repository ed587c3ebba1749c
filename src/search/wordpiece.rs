//! BERT's tokenizer (Devlin et al., *BERT*, 2019; Wu et al., *Google's Neural Machine Translation
//! System*, 2016, §4.1 for word pieces): that of the built-in model and of most others of its kind.
//!
//! Token for token the same as the models were trained with; a fixture made by the reference
//! implementation says so. Deliberately absent: every other kind of tokenizer, and positions in the
//! text, which nobody asks for.

use std::borrow::Cow;
use std::collections::HashMap;

use icu_normalizer::DecomposingNormalizerBorrowed;
use icu_properties::props::{GeneralCategory, GeneralCategoryGroup};
use icu_properties::{CodePointMapData, CodePointMapDataBorrowed};

/// Longer words are unknown, in characters.
const LONGEST_WORD: usize = 100;

/// A vocabulary, ready to cut text into the numbers of its pieces.
#[derive(Debug)]
pub(super) struct WordPiece {
    /// Pieces that begin a word.
    first: HashMap<Cow<'static, str>, i32>,
    /// Pieces that go on with one.
    next: HashMap<Cow<'static, str>, i32>,
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
    pub(super) fn new(
        pieces: impl Iterator<Item = (Cow<'static, str>, i32)>,
        spelling: Spelling,
    ) -> Option<Self> {
        let mut first = HashMap::with_capacity(32_768);
        let mut next = HashMap::with_capacity(8_192);
        for (piece, number) in pieces {
            let rest = match &piece {
                Cow::Borrowed(piece) => piece.strip_prefix("##").map(Cow::Borrowed),
                Cow::Owned(piece) => piece.strip_prefix("##").map(|s| Cow::Owned(s.to_owned())),
            };
            match rest {
                Some(rest) if !rest.is_empty() => next.insert(rest, number),
                _ => first.insert(piece, number),
            };
        }
        let mark = |names: [&str; 2]| names.iter().find_map(|name| first.get(*name)).copied();
        Some(Self {
            unknown: mark(["[UNK]", "<unk>"])?,
            begin: mark(["[CLS]", "<s>"])?,
            end: mark(["[SEP]", "</s>"])?,
            first,
            next,
            spelling,
            categories: CodePointMapData::new(),
            decomposer: DecomposingNormalizerBorrowed::new_nfd(),
        })
    }

    /// The pieces of a text with one a line, the number being the line's.
    pub(super) fn of_lines(vocabulary: Cow<'static, str>, spelling: Spelling) -> Option<Self> {
        match vocabulary {
            Cow::Borrowed(text) => Self::new(text.lines().map(Cow::Borrowed).zip(0..), spelling),
            Cow::Owned(text) => {
                let lines = text.lines().map(|line| Cow::Owned(line.to_owned()));
                Self::new(lines.zip(0..), spelling)
            }
        }
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
        assert_eq!(
            tokenizer.encode(&"x".repeat(1_000_000), 256),
            [101, 100, 102]
        );
        assert_eq!(tokenizer.encode("", 256), [101, 102]);
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
