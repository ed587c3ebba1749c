//! JSON as people and hosts write settings: with comments, trailing commas, any layout.
//!
//! Finds where things stand, and adds or removes a piece of text; everything else keeps every byte.
//! What is added is remembered by the caller, so that taking it out again restores the text.

use std::ops::Range;

/// Deeper nesting is nobody's settings.
const DEEPEST: usize = 64;

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) span: Range<usize>,
    pub(super) shape: Shape,
}

#[derive(Debug)]
pub(super) enum Shape {
    Object(Vec<Member>),
    Array(Vec<Node>),
    String(String),
    Other,
}

#[derive(Debug)]
pub(super) struct Member {
    pub(super) key: String,
    /// From the key to the end of the value.
    pub(super) span: Range<usize>,
    pub(super) value: Node,
}

/// What keeps a text from being JSON.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// From 1.
    pub(super) line: usize,
    pub(super) reason: &'static str,
}

impl Node {
    pub(super) fn members(&self) -> Option<&[Member]> {
        match &self.shape {
            Shape::Object(members) => Some(members),
            _ => None,
        }
    }

    pub(super) fn items(&self) -> Option<&[Self]> {
        match &self.shape {
            Shape::Array(items) => Some(items),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.shape {
            Shape::String(text) => Some(text),
            _ => None,
        }
    }

    /// The member of this name; the last one where there are several, as readers of JSON have it.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let members = self.members()?;
        let named = members.iter().rev().find(|member| member.key == key);
        named.map(|member| &member.value)
    }

    fn parts(&self) -> Vec<Range<usize>> {
        match &self.shape {
            Shape::Object(members) => members.iter().map(|m| m.span.clone()).collect(),
            Shape::Array(items) => items.iter().map(|i| i.span.clone()).collect(),
            _ => Vec::new(),
        }
    }
}

/// Reads a text that is one value, with comments and trailing commas.
pub(super) fn parse(text: &str) -> Result<Node, Fault> {
    let mut reader = Reader { text, at: 0 };
    if text.starts_with('\u{feff}') {
        reader.at = '\u{feff}'.len_utf8();
    }
    reader.space()?;
    let node = reader.value(0)?;
    reader.space()?;
    if reader.at < text.len() {
        return Err(reader.fault("there is more behind its end"));
    }
    Ok(node)
}

/// A piece of text to be added at a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Insertion {
    pub(super) at: usize,
    pub(super) text: String,
}

/// How to add a part (`"key": value` or a value) behind the last one of an object or array.
/// `part` is laid out with two spaces a level and line feeds; it is given the layout of the text.
pub(super) fn append(text: &str, node: &Node, part: &str) -> Insertion {
    let break_ = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let unit = unit(text);
    let outer = indent_of_line(text, node.span.start);
    let parts = node.parts();
    let inner = parts
        .first()
        .and_then(|first| own_line(text, first.start))
        .map_or_else(|| outer.to_owned() + &unit, str::to_owned);
    let part: Vec<String> = part
        .lines()
        .map(|line| {
            let content = line.trim_start_matches(' ');
            unit.repeat((line.len() - content.len()) / 2) + content
        })
        .collect();
    let part = part.join(&format!("{break_}{inner}"));
    let Some(last) = parts.last() else {
        let interior = &text[node.span.start + 1..node.span.end - 1];
        let closing = if interior.contains('\n') {
            String::new()
        } else {
            format!("{break_}{outer}")
        };
        return Insertion {
            at: node.span.start + 1,
            text: format!("{break_}{inner}{part}{closing}"),
        };
    };
    let mut reader = Reader { text, at: last.end };
    let has_comma = reader.space().is_ok() && text[reader.at..].starts_with(',');
    let (at, comma) = if has_comma {
        (reader.at + 1, "")
    } else {
        (last.end, ",")
    };
    Insertion {
        at,
        text: format!("{comma}{break_}{inner}{part}"),
    }
}

/// The span that has to go so that the part of this number is gone and the rest is whole. Comments
/// before it are somebody's, and stay.
pub(super) fn removal(text: &str, node: &Node, number: usize) -> Range<usize> {
    let parts = node.parts();
    let Some(part) = parts.get(number) else {
        return 0..0;
    };
    match (
        number.checked_sub(1).map(|n| &parts[n]),
        parts.get(number + 1),
    ) {
        (_, Some(next)) => part.start..next.start,
        (Some(before), None) if text[before.end..part.start].contains('/') => {
            let kept = text[..part.start].trim_end_matches([' ', '\t']).len();
            kept..part.end
        }
        (Some(before), None) => before.end..part.end,
        (None, None) => node.span.start + 1..node.span.end - 1,
    }
}

/// What a level is indented by, judged by the first line that begins a part of the root.
fn unit(text: &str) -> String {
    let indented = text
        .lines()
        .skip(1)
        .find(|line| line.starts_with([' ', '\t']) && !line.trim().is_empty());
    let unit = indented.map(|line| &line[..line.len() - line.trim_start().len()]);
    unit.filter(|unit| unit.len() <= 8)
        .unwrap_or("  ")
        .to_owned()
}

/// The white space that the line of this position begins with.
fn indent_of_line(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |at| at + 1);
    let line = &text[start..at];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// The white space before a position that begins its line; `None` where it does not.
fn own_line(text: &str, at: usize) -> Option<&str> {
    let start = text[..at].rfind('\n')? + 1;
    let before = &text[start..at];
    before
        .chars()
        .all(|c| c == ' ' || c == '\t')
        .then_some(before)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn fault(&self, reason: &'static str) -> Fault {
        let line = self.text[..self.at].matches('\n').count() + 1;
        Fault { line, reason }
    }

    /// Skips white space and comments.
    fn space(&mut self) -> Result<(), Fault> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n']);
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with("//") {
                let end = trimmed.find('\n').unwrap_or(trimmed.len());
                self.at += end;
            } else if trimmed.starts_with("/*") {
                match trimmed.find("*/") {
                    Some(end) => self.at += end + 2,
                    None => return Err(self.fault("a comment has no end")),
                }
            } else {
                return Ok(());
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, Fault> {
        if depth > DEEPEST {
            return Err(self.fault("it is nested too deeply"));
        }
        let start = self.at;
        let shape = match self.rest().chars().next() {
            Some('{') => self.object(depth)?,
            Some('[') => self.array(depth)?,
            Some('"') => Shape::String(self.string()?),
            Some(_) => {
                let end = self
                    .rest()
                    .find([',', ']', '}', ' ', '\t', '\r', '\n', '/'])
                    .unwrap_or(self.rest().len());
                let word = &self.rest()[..end];
                if serde_json::from_str::<&serde_json::value::RawValue>(word).is_err() {
                    return Err(self.fault("a value is expected here"));
                }
                self.at += end;
                Shape::Other
            }
            None => return Err(self.fault("it ends too early")),
        };
        Ok(Node {
            span: start..self.at,
            shape,
        })
    }

    fn object(&mut self, depth: usize) -> Result<Shape, Fault> {
        let mut members = Vec::new();
        self.at += 1;
        loop {
            self.space()?;
            match self.rest().chars().next() {
                Some('}') => break,
                Some('"') => {}
                Some(_) => return Err(self.fault("a key or `}` is expected here")),
                None => return Err(self.fault("it ends too early")),
            }
            let start = self.at;
            let key = self.string()?;
            self.space()?;
            if !self.rest().starts_with(':') {
                return Err(self.fault("`:` is expected here"));
            }
            self.at += 1;
            self.space()?;
            let value = self.value(depth + 1)?;
            members.push(Member {
                key,
                span: start..self.at,
                value,
            });
            if !self.comma('}')? {
                break;
            }
        }
        self.at += 1;
        Ok(Shape::Object(members))
    }

    fn array(&mut self, depth: usize) -> Result<Shape, Fault> {
        let mut items = Vec::new();
        self.at += 1;
        loop {
            self.space()?;
            if self.rest().starts_with(']') {
                break;
            }
            items.push(self.value(depth + 1)?);
            if !self.comma(']')? {
                break;
            }
        }
        self.at += 1;
        Ok(Shape::Array(items))
    }

    /// Whether another part follows; the reader then stands behind the comma, else at the end.
    fn comma(&mut self, close: char) -> Result<bool, Fault> {
        self.space()?;
        match self.rest().chars().next() {
            Some(',') => {
                self.at += 1;
                Ok(true)
            }
            Some(c) if c == close => Ok(false),
            Some(_) => Err(self.fault("`,` or a closing bracket is expected here")),
            None => Err(self.fault("it ends too early")),
        }
    }

    fn string(&mut self) -> Result<String, Fault> {
        let bytes = self.rest().as_bytes();
        let mut end = 1;
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(b'\n') | None => return Err(self.fault("a string has no end")),
                Some(_) => end += 1,
            }
        }
        let Some(text) = self.rest().get(..=end) else {
            return Err(self.fault("a string has no end"));
        };
        let Ok(string) = serde_json::from_str(text) else {
            return Err(self.fault("a string is no JSON string"));
        };
        self.at += end + 1;
        Ok(string)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_name_their_line() {
        let check = |text: &str, line: usize, reason: &str| {
            let fault = parse(text).unwrap_err();
            assert_eq!(
                (fault.line, fault.reason.contains(reason)),
                (line, true),
                "{text}"
            );
        };
        check("", 1, "ends too early");
        check("{\n \"a\": 1\n \"b\": 2}", 3, "`,`");
        check("{\n \"a\": nope}", 2, "a value");
        check("{} x", 1, "behind its end");
        check("{\"a\": \"x\n\"}", 1, "no end");
        check("{ /* x", 1, "comment");
        check("{\"a\" 1}", 1, "`:`");
        check("{\"a\\", 1, "no end");
        check(&"[".repeat(1_000), 1, "deeply");
    }

    #[test]
    fn a_part_is_added_in_the_layout_of_the_text() {
        let check = |text: &str, part: &str, expected: &str| {
            let node = parse(text).unwrap();
            let insertion = append(text, &node, part);
            let mut changed = text.to_owned();
            changed.insert_str(insertion.at, &insertion.text);
            assert_eq!(changed, expected);
            parse(&changed).unwrap();
        };
        check("{}", "\"a\": 1", "{\n  \"a\": 1\n}");
        check("{\n}\n", "\"a\": 1", "{\n  \"a\": 1\n}\n");
        check("{\"b\":2}", "\"a\": 1", "{\"b\":2,\n  \"a\": 1}");
        check(
            "{\n\t\"b\": 2\n}",
            "\"a\": {\n  \"c\": 1\n}",
            "{\n\t\"b\": 2,\n\t\"a\": {\n\t\t\"c\": 1\n\t}\n}",
        );
        check(
            "{\r\n    \"b\": 2,\r\n}",
            "\"a\": 1",
            "{\r\n    \"b\": 2,\r\n    \"a\": 1\r\n}",
        );
        check(
            "{\n  \"b\": 2 // two\n}",
            "\"a\": 1",
            "{\n  \"b\": 2,\n  \"a\": 1 // two\n}",
        );
        check("[1, 2]", "3", "[1, 2,\n  3]");
    }

    #[test]
    fn a_part_is_removed_with_its_comma() {
        let check = |text: &str, number: usize, expected: &str| {
            let mut changed = text.to_owned();
            changed.replace_range(removal(text, &parse(text).unwrap(), number), "");
            assert_eq!(changed, expected);
        };
        check("[1, 2, 3]", 0, "[2, 3]");
        check("[1, 2, 3]", 2, "[1, 2]");
        check("{ \"a\": 1 }", 0, "{}");
        check("[1, 2]", 7, "[1, 2]");
        check("[1, // one\n  2]", 1, "[1, // one\n]");
    }
}
