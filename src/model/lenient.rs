//! Reading of fields that other programs, or hands, have written in another type than ours.
//!
//! A confidence of `"0.9"`, a cost of `null`: neither may hide the record that it stands in. These
//! are `deserialize_with` functions; writing is always in the proper type.

use serde::{Deserialize, Deserializer, Serialize as _, Serializer};
use serde_json::value::RawValue;

/// A number, or a string that holds one; anything else is `None`.
pub(super) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    let text = raw.get().trim_matches('"').trim();
    Ok(text.parse().ok().filter(|n: &f64| n.is_finite()))
}

/// Writes a number without a fraction as such: `38`, not `38.0`.
#[expect(
    clippy::ref_option,
    reason = "the signature that `serialize_with` asks for"
)]
pub(super) fn plain_number<S: Serializer>(
    number: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "what is no small whole number is written as it is"
    )]
    match number {
        Some(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
            serializer.serialize_i64(*number as i64)
        }
        number => number.serialize(serializer),
    }
}

/// A string; numbers and booleans as they are written; anything else is empty.
pub(super) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(match raw.get().as_bytes().first() {
        Some(b'"') => serde_json::from_str(raw.get()).unwrap_or_default(),
        Some(b'{' | b'[' | b'n') | None => String::new(),
        Some(_) => raw.get().to_owned(),
    })
}

/// A string, or `None` for what is none: nobody is named by a number.
pub(super) fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).ok())
}

/// A string; `None` for `null`, and anything else as it is written, so that it is not taken for
/// nothing.
pub(super) fn text_or_none<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(match raw.get() {
        "null" => None,
        text => Some(serde_json::from_str(text).unwrap_or_else(|_| text.to_owned())),
    })
}

/// A string; whatever has no text, as in [`text`], is `None`.
pub(super) fn optional_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    text(deserializer).map(|text| (!text.is_empty()).then_some(text))
}

/// A number without a fraction that is not below zero; anything else is `None`.
pub(super) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(raw.get().trim_matches('"').trim().parse().ok())
}

/// Any value as its JSON text; `null` is `None`.
pub(super) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Box<RawValue>>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok((raw.get() != "null").then_some(raw))
}

/// A list of strings; whatever is not a string in it is left out, whatever is no list is empty.
pub(super) fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    let items: Vec<serde_json::Value> = serde_json::from_str(raw.get()).unwrap_or_default();
    Ok(items
        .into_iter()
        .filter_map(|item| match item {
            serde_json::Value::String(text) => Some(text),
            _ => None,
        })
        .collect())
}

/// A list; whatever in it has not the form of its items is left out, whatever is no list is empty.
pub(super) fn list<'de, D: Deserializer<'de>, T: serde::de::DeserializeOwned>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    let items: Vec<Box<RawValue>> = serde_json::from_str(raw.get()).unwrap_or_default();
    Ok(items
        .iter()
        .filter_map(|item| serde_json::from_str(item.get()).ok())
        .collect())
}

/// `true` or `false`; anything else is `false`.
pub(super) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(raw.get() == "true")
}

/// The JSON value `null`, for fields that are missing.
pub(super) fn null() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}
