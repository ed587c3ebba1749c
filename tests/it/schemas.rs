//! JSON Schemas of the `--json` documents, and the documents that the tests print.
//!
//! A document that does not match the schema of its command fails the test that printed it, see
//! [`assert_valid`]. The fields of all documents are kept in `docs/reference/documents.md`, so a
//! change of one shows in a review.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::help::runnable;
use crate::workspace::Workspace;

/// Commands that print no JSON document, and why.
const WITHOUT: [(&str, &str); 3] = [
    ("hook", "answers in the format of the agent host"),
    ("statusline", "answers in the format of the agent host"),
    ("mcp", "speaks the Model Context Protocol"),
];

/// Schemas that the program prints, by command.
static SCHEMAS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let workspace = Workspace::empty();
    let listed = workspace.json_of(&["schema"]);
    let commands = listed["commands"].as_array().unwrap().iter();
    commands
        .map(|command| {
            let command = command.as_str().unwrap();
            let words: Vec<&str> = ["schema"].into_iter().chain(command.split(' ')).collect();
            let ran = workspace.run(&words);
            assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{command}");
            let schema = serde_json::from_str(&ran.stdout).unwrap();
            (command.to_owned(), schema)
        })
        .collect()
});

/// Fails unless the document has the form that the schema of the command describes, without a field
/// that the schema does not name.
pub(crate) fn assert_valid(arguments: &[&str], document: &Value) {
    let command = if document.get("error").is_some_and(Value::is_object) {
        "error"
    } else {
        let begins = |name: &&String| {
            let words: Vec<&str> = name.split(' ').collect();
            let bare = arguments.strip_prefix(&["memory"]).unwrap_or(arguments);
            arguments.starts_with(&words) || bare.starts_with(&words)
        };
        SCHEMAS
            .keys()
            .filter(begins)
            .max_by_key(|name| name.len())
            .unwrap_or_else(|| panic!("{arguments:?}: no schema"))
    };
    let root = &SCHEMAS[command];
    let found = check(root, root, document).and_then(|named| no_other(document, &named));
    assert_eq!(found, Ok(()), "{arguments:?}\n{document:#}");
}

/// Fails on a field that is not among the named ones.
fn no_other(document: &Value, named: &BTreeSet<String>) -> Result<(), String> {
    let fields = document.as_object().into_iter().flatten();
    let mut others = fields.filter(|(name, _)| !named.contains(*name));
    others
        .next()
        .map_or(Ok(()), |(name, _)| Err(format!("{name}: no such field")))
}

/// Checks a value against a schema. Returns the fields of the value that the schema names.
///
/// Panics on a keyword that it does not know, so that no schema says more than is checked.
fn check(schema: &Value, root: &Value, value: &Value) -> Result<BTreeSet<String>, String> {
    let mut named = BTreeSet::new();
    let Some(keywords) = schema.as_object() else {
        return Ok(named);
    };
    for (keyword, says) in keywords {
        match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "default" | "format" | "examples" => {}
            "$ref" => {
                let path = says.as_str().unwrap().strip_prefix('#').unwrap();
                named.extend(check(root.pointer(path).unwrap(), root, value)?);
            }
            "type" => {
                let types = says
                    .as_array()
                    .map_or(std::slice::from_ref(says), Vec::as_slice);
                ensure(types.iter().any(|kind| is(value, kind)), says, value)?;
            }
            "const" => ensure(says == value, says, value)?,
            "enum" => ensure(says.as_array().unwrap().contains(value), says, value)?,
            "minimum" | "maximum" => {
                let bound = says.as_f64().unwrap();
                let outside = value.as_f64().is_some_and(|number| {
                    if keyword == "minimum" {
                        number < bound
                    } else {
                        number > bound
                    }
                });
                ensure(!outside, says, value)?;
            }
            "minItems" | "maxItems" => {
                let bound = says.as_u64().unwrap();
                let outside = value.as_array().is_some_and(|items| {
                    let count = items.len() as u64;
                    if keyword == "minItems" {
                        count < bound
                    } else {
                        count > bound
                    }
                });
                ensure(!outside, says, value)?;
            }
            "required" => {
                for name in says.as_array().unwrap() {
                    let missing = value.is_object() && value.get(name.as_str().unwrap()).is_none();
                    ensure(!missing, name, value)?;
                }
            }
            "properties" => {
                for (name, schema) in says.as_object().unwrap() {
                    if let Some(field) = value.get(name) {
                        check(schema, root, field).map_err(|why| format!("{name}/{why}"))?;
                        named.insert(name.clone());
                    }
                }
            }
            "additionalProperties" => {
                let declared = schema["properties"].as_object();
                for (name, field) in value.as_object().into_iter().flatten() {
                    if declared.is_none_or(|fields| !fields.contains_key(name)) {
                        ensure(*says != json!(false), says, value)?;
                        check(says, root, field).map_err(|why| format!("{name}/{why}"))?;
                        named.insert(name.clone());
                    }
                }
            }
            "items" | "prefixItems" => {
                for (at, item) in value.as_array().into_iter().flatten().enumerate() {
                    if let Some(schema) = says.as_array().map_or(Some(says), |list| list.get(at)) {
                        check(schema, root, item).map_err(|why| format!("{at}/{why}"))?;
                    }
                }
            }
            "anyOf" | "oneOf" => {
                let options = says.as_array().unwrap().iter();
                let checked: Vec<_> = options.map(|option| check(option, root, value)).collect();
                if checked.iter().all(Result::is_err) {
                    return Err(format!("none of {checked:?}"));
                }
                named.extend(checked.into_iter().flatten().flatten());
            }
            other => panic!("`{other}` is not checked"),
        }
    }
    Ok(named)
}

fn is(value: &Value, kind: &Value) -> bool {
    match kind.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no type: {other}"),
    }
}

fn ensure(holds: bool, says: &Value, value: &Value) -> Result<(), String> {
    if holds {
        Ok(())
    } else {
        Err(format!("{value} is not {says}"))
    }
}

#[test]
fn every_command_has_a_schema_or_a_reason() {
    for command in runnable(&Workspace::empty()) {
        let name = command.join(" ");
        let excepted = WITHOUT.iter().any(|(without, _)| *without == name);
        assert_ne!(SCHEMAS.contains_key(&name), excepted, "{name}");
    }
}

#[test]
fn a_command_of_memory_has_one_schema_however_it_is_typed() {
    let workspace = Workspace::empty();
    let long = workspace.run(&["schema", "memory", "list"]);
    assert_eq!(workspace.run(&["schema", "list"]).stdout, long.stdout);
    let schema: Value = serde_json::from_str(&long.stdout).unwrap();
    assert_eq!(schema["title"], "memctl list --json");
    assert_eq!(workspace.json_of(&["schema", "list"]), schema);
}

#[test]
fn command_without_a_schema_is_refused() {
    let error = Workspace::empty().json_of(&["schema", "hook"]);
    assert_eq!(error["error"]["kind"], "usage");
    assert_eq!(error["error"]["hint"], "memctl schema");
}

#[test]
fn document_with_a_field_of_another_type_or_name_does_not_match() {
    let workspace = Workspace::sample();
    let document = workspace.json_of(&["memory", "status"]);
    assert_valid(&["memory", "status"], &document);
    for (field, value) in [("executions", json!("3")), ("exekutions", json!(3))] {
        let mut changed = document.clone();
        changed[field] = value;
        let matches = std::panic::catch_unwind(|| assert_valid(&["memory", "status"], &changed));
        assert!(matches.is_err(), "{field}");
    }
}

#[test]
fn values_are_checked_by_every_keyword() {
    let root = json!({"$defs": {"id": {"type": "string"}}});
    let check = |schema: Value, value: Value, expected: bool| {
        let found = check(&schema, &root, &value);
        assert_eq!(found.is_ok(), expected, "{schema} {value}: {found:?}");
    };
    check(json!({"$ref": "#/$defs/id"}), json!("a"), true);
    check(json!({"$ref": "#/$defs/id"}), json!(1), false);
    check(json!({"type": ["integer", "null"]}), json!(null), true);
    check(json!({"type": ["integer", "null"]}), json!(1.5), false);
    check(json!({"const": 1}), json!(2), false);
    check(json!({"enum": ["a"]}), json!("b"), false);
    check(json!({"minimum": 0, "maximum": 1}), json!(2), false);
    check(json!({"minItems": 2}), json!([1]), false);
    check(json!({"maxItems": 1}), json!([1, 2]), false);
    check(json!({"required": ["a"]}), json!({}), false);
    check(
        json!({"properties": {"a": {"type": "null"}}}),
        json!({"a": 1}),
        false,
    );
    check(
        json!({"additionalProperties": {"type": "null"}}),
        json!({"a": 1}),
        false,
    );
    check(json!({"items": {"type": "null"}}), json!([null, 1]), false);
    check(
        json!({"prefixItems": [{}, {"type": "null"}]}),
        json!([1, 1]),
        false,
    );
    check(
        json!({"anyOf": [{"type": "null"}, {"const": 1}]}),
        json!(1),
        true,
    );
    check(
        json!({"oneOf": [{"type": "null"}, {"const": 1}]}),
        json!(2),
        false,
    );
}
