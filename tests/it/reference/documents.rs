//! Pages of the `--json` documents and of the HTTP endpoints, from their schemas.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{assert_kept, phrase, resolved, wrapped};
use crate::serve::Served;
use crate::workspace::Workspace;

/// Type of a schema in words: `list of {id, rule}`.
fn kind(schema: &Value, root: &Value, depth: usize) -> String {
    let schema = resolved(schema, root);
    if let Some(constant) = schema.get("const") {
        return format!("`{}`", constant.to_string().trim_matches('"'));
    }
    for name in ["anyOf", "oneOf"] {
        if let Some(options) = schema[name].as_array() {
            let mut kinds: Vec<String> = Vec::new();
            for option in options {
                let one = kind(option, root, depth);
                if !kinds.contains(&one) {
                    kinds.push(one);
                }
            }
            return kinds.join(" or ");
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<String> = values
            .iter()
            .map(|value| format!("`{}`", value.to_string().trim_matches('"')))
            .collect();
        return values.join(", ");
    }
    let names: Vec<&str> = match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => vec![],
    };
    let words: Vec<String> = names
        .iter()
        .map(|name| word(name, schema, root, depth))
        .collect();
    if words.is_empty() {
        "any".to_owned()
    } else {
        words.join(" or ")
    }
}

fn word(name: &str, schema: &Value, root: &Value, depth: usize) -> String {
    match name {
        "array" => match schema.get("items") {
            Some(items) if items.is_object() => format!("list of {}", kind(items, root, depth)),
            _ => "list".to_owned(),
        },
        "object" => match schema["properties"].as_object() {
            Some(fields) if depth < 1 => {
                let names: Vec<&str> = fields.keys().map(String::as_str).collect();
                format!("{{`{}`}}", names.join("`, `"))
            }
            _ => "object".to_owned(),
        },
        name => name.to_owned(),
    }
}

fn is_required(schema: &Value, name: &str) -> bool {
    let names = schema["required"].as_array();
    names.is_some_and(|names| names.iter().any(|one| one == name))
}

/// Fields of an object on one line, with the types of those that are no plain text.
fn field_list(schema: &Value, root: &Value) -> String {
    let Some(properties) = schema["properties"].as_object() else {
        return String::new();
    };
    let fields = properties.iter().filter(|(name, _)| *name != "warnings");
    let words: Vec<String> = fields
        .map(|(name, field)| {
            let optional = if is_required(schema, name) { "" } else { "?" };
            match kind(field, root, 0).as_str() {
                "string" => format!("`{name}`{optional}"),
                of => format!(
                    "`{name}`{optional} {}",
                    of.replace("list of string", "list")
                ),
            }
        })
        .collect();
    words.join("; ")
}

/// Table of the fields of an object.
fn fields(schema: &Value, root: &Value) -> String {
    let schema = resolved(schema, root);
    let Some(properties) = schema["properties"].as_object() else {
        return String::new();
    };
    let mut table = String::from("| Field | Type | Meaning |\n|---|---|---|\n");
    for (name, field) in properties {
        let about = field["description"]
            .as_str()
            .or_else(|| resolved(field, root)["description"].as_str());
        let optional = if is_required(schema, name) {
            ""
        } else {
            ", optional"
        };
        table.push_str(&format!(
            "| `{name}` | {}{optional} | {} |\n",
            kind(field, root, 0).replace('|', "\\|"),
            phrase(about.unwrap_or_default()),
        ));
    }
    table
}

fn document(schema: &Value, root: &Value) -> String {
    let schema = resolved(schema, root);
    // A description that names code says nothing to a reader of the page.
    let about = schema["description"]
        .as_str()
        .filter(|text| !text.contains("()"));
    let fields = field_list(schema, root);
    wrapped(&format!("{} {fields}", about.unwrap_or_default())) + "\n"
}

#[test]
fn page_of_documents_follows_from_their_schemas() {
    let workspace = Workspace::empty();
    let listed = workspace.json_of(&["schema"]);
    let mut page = String::from(
        "# JSON documents\n\n\
         `--json` prints one document on one line, and [scripts](../scripting.md) may rely on its fields: `?` marks\n\
         one that may be absent, and those without a type are texts. Most documents also have `warnings`, a list of\n\
         texts. `memctl schema COMMAND` prints the meaning of each field as [JSON Schema](https://json-schema.org).\n",
    );
    let mut documents: Vec<(String, Vec<String>)> = Vec::new();
    for command in listed["commands"].as_array().unwrap() {
        let command = command.as_str().unwrap();
        let words: Vec<&str> = ["schema"].into_iter().chain(command.split(' ')).collect();
        let schema: Value = serde_json::from_str(&workspace.run(&words).stdout).unwrap();
        let heading = if command == "error" {
            "A failed command"
        } else {
            command
        };
        let variants = match schema["anyOf"].as_array() {
            Some(variants) => variants.iter().collect(),
            None => vec![&schema],
        };
        let texts = variants
            .iter()
            .map(|variant| format!("\n{}", document(variant, &schema)));
        let text: String = texts.collect();
        match documents.iter_mut().find(|(other, _)| *other == text) {
            Some((_, headings)) => headings.push(heading.to_owned()),
            None => documents.push((text, vec![heading.to_owned()])),
        }
    }
    for (text, headings) in documents {
        page.push_str(&format!("\n## {}\n{text}", headings.join(", ")));
    }
    assert_kept("documents.md", &page);
}

/// Names of the fields of a body, or of parameters.
fn names_of_fields(body: &Value, root: &Value) -> BTreeSet<String> {
    let fields = resolved(body, root)["properties"].as_object();
    fields.map_or_else(BTreeSet::new, |fields| fields.keys().cloned().collect())
}

fn row_of_parameter(parameter: &Value, root: &Value) -> String {
    let optional = if parameter["required"] == true {
        ""
    } else {
        ", optional"
    };
    let about = parameter["description"].as_str();
    let about = about.or_else(|| parameter["schema"]["description"].as_str());
    format!(
        "| `{}` in the {} | {}{optional} | {} |\n",
        parameter["name"].as_str().unwrap(),
        parameter["in"].as_str().unwrap(),
        kind(&parameter["schema"], root, 0),
        phrase(about.unwrap_or_default()),
    )
}

fn endpoint(root: &Value, method: &str, path: &str, operation: &Value, get: &Value) -> String {
    let mut text = format!(
        "\n## {} {path}\n\n{}.",
        method.to_uppercase(),
        operation["summary"].as_str().unwrap()
    );
    if operation["security"].is_null() {
        text.push_str(" Needs no token.");
    }
    text.push('\n');
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let own: Vec<&Value> = parameters.collect();
    if !own.is_empty() {
        text.push_str("\n| Parameter | Type | Meaning |\n|---|---|---|\n");
        text.extend(own.iter().map(|one| row_of_parameter(one, root)));
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    let names = names_of_fields(body, root);
    let of_get = get["parameters"].as_array().into_iter().flatten();
    let of_get: BTreeSet<String> = of_get
        .filter_map(|one| one["name"].as_str().map(str::to_owned))
        .collect();
    if !names.is_empty() && names == of_get {
        text.push_str("\nBody: the parameters of GET, and the same answer.\n");
        return text;
    }
    let variants = body["anyOf"].as_array();
    let variants = variants.map_or_else(|| vec![body], |variants| variants.iter().collect());
    for table in variants.iter().map(|variant| fields(variant, root)) {
        if !table.is_empty() {
            text.push_str(&format!("\nBody:\n\n{table}"));
        }
    }
    for (code, response) in operation["responses"].as_object().unwrap() {
        if code != "default" {
            let answer = phrase(response["description"].as_str().unwrap());
            let schema = &response["content"]["application/json"]["schema"];
            let list = field_list(resolved(schema, root), root);
            let answer = wrapped(&format!("Answer {code}: {answer}. {list}"));
            text.push_str(&format!("\n{answer}\n"));
        }
    }
    text
}

#[test]
fn page_of_http_endpoints_is_what_the_server_describes() {
    let mut workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    workspace.set("MEMCTL_TRUST", "1");
    let server = Served::start(&workspace, &[]);
    let host = server.host().to_owned();
    let described = server.raw(&format!(
        "GET /openapi.json HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    ));
    assert_eq!(described.status, 200);
    let root: Value = serde_json::from_str(&described.text).unwrap();
    let mut page = String::from(
        "# HTTP endpoints\n\n\
         `memctl serve` describes itself at `/openapi.json` (OpenAPI 3.1), with the meaning of each field of an\n\
         answer. This page is made from it; fields without a type are texts, and `?` marks one that may be absent.\n\
         [Serve over HTTP](../serve.md) explains tokens, limits and errors. Every request but two needs\n\
         `Authorization: Bearer TOKEN`.\n",
    );
    for (path, methods) in root["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            page.push_str(&endpoint(&root, method, path, operation, &methods["get"]));
        }
    }
    assert_kept("http.md", &page);
}
