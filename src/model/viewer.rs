//! Who asks: the owner of the files, or one of the users whose memories and sessions lie in them.
//!
//! A [`Viewer`] stands beside the [`Scope`](super::Scope) and narrows what that admits. It fails
//! closed: of the kinds that have a user ([`Kind::has_user`](super::Kind::has_user)), a user sees
//! what carries exactly his id, and nothing that carries none.
//!
//! Deliberately absent: any proof of who somebody is. Whoever reads the files reads all of them; a
//! front door that lets others in has to know who they are before it names one here.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// The id of a user: what stands in `user_id`. Never blank, so that it is never "nobody in
/// particular".
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct UserId(String);

/// Why a text is no id of a user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no user: {reason}", .given.escape_debug())]
pub struct InvalidUserId {
    /// What was given.
    pub given: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// The longest id of a user, in bytes: a UUID has 36, and few addresses more than 100.
const LONGEST: usize = 200;

impl UserId {
    /// The id as it stands in a file.
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
        // The replacement character is what unreadable bytes are read as: it could be anybody.
        if given.contains(|c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER) {
            return refuse("a control character stands in it");
        }
        Ok(Self(given.to_owned()))
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Viewer {
    /// The owner of the files, who gave no identity: everything.
    #[default]
    Owner,
    /// This user: what is his.
    User(UserId),
    /// Somebody whose identity is not known, where one may have been given: nothing.
    Nobody,
}

impl Viewer {
    /// Whether a record of a kind that has a user may be seen and changed. `user_id` is that of the
    /// record, as it stands in its file.
    pub fn sees(&self, user_id: Option<&str>) -> bool {
        match self {
            Self::Owner => true,
            Self::User(id) => user_id == Some(id.as_str()),
            Self::Nobody => false,
        }
    }

    /// The id that new records get.
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
