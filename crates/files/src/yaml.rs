//! YAML as JSON values, built from the events of a parser.
//!
//! Invariant: reading is fast for every text. Depth, nodes and the size after alias expansion are limited. The
//! caller limits the size of the text itself.
//!
//! The core schema of YAML 1.2: `on` and `yes` are texts. Of equal keys the last one wins.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::{Map, Number, Value};

/// Maximum depth. Far above handwritten files, far below dangerous sizes, as the others are.
const MAX_DEPTH: usize = 32;
/// Maximum number of values, after alias expansion.
const MAX_NODES: usize = 10_000;
/// Maximum total size of all texts in bytes, after alias expansion.
const MAX_BYTES: usize = 256 * 1024;

/// Form of numbers in the outermost map; deeper ones are numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// They are numbers.
    Parsed,
    /// They stay the text that was written: `007` and `1.10` are often names and versions.
    AsWritten,
}

/// Line, from 1, and reason.
pub type Invalid = (usize, String);

/// Reads one document; an empty one is null.
///
/// # Errors
///
/// The text is no YAML, or is larger than a person would write it.
pub fn parse(yaml: &str, numbers: Numbers) -> Result<Value, Invalid> {
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut tree = Tree::new(numbers);
    for event in Parser::new_from_str_with_options(yaml, options) {
        let (event, span) = event.map_err(|error| (error.marker().line().max(1), error.info()))?;
        let line = span.start.line().max(1);
        tree.add(event)
            .map_err(|reason| (line, reason.to_owned()))?;
    }
    Ok(tree.root.unwrap_or_default())
}

/// Number of values and bytes of text.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    nodes: usize,
    bytes: usize,
}

impl Size {
    fn of(value: &Value) -> Self {
        let mut size = Self { nodes: 1, bytes: 0 };
        match value {
            Value::String(text) => size.bytes = text.len(),
            Value::Array(items) => items.iter().for_each(|item| size.add(Self::of(item))),
            Value::Object(map) => {
                for (key, value) in map {
                    size.bytes += key.len();
                    size.add(Self::of(value));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        size
    }

    fn add(&mut self, other: Self) {
        self.nodes += other.nodes;
        self.bytes += other.bytes;
    }
}

/// List or map whose end has not come yet.
enum Open {
    List(Vec<Value>),
    Map {
        map: Map<String, Value>,
        /// Key whose value comes next.
        key: Option<String>,
        /// Values that `<<` names, for the keys that the map does not have itself.
        merged: Vec<Value>,
    },
}

/// Document up to the newest event.
struct Tree {
    numbers: Numbers,
    root: Option<Value>,
    /// From the outermost to the innermost, with their anchors.
    open: Vec<(Open, usize)>,
    anchors: HashMap<usize, (Value, Size)>,
    size: Size,
    documents: usize,
}

impl Tree {
    fn new(numbers: Numbers) -> Self {
        Self {
            numbers,
            root: None,
            open: Vec::new(),
            anchors: HashMap::new(),
            size: Size::default(),
            documents: 0,
        }
    }

    fn add(&mut self, event: Event<'_>) -> Result<(), &'static str> {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err("there is more than one document");
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                let value = self.scalar(&text, style, tag.as_deref());
                self.spend(Size {
                    nodes: 1,
                    bytes: text.len(),
                })?;
                self.put(value, anchor)
            }
            Event::Alias(anchor) => {
                let found = self.anchors.get(&anchor);
                let &(_, size) = found.ok_or("an alias stands within what it names")?;
                self.spend(size)?;
                let value = self.anchors[&anchor].0.clone();
                self.put(value, 0)
            }
            Event::SequenceStart(_, anchor, _) => self.begin(Open::List(Vec::new()), anchor),
            Event::MappingStart(_, anchor, _) => {
                let (map, merged) = (Map::new(), Vec::new());
                let open = Open::Map {
                    map,
                    key: None,
                    merged,
                };
                self.begin(open, anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some((Open::List(items), anchor)) => self.put(items.into(), anchor),
                Some((
                    Open::Map {
                        mut map, merged, ..
                    },
                    anchor,
                )) => {
                    for (key, value) in merged.into_iter().flat_map(entries) {
                        map.entry(key).or_insert(value);
                    }
                    self.put(map.into(), anchor)
                }
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn begin(&mut self, open: Open, anchor: usize) -> Result<(), &'static str> {
        if self.open.len() >= MAX_DEPTH {
            return Err("it is nested too deeply");
        }
        self.spend(Size { nodes: 1, bytes: 0 })?;
        self.open.push((open, anchor));
        Ok(())
    }

    fn spend(&mut self, size: Size) -> Result<(), &'static str> {
        self.size.add(size);
        if self.size.nodes > MAX_NODES || self.size.bytes > MAX_BYTES {
            return Err("it is too large");
        }
        Ok(())
    }

    /// Puts a complete value where it belongs.
    fn put(&mut self, value: Value, anchor: usize) -> Result<(), &'static str> {
        if anchor != 0 {
            self.anchors
                .insert(anchor, (value.clone(), Size::of(&value)));
        }
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some((Open::List(items), _)) => items.push(value),
            Some((Open::Map { map, key, merged }, _)) => match (key.take(), value) {
                (None, Value::String(text)) => *key = Some(text),
                (None, _) => return Err("a key is no text"),
                (Some(key), Value::Array(values)) if key == "<<" => merged.extend(values),
                (Some(key), value @ Value::Object(_)) if key == "<<" => merged.push(value),
                (Some(key), value) => drop(map.insert(key, value)),
            },
        }
        Ok(())
    }

    fn scalar(&self, text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
        let is_key = matches!(self.open.last(), Some((Open::Map { key: None, .. }, _)));
        let is_text = tag.is_some_and(|tag| matches!(tag.suffix(), "str" | "" | "!"));
        if is_key || is_text || style != ScalarStyle::Plain {
            return Value::String(text.to_owned());
        }
        match plain(text) {
            Value::Number(_) if self.numbers == Numbers::AsWritten && self.open.len() == 1 => {
                Value::String(text.to_owned())
            }
            value => value,
        }
    }
}

fn entries(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// Value of an unquoted text. What JSON has no number for is a text.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

fn number(text: &str) -> Option<Number> {
    let radix = |prefix, radix| {
        let digits = text.strip_prefix(prefix)?;
        u64::from_str_radix(digits, radix).ok().map(Number::from)
    };
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    // Excludes `inf` and `nan`, which Rust reads.
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    radix("0x", 16)
        .or_else(|| radix("0o", 8))
        .or_else(|| text.parse::<i64>().ok().map(Number::from))
        .or_else(|| text.parse::<u64>().ok().map(Number::from))
        .or_else(|| Number::from_f64(text.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_those_of_the_core_schema() {
        let check = |yaml: &str, expected: Value| {
            assert_eq!(parse(yaml, Numbers::Parsed), Ok(expected), "{yaml}");
        };
        check("", Value::Null);
        check("# only a comment", Value::Null);
        check("[1, -2, +3, 0x1f, 0o17, 007]", json!([1, -2, 3, 31, 15, 7]));
        check(
            "[1.5, 2e3, .5, 18446744073709551615]",
            json!([1.5, 2000.0, 0.5, u64::MAX]),
        );
        check(
            "[true, False, on, yes, ~, null, ]",
            json!([true, false, "on", "yes", null, null]),
        );
        check(
            "[.inf, nan, 1_000, 1.2.3, 12:30]",
            json!([".inf", "nan", "1_000", "1.2.3", "12:30"]),
        );
        check(
            "['1', \"true\", !!str 1, ! 2]",
            json!(["1", "true", "1", "2"]),
        );
        check("1: a\ntrue: b", json!({"1": "a", "true": "b"}));
        check("a: 1\na: 2", json!({"a": 2}));
        check(
            "a: |\n  x\n  y\nb: >\n  x\n  y\n",
            json!({"a": "x\ny\n", "b": "x y\n"}),
        );
    }

    #[test]
    fn aliases_and_merges_are_expanded() {
        let check = |yaml: &str, expected: Value| {
            assert_eq!(parse(yaml, Numbers::Parsed), Ok(expected), "{yaml}");
        };
        check("a: &x [1]\nb: *x", json!({"a": [1], "b": [1]}));
        check(
            "a: &x {m: 1, n: 2}\nb:\n  <<: *x\n  n: 3",
            json!({"a": {"m": 1, "n": 2}, "b": {"n": 3, "m": 1}}),
        );
        check(
            "- &x {m: 1}\n- &y {m: 2, n: 2}\n- {<<: [*x, *y]}",
            json!([{"m": 1}, {"m": 2, "n": 2}, {"m": 1, "n": 2}]),
        );
    }

    #[test]
    fn numbers_of_the_outermost_map_may_stay_as_written() {
        let yaml = "name: 007\nversion: 1.10 # now\nflag: true\nmore: {n: 1}";
        let expected = json!({"name": "007", "version": "1.10", "flag": true, "more": {"n": 1}});
        assert_eq!(parse(yaml, Numbers::AsWritten), Ok(expected));
    }

    #[test]
    fn what_is_refused_names_its_line() {
        let check = |yaml: &str, line: usize, reason: &str| {
            let (found, said) = parse(yaml, Numbers::Parsed).unwrap_err();
            assert_eq!(found, line, "{yaml}: {said}");
            assert!(said.contains(reason), "{yaml}: {said}");
        };
        check("a: b\nc: d: e\n", 2, "");
        check("a: 1\n? [b]\n: 2\n", 2, "a key is no text");
        check("a: 1\n---\nb: 2\n", 2, "more than one document");
        check("a: &x\n  - *x\n", 2, "within what it names");
        check("\na: *none\n", 2, "");
        check(&"[".repeat(40), 1, "");
        check(
            &format!("- {}\n", "x".repeat(MAX_BYTES + 1)),
            1,
            "too large",
        );
        check(
            &format!("a: &a [{}]\nb: [{}]", "x,".repeat(999), "*a,".repeat(20)),
            2,
            "too large",
        );
    }
}
