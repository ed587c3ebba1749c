//! What a caller may see, decided from the text of an entry.
//!
//! Three conditions, and all of them have to hold: the scope covers its skill, it is the viewer's,
//! and it has not expired. Every way out of the store asks here, and so does every way in that
//! changes what is there.
//!
//! What carries a user's id and no skill is in no domain to be kept out of: it is that user's in
//! whatever domains he works, and nobody's where he works in none.
//!
//! It fails closed: who was not told the time sees nothing that has an end.

use chrono::{DateTime, Utc};

use crate::model::{Expiry, Kind, Scope, Viewer};

use super::json_text;

/// What a caller may see.
#[derive(Debug, Clone)]
pub(super) struct Sight {
    pub(super) scope: Scope,
    pub(super) viewer: Viewer,
    /// `None` where nobody has said what time it is.
    pub(super) now: Option<DateTime<Utc>>,
}

impl Sight {
    /// Whether an entry of this kind exists for the caller.
    pub(super) fn sees(&self, kind: Kind, entry: &[u8]) -> bool {
        self.covers(kind, entry) && !(kind.may_expire() && expiry(entry).is_over(self.now))
    }

    /// The same, whether it has expired or not.
    pub(super) fn covers(&self, kind: Kind, entry: &[u8]) -> bool {
        let in_scope = self.scope == Scope::All || {
            let skill = json_text::string_field(entry, "skill");
            let names_none = matches!(json_text::field(entry, "skill"), None | Some(b"null"));
            self.scope.allows(skill.as_deref()) || (names_none && self.is_in_every_domain(kind))
        };
        in_scope && self.is_own(kind, entry)
    }

    /// Whether the scope covers a record of this kind, as far as its skill goes.
    pub(super) fn covers_skill(&self, kind: Kind, skill: Option<&str>) -> bool {
        self.scope.allows(skill) || (skill.is_none() && self.is_in_every_domain(kind))
    }

    /// Whether what is the viewer's of this kind, and belongs to no skill, is his in every scope but the
    /// empty one.
    pub(super) fn is_in_every_domain(&self, kind: Kind) -> bool {
        let is_empty = matches!(&self.scope, Scope::Domains(domains) if domains.is_empty());
        kind.has_user() && matches!(self.viewer, Viewer::User(_)) && !is_empty
    }

    /// Whether an entry is one that the viewer may see and write, as far as its user goes.
    pub(super) fn is_own(&self, kind: Kind, entry: &[u8]) -> bool {
        !kind.has_user()
            || self.viewer == Viewer::Owner
            || self
                .viewer
                .sees(json_text::string_field(entry, "user_id").as_deref())
    }

    /// Whether everything in the files is the caller's to see, but for what has expired.
    pub(super) fn is_whole(&self) -> bool {
        self.scope == Scope::All && self.viewer == Viewer::Owner
    }

    /// Whether only the text of an entry tells if it is seen: the table of offsets knows skills, and
    /// nothing of users and times.
    pub(super) fn asks_the_text(&self, kind: Kind) -> bool {
        kind.may_expire() || (kind.has_user() && self.viewer != Viewer::Owner)
    }
}

/// When an entry expires.
pub(super) fn expiry(entry: &[u8]) -> Expiry {
    match json_text::field(entry, "expires_at") {
        None | Some(b"null") => Expiry::Never,
        Some(_) => match json_text::string_field(entry, "expires_at") {
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
        let sight = |scope, viewer| Sight {
            scope,
            viewer,
            now: Some(now.to_utc()),
        };
        let owner = sight(Scope::All, Viewer::Owner);
        let alice = sight(Scope::All, Viewer::User("alice".parse().unwrap()));
        let hr = sight(Scope::parse("hr"), Viewer::Owner);
        let alice_in_hr = sight(Scope::parse("hr"), Viewer::User("alice".parse().unwrap()));
        let nowhere = sight(Scope::parse(""), Viewer::User("alice".parse().unwrap()));
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
        check_own(Kind::Fix, r#"{"user_id": "alice"}"#, false);
        let check = |kind, entry: &str, expected: [bool; 3]| {
            let seen = [&owner, &alice, &hr].map(|sight| sight.sees(kind, entry.as_bytes()));
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
        check(Kind::Fix, "{}", [true, true, false]);
        check(Kind::Reflexion, r#"{"skill": "hr/x"}"#, [true; 3]);
        // The last of two fields counts, as it does for every parser.
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
            Kind::Fix,
            r#"{"expires_at": "2026-05-01"}"#,
            [true, true, false],
        );
    }
}
