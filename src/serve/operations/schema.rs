//! JSON schemas of arguments, with as few tokens as possible.
//!
//! A schema is in the context of every agent that has the tool, used or not. Keywords that a model
//! does not need are removed: titles, integer formats, `null` for optional fields.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// Returns the schema of a type in one piece.
pub(in crate::serve) fn whole<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    Value::from(settings.into_generator().into_root_schema_for::<T>())
}

/// Returns the schema of the arguments `A`.
pub(super) fn of<A: JsonSchema>() -> Map<String, Value> {
    let mut schema = whole::<A>(SchemaSettings::draft2020_12());
    trim(&mut schema);
    match schema {
        Value::Object(mut object) => {
            object.remove("description");
            object
        }
        _ => Map::new(),
    }
}

/// Removes the keywords that a model, and a reader of query parameters, does not need.
pub(in crate::serve) fn trim(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            // Removes the keyword, but not a field of the same name.
            for keyword in ["title", "format"] {
                if object.get(keyword).is_some_and(Value::is_string) {
                    object.remove(keyword);
                }
            }
            // Objects are open unless they say otherwise.
            if object.get("additionalProperties") == Some(&Value::Bool(true)) {
                object.remove("additionalProperties");
            }
            // Removes trivial defaults, and the minimum of unsigned numbers.
            if object.get("default").is_some_and(|value| {
                value.is_null()
                    || value == ""
                    || *value == Value::Bool(false)
                    || *value == Value::Array(Vec::new())
            }) {
                object.remove("default");
            }
            if object.get("minimum").is_some_and(|least| least == 0) {
                object.remove("minimum");
            }
            without_null(object);
            object.values_mut().for_each(trim);
        }
        Value::Array(items) => items.iter_mut().for_each(trim),
        _ => {}
    }
}

/// Removes `null`: an optional field is absent, not null.
fn without_null(object: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(ways)) = object.get_mut("anyOf") {
        ways.retain(|way| way.get("type").is_none_or(|name| name != "null"));
        if let [Value::Object(only)] = ways.as_slice() {
            let only = only.clone();
            object.remove("anyOf");
            for (keyword, value) in only {
                // The description of the field wins over that of its type.
                object.entry(keyword).or_insert(value);
            }
        }
    }
}

/// Returns the schema of an object that has the fields of one of two schemas; none is required.
pub(super) fn either(
    mut one: Map<String, Value>,
    mut other: Map<String, Value>,
) -> Map<String, Value> {
    one.remove("required");
    if let Some(Value::Object(fields)) = one.get_mut("properties")
        && let Some(Value::Object(more)) = other.remove("properties")
    {
        fields.extend(more);
    }
    one
}

/// Returns the fields of a schema as `` `query` ``, or `` `limit` (optional) ``.
pub(super) fn fields(schema: &Map<String, Value>) -> Vec<String> {
    let required = |name: &str| {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|required| required == name))
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let names = properties.into_iter().flat_map(Map::keys);
    names
        .map(|name| {
            let may_be_missing = if required(name) { "" } else { " (optional)" };
            format!("`{name}`{may_be_missing}")
        })
        .collect()
}
