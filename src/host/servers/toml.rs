//! Server entry in TOML settings: a separate table at the end of the file.

use std::ops::Range;
use std::path::Path;

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::{Error, NAME, Start, shape};

/// Table that contains the servers.
const SERVERS: &str = "mcp_servers";

fn parse(path: &Path, text: &str) -> Result<Table, Error> {
    text.trim_start_matches('\u{feff}')
        .parse::<Table>()
        .map_err(|error| {
            let reason = error
                .message()
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned();
            let before = error.span().map(|span| &text[..span.start.min(text.len())]);
            let line = before.map_or(1, |before| before.matches('\n').count() + 1);
            shape(path, format!("invalid TOML in line {line} ({reason})"))
        })
}

pub(super) fn find(path: &Path, text: &str) -> Result<Option<Start>, Error> {
    let root = parse(path, text)?;
    let entry = root.get(SERVERS).and_then(|servers| servers.get(NAME));
    Ok(entry.map(|entry| {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let args = entry.get("args").and_then(Value::as_array);
        Start {
            command: entry.get("command").and_then(text).unwrap_or_default(),
            args: args.into_iter().flatten().filter_map(text).collect(),
        }
    }))
}

pub(super) fn add(path: &Path, text: &str, start: &Start) -> Result<(String, String), Error> {
    // A JSON string is a valid basic string of TOML.
    let quoted = |text: &String| serde_json::Value::from(text.as_str()).to_string();
    let args: Vec<String> = start.args.iter().map(quoted).collect();
    let break_ = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let apart = match text {
        "" => "",
        text if text.ends_with('\n') => break_,
        _ => &break_.repeat(2),
    };
    let piece = format!(
        "{apart}[{SERVERS}.{NAME}]{break_}command = {}{break_}args = {}{break_}",
        quoted(&start.command),
        format_args!("[{}]", args.join(", "))
    );
    let with = format!("{text}{piece}");
    // Detects servers in a form that no table can be added to.
    if find(path, &with)?.as_ref() == Some(start) && rest(path, &with)? == rest(path, text)? {
        Ok((with, piece))
    } else {
        Err(shape(path, format!("`{SERVERS}` that cannot be extended")))
    }
}

/// Removes the lines of our table and of the tables below it, each from its heading to its last
/// value, and blank lines behind them. Comments between tables stay.
pub(super) fn remove(path: &Path, text: &str) -> Result<String, Error> {
    let by_hand = || {
        shape(
            path,
            format!("`{SERVERS}.{NAME}` in a form that you must remove by hand"),
        )
    };
    let start = text.len() - text.trim_start_matches('\u{feff}').len();
    let body = &text[start..];
    let root = DeTable::parse(body).map_err(|_| by_hand())?.into_inner();
    let servers = root.get(SERVERS).and_then(|item| item.get_ref().as_table());
    let Some(entry) = servers.and_then(|servers| servers.get(NAME)) else {
        return Ok(text.to_owned());
    };
    if !is_table(body, entry) {
        return Err(by_hand());
    }
    let mut spans = Vec::new();
    collect_section(body, entry, &mut spans);
    spans.sort_by_key(|span| span.start);
    let mut kept = text.to_owned();
    for span in spans.into_iter().rev() {
        kept.replace_range(lines(text, start + span.start, start + span.end), "");
    }
    if find(path, &kept)?.is_none() && rest(path, &kept)? == rest(path, text)? {
        Ok(kept)
    } else {
        Err(by_hand())
    }
}

/// Returns `true` for a table with a heading, and `false` for an inline table or other value.
fn is_table(text: &str, item: &Spanned<DeValue<'_>>) -> bool {
    item.get_ref().is_table() && text[item.span()].starts_with('[')
}

/// Collects the spans of a table with a heading and of those below it.
fn collect_section(text: &str, item: &Spanned<DeValue<'_>>, spans: &mut Vec<Range<usize>>) {
    if let DeValue::Table(table) = item.get_ref() {
        let mut span = item.span();
        collect_values(text, table, &mut span, spans);
        spans.push(span);
    }
}

/// Extends the span of a section to the last value of a table, and collects the sections below it.
fn collect_values(
    text: &str,
    table: &DeTable<'_>,
    span: &mut Range<usize>,
    spans: &mut Vec<Range<usize>>,
) {
    for item in table.values() {
        match item.get_ref() {
            _ if is_table(text, item) => collect_section(text, item, spans),
            DeValue::Array(items) if items.iter().any(|item| is_table(text, item)) => {
                for item in items {
                    collect_section(text, item, spans);
                }
            }
            // A dotted key, or a part of a heading.
            DeValue::Table(below) if !text[item.span()].starts_with('{') => {
                collect_values(text, below, span, spans);
            }
            _ => span.end = span.end.max(item.span().end),
        }
    }
}

/// Extends a span to whole lines, and by the blank lines that follow.
fn lines(text: &str, start: usize, end: usize) -> Range<usize> {
    let start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let mut end = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
    for line in text[end..].split_inclusive('\n') {
        if !line.trim().is_empty() {
            break;
        }
        end += line.len();
    }
    start..end
}

/// Returns everything except our entry.
fn rest(path: &Path, text: &str) -> Result<Table, Error> {
    let mut root = parse(path, text)?;
    if let Some(Value::Table(servers)) = root.get_mut(SERVERS) {
        servers.remove(NAME);
        if servers.is_empty() {
            root.remove(SERVERS);
        }
    }
    Ok(root)
}
