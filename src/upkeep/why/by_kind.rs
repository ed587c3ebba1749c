//! Links of a record of each kind: what it came from, and what came of it.

use super::walk::{Direction, Step, Walk, link};
use super::{Link, Relation};
use crate::model::{
    Correction, Evidence, Execution, Kind, Origin, Procedure, Reflexion, Said, Session, Trust,
};
use crate::store::Entry;
use crate::store::workspace::Error;

/// Maximum number of executions of a rule, and of origins of a procedure, in a chain: the newest.
const NAMED: usize = 3;

impl Walk<'_> {
    pub(super) fn execution(
        &mut self,
        at: usize,
        entry: &Entry,
        from: Step<'_>,
    ) -> Result<Option<Evidence>, Error> {
        let Ok(execution) = entry.parse::<Execution>() else {
            return Ok(None);
        };
        self.chain[at].state = Some(execution.outcome.as_str().to_owned());
        if from.way != Direction::Both {
            return Ok(None);
        }
        for rule in &execution.reflexions_injected {
            self.follow(from, Direction::Up, Relation::HadRule, rule)?;
        }
        for procedure in &execution.procedures_injected {
            let relation = Relation::HadProcedure;
            self.follow(from, Direction::End, relation, procedure)?;
        }
        let case = execution.nearest_case.map(|case| case.source);
        if let Some(source) = case {
            self.follow(from, Direction::End, Relation::Repeats, &source)?;
        }
        let of_it = |correction: &Correction| correction.execution_id == from.id;
        for correction in self.naming(from.id, of_it)? {
            let id = &correction.correction_id;
            self.follow(from, Direction::Down, Relation::CorrectedBy, id)?;
        }
        Ok(None)
    }

    pub(super) fn correction(
        &mut self,
        entry: &Entry,
        from: Step<'_>,
    ) -> Result<Option<Evidence>, Error> {
        let Ok(correction) = entry.parse::<Correction>() else {
            return Ok(None);
        };
        let execution = &correction.execution_id;
        if from.way.is_up() {
            self.follow(from, Direction::End, Relation::Corrects, execution)?;
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
            self.follow(from, Direction::Down, relation, id)?;
        }
        Ok(None)
    }

    pub(super) fn rule(
        &mut self,
        at: usize,
        entry: &Entry,
        from: Step<'_>,
    ) -> Result<Option<Evidence>, Error> {
        let Ok(rule) = entry.parse::<Reflexion>() else {
            return Ok(None);
        };
        let receipts = Some(rule.receipts().words()).filter(|words| !words.is_empty());
        self.chain[at].state = Some(rule.state())
            .filter(|state| *state != "active")
            .map(str::to_owned)
            .or(receipts);
        if from.way.is_up() {
            let first = (Relation::DistilledFrom, &rule.correction_id);
            let later = rule.also_corrected_by.iter();
            let later = later.map(|id| (Relation::StrengthenedBy, id));
            for (relation, id) in std::iter::once(first).chain(later) {
                self.follow(from, Direction::Up, relation, id)?;
            }
        }
        if from.way == Direction::Both {
            self.said(&rule.said, from);
            let replaced = |older: &Reflexion| older.superseded_by == from.id;
            for older in self.naming(from.id, replaced)? {
                let id = &older.reflexion_id;
                self.follow(from, Direction::End, Relation::Supersedes, id)?;
            }
        }
        if from.way.is_down() {
            let newer = &rule.superseded_by;
            self.follow(from, Direction::End, Relation::SupersededBy, newer)?;
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
            self.follow(from, Direction::End, Relation::InjectedInto, id)?;
        }
        Ok(())
    }

    pub(super) fn procedure(
        &mut self,
        at: usize,
        entry: &Entry,
        from: Step<'_>,
    ) -> Result<Option<Evidence>, Error> {
        let Ok(procedure) = entry.parse::<Procedure>() else {
            return Ok(None);
        };
        let approved = self.trust_snapshot.level(&procedure) == Trust::Approved;
        self.chain[at].state = match procedure.state.as_str() {
            "" | "active" => approved.then(|| "approved".to_owned()),
            state => Some(state.to_owned()),
        };
        if from.way == Direction::Both {
            self.injections(at, from)?;
            // Most procedures were in no prompt.
            let injected = self.chain[at].executions;
            self.chain[at].executions = injected.filter(|count| *count > 0);
            self.origins(at, &procedure.origins, from);
        }
        Ok(Some(procedure.evidence()))
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
}

impl Walk<'_> {
    /// Follows the links of a session that is a record.
    pub(crate) fn session(
        &mut self,
        entry: &Entry,
        from: Step<'_>,
    ) -> Result<Option<Evidence>, Error> {
        let native = entry.parse::<Session>().ok().and_then(|s| s.native_id());
        if from.way == Direction::Both
            && let Some(native) = native
        {
            // The record has the name of the host before the id that the session file has.
            let name = native.split_once('/').map_or(native.as_str(), |(_, id)| id);
            self.recoveries(name, from)?;
        }
        Ok(None)
    }

    /// Adds links to the procedures that were seen in a session.
    pub(crate) fn recoveries(&mut self, name: &str, from: Step<'_>) -> Result<(), Error> {
        if name.is_empty() {
            return Ok(());
        }
        let of_it = |procedure: &Procedure| {
            let mut origins = procedure.origins.iter();
            origins.any(|origin| origin.session == name)
        };
        for procedure in self.naming(name, of_it)? {
            let id = &procedure.procedure_id;
            self.follow(from, Direction::End, Relation::Taught, id)?;
        }
        Ok(())
    }
}
