//! `memctl list` without a kind: the newest records of every kind.
//!
//! The document has the rules at the top, as for `memctl list rules`, and the list of each kind in
//! `kinds`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::wording::marked;
use crate::cli::output::{Align, Page, Report, Style, Table, when};
use crate::engine::{ListReport, Listed};
use crate::model::Kind;

/// Lists of all kinds by the name of the kind.
type Kinds = BTreeMap<&'static str, ListReport>;

/// Document of `memctl list` without a kind.
#[derive(Serialize, schemars::JsonSchema)]
pub(in crate::cli) struct AllKinds<'a> {
    #[serde(flatten)]
    rules: &'a ListReport,
    /// List of each kind, by its name.
    kinds: &'a Kinds,
}

/// Newest records of every kind.
pub(super) struct All {
    kinds: Kinds,
    warnings: Vec<String>,
    limit: usize,
    now: DateTime<Utc>,
}

impl All {
    /// Puts lists of all kinds together. The page shows the newest `limit` records.
    pub(super) fn new(lists: Vec<ListReport>, limit: usize, now: DateTime<Utc>) -> Self {
        let warnings = lists.iter().flat_map(|list| list.warnings.clone());
        Self {
            warnings: warnings.collect(),
            kinds: lists
                .into_iter()
                .map(|list| (list.kind.name(), list))
                .collect(),
            limit,
            now,
        }
    }

    /// Returns the records of all kinds, newest first; those without a readable time at the end.
    fn newest(&self) -> Vec<(Kind, &Listed)> {
        let of = |list: &'_ ListReport| list.kind;
        let mut records: Vec<_> = self
            .kinds
            .values()
            .flat_map(|list| list.records.iter().map(move |record| (of(list), record)))
            .collect();
        records.sort_by_cached_key(|(_, record)| {
            Reverse(DateTime::parse_from_rfc3339(&record.created).ok())
        });
        records.truncate(self.limit);
        records
    }
}

impl Report for All {
    fn json(&self) -> Result<String, serde_json::Error> {
        match self.kinds.get(Kind::Reflexion.name()) {
            Some(rules) => serde_json::to_string(&AllKinds {
                rules,
                kinds: &self.kinds,
            }),
            None => serde_json::to_string(&self.kinds),
        }
    }

    fn page(&self, page: &mut Page) {
        let records = self.newest();
        if records.is_empty() {
            page.line("No records yet.");
            return;
        }
        let columns = [
            ("Kind", Align::Left),
            ("ID", Align::Left),
            ("Age", Align::Right),
            ("Text", Align::Prose),
        ];
        let mut table = Table::new(&columns, &[3]);
        for (kind, record) in &records {
            let pinned = if record.pinned { "pinned: " } else { "" };
            let text = format!("{pinned}{}", record.summary);
            table.row([
                kind.noun().to_owned(),
                record.id.clone(),
                when(&record.created, self.now),
                marked(record.status.as_deref(), record.source.as_deref(), &text),
            ]);
        }
        page.table(&table);
        let total: u64 = self.kinds.values().map(|list| list.total).sum();
        let shown = records.len() as u64;
        if total > shown {
            let rest = format!("the newest {shown} of {total}; of one kind: memctl list KIND");
            page.styled(&[(Style::Dim, &rest)]);
        }
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }
}
