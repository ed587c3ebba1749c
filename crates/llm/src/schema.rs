//! Conversion of a JSON Schema to the subset that a provider accepts.
//!
//! Providers enforce a subset of JSON Schema and reject the rest with a 400. Unsupported keywords
//! are moved into the description, where the model can still read them, as in the official client
//! libraries. The check of the answer (`structure`) uses the original schema.

use serde_json::{Map, Value, json};

/// Keywords that every strict mode supports; others go into the description.
const KNOWN: [&str; 15] = [
    "type", "properties", "required", "items", "anyOf", "allOf", "enum", "const", "$ref", "$defs",
    "definitions", "title", "description", "format", "minItems",
];

const FORMATS: [&str; 9] = [
    "date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid",
];

/// Treatment of optional properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Optional {
    /// Optional properties may be missing.
    Absent,
    /// Strict mode requires every property, so optional ones may be `null`.
    Null,
}

/// Returns the schema with closed objects and without unsupported keywords.
pub(super) fn strict(schema: &Value, optional: Optional) -> Value {
    let Value::Object(schema) = schema else {
        return schema.clone();
    };
    let mut kept = Map::new();
    let mut words = Vec::new();
    for (key, value) in schema {
        match key.as_str() {
            "properties" | "$defs" | "definitions" => {
                kept.insert(key.clone(), each_value(value, optional));
            }
            "items" => {
                kept.insert(key.clone(), strict(value, optional));
            }
            "anyOf" | "allOf" => {
                kept.insert(key.clone(), each_item(value, optional));
            }
            // Both mean the same to a model, but providers accept only `anyOf`.
            "oneOf" => {
                kept.insert("anyOf".to_owned(), each_item(value, optional));
            }
            "additionalProperties" | "$schema" | "$id" => {}
            "format" if value.as_str().is_some_and(|f| FORMATS.contains(&f)) => {
                kept.insert(key.clone(), value.clone());
            }
            "minItems" if value.as_u64().is_some_and(|n| n <= 1) => {
                kept.insert(key.clone(), value.clone());
            }
            "format" | "minItems" => words.push(format!("{key}: {value}")),
            _ if KNOWN.contains(&key.as_str()) => {
                kept.insert(key.clone(), value.clone());
            }
            _ => words.push(format!("{key}: {value}")),
        }
    }
    if !words.is_empty() {
        let words = format!("{{{}}}", words.join(", "));
        let description = match kept.get("description").and_then(Value::as_str) {
            Some(said) => format!("{said}\n\n{words}"),
            None => words,
        };
        kept.insert("description".to_owned(), Value::String(description));
    }
    if kept.get("type").is_some_and(|t| t == "object") || kept.contains_key("properties") {
        kept.insert("additionalProperties".to_owned(), Value::Bool(false));
        if optional == Optional::Null {
            require_all(&mut kept);
        }
    }
    Value::Object(kept)
}

fn each_value(value: &Value, optional: Optional) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), strict(value, optional)))
            .collect(),
        other => other.clone(),
    }
}

fn each_item(value: &Value, optional: Optional) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| strict(item, optional)).collect(),
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

    fn check(optional: Optional, input: &Value, expected: &Value) {
        assert_eq!(&strict(input, optional), expected);
    }

    #[test]
    fn objects_are_closed_at_every_depth() {
        check(
            Optional::Absent,
            &json!({"$schema": "x", "type": "object", "required": ["a"], "properties": {
                "a": {"type": "array", "items": {"type": "object", "properties": {}, "additionalProperties": true}},
                "b": {"oneOf": [{"type": "string"}, {"type": "object"}]},
            }}),
            &json!({"type": "object", "required": ["a"], "additionalProperties": false, "properties": {
                "a": {"type": "array", "items": {"type": "object", "properties": {}, "additionalProperties": false}},
                "b": {"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": false}]},
            }}),
        );
    }

    #[test]
    fn what_is_not_enforced_is_said() {
        check(
            Optional::Absent,
            &json!({"type": "number", "description": "Certainty", "minimum": 0, "maximum": 1}),
            &json!({"type": "number", "description": "Certainty\n\n{minimum: 0, maximum: 1}"}),
        );
        check(
            Optional::Absent,
            &json!({"type": "array", "minItems": 2, "maxItems": 5}),
            &json!({"type": "array", "description": "{minItems: 2, maxItems: 5}"}),
        );
        check(
            Optional::Absent,
            &json!({"type": "string", "format": "date", "enum": ["a"]}),
            &json!({"type": "string", "format": "date", "enum": ["a"]}),
        );
    }

    #[test]
    fn a_property_that_is_named_like_a_keyword_stays_a_property() {
        let schema = json!({"type": "object", "required": ["pattern"], "additionalProperties": false,
            "properties": {"pattern": {"type": "string"}}});
        check(Optional::Null, &schema, &schema);
    }

    #[test]
    fn optional_properties_become_nullable_where_all_are_required() {
        check(
            Optional::Null,
            &json!({"type": "object", "required": ["a"], "properties": {
                "a": {"type": "string"}, "b": {"type": "integer"}}}),
            &json!({"type": "object", "required": ["a", "b"], "additionalProperties": false, "properties": {
                "a": {"type": "string"}, "b": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}),
        );
    }
}
