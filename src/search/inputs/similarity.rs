//! Similarity of inputs: the cosine of their features.
//!
//! A feature counts `1 + ln(occurrences)`, times its rarity `ln(1 + cases / cases with it)`, so that
//! features shared by all cases count little. A feature that no case has counts like one that a single
//! case has.

use std::collections::HashMap;

use super::features::{Term, Terms};
use super::input_table::{Flags, InputTable};
use crate::search::segment::Damaged;

/// Similarity in millionths. Smaller differences are ties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Similarity(pub(super) u32);

impl Similarity {
    /// Similarity from a number between 0 and 1.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and a million"
    )]
    pub fn new(value: f64) -> Self {
        Self((value.clamp(0.0, 1.0) * 1e6).round() as u32)
    }

    /// Number between 0 and 1.
    pub fn value(self) -> f64 {
        f64::from(self.0) / 1e6
    }
}

/// Row of a table, both by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowOf {
    /// Table.
    pub table: usize,
    /// Row.
    pub row: u32,
}

/// Inputs of one skill, of which some are cases.
#[derive(Debug)]
pub struct Inputs<'a> {
    pub(super) tables: Vec<InputTable<'a>>,
    /// Number of cases.
    cases: i32,
    /// Number of cases with a feature beyond the accepted executions.
    others: HashMap<Term, i32>,
    /// Rarities computed so far, by the ordinals of each table. 0 is unknown.
    rarities: Vec<Vec<f64>>,
}

/// Feature of the asked input.
#[derive(Debug)]
pub(super) struct Feature {
    pub(super) term: Term,
    pub(super) rarity: f64,
    pub(super) weight: f64,
}

/// Input to compare with.
#[derive(Debug)]
pub struct QueryInput {
    /// Features, heaviest first.
    pub(super) features: Vec<Feature>,
    /// Ordinals of the features in each table with their weights, in the order of the ordinals.
    ordinals: Vec<Vec<(u32, f64)>>,
    /// Sum of the squares of the weights.
    square: f64,
}

impl<'a> Inputs<'a> {
    /// Inputs of a skill: the executions in the tables, and examples.
    ///
    /// # Errors
    ///
    /// Returns [`Damaged`] if a table is damaged; so do all methods.
    pub fn new(
        tables: Vec<InputTable<'a>>,
        terms: Terms,
        examples: &[Vec<(Term, u32)>],
    ) -> Result<Self, Damaged> {
        let mut inputs = Self {
            rarities: vec![Vec::new(); tables.len()],
            tables,
            cases: 0,
            others: HashMap::new(),
        };
        inputs.cases = inputs.cases_with(terms.execution())?;
        for example in examples {
            inputs.count(example.iter().map(|(term, _)| *term), 1);
        }
        Ok(inputs)
    }

    /// Counts the input of a row as so many more cases. An accepted execution counts as one before.
    pub fn count_row(&mut self, of: RowOf, more: i32) -> Result<(), Damaged> {
        let table = self.tables.get(of.table).ok_or(Damaged)?;
        let features = table.features(of.row)?.filter(|feature| feature.count > 0);
        let terms = features.map(|feature| table.hash(feature.document));
        let terms = terms.collect::<Result<Vec<Term>, Damaged>>()?;
        self.count(terms.into_iter(), more);
        Ok(())
    }

    fn count(&mut self, features: impl Iterator<Item = Term>, more: i32) {
        self.cases += more;
        for term in features {
            *self.others.entry(term).or_default() += more;
        }
    }

    /// Flags of a row.
    pub fn flags(&self, of: RowOf) -> Result<Flags, Damaged> {
        self.table(of)?.flags(of.row)
    }

    /// See [`InputTable::document`].
    pub fn document(&self, of: RowOf) -> Result<u32, Damaged> {
        self.table(of)?.document(of.row)
    }

    /// See [`InputTable::id`].
    pub fn id(&self, of: RowOf) -> Result<u64, Damaged> {
        self.table(of)?.id(of.row)
    }

    /// See [`InputTable::other_id`].
    pub fn other_id(&self, of: RowOf) -> Result<u64, Damaged> {
        self.table(of)?.other_id(of.row)
    }

    fn table(&self, of: RowOf) -> Result<&InputTable<'a>, Damaged> {
        self.tables.get(of.table).ok_or(Damaged)
    }

    /// Rows with a term.
    pub fn rows_with(&self, term: Term) -> Result<Vec<RowOf>, Damaged> {
        let mut rows = Vec::new();
        for (number, table) in self.tables.iter().enumerate() {
            if let Some(ordinal) = table.find(term)? {
                rows.extend(table.postings(ordinal)?.map(|posting| RowOf {
                    table: number,
                    row: posting.document,
                }));
            }
        }
        Ok(rows)
    }

    /// Number of cases with a term.
    fn cases_with(&self, term: Term) -> Result<i32, Damaged> {
        let mut cases = self.others.get(&term).copied().unwrap_or_default();
        for table in &self.tables {
            if let Some(ordinal) = table.find(term)? {
                let accepted = table.accepted_with(ordinal)?;
                cases += i32::try_from(accepted).map_err(|_| Damaged)?;
            }
        }
        Ok(cases)
    }

    fn rarity(&self, term: Term) -> Result<f64, Damaged> {
        let cases_with = f64::from(self.cases_with(term)?.max(1));
        Ok((1.0 + f64::from(self.cases.max(1)) / cases_with).ln())
    }

    /// Prepares an input for comparisons.
    pub fn ask(&self, input: &[(Term, u32)]) -> Result<QueryInput, Damaged> {
        let mut features = Vec::with_capacity(input.len());
        for (term, count) in input {
            let rarity = self.rarity(*term)?;
            features.push(Feature {
                term: *term,
                rarity,
                weight: rarity * frequency(*count),
            });
        }
        features.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.term.cmp(&b.term)));
        let ordinals = self.tables.iter().map(|table| ordinals(table, &features));
        Ok(QueryInput {
            ordinals: ordinals.collect::<Result<_, Damaged>>()?,
            square: features.iter().map(|feature| feature.weight.powi(2)).sum(),
            features,
        })
    }

    /// Similarity to another input.
    pub fn compare(
        &self,
        asked: &QueryInput,
        input: &[(Term, u32)],
    ) -> Result<Similarity, Damaged> {
        let (mut dot, mut square) = (0.0, 0.0);
        for (term, count) in input {
            let weight = self.rarity(*term)? * frequency(*count);
            square += weight * weight;
            let of_asked = asked.features.iter().find(|own| own.term == *term);
            dot += weight * of_asked.map_or(0.0, |own| own.weight);
        }
        Ok(asked.cosine(dot, square))
    }

    /// Similarity to the input of a row; 0 as soon as it is known to be below `floor`. `most` is a
    /// bound of the dot product.
    pub(super) fn compare_row(
        &mut self,
        asked: &QueryInput,
        of: RowOf,
        (floor, most): (Similarity, f64),
    ) -> Result<Similarity, Damaged> {
        let mut known = std::mem::take(&mut self.rarities[of.table]);
        let table = self.table(of)?;
        if known.is_empty() {
            // Of the pages of zeroes, only those in use take memory.
            known = vec![0.0; table.terms()];
        }
        // Longer inputs are below the floor. Sums may differ in their last bits.
        let longest = (most / floor.value()).powi(2) / asked.square * (1.0 + 1e-5);
        let mut of_asked = asked.ordinals[of.table].as_slice();
        let (mut dot, mut square) = (0.0, 0.0);
        for feature in table.features(of.row)? {
            // A fact is no part of the input.
            if feature.count == 0 {
                continue;
            }
            let rarity = known.get_mut(feature.document as usize).ok_or(Damaged)?;
            if *rarity == 0.0 {
                *rarity = self.rarity(table.hash(feature.document)?)?;
            }
            let weight = *rarity * frequency(feature.count);
            square += weight * weight;
            if square > longest {
                dot = 0.0;
                break;
            }
            while let Some(((ordinal, weight_of_asked), rest)) = of_asked.split_first()
                && *ordinal <= feature.document
            {
                if *ordinal == feature.document {
                    dot += weight * weight_of_asked;
                }
                of_asked = rest;
            }
        }
        self.rarities[of.table] = known;
        Ok(asked.cosine(dot, square))
    }
}

/// Weight of a number of occurrences: repetitions add less than the first.
pub(super) fn frequency(count: u32) -> f64 {
    if count == 1 {
        1.0
    } else {
        1.0 + f64::from(count).ln()
    }
}

fn ordinals(table: &InputTable<'_>, features: &[Feature]) -> Result<Vec<(u32, f64)>, Damaged> {
    let mut ordinals = Vec::with_capacity(features.len());
    for feature in features {
        if let Some(ordinal) = table.find(feature.term)? {
            ordinals.push((ordinal, feature.weight));
        }
    }
    ordinals.sort_by_key(|(ordinal, _)| *ordinal);
    Ok(ordinals)
}

impl QueryInput {
    /// Similarity to an input by the dot product and the square of its length.
    fn cosine(&self, dot: f64, square: f64) -> Similarity {
        let product = square * self.square;
        Similarity::new(if product > 0.0 {
            dot / product.sqrt()
        } else {
            0.0
        })
    }

    /// Bound of a similarity by the square of the part of the asked input that can be in common.
    pub(super) fn bound(&self, square: f64) -> Similarity {
        // Sums may differ in their last bits.
        Similarity::new((square / self.square).sqrt() + 1e-8)
    }

    /// Number of the heaviest features of which a row must have one to reach the floor, and the
    /// square of the others.
    pub(super) fn needed(&self, floor: Similarity) -> (usize, f64) {
        let (mut needed, mut others) = (self.features.len(), 0.0);
        for feature in self.features.iter().rev() {
            let more = others + feature.weight.powi(2);
            if self.bound(more) >= floor {
                break;
            }
            others = more;
            needed -= 1;
        }
        (needed, others)
    }
}
