//! Rows in the order of their similarity to an input.
//!
//! The order is that of comparing with every row, at the cost of a few. By the Cauchy-Schwarz
//! inequality, a row is at most as similar as the share of the asked input's length covered by the
//! features of the row. So rows with nothing but common features are below the floor and are not read,
//! and of the others those with the highest bound are compared first.

use std::collections::BinaryHeap;

use super::similarity::{Feature, Inputs, QueryInput, RowOf, Similarity, frequency};
use crate::search::segment::Damaged;

/// Floors that are searched before lower ones: most inputs that have a case at all have a very
/// similar one, and a high floor excludes nearly all rows.
const STEPS: [f64; 2] = [0.6, 0.9];
/// Number of rows of a table from which features that do not decide are worth reading: then the rows
/// need not be.
const MANY: usize = 256;

/// Order of equally similar rows; the highest comes first.
pub type Rank = (u8, u32);

impl<'a> Inputs<'a> {
    /// Returns the rows with a rank whose similarity is at least `floor`, most similar first. Rows
    /// without a common feature are not among them.
    pub fn nearest<'i, R: Fn(&Self, RowOf) -> Result<Option<Rank>, Damaged>>(
        &'i mut self,
        asked: &'i QueryInput,
        floor: Similarity,
        rank: R,
    ) -> Nearest<'i, 'a, R> {
        let least = floor.max(Similarity(1));
        let steps = STEPS.map(Similarity::new).into_iter();
        let floors = std::iter::once(least).chain(steps.filter(|step| *step > least));
        Nearest {
            inputs: self,
            asked,
            rank,
            floors: floors.collect(),
            floor: None,
            ceiling: None,
            queue: BinaryHeap::new(),
        }
    }
}

/// Rows of a table by what they have in common with the asked input.
#[derive(Debug, Default)]
struct Common {
    /// Rows with any of the features that a row needs.
    rows: Vec<u32>,
    /// Dot product and square of the common features of each row, as far as they were added.
    sums: Vec<(f64, f64)>,
}

impl Common {
    /// Adds features. Other than `needed` ones bring no new rows.
    fn add(
        &mut self,
        inputs: &Inputs<'_>,
        number: usize,
        features: &[Feature],
        needed: bool,
    ) -> Result<(), Damaged> {
        let table = inputs.tables.get(number).ok_or(Damaged)?;
        for feature in features {
            let Some(ordinal) = table.find(feature.term)? else {
                continue;
            };
            if self.sums.is_empty() {
                self.sums = vec![(0.0, 0.0); table.rows()];
            }
            for posting in table.postings(ordinal)? {
                let sums = self
                    .sums
                    .get_mut(posting.document as usize)
                    .ok_or(Damaged)?;
                if sums.1 == 0.0 {
                    if !needed {
                        continue;
                    }
                    self.rows.push(posting.document);
                }
                let weight = feature.rarity * frequency(posting.count);
                sums.0 += weight * feature.weight;
                sums.1 += weight * weight;
            }
        }
        Ok(())
    }

    /// Rows that may reach the floor, with a bound of their similarity and of their dot product.
    /// `others` is the square of the features of the asked input that were not added.
    fn candidates(
        &self,
        asked: &QueryInput,
        floor: Similarity,
        others: f64,
    ) -> impl Iterator<Item = (u32, Similarity, f64)> {
        self.rows.iter().filter_map(move |row| {
            let (dot, square) = self.sums[*row as usize];
            let bound = asked.bound(dot * dot / square + others);
            // With unknown features the dot product has no bound but the length of the row.
            let most = if others > 0.0 { f64::INFINITY } else { dot };
            (bound >= floor).then_some((*row, bound, most))
        })
    }
}

/// Queued row: its similarity or a bound of it, its rank, whether the similarity is exact, the row,
/// and a bound of its dot product as bits, which order like positive numbers.
type Queued = (Similarity, Rank, bool, RowOf, u64);

/// Rows in the order of their similarity; see [`Inputs::nearest`].
#[derive(Debug)]
pub struct Nearest<'i, 'a, R> {
    inputs: &'i mut Inputs<'a>,
    asked: &'i QueryInput,
    rank: R,
    /// Floors still to search, lowest first.
    floors: Vec<Similarity>,
    /// Floor of the queued rows.
    floor: Option<Similarity>,
    /// Last floor: the rows from it on have been returned.
    ceiling: Option<Similarity>,
    queue: BinaryHeap<Queued>,
}

impl<'a, R: Fn(&Inputs<'a>, RowOf) -> Result<Option<Rank>, Damaged>> Nearest<'_, 'a, R> {
    /// Inputs that are searched.
    pub fn inputs(&self) -> &Inputs<'a> {
        self.inputs
    }

    /// Returns the next row with its similarity and its rank.
    ///
    /// # Errors
    ///
    /// Returns [`Damaged`] if a table is damaged.
    pub fn next_row(&mut self) -> Result<Option<(RowOf, Similarity, Rank)>, Damaged> {
        loop {
            let Some((similarity, rank, is_exact, row, most)) = self.queue.pop() else {
                if !self.lower()? {
                    return Ok(None);
                }
                continue;
            };
            if is_exact {
                return Ok(Some((row, similarity, rank)));
            }
            let floor = self.floor.unwrap_or(similarity);
            let most = (floor, f64::from_bits(most));
            let similarity = self.inputs.compare_row(self.asked, row, most)?;
            let is_new = self.ceiling.is_none_or(|ceiling| similarity < ceiling);
            if similarity >= floor && is_new {
                self.queue.push((similarity, rank, true, row, 0));
            }
        }
    }

    /// Queues the rows down to the next floor; false if there is none.
    fn lower(&mut self) -> Result<bool, Damaged> {
        let Some(floor) = self.floors.pop() else {
            return Ok(false);
        };
        self.ceiling = self.floor.replace(floor);
        let (needed, others) = self.asked.needed(floor);
        let (needed, rest) = self.asked.features.split_at(needed);
        let mut queue = Vec::new();
        for number in 0..self.inputs.tables.len() {
            let mut common = Common::default();
            common.add(self.inputs, number, needed, true)?;
            let mut others = others;
            if common
                .candidates(self.asked, floor, others)
                .nth(MANY)
                .is_some()
            {
                common.add(self.inputs, number, rest, false)?;
                others = 0.0;
            }
            for (row, bound, most) in common.candidates(self.asked, floor, others) {
                let row = RowOf { table: number, row };
                if let Some(rank) = (self.rank)(self.inputs, row)? {
                    queue.push((bound, rank, false, row, most.to_bits()));
                }
            }
        }
        self.queue = BinaryHeap::from(queue);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::search::segment_builder::narrow;
    use crate::search::{Flags, InputRow, InputTable, InputTableBuilder, Term, Terms};

    type Input = Vec<(Term, u32)>;

    fn input() -> impl Strategy<Value = Input> {
        let feature = (0u64..9, 1u32..4);
        let features = prop::collection::btree_map(0u64..9, 1u32..4, 0..6);
        (features, feature).prop_map(|(mut features, (term, count))| {
            features.entry(term).or_insert(count);
            let spread =
                |(term, count): (u64, u32)| (term.wrapping_mul(0x9e37_79b9_7f4a_7c15), count);
            features.into_iter().map(spread).collect()
        })
    }

    fn table(rows: &[Input], terms: Terms) -> Vec<u8> {
        let mut builder = InputTableBuilder::default();
        for (document, input) in (0..).zip(rows) {
            let fact = (terms.execution(), 0);
            builder.add(InputRow {
                document,
                flags: Flags::ACCEPTED.when(document.is_multiple_of(2)),
                terms: input.iter().copied().chain([fact]).collect(),
                ..InputRow::default()
            });
        }
        builder.table()
    }

    /// Similarity as the module defines it.
    fn cosine(a: &Input, b: &Input, all: &[&Input]) -> f64 {
        let has = |input: &Input, term| input.iter().find(|(own, _)| *own == term).map(|f| f.1);
        let weight = |(term, count): (Term, u32)| {
            let holding = all
                .iter()
                .filter(|input| has(input, term).is_some())
                .count();
            let number = |count: usize| f64::from(narrow(count.max(1)));
            let rarity = 1.0 + number(all.len()) / number(holding);
            rarity.ln() * (1.0 + f64::from(count).ln())
        };
        let square = |input: &Input| input.iter().map(|f| weight(*f).powi(2)).sum::<f64>();
        let both = a
            .iter()
            .filter_map(|f| Some(weight(*f) * weight((f.0, has(b, f.0)?))));
        both.sum::<f64>() / (square(a) * square(b)).sqrt()
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_comparing_with_every_row(
            inputs in prop::collection::vec(input(), 0..40),
            others in prop::collection::vec(input(), 0..3),
            asked in input(),
            parts in 1usize..4,
            floor in 0.0f64..1.0,
        ) {
            let terms = Terms::of_skill("a/b");
            let share = inputs.len().div_ceil(parts).max(1);
            let bytes: Vec<_> = inputs.chunks(share).map(|rows| table(rows, terms)).collect();
            let tables = bytes.iter().map(|bytes| InputTable::open(bytes).unwrap()).collect();
            let mut searched = Inputs::new(tables, terms, &others).unwrap();
            let question = searched.ask(&asked).unwrap();
            let floor = Similarity::new(floor);
            let number = |row: RowOf| row.table * share + row.row as usize;
            let is_case = |row: usize| !row.is_multiple_of(3);
            let rank = |_: &Inputs<'_>, row: RowOf| {
                let row = number(row);
                let rank = || (u8::from(row.is_multiple_of(5)), u32::try_from(row).unwrap());
                Ok(is_case(row).then(rank))
            };
            let mut found = Vec::new();
            let mut rows = searched.nearest(&question, floor, rank);
            while let Some((row, similarity, _)) = rows.next_row().unwrap() {
                found.push((number(row), similarity));
            }
            let is_counted = |(row, _): &(usize, &Input)| (row % share).is_multiple_of(2);
            let counted = inputs.iter().enumerate().filter(is_counted).map(|(_, input)| input);
            let all: Vec<&Input> = counted.chain(&others).collect();
            let compared = inputs.iter().enumerate().map(|(row, input)| {
                (row, Similarity::new(cosine(&asked, input, &all)))
            });
            let least = floor.max(Similarity(1));
            let mut expected: Vec<_> = compared
                .filter(|(row, similarity)| is_case(*row) && *similarity >= least)
                .collect();
            expected.sort_by_key(|(row, similarity)| {
                std::cmp::Reverse((*similarity, row.is_multiple_of(5), *row))
            });
            let rows = |list: &[(usize, Similarity)]| list.iter().map(|f| f.0).collect::<Vec<_>>();
            prop_assert_eq!(rows(&found), rows(&expected));
        }
    }
}
