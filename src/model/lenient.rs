//! Lenient deserialization of fields that another program or an editor wrote with another type.
//!
//! A confidence of `"0.9"` or a cost of `null` must not hide its record. These are
//! `deserialize_with` functions; serialization always uses the proper type.

use std::fmt::{self, Formatter};

use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize as _, Serializer};
use serde_json::value::RawValue;

/// Reads a number, or a string that holds one; anything else is `None`.
pub(super) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let text = deserializer.deserialize_any(Scalar)?;
    Ok(text.trim().parse().ok().filter(|n: &f64| n.is_finite()))
}

/// Reads a string, a number or a boolean as text, and anything else as an empty one. Without a look ahead: a
/// session's start reads every rule.
struct Scalar;

impl<'de> Visitor<'de> for Scalar {
    type Value = String;

    fn expecting(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str("any value")
    }

    fn visit_str<E>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_string<E>(self, text: String) -> Result<String, E> {
        Ok(text)
    }

    fn visit_bool<E>(self, is: bool) -> Result<String, E> {
        Ok(is.to_string())
    }

    fn visit_i64<E>(self, number: i64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_u64<E>(self, number: u64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_f64<E>(self, number: f64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_unit<E>(self) -> Result<String, E> {
        Ok(String::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<String, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(String::new())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<String, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(String::new())
    }
}

/// Writes a whole number without a fraction: `38`, not `38.0`.
#[expect(clippy::ref_option, reason = "the signature that `serialize_with` asks for")]
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

/// Reads a string, or a number or boolean as text; anything else is empty.
pub(super) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    deserializer.deserialize_any(Scalar)
}

/// Reads a string; `null` is `None`. Keeps any other value as written, so that it does not count as
/// missing.
pub(super) fn text_or_none<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(match raw.get() {
        "null" => None,
        text => Some(serde_json::from_str(text).unwrap_or_else(|_| text.to_owned())),
    })
}

/// Reads a string; a value without text, as in [`text`], is `None`.
pub(super) fn optional_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    text(deserializer).map(|text| (!text.is_empty()).then_some(text))
}

/// Reads a whole number of at least zero; anything else is `None`.
pub(super) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(text(deserializer)?.trim().parse().ok())
}

/// Reads a list of strings and skips other items; anything but a list is empty.
pub(super) fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    list(deserializer)
}

/// Reads a list and skips items that do not match the type; anything but a list is empty.
pub(super) fn list<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    if let Ok(items) = serde_json::from_str(raw.get()) {
        return Ok(items);
    }
    let items: Vec<Box<RawValue>> = serde_json::from_str(raw.get()).unwrap_or_default();
    Ok(items
        .iter()
        .filter_map(|item| serde_json::from_str(item.get()).ok())
        .collect())
}

/// Reads a value of its type; anything else is the default, and does not hide the record.
pub(super) fn or_default<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}
