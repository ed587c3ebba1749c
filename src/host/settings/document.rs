//! A settings file as JSON with comments and trailing commas: its object, and members of it.
//!
//! Reading, layout and removal are those of `jsonc-parser`; a text that it would not write as it read it is refused.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};

use super::{Error, Fault, LONGEST};
use memctl_files::SharedFile;

/// Reads a settings file; `None` if it does not exist.
pub(super) fn read(file: &SharedFile) -> Result<Option<String>, Error> {
    let text = file.read_text(LONGEST);
    text.map_err(|source| Error::unreadable(file, source))
}

/// Reads from a settings file what `find` finds in its text.
pub(super) fn read_in<T>(
    file: &SharedFile,
    find: impl FnOnce(&str) -> Result<T, Fault>,
) -> Result<T, Error> {
    let text = read(file)?.unwrap_or_default();
    find(&text).map_err(|what| Error::Unsuitable {
        path: file.path().to_owned(),
        what,
    })
}

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

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Settings: a text with one object.
pub(super) struct Document {
    /// Byte order mark, if the text has one.
    mark: &'static str,
    root: CstRootNode,
    /// The object.
    pub(super) object: CstObject,
}

impl Document {
    /// Reads a text. One without a value is an empty object.
    pub(super) fn read(text: &str) -> Result<Self, Fault> {
        let (mark, body) = match text.strip_prefix(BYTE_ORDER_MARK) {
            Some(body) => ("\u{feff}", body),
            None => ("", text),
        };
        let body = if body.trim().is_empty() { "{}\n" } else { body };
        let root = CstRootNode::parse(body, &OPTIONS).map_err(|error| {
            let (line, kind) = (error.line_display(), error.kind());
            format!("is not JSON: line {line}: {kind}")
        })?;
        if root.to_string() != body {
            return Err("has a form that cannot be extended".to_owned());
        }
        match root.object_value() {
            Some(object) => Ok(Self { mark, root, object }),
            None => Err("has a value that is not an object".to_owned()),
        }
    }

    /// Removes an object that has become empty.
    pub(super) fn remove_empty(&self, name: &str) {
        let object = member(&self.object, name).filter(|member| {
            member
                .object_value()
                .is_some_and(|object| object.properties().is_empty())
        });
        object.into_iter().for_each(CstObjectProp::remove);
    }

    /// The text, as it was apart from the changes.
    pub(super) fn text(&self) -> String {
        format!("{}{}", self.mark, self.root)
    }
}

/// Member of this name; the last of duplicates, as JSON parsers take it.
pub(super) fn member(object: &CstObject, name: &str) -> Option<CstObjectProp> {
    let named = |one: &CstObjectProp| one.decoded_name().as_deref() == Some(name);
    object.properties().into_iter().rev().find(named)
}

/// Member that has to be an object; `None` if there is none.
pub(super) fn object_in(object: &CstObject, name: &str) -> Result<Option<CstObject>, Fault> {
    match member(object, name) {
        None => Ok(None),
        Some(found) => match found.object_value() {
            Some(object) => Ok(Some(object)),
            None => Err(format!("has `{name}` that is not an object")),
        },
    }
}

/// Member that has to be an object, which is added if there is none.
pub(super) fn object_for(object: &CstObject, name: &str) -> Result<CstObject, Fault> {
    if let Some(found) = object_in(object, name)? {
        return Ok(found);
    }
    let added = object.append(name, CstInputValue::Object(Vec::new()));
    let added = added.object_value();
    added.ok_or_else(|| "has a form that cannot be extended".to_owned())
}

/// String of a member.
pub(super) fn text_in(object: &CstObject, name: &str) -> Option<String> {
    let text = member(object, name)?.value()?.as_string_lit()?;
    text.decoded_value().ok()
}

/// Strings in the list of a member.
pub(super) fn texts_in(object: &CstObject, name: &str) -> Vec<String> {
    let list = member(object, name).and_then(|member| member.array_value());
    let items = list.map(|list| list.elements()).unwrap_or_default();
    let text = items.iter().filter_map(CstNode::as_string_lit);
    text.filter_map(|text| text.decoded_value().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_name_their_line() {
        let check = |text: &str, line: usize, reason: &str| {
            let fault = Document::read(text).err().unwrap();
            let expected = format!("line {line}: ");
            assert!(
                fault.contains(&expected) && fault.contains(reason),
                "{text}: {fault}"
            );
        };
        check("{", 1, "Unterminated object");
        check("{\n \"a\": nope}", 2, "Unexpected token");
        check("{} x", 1, "more than one JSON value");
        check("{ /* x", 1, "comment");
        check("{\"a\" 1}", 1, "colon");
        check("{\"a\\", 1, "Unterminated");
        check(&"[".repeat(1_000), 1, "nesting");
        check("{\n \"a\": 1\n \"b\": 2}", 2, "comma");
    }
}
