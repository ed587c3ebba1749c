//! Part of the documents that a ranking compares.

use super::segment::Segment;
use super::vectors::Slots;

/// Segment with its vectors and admitted documents.
#[derive(Debug)]
pub struct Part<'a> {
    /// Words and attributes of the documents.
    pub segment: Segment<'a>,
    /// Vectors, if there are any.
    pub vectors: Option<Slots<'a>>,
    /// One value per document; `None` admits all.
    pub admitted: Option<Vec<bool>>,
    /// Number of the first document among all; set by [`Ranker::new`].
    pub(super) start: u32,
}

impl<'a> Part<'a> {
    /// Part with all documents of a segment.
    pub fn new(
        segment: Segment<'a>,
        vectors: Option<Slots<'a>>,
        admitted: Option<Vec<bool>>,
    ) -> Self {
        Self {
            segment,
            vectors,
            admitted,
            start: 0,
        }
    }

    /// Number of admitted documents.
    pub(super) fn documents(&self) -> usize {
        match &self.admitted {
            None => self.segment.len(),
            Some(admitted) => admitted.iter().filter(|admitted| **admitted).count(),
        }
    }

    pub(super) fn admits(&self, document: usize) -> bool {
        let value = |admitted: &Vec<bool>| admitted.get(document).copied().unwrap_or(false);
        self.admitted.as_ref().is_none_or(value) && document < self.segment.len()
    }
}
