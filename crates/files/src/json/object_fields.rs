//! Fields of an object: decoded keys with the spans of their values.

use std::borrow::Cow;
use std::ops::Range;

use super::spans::{skip_key, skip_space, skip_string, skip_value};

/// Returns the fields of an object: each decoded key with the span of its value. Ends early if the
/// object is not complete.
pub fn fields(object: &[u8]) -> impl Iterator<Item = (Cow<'_, str>, Range<usize>)> {
    let start = skip_space(object, 0);
    let mut at = if object.get(start) == Some(&b'{') {
        Some(skip_space(object, start + 1))
    } else {
        None
    };
    std::iter::from_fn(move || {
        let key_start = at.take()?;
        let value_start = skip_key(object, key_start).ok()?;
        let key_end = skip_string(object, key_start).ok()?;
        let value_end = skip_value(object, value_start).ok()?;
        let next = skip_space(object, value_end);
        if object.get(next) == Some(&b',') {
            at = Some(skip_space(object, next + 1));
        }
        Some((decode(&object[key_start..key_end]), value_start..value_end))
    })
}

/// Returns the JSON text of the field `name` of an object.
pub fn field<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    // The last field of a name wins, as in common JSON parsers.
    let (_, span) = fields(object).filter(|(key, _)| key == name).last()?;
    Some(&object[span])
}

/// Returns the text of the string field `name` of an object.
pub fn string_field<'a>(object: &'a [u8], name: &str) -> Option<Cow<'a, str>> {
    let value = field(object, name)?;
    (value.first() == Some(&b'"')).then(|| decode(value))
}

/// Decodes a quoted string. Invalid escapes (lone surrogates) become `U+FFFD`.
pub(super) fn decode(quoted: &[u8]) -> Cow<'_, str> {
    let inner = &quoted[1..quoted.len() - 1];
    if !inner.contains(&b'\\') {
        return String::from_utf8_lossy(inner);
    }
    let lossy = String::from_utf8_lossy(quoted);
    if let Ok(text) = serde_json::from_str::<String>(&lossy) {
        return Cow::Owned(text);
    }
    Cow::Owned(String::from_utf8_lossy(inner).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_decoded_key() {
        let object = br#" { "a": 1, "b\u00e9": {"a": 2}, "s": "x\ny", "s": "last" }"#;
        let keys: Vec<_> = fields(object).map(|(key, _)| key.into_owned()).collect();
        assert_eq!(keys, ["a", "bé", "s", "s"]);
        assert_eq!(string_field(object, "s").as_deref(), Some("last"));
        assert_eq!(string_field(object, "a"), None);
        assert_eq!(string_field(b"[1]", "a"), None);
        assert_eq!(fields(b"{}").count(), 0);
        assert_eq!(fields(b"{\"a\": 1, ").count(), 1);
    }
}
