//! Limits, defaults and checks of the arguments that more than one interface takes.
//!
//! The command line, HTTP and MCP each parse requests in their own form, and fill the options of an
//! operation: [`FindOptions`](crate::notes::FindOptions), [`HintOptions`](crate::lessons::HintOptions) and
//! so on. The range of an argument, its default and the error for an invalid value do not depend on the
//! interface. They are decided here.
//!
//! Deliberately absent: the forms of requests. Names and descriptions of their fields belong to one
//! interface.

use std::ops::RangeInclusive;

use crate::lessons::telling::hint::MAX_HINTS;
use crate::model::error::UserError;

/// Permitted numbers of an argument, and the number that an absent one means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Smallest number.
    pub least: u32,
    /// Number if the argument is absent.
    pub usual: u32,
    /// Largest number.
    pub most: u32,
}

/// Numbers that `-n` may have on the command line, whose user waits for one answer only. The other
/// interfaces serve many, and take the smaller numbers below.
pub const TYPED: RangeInclusive<i64> = 1..=100_000;
/// Results of a search.
pub const RESULTS: Bounds = Bounds::of(1, 5, 50);
/// Records of a list.
pub const LISTED: Bounds = Bounds::of(1, 20, 500);
/// Hints for a failure.
#[expect(clippy::cast_possible_truncation, reason = "it is small")]
pub const HINTS: Bounds = Bounds::of(1, MAX_HINTS as u32, 20);
/// Hints for a failure that is recorded.
pub const HINTS_OF_RECORDED: Bounds = Bounds::of(1, 5, 20);

pub use crate::lessons::NO_SESSION as SESSION;

/// Maximum size of a search query in bytes: 16 KiB.
pub const LONGEST_QUERY: usize = 16 << 10;
/// Maximum size of a stored text in bytes: 256 KiB.
pub const LONGEST_TEXT: usize = 256 << 10;
/// Maximum size of a name or an id in bytes.
pub const LONGEST_NAME: usize = 200;

impl Bounds {
    /// Creates bounds.
    pub const fn of(least: u32, usual: u32, most: u32) -> Self {
        Self { least, usual, most }
    }

    /// Returns the permitted numbers.
    pub fn range(self) -> RangeInclusive<i64> {
        i64::from(self.least)..=i64::from(self.most)
    }

    /// Returns the given number, or the usual one.
    ///
    /// # Errors
    ///
    /// Fails if the number is out of range.
    pub fn check(self, name: &str, given: Option<i64>) -> Result<usize, UserError> {
        let number = given.unwrap_or_else(|| i64::from(self.usual));
        let permitted = Some(number).filter(|number| self.range().contains(number));
        let permitted = permitted.and_then(|number| usize::try_from(number).ok());
        permitted.ok_or_else(|| {
            UserError::input(
                format!("`{name}` is out of range: {number}"),
                format!("give a number from {} to {}", self.least, self.most),
            )
        })
    }
}

/// Returns a text of another program, which must not be blank, and at most `most` bytes long.
///
/// # Errors
///
/// Fails if it is blank or too long.
pub fn text(name: &str, given: String, most: usize) -> Result<String, UserError> {
    let (problem, hint) = match given.len() {
        _ if given.trim().is_empty() => ("is empty".to_owned(), format!("give `{name}` a value")),
        bytes if bytes > most => (
            format!("has {bytes} bytes"),
            format!("`{name}` may have at most {most} bytes"),
        ),
        _ => return Ok(given),
    };
    Err(UserError::input(format!("`{name}` {problem}"), hint))
}

/// Refuses a word that is none of the permitted ones.
///
/// # Errors
///
/// Fails with the permitted words as the hint.
pub fn word(name: &str, given: &str, permitted: &[&str]) -> Result<(), UserError> {
    if permitted.contains(&given) {
        return Ok(());
    }
    Err(UserError::input(
        format!("`{name}` is `{}`", given.escape_debug()),
        format!("it is one of {}", permitted.join(", ")),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_within_bounds() {
        let check = |given: Option<i64>, expected: Option<usize>| {
            assert_eq!(RESULTS.check("limit", given).ok(), expected, "{given:?}");
        };
        check(None, Some(5));
        check(Some(1), Some(1));
        check(Some(50), Some(50));
        for outside in [0, 51, -1, i64::MAX, i64::MIN] {
            check(Some(outside), None);
        }
    }

    #[test]
    fn texts_say_something_and_are_not_too_long() {
        let check = |given: &str, expected: Option<&str>| {
            let read = text("query", given.to_owned(), 4).map_err(|error| error.message);
            assert_eq!(read.err().as_deref(), expected, "{given}");
        };
        check("disk", None);
        check(" \n", Some("`query` is empty"));
        check("disks", Some("`query` has 5 bytes"));
    }
}
