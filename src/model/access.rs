//! `domain/skill` names, the scope that limits access to their records, and the identity of a caller: the
//! owner of the files, or one of the users with records in them.
//!
//! A [`SkillPath`] is validated on construction, so joining it to a directory never leaves that
//! directory. A [`Scope`] fails closed: a record without a domain, or an empty list of domains,
//! grants nothing.
//!
//! A [`Viewer`] narrows the [`Scope`], and fails closed. Of the kinds with users
//! ([`Kind::has_user`](super::Kind::has_user)), a user sees only records with exactly the same user id.
//!
//! Deliberately absent: authentication. A process that can read the files reads all of them; a
//! server must authenticate its callers before it creates a viewer.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::model::error::{Explain, Explanation, Kind};
use crate::model::words::schema;

/// The name of a skill: exactly `domain/skill`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SkillPath {
    domain: String,
    name: String,
}

/// Error for a text that is not a skill path: the given text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not a skill path: a skill is written as `domain/skill`, of letters, digits, `-`, `_`, `.` and `+`",
    .0.escape_debug()
)]
pub struct InvalidSkillPath(String);

/// File systems allow 255 bytes for a name; this limit leaves space for suffixes.
const MAX_PART: usize = 128;

impl SkillPath {
    /// The part before the slash.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// The part after the slash.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn is_part(part: &str) -> bool {
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
        let is_short = !part.is_empty() && part.len() <= MAX_PART;
        is_short && !part.starts_with('.') && part.chars().all(is_plain)
    }
}

impl FromStr for SkillPath {
    type Err = InvalidSkillPath;

    fn from_str(given: &str) -> Result<Self, InvalidSkillPath> {
        // Shells complete directories with a trailing slash.
        let trimmed = given.strip_suffix('/').unwrap_or(given);
        let parts = trimmed.split_once('/');
        let (domain, name) = parts
            .filter(|(domain, name)| Self::is_part(domain) && Self::is_part(name))
            .ok_or_else(|| InvalidSkillPath(given.to_owned()))?;
        Ok(Self {
            domain: domain.to_owned(),
            name: name.to_owned(),
        })
    }
}

impl fmt::Display for SkillPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.domain, self.name)
    }
}

schema!(SkillPath, {
    "type": "string", "description": "Skill, as `domain/skill`.", "examples": ["hr/resume-screen"]
});

impl Serialize for SkillPath {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Domains that a caller may read and write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Every domain, and records without one.
    All,
    /// These domains only; an empty set grants nothing.
    Domains(BTreeSet<String>),
}

impl Scope {
    /// Parses a comma-separated list of domains; `*` means all, an empty list none.
    pub fn parse(list: &str) -> Self {
        let domains: BTreeSet<String> = list
            .split(',')
            .map(str::trim)
            .filter(|domain| !domain.is_empty())
            .map(str::to_owned)
            .collect();
        if domains.contains("*") {
            Self::All
        } else {
            Self::Domains(domains)
        }
    }

    /// Returns `true` if records of this skill, as stored in a file, are visible.
    ///
    /// Records without a valid skill path are visible only to [`Scope::All`].
    pub fn allows(&self, skill: Option<&str>) -> bool {
        match self {
            Self::All => true,
            Self::Domains(domains) => skill
                .and_then(|skill| skill.parse::<SkillPath>().ok())
                .is_some_and(|skill| domains.contains(skill.domain())),
        }
    }
}

impl Explain for InvalidSkillPath {
    fn explain(&self) -> Explanation {
        (
            Kind::Input,
            Some("the skills here: ls skills/*/".to_owned()),
        )
    }
}

/// Id of a user, as in `user_id`. Never blank, so that it never matches records without a user.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct UserId(String);

/// Error for a text that is not a user id: the given text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid user id `{}`: it is blank, longer than 200 bytes, or has a space at an end or a control character",
    .0.escape_debug()
)]
pub struct InvalidUserId(String);

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
        // Unreadable bytes decode to the replacement character, which would match several users.
        let is_unclear = |c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER;
        let is_name = !given.is_empty() && given.trim() == given && given.len() <= LONGEST;
        if !is_name || given.contains(is_unclear) {
            return Err(InvalidUserId(given.to_owned()));
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
    fn only_two_plain_parts_make_a_skill_path() {
        for good in [
            "hr/resume-screen", "dev/c++", "日本/翻訳", "hr/triage/", "a_b/v1.2",
        ] {
            assert!(good.parse::<SkillPath>().is_ok(), "{good}");
        }
        for bad in [
            "", "hr", "a/b/c", "../..", "./hr", "hr/..", "hr/.", "hr/%2e%2e", "/etc/passwd",
            "/hr/x/", "hr/a\0b", "hr/ x", "hr//x", "/", "hr/", "hr\\x/y", "C:/x", "hr/x\n", "~/x",
        ] {
            assert!(bad.parse::<SkillPath>().is_err(), "{bad:?}");
        }
        assert!(
            format!("hr/{}", "x".repeat(129))
                .parse::<SkillPath>()
                .is_err()
        );
    }

    #[test]
    fn a_scope_fails_closed() {
        let hr = Scope::parse("hr, dev");
        assert!(hr.allows(Some("hr/resume-screen")));
        assert!(!hr.allows(Some("finance/expenses")));
        assert!(!hr.allows(Some("hr")));
        assert!(!hr.allows(None));
        assert!(!Scope::parse("").allows(Some("hr/x")));
        assert!(!Scope::parse(" , ").allows(Some("hr/x")));
        assert!(Scope::parse("*").allows(None));
    }
}

#[cfg(test)]
mod tests_of_viewer {
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
