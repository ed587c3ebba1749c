//! Removals that a plan would make, and the share that needs consent.

/// Number of records that a plan would remove from one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shrinking {
    /// Records to remove.
    pub going: u64,
    /// Records in total.
    pub of: u64,
    /// `true` for the shared store, `false` for the local store.
    pub is_remote: bool,
}

impl Shrinking {
    /// Returns `true` if the plan removes more than a tenth.
    pub(super) fn is_much(self) -> bool {
        self.going * 10 > self.of
    }
}

impl std::fmt::Display for Shrinking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = if self.is_remote {
            "this workspace shares would go from the shared store"
        } else {
            "others share would go from this memory"
        };
        write!(f, "{} of {} records that {place}", self.going, self.of)
    }
}
