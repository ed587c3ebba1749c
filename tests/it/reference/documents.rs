//! Pages of the `--json` documents and of the HTTP endpoints, from their schemas.

use serde_json::Value;

use super::{assert_kept, phrase, resolved};
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

/// Table of the fields of an object.
fn fields(schema: &Value, root: &Value) -> String {
    let schema = resolved(schema, root);
    let Some(properties) = schema["properties"].as_object() else {
        return String::new();
    };
    let required = |name: &str| {
        let names = schema["required"].as_array();
        names.is_some_and(|names| names.iter().any(|one| one == name))
    };
    let mut table = String::from("| Field | Type | Meaning |\n|---|---|---|\n");
    for (name, field) in properties {
        let about = field["description"]
            .as_str()
            .or_else(|| resolved(field, root)["description"].as_str());
        let optional = if required(name) { "" } else { ", optional" };
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
    let about = about.map_or(String::new(), |text| {
        format!("{}\n\n", text.replace('\n', " "))
    });
    format!("{about}{}", fields(schema, root))
}

#[test]
fn page_of_documents_follows_from_their_schemas() {
    let workspace = Workspace::empty();
    let listed = workspace.json_of(&["schema"]);
    let mut page = String::from(
        "# JSON documents\n\n\
         `--json` prints one document on one line. This page lists the fields of each; `memctl schema COMMAND`\n\
         prints its [JSON Schema](https://json-schema.org). Fields are only added within a version: accept\n\
         those that you do not know.\n",
    );
    for command in listed["commands"].as_array().unwrap() {
        let command = command.as_str().unwrap();
        let words: Vec<&str> = ["schema"].into_iter().chain(command.split(' ')).collect();
        let schema: Value = serde_json::from_str(&workspace.run(&words).stdout).unwrap();
        let heading = if command == "error" {
            "A failed command"
        } else {
            command
        };
        page.push_str(&format!("\n## {heading}\n"));
        let variants = schema["anyOf"].as_array();
        match variants {
            Some(variants) => {
                for variant in variants {
                    page.push_str(&format!("\n{}", document(variant, &schema)));
                }
            }
            None => page.push_str(&format!("\n{}", document(&schema, &schema))),
        }
    }
    assert_kept("documents.md", &page);
}

/// Endpoint of the server.
fn endpoint(method: &str, path: &str, operation: &Value, root: &Value) -> String {
    let mut text = format!(
        "\n## {} {path}\n\n{}.",
        method.to_uppercase(),
        operation["summary"].as_str().unwrap()
    );
    if operation["security"].is_null() {
        text.push_str(" Needs no token.");
    }
    text.push('\n');
    let parameters = operation["parameters"].as_array();
    if let Some(parameters) = parameters.filter(|list| !list.is_empty()) {
        text.push_str("\n| Parameter | Type | Meaning |\n|---|---|---|\n");
        for parameter in parameters {
            let optional = if parameter["required"] == true {
                ""
            } else {
                ", optional"
            };
            let about = parameter["description"].as_str();
            let about = about.or_else(|| parameter["schema"]["description"].as_str());
            text.push_str(&format!(
                "| `{}` in the {} | {}{optional} | {} |\n",
                parameter["name"].as_str().unwrap(),
                parameter["in"].as_str().unwrap(),
                kind(&parameter["schema"], root, 0),
                phrase(about.unwrap_or_default()),
            ));
        }
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    if !body.is_null() {
        let variants = body["anyOf"].as_array();
        let tables: Vec<String> = variants.map_or_else(
            || vec![fields(body, root)],
            |variants| {
                variants
                    .iter()
                    .map(|variant| fields(variant, root))
                    .collect()
            },
        );
        for table in tables.iter().filter(|table| !table.is_empty()) {
            text.push_str(&format!("\nBody:\n\n{table}"));
        }
    }
    for (code, response) in operation["responses"].as_object().unwrap() {
        if code != "default" {
            let answer = phrase(response["description"].as_str().unwrap());
            text.push_str(&format!("\nAnswer {code}: {answer}.\n"));
            let schema = &response["content"]["application/json"]["schema"];
            let table = fields(schema, root);
            if !table.is_empty() {
                text.push_str(&format!("\n{table}"));
            }
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
         `memctl serve` describes itself at `/openapi.json` (OpenAPI 3.1); this page is made from that\n\
         description. [Serve over HTTP](../serve.md) explains tokens, limits, errors and events. Every request\n\
         but two needs `Authorization: Bearer TOKEN`.\n",
    );
    let paths = root["paths"].as_object().unwrap();
    for (path, methods) in paths {
        for (method, operation) in methods.as_object().unwrap() {
            page.push_str(&endpoint(method, path, operation, &root));
        }
    }
    assert_kept("http.md", &page);
}
