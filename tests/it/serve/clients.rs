//! The clients themselves, from npm and `PyPI`: supabase-js, and schemathesis, which makes requests out of
//! our description and looks for answers that it does not promise.
//!
//! Heavy, and so ignored; `make test-clients` installs them and runs this. Where one is not there, the
//! test says that it was skipped.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::{Served, execution, token};
use crate::workspace::Workspace;

/// What is installed for tests with real clients; `None`, and said so, where it is not.
pub(crate) fn installed(name: &str) -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_BIN_EXE_memctl"))
        .ancestors()
        .nth(2)
        .unwrap();
    let path = target.join("clients").join(name);
    if path.exists() {
        return Some(path);
    }
    println!(
        "skipped: no `{}`; type `make test-clients` or `make test-supabase`",
        path.display()
    );
    None
}

/// The hook of the source document, without its types, and what an application does with it.
const SCRIPT: &str = r"
import { createClient } from '@supabase/supabase-js';

// Older releases of Node have none; nothing here needs one.
globalThis.WebSocket ??= class {};
const [url, token, other] = process.argv.slice(2);
const client = (token) => createClient(url, 'sb_publishable_0123456789', {
  accessToken: async () => token,
});
let supabase = client(token);

function useAgentMemory() {
  const readMemory = async (query, memoryType) => {
    const { data, error } = await supabase.functions.invoke('agent-memory-read', {
      body: { query, memory_type: memoryType },
    });

    if (error) throw error;
    return data.results;
  };

  const writeMemory = async (content, memoryType, metadata) => {
    const { data, error } = await supabase.functions.invoke('agent-memory-write', {
      body: { content, memory_type: memoryType, metadata },
    });

    if (error) throw error;
    return data.memory;
  };

  return { readMemory, writeMemory };
}

const { readMemory, writeMemory } = useAgentMemory();
const out = {};
out.written = await writeMemory('Voice: calm and friendly, never salesy', 'brand_memory');
await writeMemory('Preferred video format: portrait 9:16', 'user_preferences',
  { preference_type: 'video_format', confidence_score: 0.9, last_updated: '2026-01-01' });
out.read = await readMemory('how should we sound?');
out.typed = await readMemory('which video format?', 'user_preferences');
const failed = async (name, body) => {
  const { data, error } = await supabase.functions.invoke(name, { body });
  return { data, name: error?.name, status: error?.context?.status, body: await error?.context?.json() };
};
out.badType = await failed('agent-memory-write', { content: 'x', memory_type: 'brand' });
const query = 'Procedure for adding a new column to a table';
out.procedures = (await supabase.functions.invoke('hybrid-search-context-eng', { body: { query } })).data;
const embed = async (input) => {
  const response = await fetch(`${url}/v1/embeddings`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ input }),
  });
  return (await response.json()).data[0].embedding;
};
out.hybrid = await supabase.rpc('hybrid_search_context_eng_memories',
  { query_text: query, query_embedding: await embed(query), match_count: 3 });
out.single = await supabase.rpc('hybrid_search_context_eng_memories',
  { query_text: query, match_count: 1 }).single();
out.matched = await supabase.rpc('match_memory',
  { query_embedding: await embed('calm and friendly voice'), match_threshold: 0.3 });
out.stolen = await supabase.rpc('match_memory',
  { query_embedding: await embed('calm'), match_threshold: -1, filter_user_id: 'bob' });
const lesson = { status: 'procedure_learned', data: {
  procedure_name: 'Rename a column', semantic_description: 'How to rename a column of a table',
  learned_procedure_steps: ['ALTER TABLE … RENAME COLUMN'] } };
out.inserted = await supabase.from('context_eng_memories')
  .insert({ content: 'rename', metadata: lesson }).select().single();
// As the edge function of the source document writes, and as an application reads.
out.row = await supabase.from('agent_memory').insert({ user_id: 'ann', content: 'Voice: short sentences',
  memory_type: 'brand_memory', embedding: await embed('Voice: short sentences'), metadata: {}, expires_at: null })
  .select().single();
out.rows = await supabase.from('agent_memory').select().eq('memory_type', 'brand_memory');
out.chosen = await supabase.from('agent_memory').select().eq('content', 'x');
out.foreign = await supabase.from('agent_memory').insert({ user_id: 'bob', content: 'x', memory_type: 'brand_memory' });
out.unknown = await supabase.rpc('another', {});
supabase = client('x.y.z');
out.unauthorized = await failed('agent-memory-read', { query: 'x' });
out.unauthorizedRpc = await supabase.rpc('match_memory', { query_embedding: [1] });
supabase = client(other);
out.others = await useAgentMemory().readMemory('how should we sound?');
console.log(JSON.stringify(out));
";

#[test]
#[ignore = "needs supabase-js from npm: make test-clients"]
fn clients_supabase_js_invokes_and_calls_as_against_supabase() {
    let Some(_) = installed("node_modules/@supabase/supabase-js/package.json") else {
        return;
    };
    let workspace = Workspace::sample();
    workspace.write(
        ".agentura/procedural_memory.json",
        r#"{"entries": [{"procedure_id": "PROC-001", "created_at": "2026-01-01T00:00:00+00:00",
            "status": "procedure_learned", "data": {"procedure_name": "Add a column to a database table",
            "semantic_description": "How to add a new column to a table", "learned_procedure_steps": []}}]}"#,
    );
    let served = Served::start(&workspace, &[]);
    let (ann, bob) = (token(&workspace, "ann", "*"), token(&workspace, "bob", "*"));
    // Beside what is installed, so that its import finds it.
    let script = installed("node_modules")
        .unwrap()
        .parent()
        .unwrap()
        .join("serve-test.mjs");
    std::fs::write(&script, SCRIPT).unwrap();
    let node = Command::new("node")
        .arg(&script)
        .args([&served.url, &ann, &bob])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&node.stdout).into_owned();
    assert!(
        node.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&node.stderr)
    );
    let out: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert_eq!(out["written"]["user_id"], "ann", "{out}");
    assert_eq!(out["read"][0]["id"], out["written"]["id"], "{out}");
    assert_eq!(
        out["typed"][0]["content"],
        "Preferred video format: portrait 9:16"
    );
    let bad = &out["badType"];
    assert_eq!(
        (&bad["name"], &bad["status"]),
        (&json!("FunctionsHttpError"), &json!(422)),
        "{out}"
    );
    assert!(
        bad["body"]["error"]
            .as_str()
            .unwrap()
            .contains("memory_type"),
        "{out}"
    );
    assert_eq!(out["procedures"][0]["id"], "PROC-001", "{out}");
    assert_eq!(out["hybrid"]["error"], Value::Null, "{out}");
    assert_eq!(out["hybrid"]["data"][0]["id"], "PROC-001", "{out}");
    assert_eq!(out["single"]["data"]["id"], "PROC-001", "{out}");
    assert_eq!(
        out["matched"]["data"][0]["id"], out["written"]["id"],
        "{out}"
    );
    assert_eq!(out["stolen"]["data"], json!([]), "{out}");
    assert_eq!(out["inserted"]["error"], Value::Null, "{out}");
    let inserted = out["inserted"]["data"]["id"].as_str().unwrap();
    // Nobody approved it: its id has a random word.
    assert!(inserted.starts_with("PROC-002-"), "{out}");
    rows_of_the_table(&out);
    let unknown = &out["unknown"];
    assert_eq!(
        (&unknown["status"], &unknown["error"]["code"]),
        (&json!(404), &json!("PGRST202")),
        "{out}"
    );
    assert_eq!(out["unauthorized"]["status"], 401, "{out}");
    assert_eq!(out["unauthorizedRpc"]["error"]["code"], "PGRST301", "{out}");
    assert_eq!(out["others"], json!([]), "{out}");
}

fn rows_of_the_table(out: &Value) {
    let row = &out["row"]["data"];
    assert_eq!(
        (&row["content"], &row["user_id"], &row["memory_type"]),
        (
            &json!("Voice: short sentences"),
            &json!("ann"),
            &json!("brand_memory")
        ),
        "{out}"
    );
    let written = "Voice: calm and friendly, never salesy";
    let rows = out["rows"]["data"].as_array().unwrap();
    let contents: Vec<&Value> = rows.iter().map(|row| &row["content"]).collect();
    assert_eq!(contents, [written, "Voice: short sentences"], "{out}");
    assert_eq!(out["chosen"]["status"], 400, "{out}");
    assert_eq!(out["foreign"]["status"], 403, "{out}");
}

#[test]
#[ignore = "needs schemathesis from PyPI: make test-clients"]
fn clients_schemathesis_finds_no_answer_that_is_not_promised() {
    let Some(schemathesis) = installed("schemathesis/bin/schemathesis") else {
        return;
    };
    let workspace = Workspace::sample();
    let served = Served::start(&workspace, &["--rate-limit", "0"]);
    for (scope, phases) in [("hr", "examples,coverage,fuzzing"), ("*", "fuzzing")] {
        let token = token(&workspace, "ann", scope);
        execution(&served, &token, "hr/resume-screen", "one");
        let run = Command::new(&schemathesis)
            .current_dir(workspace.root())
            // One worker: two threads that parse Python at once break each other in CPython 3.11.
            .args(["run", &format!("{}/openapi.json", served.url), "--no-color", "--workers", "1"])
            .args(["--header", &super::bearer(&token), "--seed", "1", "--max-examples", "8"])
            // The errors of JSON-RPC are answers of their own.
            .args(["--exclude-path", "/mcp"])
            .args([ "--request-timeout", "30"])
            .args(["--phases", phases, "--checks"])
            .arg("not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&run.stdout).into_owned();
        let counted = said.lines().find(|line| line.contains("generated,"));
        println!(
            "schemathesis, scope {scope}: {}",
            counted.unwrap_or("nothing").trim()
        );
        assert!(run.status.success(), "{said}");
    }
}
