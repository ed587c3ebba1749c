//! Says where a record came from, and what came of it.
//!
//! The chain is a tree, told from the record that is asked for: first what it came from, then what
//! came of it. Upwards only causes are followed and downwards only effects, so that a chain stays
//! one and does not become the whole store; executions begin and end it.
//!
//! A link whose end was removed is said. Within a scope it is not: what was forgotten and what
//! belongs to others look alike there, and neither is told.
//!
//! Deliberately absent: guesses. Only what records say of each other is a link, never likeness.

use std::collections::HashSet;

use serde::Serialize;

use crate::model::{
    Correction, Evidence, Execution, Fix, Kind, Origin, Procedure, Record, Reflexion, Scope,
};
use crate::store::{Entry, Scoped, Selection};

use super::find::document;
use super::{Engine, Error};

/// So many executions of a rule, and so many origins of a fix, are named: the newest.
const NAMED: usize = 3;

/// Where a record came from, and what came of it.
#[derive(Debug, Serialize)]
pub struct WhyReport {
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: Kind,
    /// The record, and after each record those that it leads to.
    pub chain: Vec<Link>,
    /// What use has shown of it; of an execution, a correction or a procedure, what it has shown of
    /// the rules and fixes that came of it.
    pub evidence: Evidence,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

/// One record, or test, or session, in a chain.
#[derive(Debug, Serialize)]
pub struct Link {
    /// Its id; of a session its host's id, of a test its name.
    pub id: String,
    /// The kind of record, or `test`, or `transcript`.
    pub kind: &'static str,
    /// What it is to `to`.
    pub relation: Relation,
    /// The id of the link that led here; `None` for the record that was asked for.
    pub to: Option<String>,
    /// When it was made, or forgotten: RFC 3339, UTC. Empty where nobody knows.
    pub at: String,
    /// Its words, on one line.
    pub summary: String,
    /// How it stands: the outcome of an execution; `superseded`, `retired`, `quarantined` or
    /// `approved`; `forgotten`, or `missing` where it was removed by other means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Of a rule: in how many executions it was injected, of which the newest follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executions: Option<u64>,
    /// Of a fix or a procedure: at how many places it was seen, of which the newest follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origins: Option<u64>,
    /// How many links lie between it and the record that was asked for.
    #[serde(skip)]
    pub depth: usize,
}

/// What one link is to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the definition")]
pub enum Relation {
    /// The record that was asked for.
    Asked,
    HadRule,
    Repeats,
    CorrectedBy,
    Corrects,
    Became,
    Strengthened,
    DistilledFrom,
    StrengthenedBy,
    Supersedes,
    SupersededBy,
    ValidatedBy,
    Breaks,
    InjectedInto,
    ExplainedBy,
    Explains,
    SeenIn,
}

impl Relation {
    /// The relation in words, to be followed by the id.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Asked => "",
            Self::HadRule => "had the rule",
            Self::Repeats => "repeats",
            Self::CorrectedBy => "corrected by",
            Self::Corrects => "corrects",
            Self::Became => "became",
            Self::Strengthened => "strengthened",
            Self::DistilledFrom => "distilled from",
            Self::StrengthenedBy => "strengthened by",
            Self::Supersedes => "supersedes",
            Self::SupersededBy => "superseded by",
            Self::ValidatedBy => "validated by",
            Self::Breaks => "breaks",
            Self::InjectedInto => "injected into",
            Self::ExplainedBy => "explained by",
            Self::Explains => "explains",
            Self::SeenIn => "seen in",
        }
    }

    /// Whether what use has shown of such a link speaks for the record that was asked for.
    const fn counts(self) -> bool {
        matches!(
            self,
            Self::Asked | Self::Became | Self::Strengthened | Self::Explains
        )
    }
}

/// Where to go on from a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// To what it came from, then to what came of it.
    Both,
    /// To what it came from.
    Up,
    /// To what came of it.
    Down,
    /// Nowhere.
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

impl Engine {
    /// Where a record came from, and what came of it. `id` may be the beginning of one, or `latest`.
    pub fn why(&self, id: &str) -> Result<WhyReport, Error> {
        let (kind, id) = self.locate(id)?;
        let mut walk = Walk {
            store: &self.store,
            chain: Vec::new(),
            met: HashSet::new(),
            evidence: Evidence::default(),
        };
        walk.visit(kind, &id, Relation::Asked, None, Way::Both)?;
        let warnings = Kind::ALL.into_iter().filter_map(|kind| {
            let damaged = self.store.has_problems(kind).unwrap_or(false);
            let file = kind.file();
            damaged.then(|| format!("`{file}` has damaged parts; see `memctl doctor`"))
        });
        Ok(WhyReport {
            id,
            kind,
            warnings: warnings.collect(),
            chain: walk.chain,
            evidence: walk.evidence,
        })
    }
}

/// A link that leads on.
#[derive(Debug, Clone, Copy)]
struct Step<'a> {
    id: &'a str,
    depth: usize,
    way: Way,
}

struct Walk<'a> {
    store: &'a Scoped,
    chain: Vec<Link>,
    /// The ids that were met; each is followed once.
    met: HashSet<String>,
    evidence: Evidence,
}

impl Walk<'_> {
    fn visit(
        &mut self,
        kind: Kind,
        id: &str,
        relation: Relation,
        from: Option<Step<'_>>,
        way: Way,
    ) -> Result<(), Error> {
        let depth = from.map_or(0, |from| from.depth + 1);
        let mut link = Link {
            id: id.to_owned(),
            kind: kind.name(),
            relation,
            to: from.map(|from| from.id.to_owned()),
            at: String::new(),
            summary: String::new(),
            state: None,
            executions: None,
            origins: None,
            depth,
        };
        let Some(entry) = self.store.find(kind, id)? else {
            return self.gone(kind, link);
        };
        if let Some(document) = document(&entry) {
            link.at = document.created;
            link.summary = document.summary;
        }
        let at = self.chain.len();
        self.chain.push(link);
        let is_new = self.met.insert(id.to_owned());
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
            Kind::Memory | Kind::Session => None,
        };
        if let Some(found) = evidence.filter(|_| is_new && relation.counts()) {
            self.evidence.shown += found.shown;
            self.evidence.helped += found.helped;
            self.evidence.harmed += found.harmed;
        }
        Ok(())
    }

    /// A link whose end is not there.
    fn gone(&mut self, kind: Kind, mut link: Link) -> Result<(), Error> {
        if *self.store.scope() != Scope::All {
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
        self.chain[at].state = match (rule.superseded_by.is_empty(), rule.is_retired()) {
            (false, _) => Some("superseded".to_owned()),
            (true, true) => Some("retired".to_owned()),
            (true, false) => None,
        };
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

    /// The executions whose prompt held a rule.
    fn injections(&mut self, at: usize, from: Step<'_>) -> Result<(), Error> {
        let held = |execution: &Execution| {
            let mut held = execution.reflexions_injected.iter();
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
        let approved = procedure.trust() == crate::model::Trust::Approved;
        self.chain[at].state = approved.then(|| "approved".to_owned());
        if from.way == Way::Both {
            let of_it = |fix: &Fix| fix.procedure_id == from.id;
            for fix in self.naming(from.id, of_it)? {
                let id = &fix.fix_id;
                self.visit(Kind::Fix, id, Relation::Explains, Some(from), Way::End)?;
            }
            self.origins(at, &procedure.origins, from);
        }
        Ok(None)
    }

    fn fix(&mut self, at: usize, entry: &Entry, from: Step<'_>) -> Result<Option<Evidence>, Error> {
        let Ok(fix) = entry.parse::<Fix>() else {
            return Ok(None);
        };
        let approved = fix.trust() == crate::model::Trust::Approved;
        self.chain[at].state = match fix.status.as_str() {
            "retired" | "quarantined" => Some(fix.status.clone()),
            _ => approved.then(|| "approved".to_owned()),
        };
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

    /// Where something was seen: the trajectories that it was taken from.
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

    /// A link to what is no record.
    fn other(
        &mut self,
        id: &str,
        kind: &'static str,
        relation: Relation,
        from: Step<'_>,
        summary: String,
    ) {
        self.chain.push(Link {
            id: id.to_owned(),
            kind,
            relation,
            to: Some(from.id.to_owned()),
            at: String::new(),
            summary,
            state: None,
            executions: None,
            origins: None,
            depth: from.depth + 1,
        });
    }

    /// The records of a type that name an id, as far as `is_meant` agrees; oldest first.
    fn naming<R: Record>(&self, id: &str, is_meant: impl Fn(&R) -> bool) -> Result<Vec<R>, Error> {
        let mut found = Vec::new();
        self.each_naming(id, &mut |record: R| {
            if is_meant(&record) {
                found.push(record);
            }
        })?;
        Ok(found)
    }

    /// Shows the records of a type whose text holds an id. Only those are read as JSON: a store has
    /// many executions, and few of them have to do with one rule.
    fn each_naming<R: Record>(&self, id: &str, visit: &mut dyn FnMut(R)) -> Result<(), Error> {
        let all = Selection::default();
        self.store.each_entry(R::KIND, &all, &mut |entry| {
            let holds = String::from_utf8_lossy(&entry.text).contains(id);
            if let Some(record) = holds.then(|| entry.parse().ok()).flatten() {
                visit(record);
            }
        })?;
        Ok(())
    }
}
