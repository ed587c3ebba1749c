//! Syntax of ids.
//!
//! The source documents fix two forms. `CORR-003` carries a counter. `EXEC-20260220124341` carries
//! the second of its creation, with `-2`, `-3` … for later ids of the same second. The store
//! ensures uniqueness, under its lock.
//!
//! A record that only this machine has carries a random word behind its counter, `REFL-003-k3v9q2`.
//! No clone gives such an id. The record gets the form of the source documents when a person
//! approves it, and keeps the first id in its field [`LOCAL_ID`].

use chrono::{DateTime, Utc};

use crate::model::Kind;

/// Position of an id in its sequence, from which the next id is derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct IdShape {
    /// The number of `CORR-003`, or the fourteen digits of `EXEC-20260220124341`.
    pub number: u64,
    /// The `2` of `EXEC-20260220124341-2`; 1 without a suffix.
    pub suffix: u32,
}

impl IdShape {
    /// Parses an id of this kind. Returns `None` for any other form (`weird`, or the reference's
    /// `EXEC-…-a1b2c3`); such ids are only compared for equality.
    pub fn of(kind: Kind, id: &str) -> Option<Self> {
        let rest = id.strip_prefix(kind.prefix())?.strip_prefix('-')?;
        if !kind.is_timestamped() {
            let number = local_number(kind, id).or_else(|| digits(rest))?;
            return Some(Self { number, suffix: 1 });
        }
        let (stamp, suffix) = match rest.split_once('-') {
            None => (rest, 1),
            Some((stamp, suffix)) => {
                // Six hexadecimal characters are the random suffix of the reference implementation,
                // even if all of them are digits.
                if suffix.len() >= 6 {
                    return None;
                }
                (stamp, u32::try_from(digits(suffix)?).ok()?)
            }
        };
        (stamp.len() == 14).then_some(Self {
            number: digits(stamp)?,
            suffix,
        })
    }
}

impl Kind {
    /// Returns `true` if ids of this kind carry the second of creation instead of a counter.
    pub const fn is_timestamped(self) -> bool {
        matches!(self, Self::Execution | Self::Session)
    }
}

/// Formats `CORR-003`: at least three digits, more if needed.
pub fn numbered(kind: Kind, number: u64) -> String {
    format!("{}-{number:03}", kind.prefix())
}

/// Field of an approved record: the id that it had while only this machine had it.
pub const LOCAL_ID: &str = "local_id";

/// Length of the random word in the id of a record that only this machine has.
const WORD: usize = 6;

/// Formats `REFL-003-k3v9q2`, the id of a record that only this machine has. The word is the beginning
/// of `random`.
pub fn local(kind: Kind, number: u64, random: &str) -> String {
    let word = random.chars().filter(char::is_ascii_alphanumeric);
    let word: String = word.take(WORD).collect();
    format!("{}-{:0<WORD$}", numbered(kind, number), word.to_lowercase())
}

/// Returns the number in the id of a record that only this machine has; `None` for other ids.
pub fn local_number(kind: Kind, id: &str) -> Option<u64> {
    let rest = id.strip_prefix(kind.prefix())?.strip_prefix('-')?;
    let (number, word) = rest.split_once('-').filter(|_| !kind.is_timestamped())?;
    let is_word = |b: u8| b.is_ascii_digit() || b.is_ascii_lowercase();
    let is_local = word.len() == WORD && word.bytes().all(is_word);
    is_local.then(|| digits(number)).flatten()
}

/// Formats `EXEC-20260220124341`, with `-2` and so on for later ids of the same second.
pub fn timestamped(kind: Kind, at: DateTime<Utc>, suffix: u32) -> String {
    let stamp = at.format("%Y%m%d%H%M%S");
    match suffix {
        0 | 1 => format!("{}-{stamp}", kind.prefix()),
        n => format!("{}-{stamp}-{n}", kind.prefix()),
    }
}

/// Number of characters of the workspace name after an id: enough to distinguish those of a team.
const ORIGIN_SHOWN: usize = 8;

/// Origin of the records in the user store: `REFL-001@user`. No workspace has this name.
pub const USER_STORE: &str = "user";

/// Formats the id of a remote record: `CORR-003@3f2a9c1b`.
pub fn with_origin(id: &str, origin: &str) -> String {
    let shown: String = origin.chars().take(ORIGIN_SHOWN).collect();
    format!("{id}@{shown}")
}

/// Splits an id from the prefix of its workspace name, if it has one.
pub fn split_origin(id: &str) -> (&str, Option<&str>) {
    match id.split_once('@') {
        Some((id, origin)) => (id, Some(origin)),
        None => (id, None),
    }
}

fn digits(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_of_an_id_is_read_or_ignored() {
        let check = |kind, id, expected: Option<(u64, u32)>| {
            let shape = IdShape::of(kind, id).map(|s| (s.number, s.suffix));
            assert_eq!(shape, expected, "{id}");
        };
        check(Kind::Correction, "CORR-007", Some((7, 1)));
        check(Kind::Correction, "CORR-1000", Some((1000, 1)));
        check(Kind::Correction, "weird", None);
        check(Kind::Correction, "CORR-", None);
        check(Kind::Correction, "CORR-+1", None);
        check(Kind::Correction, "CORR-007-k3v9q2", Some((7, 1)));
        check(Kind::Correction, "CORR-007-k3v9", None);
        check(Kind::Correction, "CORR-007-K3V9Q2", None);
        check(
            Kind::Execution,
            "EXEC-20260220124341",
            Some((20_260_220_124_341, 1)),
        );
        check(
            Kind::Execution,
            "EXEC-20260220124341-3",
            Some((20_260_220_124_341, 3)),
        );
        check(Kind::Execution, "EXEC-20260220124341-a1b2c3", None);
        check(Kind::Execution, "EXEC-20260220124341-123456", None);
        check(Kind::Execution, "EXEC-001", None);
    }

    #[test]
    fn an_id_of_this_machine_alone_is_told_from_those_of_clones() {
        let id = local(Kind::Reflexion, 3, "4F1c9a1e-0000");
        assert_eq!(id, "REFL-003-4f1c9a");
        assert_eq!(local(Kind::Reflexion, 3, "r"), "REFL-003-r00000");
        assert_eq!(local_number(Kind::Reflexion, &id), Some(3));
        for other in [
            "REFL-003", "REFL-003-4f1c9", "PROC-003-4f1c9a", "REFL-x-4f1c9a",
        ] {
            assert_eq!(local_number(Kind::Reflexion, other), None, "{other}");
        }
        let run = "EXEC-20260220124341-a1b2c3";
        assert_eq!(local_number(Kind::Execution, run), None);
    }

    #[test]
    fn ids_keep_the_form_of_the_source_documents() {
        assert_eq!(numbered(Kind::Reflexion, 3), "REFL-003");
        assert_eq!(numbered(Kind::Reflexion, 1000), "REFL-1000");
        let at = DateTime::parse_from_rfc3339("2026-02-20T12:43:41.681444Z")
            .unwrap()
            .to_utc();
        assert_eq!(timestamped(Kind::Execution, at, 1), "EXEC-20260220124341");
        assert_eq!(timestamped(Kind::Execution, at, 2), "EXEC-20260220124341-2");
    }
}
