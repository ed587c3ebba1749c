//! Edits a memory: sets metadata fields by path, and checks the metadata against the memory type.

use std::collections::HashMap;

use serde_json::json;
use serde_json::value::RawValue;

use crate::model::{MemoryType, Shape};
use crate::notes::remember::misfits;
use crate::store::Error as StoreError;
use crate::store::workspace::Error;
use memctl_files::json::with_fields;

use super::Fields;
use super::field::Field;

/// Prefix of a metadata path.
const METADATA: &str = "metadata.";

/// Returns the path inside the metadata, or `None` if the name is not such a path.
pub(crate) fn path(name: &str) -> Option<&str> {
    name.strip_prefix(METADATA).filter(|path| !path.is_empty())
}

/// Sets single fields in the given or stored metadata, and checks the result against the type.
/// Without a change to the type or the metadata nothing is checked, so a memory that does not fit
/// its type stays editable in its other fields.
pub(crate) fn fit(
    values: &mut Vec<(Field, Box<RawValue>)>,
    paths: &[(&str, String)],
    metadata: Field,
    stored: &Fields,
) -> Result<(), Error> {
    let given = |values: &[(Field, Box<RawValue>)], name: &str| {
        let given = values.iter().find(|(field, _)| field.name == name);
        given.map(|(_, value)| value.clone())
    };
    let new_type = given(values, "memory_type");
    let of = new_type.as_ref().or(stored.get("memory_type"));
    let of: Option<MemoryType> = of.and_then(|of| serde_json::from_str(of.get()).ok());
    let new = given(values, "metadata");
    let start = new.as_ref().or(stored.get("metadata"));
    let mut text = start.map_or("{}", |raw| raw.get()).to_owned();
    if !paths.is_empty() {
        for (path, value) in paths {
            let shape = of.and_then(|of| of.field(path)).map(|field| field.shape);
            text = with(&text, path, &as_json(shape, value)).map_err(|problem| {
                let problems = vec![memctl_redact::redact(&problem).text.into_owned()];
                Error::BadMemory {
                    memory_type: of.unwrap_or(MemoryType::BrandMemory),
                    problems,
                }
            })?;
        }
        values.retain(|(field, _)| *field != metadata);
        let raw = RawValue::from_string(text.clone()).map_err(StoreError::from)?;
        values.push((metadata, raw));
    }
    let is_judged = new_type.is_some() || new.is_some() || !paths.is_empty();
    let (Some(of), true) = (of, is_judged) else {
        return Ok(());
    };
    let raw = RawValue::from_string(text).map_err(StoreError::from)?;
    let mut problems = misfits(of, &raw);
    // Fixing one field of hand-written metadata does not require fixing all of them.
    if new_type.is_none() && new.is_none() {
        let before = stored.get("metadata").map_or("{}", |raw| raw.get());
        let before = RawValue::from_string(before.to_owned()).map_err(StoreError::from)?;
        let before = misfits(of, &before);
        problems.retain(|problem| !before.contains(problem));
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::BadMemory {
        memory_type: of,
        problems,
    })
}

/// Converts typed input to JSON: a text needs no quotation marks.
fn as_json(shape: Option<Shape>, typed: &str) -> String {
    let is_text = matches!(shape, Some(Shape::Text | Shape::OneOf(_)));
    let json = if is_text {
        serde_json::from_str::<String>(typed).is_ok() || typed.trim() == "null"
    } else {
        serde_json::from_str::<serde::de::IgnoredAny>(typed).is_ok()
    };
    if json {
        typed.trim().to_owned()
    } else {
        json!(typed).to_string()
    }
}

/// Sets the field at a path and leaves every other byte unchanged. Missing parents are created.
/// Fails if the path leads through a value that is not an object.
fn with(object: &str, path: &str, value: &str) -> Result<String, String> {
    let object = if object == "null" { "{}" } else { object };
    let fields: HashMap<String, Box<RawValue>> = serde_json::from_str(object)
        .map_err(|_| format!("`metadata` holds `{object}` where `{path}` was to be set"))?;
    let (name, rest) = match path.split_once('.') {
        Some((name, rest)) if !fields.contains_key(path) => (name, rest),
        _ => return Ok(with_fields(object, &[(path, value.to_owned())], 8)),
    };
    let inner = fields.get(name).map_or("{}", |inner| inner.get());
    let inner = with(inner, rest, value)?;
    Ok(with_fields(object, &[(name, inner)], 8))
}

#[cfg(test)]
mod tests {
    use super::super::memory::*;

    #[test]
    fn one_field_is_set_and_every_other_byte_stays() {
        let check = |object: &str, path: &str, value: &str, expected: Option<&str>| {
            assert_eq!(with(object, path, value).ok().as_deref(), expected);
        };
        let object = r#"{"a":  1.0, "m": {"x": 1e3,  "y": 2}, "p.q": 0}"#;
        check(
            object,
            "m.x",
            "5",
            Some(r#"{"a":  1.0, "m": {"x": 5,  "y": 2}, "p.q": 0}"#),
        );
        check(
            object,
            "p.q",
            "7",
            Some(r#"{"a":  1.0, "m": {"x": 1e3,  "y": 2}, "p.q": 7}"#),
        );
        check(object, "a.b", "7", None);
        check(
            "{}",
            "a.b",
            "7",
            Some("{\n        \"a\": {\n        \"b\": 7}}"),
        );
        check("[]", "a", "7", None);
    }

    #[test]
    fn texts_need_no_quotation_marks() {
        let check = |shape, typed: &str, expected: &str| {
            assert_eq!(as_json(shape, typed), expected, "{typed}");
        };
        check(Some(Shape::Text), "calm", "\"calm\"");
        check(Some(Shape::Text), "7", "\"7\"");
        check(Some(Shape::Text), "\"calm\"", "\"calm\"");
        check(Some(Shape::Text), "null", "null");
        check(Some(Shape::Number(None)), " 7 ", "7");
        check(Some(Shape::Number(None)), "many", "\"many\"");
        check(Some(Shape::Texts), "[\"a\"]", "[\"a\"]");
        check(None, "7", "7");
        check(None, "seven", "\"seven\"");
    }
}
