//! Term expansion: replaces a query word that no document contains by a similar indexed word, to
//! correct typos and spelling variants.
//!
//! Candidates come only from the documents, so a replacement always finds something. A fixed
//! synonym list would not know the names in them. Words of similar meaning are left to the vectors.

use super::super::rank::Ranker;
use super::super::segment::Damaged;
use super::keyword;

/// Minimum word length in bytes; shorter words have too many unrelated neighbours.
const SHORTEST: usize = 6;

impl Ranker<'_> {
    /// For each query word that no admitted document contains, returns the most frequent word with
    /// the same first letter and an edit distance of 1, if there is one.
    ///
    /// # Errors
    ///
    /// Returns [`Damaged`] if a segment is damaged.
    pub fn related_terms(&self, query: &str) -> Result<Vec<String>, Damaged> {
        let mut found = Vec::new();
        for word in keyword::asked(query) {
            let plain = word.chars().all(|c| c.is_ascii_lowercase());
            if plain && word.len() >= SHORTEST && keyword::holding(&self.parts, &word)? == 0 {
                found.extend(self.nearest(&word)?);
            }
        }
        Ok(found)
    }

    fn nearest(&self, word: &str) -> Result<Option<String>, Damaged> {
        let mut names = Vec::new();
        for part in &self.parts {
            for term in 0..part.segment.terms() {
                let name = part.segment.name(term);
                if name.first() != word.as_bytes().first() || name.len().abs_diff(word.len()) > 1 {
                    continue;
                }
                if let Ok(name) = std::str::from_utf8(name)
                    && strsim::osa_distance(name, word) == 1
                {
                    names.push(name);
                }
            }
        }
        names.sort_unstable();
        names.dedup();
        let mut best: Option<(usize, &str)> = None;
        for name in names {
            let holding = keyword::holding(&self.parts, name)?;
            if holding > best.map_or(0, |(most, _)| most) {
                best = Some((holding, name));
            }
        }
        Ok(best.map(|(_, name)| name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::term_expansion::*;
    use crate::Part;
    use crate::attributes::Attributes;
    use crate::segment::Segment;
    use crate::segment_builder::Builder;

    #[test]
    fn a_mistyped_word_has_a_kin_where_the_documents_know_one() {
        let texts = [
            "install the certificate",
            "the programme of certificates",
            "disk full",
        ];
        let mut builder = Builder::default();
        for text in texts {
            builder.add(&Attributes::default(), text);
        }
        let bytes = builder.segment();
        let check = |query: &str, admitted: Option<Vec<bool>>, expected: &[&str]| {
            let segment = Segment::open(&bytes).unwrap();
            let ranker = Ranker::new(vec![Part::new(segment, None, admitted)]);
            assert_eq!(ranker.related_terms(query).unwrap(), expected, "{query}");
        };
        check("certifcate", None, &["certif"]);
        check("install a program", None, &["programm"]);
        check("certificate disk", None, &[]);
        check("dist disc", None, &[]);
        check("E0308 --no-cache 日本語", None, &[]);
        check("program", Some(vec![true, false, true]), &[]);
    }
}
