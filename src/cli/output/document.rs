//! Page of a document whose command has no words of its own: its fields by their names, and its records as tables.

use serde_json::{Map, Value};

use crate::cli::output::text::{day, ms, size, usd};
use crate::cli::output::{Document, Page, Table};
use crate::model::Kind;

/// Maximum number of records of a table that no command has made itself.
const MAX_ROWS: usize = 15;

/// Words of the fields whose names are no words for a person. Any other field has its name, without a unit at its
/// end.
const LABELS: [(&str, &str); 31] = [
    ("approve", "to approve it"),
    ("blamed", "counts against"),
    ("by_kind", "of each kind"),
    ("decided", "fields"),
    ("duplicates", "known already"),
    ("expired_at", "expired"),
    ("expires_at", "expires"),
    ("in_skills", "kept in skills"),
    ("into", "merged into"),
    ("learned", "lessons"),
    ("lines", "log lines"),
    ("made", "new"),
    ("memories", "notes"),
    ("memory_type", "type"),
    ("newest_schema", "newest schema version"),
    ("not_learned", "no lesson"),
    ("observed", "not approved"),
    ("of_all", "of all users"),
    ("past", "past calls"),
    ("procedures", "lessons"),
    ("pull_removed", "removals fetched"),
    ("pulled", "fetched"),
    ("push_removed", "removals sent"),
    ("pushed", "sent"),
    ("reflexions", "rules"),
    ("schema", "schema version"),
    ("seen", "seen in calls"),
    ("summary", "text"),
    ("tombstones", "removals"),
    ("touched", "records"),
    ("user_id", "user"),
];
/// Fields that the first line of a page or a warning says in words.
const SAID: [&str; 5] = ["added", "changed", "created", "pinned", "warnings"];

/// Label of a field. A name with a dot is that of a file.
fn label(name: &str) -> String {
    if name.contains('.') {
        return name.to_owned();
    }
    let label = LABELS.iter().find(|(field, _)| *field == name);
    let unit = ["_ms", "_usd"]
        .iter()
        .find_map(|unit| name.strip_suffix(unit));
    label.map_or_else(
        || unit.unwrap_or(name).replace('_', " "),
        |(_, words)| (*words).to_owned(),
    )
}

impl Page {
    /// Says what was done to what, with the other fields of the document.
    pub(crate) fn result(&mut self, done: &str, what: &str, document: &(impl Document + ?Sized)) {
        self.good(format!("{done} "), what);
        self.document(document, &[what]);
    }

    /// Adds the fields of a document by their names, without those that say one of `shown`.
    /// Empty fields are left out; records are a table.
    pub(crate) fn document(&mut self, document: &(impl Document + ?Sized), shown: &[&str]) {
        let document = document.json().unwrap_or_default();
        let fields: Map<String, Value> = serde_json::from_str(&document).unwrap_or_default();
        for (name, value) in &fields {
            let rows: Vec<(&str, &Map<String, Value>)> = match value {
                _ if SAID.contains(&&**name) => continue,
                Value::Bool(is_dry) if name == "dry_run" => {
                    if *is_dry {
                        self.dim("nothing was written");
                    }
                    continue;
                }
                Value::Array(items) => items
                    .iter()
                    .filter_map(|one| Some(("", one.as_object()?)))
                    .collect(),
                Value::Object(records) => {
                    let rows = records
                        .iter()
                        .filter_map(|(name, one)| Some((&**name, one.as_object()?)));
                    rows.collect()
                }
                _ => Vec::new(),
            };
            let text = self.words(name, value);
            if !rows.is_empty() {
                self.dim(label(name));
                self.rows(&rows);
            } else if !text.is_empty() && !shown.contains(&&*text) {
                self.field(&label(name), &text);
            }
        }
    }

    /// Adds records as a table, each after its name.
    fn rows(&mut self, rows: &[(&str, &Map<String, Value>)]) {
        let names: Vec<&str> = rows[0].1.keys().map(String::as_str).collect();
        let has_names = rows.iter().any(|(name, _)| !name.is_empty());
        let heads = names.iter().map(|name| label(name));
        let heads = has_names.then(String::new).into_iter().chain(heads);
        let mut table = Table::of(heads.collect());
        for (name, record) in rows.iter().take(MAX_ROWS) {
            let cells = names.iter().map(|name| {
                let value = record.get(*name).unwrap_or_default();
                self.words(name, value)
            });
            let name = has_names.then(|| label(name));
            table.add(name.into_iter().chain(cells).collect());
        }
        self.table(&table);
        if rows.len() > MAX_ROWS {
            self.dim(format!(
                "… and {} more; --json lists them all",
                rows.len() - MAX_ROWS
            ));
        }
    }

    /// Returns the value of a field in words; empty if it says nothing.
    fn words(&self, name: &str, value: &Value) -> String {
        match value {
            Value::Null => String::new(),
            Value::Bool(is_so) => if *is_so { "yes" } else { "no" }.to_owned(),
            Value::String(at) if name == "expires_at" => day(at),
            Value::String(at) if name == "at" || name.ends_with("_at") => self.age(at),
            Value::String(kind) if name == "kind" => {
                let found = Kind::ALL.into_iter().find(|found| found.name() == kind);
                found.map_or_else(|| kind.clone(), |found| found.noun().to_owned())
            }
            Value::String(text) => text.clone(),
            Value::Number(number) => {
                let value = number.as_f64().unwrap_or_default();
                match name {
                    "bytes" => size(value),
                    _ if name.ends_with("_ms") => ms(value),
                    _ if name.ends_with("_usd") => usd(value),
                    _ if number.is_f64() => {
                        let text = format!("{:.3}", value.abs());
                        let sign = if value < -0.0005 { "-" } else { "" };
                        let text = text.trim_end_matches('0').trim_end_matches('.');
                        [sign, text].concat()
                    }
                    _ => number.to_string(),
                }
            }
            Value::Array(items) => {
                let items = items.iter().map(|item| self.words(name, item));
                let items: Vec<String> = items.collect();
                // Sentences stand on lines of their own.
                let is_prose = items.iter().any(|item| item.contains(' '));
                items.join(if is_prose { "\n" } else { ", " })
            }
            Value::Object(fields) => {
                // The unit of the whole is that of its parts.
                let of = |part: &str| if name.ends_with("_ms") { name } else { part }.to_owned();
                let fields = fields
                    .iter()
                    .map(|(part, value)| (label(part), self.words(&of(part), value)));
                let fields = fields.filter(|(_, text)| !text.is_empty());
                let fields = fields.map(|(label, text)| format!("{label} {text}"));
                fields.collect::<Vec<_>>().join(", ")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    #[test]
    fn fields_of_a_document_have_plain_words() {
        let mut page = Page::new(80, false, DateTime::UNIX_EPOCH);
        let document = serde_json::json!({
            "took_ms": 1_240.0, "schema": 3, "expires_at": "1970-03-02T00:00:00Z", "precision": -0.0,
            "by_kind": {"execution_logs.jsonl": 4, "reflexions": 2},
        });
        page.document(&document, &[]);
        assert_eq!(
            page.into_text(),
            "took:         1.2 s\nschema version: 3\nexpires:      1970-03-02\nprecision:    0\n\
             of each kind: execution_logs.jsonl 4, rules 2\n"
        );
    }
}
