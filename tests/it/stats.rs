//! `stats` from outside: figures from a store with a known history, and the page for a browser.

use std::fs;

use serde_json::{Value, json};

use crate::workspace::Workspace;

const ATTACK: &str = "</td><script>alert('x')</script>\"onload=\"x";

/// Runs with a rule: three right, one rejected. Without: one right, one corrected, one not judged, one
/// without an answer.
fn remembered() -> Workspace {
    let workspace = Workspace::sample();
    let run = |n: u32, outcome: &str, rules: &[&str]| {
        json!({"execution_id": format!("EXEC-2026010{n}100000"), "skill": "hr/resume-screen",
            "timestamp": format!("2026-01-0{n}T10:00:00+00:00"), "outcome": outcome, "cost_usd": 0.25,
            "latency_ms": 100.0 * f64::from(n), "model_used": "m/m", "reflexions_injected": rules,
            "usage": {"input_tokens": 100, "output_tokens": if rules.is_empty() { 100 } else { 50 }}})
    };
    let rule = &["REFL-001"][..];
    let mut runs = vec![
        run(1, "accepted", &[]),
        run(2, "accepted", &[]),
        run(3, "pending_review", &[]),
        run(4, "error", &[]),
        run(5, "accepted", rule),
        run(6, "accepted", rule),
        run(7, "accepted", rule),
        run(9, "rejected", rule),
    ];
    runs[3]["cost_usd"] = Value::Null;
    let correction = json!({"correction_id": "CORR-001", "execution_id": "EXEC-20260102100000",
        "skill": "hr/resume-screen", "timestamp": "2026-01-02T11:00:00+00:00", "user_correction": "no"});
    let rules = json!([
        {"reflexion_id": "REFL-001", "skill": "hr/resume-screen", "rule": ATTACK, "created_at": "2026-01-02T11:00:00+00:00",
            "times_helped": 3, "times_harmed": 1, "validated_by_test": true},
        {"reflexion_id": "REFL-002", "skill": "dev/code-review", "rule": "unused", "created_at": "2026-01-03T11:00:00+00:00"},
    ]);
    let fixes = json!([
        pattern!({"procedure_id": "PROC-001", "created_at": "2026-01-04T00:00:00+00:00", "error_key": format!("error: {ATTACK}"),
        "failing_code": "a", "working_code": "b", "success_output": "", "shown": 4, "helped": 2, "harmed": 1})
    ]);
    for (file, entries) in [
        ("episodic_memory.json", json!({ "entries": runs })),
        ("corrections.json", json!({ "corrections": [correction] })),
        ("reflexion_entries.json", json!({ "entries": rules })),
        ("procedural_memory.json", json!({ "entries": fixes })),
    ] {
        workspace.write(&format!(".agentura/{file}"), entries.to_string());
    }
    workspace
}

/// A session of an agent that was told four lessons and followed two.
fn add_session(workspace: &Workspace) {
    let data = json!({"native_id": "claude-code/1", "steps": 10, "failures": 2, "hints_shown": 4,
        "hints_helped": 2});
    let session = json!({"session_id": "SESS-20260108000000", "status": "completed", "session_data": data,
        "started_at": "2026-01-08T00:00:00Z", "created_at": "2026-01-08T00:00:00Z",
        "updated_at": "2026-01-08T00:00:00Z"});
    let file = json!({ "entries": [session] }).to_string();
    workspace.write(".agentura/sessions.json", file);
}

#[test]
fn the_figures_are_those_of_the_history() {
    let workspace = remembered();
    add_session(&workspace);
    let stats = workspace.json(&["stats"]);
    assert_eq!(stats["days"], json!(["2026-01-01", "2026-01-09"]));
    let runs = &stats["executions"];
    assert_eq!(
        (&runs["total"], &runs["errors"], &runs["unjudged"]),
        (&json!(8), &json!(1), &json!(1))
    );
    let with = &runs["right_with_rules"];
    assert_eq!(
        (&with["count"], &with["of"], &with["share"]),
        (&json!(3), &json!(4), &json!(0.75))
    );
    let without = &runs["right_without_rules"];
    assert_eq!((&without["count"], &without["of"]), (&json!(1), &json!(2)));
    assert_eq!(
        (&runs["tokens_with_rules"], &runs["tokens_without_rules"]),
        (&json!(150.0), &json!(200.0))
    );
    assert_eq!(
        (&runs["cost_usd"], &runs["cost_unknown"]),
        (&json!(1.75), &json!(1))
    );
    assert_eq!(runs["latency_ms"], json!({"p50": 400.0, "p95": 900.0}));
    let hints = &stats["hints"];
    assert_eq!(
        (&hints["precision"]["count"], &hints["precision"]["of"]),
        (&json!(2), &json!(4))
    );
    assert_eq!(
        hints["evidence"],
        json!({"shown": 4, "helped": 2, "harmed": 1})
    );
    let learnt = &stats["learning"];
    assert_eq!(
        (&learnt["reused"]["count"], &learnt["reused"]["of"]),
        (&json!(2), &json!(3))
    );
    assert_eq!(learnt["validated"], 1);
    assert_eq!(
        stats["rules"][0]["evidence"],
        json!({"shown": 4, "helped": 3, "harmed": 1})
    );
    let week = |n: usize, field: &str| stats["weeks"][n][field].clone();
    // Nothing is counted twice, and a run counts by its day: the last two are of the second week.
    assert_eq!(
        (week(0, "week"), week(1, "week")),
        (json!("2025-12-29"), json!("2026-01-05"))
    );
    assert_eq!(
        (week(0, "right"), week(0, "judged"), week(0, "learned")),
        (json!(1), json!(2), json!(3))
    );
    assert_eq!((week(1, "right"), week(1, "judged")), (json!(3), json!(4)));
    assert_eq!((week(1, "hints"), week(1, "helped")), (json!(4), json!(2)));
    let page = workspace.run(&["stats"]);
    for line in [
        "2025-12-29  0         0",
        "2026-01-05  1         10",
        "helped:       50 % (2 of 4; 95 %: 15 to 85 %)\n",
        "evidence:     shown 4, helped 2, harmed 1\n",
        "right with rules: 75 % (3 of 4; 95 %: 30 to 95 %)",
    ] {
        assert!(page.stdout.contains(line), "{page:?}");
    }
}

#[test]
fn unknown_value_is_no_number() {
    let workspace = Workspace::empty();
    let stats = workspace.json(&["stats"]);
    for path in [
        "/days",
        "/executions/cost_usd",
        "/executions/latency_ms",
        "/executions/right_with_rules/share",
        "/hints/precision/share",
        "/learning/a_week",
    ] {
        assert_eq!(stats.pointer(path), Some(&Value::Null), "{path}");
    }
    let page = workspace.run(&["stats"]);
    assert!(page.succeeds().stdout.contains("No data yet"), "{page:?}");
    assert!(!workspace.root().join(".agentura").exists());
    workspace.run(&["stats", "--html", "empty.html"]).succeeds();
    assert!(well_formed(&workspace.read("empty.html")).contains("No data yet"));
}

#[test]
fn a_scope_sees_its_own_domain_and_no_hints() {
    let workspace = remembered();
    add_session(&workspace);
    let stats = workspace.json(&["stats", "--scope", "dev"]);
    assert_eq!(
        (
            &stats["executions"]["total"],
            &stats["hints"]["evidence"]["shown"]
        ),
        (&json!(0), &json!(0))
    );
    assert_eq!(
        (
            &stats["learning"]["reflexions"],
            &stats["learning"]["procedures"]
        ),
        (&json!(1), &json!(0))
    );
    assert!(!stats.to_string().contains("script"), "{stats}");
}

/// Checks that the tags of a page are closed in their order and that attributes are quoted; answers its
/// text without the tags.
fn well_formed(page: &str) -> String {
    let body = page.strip_prefix("<!DOCTYPE html>").unwrap();
    let mut open: Vec<&str> = Vec::new();
    let mut text = String::new();
    let mut rest = body;
    while let Some((before, after)) = rest.split_once('<') {
        assert!(
            !before.contains('>') || open.last() == Some(&"style"),
            "{before}"
        );
        text.push_str(before);
        let (tag, after) = after.split_once('>').unwrap();
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
            continue;
        }
        let name = tag.split([' ', '/']).next().unwrap();
        assert!(
            name.bytes().all(|b| b.is_ascii_alphanumeric()) && !name.is_empty(),
            "{tag}"
        );
        assert_ne!(name, "script");
        let attributes = tag[name.len()..].trim_end_matches('/');
        for (at, piece) in attributes.split('"').enumerate() {
            // Between two values there is a name and nothing else.
            let is_name = piece
                .trim_end_matches('=')
                .trim()
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-');
            assert!(at % 2 == 1 || is_name, "{tag}");
            assert!(
                at % 2 == 1 || !piece.trim_start().starts_with("on"),
                "{tag}"
            );
        }
        if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert_eq!((open, rest.trim()), (Vec::new(), ""));
    text
}

#[test]
fn the_page_needs_nothing_else_and_stored_text_is_text() {
    let workspace = remembered();
    add_session(&workspace);
    workspace.write(
        "stats.html",
        "<title>memctl: benefit of memory</title> an older page",
    );
    let ran = workspace.run(&["stats", "--html", "stats.html"]);
    assert!(ran.succeeds().stdout.contains("wrote "), "{ran:?}");
    let page = workspace.read("stats.html");
    let text = well_formed(&page);
    for part in ["with rules", "75 %", "PROC-001", "latency"] {
        assert!(text.contains(part), "{part}");
    }
    assert!(page.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"));
    for outside in ["http:", "https:", "//", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    let json = workspace.json(&["stats", "--html", "again.html"]);
    assert!(json["days"].is_array());
    assert_eq!(workspace.read("again.html"), page);
}

#[test]
fn failed_write_is_reported_and_loses_nothing() {
    let workspace = remembered();
    fs::create_dir(workspace.root().join("pages")).unwrap();
    for (path, why, hint) in [
        (
            "pages",
            "it is no page of memctl",
            "memctl stats --html stats.html",
        ),
        ("none/x.html", "its directory does not exist", "mkdir -p "),
    ] {
        let ran = workspace.run(&["stats", "--html", path]);
        ran.fails(2, why).fails(2, hint);
        let error = workspace.json_of(&["stats", "--html", path]);
        assert_eq!(error["error"]["kind"], "input");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("elsewhere", workspace.root().join("link.html")).unwrap();
        workspace
            .run(&["stats", "--html", "link.html"])
            .fails(2, "it is no page of memctl");
    }
    let left: Vec<_> = fs::read_dir(workspace.root().join("pages"))
        .unwrap()
        .collect();
    assert!(left.is_empty());
}

#[test]
fn sessions_are_compared_by_what_they_were_told() {
    let workspace = Workspace::empty();
    let session = |n: u32, data: Value| {
        let mut data = data;
        data["native_id"] = json!(format!("claude-code/{n}"));
        json!({"session_id": format!("SESS-2026110{n}100000"), "status": "completed", "session_data": data,
            "started_at": "2026-11-01T10:00:00Z", "created_at": "2026-11-01T10:00:00Z",
            "updated_at": "2026-11-01T10:00:00Z"})
    };
    let mut own = session(5, json!({"steps": 900}));
    own["session_data"] = json!({"steps": 900});
    let sessions = [
        session(1, json!({"steps": 30, "failures": 6, "tokens": 4000})),
        session(2, json!({"steps": 20, "failures": 3, "hints_shown": 0})),
        session(
            3,
            json!({"steps": 12, "failures": 1, "rules_at_calls": 2, "rules_heeded": 1, "tokens": 1500}),
        ),
        session(
            4,
            json!({"steps": 10, "failures": 0, "hints_shown": 1, "tokens": 1000}),
        ),
        own,
    ];
    let file = json!({ "entries": sessions }).to_string();
    workspace.write(".agentura/sessions.json", file);
    let stats = workspace.json(&["stats"]);
    let week = ["week", "sessions", "calls", "failed", "told", "heeded"];
    assert_eq!(
        week.map(|name| stats["weeks"][0][name].clone()),
        [
            json!("2026-10-26"),
            json!(4),
            json!(72),
            json!(10),
            json!(2),
            json!(1)
        ]
    );
    let found = stats["sessions"].clone();
    let means = |told: &str| {
        ["sessions", "calls", "failed", "tokens"].map(|name| found[told][name].clone())
    };
    assert_eq!(
        means("told"),
        [json!(2), json!(11.0), json!(0.5), json!(1250.0)]
    );
    assert_eq!(
        means("not_told"),
        [json!(2), json!(25.0), json!(4.5), json!(4000.0)]
    );
    let page = workspace.run(&["stats"]).stdout;
    for told in [
        "told:         sessions 2, calls 11, failed 0.5, tokens 1250",
        "not told:     sessions 2, calls 25, failed 4.5, tokens 4000",
    ] {
        assert!(page.contains(told), "{page}");
    }
}
