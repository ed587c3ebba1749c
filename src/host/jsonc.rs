//! JSON with comments and trailing commas, as in settings files.
//!
//! `jsonc-parser` finds the positions of values; a piece of text is inserted or removed there, and
//! everything else keeps every byte. The caller stores the insertion, so that its removal restores
//! the text.

use std::ops::Range;

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged as _;
use jsonc_parser::errors::{ParseError, ParseErrorKind};
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, ParseStringErrorKind};

/// JSON with comments and trailing commas, without the other extensions of JSON5.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Value and its span.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) span: Range<usize>,
    pub(super) shape: Shape,
    /// End of the comma after the last part of an object or array; `None` without such a comma.
    comma: Option<usize>,
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
    /// Span from the key to the end of the value.
    pub(super) span: Range<usize>,
    pub(super) value: Node,
}

/// Syntax error.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Line number, from 1.
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

    /// Returns the member of this name; the last one of duplicates, as JSON parsers do.
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

/// Parses a text with a single value; allows comments and trailing commas.
pub(super) fn parse(text: &str) -> Result<Node, Fault> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let collect = CollectOptions {
        comments: CommentCollectionStrategy::Off,
        tokens: true,
    };
    let parsed = jsonc_parser::parse_to_ast(body, &collect, &OPTIONS)
        .map_err(|error| fault(body, &error))?;
    let source = Source {
        body,
        start: text.len() - body.len(),
        tokens: parsed.tokens.unwrap_or_default(),
    };
    match parsed.value {
        Some(value) => source.node(value),
        None => Err(Fault::at(body, body.len(), "unexpected end of the file")),
    }
}

/// Parsed text and its tokens.
struct Source<'a> {
    body: &'a str,
    /// Length of the byte order mark before the body.
    start: usize,
    tokens: Vec<TokenAndRange<'a>>,
}

impl Source<'_> {
    fn node(&self, value: Value<'_>) -> Result<Node, Fault> {
        let span = self.span(&value);
        let comma = self.comma(value.end());
        let shape = match value {
            Value::Object(object) => {
                let members = object.properties.into_iter().map(|property| {
                    Ok(Member {
                        key: self.string(property.name.range())?,
                        span: self.span(&property),
                        value: self.node(property.value)?,
                    })
                });
                Shape::Object(members.collect::<Result<_, _>>()?)
            }
            Value::Array(array) => {
                let items = array.elements.into_iter().map(|item| self.node(item));
                Shape::Array(items.collect::<Result<_, _>>()?)
            }
            Value::StringLit(string) => Shape::String(self.string(string.range)?),
            _ => Shape::Other,
        };
        Ok(Node { span, shape, comma })
    }

    fn span(&self, part: &impl jsonc_parser::common::Ranged) -> Range<usize> {
        self.start + part.start()..self.start + part.end()
    }

    /// Returns the end of the comma before the bracket that ends here.
    fn comma(&self, end: usize) -> Option<usize> {
        let closing = self
            .tokens
            .binary_search_by_key(&end, |token| token.range.end);
        let before = self.tokens.get(closing.ok()?.checked_sub(1)?)?;
        (before.token == Token::Comma).then(|| self.start + before.end())
    }

    /// Decodes a string. The library accepts line breaks and control characters in it.
    fn string(&self, range: jsonc_parser::common::Range) -> Result<String, Fault> {
        let text = range.text(self.body);
        serde_json::from_str(text).map_err(|_| {
            let reason = if text.contains('\n') {
                "unterminated string"
            } else {
                "invalid JSON string"
            };
            Fault::at(self.body, range.start, reason)
        })
    }
}

impl Fault {
    fn at(text: &str, at: usize, reason: &'static str) -> Self {
        let line = text[..at].matches('\n').count() + 1;
        Self { line, reason }
    }
}

fn fault(text: &str, error: &ParseError) -> Fault {
    let start = error.range().start;
    let reason = match error.kind() {
        ParseErrorKind::UnterminatedArray | ParseErrorKind::UnterminatedObject => {
            "unexpected end of the file"
        }
        ParseErrorKind::UnterminatedCommentBlock => "unterminated comment",
        ParseErrorKind::String(ParseStringErrorKind::UnterminatedStringLiteral) => {
            "unterminated string"
        }
        ParseErrorKind::String(_) => "invalid JSON string",
        ParseErrorKind::MultipleRootJsonValues => "unexpected text after the end",
        ParseErrorKind::ExpectedColonAfterObjectKey => "expected `:`",
        ParseErrorKind::ExpectedComma => {
            // The error is at the end of the value; the comma may also stand before the next one.
            let space = text[start..].len() - text[start..].trim_start().len();
            return Fault::at(text, start + space, "expected `,` or a closing bracket");
        }
        ParseErrorKind::ExpectedStringObjectProperty | ParseErrorKind::UnexpectedTokenInObject => {
            "expected a key or `}`"
        }
        ParseErrorKind::NestingDepthExceeded => "nested too deeply",
        _ => "expected a value",
    };
    Fault::at(text, start, reason)
}

/// Piece of text to insert at a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Insertion {
    pub(super) at: usize,
    pub(super) text: String,
}

/// Returns the insertion that adds a part (`"key": value` or a value) at the end of an object or
/// array. `part` is indented by two spaces per level with line feeds; the insertion follows the
/// layout of the text.
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
    let (at, comma) = node.comma.map_or((last.end, ","), |end| (end, ""));
    Insertion {
        at,
        text: format!("{comma}{break_}{inner}{part}"),
    }
}

/// Returns the span to delete so that the part with this index is gone and the rest stays valid.
/// Comments before it stay.
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

/// Returns the indentation of one level, taken from the first indented line.
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

/// Returns the leading white space of the line at this position.
fn indent_of_line(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |at| at + 1);
    let line = &text[start..at];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Returns the white space before a position; `None` unless the position is the first on its line.
fn own_line(text: &str, at: usize) -> Option<&str> {
    let start = text[..at].rfind('\n')? + 1;
    let before = &text[start..at];
    before
        .chars()
        .all(|c| c == ' ' || c == '\t')
        .then_some(before)
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
        check("", 1, "unexpected end");
        check("{\n \"a\": 1\n \"b\": 2}", 3, "`,`");
        check("{\n \"a\": nope}", 2, "a value");
        check("{} x", 1, "after the end");
        check("{\"a\": \"x\n\"}", 1, "unterminated");
        check("{ /* x", 1, "comment");
        check("{\"a\" 1}", 1, "`:`");
        check("{\"a\\", 1, "unterminated");
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
