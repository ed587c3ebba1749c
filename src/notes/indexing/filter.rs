//! Filter for documents that a search may return, and the attributes of a document that it looks at.
//!
//! It applies before counting and ranking. Excluded documents do not affect term rarity, so scores
//! reveal nothing about them.

use std::collections::HashSet;
use std::sync::Arc;

use memctl_search::{Admission, Attributes, KINDS, UserFilter, name_hash, seconds};

use crate::model::{Document, Expiry, Kind, MemoryType, Scope, SkillPath, Trust, Viewer};

/// Conditions of a caller for a document to be found. The default admits everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Required kind.
    pub kind: Option<Kind>,
    /// Required skill.
    pub skill: Option<SkillPath>,
    /// Required memory type.
    pub memory_type: Option<MemoryType>,
    /// Minimum trust.
    pub trust: Option<Trust>,
    /// Earliest creation time, in seconds since 1970.
    pub since: Option<i64>,
    /// End of the creation time range (exclusive), in seconds since 1970.
    pub until: Option<i64>,
    /// Allowed record versions, by key.
    pub keys: Option<Arc<HashSet<u64>>>,
}

// The index has room for every kind.
const _: () = assert!(Kind::ALL.len() <= KINDS);

impl Filter {
    /// The filter as numbers, for the index: what has not expired by now, in seconds since 1970, and is in
    /// the scope and visible.
    pub(crate) fn admission(&self, now: i64, scope: &Scope, viewer: &Viewer) -> Admission {
        let domains = match scope {
            Scope::All => None,
            Scope::Domains(domains) => Some(domains.iter().map(|d| name_hash(d)).collect()),
        };
        Admission {
            now,
            kind: self.kind.map(kind_number),
            skill: self.skill.as_ref().map(|s| name_hash(&s.to_string())),
            domains,
            own: match viewer {
                Viewer::Owner => None,
                Viewer::User(id) => Some(user_filter(Some(name_hash(id.as_str())))),
                Viewer::Nobody => Some(user_filter(None)),
            },
            note: self.memory_type.map(note_number),
            trust: self.trust.map_or(0, trust_number),
            since: self.since,
            until: self.until,
            keys: self.keys.clone(),
        }
    }
}

fn user_filter(user: Option<u32>) -> UserFilter {
    // A kind of a newer version counts as one that has a user.
    let mut kinds = [true; KINDS];
    for (has_user, kind) in kinds.iter_mut().zip(Kind::ALL) {
        *has_user = kind.has_user();
    }
    UserFilter { kinds, user }
}

/// Attributes of a document. `key` identifies this version of its record.
pub(crate) fn attributes(document: &Document, key: u64) -> Attributes {
    let skill = document.skill.as_deref();
    let path = skill.and_then(|skill| skill.parse::<SkillPath>().ok());
    let expires = document.expires.as_deref();
    Attributes {
        key,
        created: seconds(&document.created).unwrap_or(i64::MIN),
        expires: match Expiry::of(expires) {
            Expiry::Never => i64::MAX,
            Expiry::At(end) => end.timestamp(),
            // Records with an unreadable expiry time are never found.
            Expiry::Unreadable => i64::MIN,
        },
        skill: skill.map_or(0, name_hash),
        domain: path.map_or(0, |path| name_hash(path.domain())),
        user: document.user_id.as_deref().map_or(0, name_hash),
        kind: kind_number(document.kind),
        trust: trust_number(document.trust),
        note: document.memory_type.map_or(0, note_number),
    }
}

fn kind_number(kind: Kind) -> u8 {
    let place = Kind::ALL.iter().position(|other| *other == kind);
    place
        .and_then(|place| u8::try_from(place).ok())
        .unwrap_or(u8::MAX)
}

const fn trust_number(trust: Trust) -> u8 {
    match trust {
        Trust::Observed => 0,
        Trust::Approved => 1,
        Trust::User => 2,
    }
}

const fn note_number(memory_type: MemoryType) -> u8 {
    match memory_type {
        MemoryType::BrandMemory => 1,
        MemoryType::UserPreferences => 2,
        MemoryType::CompetitiveMemory => 3,
        MemoryType::TaskMemory => 4,
        MemoryType::PerformanceMemory => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_holds_by_itself() {
        let document = Attributes {
            key: 7,
            created: 100,
            expires: 200,
            skill: name_hash("hr/screening"),
            domain: name_hash("hr"),
            user: name_hash("alice"),
            kind: kind_number(Kind::Memory),
            trust: trust_number(Trust::Approved),
            note: note_number(MemoryType::TaskMemory),
        };
        let admits = |filter: &Filter, now: i64, scope: &str, viewer: &Viewer| {
            let admission = filter.admission(now, &Scope::parse(scope), viewer);
            admission.admits(&document)
        };
        let check = |filter: Filter, expected: bool| {
            let admits = admits(&filter, i64::MIN, "*", &Viewer::Owner);
            assert_eq!(admits, expected, "{filter:?}");
        };
        let all = Filter::default;
        check(all(), true);
        let at = |now| admits(&all(), now, "*", &Viewer::Owner);
        assert_eq!([199, 200].map(at), [true, false]);
        let kind = |kind| Filter { kind, ..all() };
        check(kind(Some(Kind::Memory)), true);
        check(kind(Some(Kind::Procedure)), false);
        let skill = |skill: &str| Filter {
            skill: skill.parse().ok(),
            ..all()
        };
        check(skill("hr/screening"), true);
        check(skill("hr/other"), false);
        let scope = |list| admits(&all(), i64::MIN, list, &Viewer::Owner);
        assert_eq!(["dev,hr", "dev"].map(scope), [true, false]);
        let viewer = |viewer| admits(&all(), i64::MIN, "*", &viewer);
        assert!(viewer(Viewer::User("alice".parse().unwrap())));
        assert!(!viewer(Viewer::User("bob".parse().unwrap())));
        assert!(!viewer(Viewer::Nobody));
        let keys = |keys: &[u64]| Filter {
            keys: Some(Arc::new(keys.iter().copied().collect())),
            ..all()
        };
        check(keys(&[6, 7]), true);
        check(keys(&[]), false);
        let note = |memory_type| Filter {
            memory_type: Some(memory_type),
            ..all()
        };
        check(note(MemoryType::TaskMemory), true);
        check(note(MemoryType::BrandMemory), false);
        let trust = |trust| Filter {
            trust: Some(trust),
            ..all()
        };
        check(trust(Trust::Observed), true);
        check(trust(Trust::User), false);
        let time = |since, until| Filter {
            since,
            until,
            ..all()
        };
        check(time(Some(100), Some(101)), true);
        check(time(Some(101), None), false);
        check(time(None, Some(100)), false);
    }

    #[test]
    fn what_has_no_user_is_no_user_s_and_rules_have_none() {
        let viewers = [Viewer::User("alice".parse().unwrap()), Viewer::Nobody];
        for viewer in viewers {
            let admission = Filter::default().admission(i64::MIN, &Scope::All, &viewer);
            for kind in Kind::ALL {
                let document = Attributes {
                    kind: kind_number(kind),
                    ..Attributes::default()
                };
                assert_eq!(admission.admits(&document), !kind.has_user(), "{kind}");
            }
        }
    }

    #[test]
    fn what_belongs_to_no_domain_is_outside_every_scope() {
        let filter = Filter::default();
        let admission = filter.admission(i64::MIN, &Scope::parse("hr"), &Viewer::Owner);
        assert!(!admission.admits(&Attributes::default()));
    }

    #[test]
    fn what_is_a_users_and_of_no_domain_is_his_in_every_scope_but_the_empty_one() {
        let check = |scope: &str, kind: Kind, user: &str, domain: &str, expected: bool| {
            let viewer = Viewer::User("alice".parse().unwrap());
            let filter = Filter::default();
            let admission = filter.admission(i64::MIN, &Scope::parse(scope), &viewer);
            let document = Attributes {
                kind: kind_number(kind),
                user: name_hash(user),
                domain: if domain.is_empty() {
                    0
                } else {
                    name_hash(domain)
                },
                ..Attributes::default()
            };
            let admits = admission.admits(&document);
            assert_eq!(admits, expected, "{scope} {kind} {user} {domain}");
        };
        check("hr", Kind::Memory, "alice", "", true);
        check("hr", Kind::Memory, "alice", "hr", true);
        check("hr", Kind::Memory, "alice", "finance", false);
        check("hr", Kind::Memory, "bob", "", false);
        check("hr", Kind::Procedure, "alice", "", false);
        check("", Kind::Memory, "alice", "", false);
        check("*", Kind::Memory, "alice", "", true);
    }
}
