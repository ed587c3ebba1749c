//! Files that grow: twice the bytes cost about twice the work, whatever stands in them.
//!
//! Processor time is compared at one size and at four times that. Work that grows with the square of the
//! size takes sixteen times as long; what is asked for is less than nine.

use std::fmt::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::wait::wait;
use crate::workspace::Workspace;

/// The text of a file of so many parts.
type Content<'a> = dyn Fn(usize) -> String + 'a;

/// Less than this is the start of the program, and noise.
const LEAST: f64 = 0.25;
const MOST: f64 = 9.0;

/// Processor seconds of a command, and the most memory that it had, in KiB.
fn cost(workspace: &Workspace, args: &[&str]) -> (f64, u64) {
    let mut command = workspace.command();
    command
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let used = wait(command.spawn().unwrap());
    assert!(
        used.status.code().is_some_and(|code| code <= 3),
        "{args:?}: {:?}",
        used.status
    );
    (used.cpu.as_secs_f64(), used.memory / 1024)
}

/// Compares the cost of a command over a file of `n` parts and over one of `4 n`.
fn check(name: &str, args: &[&str], n: usize, file: &str, content: &Content<'_>) {
    let cost_of = |n: usize| {
        let workspace = Workspace::sample();
        std::fs::create_dir_all(workspace.memory("")).unwrap();
        workspace.write(file, content(n));
        cost(&workspace, args).0
    };
    let (small, large) = (cost_of(n), cost_of(4 * n));
    let ratio = large / small.max(LEAST);
    assert!(
        ratio < MOST,
        "{name}, {args:?}: {small:.2} s for {n} and {large:.2} s for {}",
        4 * n
    );
}

const MEMORIES: &str = ".agentura/memories.json";

fn note(id: &str, more: &str) -> String {
    format!(
        "    {{\n      \"id\": \"{id}\",\n      \"memory_type\": \"brand_memory\",\n      \"content\": \
         \"note of {id}\",\n      \"metadata\": {{}},{more}\n      \"created_at\": \
         \"2026-01-01T00:00:00+00:00\"\n    }}"
    )
}

fn notes(n: usize, id: &dyn Fn(usize) -> String, more: &str) -> String {
    let all: Vec<String> = (0..n).map(|i| note(&id(i), more)).collect();
    format!("{{\n  \"entries\": [\n{}\n  ]\n}}\n", all.join(",\n"))
}

fn numbered(n: usize) -> String {
    format!("MEM-{n:06}")
}

#[test]
fn objects_that_are_never_closed_cost_no_square() {
    let opening = "{\n  \"entries\": [\n";
    for (name, part) in [
        (
            "open objects",
            "    {\"id\": \"MEM-1\", \"content\": \"x\",\n",
        ),
        ("open keys", "    {\"id\":\n"),
        ("open arrays", "    {\"id\": \"MEM-1\", \"x\": [\n"),
        ("one line", "{\"a\":"),
        ("brackets", "["),
    ] {
        let content = |n: usize| format!("{opening}{}", part.repeat(n));
        for args in [
            &["doctor", "--repair"][..],
            &["doctor"],
            &["memory", "list", "memories"],
        ] {
            check(name, args, 8_000, MEMORIES, &content);
        }
    }
    let nested = |n: usize| {
        format!(
            "{opening} x {}1{}\n  ]\n}}\n",
            "{\"a\":".repeat(n),
            "}".repeat(n)
        )
    };
    check("nested", &["doctor", "--repair"], 25_000, MEMORIES, &nested);
    let deep = |n: usize| {
        format!(
            "{opening}    {{\"id\": \"MEM-1\", \"x\": {}{}}}\n  ]\n}}\n",
            "[".repeat(n),
            "]".repeat(n)
        )
    };
    check("deep", &["doctor", "--repair"], 25_000, MEMORIES, &deep);
}

#[test]
fn many_entries_with_something_wrong_cost_no_square() {
    let nan = |n: usize| notes(n, &numbered, " \"x\": NaN,");
    let equal = |n: usize| notes(n, &|_| "MEM-001".to_owned(), "");
    let damaged = |n: usize| notes(n, &numbered, "\n oops,");
    let nameless = |n: usize| notes(n, &|_| String::new(), "");
    let contents: [(&str, &Content<'_>); 4] = [
        ("NaN", &nan),
        ("equal ids", &equal),
        ("damaged", &damaged),
        ("no ids", &nameless),
    ];
    for (name, content) in contents {
        check(name, &["doctor"], 3_000, MEMORIES, content);
        check(name, &["doctor", "--repair"], 3_000, MEMORIES, content);
        check(
            name,
            &["memory", "list", "memories"],
            3_000,
            MEMORIES,
            content,
        );
        check(
            name,
            &["memory", "search", "note"],
            3_000,
            MEMORIES,
            content,
        );
        check(
            name,
            &["memory", "export", "--output", "all.jsonl"],
            3_000,
            MEMORIES,
            content,
        );
    }
}

#[test]
fn equal_rules_are_paired_with_the_first_of_them_alone() {
    let workspace = Workspace::sample();
    std::fs::create_dir_all(workspace.memory("")).unwrap();
    let rule = |n: usize, text: &str| {
        format!(
            "    {{\"reflexion_id\": \"REFL-{n:03}\", \"skill\": \"hr/resume-screen\", \"created_at\": \
             \"2026-01-01T00:00:00+00:00\", \"correction_id\": \"CORR-1\", \"rule\": \"{text}\", \
             \"applies_when\": \"\", \"confidence\": 0.9, \"mistake\": \"\", \"root_cause\": \"\"}}"
        )
    };
    let mut rules: Vec<String> = (1..=40)
        .map(|n| rule(n, "ALWAYS ask for the name."))
        .collect();
    rules.push(rule(41, "NEVER ask for the name."));
    let judged = r#""relations": [{"id": "REFL-001", "relation": "contradicts", "by": "user"}]}"#;
    let opposed = rule(42, "SKIP the greeting of the letter.");
    rules.push(format!("{}, {judged}", opposed.trim_end_matches('}')));
    let text = format!("{{\n  \"entries\": [\n{}\n  ]\n}}\n", rules.join(",\n"));
    workspace.write(".agentura/reflexion_entries.json", text);
    let report = workspace.json_of(&["memory", "conflicts"]);
    let pairs = |name: &str| {
        let pairs = report[name].as_array().unwrap().iter();
        let ids = |pair: &Value| [pair["a"].clone(), pair["b"].clone()];
        pairs.map(ids).collect::<Vec<_>>()
    };
    let expected: Vec<_> = (2..=40)
        .map(|n| [json!("REFL-001"), json!(format!("REFL-{n:03}"))])
        .collect();
    assert_eq!(pairs("duplicates"), expected);
    // Nothing says without a person or a model that two near rules contradict each other.
    assert_eq!(
        pairs("contradictions"),
        [[json!("REFL-001"), json!("REFL-042")]]
    );
    assert_eq!(pairs("near"), [[json!("REFL-001"), json!("REFL-041")]]);
}

#[test]
fn session_files_of_any_form_cost_no_square() {
    let session = |lines: &str| format!("{{\"session\": \"s\"}}\n{lines}");
    let tiny = |n: usize| session(&"{}\n".repeat(n));
    let deep = |n: usize| {
        let line = format!(
            "{{\"tool\": \"bash\", \"input\": {}{}}}\n",
            "[".repeat(n),
            "]".repeat(n)
        );
        session(&line)
    };
    let unclosed = |n: usize| session(&"{\"tool\": \"bash\", \"input\": [\n".repeat(n));
    let long = |n: usize| {
        let said = "x y ".repeat(n);
        session(&format!(
            "{{\"tool\": \"bash\", \"input\": \"make\", \"output\": \"error: no {said}\", \"ok\": false}}\n\
             {{\"tool\": \"bash\", \"input\": \"make all\", \"output\": \"{said}\", \"ok\": true}}\n"
        ))
    };
    // One error that is overcome each time in other words.
    let lessons = |n: usize| {
        let mut lines = String::new();
        let mut random = 1_u64;
        for _ in 0..n {
            let words: Vec<&str> = (0..14)
                .map(|_| {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    let at = usize::try_from(random >> 60).unwrap() % 8;
                    [
                        "alpha", "beta", "gamma", "delta", "zeta", "kappa", "sigma", "omega",
                    ][at]
                })
                .collect();
            let words = words.join(" ");
            let error = "error: externally-managed-environment";
            writeln!(lines, "{{\"tool\": \"bash\", \"input\": \"pip install x {words}\", \"output\": \"{error}\", \"ok\": false}}").unwrap();
            writeln!(lines, "{{\"tool\": \"bash\", \"input\": \"pip install x {words} --user\", \"output\": \"fine\", \"ok\": true}}").unwrap();
        }
        session(&lines)
    };
    let contents: [(&str, usize, &Content<'_>); 5] = [
        ("tiny lines", 250_000, &tiny),
        ("deep", 100_000, &deep),
        ("unclosed", 50_000, &unclosed),
        ("long lines", 500_000, &long),
        ("lessons", 60, &lessons),
    ];
    for (name, n, content) in contents {
        check(name, &["learn", "s.jsonl"], n, "s.jsonl", content);
        check(
            name,
            &["memory", "import", "s.jsonl"],
            n,
            "s.jsonl",
            content,
        );
    }
}

#[test]
fn one_long_string_costs_a_small_multiple_of_its_length() {
    const LENGTH: usize = 24 << 20;
    let workspace = Workspace::sample();
    std::fs::create_dir_all(workspace.memory("")).unwrap();
    let (_, empty) = cost(&workspace, &["memory", "list", "memories"]);
    let long = note("MEM-002", &format!(" \"x\": \"{}\",", "x".repeat(LENGTH)));
    let text = format!(
        "{{\n  \"entries\": [\n{},\n{long}\n  ]\n}}\n",
        note("MEM-001", "")
    );
    workspace.write(MEMORIES, text);
    for args in [
        &["memory", "list", "memories"][..],
        &["memory", "status"],
        &["doctor"],
        &["doctor", "--repair"],
    ] {
        let (_, used) = cost(&workspace, args);
        let most = empty + 8 * (LENGTH as u64 >> 10);
        assert!(
            used < most,
            "{args:?}: {used} KiB, and {empty} KiB without it"
        );
    }
}
