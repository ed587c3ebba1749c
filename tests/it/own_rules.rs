//! What a person decides about their own rules holds: a refused decision changes nothing, and what they
//! let act goes on to act.

use serde_json::{Value, json};

use crate::checks::{before, event, output, ruled, write_rules};
use crate::hosts::hook;
use crate::workspace::Workspace;

const RULE: &str = "Use pnpm, not npm.";

fn stored(workspace: &Workspace, at: usize) -> Value {
    workspace.stored("reflexion_entries.json")["entries"][at].clone()
}

fn candidate(id: &str, text: &str) -> Value {
    json!({"reflexion_id": id, "rule": text, "source": "chat", "status": "candidate",
        "utility_score": 0.0})
}

#[test]
fn an_action_for_a_rule_without_patterns_approves_nothing() {
    let mut workspace = ruled(RULE);
    let mut first = candidate("REFL-001", RULE);
    first["seen_by"] = json!([{"on": "command", "match": r"^npm\b"}]);
    write_rules(
        &workspace,
        &json!([first, candidate("REFL-002", "Be brief.")]),
    );
    for ids in [&["REFL-002"][..], &["REFL-001", "REFL-002"]] {
        let args = [&["approve"], ids, &["--action", "deny"]].concat();
        workspace.run(&args).fails(2, "`REFL-002` has no patterns");
        for at in [0, 1] {
            assert_eq!(stored(&workspace, at)["status"], "candidate");
        }
    }
    // Records of two stores are two approvals.
    workspace.json(&["approve", "REFL-002"]);
    workspace.json(&["memory", "promote", "REFL-002", "--yes"]);
    let args = ["approve", "REFL-001", "REFL-001@user", "--action", "deny"];
    workspace.run(&args).fails(2, "one after the other");
    assert_eq!(stored(&workspace, 0)["status"], "candidate");
    workspace.set("MEMCTL_MEMORY_USER_STORE", "false");
    workspace.json(&["approve", "REFL-001", "--action", "deny"]);
    assert_eq!(stored(&workspace, 0)["status"], "active");
}

#[test]
fn a_rule_that_its_person_edits_goes_on_to_act() {
    let workspace = ruled(RULE);
    workspace.json(&["approve", "REFL-001"]);
    let mut rule = stored(&workspace, 0);
    for (field, count) in [
        ("times_told", 5),
        ("times_heeded", 3),
        ("times_recurred", 2),
        ("times_overridden", 1),
    ] {
        rule[field] = json!(count);
    }
    write_rules(&workspace, &json!([rule]));
    let ran = workspace.run(&["edit", "REFL-001", "--set", "rule=Only pnpm here."]);
    let said = &ran.succeeds().stdout;
    assert!(
        said.contains(r"acts at calls as before (`^npm\b`)"),
        "{said}"
    );
    assert!(
        said.contains("memctl approve REFL-001 --action off"),
        "{said}"
    );
    let told = before(&workspace, "a", "npm ci").to_string();
    assert!(told.contains("Only pnpm here. (REFL-001)"), "{told}");
    // Its counts and receipts are those of the old text.
    let of_calls = &workspace.json(&["stats"])["at_calls"][0];
    assert_eq!(of_calls["active"], true, "{of_calls}");
    assert_eq!(of_calls["heeded"], 0, "{of_calls}");
    assert_eq!(of_calls["recurred"], 0, "{of_calls}");
    // An edit lets nothing act that did not act before.
    workspace.json(&["approve", "REFL-001", "--action", "off"]);
    workspace.json(&["edit", "REFL-001", "--set", "rule=Still only pnpm."]);
    assert_eq!(before(&workspace, "b", "npm ci"), Value::Null);
}

#[test]
fn an_edit_lets_no_rule_act_that_nobody_approved() {
    let workspace = ruled(RULE);
    workspace.json(&["edit", "REFL-001", "--set", "rule=Only pnpm here."]);
    assert_eq!(before(&workspace, "a", "npm ci"), Value::Null);
}

#[test]
fn a_merge_that_would_lose_patterns_is_refused() {
    let workspace = ruled(RULE);
    let mut kept = stored(&workspace, 0);
    kept["rule"] = json!("Only pnpm here.");
    kept["times_told"] = json!(1);
    let mut other = stored(&workspace, 0);
    other["reflexion_id"] = json!("REFL-002");
    other["times_told"] = json!(4);
    other["times_heeded"] = json!(3);
    let mut third = stored(&workspace, 0);
    third["reflexion_id"] = json!("REFL-003");
    third["seen_by"] = json!([{"on": "command", "match": r"^yarn\b"}]);
    let fourth = json!({"reflexion_id": "REFL-004", "rule": "Packages come from pnpm."});
    write_rules(&workspace, &json!([kept, other, third, fourth]));
    workspace.json(&["approve", "REFL-001", "REFL-002", "REFL-003"]);
    let merge =
        |keep: &str, other: &str| workspace.run(&["memory", "conflicts", "--merge", keep, other]);
    merge("REFL-004", "REFL-001").fails(2, "--merge REFL-001 REFL-004");
    merge("REFL-001", "REFL-003").fails(2, "--keep-both REFL-001 REFL-003");
    merge("REFL-001", "REFL-004").succeeds();
    merge("REFL-001", "REFL-002").succeeds();
    let kept = stored(&workspace, 0);
    assert_eq!(
        (&kept["times_told"], &kept["times_heeded"]),
        (&json!(5), &json!(3))
    );
    let told = before(&workspace, "a", "npm ci").to_string();
    assert!(told.contains("Only pnpm here. (REFL-001)"), "{told}");
}

#[test]
fn the_newer_of_two_rules_is_offered_to_stay() {
    let workspace = ruled(RULE);
    let rule = |id: &str, text: &str| json!({"reflexion_id": id, "rule": text});
    let old = rule("REFL-001", "Always name the order number.");
    let mut new = rule("REFL-002", "Never name the order number.");
    new["relations"] = json!([{"id": "REFL-001", "relation": "contradicts", "by": "model"}]);
    write_rules(&workspace, &json!([old, new]));
    let command = "memctl memory conflicts --merge REFL-002 REFL-001";
    for args in [&["review"][..], &["memory", "conflicts"]] {
        let ran = workspace.run(args);
        assert!(ran.succeeds().stdout.contains(command), "{ran:?}");
    }
    // The same words gain nothing from a newer record.
    write_rules(
        &workspace,
        &json!([
            rule("REFL-001", "Be brief."),
            rule("REFL-002", "Be  brief.")
        ]),
    );
    let ran = workspace.run(&["review"]);
    assert!(
        ran.succeeds().stdout.contains("--merge REFL-001 REFL-002"),
        "{ran:?}"
    );
}

/// Gives a message of the person to the hook.
fn says(workspace: &Workspace, message: &str) {
    let event = json!({"hook_event_name": "UserPromptSubmit", "session_id": "s1",
        "cwd": workspace.root(), "prompt": message});
    assert_eq!(hook(workspace, "claude-code", event.to_string()).code, 0);
}

fn hears(workspace: &Workspace, heard: &Value) -> Value {
    workspace.json(&["correct", "--heard", &heard.to_string()])
}

#[test]
fn two_rules_of_one_message_are_two_candidates() {
    let workspace = ruled(RULE);
    let quote = "From now on use tabs in Go files, and always spaces in Python files.";
    says(&workspace, quote);
    let rules = ["Use tabs in Go files.", "Use spaces in Python files."];
    let ids =
        rules.map(|rule| hears(&workspace, &json!({"rule": rule, "quote": quote}))["id"].clone());
    assert_ne!(ids[0], ids[1]);
    assert_eq!(stored(&workspace, 1)["rule"], rules[0]);
    assert_eq!(stored(&workspace, 2)["rule"], rules[1]);
    // The same rule again changes it, and what it leaves out stays.
    let with = |commands: &[&str]| {
        let heard = json!({"rule": rules[0], "quote": quote, "commands": commands});
        let report = hears(&workspace, &heard);
        assert_eq!(report["id"], ids[0], "{report}");
        stored(&workspace, 1)["seen_by"].clone()
    };
    let first = with(&[r"^gofmt -spaces\b"]);
    assert_eq!(first[0]["match"], r"^gofmt -spaces\b");
    assert_eq!(with(&["(go"]), first);
    assert_eq!(with(&[]), first);
    assert_eq!(with(&["^gofumpt"])[0]["match"], "^gofumpt");
    assert_eq!(
        workspace.stored("reflexion_entries.json")["entries"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
}

#[test]
fn a_promoted_rule_is_told_once_and_with_its_name() {
    let workspace = ruled(RULE);
    workspace.json(&["approve", "REFL-001"]);
    workspace.json(&["memory", "promote", "REFL-001", "--yes"]);
    workspace.json(&["approve", "REFL-001@user"]);
    let told = before(&workspace, "a", "npm ci").to_string();
    assert_eq!(told.matches(RULE).count(), 1, "{told}");
    assert!(told.contains("(REFL-001)"), "{told}");
    let elsewhere = workspace.home().join("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    let at = |session: &str| {
        let mut event = event(&workspace, session, "PreToolUse", "npm ci");
        event["cwd"] = json!(elsewhere);
        output(&hook(&workspace, "claude-code", event.to_string())).to_string()
    };
    assert!(at("b").contains("(REFL-001@user)"));
    // What is told is found by its id, from there too.
    let why = workspace
        .command()
        .current_dir(&elsewhere)
        .args(["why", "REFL-001@user"])
        .output();
    let why = why.unwrap();
    assert!(why.status.success(), "{why:?}");
    assert!(
        String::from_utf8_lossy(&why.stdout).contains(RULE),
        "{why:?}"
    );
    // The record of the project decides: off there is off, and elsewhere it acts.
    workspace.json(&["approve", "REFL-001", "--action", "off"]);
    assert_eq!(before(&workspace, "c", "npm ci"), Value::Null);
    assert!(at("d").contains(RULE));
}

#[test]
fn a_rule_that_is_replaced_stays_in_force_until_the_other_is_approved() {
    let workspace = Workspace::empty();
    workspace.json(&["init"]);
    let page = |args: &[&str]| workspace.run(args).succeeds().stdout.clone();
    let told = |session: &str| {
        let event = json!({"hook_event_name": "SessionStart", "session_id": session,
            "source": "startup", "cwd": workspace.root()});
        hook(&workspace, "claude-code", event.to_string()).stdout
    };
    // A rule that no call can be seen to break says so, and what changes it.
    let more = "--command REGEX --replaces REFL-001";
    let typed = page(&["correct", "Use pnpm here."]);
    assert!(typed.contains(more), "{typed}");
    let approved = page(&["approve", "REFL-001"]);
    assert!(approved.contains(more), "{approved}");
    let new = [
        "correct", "Use pnpm, never npm.", "--command", r"^npm\b", "--replaces", "REFL-001",
    ];
    let typed = page(&new);
    assert!(
        typed.contains("until then, REFL-001 stays in force"),
        "{typed}"
    );
    assert!(!typed.contains(more), "{typed}");
    assert!(told("a").contains("Use pnpm here."));
    let approved = page(&["approve", "REFL-002"]);
    assert!(!approved.contains("--command"), "{approved}");
    let now = told("b");
    assert!(
        now.contains("Use pnpm, never npm.") && !now.contains("Use pnpm here."),
        "{now}"
    );
    assert_eq!(stored(&workspace, 0)["superseded_by"], "REFL-002");
}

#[test]
fn message_that_only_withdraws_a_rule_is_no_rule() {
    let workspace = ruled("Never leave console.log in the code.");
    workspace.json(&["approve", "REFL-001"]);
    let quote = "Forget what I said about console.log.";
    says(&workspace, quote);
    let heard = json!({"rule": quote, "withdraws": "REFL-001", "quote": quote});
    assert_eq!(hears(&workspace, &heard)["earlier"]["now"], "in_force");
    let review = workspace.run(&["review"]).succeeds().stdout.clone();
    assert!(
        review.contains("takes back REFL-001: Never leave console.log"),
        "{review}"
    );
    workspace.json(&["approve", "REFL-002"]);
    let event = json!({"hook_event_name": "SessionStart", "session_id": "new",
        "source": "startup", "cwd": workspace.root()});
    let told = hook(&workspace, "claude-code", event.to_string()).stdout;
    assert!(!told.contains("console.log"), "{told}");
    workspace
        .run(&[
            "memory", "export", "--format", "agents-md", "--output", "AGENTS.md",
        ])
        .succeeds();
    let file = std::fs::read_to_string(workspace.root().join("AGENTS.md")).unwrap_or_default();
    assert!(!file.contains("console.log"), "{file}");
    assert_eq!(stored(&workspace, 0)["superseded_by"], "REFL-002");
}
