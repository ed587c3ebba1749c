//! Reading through the access filter of one caller. Every read for a caller and every change to an existing
//! record applies the filter.
//!
//! - Here: the records visible to a caller, by scope, user and time.
//! - `scoped`: the store of one caller, with their audit events. `query`: reads records by a query. `ids`: what a user
//!   means by an id. `disabled`: the marks that switch a memory off.
//!
//! An entry is visible if the scope covers its skill, its user matches the viewer, and it has not
//! expired. Records with a user but no skill are visible to that user in every non-empty scope.
//!
//! The filter fails closed: without a current time, every record with an expiry is hidden.

pub(crate) mod disabled;
mod ids;
pub(crate) mod query;
pub(crate) mod scoped;

use chrono::{DateTime, Utc};
use memctl_files::json;

use crate::model::{Expiry, Kind, Scope, Viewer};

/// Access filter for one caller.
#[derive(Debug, Clone)]
pub(crate) struct AccessFilter {
    pub(crate) scope: Scope,
    pub(crate) viewer: Viewer,
    /// Current time; `None` hides every record with an expiry.
    pub(crate) now: Option<DateTime<Utc>>,
}

impl AccessFilter {
    /// Returns `true` if an entry of this kind is visible to the caller.
    pub(crate) fn sees(&self, kind: Kind, entry: &[u8]) -> bool {
        self.covers(kind, entry) && !(kind.may_expire() && expiry(entry).is_over(self.now))
    }

    /// Returns `true` if an entry is within scope and user, expired or not.
    pub(crate) fn covers(&self, kind: Kind, entry: &[u8]) -> bool {
        let in_scope = self.scope == Scope::All || {
            let skill = json::string_field(entry, "skill");
            let names_none = matches!(json::field(entry, "skill"), None | Some(b"null"));
            self.scope.allows(skill.as_deref()) || (names_none && self.is_in_every_domain(kind))
        };
        in_scope && self.is_own(kind, entry)
    }

    /// Returns `true` if the scope covers a record of this kind and skill.
    pub(crate) fn covers_skill(&self, kind: Kind, skill: Option<&str>) -> bool {
        self.scope.allows(skill) || (skill.is_none() && self.is_in_every_domain(kind))
    }

    /// Returns `true` if the viewer is a user and the scope is not empty: their records of this
    /// kind without a skill are then visible.
    pub(crate) fn is_in_every_domain(&self, kind: Kind) -> bool {
        let is_empty = matches!(&self.scope, Scope::Domains(domains) if domains.is_empty());
        kind.has_user() && matches!(self.viewer, Viewer::User(_)) && !is_empty
    }

    /// Returns `true` if the user of an entry permits the viewer to read and write it.
    pub(crate) fn is_own(&self, kind: Kind, entry: &[u8]) -> bool {
        !kind.has_user()
            || self.viewer == Viewer::Owner
            || self
                .viewer
                .sees(json::string_field(entry, "user_id").as_deref())
    }

    /// Returns `true` if the caller may see everything in the files, except expired records.
    pub(crate) fn is_whole(&self) -> bool {
        self.scope == Scope::All && self.viewer == Viewer::Owner
    }

    /// Returns `true` if visibility depends on the text of the entry: the table of offsets knows
    /// skills, but no users and times.
    pub(crate) fn asks_the_text(&self, kind: Kind) -> bool {
        kind.may_expire() || (kind.has_user() && self.viewer != Viewer::Owner)
    }
}

/// Returns the expiry of an entry.
pub(crate) fn expiry(entry: &[u8]) -> Expiry {
    match json::field(entry, "expires_at") {
        None | Some(b"null") => Expiry::Never,
        Some(_) => match json::string_field(entry, "expires_at") {
            Some(text) => Expiry::of(Some(&text)),
            None => Expiry::Unreadable,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_three_conditions_hold_at_once() {
        let now = DateTime::parse_from_rfc3339("2026-05-01T00:00:00Z").unwrap();
        let access = |scope, viewer| AccessFilter {
            scope,
            viewer,
            now: Some(now.to_utc()),
        };
        let owner = access(Scope::All, Viewer::Owner);
        let alice = access(Scope::All, Viewer::User("alice".parse().unwrap()));
        let hr = access(Scope::parse("hr"), Viewer::Owner);
        let alice_in_hr = access(Scope::parse("hr"), Viewer::User("alice".parse().unwrap()));
        let nowhere = access(Scope::parse(""), Viewer::User("alice".parse().unwrap()));
        let check_own = |kind, entry: &str, expected: bool| {
            assert_eq!(
                alice_in_hr.sees(kind, entry.as_bytes()),
                expected,
                "{entry}"
            );
            assert!(!nowhere.sees(kind, entry.as_bytes()), "{entry}");
        };
        check_own(Kind::Memory, r#"{"user_id": "alice"}"#, true);
        check_own(
            Kind::Session,
            r#"{"user_id": "alice", "skill": null}"#,
            true,
        );
        check_own(
            Kind::Memory,
            r#"{"user_id": "alice", "skill": "hr/x"}"#,
            true,
        );
        for skill in [r#""finance/x""#, r#"["hr/x"]"#, r#""x""#, r#""""#] {
            let entry = format!(r#"{{"user_id": "alice", "skill": {skill}}}"#);
            check_own(Kind::Memory, &entry, false);
        }
        check_own(Kind::Memory, r#"{"user_id": "bob"}"#, false);
        check_own(Kind::Memory, "{}", false);
        check_own(Kind::Procedure, r#"{"user_id": "alice"}"#, false);
        let check = |kind, entry: &str, expected: [bool; 3]| {
            let seen = [&owner, &alice, &hr].map(|access| access.sees(kind, entry.as_bytes()));
            assert_eq!(seen, expected, "{entry}");
        };
        check(Kind::Memory, r#"{"user_id": "alice"}"#, [true, true, false]);
        check(Kind::Memory, r#"{"user_id": "bob"}"#, [true, false, false]);
        check(
            Kind::Memory,
            r#"{"user_id": ["alice"]}"#,
            [true, false, false],
        );
        check(Kind::Memory, "{}", [true, false, false]);
        check(Kind::Session, "{}", [true, false, false]);
        check(Kind::Procedure, "{}", [true, true, false]);
        check(Kind::Reflexion, r#"{"skill": "hr/x"}"#, [true; 3]);
        // The last of two fields counts, as in every JSON parser.
        let twice = r#"{"user_id": "alice", "user_id": "bob"}"#;
        check(Kind::Memory, twice, [true, false, false]);
        check(Kind::Memory, r#"{"expires_at": "2026-05-01"}"#, [false; 3]);
        check(Kind::Memory, r#"{"expires_at": 90}"#, [false; 3]);
        check(
            Kind::Memory,
            r#"{"expires_at": null}"#,
            [true, false, false],
        );
        check(
            Kind::Procedure,
            r#"{"expires_at": "2026-05-01"}"#,
            [true, true, false],
        );
    }
}
