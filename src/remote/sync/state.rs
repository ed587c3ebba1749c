//! Pull progress per database, stored next to the pulled records.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::store::Puller;

use super::super::error::Error;

/// Last pulled sequence number, by database and table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    #[serde(default)]
    pulled: BTreeMap<String, BTreeMap<String, i64>>,
    /// Origins whose local files were discarded and that must be fetched completely.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) again: BTreeSet<String>,
}

impl State {
    /// Reads the stored state. An unreadable state counts as empty, so that everything is pulled
    /// again.
    pub(super) fn read(puller: &Puller) -> Self {
        let bytes = puller.state().unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    pub(super) fn keep(&self, puller: &Puller) -> Result<(), Error> {
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        Ok(puller.keep_state(&bytes)?)
    }

    pub(super) fn reached(&self, database: &str, table: &str) -> i64 {
        let tables = self.pulled.get(database);
        tables
            .and_then(|tables| tables.get(table))
            .copied()
            .unwrap_or(0)
    }

    pub(super) fn reach(&mut self, database: &str, table: &str, seq: i64) {
        let tables = self.pulled.entry(database.to_owned()).or_default();
        let reached = tables.entry(table.to_owned()).or_default();
        *reached = seq.max(*reached);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_only_goes_on() {
        let mut state = State::default();
        state.reach("db", "reflexions", 7);
        state.reach("db", "reflexions", 5);
        assert_eq!(state.reached("db", "reflexions"), 7);
        assert_eq!(
            (
                state.reached("db", "x"),
                state.reached("other", "reflexions")
            ),
            (0, 0)
        );
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<State>(&text).unwrap(), state);
    }
}
