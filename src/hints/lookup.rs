//! Fixes by the terms of their keys, in a store or in memory.

use crate::model::Fix;
use crate::store::Terms;

/// Fixes that can be looked up by the terms of their keys, in a store or in memory.
pub(crate) trait Fixes {
    /// Returns the number of fixes.
    fn entries(&self) -> u64;
    /// Returns the newest `limit` fixes with a term, and the number of all with it.
    fn holding(&self, term: u64, limit: usize) -> (Vec<u32>, u64);
    /// Returns a fix by its number.
    fn fix(&self, number: u32) -> Option<Fix>;
}

impl Fixes for Terms {
    fn entries(&self) -> u64 {
        self.entries()
    }

    fn holding(&self, term: u64, limit: usize) -> (Vec<u32>, u64) {
        self.holding(term, limit)
    }

    fn fix(&self, number: u32) -> Option<Fix> {
        let fix: Fix = self.entry(number)?.parse().ok()?;
        let trust = self.trust_snapshot().level(&fix);
        Some(fix.believed(trust))
    }
}
