//! Keyword and semantic scores of all documents of a part.

use super::top_k::Hit;

/// Default minimum cosine of a document without a query word. Unrelated texts have cosines of 0 to 0.2.
pub(crate) const FLOOR: f32 = 0.3;

/// Scores of one part's documents.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'v> {
    /// Number of the first document among all.
    pub start: usize,
    /// Number of documents.
    pub documents: usize,
    /// Keyword scores, or empty.
    pub words: &'v [f64],
    /// Cosines, or empty.
    pub cosines: &'v [f32],
    /// Documents that can be results, in order; `None` for all. The cosines of the others are estimates.
    pub exact: Option<&'v [usize]>,
    /// Minimum cosine of a document without a query word.
    pub floor: f32,
}

/// One of the two rankings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    Keyword,
    Semantic,
}

impl View<'_> {
    /// Score in one ranking; `None` if the document does not take part in it.
    pub(crate) fn score(&self, half: Half, place: usize) -> Option<f64> {
        match half {
            Half::Keyword => self.words(place),
            Half::Semantic => self.meaning(place),
        }
    }

    /// Keyword score; `None` without a query word.
    pub(crate) fn words(&self, place: usize) -> Option<f64> {
        let score = self.words.get(place).copied();
        score.filter(|score| *score > 0.0)
    }

    /// Cosine; `None` without a vector.
    pub(crate) fn cosine(&self, place: usize) -> Option<f32> {
        let cosine = self.cosines.get(place).copied();
        cosine.filter(|cosine| !cosine.is_nan())
    }

    /// Cosine of a document that is near enough or contains a query word, so that it can count for
    /// or against that word.
    pub(crate) fn meaning(&self, place: usize) -> Option<f64> {
        let cosine = self.cosine(place)?;
        let counts = cosine >= self.floor || self.words(place).is_some();
        counts.then(|| f64::from(cosine))
    }

    /// Documents that can be results and match in either ranking.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = usize> {
        let all = match self.exact {
            Some(_) => 0..0,
            None => 0..self.scored(),
        };
        let exact = self.exact.unwrap_or_default().iter().copied();
        all.chain(exact).filter(|place| self.matches(*place))
    }

    /// Number of documents with a score, or 0 if no ranking has any.
    fn scored(&self) -> usize {
        match (self.words, self.cosines) {
            ([], []) => 0,
            _ => self.documents,
        }
    }

    fn matches(&self, place: usize) -> bool {
        let is_near = || {
            self.cosine(place)
                .is_some_and(|cosine| cosine >= self.floor)
        };
        self.words(place).is_some() || is_near()
    }

    /// Hits in one of the rankings.
    pub(crate) fn hits(&self, half: Half) -> impl Iterator<Item = Hit> {
        let scored = match half {
            Half::Keyword => self.words.len(),
            Half::Semantic => self.cosines.len(),
        };
        let matching = (0..scored).filter(|place| self.matches(*place));
        matching.filter_map(move |place| {
            let score = self.score(half, place)?;
            Some(Hit {
                document: self.start + place,
                score,
            })
        })
    }
}
