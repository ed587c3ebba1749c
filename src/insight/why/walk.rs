//! Follows the links of one record.
//!
//! Each record is followed once. References to a record are found by a scan of the file of the
//! referring kind; only entries whose text contains the id are parsed as JSON.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::learn::cure::NoHint;
use crate::model::{
    Correction, EPISODE, Evidence, Execution, Fix, Kind, Origin, Procedure, Record, Reflexion,
    Said, Trust, utc,
};
use crate::store::{Entry, Scoped, Selection, Standing};

use super::{Link, Relation};
use crate::workspace::Error;
use crate::workspace::document::document;

/// Maximum number of executions of a rule, and of origins of a fix, in a chain: the newest.
const NAMED: usize = 3;

/// Result of following the links of a record.
pub(crate) struct Chain {
    /// Links, from the record itself.
    pub(crate) links: Vec<Link>,
    /// Evidence that counts for the record.
    pub(crate) evidence: Evidence,
    /// Records in the chain, each once, with their users.
    pub(crate) read: Vec<(Kind, String, Option<String>)>,
}

/// Builds the chain of a record.
pub(crate) fn chain(store: &Scoped, kind: Kind, id: &str) -> Result<Chain, Error> {
    let mut walk = Walk::new(store);
    walk.visit(kind, id, Relation::Asked, None, Way::Both)?;
    Ok(walk.end())
}

/// Builds the chain of a session that is known only by the records learned from its file; `None`
/// if there are none.
pub(crate) fn transcript(store: &Scoped, name: &str) -> Result<Option<Chain>, Error> {
    let mut walk = Walk::new(store);
    walk.chain.push(Link {
        kind: "transcript",
        ..link(name, Kind::Session, Relation::Asked, None)
    });
    let from = Step {
        id: name,
        depth: 0,
        way: Way::Both,
    };
    walk.recoveries(name, from)?;
    Ok((walk.chain.len() > 1).then(|| walk.end()))
}

/// Link of which nothing but its place in the chain is known.
fn link(id: &str, kind: Kind, relation: Relation, from: Option<Step<'_>>) -> Link {
    Link {
        id: id.to_owned(),
        kind: kind.name(),
        relation,
        to: from.map(|from| from.id.to_owned()),
        at: String::new(),
        summary: String::new(),
        state: None,
        trust: None,
        status: None,
        source: None,
        no_hint: None,
        executions: None,
        origins: None,
        depth: from.map_or(0, |from| from.depth + 1),
    }
}

/// Direction in which links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Causes, then effects.
    Both,
    /// Causes only.
    Up,
    /// Effects only.
    Down,
    /// No further links.
    End,
}

impl Way {
    const fn is_up(self) -> bool {
        matches!(self, Self::Both | Self::Up)
    }

    const fn is_down(self) -> bool {
        matches!(self, Self::Both | Self::Down)
    }
}

/// Link from which the walk continues.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) id: &'a str,
    depth: usize,
    pub(super) way: Way,
}

pub(super) struct Walk<'a> {
    store: &'a Scoped,
    standing: Standing,
    chain: Vec<Link>,
    /// Ids visited so far; each is followed once.
    met: HashSet<String>,
    evidence: Evidence,
    read: Vec<(Kind, String, Option<String>)>,
}

impl<'a> Walk<'a> {
    fn new(store: &'a Scoped) -> Self {
        Self {
            store,
            standing: store.standing(),
            chain: Vec::new(),
            met: HashSet::new(),
            evidence: Evidence::default(),
            read: Vec::new(),
        }
    }

    fn end(self) -> Chain {
        Chain {
            links: self.chain,
            evidence: self.evidence,
            read: self.read,
        }
    }
}

impl Walk<'_> {
    pub(super) fn visit(
        &mut self,
        kind: Kind,
        id: &str,
        relation: Relation,
        from: Option<Step<'_>>,
        way: Way,
    ) -> Result<(), Error> {
        let mut link = link(id, kind, relation, from);
        let depth = link.depth;
        let Some(entry) = self.store.find(kind, id)? else {
            return self.gone(kind, link);
        };
        if let Some(document) = document(&entry) {
            link.at = utc(&document.created);
            link.summary = document.summary;
            link.trust = Some(self.standing.of_entry(&entry, document.trust));
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
            way: if is_new { way } else { Way::End },
        };
        let evidence = match kind {
            Kind::Execution => self.execution(at, &entry, from)?,
            Kind::Correction => self.correction(&entry, from)?,
            Kind::Reflexion => self.rule(at, &entry, from)?,
            Kind::Procedure => self.procedure(at, &entry, from)?,
            Kind::Fix => self.fix(at, &entry, from)?,
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

    fn execution(
        &mut self,
        at: usize,
        entry: &Entry,
        from: Step<'_>,
    ) -> Result<Option<Evidence>, Error> {
        let Ok(execution) = entry.parse::<Execution>() else {
            return Ok(None);
        };
        self.chain[at].state = Some(execution.outcome.as_str().to_owned());
        if from.way != Way::Both {
            return Ok(None);
        }
        for rule in &execution.reflexions_injected {
            self.visit(
                Kind::Reflexion,
                rule,
                Relation::HadRule,
                Some(from),
                Way::Up,
            )?;
        }
        for procedure in &execution.procedures_injected {
            let relation = Relation::HadProcedure;
            self.visit(Kind::Procedure, procedure, relation, Some(from), Way::End)?;
        }
        let case = execution.nearest_case.map(|case| case.source);
        if let Some(source) = case
            && let Some(kind) = Kind::of_id(&source)
        {
            self.visit(kind, &source, Relation::Repeats, Some(from), Way::End)?;
        }
        let of_it = |correction: &Correction| correction.execution_id == from.id;
        for correction in self.naming(from.id, of_it)? {
            let id = &correction.correction_id;
            self.visit(
                Kind::Correction,
                id,
                Relation::CorrectedBy,
                Some(from),
                Way::Down,
            )?;
        }
        Ok(None)
    }

    fn correction(&mut self, entry: &Entry, from: Step<'_>) -> Result<Option<Evidence>, Error> {
        let Ok(correction) = entry.parse::<Correction>() else {
            return Ok(None);
        };
        let execution = &correction.execution_id;
        if from.way.is_up() && !execution.is_empty() {
            self.visit(
                Kind::Execution,
                execution,
                Relation::Corrects,
                Some(from),
                Way::End,
            )?;
        }
        if !from.way.is_down() {
            return Ok(None);
        }
        let of_it = |rule: &Reflexion| {
            rule.correction_id == from.id || rule.also_corrected_by.iter().any(|id| id == from.id)
        };
        for rule in self.naming(from.id, of_it)? {
            let relation = if rule.correction_id == from.id {
                Relation::Became
            } else {
                Relation::Strengthened
            };
            let id = &rule.reflexion_id;
            self.visit(Kind::Reflexion, id, relation, Some(from), Way::Down)?;
        }
        Ok(None)
    }

    fn rule(
        &mut self,
        at: usize,
        entry: &Entry,
        from: Step<'_>,
    ) -> Result<Option<Evidence>, Error> {
        let Ok(rule) = entry.parse::<Reflexion>() else {
            return Ok(None);
        };
        self.chain[at].state = Some(rule.state())
            .filter(|state| *state != "active")
            .map(str::to_owned);
        if from.way.is_up() {
            let first = (Relation::DistilledFrom, &rule.correction_id);
            let later = rule
                .also_corrected_by
                .iter()
                .map(|id| (Relation::StrengthenedBy, id));
            for (relation, id) in std::iter::once(first).chain(later) {
                if !id.is_empty() {
                    self.visit(Kind::Correction, id, relation, Some(from), Way::Up)?;
                }
            }
        }
        if from.way == Way::Both {
            self.said(&rule.said, from);
            let replaced = |older: &Reflexion| older.superseded_by == from.id;
            for older in self.naming(from.id, replaced)? {
                let id = &older.reflexion_id;
                self.visit(
                    Kind::Reflexion,
                    id,
                    Relation::Supersedes,
                    Some(from),
                    Way::End,
                )?;
            }
        }
        if from.way.is_down() {
            let newer = &rule.superseded_by;
            if !newer.is_empty() {
                self.visit(
                    Kind::Reflexion,
                    newer,
                    Relation::SupersededBy,
                    Some(from),
                    Way::End,
                )?;
            }
            let tests = [
                (Relation::ValidatedBy, &rule.generated_test_ids),
                (Relation::PartlyValidatedBy, &rule.partial_test_ids),
                (Relation::Breaks, &rule.breaks_test_ids),
            ];
            for (relation, ids) in tests {
                for id in ids {
                    self.other(id, "test", relation, from, String::new());
                }
            }
            self.injections(at, from)?;
        }
        Ok(Some(rule.evidence()))
    }

    /// Adds links to the newest executions whose prompt held a record, and counts them all.
    fn injections(&mut self, at: usize, from: Step<'_>) -> Result<(), Error> {
        let held = |execution: &Execution| {
            let rules = execution.reflexions_injected.iter();
            let mut held = rules.chain(&execution.procedures_injected);
            held.any(|id| id == from.id)
        };
        let mut count = 0;
        let mut newest = Vec::new();
        self.each_naming(from.id, &mut |execution: Execution| {
            if held(&execution) {
                count += 1;
                newest.push(execution.execution_id);
                if newest.len() > NAMED {
                    newest.remove(0);
                }
            }
        })?;
        self.chain[at].executions = Some(count);
        for id in newest.iter().rev() {
            self.visit(
                Kind::Execution,
                id,
                Relation::InjectedInto,
                Some(from),
                Way::End,
            )?;
        }
        Ok(())
    }

    fn procedure(
        &mut self,
        at: usize,
        entry: &Entry,
        from: Step<'_>,
    ) -> Result<Option<Evidence>, Error> {
        let Ok(procedure) = entry.parse::<Procedure>() else {
            return Ok(None);
        };
        let approved = self.standing.level(&procedure) == Trust::Approved;
        self.chain[at].state = approved.then(|| "approved".to_owned());
        if from.way == Way::Both {
            let of_it = |fix: &Fix| fix.procedure_id == from.id;
            for fix in self.naming(from.id, of_it)? {
                let id = &fix.fix_id;
                self.visit(Kind::Fix, id, Relation::Explains, Some(from), Way::End)?;
            }
            self.injections(at, from)?;
            // Most procedures were in no prompt.
            let injected = self.chain[at].executions;
            self.chain[at].executions = injected.filter(|count| *count > 0);
            self.origins(at, &procedure.origins, from);
        }
        Ok(None)
    }

    fn fix(&mut self, at: usize, entry: &Entry, from: Step<'_>) -> Result<Option<Evidence>, Error> {
        let Ok(fix) = entry.parse::<Fix>() else {
            return Ok(None);
        };
        let approved = self.standing.level(&fix) == Trust::Approved;
        self.chain[at].state = match fix.status.as_str() {
            "retired" | "quarantined" | EPISODE => Some(fix.status.clone()),
            _ => approved.then(|| "approved".to_owned()),
        };
        if fix.is_episode() {
            self.chain[at].no_hint = NoHint::from_name(&fix.no_hint).map(NoHint::name);
        }
        if from.way == Way::Both {
            let how = &fix.procedure_id;
            if !how.is_empty() {
                self.visit(
                    Kind::Procedure,
                    how,
                    Relation::ExplainedBy,
                    Some(from),
                    Way::End,
                )?;
            }
            self.origins(at, &fix.origins, from);
        }
        Ok(Some(fix.evidence()))
    }

    /// Adds links to the transcripts in which a record was seen.
    fn origins(&mut self, at: usize, origins: &[Origin], from: Step<'_>) {
        self.chain[at].origins = Some(origins.len() as u64);
        for origin in origins.iter().rev().take(NAMED) {
            let place = if origin.workspace.is_empty() {
                String::new()
            } else {
                format!(" in `{}`", origin.workspace)
            };
            let summary = format!("step {}{place}", origin.step);
            self.other(
                &origin.session,
                "transcript",
                Relation::SeenIn,
                from,
                summary,
            );
        }
    }

    /// Adds links to the messages that a rule was heard in, newest first.
    fn said(&mut self, said: &[Said], from: Step<'_>) {
        for said in said.iter().rev().take(NAMED) {
            let turn = match said.turn {
                0 => String::new(),
                turn => format!(" {turn}"),
            };
            let mut summary = format!("message{turn}: \"{}\"", said.quote);
            if !said.workspace.is_empty() {
                summary.extend([" in `", &said.workspace, "`"]);
            }
            if !said.after.is_empty() {
                summary.extend([", after `", &said.after, "`"]);
            }
            self.other(&said.session, "transcript", Relation::SaidIn, from, summary);
        }
    }

    /// Adds a link to a test or a transcript.
    fn other(
        &mut self,
        id: &str,
        kind: &'static str,
        relation: Relation,
        from: Step<'_>,
        summary: String,
    ) {
        self.chain.push(Link {
            kind,
            summary,
            ..link(id, Kind::Session, relation, Some(from))
        });
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
    fn each_naming<R: Record>(&self, id: &str, visit: &mut dyn FnMut(R)) -> Result<(), Error> {
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
