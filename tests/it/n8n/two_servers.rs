//! What the failure analyst learns at one server, the agent's next error gets as a hint from another server on
//! the same database. The requests and the code are those that stand in the workflows; Node.js evaluates them
//! as n8n does, without n8n.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::scene::{STEP, lesson};
use super::{nodes, shipped, text};
use crate::postgres::Store;
use crate::serve::{Reply, Served, bearer, token};

/// The error of the two calls. The analyst quotes it, and by its words the lesson is found.
const ERROR: &str = "ERROR: syntax error at end of input";

/// Evaluates a parameter of a node: the text of an expression, or the items that code returns. `$json` is what
/// comes in, and `$('name')` what the node of that name has given.
const EVALUATE: &str = r"
const { source, isCode, json, of } = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const $ = (name) => ({ first: () => ({ json: of[name] }) });
const run = (body) => new Function('$json', '$', body)(json, $);
const text = (all, expression) => run(`return (${expression});`);
const value = isCode ? run(source)[0].json : source.replace(/^=/, '').replace(/\{\{(.*?) \}\}/gs, text);
process.stdout.write(JSON.stringify(value));
";

fn node<'w>(workflow: &'w Value, name: &str) -> &'w Value {
    let found = nodes(workflow)
        .iter()
        .find(|node| text(&node["name"]) == name);
    &found.unwrap_or_else(|| panic!("no node `{name}`"))["parameters"]
}

fn evaluate(source: &str, is_code: bool, json: &Value, of: &Value) -> Value {
    let mut command = Command::new("node");
    command
        .args(["-e", EVALUATE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let input = json!({ "source": source, "isCode": is_code, "json": json, "of": of });
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.to_string().as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{source}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Gives the items to a code node.
fn code(workflow: &Value, name: &str, json: &Value, of: &Value) -> Value {
    evaluate(text(&node(workflow, name)["jsCode"]), true, json, of)
}

/// Sends the request of a node, with the credential of the memory.
fn send(
    workflow: &Value,
    name: &str,
    json: &Value,
    of: &Value,
    served: &Served,
    token: &str,
) -> Reply {
    let node = node(workflow, name);
    let told = |field: &str| evaluate(text(&node[field]), false, json, of);
    let url = told("url");
    let path = text(&url).strip_prefix(served.url.as_str()).unwrap();
    let mut headers = vec![bearer(token), "Content-Type: application/json".to_owned()];
    for header in node["headerParameters"]["parameters"]
        .as_array()
        .into_iter()
        .flatten()
    {
        headers.push(format!(
            "{}: {}",
            text(&header["name"]),
            text(&header["value"])
        ));
    }
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    served.ask(
        text(&node["method"]),
        path,
        &headers,
        text(&told("jsonBody")),
    )
}

#[test]
fn lesson_of_the_analyst_is_a_hint_of_another_server() {
    if Command::new("node").arg("--version").output().is_err() {
        println!("skipped: `node` is not installed");
        return;
    }
    let Some(store) = Store::new() else { return };
    let (one, two) = (store.server(), store.server());
    let (first, second) = (Served::start(&one, &[]), Served::start(&two, &[]));
    let agent = shipped("agent-with-memory.json");
    let failed = json!({ "call": "ALTER TABLE users ADD COLUMN last_name;", "ok": false, "observation": ERROR });
    let at = |served: &Served| json!({ "memctl_url": served.url });

    // The next error, before and after the lesson.
    let hear = || {
        let state = json!({ "attempts": [failed], "again": true, "hints": [], "warnings": [] });
        let of = json!({ "Settings": at(&second), "Observe": state });
        let reply = send(
            &agent,
            "Hints",
            &state,
            &of,
            &second,
            &token(&two, "n8n", "*"),
        );
        let answered = json!({ "statusCode": reply.status, "body": reply.json() });
        code(&agent, "Hear", &answered, &of)
    };
    let before = hear();
    assert_eq!(
        (&before["hints"], &before["warnings"]),
        (&json!([]), &json!([])),
        "{before}"
    );

    let analyst = shipped("failure-analyst.json");
    let mut learnt = lesson("How to add a new column to a table");
    learnt["data"]["initial_failure_summary"] = json!(format!("ALTER TABLE failed with '{ERROR}'"));
    let said = format!("```json\n{learnt}\n```");
    let said = json!({ "choices": [{ "message": { "content": said } }] });
    let procedure = code(&analyst, "Procedure", &said, &json!({}));
    let of = json!({ "Settings": at(&first), "Procedure": procedure });
    let reply = send(
        &analyst,
        "Keep it",
        &procedure,
        &of,
        &first,
        &token(&one, "n8n", "*"),
    );
    let answered = json!({ "statusCode": reply.status, "body": reply.json() });
    let learned = code(&analyst, "Outcome", &answered, &of);
    assert_eq!(learned["status"], "procedure_learned", "{learned}");

    let after = hear();
    assert_eq!(after["warnings"], json!([]), "{after}");
    let hints = after["hints"].as_array().unwrap();
    assert_eq!(hints.len(), 1, "{after}");
    assert_eq!(hints[0]["id"], learned["id"], "{after}");
    assert!(
        hints[0]["working_code"].to_string().contains(STEP),
        "{after}"
    );
    assert_eq!(hints[0]["trust"], "observed", "{after}");
}
