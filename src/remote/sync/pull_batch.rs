//! Batches of pulled rows, and counts of refused rows.

use std::collections::BTreeMap;

use crate::store::PulledChange;

/// Maximum number of rows and of bytes per batch.
const ROWS: usize = 5_000;
const BYTES: usize = 8 << 20;

/// Counts of refused rows.
#[derive(Debug, Default)]
pub(super) struct Refused {
    /// Rows that hold no valid record with their id.
    pub(super) records: u64,
    /// Rows per origin with an invalid workspace name.
    pub(super) origins: BTreeMap<String, u64>,
}

impl Refused {
    /// Warnings about the refused rows.
    pub(super) fn messages(&self) -> Vec<String> {
        let mut messages = Vec::new();
        if self.records > 0 {
            messages.push(format!(
                "{} rows of others are no records with the id that they claim, and were left there",
                self.records
            ));
        }
        if !self.origins.is_empty() {
            let rows: u64 = self.origins.values().sum();
            let shown = self.origins.keys().take(3).map(|origin| {
                let beginning: String = origin.chars().take(40).collect();
                format!("`{}`", beginning.escape_debug())
            });
            messages.push(format!(
                "{rows} rows of {} origins whose name no workspace can have were left there: {}",
                self.origins.len(),
                shown.collect::<Vec<_>>().join(", ")
            ));
        }
        messages
    }
}

/// Changes that are stored together, by origin.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) changes: BTreeMap<String, Vec<PulledChange>>,
    rows: usize,
    bytes: usize,
}

impl Batch {
    pub(super) fn add(&mut self, origin: String, id: String, text: Option<String>) {
        self.rows += 1;
        self.bytes += text.as_ref().map_or(0, String::len);
        self.changes
            .entry(origin)
            .or_default()
            .push(PulledChange { id, text });
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows >= ROWS || self.bytes >= BYTES
    }
}
