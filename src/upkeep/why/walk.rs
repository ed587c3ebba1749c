//! Follows the links of one record.
//!
//! Each record is followed once. References to a record are found by a scan of the file of the
//! referring kind; only entries whose text contains the id are parsed as JSON.

use std::borrow::Cow;
use std::collections::HashSet;

use super::{Link, Relation};
use crate::model::{Evidence, Kind, Record, utc};
use crate::store::workspace::Error;
use crate::store::workspace::records::document;
use crate::store::{Scoped, Selection, TrustSnapshot};

/// Builds the chain of a record.
pub(crate) fn chain<'a>(store: &'a Scoped, kind: Kind, id: &str) -> Result<Walk<'a>, Error> {
    let mut walk = Walk::new(store);
    walk.visit(kind, id, Relation::Asked, None, Direction::Both)?;
    Ok(walk)
}

/// Builds the chain of a session that is known only by the records learned from its file; `None`
/// if there are none.
pub(crate) fn transcript<'a>(store: &'a Scoped, name: &str) -> Result<Option<Walk<'a>>, Error> {
    let mut walk = Walk::new(store);
    walk.chain.push(Link {
        kind: "transcript",
        ..link(name, Kind::Session, Relation::Asked, None)
    });
    let from = Step {
        id: name,
        depth: 0,
        way: Direction::Both,
    };
    walk.recoveries(name, from)?;
    Ok((walk.chain.len() > 1).then_some(walk))
}

/// Link of which nothing but its place in the chain is known.
pub(super) fn link(id: &str, kind: Kind, relation: Relation, from: Option<Step<'_>>) -> Link {
    Link {
        id: id.to_owned(),
        kind: kind.name(),
        relation,
        to: from.map(|from| from.id.to_owned()),
        depth: from.map_or(0, |from| from.depth + 1),
        ..Link::default()
    }
}

/// Direction in which links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// Causes, then effects.
    Both,
    /// Causes only.
    Up,
    /// Effects only.
    Down,
    /// No further links.
    End,
}

impl Direction {
    pub(super) const fn is_up(self) -> bool {
        matches!(self, Self::Both | Self::Up)
    }

    pub(super) const fn is_down(self) -> bool {
        matches!(self, Self::Both | Self::Down)
    }
}

/// Link from which the walk continues.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) id: &'a str,
    depth: usize,
    pub(super) way: Direction,
}

/// Walk over the links of a record.
pub(crate) struct Walk<'a> {
    store: &'a Scoped,
    pub(super) trust_snapshot: TrustSnapshot,
    /// Links, from the record itself.
    pub(crate) chain: Vec<Link>,
    /// Ids visited so far; each is followed once.
    met: HashSet<String>,
    /// Evidence that counts for the record.
    pub(crate) evidence: Evidence,
    /// Records in the chain, each once, with their users.
    pub(crate) read: Vec<(Kind, String, Option<String>)>,
}

impl<'a> Walk<'a> {
    fn new(store: &'a Scoped) -> Self {
        Self {
            store,
            trust_snapshot: store.trust_snapshot(),
            chain: Vec::new(),
            met: HashSet::new(),
            evidence: Evidence::default(),
            read: Vec::new(),
        }
    }
}

impl Walk<'_> {
    fn visit(
        &mut self,
        kind: Kind,
        id: &str,
        relation: Relation,
        from: Option<Step<'_>>,
        way: Direction,
    ) -> Result<(), Error> {
        let mut link = link(id, kind, relation, from);
        let depth = link.depth;
        let Some(entry) = self.store.find(kind, id)? else {
            return self.gone(kind, link);
        };
        if let Some(document) = document(&entry) {
            link.at = utc(&document.created);
            link.summary = document.summary;
            link.trust = Some(self.trust_snapshot.of_entry(&entry, document.trust));
            link.status = document.status;
            link.source = document.source;
        }
        let at = self.chain.len();
        self.chain.push(link);
        let is_new = self.met.insert(id.to_owned());
        if is_new {
            let user = entry.user_id().map(Cow::into_owned);
            self.read.push((kind, id.to_owned(), user));
        }
        let from = Step {
            id,
            depth,
            way: if is_new { way } else { Direction::End },
        };
        let evidence = match kind {
            Kind::Execution => self.execution(at, &entry, from)?,
            Kind::Correction => self.correction(&entry, from)?,
            Kind::Reflexion => self.rule(at, &entry, from)?,
            Kind::Procedure => self.procedure(at, &entry, from)?,
            Kind::Session => self.session(&entry, from)?,
            Kind::Memory => None,
        };
        if let Some(found) = evidence.filter(|_| is_new && relation.counts()) {
            self.evidence.shown += found.shown;
            self.evidence.helped += found.helped;
            self.evidence.harmed += found.harmed;
        }
        Ok(())
    }

    /// Follows a link from one record to another, which its id names.
    pub(super) fn follow(
        &mut self,
        from: Step<'_>,
        way: Direction,
        relation: Relation,
        id: &str,
    ) -> Result<(), Error> {
        match Kind::of_id(id) {
            Some(kind) => self.visit(kind, id, relation, Some(from), way),
            None => Ok(()),
        }
    }

    /// Adds a link to a record that is not there.
    fn gone(&mut self, kind: Kind, mut link: Link) -> Result<(), Error> {
        if !self.store.sees_all() {
            return Ok(());
        }
        let state = match self.store.tombstone(kind, &link.id)? {
            Some(tombstone) => {
                link.at = tombstone.at;
                "forgotten"
            }
            None => "missing",
        };
        link.state = Some(state.to_owned());
        self.chain.push(link);
        Ok(())
    }

    /// Returns the records of a type that name an id and satisfy `is_meant`, oldest first.
    pub(super) fn naming<R: Record>(
        &self,
        id: &str,
        is_meant: impl Fn(&R) -> bool,
    ) -> Result<Vec<R>, Error> {
        let mut found = Vec::new();
        self.each_naming(id, &mut |record: R| {
            if is_meant(&record) {
                found.push(record);
            }
        })?;
        Ok(found)
    }

    /// Visits the records of a type whose text contains an id. Only these are parsed as JSON: a
    /// store has many executions, and few refer to one rule.
    pub(super) fn each_naming<R: Record>(
        &self,
        id: &str,
        visit: &mut dyn FnMut(R),
    ) -> Result<(), Error> {
        let all = Selection::default();
        self.store.each_entry(R::KIND, &all, &mut |entry| {
            let holds = memchr::memmem::find(&entry.text, id.as_bytes()).is_some();
            if let Some(record) = holds.then(|| entry.parse().ok()).flatten() {
                visit(record);
            }
        })?;
        Ok(())
    }
}
