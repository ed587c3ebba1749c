//! Secrets on the ways through the program: a session that is learned from, and events of a host. No piece
//! of one may reach a file, the terminal or an answer.

use std::fs;
use std::path::{Path, PathBuf};

use regex_lite::Regex;
use serde_json::json;

use super::rates::{Case, cases, left};
use crate::support::files_below;
use crate::workspace::{Ran, Workspace};

/// How many cases go through the program in one run of it.
const TOGETHER: usize = 60;

/// Every text below a directory, with its path.
///
/// Checksums and random ids of the logs are left out: a piece of a secret of hexadecimal digits
/// stands in them by chance.
fn files(dir: &Path) -> Vec<(String, String)> {
    let checksum = Regex::new(r#""(?:hash|mac|seal|change|id)": ?"[0-9a-f-]{12,}""#).unwrap();
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).unwrap();
        let text = checksum
            .replace_all(&String::from_utf8_lossy(&bytes), "")
            .into_owned();
        (path.display().to_string(), text)
    };
    files_below(dir).into_iter().map(read).collect()
}

/// Some of the cases, spread over all kinds. What a cut has left is told by redaction alone.
fn chosen() -> Vec<Case> {
    let all = cases();
    let step = all.len() / (4 * TOGETHER);
    all.into_iter()
        .step_by(step.max(1))
        .filter(|case| !case.carrier.is_cut())
        .collect()
}

/// What is left of the secrets of these cases, and where. Nothing may be but what redaction leaves of
/// the whole text: that is counted elsewhere.
fn leaks(cases: &[Case], places: &[(String, String)]) -> Vec<String> {
    let mut leaks = Vec::new();
    for case in cases {
        let whole = memctl_redact::redact(&case.text).text;
        if left(&whole, &case.secrets, &case.open).is_some() {
            continue;
        }
        for (path, text) in places {
            if let Some(piece) = left(text, &case.secrets, &case.open) {
                leaks.push(format!(
                    "{} as {:?}: `{piece}` in {path}",
                    case.kind, case.carrier
                ));
            }
        }
    }
    leaks
}

/// A failing call that prints the case, and the call that worked.
fn steps(case: &Case, number: usize) -> String {
    // So long that readers and records cut it, at another place each time.
    let filler = "an ordinary line of output\n".repeat(number * 17 % 300);
    let printed = format!(
        "{filler}error: missing option --module m{number}\n{}\n{filler}",
        case.text
    );
    let noted = format!(
        "run{number} --fast --note '{} {}'",
        "x".repeat(number * 131 % 4000),
        case.text.replace('\'', r"'\''")
    );
    let code = format!("{noted} --module m{number}");
    let failing =
        json!({ "tool": "Bash", "input": { "command": noted }, "output": printed, "exit_code": 1 });
    let working = json!({ "tool": "Bash", "input": { "command": code }, "output": case.text, "exit_code": 0 });
    format!("{failing}\n{working}\n")
}

#[test]
fn no_piece_of_a_secret_is_learnt_from_a_session() {
    let cases = chosen();
    assert!(cases.len() >= TOGETHER, "{}", cases.len());
    for (round, cases) in cases.chunks(TOGETHER).enumerate() {
        let workspace = Workspace::sample();
        let mut text = format!(
            "{}\n",
            json!({ "session": format!("s{round}"), "cwd": "/w" })
        );
        for (number, case) in cases.iter().enumerate() {
            text += &steps(case, number);
        }
        workspace.write("session.jsonl", text);
        let learned = workspace.run(&["learn", "session.jsonl"]);
        let said = format!("{}{}", learned.succeeds().stdout, learned.stderr);
        let mut places = files(&workspace.root().join(".agentura"));
        let fixes = places
            .iter()
            .find(|(path, _)| path.ends_with("procedural_memory.local.json"));
        assert!(
            fixes.is_some_and(|(_, text)| text.contains("PROC-")),
            "{said}"
        );
        places.push(("output of learn".to_owned(), said));
        for args in [&["memory", "list", "procedures"][..], &["memory", "export"]] {
            let ran = workspace.run(args);
            places.push((args.join(" "), ran.stdout + &ran.stderr));
        }
        let leaks = leaks(cases, &places);
        assert!(leaks.is_empty(), "{leaks:#?}");
    }
}

#[test]
fn no_piece_of_a_secret_is_kept_of_an_event() {
    let cases = chosen();
    for (round, cases) in cases.chunks(TOGETHER / 4).enumerate().step_by(3) {
        let workspace = Workspace::sample();
        workspace.run(&["memory", "list", "procedures"]).succeeds();
        let mut places = Vec::new();
        for (number, case) in cases.iter().enumerate() {
            // Longer than what is kept of an output, so that the cut goes through the secret.
            let filler = "x ".repeat(8 * 1024 - case.text.len().min(4000) / 4);
            let error = format!(
                "Exit code 1\nerror: cannot find module 'm{number}'\n{filler}{}{}",
                case.text,
                " y".repeat(24 * 1024)
            );
            let event = json!({
                "session_id": format!("e{round}"), "hook_event_name": "PostToolUseFailure", "tool_name": "Bash",
                "cwd": workspace.root(), "tool_input": { "command": format!("run{number} <<'E'\n{}\nE", case.text) }, "error": error,
            });
            let path = workspace.root().join("event.json");
            fs::write(&path, event.to_string()).unwrap();
            let mut command = workspace.command();
            command
                .args(["hook", "claude-code"])
                .stdin(fs::File::open(&path).unwrap());
            let ran = Ran::of(command.output().unwrap());
            places.push((format!("answer to {number}"), ran.stdout + &ran.stderr));
        }
        places.extend(files(&workspace.root().join(".agentura")));
        let leaks = leaks(cases, &places);
        assert!(leaks.is_empty(), "{leaks:#?}");
    }
}
