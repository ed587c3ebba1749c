//! Plan of a push: records to send and rows to remove, per kind. Pure.

use super::manifest::{Line, Manifest, hash_of_id};

/// Plan for one kind.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Positions of the records to send, in file order.
    pub(super) send: Vec<u32>,
    /// Ids of rows whose record is gone.
    pub(super) remove: Vec<String>,
    /// Number of rows in the shared store.
    pub(super) there: u64,
    /// `true` if the shared store has never had a row.
    pub(super) is_first: bool,
}

impl Plan {
    /// Plan for records of which the shared store has none.
    pub(super) fn of_all(places: impl Iterator<Item = u32>) -> Self {
        let mut send: Vec<u32> = places.collect();
        send.sort_unstable();
        Self {
            send,
            is_first: true,
            ..Self::default()
        }
    }
}

/// Comparison of local records with rows.
#[derive(Debug)]
pub(super) struct Comparison {
    lines: Vec<Line>,
    /// One flag per line: the row is identical, or the record is not to be sent.
    is_settled: Vec<bool>,
    plan: Plan,
}

impl Comparison {
    pub(super) fn new(manifest: Manifest) -> Self {
        Self {
            is_settled: manifest
                .lines
                .iter()
                .map(|line| line.text.is_none())
                .collect(),
            lines: manifest.lines,
            plan: Plan::default(),
        }
    }

    /// Adds a row of this workspace: its id, and the first 8 bytes of its hash.
    pub(super) fn meet(&mut self, id: &str, text: u64) {
        self.plan.there += 1;
        let found = self
            .lines
            .binary_search_by_key(&hash_of_id(id), |line| line.id);
        match found {
            Ok(at) => self.is_settled[at] |= self.lines[at].text == Some(text),
            Err(_) => self.plan.remove.push(id.to_owned()),
        }
    }

    /// Returns the plan after all rows have been added.
    pub(super) fn finish(self) -> Plan {
        let open = self.lines.iter().zip(&self.is_settled);
        let mut send: Vec<u32> = open
            .filter(|(_, is_settled)| !**is_settled)
            .map(|(line, _)| line.place)
            .collect();
        send.sort_unstable();
        Plan { send, ..self.plan }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(records: &[(&str, Option<u64>)]) -> Manifest {
        let mut lines: Vec<Line> = records
            .iter()
            .enumerate()
            .map(|(place, (id, text))| Line {
                id: hash_of_id(id),
                text: *text,
                place: u32::try_from(place).unwrap(),
            })
            .collect();
        lines.sort_by_key(|line| line.id);
        Manifest { lines, unfit: 0 }
    }

    #[test]
    fn what_differs_goes_and_what_is_gone_is_removed() {
        let check =
            |here: &[(&str, Option<u64>)], there: &[(&str, u64)], send: &[u32], remove: &[&str]| {
                let mut comparison = Comparison::new(manifest(here));
                for (id, text) in there {
                    comparison.meet(id, *text);
                }
                let plan = comparison.finish();
                assert_eq!(
                    (plan.send.as_slice(), plan.there),
                    (send, there.len() as u64)
                );
                assert_eq!(plan.remove, remove);
            };
        check(&[], &[], &[], &[]);
        check(&[("A", Some(1)), ("B", Some(2))], &[], &[0, 1], &[]);
        check(
            &[("A", Some(1)), ("B", Some(2))],
            &[("B", 2), ("A", 1)],
            &[],
            &[],
        );
        check(
            &[("A", Some(1)), ("B", Some(2))],
            &[("A", 1), ("B", 9)],
            &[1],
            &[],
        );
        check(&[("A", Some(1))], &[("A", 1), ("C", 3)], &[], &["C"]);
        // Expired records are not sent, and their rows are not removed.
        check(&[("A", None), ("B", None)], &[("A", 7)], &[], &[]);
    }
}
