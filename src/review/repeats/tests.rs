use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::model::Scope;

const PROJECT: &str = "/home/u/shop";

/// Session file of Claude Code: calls with their output, and what the person said before them.
#[derive(Default)]
struct Written {
    lines: Vec<Value>,
    number: usize,
}

impl Written {
    fn entry(&mut self, session: &str, by: &str, content: &Value) {
        self.lines
            .push(json!({"type": by, "cwd": PROJECT, "sessionId": session,
            "timestamp": "2026-11-20T10:00:00.000Z", "message": {"role": by, "content": content}}));
    }

    fn call(&mut self, session: &str, tool: &str, input: &Value, output: &str, failed: bool) {
        self.number += 1;
        let id = format!("toolu_{session}_{:012}", self.number);
        let uses = json!([{"type": "tool_use", "id": id, "name": tool, "input": input}]);
        self.entry(session, "assistant", &uses);
        let result = json!([{"type": "tool_result", "tool_use_id": id, "content": output, "is_error": failed}]);
        self.entry(session, "user", &result);
    }

    fn bash(&mut self, session: &str, command: &str, output: &str, failed: bool) {
        self.call(
            session,
            "Bash",
            &json!({ "command": command }),
            output,
            failed,
        );
    }

    fn text(&self) -> String {
        let lines = self.lines.iter().map(|line| format!("{line}\n"));
        lines.collect()
    }
}

fn session(name: &str) -> Written {
    let mut all = Written::default();
    all.entry(
        name,
        "user",
        &json!("We use pnpm in this repository, never npm install."),
    );
    all.bash(name, "rtk bun run test", "rtk: unknown command bun", true);
    all.bash(name, "bun run test", "12 passed", false);
    // Work on the project: an edit follows.
    all.bash(
        name,
        "cargo test",
        "error: test failed, to rerun pass `--lib`",
        true,
    );
    let edit = json!({"file_path": "/home/u/shop/a.rs", "old_string": "a", "new_string": "b"});
    all.call(name, "Edit", &edit, "done", false);
    all.bash(name, "cargo test", "ok", false);
    // A search, and something that happens once.
    all.bash(name, "ls gone", "ls: gone: No such file or directory", true);
    all.bash(
        name,
        &format!("deploy {name}"),
        &format!("deploy: no target {name}"),
        true,
    );
    all
}

fn found(files: &[(&str, String)], project: &str) -> Repeats {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let store = Scoped::new(dir.path().join(".agentura"), Scope::All);
    let past = PastSessions {
        paths: vec![dir.path().to_owned()],
        project: project.to_owned(),
        now: "2026-11-26T00:00:00Z".parse().unwrap(),
        limit: std::time::Duration::from_mins(1),
    };
    let here = Here {
        directory: Some(Path::new(PROJECT)),
        ..Here::default()
    };
    repeats(&store, &here, &past).unwrap()
}

#[test]
fn page_lists_only_repeats_of_two_sessions() {
    let files = [
        ("a.jsonl", session("a").text()),
        ("b.jsonl", session("b").text()),
    ];
    let found = found(&files, PROJECT);
    assert_eq!((found.sessions, found.calls, found.failures), (2, 14, 8));
    let shown: Vec<_> = found
        .repeats
        .iter()
        .map(|one| {
            (
                one.kind,
                one.times,
                one.sessions,
                one.calls,
                one.what.as_str(),
            )
        })
        .collect();
    let message = "We use pnpm in this repository, never npm install.";
    assert_eq!(
        shown,
        [
            (RepeatKind::Failure, 2, 2, 2, "rtk bun run test"),
            (RepeatKind::Correction, 2, 2, 0, message),
        ]
    );
    assert_eq!(found.repeats[0].error, "rtk: unknown command bun");
    assert_eq!(found.repeats[0].worked, "bun run test");
    assert!(found.repeats[0].tokens > 0);
}

#[test]
fn a_resumed_session_and_another_project_count_for_nothing() {
    let first = session("a").text();
    let resumed = first.clone() + &session("a").text();
    let files = [("a.jsonl", first), ("b.jsonl", resumed)];
    assert_eq!(found(&files, PROJECT).repeats.len(), 0);
    let files = [
        ("a.jsonl", session("a").text()),
        ("b.jsonl", session("b").text()),
    ];
    let elsewhere = found(&files, "/home/u/other");
    assert_eq!((elsewhere.sessions, elsewhere.repeats.len()), (0, 0));
}
