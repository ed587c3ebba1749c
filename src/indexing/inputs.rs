//! Tables of the inputs that skills have had: made on first use, then stored and merged with their
//! segments.

use std::thread;

use crate::model::{Correction, Execution, Kind, Outcome, Record as _, Trust};
use crate::search::{Flags, InputRow, InputTable, InputTableBuilder, Inputs, Term, Terms, hash};
use crate::store::{Entry, Positions};

use super::analyse::workers;
use super::held::{Bytes, IndexedSegment};
use super::manifest::inputs_name;
use super::places::GONE;
use super::{Error, Index};
use crate::search::Damaged;

impl Index {
    /// Makes the missing tables. They are saved if no other process is writing, otherwise kept in
    /// memory for this run.
    pub(crate) fn add_inputs(&mut self) -> Result<(), Error> {
        // Rows of deleted records would count as inputs.
        self.make_inputs(|held| held.inputs.is_none() || held.has_gone())?;
        self.save_inputs();
        Ok(())
    }

    /// Makes the tables of some segments in memory, in parallel.
    pub(super) fn make_inputs(&mut self, of: fn(&IndexedSegment) -> bool) -> Result<(), Error> {
        let files = &self.files;
        let segments = self.segments.iter_mut();
        let mut missing: Vec<&mut IndexedSegment> = segments.filter(|held| of(held)).collect();
        let documents = missing.iter().map(|held| held.places.len()).sum();
        let share = missing.len().div_ceil(workers(documents)).max(1);
        let make = |some: &mut [&mut IndexedSegment]| -> Result<(), Error> {
            for held in some {
                held.inputs = Some(Bytes::Own(table(held, files)?));
            }
            Ok(())
        };
        thread::scope(|scope| {
            let mut shares = missing.chunks_mut(share);
            let first = shares.next();
            let others: Vec<_> = shares.map(|some| scope.spawn(move || make(some))).collect();
            first.map_or(Ok(()), make)?;
            let mut others = others.into_iter();
            others.try_for_each(|thread| thread.join().map_err(|_| Error::Index)?)
        })
    }

    /// Saves the new tables of saved segments.
    fn save_inputs(&mut self) {
        let is_new = |held: &IndexedSegment| {
            let own = matches!(held.inputs, Some(Bytes::Own(_)));
            own && !held.has_gone() && held.files.is_some()
        };
        if !self.segments.iter().any(is_new) {
            return;
        }
        let Some(writer) = self.writer() else {
            return;
        };
        let mut list = self.list.clone();
        for (place, held) in self.segments.iter_mut().enumerate() {
            let (Some(Bytes::Own(bytes)), Some(files)) = (&held.inputs, &held.files) else {
                continue;
            };
            if held.has_gone() || list.segments.get(place) != Some(files) {
                continue;
            }
            let number = list.number();
            if !writer.write(&inputs_name(number), &[bytes]) {
                return;
            }
            list.segments[place].inputs = Some(number);
            held.files = Some(list.segments[place].clone());
        }
        self.publish(&writer, list);
    }

    /// Inputs of a skill, with those of its examples. The tables must have been made.
    pub(crate) fn inputs(
        &self,
        skill: Terms,
        examples: &[Vec<(Term, u32)>],
    ) -> Result<Inputs<'_>, Damaged> {
        // The tables have the same numbers as the segments.
        let tables: Option<Vec<_>> = self
            .segments
            .iter()
            .map(IndexedSegment::input_table)
            .collect();
        Inputs::new(tables.ok_or(Damaged)?, skill, examples)
    }

    /// Drops all tables, after damage.
    pub(crate) fn forget_inputs(&mut self) {
        for held in &mut self.segments {
            held.inputs = None;
        }
    }

    /// Place of a document's record among those of its kind; `None` if it has been deleted.
    pub(crate) fn place_of(&self, part: usize, document: u32) -> Option<u32> {
        let held = self.segments.get(part)?;
        let place = held.places.get(document as usize);
        (place != GONE).then_some(place)
    }
}

impl IndexedSegment {
    fn input_table(&self) -> Option<InputTable<'_>> {
        InputTable::open(self.inputs.as_ref()?)
    }

    /// Table of several segments in one; `None` if one has none.
    pub(super) fn merged_inputs(group: &[Self]) -> Option<Bytes> {
        let mut builder = InputTableBuilder::default();
        let mut first = 0;
        for held in group {
            let table = held.input_table()?;
            let kept = held.kept();
            builder.add_table(&table, &kept, first).ok()?;
            first += kept.iter().filter(|kept| **kept).count();
        }
        Some(Bytes::Own(builder.table()))
    }
}

/// Makes the table of a segment.
fn table(held: &IndexedSegment, files: &[Positions]) -> Result<Vec<u8>, Error> {
    let segment = held.segment()?;
    segment.verify()?;
    let mut builder = InputTableBuilder::default();
    for (document, place) in held.places.iter().enumerate() {
        let kind = usize::from(segment.kind(document));
        let has_row = [Kind::Execution, Kind::Correction].contains(&Kind::ALL[kind]);
        if place == GONE || !has_row {
            continue;
        }
        let found = files.get(kind).ok_or(Error::Index)?.any_entry(place)?;
        let number = u32::try_from(document).map_err(|_| Error::Index)?;
        if let Some((key, entry)) = found
            && key == segment.key(document)
            && let Some(row) = row(number, &entry)
        {
            builder.add(row);
        }
    }
    Ok(builder.table())
}

/// Row of an execution or a correction; `None` if it cannot be read.
fn row(document: u32, entry: &Entry) -> Option<InputRow> {
    if entry.kind == Kind::Correction {
        let correction: Correction = entry.parse().ok()?;
        let counts = Flags::COUNTS.when(correction.trust() > Trust::Observed);
        let expected = Flags::EXPECTED.when(correction.expected_output.is_some());
        let skill = Terms::of_skill(&correction.skill);
        return Some(InputRow {
            document,
            flags: counts.and(expected),
            id: hash(&correction.correction_id),
            other_id: hash(&correction.execution_id),
            terms: vec![(skill.correction(), 0)],
        });
    }
    let execution: Execution = entry.parse().ok()?;
    let skill = Terms::of_skill(&execution.skill);
    let id = hash(&execution.execution_id);
    let mut terms = skill.of_input(&execution.input_summary);
    terms.extend([(skill.execution(), 0), (skill.id(id), 0)]);
    let source = execution.nearest_case.map(|case| hash(&case.source));
    terms.extend(source.map(|source| (skill.answered_by(source), 0)));
    Some(InputRow {
        document,
        flags: Flags::ACCEPTED.when(execution.outcome == Outcome::Accepted),
        id,
        other_id: source.unwrap_or_default(),
        terms,
    })
}
