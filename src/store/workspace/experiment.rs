//! Experiment: withholds a random share of hints and rules (control group), to measure the value of
//! memory by the difference. Off unless `experiment.withhold` is set.
//!
//! The draw depends only on the item and the session or execution: an error is treated alike
//! throughout a session, and a rule alike throughout an execution. Deliberately absent: the rules
//! of a session's briefing, since their effect cannot be measured.

use std::fmt;
use std::str::FromStr;

use crate::store::Scoped;

/// Withheld share, from 0 to 0.9.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Share(f64);

impl Share {
    /// Share of zero: nothing is withheld.
    pub const NONE: Self = Self(0.0);

    /// Returns the share as a number.
    pub fn get(self) -> f64 {
        self.0
    }

    /// Returns true if this item is withheld from this session or execution.
    pub(crate) fn withholds(self, store: &Scoped, what: &str, unit: &str) -> bool {
        self.0 > 0.0 && store.lot(what, unit).is_some_and(|lot| lot < self.0)
    }
}

/// Error for a text that is not a share.
#[derive(Debug)]
pub struct InvalidShare;

impl fmt::Display for InvalidShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number from 0 to 0.9 is expected")
    }
}

impl FromStr for Share {
    type Err = InvalidShare;

    fn from_str(text: &str) -> Result<Self, InvalidShare> {
        match text.parse() {
            Ok(share) if (0.0..=0.9).contains(&share) => Ok(Self(share)),
            _ => Err(InvalidShare),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_leaves_something_to_be_seen() {
        for (text, expected) in [("0", Some(0.0)), ("0.1", Some(0.1)), ("0.9", Some(0.9))] {
            assert_eq!(
                text.parse::<Share>().ok().map(Share::get),
                expected,
                "{text}"
            );
        }
        for text in ["1", "-0.1", "NaN", "10%", ""] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }
}
