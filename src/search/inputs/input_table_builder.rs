//! Building tables of inputs from records or from other tables.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use super::blocks::sums;
use super::features::Term;
use super::input_table::{Flags, HEADER, InputTable, MAGIC, short_hash, sum_of_sums};
use crate::search::segment::{Damaged, Posting};
use crate::search::segment_builder::{List, narrow};

/// Row of a table: an execution or a correction.
#[derive(Debug, Clone, Default)]
pub struct InputRow {
    /// Number of the document in the segment.
    pub document: u32,
    /// Flags.
    pub flags: Flags,
    /// Hash of the record's id.
    pub id: u64,
    /// See [`InputTable::other_id`].
    pub other_id: u64,
    /// Features of the input with their counts, and facts with a count of 0. No term occurs twice.
    pub terms: Vec<(Term, u32)>,
}

/// Table under construction.
#[derive(Debug, Default)]
pub struct InputTableBuilder {
    rows: Vec<InputRow>,
}

impl InputTableBuilder {
    /// Adds a row. Rows must arrive in the order of their documents.
    pub fn add(&mut self, row: InputRow) {
        self.rows.push(row);
    }

    /// Adds the rows of a table whose documents are kept, as documents from `first` on. `kept` has one
    /// value per document of the segment.
    ///
    /// # Errors
    ///
    /// Returns [`Damaged`] if the table is damaged.
    pub fn add_table(
        &mut self,
        table: &InputTable<'_>,
        kept: &[bool],
        first: usize,
    ) -> Result<(), Damaged> {
        let mut new = first;
        let numbers: Vec<Option<u32>> = kept
            .iter()
            .map(|kept| {
                let number = kept.then(|| narrow(new));
                new += usize::from(*kept);
                number
            })
            .collect();
        for row in 0..narrow(table.rows()) {
            let document = numbers.get(table.document(row)? as usize).ok_or(Damaged)?;
            let Some(document) = *document else {
                continue;
            };
            let features = table.features(row)?;
            let terms = features.map(|p| Ok((table.hash(p.document)?, p.count)));
            self.add(InputRow {
                document,
                flags: table.flags(row)?,
                id: table.id(row)?,
                other_id: table.other_id(row)?,
                terms: terms.collect::<Result<_, Damaged>>()?,
            });
        }
        Ok(())
    }

    /// Serializes the table.
    pub fn table(&self) -> Vec<u8> {
        let mut lists: HashMap<Term, (List, u32)> = HashMap::new();
        for (number, row) in (0..).zip(&self.rows) {
            for (term, count) in &row.terms {
                let posting = Posting {
                    document: number,
                    count: *count,
                    windows: 0,
                };
                let (list, accepted) = lists.entry(*term).or_default();
                list.push(posting);
                *accepted += u32::from(row.flags.has(Flags::ACCEPTED));
            }
        }
        let mut terms: Vec<(Term, (List, u32))> = lists.into_iter().collect();
        terms.sort_unstable_by_key(|(term, _)| *term);
        let places = terms.iter().zip(0..);
        let ordinals: HashMap<Term, u32> = places.map(|((term, _), n)| (*term, n)).collect();
        let mut postings = Vec::new();
        let mut term_columns: [Vec<u32>; 3] = Default::default();
        for (_, (list, accepted)) in &terms {
            postings.extend_from_slice(list.bytes());
            let values = [narrow(postings.len()), *accepted, short_hash(list.bytes())];
            for (column, value) in term_columns.iter_mut().zip(values) {
                column.push(value);
            }
        }
        let mut features = Vec::new();
        let mut row_columns: [Vec<u32>; 3] = Default::default();
        for row in &self.rows {
            let own = coded(row, &ordinals);
            features.extend_from_slice(&own);
            let values = [row.document, narrow(features.len()), short_hash(&own)];
            for (column, value) in row_columns.iter_mut().zip(values) {
                column.push(value);
            }
        }
        let rows = self.rows.iter();
        let mut columns: Vec<u8> = rows.clone().flat_map(|row| row.id.to_le_bytes()).collect();
        columns.extend(rows.clone().flat_map(|row| row.other_id.to_le_bytes()));
        columns.extend(bytes(&row_columns));
        columns.extend(rows.map(|row| row.flags.0));
        let mut out = Vec::with_capacity(HEADER + columns.len() + features.len() + postings.len());
        out.extend_from_slice(MAGIC);
        for count in [self.rows.len(), terms.len()] {
            out.extend_from_slice(&narrow(count).to_le_bytes());
        }
        for size in [features.len(), postings.len()] {
            out.extend_from_slice(&(size as u64).to_le_bytes());
        }
        let mut of_terms: Vec<u8> = terms.iter().flat_map(|(t, _)| t.to_le_bytes()).collect();
        of_terms.extend(bytes(&term_columns));
        let column_sums: Vec<u8> = sums(&columns).collect();
        let term_sums: Vec<u8> = sums(&of_terms).collect();
        out.extend_from_slice(&sum_of_sums(&column_sums, &term_sums).to_le_bytes());
        out.extend_from_slice(&xxh3_64(&out).to_le_bytes());
        for part in [&columns, &of_terms, &column_sums, &term_sums] {
            out.extend_from_slice(part);
        }
        out.extend_from_slice(&features);
        out.extend_from_slice(&postings);
        out
    }
}

/// Terms of a row as ordinals with their counts.
fn coded(row: &InputRow, ordinals: &HashMap<Term, u32>) -> Vec<u8> {
    let of_row = row.terms.iter();
    let mut own: Vec<(u32, u32)> = of_row
        .filter_map(|(term, count)| Some((*ordinals.get(term)?, *count)))
        .collect();
    own.sort_unstable();
    let mut list = List::default();
    for (document, count) in own {
        list.push(Posting {
            document,
            count,
            windows: 0,
        });
    }
    list.bytes().to_vec()
}

fn bytes(columns: &[Vec<u32>]) -> Vec<u8> {
    let values = columns.iter().flatten();
    values.flat_map(|value| value.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(document: u32, terms: &[(Term, u32)]) -> InputRow {
        InputRow {
            document,
            flags: Flags::ACCEPTED.when(document.is_multiple_of(2)),
            id: u64::from(document) + 100,
            other_id: u64::from(document) + 200,
            terms: terms.to_vec(),
        }
    }

    fn build(rows: &[InputRow]) -> Vec<u8> {
        let mut builder = InputTableBuilder::default();
        rows.iter().cloned().for_each(|row| builder.add(row));
        builder.table()
    }

    #[test]
    fn a_table_holds_its_rows() {
        let bytes = build(&[row(1, &[(9, 2), (4, 1), (7, 0)]), row(4, &[(4, 3)])]);
        let table = InputTable::open(&bytes).unwrap();
        let features = |row| {
            let found = table.features(row).unwrap();
            found
                .map(|p| (table.hash(p.document).unwrap(), p.count))
                .collect::<Vec<_>>()
        };
        assert_eq!(features(0), [(4, 1), (7, 0), (9, 2)]);
        assert_eq!(features(1), [(4, 3)]);
        let rows = |term| {
            let ordinal = table.find(term).unwrap()?;
            let rows = table.postings(ordinal).unwrap().map(|p| p.document);
            Some(rows.collect::<Vec<_>>())
        };
        assert_eq!(rows(4), Some(vec![0, 1]));
        assert_eq!(rows(9), Some(vec![0]));
        assert_eq!(rows(5), None);
        assert_eq!([0, 1].map(|row| table.document(row).unwrap()), [1, 4]);
        assert_eq!([0, 1].map(|row| table.id(row).unwrap()), [101, 104]);
        assert_eq!([0, 1].map(|row| table.other_id(row).unwrap()), [201, 204]);
        assert_eq!(
            [0, 1].map(|row| table.flags(row).unwrap().has(Flags::ACCEPTED)),
            [false, true]
        );
        assert_eq!(InputTable::open(&build(&[])).unwrap().find(1), Ok(None));
    }

    #[test]
    fn damage_is_noticed_before_it_answers() {
        let bytes = build(&[row(0, &[(9, 2), (4, 1)]), row(1, &[(4, 3), (1 << 60, 1)])]);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            let Some(table) = InputTable::open(&damaged) else {
                continue;
            };
            let row = |row| {
                table.features(row)?;
                table.flags(row)?;
                table.id(row)?;
                table.other_id(row)?;
                table.document(row)
            };
            let term = |term| {
                table.postings(term)?;
                table.hash(term)?;
                table.accepted_with(term)?;
                Ok(())
            };
            let broken = (0..2).any(|number| row(number).is_err())
                || (0..3).any(|ordinal: u32| Result::<(), Damaged>::is_err(&term(ordinal)));
            assert!(broken, "{at}");
        }
        for at in 0..bytes.len() {
            assert!(InputTable::open(&bytes[..at]).is_none(), "{at}");
        }
    }

    fn rows() -> impl Strategy<Value = Vec<Vec<u64>>> {
        prop::collection::vec(prop::collection::vec(0u64..6, 0..4), 0..8)
    }

    fn some_rows(inputs: &[Vec<u64>], first: usize) -> Vec<InputRow> {
        let of_input = |(document, terms): (usize, &Vec<u64>)| {
            let mut terms: Vec<_> = terms.iter().map(|t| (t << 61, narrow(document))).collect();
            terms.sort_unstable();
            terms.dedup_by_key(|(term, _)| *term);
            row(narrow(document), &terms)
        };
        inputs
            .iter()
            .enumerate()
            .map(|(n, t)| of_input((n + first, t)))
            .collect()
    }

    proptest! {
        #[test]
        fn a_merged_table_is_as_if_made_at_once(a in rows(), b in rows(), mask in any::<u32>()) {
            let kept: Vec<bool> = (0..a.len() + b.len()).map(|i| mask >> i & 1 == 1).collect();
            let (kept_a, kept_b) = kept.split_at(a.len());
            let (first, second) = (build(&some_rows(&a, 0)), build(&some_rows(&b, 0)));
            let mut merged = InputTableBuilder::default();
            merged.add_table(&InputTable::open(&first).unwrap(), kept_a, 0).unwrap();
            let before = kept_a.iter().filter(|kept| **kept).count();
            merged.add_table(&InputTable::open(&second).unwrap(), kept_b, before).unwrap();
            let rows = some_rows(&a, 0).into_iter().chain(some_rows(&b, 0)).zip(&kept);
            let kept_rows = rows.filter(|(_, kept)| **kept).zip(0..);
            let at_once: Vec<_> = kept_rows
                .map(|((row, _), document)| InputRow { document, ..row })
                .collect();
            prop_assert_eq!(merged.table(), build(&at_once));
        }

        #[test]
        fn no_bytes_bring_a_table_to_a_stop(at in 0usize..400, byte in any::<u8>()) {
            let mut bytes = build(&[row(0, &[(9, 2), (4, 1)]), row(1, &[(4, 3)])]);
            let at = at % bytes.len();
            bytes[at] = byte;
            if let Some(table) = InputTable::open(&bytes) {
                let _result = InputTableBuilder::default().add_table(&table, &[true, true], 0);
                let found = table.find(4).ok().flatten().map(|term| table.postings(term));
                let _count = found.map(|rows| rows.map(Iterator::count));
            }
        }
    }
}
