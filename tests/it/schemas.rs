//! JSON Schemas of the `--json` documents: the kept files, and the documents that the tests print.
//!
//! `make schemas` writes the files again. A document that does not match the kept schema of its
//! command fails the test that printed it, see [`assert_valid`].

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::help::runnable;
use crate::workspace::Workspace;

/// Commands that print no JSON document, and why.
const WITHOUT: [(&str, &str); 3] = [
    ("hook", "answers in the format of the agent host"),
    ("statusline", "answers in the format of the agent host"),
    ("mcp", "speaks the Model Context Protocol"),
];

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/reference/schemas")
}

/// Kept schemas by command.
fn kept() -> BTreeMap<String, String> {
    let files = fs::read_dir(directory()).into_iter().flatten();
    let read = |file: fs::DirEntry| {
        let name = file.file_name().into_string().unwrap();
        let command = name.strip_suffix(".json").unwrap().replace('_', " ");
        (command, fs::read_to_string(file.path()).unwrap())
    };
    files.map(|file| read(file.unwrap())).collect()
}

/// Fails unless the document has the form that the kept schema of the command describes, without a
/// field that the schema does not name.
pub(crate) fn assert_valid(arguments: &[&str], document: &Value) {
    static VALIDATORS: LazyLock<BTreeMap<String, Validator>> = LazyLock::new(|| {
        let strict = |text: String| {
            let mut schema: Value = serde_json::from_str(&text).unwrap();
            schema["unevaluatedProperties"] = json!(false);
            jsonschema::validator_for(&schema).unwrap()
        };
        let kept = kept().into_iter();
        kept.map(|(name, text)| (name, strict(text))).collect()
    });
    let command = if document.get("error").is_some_and(Value::is_object) {
        "error".to_owned()
    } else {
        let begins = |name: &&String| {
            let words: Vec<&str> = name.split(' ').collect();
            arguments.starts_with(&words) || (**name == "version" && arguments[0] == "--version")
        };
        let longest = VALIDATORS
            .keys()
            .filter(begins)
            .max_by_key(|name| name.len());
        longest
            .unwrap_or_else(|| panic!("{arguments:?}: no schema"))
            .clone()
    };
    let errors: Vec<String> = VALIDATORS[&command]
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(
        errors.is_empty(),
        "{arguments:?}: {errors:#?}\n{document:#}"
    );
}

#[test]
fn kept_schemas_are_those_that_the_program_prints() {
    let workspace = Workspace::empty();
    let listed = workspace.json_of(&["schema"]);
    let commands = listed["commands"].as_array().unwrap();
    let printed: BTreeMap<String, String> = commands
        .iter()
        .map(|command| {
            let command = command.as_str().unwrap();
            let words: Vec<&str> = ["schema"].into_iter().chain(command.split(' ')).collect();
            let ran = workspace.run(&words);
            assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{command}");
            (command.to_owned(), ran.stdout)
        })
        .collect();
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        drop(fs::remove_dir_all(directory()));
        fs::create_dir_all(directory()).unwrap();
        for (command, schema) in &printed {
            let file = format!("{}.json", command.replace(' ', "_"));
            fs::write(directory().join(file), schema).unwrap();
        }
    }
    let kept = kept();
    assert!(kept.keys().eq(printed.keys()), "run `make schemas`");
    for (command, schema) in &printed {
        assert_eq!(&kept[command], schema, "`{command}`: run `make schemas`");
        let schema: Value = serde_json::from_str(schema).unwrap();
        assert!(jsonschema::meta::is_valid(&schema), "{command}");
    }
}

#[test]
fn every_command_has_a_schema_or_a_reason() {
    let kept = kept();
    for command in runnable(&Workspace::empty()) {
        let name = command.join(" ");
        let excepted = WITHOUT.iter().any(|(without, _)| *without == name);
        assert_ne!(kept.contains_key(&name), excepted, "{name}");
    }
}

#[test]
fn a_command_of_memory_has_one_schema_however_it_is_typed() {
    let workspace = Workspace::empty();
    let long = workspace.run(&["schema", "memory", "list"]);
    assert_eq!(workspace.run(&["schema", "list"]).stdout, long.stdout);
    let schema: Value = serde_json::from_str(&long.stdout).unwrap();
    assert_eq!(schema["title"], "memctl memory list --json");
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
