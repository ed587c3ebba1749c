//! Nearest-case answers: the known case whose input is most similar to the given one.
//!
//! Known cases are the skill's examples, executions that a person accepted, and corrections with an
//! expected output. Of equally similar cases a correction answers before an execution, an execution
//! before an example, and the newest of a kind first. `search::inputs` defines the similarity.
//!
//! A case that was corrected without an expected output is known to be wrong: an execution then never
//! answers, an example only if no other case is similar enough, and it names the correction.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;

use crate::indexing::Index;
use crate::model::{Correction, Execution, SkillPath};
use crate::search::{Damaged, Flags, Inputs, QueryInput, Rank, RowOf, Similarity, Terms, hash};
use crate::skill::Example;
use crate::store::Scoped;
use crate::workspace::Error;

/// Known output for an input.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// Execution id, correction id, or path of an example.
    pub(crate) source: String,
    pub(crate) output: Box<RawValue>,
    /// Id of the correction that rejects this output without a better one.
    pub(crate) wrong: Option<String>,
    /// Similarity of its input.
    pub(crate) similarity: f64,
}

/// Result of a search for the nearest case.
#[derive(Debug)]
pub(crate) enum Nearest {
    /// This case is similar enough.
    Case(Case),
    /// No case is.
    TooFar,
    /// The skill has no cases.
    NoCases,
}

/// Finds the most similar case with a similarity of at least `floor`, which must not be 0. Without a
/// store, only examples are cases.
pub(crate) fn nearest(
    store: Option<&Scoped>,
    skill: &SkillPath,
    examples: &[Example],
    input: &RawValue,
    floor: f64,
) -> Result<Nearest, Error> {
    let floor = Similarity::new(floor);
    let Some(store) = store else {
        return search(None, skill, examples, input, floor);
    };
    let mut index = Index::open(store)?;
    let quiet = &mut |_, _| {};
    index.update(false, quiet)?;
    index.add_inputs()?;
    let mut found = search(Some(&index), skill, examples, input, floor);
    if matches!(found, Err(Error::Index)) {
        index.forget_inputs();
        index.add_inputs()?;
        found = search(Some(&index), skill, examples, input, floor);
    }
    if matches!(found, Err(Error::Index)) {
        index.renew(quiet)?;
        index.add_inputs()?;
        found = search(Some(&index), skill, examples, input, floor);
    }
    found
}

fn search(
    index: Option<&Index>,
    skill: &SkillPath,
    examples: &[Example],
    input: &RawValue,
    floor: Similarity,
) -> Result<Nearest, Error> {
    let terms = Terms::of_skill(&skill.to_string());
    let of_examples: Vec<_> = examples.iter().map(|e| terms.of_input(&e.input)).collect();
    let mut inputs = match index {
        Some(index) => index.inputs(terms, &of_examples)?,
        None => Inputs::new(Vec::new(), terms, &of_examples)?,
    };
    let records = index.map(|index| Records::load(index, &mut inputs, terms));
    let records = records.transpose()?;
    let asked = inputs.ask(&terms.of_input(input))?;
    let (mut right, mut wrong): (Option<Case>, Option<Case>) = (None, None);
    for (example, features) in examples.iter().zip(of_examples) {
        let similarity = inputs.compare(&asked, &features)?;
        if similarity < floor {
            continue;
        }
        let source = format!("examples/{}.json", example.name.trim_end_matches(".json"));
        let records = records.as_ref();
        let doubt = records.map(|records| records.doubt(&inputs, hash(&source)));
        let case = Case {
            source,
            output: example.output.clone(),
            wrong: doubt.transpose()?.flatten(),
            similarity: similarity.value(),
        };
        let best = if case.wrong.is_none() {
            &mut right
        } else {
            &mut wrong
        };
        // The last of equally similar examples answers.
        if best
            .as_ref()
            .is_none_or(|best| case.similarity >= best.similarity)
        {
            *best = Some(case);
        }
    }
    if let Some(records) = &records {
        let least = right.as_ref().map_or(0.0, |case| case.similarity);
        let least = floor.max(Similarity::new(least));
        right = records.nearest(&mut inputs, &asked, least)?.or(right);
    }
    if let Some(case) = right.or(wrong) {
        return Ok(Nearest::Case(case));
    }
    let are_any = match &records {
        Some(records) => !examples.is_empty() || records.are_any(&inputs)?,
        None => !examples.is_empty(),
    };
    Ok(if are_any {
        Nearest::TooFar
    } else {
        Nearest::NoCases
    })
}

/// Executions of a skill as cases, and the corrections that count.
struct Records<'a> {
    index: &'a Index,
    terms: Terms,
    /// Corrections by the hash of the execution's id.
    corrected: HashMap<u64, Corrected>,
}

/// Corrections of one execution.
#[derive(Default)]
struct Corrected {
    /// Place and row of the newest one with an expected output.
    better: Option<(u32, RowOf)>,
    /// Number of those with an expected output, each of which is a case.
    cases: i32,
    /// Place and row of the newest one without an expected output.
    rejected: Option<(u32, RowOf)>,
}

/// Ranks of equally similar records.
const ACCEPTED: u8 = 1;
const CORRECTED: u8 = 2;

impl<'a> Records<'a> {
    fn load(index: &'a Index, inputs: &mut Inputs<'_>, terms: Terms) -> Result<Self, Damaged> {
        let mut corrected: HashMap<u64, Corrected> = HashMap::new();
        for row in inputs.rows_with(terms.correction())? {
            let flags = inputs.flags(row)?;
            // A correction passed on by an agent does not count before a person approves it.
            if !flags.has(Flags::COUNTS) {
                continue;
            }
            let Some(place) = index.place_of(row.table, inputs.document(row)?) else {
                continue;
            };
            let of_execution = corrected.entry(inputs.other_id(row)?).or_default();
            let newest = if flags.has(Flags::EXPECTED) {
                of_execution.cases += 1;
                &mut of_execution.better
            } else {
                &mut of_execution.rejected
            };
            *newest = (*newest).max(Some((place, row)));
        }
        let records = Self {
            index,
            terms,
            corrected,
        };
        records.count(inputs)?;
        Ok(records)
    }

    /// Counts the cases that corrections make, and no longer those that they reject.
    fn count(&self, inputs: &mut Inputs<'_>) -> Result<(), Damaged> {
        let mut rejected: HashSet<u64> = HashSet::new();
        for (id, corrected) in &self.corrected {
            for row in inputs.rows_with(self.terms.id(*id))? {
                let was_case = inputs.flags(row)?.has(Flags::ACCEPTED);
                inputs.count_row(row, corrected.cases - i32::from(was_case))?;
                let source = inputs.other_id(row)?;
                if corrected.rejected.is_some() && !self.corrected.contains_key(&source) {
                    rejected.insert(source);
                }
            }
        }
        for source in rejected {
            for row in inputs.rows_with(self.terms.id(source))? {
                let was_case = inputs.flags(row)?.has(Flags::ACCEPTED);
                inputs.count_row(row, -i32::from(was_case))?;
            }
        }
        Ok(())
    }

    /// Rank of an execution that is a case.
    fn rank(&self, inputs: &Inputs<'_>, row: RowOf) -> Result<Option<Rank>, Damaged> {
        let Some(place) = self.index.place_of(row.table, inputs.document(row)?) else {
            return Ok(None);
        };
        if !self.corrected.is_empty()
            && let Some(corrected) = self.corrected.get(&inputs.id(row)?)
        {
            return Ok(corrected.better.map(|(place, _)| (CORRECTED, place)));
        }
        let is_accepted = inputs.flags(row)?.has(Flags::ACCEPTED);
        Ok(is_accepted.then_some((ACCEPTED, place)))
    }

    /// Returns the nearest case among the records that the caller may see.
    fn nearest(
        &self,
        inputs: &mut Inputs<'_>,
        asked: &QueryInput,
        floor: Similarity,
    ) -> Result<Option<Case>, Error> {
        let mut rows = inputs.nearest(asked, floor, |inputs, row| self.rank(inputs, row));
        while let Some((row, similarity, (class, _))) = rows.next_row()? {
            let case = if class == CORRECTED {
                self.corrected_case(rows.inputs(), row)?
            } else {
                self.accepted_case(rows.inputs(), row)?
            };
            if let Some((source, output)) = case {
                return Ok(Some(Case {
                    source,
                    output,
                    wrong: None,
                    similarity: similarity.value(),
                }));
            }
        }
        Ok(None)
    }

    fn corrected_case(
        &self,
        inputs: &Inputs<'_>,
        row: RowOf,
    ) -> Result<Option<(String, Box<RawValue>)>, Error> {
        let corrected = self.corrected.get(&inputs.id(row)?);
        let better = corrected.and_then(|corrected| corrected.better);
        if self.execution(inputs, row)?.is_none() {
            return Ok(None);
        }
        let correction = match better {
            Some((_, better)) => self.correction(inputs, better)?,
            None => None,
        };
        Ok(correction.and_then(|c| Some((c.correction_id, c.expected_output?))))
    }

    fn accepted_case(
        &self,
        inputs: &Inputs<'_>,
        row: RowOf,
    ) -> Result<Option<(String, Box<RawValue>)>, Error> {
        if self.doubt(inputs, inputs.id(row)?)?.is_some() {
            return Ok(None);
        }
        let execution = self.execution(inputs, row)?;
        Ok(execution.map(|e| (e.execution_id, e.output_summary)))
    }

    /// Id of the newest correction that rejects an answer of the case with this hash.
    fn doubt(&self, inputs: &Inputs<'_>, source: u64) -> Result<Option<String>, Error> {
        if self
            .corrected
            .values()
            .all(|corrected| corrected.rejected.is_none())
        {
            return Ok(None);
        }
        let answered = inputs.rows_with(self.terms.answered_by(source))?;
        let mut rejected = None;
        for row in answered {
            let corrected = self.corrected.get(&inputs.id(row)?);
            rejected = rejected.max(corrected.and_then(|corrected| corrected.rejected));
        }
        let Some((_, row)) = rejected else {
            return Ok(None);
        };
        let correction = self.correction(inputs, row)?;
        Ok(correction.map(|correction| correction.correction_id))
    }

    /// Returns true if any execution is a case.
    fn are_any(&self, inputs: &Inputs<'_>) -> Result<bool, Error> {
        for row in inputs.rows_with(self.terms.execution())? {
            let Some((class, _)) = self.rank(inputs, row)? else {
                continue;
            };
            if class == CORRECTED || self.doubt(inputs, inputs.id(row)?)?.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn execution(&self, inputs: &Inputs<'_>, row: RowOf) -> Result<Option<Execution>, Error> {
        let entry = self.index.entry(row.table, inputs.document(row)?)?;
        Ok(entry.and_then(|entry| entry.parse().ok()))
    }

    fn correction(&self, inputs: &Inputs<'_>, row: RowOf) -> Result<Option<Correction>, Error> {
        let entry = self.index.entry(row.table, inputs.document(row)?)?;
        Ok(entry.and_then(|entry| entry.parse().ok()))
    }
}

#[cfg(test)]
mod tests;
