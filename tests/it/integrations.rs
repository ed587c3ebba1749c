//! The examples of `docs/integrations/`, run against the real server.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::serve::{Served, token};
use crate::workspace::{Ran, Workspace};

/// Runs an example against a server, with a token for all of it.
fn run(workspace: &Workspace, served: &Served, command: &mut Command) -> Ran {
    command
        .env("MEMCTL_URL", &served.url)
        .env("MEMCTL_TOKEN", token(workspace, "ann", "*"))
        .stdin(Stdio::null());
    Ran::of(command.output().unwrap())
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("docs/integrations")
        .join(name)
}

#[test]
fn the_python_example_learns_a_fix_and_shows_it_to_the_next_session() {
    if !Command::new("python3")
        .arg("--version")
        .output()
        .is_ok_and(|out| out.status.success())
    {
        println!("skipped: there is no `python3`");
        return;
    }
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let served = Served::start(&workspace, &[]);
    let script = example("procedural_memory.py");
    let ran = run(&workspace, &served, Command::new("python3").arg(&script));
    assert_eq!(ran.code, 0, "{ran:?}");
    let expected = "learned: PROC-001\nCODE HINTS (learned from prior errors -- use these patterns):\n\n  \
        ERROR: TypeError: string indices must be integers\n  WRONG:\n    print(drugs[\"mechanism\"])\n  \
        CORRECT:\n    for row in await drugs.search(\"kinase\"): print(row[\"mechanism\"])\n";
    assert!(ran.stdout.starts_with(expected), "{ran:?}");
    assert_eq!(
        workspace.stored("procedural_memory.json")["entries"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    // The same error of other code, and the same class with another name.
    let other = r#"
import sys
sys.path.insert(0, sys.argv[1])
from procedural_memory import ProceduralMemory
memory = ProceduralMemory(session="third")
memory.record_failure('print(rows[0]["moa"])', "KeyError: 'moa'")
memory.record_success('print(rows[0]["mechanism"])', "inhibitor")
for code, error in [("open('a.csv')", "FileNotFoundError: [Errno 2] No such file or directory: 'a.csv'"),
                    ('for r in rows: print(r["moa"])', "KeyError: 'moa'"), ("df.aggregate(by='target')", "KeyError: 'target'")]:
    # A session of its own, as each object has one.
    memory = ProceduralMemory()
    memory.record_failure(code, error)
    print([hint.working_code for hint in memory.select_hints()])
memory.save(sys.argv[2])
restored = ProceduralMemory.restore(sys.argv[2])
print(restored.session == memory.session and restored.render_pitfalls() == memory.render_pitfalls() != "")
"#;
    let mut command = Command::new("python3");
    command.args(["-c", other]).arg(script.parent().unwrap());
    command.arg(workspace.root().join("session.json"));
    let ran = run(&workspace, &served, &mut command);
    let fix = "['print(rows[0][\"mechanism\"])']\n";
    assert_eq!(ran.stdout, format!("[]\n{fix}{fix}True\n"), "{ran:?}");
    // Without permission, and without a server, it continues.
    for (url, token, said) in [
        (served.url.as_str(), "none", "401"),
        ("http://127.0.0.1:9", "none", "refused"),
    ] {
        let mut command = Command::new("python3");
        command
            .arg(&script)
            .env("MEMCTL_URL", url)
            .env("MEMCTL_TOKEN", token);
        let ran = Ran::of(command.output().unwrap());
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.stdout.contains(said), "{ran:?}");
    }
}

/// What the source document does with a store, and what it refuses.
const STORE: &str = r#"
import json, sys
sys.path.insert(0, sys.argv[1])
from memory_store import get_scoped_store

program, root = sys.argv[2:]
store = get_scoped_store(root=root, program=program)
out = {}
run = store.log_execution("hr/resume-screen", {"input_summary": {"candidate": "Jane"}, "output_summary": {"score": 72}, "outcome": "accepted", "cost_usd": 0.0093})
out["run"] = run
fix = store.add_correction("hr/resume-screen", {"execution_id": run, "user_correction": "Weigh system design separately."})
rule = store.add_reflexion("hr/resume-screen", {"correction_id": fix, "rule": "Check for system design experience.", "confidence": 0.96})
out["ids"] = [fix, rule, store.add_reflexion("hr/resume-screen", {"rule": "Name the licence of a nurse."})]
other = store.log_execution("finance/expense-analyzer", {"outcome": "rejected"})
store.add_reflexion("finance/expense-analyzer", {"rule": "Ask for the receipt."})
store.update_reflexion(rule, {"confidence": 0.5, "rule": "Check for system design experience first.",
    "validated_by_test": True, "generated_test_ids": ["test_correction_1"]})
out["rules"] = [[r["reflexion_id"], r["rule"], r["confidence"], r["validated_by_test"]] for r in store.get_reflexions("hr/resume-screen")]
out["all"] = len(store.get_all_reflexions())
out["executions"] = [[e["execution_id"], e["skill"], e["cost_usd"]] for e in store.get_executions("hr/resume-screen")]
out["corrections"] = [c["user_correction"] for c in store.get_corrections()]
out["similar"] = [hit["rule"] for hit in store.search_similar("hr/resume-screen", "system design experience", limit=2)]
hr = get_scoped_store(allowed_domains={"hr"}, root=root, program=program)
out["scoped"] = [len(hr.get_executions()), len(hr.get_all_reflexions()), len(hr.get_corrections())]
def refused(call):
    try:
        call()
    except PermissionError:
        return True
    return False
out["refused"] = [
    refused(lambda: hr.add_reflexion("finance/expense-analyzer", {"rule": "x"})),
    refused(lambda: hr.log_execution("finance/expense-analyzer", {})),
    refused(lambda: hr.add_reflexion("hr/resume-screen", {"rule": "x", "skill": "finance/expense-analyzer"})),
    refused(lambda: hr.add_correction("hr/resume-screen", {"skill": "finance"})),
    refused(lambda: hr.update_reflexion("REFL-003", {"confidence": 0.1})),
    refused(lambda: hr.update_reflexion("REFL-001", {"skill": "finance/expense-analyzer"})),
]
out["elsewhere"] = hr.search_similar("finance/expense-analyzer", "receipt") + hr.get_executions("finance/expense-analyzer")
hr.update_reflexion("REFL-002", {"confidence": 0.7})
everything = get_scoped_store(allowed_domains={"*"}, root=root, program=program)
out["unrestricted"] = len(everything.get_executions())
print(json.dumps(out))
"#;

#[test]
fn the_python_store_has_the_nine_methods_and_keeps_domains_apart() {
    let python = Command::new("python3").arg("--version").output();
    if !python.is_ok_and(|out| out.status.success()) {
        println!("skipped: there is no `python3`");
        return;
    }
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    let script = workspace.write("store.py", STORE);
    let examples = example("memory_store.py");
    let mut command = Command::new("python3");
    command
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("HOME", workspace.home())
        .arg(&script)
        .arg(examples.parent().unwrap())
        .arg(env!("CARGO_BIN_EXE_memctl"))
        .arg(workspace.root());
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    let out: Value = serde_json::from_str(&ran.stdout).unwrap();
    let run = out["run"].as_str().unwrap();
    assert!(run.starts_with("EXEC-"), "{out}");
    assert_eq!(
        out["ids"],
        json!(["CORR-001", "REFL-001", "REFL-002"]),
        "{out}"
    );
    assert_eq!(
        out["rules"],
        json!([
            [
                "REFL-001",
                "Check for system design experience first.",
                0.5,
                true
            ],
            ["REFL-002", "Name the licence of a nurse.", 0.8, false]
        ])
    );
    assert_eq!(out["all"], 3);
    assert_eq!(
        out["executions"],
        json!([[run, "hr/resume-screen", 0.0093]])
    );
    assert_eq!(
        out["corrections"],
        json!(["Weigh system design separately."])
    );
    assert_eq!(
        out["similar"][0], "Check for system design experience first.",
        "{out}"
    );
    assert_eq!(
        out["elsewhere"],
        json!([]),
        "reads leave out what is elsewhere"
    );
    assert_eq!(
        (&out["scoped"], &out["refused"]),
        (&json!([1, 2, 1]), &json!(vec![true; 6]))
    );
    assert_eq!(out["unrestricted"], 2);
    // The program refuses what a changed class would let through.
    let scope = ["edit", "REFL-003", "--set", "rule=x", "--scope", "hr"];
    assert_ne!(workspace.run(&scope).code, 0);
    // The rules are in the prompt, as those of every other way in.
    let prompt = workspace.run(&["memory", "prompt", "hr/resume-screen"]);
    assert!(
        prompt
            .stdout
            .contains("Check for system design experience first."),
        "{prompt:?}"
    );
}

/// Runs the hook with its imports resolved as in an application.
const APPLICATION: &str = r"
import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';

const [examples, clients] = process.argv.slice(2);
registerHooks({
  resolve(specifier, context, next) {
    if (specifier === '@/integrations/supabase/client')
      return next(pathToFileURL(`${examples}/client.ts`).href, context);
    if (specifier.startsWith('@supabase/'))
      return next(specifier, { ...context, parentURL: pathToFileURL(`${clients}/x.mjs`).href });
    return next(specifier, context);
  },
});
const { useAgentMemory } = await import(pathToFileURL(`${examples}/useAgentMemory.ts`).href);
const { readMemory, writeMemory } = useAgentMemory();
const written = await writeMemory('Voice: calm and friendly', 'brand_memory', { tone: ['calm'] });
const read = await readMemory('calm and friendly voice', 'brand_memory');
const refused = await writeMemory('x', 'nonsense').catch((error) => error.name);
console.log(JSON.stringify({ written, read, refused }));
";

#[test]
#[ignore = "needs supabase-js and Node.js 22 from npm: make test-clients"]
fn clients_the_hook_writes_and_reads_through_supabase_js() {
    let target = Path::new(env!("CARGO_BIN_EXE_memctl"))
        .ancestors()
        .nth(2)
        .unwrap();
    let clients = target.join("clients");
    let node = ["x64", "arm64"]
        .map(|arch| clients.join(format!("mcp/node_modules/node-linux-{arch}/bin/node")))
        .into_iter()
        .find(|node| node.is_file());
    let library = clients.join("node_modules/@supabase/supabase-js");
    let (Some(node), true) = (node, library.is_dir()) else {
        println!(
            "skipped: no supabase-js or no Node.js 22 in `{}`; type `make test-clients`",
            clients.display()
        );
        return;
    };
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let served = Served::start(&workspace, &[]);
    let script = workspace.write("application.mjs", APPLICATION);
    let mut command = Command::new(node);
    command.arg(script).arg(example("")).arg(&clients);
    let ran = run(&workspace, &served, &mut command);
    assert_eq!(ran.code, 0, "{ran:?}");
    let said = ran.document();
    assert_eq!(
        said["written"]["content"], "Voice: calm and friendly",
        "{said}"
    );
    assert_eq!(
        said["read"][0]["content"], "Voice: calm and friendly",
        "{said}"
    );
    assert_eq!(said["refused"], "FunctionsHttpError");
    let memory = &workspace.stored("memories.json")["entries"][0];
    assert_eq!(
        (&memory["user_id"], &memory["metadata"]),
        (&json!("ann"), &json!({"tone": ["calm"]}))
    );
}
