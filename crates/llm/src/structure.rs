//! JSON Schema of an answer: the subset that a provider accepts, and the check of the JSON object in the answer.
//!
//! Providers enforce a subset of JSON Schema and reject the rest with a 400: see [`Schema::json`]. The
//! check of the answer uses the original schema.
//!
//! Models wrap JSON in code fences and explanations even if told not to, so the text is searched
//! for the object. The check covers a small part of JSON Schema: objects, required keys, types
//! and `enum`, at every depth. The caller checks all other keywords. `$ref` is not
//! followed.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::Schema;

/// First JSON object in a text, verbatim.
///
/// `None` if there is none, or if the text ends within it.
pub fn json_object(text: &str) -> Option<&str> {
    objects(text).next()
}

/// First object in the text that matches the schema, verbatim.
///
/// # Errors
///
/// The error of the first object, worded for the model.
pub(super) fn fitting<'a>(text: &'a str, schema: &Schema) -> Result<&'a str, String> {
    let mut reason = None;
    for object in objects(text) {
        let checked = serde_json::from_str::<Value>(object)
            .map_err(|error| error.to_string())
            .and_then(|value| fits(&value, &schema.json, "the answer"));
        match checked {
            Ok(()) => return Ok(object),
            Err(wrong) => reason.get_or_insert(wrong),
        };
    }
    Err(reason.unwrap_or_else(|| "the answer holds no complete JSON object".to_owned()))
}

/// Outermost JSON objects of a text, in order.
fn objects(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let from_brace = &rest[rest.find('{')?..];
            let mut values =
                serde_json::Deserializer::from_str(from_brace).into_iter::<&RawValue>();
            match values.next()? {
                Ok(object) => {
                    rest = &from_brace[object.get().len()..];
                    return Some(object.get());
                }
                // The text ends within this object, so all later objects are parts of it.
                Err(error) if error.is_eof() => return None,
                Err(_) => rest = &from_brace[1..],
            }
        }
    })
}

fn fits(value: &Value, schema: &Value, place: &str) -> Result<(), String> {
    if let Some(wanted) = schema.get("type").and_then(Value::as_str)
        && !is_a(value, wanted)
    {
        return Err(format!("{place} is {} but must be {wanted}", kind(value)));
    }
    if let Some(Value::Array(allowed)) = schema.get("enum")
        && !allowed.contains(value)
    {
        let allowed = Value::Array(allowed.clone());
        return Err(format!("{place} is {value} but must be one of {allowed}"));
    }
    match value {
        Value::Object(object) => {
            let required = schema.get("required").and_then(Value::as_array);
            let required: Vec<&str> = required
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            if let Some(key) = required.iter().find(|key| !object.contains_key(**key)) {
                return Err(format!("{place} has no `{key}`"));
            }
            let properties = schema.get("properties").and_then(Value::as_object);
            for (key, schema) in properties.into_iter().flatten() {
                match object.get(key) {
                    // Strict modes answer `null` for optional properties.
                    Some(Value::Null) if !required.contains(&key.as_str()) => {}
                    Some(value) => fits(value, schema, &format!("`{key}`"))?,
                    None => {}
                }
            }
            Ok(())
        }
        Value::Array(items) => match schema.get("items") {
            Some(schema) => items
                .iter()
                .try_for_each(|item| fits(item, schema, &format!("an item of {place}"))),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn is_a(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        // `3.0` is an integer in JSON Schema.
        "integer" => value.as_f64().is_some_and(|n| n.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        // An unknown type accepts any value.
        _ => true,
    }
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Returns a schema as `OpenAI` wants it: all properties are required, and an optional one may be `null`.
pub(super) fn with_all_required(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(key, value)| (key.clone(), with_all_required(value)));
            let mut schema: Map<String, Value> = fields.collect();
            require_all(&mut schema);
            Value::Object(schema)
        }
        Value::Array(items) => items.iter().map(with_all_required).collect(),
        other => other.clone(),
    }
}

fn require_all(object: &mut Map<String, Value>) {
    let required = object.get("required").cloned().unwrap_or_default();
    let is_required = |key: &str| {
        required
            .as_array()
            .is_some_and(|keys| keys.iter().any(|k| k == key))
    };
    let Some(Value::Object(properties)) = object.get_mut("properties") else {
        return;
    };
    for (key, property) in properties.iter_mut() {
        if !is_required(key) {
            *property = json!({"anyOf": [property.take(), {"type": "null"}]});
        }
    }
    let all: Value = properties.keys().cloned().collect();
    object.insert("required".to_owned(), all);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_is_found_in_whatever_surrounds_it() {
        let check = |text, expected| assert_eq!(json_object(text), expected, "{text}");
        check(r#"{"a": 1.0}"#, Some(r#"{"a": 1.0}"#));
        check("```json\n{\"a\": 1}\n```", Some("{\"a\": 1}"));
        check(
            "For {name} it is {\"a\": {\"b\": 2}}. {\"c\": 3}",
            Some("{\"a\": {\"b\": 2}}"),
        );
        check("an { odd } text {\"a\": \"}\"}", Some("{\"a\": \"}\"}"));
        check("[1, 2]", None);
        check("no object", None);
        check("", None);
        // The inner object of a truncated answer is not the answer.
        check(r#"{"a": {"b": 2}, "c": "#, None);
    }

    #[test]
    fn hostile_texts_are_read_in_good_time() {
        assert_eq!(json_object(&"{".repeat(200_000)), None);
        assert_eq!(json_object(&"{\"a\":".repeat(200_000)), None);
    }

    #[test]
    fn the_form_is_checked_at_every_depth() {
        let schema = Schema {
            name: "rule".to_owned(),
            json: json!({"type": "object", "required": ["rule", "confidence"], "properties": {
                "rule": {"type": "string"},
                "confidence": {"type": "number"},
                "count": {"type": "integer"},
                "kind": {"type": "string", "enum": ["a", "b"]},
                "cues": {"type": "array", "items": {"type": "string"}},
                "note": {"type": "string"},
            }}),
        };
        let check = |text: &str, expected: Result<&str, &str>| {
            let found = fitting(text, &schema);
            assert_eq!(
                found.as_ref().map_err(String::as_str).copied(),
                expected,
                "{text}"
            );
        };
        let good = r#"{"rule": "x", "confidence": 1, "cues": ["a"], "kind": "a", "count": 3.0}"#;
        check(good, Ok(good));
        let nulls = r#"{"rule": "x", "confidence": 0.5, "kind": null, "note": null}"#;
        check(nulls, Ok(nulls));
        check(r#"{"rule": "x"}"#, Err("the answer has no `confidence`"));
        check(
            r#"{"rule": null, "confidence": 1}"#,
            Err("`rule` is null but must be string"),
        );
        check(
            r#"{"rule": "x", "confidence": "high"}"#,
            Err("`confidence` is a string but must be number"),
        );
        check(
            r#"{"rule": "x", "confidence": 1, "cues": [1]}"#,
            Err("an item of `cues` is a number but must be string"),
        );
        check(
            r#"{"rule": "x", "confidence": 1, "kind": "c"}"#,
            Err(r#"`kind` is "c" but must be one of ["a","b"]"#),
        );
        check(
            r#"{"rule": "x", "confidence": 1, "count": 1.5}"#,
            Err("`count` is a number but must be integer"),
        );
        check("sorry", Err("the answer holds no complete JSON object"));
        // An object in the explanation does not hide the matching one.
        let text = format!("As {{\"a\": 1}} says: {good}");
        check(&text, Ok(good));
    }
}

#[cfg(test)]
mod tests_of_required {
    use super::*;

    #[test]
    fn optional_properties_become_nullable_at_every_depth() {
        let schema = json!({"type": "object", "required": ["a"], "additionalProperties": false, "properties": {
            "a": {"type": "array", "items": {"type": "object", "additionalProperties": false,
                "properties": {"c": {"type": "string"}}}},
            "b": {"type": "integer"}}});
        let expected = json!({"type": "object", "required": ["a", "b"], "additionalProperties": false, "properties": {
            "a": {"type": "array", "items": {"type": "object", "required": ["c"], "additionalProperties": false,
                "properties": {"c": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}},
            "b": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}});
        assert_eq!(with_all_required(&schema), expected);
        assert_eq!(with_all_required(&expected), expected);
    }
}
