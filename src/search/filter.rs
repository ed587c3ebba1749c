//! Filter for documents that a search may return.
//!
//! It applies before counting and ranking. Excluded documents do not affect term rarity, so scores
//! reveal nothing about them.

use std::collections::HashSet;
use std::sync::Arc;

use crate::model::{Kind, MemoryType, Scope, SkillPath, Trust, Viewer};

use super::attributes::{Attributes, kind_number, name_hash, note_number, trust_number};

/// Conditions for a document to be found. The default admits everything, including expired
/// documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Current time in seconds since 1970; excludes documents expired by then.
    pub now: i64,
    /// Required kind.
    pub kind: Option<Kind>,
    /// Required skill.
    pub skill: Option<SkillPath>,
    /// Required scope.
    pub scope: Scope,
    /// Viewer, for kinds that have a user.
    pub viewer: Viewer,
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

impl Default for Filter {
    fn default() -> Self {
        Self {
            now: i64::MIN,
            kind: None,
            skill: None,
            scope: Scope::All,
            viewer: Viewer::Owner,
            memory_type: None,
            trust: None,
            since: None,
            until: None,
            keys: None,
        }
    }
}

/// Filter as numbers, for fast evaluation per document.
#[derive(Debug)]
pub(super) struct Admission {
    now: i64,
    kind: Option<u8>,
    skill: Option<u32>,
    domains: Option<Vec<u32>>,
    own: Option<UserFilter>,
    note: Option<u8>,
    trust: u8,
    since: Option<i64>,
    until: Option<i64>,
    keys: Option<Arc<HashSet<u64>>>,
}

/// Restriction to one user's documents, for kinds that have a user.
#[derive(Debug)]
struct UserFilter {
    kinds: [bool; Kind::ALL.len()],
    /// `None` matches no document of such a kind.
    user: Option<u32>,
}

impl UserFilter {
    fn of(user: Option<u32>) -> Self {
        Self {
            kinds: Kind::ALL.map(Kind::has_user),
            user,
        }
    }

    /// Returns true if a document belongs to the user and has no domain: it is then visible in
    /// every non-empty scope.
    fn is_in_every_domain(&self, document: &Attributes) -> bool {
        let has_user = self.kinds.get(usize::from(document.kind)) == Some(&true);
        has_user && document.domain == 0 && document.skill == 0 && self.user == Some(document.user)
    }

    fn admits(&self, document: &Attributes) -> bool {
        let has_user = self.kinds.get(usize::from(document.kind));
        has_user == Some(&false) || self.user == Some(document.user)
    }
}

impl Filter {
    /// Returns true if the filter admits every document that has not expired.
    pub(super) fn asks_for_nothing(&self) -> bool {
        let nothing = Self {
            now: self.now,
            ..Self::default()
        };
        *self == nothing
    }

    pub(super) fn admission(&self) -> Admission {
        let domains = match &self.scope {
            Scope::All => None,
            Scope::Domains(domains) => Some(domains.iter().map(|d| name_hash(d)).collect()),
        };
        Admission {
            now: self.now,
            kind: self.kind.map(kind_number),
            skill: self.skill.as_ref().map(|s| name_hash(&s.to_string())),
            domains,
            own: match &self.viewer {
                Viewer::Owner => None,
                Viewer::User(id) => Some(UserFilter::of(Some(name_hash(id.as_str())))),
                Viewer::Nobody => Some(UserFilter::of(None)),
            },
            note: self.memory_type.map(note_number),
            trust: self.trust.map_or(0, trust_number),
            since: self.since,
            until: self.until,
            keys: self.keys.clone(),
        }
    }
}

impl Admission {
    pub(super) fn admits(&self, document: &Attributes) -> bool {
        document.expires > self.now
            && document.trust >= self.trust
            && self.own.as_ref().is_none_or(|own| own.admits(document))
            && self.kind.is_none_or(|kind| document.kind == kind)
            && self.skill.is_none_or(|skill| document.skill == skill)
            && self.note.is_none_or(|note| document.note == note)
            && self.since.is_none_or(|since| document.created >= since)
            // An unknown creation time does not count as before `until`.
            && self.until.is_none_or(|until| document.created < until && document.created > i64::MIN)
            && self.keys.as_ref().is_none_or(|keys| keys.contains(&document.key))
            && self
                .domains
                .as_ref()
                .is_none_or(|domains| {
                    let own = self.own.as_ref().filter(|_| !domains.is_empty());
                    domains.contains(&document.domain)
                        || own.is_some_and(|own| own.is_in_every_domain(document))
                })
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
            ..Attributes::default()
        };
        let check = |filter: Filter, expected: bool| {
            let admits = filter.admission().admits(&document);
            assert_eq!(admits, expected, "{filter:?}");
        };
        let all = Filter::default;
        check(all(), true);
        check(Filter { now: 199, ..all() }, true);
        check(Filter { now: 200, ..all() }, false);
        let kind = |kind| Filter { kind, ..all() };
        check(kind(Some(Kind::Memory)), true);
        check(kind(Some(Kind::Procedure)), false);
        let skill = |skill: &str| Filter {
            skill: skill.parse().ok(),
            ..all()
        };
        check(skill("hr/screening"), true);
        check(skill("hr/other"), false);
        let scope = |list| Filter {
            scope: Scope::parse(list),
            ..all()
        };
        check(scope("dev,hr"), true);
        check(scope("dev"), false);
        let viewer = |viewer| Filter { viewer, ..all() };
        check(viewer(Viewer::User("alice".parse().unwrap())), true);
        check(viewer(Viewer::User("bob".parse().unwrap())), false);
        check(viewer(Viewer::Nobody), false);
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
            let admission = Filter {
                viewer,
                ..Filter::default()
            }
            .admission();
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
        let filter = Filter {
            scope: Scope::parse("hr"),
            ..Filter::default()
        };
        assert!(!filter.admission().admits(&Attributes::default()));
    }

    #[test]
    fn what_is_a_users_and_of_no_domain_is_his_in_every_scope_but_the_empty_one() {
        let check = |scope: &str, kind: Kind, user: &str, domain: &str, expected: bool| {
            let filter = Filter {
                scope: Scope::parse(scope),
                viewer: Viewer::User("alice".parse().unwrap()),
                ..Filter::default()
            };
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
            let admits = filter.admission().admits(&document);
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
