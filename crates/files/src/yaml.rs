//! YAML as JSON values, built from the events of a parser.
//!
//! Invariant: reading is fast for every text, since its depth is limited, and no alias repeats a part. The
//! caller limits the size of the text.
//!
//! Scalars are texts or null: what a number or a flag means is for the reader to decide, and `007` and
//! `1.10` are often names and versions. Of equal keys the last one wins.

use granit_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

/// Maximum depth. Far above handwritten files, far below dangerous sizes.
const MAX_DEPTH: usize = 32;

/// Line, from 1, and reason.
pub type Invalid = (usize, String);

/// Reads one document; an empty one is null.
///
/// # Errors
///
/// The text is no YAML, or not of the kind that a person writes.
pub fn parse(yaml: &str) -> Result<Value, Invalid> {
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut tree = Tree::default();
    for event in Parser::new_from_str_with_options(yaml, options) {
        let (event, span) = event.map_err(|error| (error.marker().line().max(1), error.info()))?;
        let line = span.start.line().max(1);
        tree.add(event)
            .map_err(|reason| (line, reason.to_owned()))?;
    }
    Ok(tree.root.unwrap_or_default())
}

/// List or map whose end has not come yet; a map with the key whose value comes next.
enum Open {
    List(Vec<Value>),
    Map(Map<String, Value>, Option<String>),
}

/// Document up to the newest event.
#[derive(Default)]
struct Tree {
    root: Option<Value>,
    /// From the outermost to the innermost.
    open: Vec<Open>,
    documents: usize,
}

impl Tree {
    fn add(&mut self, event: Event<'_>) -> Result<(), &'static str> {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err("there is more than one document");
                }
                Ok(())
            }
            Event::Scalar(text, style, _, tag) => {
                let is_key = matches!(self.open.last(), Some(Open::Map(_, None)));
                let is_plain = style == ScalarStyle::Plain && tag.is_none() && !is_key;
                let is_null = matches!(&*text, "" | "~" | "null" | "Null" | "NULL");
                self.put(if is_plain && is_null {
                    Value::Null
                } else {
                    Value::String(text.to_string())
                })
            }
            Event::Alias(_) => Err("aliases are not read"),
            Event::SequenceStart(..) => self.begin(Open::List(Vec::new())),
            Event::MappingStart(..) => self.begin(Open::Map(Map::new(), None)),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List(items)) => self.put(items.into()),
                Some(Open::Map(map, _)) => self.put(map.into()),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn begin(&mut self, open: Open) -> Result<(), &'static str> {
        if self.open.len() >= MAX_DEPTH {
            return Err("it is nested too deeply");
        }
        self.open.push(open);
        Ok(())
    }

    /// Puts a complete value where it belongs.
    fn put(&mut self, value: Value) -> Result<(), &'static str> {
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Open::List(items)) => items.push(value),
            Some(Open::Map(map, key)) => match (key.take(), value) {
                (None, Value::String(text)) => *key = Some(text),
                (None, _) => return Err("a key is no text"),
                (Some(key), value) => drop(map.insert(key, value)),
            },
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scalars_are_texts_or_null() {
        let check = |yaml: &str, expected: Value| {
            assert_eq!(parse(yaml), Ok(expected), "{yaml}");
        };
        check("", Value::Null);
        check("# only a comment", Value::Null);
        check(
            "[1, 007, 1.10, true, ~, null, ]",
            json!(["1", "007", "1.10", "true", null, null]),
        );
        check("['1', \"null\", !!str ~]", json!(["1", "null", "~"]));
        check(
            "1: a\ntrue: b\n~: c",
            json!({"1": "a", "true": "b", "~": "c"}),
        );
        check("a: 1\na: 2", json!({"a": "2"}));
        check(
            "a: {b: [c, {d: e}]}",
            json!({"a": {"b": ["c", {"d": "e"}]}}),
        );
        check(
            "a: |\n  x\n  y\nb: >\n  x\n  y\n",
            json!({"a": "x\ny\n", "b": "x y\n"}),
        );
    }

    #[test]
    fn refusal_names_its_line() {
        let check = |yaml: &str, line: usize, reason: &str| {
            let (found, message) = parse(yaml).unwrap_err();
            assert_eq!(found, line, "{yaml}: {message}");
            assert!(message.contains(reason), "{yaml}: {message}");
        };
        check("a: b\nc: d: e\n", 2, "");
        check("a: 1\n? [b]\n: 2\n", 2, "a key is no text");
        check("a: 1\n---\nb: 2\n", 2, "more than one document");
        check("a: &x [1]\nb: *x\n", 2, "aliases");
    }
}
