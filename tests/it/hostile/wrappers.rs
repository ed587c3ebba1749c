//! A refused command behind wrappers, quotes and words of the shell.

use std::fs;

use serde_json::{Value, json};

use super::tally::Tally;
use crate::hosts::hook;
use crate::workspace::Workspace;

/// Lines that run `npm ci`, and must be refused.
const SEEN: &[&str] = &[
    "npm ci",
    "cd x && npm ci",
    "true; npm ci | tee log",
    "false || npm ci &",
    "FOO=1 BAR='a b' npm ci > log 2>&1",
    "sudo npm ci",
    "sudo -u deploy npm ci",
    "sudo -E -u deploy -- npm ci",
    "sudo --user=deploy npm ci",
    "doas -u www npm ci",
    "setsid npm ci",
    "setsid -f npm ci",
    "nice npm ci",
    "nice -n 10 npm ci",
    "nice -10 npm ci",
    "ionice -c 3 npm ci",
    "timeout 60 npm ci",
    "timeout -k 3 60 npm ci",
    "timeout --signal=KILL 60 npm ci",
    "env npm ci",
    "env -i -u X A=1 npm ci",
    "nohup npm ci &",
    "stdbuf -oL npm ci",
    "time -p npm ci",
    "exec npm ci",
    "command npm ci",
    "coproc npm ci",
    "`npm ci`",
    "$(npm ci)",
    "echo \"$(npm ci)\"",
    "diff <(npm ci) x",
    "(npm ci)",
    "{ npm ci; }",
    "! npm ci",
    "if true; then npm ci; fi",
    "while npm ci; do sleep 1; done",
    "for a in b; do npm ci; done",
    "find . -name x -exec npm ci \\;",
    "find . -execdir npm ci {} +",
    "echo x | xargs npm ci",
    "echo x | xargs -n 1 -I {} npm ci",
    "ssh host npm ci",
    "ssh -t -p 22 me@host 'cd x && npm ci'",
    "bash -c 'npm ci'",
    "sh -ec 'npm ci'",
    "bash -lc \"cd x; npm ci\"",
    "bash <<'EOF'\nnpm ci\nEOF",
    "eval 'npm ci'",
    "su - deploy -c 'npm ci'",
    "watch -n 5 npm ci",
    "/usr/bin/npm ci",
    "\"npm\" ci",
    "n\\pm ci",
    "'n'pm ci",
    "npm \\\n  ci",
    "sudo nice -n 5 timeout 9 env A=1 bash -c 'nohup npm ci'",
];

/// Lines that run it, and are not seen: docs/checks.md prints the list.
const UNSEEN: &[&str] = &[
    "$NPM ci",
    "alias n=npm; n ci",
    "echo 'npm ci' | sh",
    "python -c 'import os; os.system(\"npm ci\")'",
    "make install",
    "npx npm ci",
    "docker exec web npm ci",
];

/// Lines that only speak of it.
const OTHER: &[&str] = &[
    "echo npm ci",
    "git commit -m 'npm ci'",
    "grep -rn 'npm ci' docs",
    "pnpm ci",
    "cat npm",
    "# npm ci",
    "printf '%s' 'npm ci' > note",
];

fn decision(workspace: &Workspace, command: &str) -> Value {
    let event = json!({"session_id": "a", "cwd": workspace.root(), "hook_event_name": "PreToolUse",
        "transcript_path": "/nowhere.jsonl", "tool_name": "Bash",
        "tool_input": {"command": command}});
    let ran = hook(workspace, "claude-code", event.to_string());
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
    answer["hookSpecificOutput"]["permissionDecision"].clone()
}

#[test]
fn refused_command_is_seen_behind_what_surrounds_it() {
    let workspace = super::late_events::refusing();
    let mut tally = Tally::of("A refused command behind wrappers and quotes");
    for line in SEEN {
        tally.attempt(line, decision(&workspace, line) != "deny");
    }
    for line in OTHER {
        tally.attempt(line, decision(&workspace, line) != Value::Null);
    }
    tally.holds();
    // What is not seen is said.
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/checks.md");
    let page = fs::read_to_string(page).unwrap();
    for line in UNSEEN {
        assert_eq!(
            decision(&workspace, line),
            Value::Null,
            "{line} is seen: say so"
        );
        assert!(
            page.contains(&format!("`{line}`")),
            "docs/checks.md does not say {line}"
        );
    }
}
