//! Sessions and their expected episodes.

use serde_json::{Value, json};

use super::*;

/// Steps of a host that flags errors.
fn flagged(calls: &[(&str, Value, &str, bool)]) -> Vec<Step> {
    let step = |(index, (tool, input, output, failed)): (usize, &(&str, Value, &str, bool))| Step {
        index,
        tool: (*tool).to_owned(),
        input: input.clone(),
        output: (*output).to_owned(),
        is_error: Some(*failed),
        answered: true,
        ..Step::default()
    };
    calls.iter().enumerate().map(step).collect()
}

/// Shell steps of a host that flags errors.
fn shell(calls: &[(&str, &str, bool)]) -> Vec<Step> {
    let calls: Vec<_> = calls
        .iter()
        .map(|(command, output, failed)| ("Bash", json!({ "command": command }), *output, *failed))
        .collect();
    flagged(&calls)
}

/// Steps without flags.
fn unflagged(mut steps: Vec<Step>) -> Vec<Step> {
    for step in &mut steps {
        step.is_error = None;
    }
    steps
}

/// `(fail, success, also)` of each episode.
fn pairs(steps: &[Step]) -> Vec<(usize, usize, Vec<usize>)> {
    pairs_with(steps, &[])
}

fn pairs_with(steps: &[Step], remarks: &[Remark]) -> Vec<(usize, usize, Vec<usize>)> {
    let found = analyse(steps, remarks).episodes;
    found
        .into_iter()
        .map(|e| (e.fail_step, e.success_step, e.also_fail_steps))
        .collect()
}

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({ "file_path": path, "old_string": old, "new_string": new })
}

#[test]
fn retries_belong_to_one_episode() {
    let steps = shell(&[
        (
            "npm run build && npm test",
            "Exit code 1\n[test] 2 failed",
            true,
        ),
        ("ls src", "a.ts", false),
        ("npm test", "Exit code 1\n[test] 1 failed", true),
        ("npm run lint", "ok", false),
        ("npm test -- --watch=false", "[test] ok", false),
        ("npm test", "[test] ok", false),
    ]);
    assert_eq!(pairs(&steps), [(0, 4, vec![2])]);
}

#[test]
fn an_agent_that_was_stuck_for_long_has_one_episode() {
    let mut calls: Vec<(String, &str, bool)> = Vec::new();
    for n in 0..400 {
        let flag = if n % 2 == 0 {
            "-q".to_owned()
        } else {
            format!("-j{n}")
        };
        calls.push((format!("make {flag} install"), "make: *** no rule", true));
    }
    calls.push(("make -q install".to_owned(), "installed", false));
    let calls: Vec<(&str, &str, bool)> = calls
        .iter()
        .map(|(command, output, failed)| (command.as_str(), *output, *failed))
        .collect();
    let found = pairs(&shell(&calls));
    assert_eq!(found, [(0, 400, (1..400).collect())]);
}

#[test]
fn the_same_line_inside_a_longer_one_is_the_same_goal() {
    let steps = shell(&[
        (
            "python3 tools/gen.py --all",
            "Exit code 1\nKeyError: 'a'",
            true,
        ),
        ("cd tools && git pull", "", false),
        (
            "cd /w && A=1 timeout 60 python tools/gen.py --all 2>&1 | tail -5; echo done",
            "ok",
            false,
        ),
    ]);
    assert_eq!(pairs(&steps), [(0, 2, vec![])]);
}

#[test]
fn a_script_is_the_same_however_it_is_started() {
    let steps = shell(&[
        (
            "./tools/gen.py build",
            "(eval):1: permission denied: ./tools/gen.py",
            true,
        ),
        ("python3 -u tools/gen.py build", "ok", false),
    ]);
    assert_eq!(pairs(&steps), [(0, 1, vec![])]);
}

#[test]
fn another_message_is_another_commit() {
    let mut calls = vec![(
        "git commit -m 'Add the tax to all totals'",
        "nothing to commit",
        true,
    )];
    calls.extend([("cargo fmt", "", false); 8]);
    calls.push((
        "git commit -m 'Read rows from a file'",
        "1 file changed",
        false,
    ));
    assert_eq!(pairs(&shell(&calls)), []);
    calls.push((
        "git commit -m 'Add the tax to all totals.'",
        "1 file changed",
        false,
    ));
    assert_eq!(pairs(&shell(&calls)), [(0, 10, vec![])]);
}

#[test]
fn a_success_at_something_else_is_none() {
    let steps = shell(&[
        (
            "git rebase main",
            "Exit code 1\nCONFLICT (content): a",
            true,
        ),
        ("git status", "clean", false),
        ("git add a", "", false),
        ("cargo test", "ok", false),
    ]);
    assert_eq!(pairs(&steps), []);
    let steps = shell(&[
        ("python a.py", "Exit code 1\nValueError: x", true),
        ("python b.py", "fine", false),
        ("cat b/x.toml", "fine", false),
    ]);
    assert_eq!(pairs(&steps), []);
}

#[test]
fn cancelled_refused_and_interrupted_calls_are_no_failures() {
    for output in [
        "<tool_use_error>Sibling tool call errored</tool_use_error>",
        "The user doesn't want to proceed with this tool use. The tool use was rejected.",
        "Tool permission request failed: Error: Stream closed",
        "Command running in background with ID: bash_1",
        "[Request interrupted by user for tool use]",
    ] {
        let steps = shell(&[("make", output, true), ("make", "ok", false)]);
        assert_eq!(analyse(&steps, &[]), Analysis::default(), "{output}");
    }
    let mut steps = shell(&[("make", "", true), ("make", "ok", false)]);
    steps[0].answered = false;
    assert_eq!(analyse(&steps, &[]), Analysis::default());
}

#[test]
fn a_failing_test_of_a_runner_of_scripts_is_no_answer() {
    for code in ["bun test a.test.ts", "deno test", "bun run check"] {
        let mut steps = shell(&[(code, "3 pass\n28 fail", true)]);
        steps[0].exit_code = Some(1);
        assert_eq!(analyse(&steps, &[]).failures, [0], "{code}");
    }
}

#[test]
fn an_empty_search_is_an_answer() {
    let steps = shell(&[
        ("grep -rn foo src", "Exit code 1", true),
        ("grep -rn foo src tests", "tests/a: foo", false),
        (
            "git config user.name; echo ---; git config user.email",
            "Exit code 1\n---",
            true,
        ),
        ("git config user.name", "x", false),
        ("which jq", "Exit code 1", true),
    ]);
    let mut steps = steps;
    for step in &mut steps {
        step.exit_code = step.is_error.filter(|failed| *failed).map(|_| 1);
    }
    assert_eq!(analyse(&steps, &[]), Analysis::default());
}

#[test]
fn failures_that_are_given_up_are_none() {
    let steps = shell(&[
        ("deploy.sh staging", "Exit code 1\nno rights", true),
        ("deploy.sh staging", "Exit code 1\nno rights", true),
        ("git log --oneline", "a", false),
    ]);
    let found = analyse(&steps, &[]);
    assert_eq!((found.failures, found.episodes.len()), (vec![0, 1], 0));
    let steps = unflagged(flagged(&[
        (
            "book",
            json!({"flight": "A1", "seat": 3}),
            "Error: total is 48, but paid 16",
            false,
        ),
        (
            "book",
            json!({"flight": "A1", "seat": 3}),
            "Error: total is 48, but paid 16",
            false,
        ),
        (
            "hand_over",
            json!({"why": "book flight A1 seat 3"}),
            "done",
            false,
        ),
    ]));
    assert_eq!(pairs(&steps), []);
}

#[test]
fn words_of_failure_in_good_output_are_none() {
    let steps = shell(&[
        (
            "grep -n error src/a.rs",
            "3: error: no such file or directory",
            false,
        ),
        (
            "cat log.txt | head",
            "Traceback (most recent call last)\nKeyError: 'x'",
            false,
        ),
        (
            "./tool frob; echo \"Exit code: $?\"",
            "Unknown command\nExit code: 1",
            false,
        ),
    ]);
    assert_eq!(analyse(&steps, &[]), Analysis::default());
    let found = analyse(&unflagged(steps[..2].to_vec()), &[]);
    assert_eq!(found, Analysis::default());
}

#[test]
fn a_code_that_a_pipe_hides_is_read_from_the_text() {
    let steps = shell(&[
        (
            "cargo test 2>&1 | tail -3",
            "test result: FAILED. 1 passed; 1 failed",
            false,
        ),
        (
            "cargo test 2>&1 | tail -3",
            "test result: ok. 2 passed; 0 failed",
            false,
        ),
    ]);
    assert_eq!(pairs(&steps), [(0, 1, vec![])]);
}

#[test]
fn without_flags_the_form_of_the_text_decides() {
    let steps = unflagged(shell(&[
        (
            "python repro.py",
            "Traceback (most recent call last):\n  File\nTypeError: x",
            false,
        ),
        (
            "edit 3:3\n    return f(x) + 1\nend_of_edit",
            "Your proposed edit has introduced new syntax error(s).",
            false,
        ),
        (
            "edit 3:3\n    return f(x) - 1\nend_of_edit",
            "[File: a.py (9 lines total)]",
            false,
        ),
        ("python repro.py", "344", false),
        ("cat a.py", "raise ValueError('error: failed')", false),
        ("submit", "", false),
        (
            "ship deploy --prod",
            "Ship 48.2\nRetrieving the project\nError: The path “web/web” does not exist.",
            false,
        ),
        // A log may end with the error of what it tells of.
        ("ship logs app", "started\nError: no route", false),
        (
            "cd .. && ship deploy --prod",
            "Ship 48.2\nhttps://shop.example",
            false,
        ),
    ]));
    assert_eq!(
        pairs(&steps),
        [(0, 3, vec![]), (1, 2, vec![]), (6, 8, vec![])]
    );
}

#[test]
fn edits_are_for_their_file_and_their_text() {
    let steps = flagged(&[
        (
            "Edit",
            edit(
                "/w/a.rs",
                "let total = sum(rows);",
                "let total = sum(&rows);",
            ),
            "String to replace not found",
            true,
        ),
        ("Edit", edit("/w/b.rs", "x", "y"), "ok", false),
        (
            "Edit",
            edit("/w/a.rs", "use std::io;", "use std::fs;"),
            "ok",
            false,
        ),
        (
            "Edit",
            edit(
                "/w/a.rs",
                "let total: u8 = sum(rows);",
                "let total: u8 = sum(&rows);",
            ),
            "ok",
            false,
        ),
    ]);
    assert_eq!(pairs(&steps), [(0, 3, vec![])]);
}

#[test]
fn a_guessed_name_is_found_by_searching() {
    let read = |path: &str| json!({ "file_path": path });
    let missing = "File does not exist.";
    let steps = flagged(&[
        ("Read", read("/w/net/client.go"), missing, true),
        ("Glob", json!({"pattern": "net/*.go"}), "net/http.go", false),
        ("Read", read("/w/net/http.go"), "package net", false),
    ]);
    assert_eq!(pairs(&steps), [(0, 2, vec![])]);
    // Without a search it is a different file.
    let unsearched = [
        steps[0].clone(),
        Step {
            index: 1,
            ..steps[2].clone()
        },
    ];
    assert_eq!(pairs(&unsearched), []);
}

#[test]
fn tools_are_for_their_arguments() {
    let steps = unflagged(flagged(&[
        (
            "update",
            json!({"order": "W1", "pay": "card"}),
            "Error: not allowed",
            false,
        ),
        (
            "update",
            json!({"order": "W1", "pay": "gift"}),
            "{\"status\": \"done\"}",
            false,
        ),
        (
            "update",
            json!({"order": "W8", "pay": "card"}),
            "{\"error\": \"closed\"}",
            false,
        ),
        ("cancel", json!({"order": "W8"}), "done", false),
    ]));
    assert_eq!(pairs(&steps), [(0, 1, vec![])]);
}

#[test]
fn subagents_do_not_overcome_what_the_agent_failed_at() {
    let mut steps = shell(&[
        ("make x", "Error: a", true),
        ("make x", "ok", false),
        ("make x", "ok", false),
    ]);
    steps[1].side = true;
    assert_eq!(pairs(&steps), [(0, 2, vec![])]);
}

#[test]
fn a_call_whose_input_is_unknown_is_no_part_of_an_episode() {
    let edited = edit("/w/a.rs", "x", "y");
    let check = |first: Value, then: Value, expected: usize| {
        let steps = flagged(&[
            (
                "Edit",
                first,
                "<tool_use_error>not found</tool_use_error>",
                true,
            ),
            ("Edit", then, "The file has been updated.", false),
        ]);
        let found = analyse(&steps, &[]);
        assert_eq!(found.failures, [0]);
        assert_eq!(found.episodes.len(), expected);
    };
    check(Value::Null, Value::Null, 0);
    check(edited.clone(), Value::Null, 0);
    check(Value::Null, edited, 0);
}

#[test]
fn refused_call_is_no_success() {
    for refused in [
        "User denied execution.",
        "The user declined to run this command",
        "[Operation Cancelled] Reason: denied by the user",
        "Rejected by user",
    ] {
        let calls = [
            ("make all", "make: *** boom", true),
            ("make all", refused, false),
        ];
        assert_eq!(pairs(&unflagged(shell(&calls))), [], "{refused}");
        assert_eq!(
            pairs(&shell(&calls)).len(),
            usize::from(refused.starts_with('['))
        );
    }
    // A database speaks of its users too.
    let calls = [
        (
            "psql app",
            "psql: FATAL: access denied for user \"app\"",
            true,
        ),
        ("psql app", "3 rows", false),
    ];
    assert_eq!(pairs(&shell(&calls)).len(), 1);
}
