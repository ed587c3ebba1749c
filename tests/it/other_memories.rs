//! Memories of other programs, which `tools/notes.py` turns into an export: a database made here with `SQLite`,
//! answers of mem0 in every form, and those of the real mem0.
//!
//! The latter is slow, and therefore ignored; `make test-clients` installs it and runs this. Missing
//! programs are reported as skipped.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::workspace::Workspace;

fn import(workspace: &Workspace, args: &[&str]) -> Value {
    let mut all = vec!["memory", "import"];
    all.extend(args);
    let report = workspace.json(&all);
    let number = |value: &Value| value.as_u64().unwrap();
    let skipped: u64 = report["skipped"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| number(&s["count"]))
        .sum();
    let known = number(&report["imported"]) + number(&report["duplicates"]);
    assert_eq!(number(&report["read"]), known + skipped, "{report}");
    report
}

/// Runs Python in the workspace; `false`, and said so, where there is none.
fn python(workspace: &Workspace, program: &Path, script: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command
        .arg("-c")
        .arg(script)
        .args(args)
        .current_dir(workspace.root())
        .env("HOME", workspace.home());
    match command.output() {
        Ok(output) => {
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            true
        }
        Err(error) => {
            println!("skipped: `{}`: {error}", program.display());
            false
        }
    }
}

/// A database in WAL mode whose program was killed: most of it lies in the log, some of it was never
/// committed.
const OBSERVATIONS: &str = r#"
import sqlite3, os
d = sqlite3.connect("claude-mem.db", isolation_level=None)
d.execute("pragma page_size=512"); d.execute("pragma journal_mode=wal"); d.execute("pragma wal_autocheckpoint=0")
d.execute("create table observations (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project TEXT, "
  "text TEXT, type TEXT NOT NULL CHECK(type IN ('a', 'b,')), title TEXT, facts TEXT, created_at TEXT)")
d.execute("alter table observations add column narrative TEXT default 'x'")
d.execute("create table user_prompts (id INTEGER PRIMARY KEY, prompt_text TEXT)")
for i in range(400):
    d.execute("insert into observations(memory_session_id, project, type, title, facts, created_at, narrative) values (?,?,?,?,?,?,?)",
      ("s", "shop", "a", f"Observation {i}", '["é日本"]', "2026-01-01T00:00:00Z", ("long %d " % i) * (2000 if i == 7 else 3)))
    if i == 100: d.execute("pragma wal_checkpoint(TRUNCATE)")
d.execute("delete from observations where id % 10 = 0")
d.execute("insert into observations(memory_session_id, type, narrative) values ('s', 'a', NULL)")
d.execute("insert into user_prompts(prompt_text) values ('hello')")
d.execute("begin"); d.execute("insert into observations(memory_session_id, type, title) values ('s', 'a', 'never committed')")
d.execute("update observations set title = 'never committed'")
for i in range(2000): d.execute("insert into user_prompts(prompt_text) values (?)", ("spilled " * 50,))
os.kill(os.getpid(), 0)
import shutil
shutil.copy("claude-mem.db", "copy.db"); shutil.copy("claude-mem.db-wal", "copy.db-wal")
"#;

/// Turns a file into an export.
const CONVERT: &str = "import subprocess, sys
tool, source = sys.argv[1:]
with open('notes.jsonl', 'w', encoding='utf-8') as out:
    subprocess.run([sys.executable, tool, source], stdout=out, check=True)
";
const TOOL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tools/notes.py");

/// Imports the notes of a file; `None`, and said so, without Python.
fn import_notes(workspace: &Workspace, file: &str) -> Option<Value> {
    python(workspace, Path::new("python3"), CONVERT, &[TOOL, file])
        .then(|| import(workspace, &["notes.jsonl"]))
}

#[test]
fn a_database_that_was_left_in_the_middle_of_a_write_is_turned_into_lines() {
    let workspace = Workspace::sample();
    if !python(&workspace, Path::new("python3"), OBSERVATIONS, &[]) {
        return;
    }
    let bytes = |name: &str| std::fs::read(workspace.root().join(name)).unwrap();
    let before = (bytes("copy.db"), bytes("copy.db-wal"));
    assert!(before.1.len() > 32, "nothing lies in the log");
    workspace
        .run(&["memory", "import", "copy.db"])
        .fails(2, "tools/notes.py");
    let report = import_notes(&workspace, "copy.db").unwrap();
    assert_eq!(report["imported"], 360, "{report}");
    assert_eq!((bytes("copy.db"), bytes("copy.db-wal")), before);
    assert!(!workspace.root().join("copy.db-shm").exists());
    let notes = workspace.stored("memories.json")["entries"].clone();
    let text = notes.to_string();
    assert!(!text.contains("never committed") && text.contains("é日本"));
    let mut all = notes.as_array().unwrap().iter();
    let long = all.find(|n| n["metadata"]["origin"]["id"] == "observation:8");
    let long = long.unwrap();
    assert_eq!(long["memory_type"], "task_memory");
    let words = long["content"].as_str().unwrap();
    assert!(words.contains(&"long 7 ".repeat(1_999)));
    let again = import(&workspace, &["notes.jsonl"]);
    assert_eq!(
        (&again["imported"], &again["duplicates"]),
        (&json!(0), &json!(360))
    );
}

#[test]
fn answers_of_mem0_are_turned_into_notes_in_every_form() {
    let workspace = Workspace::sample();
    let memory = |id: &str, text: &str, user: &str| {
        json!({"id": id, "memory": text, "hash": "h", "user_id": user, "score": 0.5,
        "created_at": "2026-01-01T00:00:00+00:00", "metadata": {"category": "drinks"}})
    };
    let [tea, trains, jam] = [
        memory("a", "Likes tea.", "alice"),
        memory("b", "Likes trains.", "bob"),
        memory("d", "Likes jam.", "alice"),
    ];
    let wrapped = json!({"results": [tea, trains, {"id": "c"}, 7], "relations": [{"a": 1}]});
    workspace.write("all.json", wrapped.to_string());
    let Some(report) = import_notes(&workspace, "all.json") else {
        return;
    };
    assert_eq!(report["imported"], 2, "{report}");
    let note = workspace.stored("memories.json")["entries"][0].clone();
    assert_eq!(
        (&note["user_id"], &note["metadata"]),
        (
            &json!("alice"),
            &json!({"hash": "h", "category": "drinks", "origin": {"source": "all.json", "id": "a"}})
        )
    );
    assert_eq!(note["trust"], "observed");
    let check = |file: &str, text: String, expected: [u64; 2]| {
        workspace.write(file, text);
        let report = import_notes(&workspace, file).unwrap();
        let counts = ["imported", "duplicates"].map(|name| report[name].as_u64().unwrap());
        assert_eq!(counts, expected, "{report}");
    };
    check("all.json", wrapped.to_string(), [0, 2]);
    check("list.json", json!([jam]).to_string(), [1, 0]);
}

/// Something that `make test-clients` has installed; `None`, and said so, where it has not.
fn client(name: &str) -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_BIN_EXE_memctl"))
        .ancestors()
        .nth(2)
        .unwrap();
    let path = target.join("clients").join(name);
    if path.exists() {
        return Some(path);
    }
    println!(
        "skipped: `{}` is not there; type `make test-clients`",
        path.display()
    );
    None
}

/// Uses mem0 with an embedder on loopback, and no model: `infer=False` stores what is said.
const MEM0: &str = r#"
import os, json, threading, http.server, hashlib, random
os.environ["MEM0_DIR"] = os.getcwd(); os.environ["MEM0_TELEMETRY"] = "False"
class EmbedderConfig(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def do_POST(self):
        given = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
        given = given if isinstance(given, list) else [given]
        def vector(text):
            r = random.Random(hashlib.sha256(str(text).encode()).digest()); return [r.uniform(-1, 1) for _ in range(1536)]
        data = json.dumps({"object": "list", "model": "x", "usage": {"prompt_tokens": 1, "total_tokens": 1},
            "data": [{"object": "embedding", "index": i, "embedding": vector(t)} for i, t in enumerate(given)]}).encode()
        self.send_response(200); self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data))); self.end_headers(); self.wfile.write(data)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), EmbedderConfig); threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_address[1]}/v1"
from mem0 import Memory
m = Memory.from_config({"history_db_path": "history.db",
  "vector_store": {"provider": "qdrant", "config": {"path": "qdrant", "on_disk": True, "embedding_model_dims": 1536}},
  "embedder": {"provider": "openai", "config": {"api_key": "x", "openai_base_url": url}},
  "llm": {"provider": "openai", "config": {"api_key": "x", "openai_base_url": url}}})
ids = []
for i in range(5):
    ids += [x["id"] for x in m.add(f"Alice prefers tea number {i} é", user_id="alice", infer=False, metadata={"n": i})["results"]]
m.add([{"role": "user", "content": "Bob likes trains"}, {"role": "assistant", "content": "Noted, Bob."}], user_id="bob", run_id="r", infer=False)
m.update(ids[0], data="Alice prefers coffee after all"); m.delete(ids[1])
json.dump(m.get_all(filters={"user_id": "alice"}, top_k=100), open("alice.json", "w"))
json.dump(m.get_all(filters={"user_id": "bob"}, top_k=100)["results"], open("bob.json", "w"), ensure_ascii=False)
"#;

#[test]
#[ignore = "needs the real mem0: make test-clients"]
fn export_of_mem0_is_imported_completely() {
    let Some(program) = client("mem0/bin/python") else {
        return;
    };
    let workspace = Workspace::sample();
    if !python(&workspace, &program, MEM0, &[]) {
        return;
    }
    for (file, count) in [("alice.json", 4), ("bob.json", 2)] {
        let report = import_notes(&workspace, file).unwrap();
        assert_eq!(report["imported"], count, "{file}");
        assert_eq!(report["skipped"], json!([]));
    }
    let text = workspace.read(".agentura/memories.json");
    assert!(
        text.contains("Alice prefers coffee after all") && !text.contains("tea number 0"),
        "{text}"
    );
}
