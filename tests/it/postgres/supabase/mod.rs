//! The source documents' edge functions and supabase-js on a prepared database, through a server that speaks
//! `PostgREST`'s protocol: Deno and supabase-js from npm, Postrust from crates.io.
//!
//! `project.ts` stands for the rest of a Supabase project, and asks it as an application does. Heavy;
//! `make test-supabase` installs the programs and runs this. Where one is not there, the test says that it
//! was skipped.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use super::clients::supabase;
use super::{ANN, BEN, Store};
use crate::serve::clients::installed;
use crate::serve::{Served, token};
use crate::support::{EVER, free_port};

const SECRET: &str = "a secret that signs the tokens of this project";
const FILES: [(&str, &str); 4] = [
    ("agent-memory-read.ts", include_str!("agent-memory-read.ts")),
    (
        "agent-memory-write.ts",
        include_str!("agent-memory-write.ts"),
    ),
    ("server.ts", include_str!("server.ts")),
    ("project.ts", include_str!("project.ts")),
];
/// Where the edge functions' imports are found.
const IMPORTS: &str = r#"{"nodeModulesDir": "manual", "imports": {
    "https://deno.land/std@0.168.0/http/server.ts": "./server.ts",
    "https://esm.sh/@supabase/supabase-js@2": "npm:@supabase/supabase-js",
    "@supabase/supabase-js": "npm:@supabase/supabase-js"}}"#;

/// Postrust on the database of a store.
struct Rest {
    child: Child,
    url: String,
}

impl Rest {
    fn start(program: &Path, store: &Store) -> Self {
        let port = free_port();
        let child = Command::new(program)
            .env_clear()
            .env("DATABASE_URL", store.database.url_of("authenticator"))
            .envs([
                ("PGRST_DB_SCHEMAS", "public"),
                ("PGRST_DB_ANON_ROLE", "anon"),
                ("PGRST_JWT_SECRET", SECRET),
                ("PGRST_SERVER_HOST", "127.0.0.1"),
                ("PGRST_LOG_LEVEL", "error"),
                ("PGRST_COMPAT_MODE", "true"),
            ])
            .env("PGRST_SERVER_PORT", port.to_string())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < EVER, "Postrust does not listen");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        Self {
            child,
            url: format!("http://127.0.0.1:{port}"),
        }
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The contents of an answer's rows.
fn contents(answer: &Value) -> Vec<&str> {
    let rows = answer["data"].as_array();
    let rows = rows.unwrap_or_else(|| panic!("{answer}"));
    rows.iter()
        .map(|row| row["content"].as_str().unwrap())
        .collect()
}

#[test]
#[ignore = "needs Deno and supabase-js from npm, and Postrust from crates.io: make test-supabase"]
fn source_documents_edge_functions_and_supabase_js_read_write_and_search() {
    let programs = [
        "supabase/node_modules/.bin/deno",
        "supabase/bin/postrust",
        "supabase/node_modules/@supabase/supabase-js",
    ];
    let [Some(deno), Some(rest), Some(_)] = programs.map(installed) else {
        return;
    };
    let Some(store) = supabase() else { return };
    let laptop = store.laptop(ANN);
    let plans = "Acme has cheaper plans than we do";
    laptop.json(&[
        "memory", "add", "--type", "competitive_memory", "--content", plans,
    ]);
    laptop.json(&["sync"]);
    let rest = Rest::start(&rest, &store);
    let served = Served::start(&laptop, &[]);

    // Beside what is installed, so that the imports find it.
    let base = deno.ancestors().nth(3).unwrap();
    for (name, text) in FILES.into_iter().chain([("deno.json", IMPORTS)]) {
        std::fs::write(base.join(name), text).unwrap();
    }
    let set_up = json!({"postgrest": rest.url, "embeddings": format!("{}/v1/embeddings", served.url),
        "embeddingsKey": token(&laptop, "embedder", "*"), "secret": SECRET, "ann": ANN, "ben": BEN});
    let ran = Command::new(&deno)
        .current_dir(base)
        .args([
            "run", "--quiet", "--no-check", "--no-lock", "--allow-all", "project.ts",
        ])
        .arg(set_up.to_string())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}{errors}");
    let out: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    memories_are_those_of_the_token(&out);
    procedures_are_stored_and_found(&out);

    // What they wrote comes to the laptop.
    assert_eq!(laptop.json(&["sync"])["pulled"], 4);
    let found = laptop.json(&["search", "adding a new column"]);
    let steps = json!(["Name the data type of the column"]);
    let results = found["results"].as_array().unwrap();
    // The memories have nothing to do with the question, and are marked so.
    let (weak, procedures): (Vec<_>, Vec<_>) = results.iter().partition(|one| one["weak"] == true);
    for result in &procedures {
        assert_eq!(result["origin"], "postgres:public", "{found}");
        assert_eq!(result["steps"], steps, "{found}");
        assert_eq!(result["trust"], "observed", "{found}");
    }
    assert_eq!((procedures.len(), weak.len()), (2, 2), "{found}");
}

fn memories_are_those_of_the_token(out: &Value) {
    let voice = "Voice: calm and friendly, never salesy";
    let written = &out["written"]["data"]["memory"];
    assert_eq!(
        (&written["content"], &written["user_id"]),
        (&json!(voice), &json!(ANN)),
        "{out}"
    );
    let read = |name: &str| &out[name]["data"]["results"];
    assert_eq!(read("read")[0]["id"], written["id"], "{out}");
    // The question and the voice have a similarity between the two thresholds.
    for name in ["readAtDefault", "readByAnother"] {
        assert_eq!(read(name), &json!([]), "{name}: {out}");
    }
    assert_eq!(out["readByNobody"]["status"], 401, "{out}");
    let bad = &out["badType"];
    assert_eq!(bad["status"], 500, "{out}");
    assert!(bad["body"].to_string().contains("memory_type"), "{out}");
    assert_eq!(out["broadcasts"][0]["payload"]["user_id"], ANN, "{out}");

    let (plans, format) = (
        "Acme has cheaper plans than we do",
        "Preferred video format: portrait 9:16",
    );
    assert_eq!(contents(&out["selected"]), [plans, voice, format]);
    assert_eq!(contents(&out["synced"])[0], plans, "{out}");
    assert_eq!(out["changed"]["data"]["content"], "Format: square", "{out}");
    for name in ["forAnother", "selectedByNobody"] {
        assert_eq!(out[name]["error"]["code"], "42501", "{name}: {out}");
    }
    for name in ["selectedByAnother", "takenAway", "matchedByAnother"] {
        assert_eq!(contents(&out[name]), [""; 0], "{name}");
    }
}

fn procedures_are_stored_and_found(out: &Value) {
    let lesson = &out["learned"]["data"];
    assert_eq!(lesson["metadata"]["status"], "procedure_learned", "{out}");
    // The failure analyst names no content; the database makes it of the eight fields.
    let analysed = &out["analysed"]["data"];
    let expected =
        "Add a column to a table\nHow to add a column to a table\nName the data type of the column";
    assert_eq!(analysed["content"], expected, "{out}");
    let found = &out["hybrid"]["data"];
    assert_eq!(found[0]["id"], lesson["id"], "{out}");
    assert_eq!(found[0]["semantic_rank"], 1, "{out}");
    assert_eq!(found[1]["id"], analysed["id"], "{out}");
    assert_eq!(found[1]["semantic_rank"], Value::Null, "{out}");
    assert_eq!(out["hybridByAnother"]["data"], json!([]), "{out}");
    let by_service = &out["hybridByService"]["data"];
    assert_eq!(by_service["content"], found[0]["content"], "{out}");
}
