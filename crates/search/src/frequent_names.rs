//! Names that many of the searched documents contain: the speakers of a chat, the product of a manual.
//!
//! A sentence transformer gives a name a large share of the vector of a short text. Where a third of the
//! documents contain the name, those that say little else come nearest: "Hey Greta!" to a question about
//! Greta. BM25 does not have this problem, since a frequent word weighs little. So these names are left
//! out of the text that is embedded; the keyword half still sees them.
//!
//! Other frequent words stay. They belong to the sentence, and without them the vectors of most queries get
//! worse (`docs/adr/search.md`).

use std::borrow::Cow;
use std::ops::Range;

use super::keyword;
use super::rank::Ranker;
use super::segment::{Damaged, Part};
use super::text;

/// A name is frequent if one of this many documents contains it.
const ONE_OF: usize = 3;
/// Marks around text that is quoted, such as code.
const QUOTES: [char; 7] = ['`', '"', '\'', '“', '”', '‘', '’'];
/// Marks after which a sentence begins.
const SENTENCE_ENDS: [char; 5] = ['.', '!', '?', ':', '\n'];
/// Minimum number of documents. Among fewer, a share says little.
const FEWEST: usize = 20;

impl Ranker<'_> {
    /// Returns the query without the names that a third of the admitted documents contain; unchanged if
    /// nothing but names and stop words would remain.
    ///
    /// # Errors
    ///
    /// Returns [`Damaged`] if a segment is damaged.
    pub fn without_frequent_names<'q>(&self, query: &'q str) -> Result<Cow<'q, str>, Damaged> {
        let names = names(query);
        let documents: usize = self.parts.iter().map(Part::documents).sum();
        if names.is_empty() || documents < FEWEST {
            return Ok(Cow::Borrowed(query));
        }
        let mut rest = String::with_capacity(query.len());
        let mut end = 0;
        for Name { range, word } in names {
            if keyword::holding(&self.parts, &word)? * ONE_OF >= documents {
                rest.push_str(query.get(end..range.start).unwrap_or_default());
                end = range.end;
            }
        }
        if end == 0 {
            return Ok(Cow::Borrowed(query));
        }
        rest.push_str(query.get(end..).unwrap_or_default());
        let rest = rest.split_whitespace().collect::<Vec<_>>().join(" ");
        if text::words(&rest).is_empty() {
            return Ok(Cow::Borrowed(query));
        }
        Ok(Cow::Owned(rest))
    }
}

/// Returns true if the text of a query may be changed by [`Ranker::without_frequent_names`].
pub fn has_names(query: &str) -> bool {
    !names(query).is_empty()
}

/// Word of a query that is written like a name.
struct Name {
    /// Bytes of the query, with a possessive `'s`.
    range: Range<usize>,
    /// Indexed form.
    word: String,
}

/// Words with a capital and small letters, such as `Greta`, except at the beginning of a sentence and in
/// quotes. Acronyms and identifiers (`NATO`, `FnOnce`) say what a text is about, and stay.
fn names(query: &str) -> Vec<Name> {
    let mut names = Vec::new();
    let mut starts_sentence = true;
    let mut at = 0;
    for token in query.split_inclusive(char::is_whitespace) {
        let start = at;
        at += token.len();
        let is_outer = |c: char| !c.is_alphanumeric();
        let core = token.trim_matches(is_outer);
        let Some((before, after)) = token.split_once(core).filter(|_| !core.is_empty()) else {
            starts_sentence |= token.contains(SENTENCE_ENDS);
            continue;
        };
        let is_quoted = before.ends_with(QUOTES) || after.starts_with(QUOTES);
        let name = core
            .strip_suffix("'s")
            .or_else(|| core.strip_suffix("’s"))
            .unwrap_or(core);
        if !starts_sentence
            && !is_quoted
            && is_capitalized(name)
            && let [word] = text::words(name).as_mut_slice()
        {
            let start = start + before.len();
            names.push(Name {
                range: start..start + core.len(),
                word: std::mem::take(word),
            });
        }
        starts_sentence = after.contains(SENTENCE_ENDS);
    }
    names
}

fn is_capitalized(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(char::is_uppercase)
        && !letters.as_str().is_empty()
        && letters.all(char::is_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Segment;
    use crate::attributes::Attributes;
    use crate::segment_builder::Builder;

    fn check(texts: &[&str], admitted: Option<Vec<bool>>, query: &str, expected: &str) {
        let mut builder = Builder::default();
        for text in texts {
            builder.add(&Attributes::default(), text);
        }
        let bytes = builder.segment();
        let segment = Segment::open(&bytes).unwrap();
        let ranker = Ranker::new(vec![Part::new(segment, None, admitted)]);
        let rest = ranker.without_frequent_names(query).unwrap();
        assert_eq!(rest, expected, "{query}");
    }

    fn chat() -> Vec<&'static str> {
        [["Greta: I went there.", "Anton: So did Bob from NATO."]; 12].concat()
    }

    #[test]
    fn frequent_names_are_left_out_and_others_stay() {
        let chat = chat();
        let check = |query, expected| check(&chat, None, query, expected);
        check("When did Greta go to Paris?", "When did go to Paris?");
        check("What is Anton's plan for Greta?", "What is plan for ?");
        check("why does (Anton) like tea", "why does () like tea");
        check("who is Zoe", "who is Zoe");
    }

    #[test]
    fn other_words_stay_however_frequent() {
        let chat = chat();
        let unchanged = |query| check(&chat, None, query, query);
        unchanged("Greta was where?");
        unchanged("It ended. Anton paid: Bob ate \n\nGreta slept");
        unchanged("where did caroline and NATO go");
        unchanged("what does Greta/Anton do");
        unchanged("the trait `Anton`, the type \"Greta\"");
        // Nothing else would remain.
        unchanged("who is Greta?");
        unchanged("");
    }

    #[test]
    fn frequency_is_that_among_the_admitted_documents() {
        let mut texts = chat();
        texts.extend(["a greyhound"; 24]);
        let query = "the plan of Anton";
        check(&texts, None, query, query);
        let admitted = (0..texts.len()).map(|document| document < 24).collect();
        check(&texts, Some(admitted), query, "the plan of");
        let few = chat().into_iter().take(FEWEST - 1).collect::<Vec<_>>();
        check(&few, None, query, query);
    }
}
