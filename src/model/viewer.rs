//! Identity of a caller: the owner of the files, or one of the users with records in them.
//!
//! A [`Viewer`] narrows what the [`Scope`](super::Scope) admits, and fails closed. Of the kinds
//! with users ([`Kind::has_user`](super::Kind::has_user)), a user sees only records with exactly
//! the same user id.
//!
//! Deliberately absent: authentication. A process that can read the files reads all of them; a
//! server must authenticate its callers before it creates a viewer.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// Id of a user, as in `user_id`. Never blank, so that it never matches records without a user.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct UserId(String);

/// Error for a text that is not a user id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid user id `{}`: {reason}", .given.escape_debug())]
pub struct InvalidUserId {
    /// The given text.
    pub given: String,
    /// Reason for the rejection.
    pub reason: &'static str,
}

/// Maximum length of a user id in bytes: a UUID has 36, and few addresses more than 100.
const LONGEST: usize = 200;

impl UserId {
    /// Returns the id as stored in a file.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for UserId {
    type Err = InvalidUserId;

    fn from_str(given: &str) -> Result<Self, InvalidUserId> {
        let refuse = |reason| {
            Err(InvalidUserId {
                given: given.to_owned(),
                reason,
            })
        };
        if given.trim().is_empty() {
            return refuse("it is blank");
        }
        if given.trim() != given {
            return refuse("it begins or ends with a space");
        }
        if given.len() > LONGEST {
            return refuse("it is longer than 200 bytes");
        }
        // Unreadable bytes decode to the replacement character, which would match several users.
        if given.contains(|c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER) {
            return refuse("it contains a control character");
        }
        Ok(Self(given.to_owned()))
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Identity of a caller.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Viewer {
    /// The owner of the files, without an identity: sees everything.
    #[default]
    Owner,
    /// A user: sees the records with that user id.
    User(UserId),
    /// A caller with an unknown identity: sees nothing.
    Nobody,
}

impl Viewer {
    /// Returns `true` if the caller may see and change a record with this `user_id`, of a kind with
    /// users.
    pub fn sees(&self, user_id: Option<&str>) -> bool {
        match self {
            Self::Owner => true,
            Self::User(id) => user_id == Some(id.as_str()),
            Self::Nobody => false,
        }
    }

    /// Returns the user id for new records.
    pub fn user_id(&self) -> Option<&str> {
        match self {
            Self::User(id) => Some(id.as_str()),
            Self::Owner | Self::Nobody => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_a_name() {
        for good in [
            "alice",
            "a",
            "4f1c9a1e-0000-4000-8000-000000000000",
            "ada@example.org",
            "李 雷",
        ] {
            assert_eq!(good.parse::<UserId>().unwrap().as_str(), good);
        }
        for bad in [
            "", " ", "\t\n", "\u{a0}", " alice", "alice\n", "a\0b", "a\u{fffd}b",
        ] {
            assert!(bad.parse::<UserId>().is_err(), "{bad:?}");
        }
        assert!("x".repeat(201).parse::<UserId>().is_err());
    }

    #[test]
    fn a_viewer_fails_closed() {
        let check = |viewer: &Viewer, expected: [bool; 4]| {
            let seen = [Some("alice"), Some("Alice"), Some(""), None].map(|id| viewer.sees(id));
            assert_eq!(seen, expected, "{viewer:?}");
        };
        check(&Viewer::Owner, [true; 4]);
        check(
            &Viewer::User("alice".parse().unwrap()),
            [true, false, false, false],
        );
        check(&Viewer::Nobody, [false; 4]);
    }
}
