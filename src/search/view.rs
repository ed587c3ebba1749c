//! Both halves of an answer, over all documents: how well each fits by words, and by meaning.

use super::best::Hit;

/// How near in meaning a document must be that holds no word of the query. Unrelated texts have
/// cosines of 0 to 0.2.
const FLOOR: f32 = 0.3;

/// The halves, over the documents of one part.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'v> {
    /// The place of the first document among all.
    pub(super) start: usize,
    /// How many documents there are.
    pub(super) documents: usize,
    /// Their keyword scores, or none at all.
    pub(super) words: &'v [f64],
    /// Their cosines, or none at all.
    pub(super) cosines: &'v [f32],
}

/// One of the two rankings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    Words,
    Meaning,
}

impl View<'_> {
    /// What one of the rankings says of a document, if the document takes part in it.
    pub(super) fn score(&self, half: Half, place: usize) -> Option<f64> {
        match half {
            Half::Words => self.words(place),
            Half::Meaning => self.meaning(place),
        }
    }

    /// The keyword score, where the document holds a word of the query.
    pub(super) fn words(&self, place: usize) -> Option<f64> {
        let score = self.words.get(place).copied();
        score.filter(|score| *score > 0.0)
    }

    /// The cosine, where the document has a vector.
    pub(super) fn cosine(&self, place: usize) -> Option<f32> {
        let cosine = self.cosines.get(place).copied();
        cosine.filter(|cosine| !cosine.is_nan())
    }

    /// The cosine of those that are near enough, and of those that hold a word, so that their
    /// meaning can count for or against them.
    pub(super) fn meaning(&self, place: usize) -> Option<f64> {
        let cosine = self.cosine(place)?;
        let counts = cosine >= FLOOR || self.words(place).is_some();
        counts.then(|| f64::from(cosine))
    }

    /// The places of the documents that fit in one way or the other.
    pub(super) fn candidates(&self) -> impl Iterator<Item = usize> {
        let places = match (self.words, self.cosines) {
            ([], []) => 0..0,
            _ => 0..self.documents,
        };
        let near = |place| self.cosine(place).is_some_and(|cosine| cosine >= FLOOR);
        places.filter(move |place| self.words(*place).is_some() || near(*place))
    }

    /// The documents that take part in one of the rankings.
    pub(super) fn hits(&self, half: Half) -> impl Iterator<Item = Hit> {
        self.candidates().filter_map(move |place| {
            let score = self.score(half, place)?;
            Some(Hit {
                document: self.start + place,
                score,
            })
        })
    }
}
