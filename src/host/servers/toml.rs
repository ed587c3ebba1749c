//! The entry in settings that are TOML: a table of its own, at the end of the file.

use std::path::Path;

use toml::{Table, Value};

use super::{Error, NAME, Start, shape};

/// The table that holds the servers.
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
            shape(
                path,
                format!("something that is no TOML in line {line} ({reason})"),
            )
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
    // A string of JSON is a basic string of TOML.
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
    // Servers in a form that no table can be added to are seen here.
    if find(path, &with)?.as_ref() == Some(start) && rest(path, &with)? == rest(path, text)? {
        Ok((with, piece))
    } else {
        Err(shape(
            path,
            format!("`{SERVERS}` that nothing can be added to"),
        ))
    }
}

/// Takes out the lines from the heading of the table to the next heading that is not of a part of it.
pub(super) fn remove(path: &Path, text: &str) -> Result<String, Error> {
    let mut kept = String::new();
    let mut inside = false;
    for line in text.split_inclusive('\n') {
        if let Some(heading) = heading(line) {
            let ours = [SERVERS, NAME];
            inside = heading.len() >= 2 && heading[..2] == ours;
        }
        if !inside {
            kept.push_str(line);
        }
    }
    if find(path, &kept)?.is_none() && rest(path, &kept)? == rest(path, text)? {
        Ok(kept)
    } else {
        Err(shape(
            path,
            format!("`{SERVERS}.{NAME}` in a form that has to be taken out by hand"),
        ))
    }
}

/// The names in `[a.b]`; `None` for every other line.
fn heading(line: &str) -> Option<Vec<&str>> {
    let (names, _) = line.trim_start().strip_prefix('[')?.split_once(']')?;
    let quotes = ['"', '\'', ' ', '\t', '['];
    Some(
        names
            .split('.')
            .map(|name| name.trim_matches(quotes))
            .collect(),
    )
}

/// Everything but our entry.
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
