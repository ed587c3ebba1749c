//! The workflows of `docs/integrations/n8n/`.
//!
//! - `files`: what stands in them: core nodes, no secret, and to whom each credential goes.
//! - `flows`: n8n itself imports and runs them against the real server (heavy; `make test-n8n`).
//! - `two_servers`: requests of the workflows to two servers on one database.
//! - `program`: n8n, as it was installed from npm; `scene`: what it is set up with here.

mod files;
mod flows;
mod program;
mod scene;
mod two_servers;

use std::path::Path;

use serde_json::Value;

/// The workflows, in the order in which one calls the other.
const FILES: [&str; 3] = [
    "query-rewriter.json", "failure-analyst.json", "agent-with-memory.json",
];

/// A workflow as it is shipped.
fn shipped(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/integrations/n8n");
    serde_json::from_slice(&std::fs::read(path.join(file)).unwrap()).unwrap()
}

fn nodes(workflow: &Value) -> &Vec<Value> {
    workflow["nodes"].as_array().unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
