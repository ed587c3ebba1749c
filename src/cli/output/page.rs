//! Page of text, built before anything is written, with its warnings and its exit code. The page of a document whose
//! command has no words of its own has its fields by their names, and its records as tables.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use crate::cli::output::text::{clean, day, ms, size, usd, when, wrap};
use crate::cli::output::{Document, Style, Table};
use crate::model::Kind;

#[derive(Debug, Clone)]
pub(crate) struct Page {
    text: String,
    /// Width in columns.
    pub(crate) width: usize,
    pub(super) colour: bool,
    /// Time that ages are relative to.
    pub(super) now: DateTime<Utc>,
    /// Only results are asked for, not what was done and what comes next.
    pub(crate) quiet: bool,
    /// Home directory of the user, which pages write as `~`.
    pub(super) home: Option<String>,
    /// Problems that did not stop the command, and that the document does not have in `warnings`; they go to
    /// standard error.
    pub(crate) warnings: Vec<String>,
    /// Exit code of the command: 1 if a check found something.
    pub(crate) exit_code: u8,
}

impl Page {
    /// Returns an empty page of `width` columns. `now` is the time that ages are relative to.
    pub(crate) fn new(width: usize, colour: bool, now: DateTime<Utc>) -> Self {
        Self {
            text: String::new(),
            width,
            colour,
            now,
            quiet: false,
            home: None,
            warnings: Vec::new(),
            exit_code: 0,
        }
    }

    /// Returns a path with `~` for the home directory.
    pub(crate) fn path(&self, path: &str) -> String {
        let home = self.home.as_deref().filter(|home| home.len() > 1);
        match home.and_then(|home| path.strip_prefix(home)) {
            Some(rest) if rest.is_empty() || rest.starts_with(['/', '\\']) => format!("~{rest}"),
            _ => path.to_owned(),
        }
    }

    /// Makes the command exit with 1, if it found something.
    pub(crate) fn fails_if(&mut self, found: bool) {
        if found {
            self.exit_code = 1;
        }
    }

    /// Returns the age of a time.
    pub(crate) fn age(&self, time: &str) -> String {
        when(time, self.now)
    }

    /// Adds a line. Sanitizes it here, so that no command can forget to.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) {
        self.styled(&[(Style::Plain, line.as_ref())]);
    }

    /// Adds text unchanged, for output that is used as it is: a prompt, a JSON document.
    pub(crate) fn verbatim(&mut self, text: &str) {
        self.text.push_str(text);
        if !text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    /// Adds a line of styled parts. A terminal breaks one that is too long, and copies it whole.
    pub(crate) fn styled(&mut self, parts: &[(Style, &str)]) {
        for (style, text) in parts {
            let piece = self.paint(*style, &clean(text));
            self.text.push_str(&piece);
        }
        self.text.push('\n');
    }

    /// Adds a line of less importance: a hint, a total, a place.
    pub(crate) fn dim(&mut self, text: impl AsRef<str>) {
        self.styled(&[(Style::Dim, text.as_ref())]);
    }

    /// Adds a line that begins with a word of success.
    pub(crate) fn good(&mut self, word: impl AsRef<str>, text: impl AsRef<str>) {
        self.styled(&[(Style::Good, word.as_ref()), (Style::Plain, text.as_ref())]);
    }

    /// Adds a line that begins with a word of caution.
    pub(crate) fn warn(&mut self, word: impl AsRef<str>, text: impl AsRef<str>) {
        self.styled(&[(Style::Warn, word.as_ref()), (Style::Plain, text.as_ref())]);
    }

    /// Adds a line that begins with a word of failure.
    pub(crate) fn bad(&mut self, word: impl AsRef<str>, text: impl AsRef<str>) {
        self.styled(&[(Style::Bad, word.as_ref()), (Style::Plain, text.as_ref())]);
    }

    /// Adds a line that begins with a word of less importance.
    pub(crate) fn note(&mut self, word: impl AsRef<str>, text: impl AsRef<str>) {
        self.styled(&[(Style::Dim, word.as_ref()), (Style::Plain, text.as_ref())]);
    }

    /// Adds each field that has a value.
    pub(crate) fn fields<V: AsRef<str>>(
        &mut self,
        fields: impl IntoIterator<Item = (&'static str, V)>,
    ) {
        for (label, value) in fields {
            if !value.as_ref().trim().is_empty() {
                self.field(label, value.as_ref());
            }
        }
    }

    /// Adds a field with a list, if it is not empty.
    pub(crate) fn list(&mut self, label: &str, values: &[String]) {
        self.some(label, (!values.is_empty()).then(|| values.join(", ")));
    }

    /// Adds a field, if there is a value.
    pub(crate) fn some<V: AsRef<str>>(&mut self, label: &str, value: Option<V>) {
        if let Some(value) = value {
            self.field(label, value.as_ref());
        }
    }

    /// Says that a list shows the newest of more.
    pub(crate) fn newest(&mut self, shown: usize, total: u64) {
        if total > shown as u64 {
            self.dim(format!("the newest {shown} of {total}"));
        }
    }

    /// Adds `label: value`, with the value wrapped and indented.
    pub(crate) fn field(&mut self, label: &str, value: &str) {
        const INDENT: usize = 14;
        let room = self.width.saturating_sub(INDENT).max(20);
        let lines = wrap(&clean(value), room);
        for (i, line) in lines.iter().enumerate() {
            let label = if i == 0 && !label.is_empty() {
                let words = clean(label);
                words.split_whitespace().collect::<Vec<_>>().join(" ") + ": "
            } else {
                String::new()
            };
            let label = self.paint(Style::Dim, &format!("{label:<INDENT$}"));
            self.text.extend([&label, line.as_str(), "\n"]);
        }
    }

    /// Adds a sentence behind a mark, wrapped between words and indented.
    pub(crate) fn sentence(&mut self, style: Style, mark: &str, text: &str) {
        let indent = console::measure_text_width(mark);
        let room = self.width.saturating_sub(indent).max(20);
        let mut mark = mark.to_owned();
        for line in wrap(&clean(text), room) {
            self.styled(&[(style, &[mark.as_str(), line.as_str()].concat())]);
            mark = " ".repeat(indent);
        }
    }

    pub(crate) fn table(&mut self, table: &Table) {
        let text = table.render(self.width, self.colour);
        self.text.push_str(&text);
        self.text.push('\n');
    }

    fn paint(&self, style: Style, text: &str) -> String {
        if self.colour {
            style.paint(text)
        } else {
            text.to_owned()
        }
    }

    /// Returns `true` if there is nothing on it.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the finished text.
    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

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
    ("precision", "helped"),
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
const SAID: [&str; 4] = ["added", "changed", "created", "warnings"];

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

/// Returns a share as `75 % (3 of 4; 95 %: 30 to 95 %)`; empty without data.
fn share(fields: &Map<String, Value>) -> String {
    let percent = |value: &Value| value.as_f64().map(|share| share * 100.0);
    let (count, of, ends) = (&fields["count"], &fields["of"], &fields["interval"]);
    let interval = percent(&ends[0]).zip(percent(&ends[1]));
    let all = percent(&fields["share"]).zip(interval);
    let text = all.map(|(share, (low, high))| {
        format!("{share:.0} % ({count} of {of}; 95 %: {low:.0} to {high:.0} %)")
    });
    text.unwrap_or_default()
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

    /// Adds the fields of a document below a heading.
    pub(crate) fn section(&mut self, heading: &str, document: &(impl Document + ?Sized)) {
        self.line("");
        self.styled(&[(Style::Strong, heading)]);
        self.document(document, &[]);
    }

    /// Adds records as a table, each after its name.
    fn rows(&mut self, rows: &[(&str, &Map<String, Value>)]) {
        let names: Vec<&str> = rows[0].1.keys().map(String::as_str).collect();
        let has_names = rows.iter().any(|(name, _)| !name.is_empty());
        let heads = names.iter().map(|name| label(name));
        let heads = has_names.then(String::new).into_iter().chain(heads);
        let heads: Vec<String> = heads.map(|head| format!("~{head}")).collect();
        let mut table = Table::new(&heads.join("|"));
        for (name, record) in rows.iter().take(MAX_ROWS) {
            let cells = names.iter().map(|name| {
                let value = record.get(*name).unwrap_or_default();
                self.words(name, value)
            });
            let name = has_names.then(|| label(name));
            table.row(name.into_iter().chain(cells).collect::<Vec<_>>());
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
            Value::Object(fields) if fields.contains_key("share") => share(fields),
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
    use super::*;

    #[test]
    fn values_are_wrapped_under_themselves() {
        let mut page = Page::new(40, false, DateTime::UNIX_EPOCH);
        page.field("rule", "When screening, ALWAYS check the design of systems");
        assert_eq!(
            page.into_text(),
            "rule:         When screening, ALWAYS\n              check the design of\n              systems\n"
        );
    }

    #[test]
    fn home_is_a_tilde() {
        let page = Page {
            home: Some("/home/ann".to_owned()),
            ..Page::new(40, false, DateTime::UNIX_EPOCH)
        };
        let paths = ["/home/ann/shop", "/home/ann", "/home/anna", "/srv"];
        let expected = ["~/shop", "~", "/home/anna", "/srv"];
        assert_eq!(paths.map(|path| page.path(path)), expected);
    }

    #[test]
    fn colours_vanish_where_they_are_not_wanted() {
        let text = |colour| {
            let mut page = Page::new(80, colour, DateTime::UNIX_EPOCH);
            page.styled(&[(Style::Bad, "bad\u{1b}[2J"), (Style::Plain, " plain")]);
            page.into_text()
        };
        assert_eq!(text(false), "bad plain\n");
        assert_eq!(text(true), "\u{1b}[31mbad\u{1b}[0m plain\n");
    }

    #[test]
    fn fields_of_a_document_have_plain_words() {
        let mut page = Page::new(80, false, DateTime::UNIX_EPOCH);
        let document = serde_json::json!({
            "took_ms": 1_240.0, "schema": 3, "expires_at": "1970-03-02T00:00:00Z", "mean": -0.0,
            "by_kind": {"execution_logs.jsonl": 4, "reflexions": 2},
        });
        page.document(&document, &[]);
        assert_eq!(
            page.into_text(),
            "took:         1.2 s\nschema version: 3\nexpires:      1970-03-02\nmean:         0\n\
             of each kind: execution_logs.jsonl 4, rules 2\n"
        );
    }
}
