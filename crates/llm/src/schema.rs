//! Conversion of a JSON Schema to the subset that a provider accepts.
//!
//! Providers enforce a subset of JSON Schema and reject the rest with a 400. Unsupported keywords
//! are moved into the description, where the model can still read them, as in the official client
//! libraries. The check of the answer (`structure`) uses the original schema.

use serde_json::{Map, Value, json};

/// Keywords that every strict mode supports; others go into the description.
const KNOWN: [&str; 7] = [
    "type", "required", "enum", "const", "$ref", "title", "description",
];

const FORMATS: [&str; 9] = [
    "date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid",
];

/// Returns the schema with closed objects and without unsupported keywords. If a strict mode
/// requires all properties, optional ones may be `null`.
pub(super) fn strict(schema: &Value, requires_all: bool) -> Value {
    let Value::Object(schema) = schema else {
        return schema.clone();
    };
    let each = |value: &Value| match value {
        Value::Object(map) => {
            let fields = map.iter();
            fields
                .map(|(name, value)| (name.clone(), strict(value, requires_all)))
                .collect()
        }
        Value::Array(items) => items
            .iter()
            .map(|item| strict(item, requires_all))
            .collect(),
        other => other.clone(),
    };
    let mut allowed = Map::new();
    let mut words = Vec::new();
    for (key, value) in schema {
        let (key, value) = match key.as_str() {
            "properties" | "$defs" | "definitions" | "anyOf" | "allOf" => {
                (key.as_str(), each(value))
            }
            // Both mean the same to a model, but providers accept only `anyOf`.
            "oneOf" => ("anyOf", each(value)),
            "items" => ("items", strict(value, requires_all)),
            "additionalProperties" | "$schema" | "$id" => continue,
            "format" if value.as_str().is_some_and(|f| FORMATS.contains(&f)) => {
                ("format", value.clone())
            }
            "minItems" if value.as_u64().is_some_and(|n| n <= 1) => ("minItems", value.clone()),
            name if KNOWN.contains(&name) => (name, value.clone()),
            _ => {
                words.push(format!("{key}: {value}"));
                continue;
            }
        };
        allowed.insert(key.to_owned(), value);
    }
    if !words.is_empty() {
        let words = format!("{{{}}}", words.join(", "));
        let description = match allowed.get("description").and_then(Value::as_str) {
            Some(description) => format!("{description}\n\n{words}"),
            None => words,
        };
        allowed.insert("description".to_owned(), Value::String(description));
    }
    if allowed.get("type").is_some_and(|t| t == "object") || allowed.contains_key("properties") {
        allowed.insert("additionalProperties".to_owned(), Value::Bool(false));
        if requires_all {
            require_all(&mut allowed);
        }
    }
    Value::Object(allowed)
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

    fn check(requires_all: bool, input: &Value, expected: &Value) {
        assert_eq!(&strict(input, requires_all), expected);
    }

    #[test]
    fn objects_are_closed_at_every_depth() {
        check(
            false,
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
    fn unsupported_keyword_moves_into_the_description() {
        check(
            false,
            &json!({"type": "number", "description": "Certainty", "minimum": 0, "maximum": 1}),
            &json!({"type": "number", "description": "Certainty\n\n{minimum: 0, maximum: 1}"}),
        );
        check(
            false,
            &json!({"type": "array", "minItems": 2, "maxItems": 5}),
            &json!({"type": "array", "description": "{minItems: 2, maxItems: 5}"}),
        );
        check(
            false,
            &json!({"type": "string", "format": "date", "enum": ["a"]}),
            &json!({"type": "string", "format": "date", "enum": ["a"]}),
        );
    }

    #[test]
    fn a_property_that_is_named_like_a_keyword_stays_a_property() {
        let schema = json!({"type": "object", "required": ["pattern"], "additionalProperties": false,
            "properties": {"pattern": {"type": "string"}}});
        check(true, &schema, &schema);
    }

    #[test]
    fn optional_properties_become_nullable_where_all_are_required() {
        check(
            true,
            &json!({"type": "object", "required": ["a"], "properties": {
                "a": {"type": "string"}, "b": {"type": "integer"}}}),
            &json!({"type": "object", "required": ["a", "b"], "additionalProperties": false, "properties": {
                "a": {"type": "string"}, "b": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}),
        );
    }
}
