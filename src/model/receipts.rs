//! Receipts of a rule that acts at calls: what agents did after they were told it.

use serde::Serialize;

/// Number of sessions: each counts at most once for each of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct Receipts {
    /// An agent was told the rule at a call.
    pub told: u64,
    /// After it was told, no call broke the rule any more.
    pub heeded: u64,
    /// After it was told, another call broke the rule.
    pub recurred: u64,
    /// The person was asked about such a call, and it ran all the same.
    pub overridden: u64,
}

impl Receipts {
    /// Minimum number of sessions before a rule counts as ignored.
    const OFTEN: u64 = 3;

    /// Returns `true` if agents break the rule in more than half of the sessions that they are told
    /// it in.
    pub fn is_ignored(self) -> bool {
        self.told >= Self::OFTEN && self.recurred * 2 > self.told
    }

    /// Returns the counts in words; empty if it was never told.
    pub fn words(self) -> String {
        if self.told == 0 {
            return String::new();
        }
        let mut words = format!("told in {}, heeded in {}", self.told, self.heeded);
        for (count, name) in [(self.recurred, "recurred"), (self.overridden, "overridden")] {
            if count > 0 {
                words.extend([", ", name, " in ", &count.to_string()]);
            }
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_most_sessions_break_again_is_ignored() {
        let check = |told, recurred, expected| {
            let receipts = Receipts {
                told,
                recurred,
                ..Receipts::default()
            };
            assert_eq!(receipts.is_ignored(), expected, "{receipts:?}");
        };
        check(0, 0, false);
        check(2, 2, false);
        check(3, 2, true);
        check(4, 2, false);
    }
}
