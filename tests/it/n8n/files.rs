//! What stands in the workflows, without n8n: that every n8n has their nodes, that nothing in them is
//! secret, that each credential goes to one address, and that the server has what they ask for.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use super::{FILES, nodes, shipped, text};
use crate::serve::Served;
use crate::workspace::{Ran, Workspace};

/// Nodes that every n8n brings along.
const CORE: [&str; 10] = [
    "code", "executeWorkflow", "executeWorkflowTrigger", "httpRequest", "if", "manualTrigger",
    "noOp", "set", "stickyNote", "webhook",
];

#[test]
fn nodes_are_n8ns_own_and_lead_to_each_other() {
    for file in FILES {
        let workflow = shipped(file);
        let mut names = BTreeSet::new();
        for node in nodes(&workflow) {
            let kind = text(&node["type"])
                .strip_prefix("n8n-nodes-base.")
                .unwrap_or_default();
            assert!(CORE.contains(&kind), "{file}: {node}");
            assert!(names.insert(text(&node["name"])), "{file}: two of one name");
        }
        let mut reached: BTreeSet<&str> = BTreeSet::new();
        for (from, targets) in workflow["connections"].as_object().unwrap() {
            assert!(names.contains(from.as_str()), "{file}: {from}");
            let branches = targets["main"].as_array().unwrap();
            reached.extend(
                branches
                    .iter()
                    .flat_map(|branch| branch.as_array().unwrap())
                    .map(|to| text(&to["node"])),
            );
        }
        assert!(reached.is_subset(&names), "{file}: {reached:?}");
        for node in nodes(&workflow) {
            let kind = text(&node["type"]);
            let begins = kind.ends_with("Trigger") || kind.ends_with("webhook");
            assert!(
                begins || kind.ends_with("stickyNote") || reached.contains(text(&node["name"])),
                "{file}: nothing leads to {node}"
            );
        }
        assert_eq!(
            workflow["active"], false,
            "{file}: whoever imports it starts it"
        );
    }
}

#[test]
fn a_workflow_is_called_with_what_it_takes() {
    let known: BTreeMap<String, Value> = FILES
        .into_iter()
        .map(shipped)
        .map(|workflow| (text(&workflow["id"]).to_owned(), workflow))
        .collect();
    let mut calls = 0;
    for node in known.values().flat_map(nodes) {
        if !text(&node["type"]).ends_with(".executeWorkflow") {
            continue;
        }
        calls += 1;
        let called = &known[text(&node["parameters"]["workflowId"]["value"])];
        let trigger = nodes(called)
            .iter()
            .find(|node| text(&node["type"]).ends_with(".executeWorkflowTrigger"))
            .unwrap();
        let taken = trigger["parameters"]["workflowInputs"]["values"]
            .as_array()
            .unwrap();
        let taken: BTreeSet<&str> = taken.iter().map(|value| text(&value["name"])).collect();
        let given = node["parameters"]["workflowInputs"]["value"]
            .as_object()
            .unwrap();
        let given: BTreeSet<&str> = given.keys().map(String::as_str).collect();
        assert_eq!(taken, given, "{node}");
    }
    assert_eq!(calls, 2);
}

#[test]
fn each_credential_goes_to_its_own_address_and_none_stands_in_a_file() {
    let workspace = Workspace::sample();
    let served = Served::start(&workspace, &[]);
    let described = served.ask("GET", "/openapi.json", &[], "").is(200).json();
    let mut asked = BTreeSet::new();
    for file in FILES {
        let workflow = shipped(file);
        for node in nodes(&workflow) {
            // Of a credential there is its name, by which n8n finds it.
            for credential in node["credentials"].as_object().into_iter().flatten() {
                let fields: Vec<&String> = credential.1.as_object().unwrap().keys().collect();
                assert_eq!(fields, ["id", "name"], "{file}: {node}");
            }
            let headers = node
                .pointer("/parameters/headerParameters")
                .map(Value::to_string);
            assert!(
                !headers.unwrap_or_default().to_lowercase().contains("auth"),
                "{file}: {node}"
            );
            if !text(&node["type"]).ends_with(".httpRequest") {
                continue;
            }
            let url = text(&node["parameters"]["url"]);
            let (address, path) = url.split_once("_url }}").unwrap();
            let expected = match address.rsplit(['.', ' ']).next().unwrap() {
                "memctl" => {
                    assert!(
                        described["paths"][path]["post"].is_object(),
                        "{file}: the server has no `{path}`"
                    );
                    asked.insert(path.to_owned());
                    Some("memctl: memory")
                }
                "model" => Some("memctl: model"),
                "tool" => None,
                other => panic!("{file}: `{other}`"),
            };
            let given = node.pointer("/credentials/httpBearerAuth/name");
            assert_eq!(given.and_then(Value::as_str), expected, "{file}: {node}");
        }
        let webhooks = nodes(&workflow)
            .iter()
            .filter(|node| text(&node["type"]).ends_with(".webhook"));
        for webhook in webhooks {
            let protected = &webhook["parameters"]["authentication"];
            assert_eq!(protected, "headerAuth", "{file}: {webhook}");
        }
    }
    assert_eq!(asked.len(), 3, "{asked:?}");
}

#[test]
fn code_is_javascript() {
    let has_node = Command::new("node").arg("--version").output();
    if !has_node.is_ok_and(|output| output.status.success()) {
        println!("skipped: there is no `node`");
        return;
    }
    let workspace = Workspace::empty();
    for file in FILES {
        for node in nodes(&shipped(file)) {
            let Some(code) = node["parameters"]["jsCode"].as_str() else {
                continue;
            };
            let script = workspace.write("code.mjs", format!("async () => {{\n{code}\n}}"));
            let check = Command::new("node").arg("--check").arg(script).output();
            let ran = Ran::of(check.unwrap());
            assert_eq!(ran.code, 0, "{file}: {}: {ran:?}", node["name"]);
        }
    }
}
