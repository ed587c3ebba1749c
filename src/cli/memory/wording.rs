//! Words for records that several commands print.

use crate::cli::output::plural;
use crate::model::{Kind, mark};

/// Returns a count with its noun: `1 lesson`, `3 notes`, `2 of hints.jsonl`. `name` is the plural
/// of a kind, or a log.
pub(crate) fn counted(name: &str, count: u64) -> String {
    match Kind::ALL
        .into_iter()
        .find(|kind| kind.plural() == name || kind.nouns() == name)
    {
        Some(kind) if count == 1 => format!("1 {}", kind.noun()),
        Some(kind) => format!("{count} {}", kind.nouns()),
        None if name == "skills" => plural(count, "skill"),
        None => format!("{count} of {name}"),
    }
}

/// Returns the text of a record for a table, after its status mark.
pub(crate) fn marked(status: Option<&str>, source: Option<&str>, text: &str) -> String {
    match mark(status, source) {
        Some(mark) => format!("{mark}: {text}"),
        None => text.to_owned(),
    }
}
