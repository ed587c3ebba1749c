//! What two copies of a memory leave each other: a merge that git made line by line, words that one person has
//! forgotten, and numbers that are taken.

use crate::workspace::Workspace;

const SKILL: &str = "hr/resume-screen";

fn correct(workspace: &Workspace, words: &str) -> serde_json::Value {
    workspace.json(&["correct", SKILL, words])
}

/// Both sides of a conflict, as git writes them.
fn conflict(ours: &str, theirs: &str) -> String {
    format!("<<<<<<< HEAD\n{ours}=======\n{theirs}>>>>>>> other\n")
}

#[test]
fn a_merge_conflict_is_named_and_neither_repaired_nor_written_to() {
    let workspace = Workspace::sample();
    correct(&workspace, "Always name the order number.");
    correct(&workspace, "Link the status page.");
    let file = ".agentura/reflexion_entries.json";
    let text = workspace.read(file);
    // Git's marks around the second record of each side.
    let at = text.rfind("\n    {").unwrap() + 1;
    let (head, entry) = text.split_at(at);
    let (entry, tail) = entry.split_at(entry.find("\n  ]").unwrap() + 1);
    let other = entry.replace("status page", "browser version");
    let marked = format!("{head}{}{tail}", conflict(entry, &other));
    workspace.write(file, &marked);
    for args in [&["doctor"][..], &["doctor", "--repair"]] {
        let ran = workspace.run(args);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("merge conflict"), "{said}");
        assert!(said.contains("git checkout --merge .agentura"), "{said}");
        assert!(!said.contains("doctor --repair"), "{said}");
    }
    let ran = workspace.run(&["correct", SKILL, "Ask for the browser."]);
    ran.fails(3, "merge conflict");
    assert!(ran.stderr.contains("git checkout --merge"), "{ran:?}");
    assert_eq!(workspace.read(file), marked);
    workspace.write(file, &text);
    assert_eq!(workspace.run(&["doctor"]).code, 0);
}

#[test]
fn damaged_name_of_a_memory_is_not_replaced() {
    let workspace = Workspace::sample();
    correct(&workspace, "Always name the order number.");
    let file = ".agentura/workspace.json";
    let text = workspace.read(file);
    let marked = conflict(&text, &text);
    workspace.write(file, &marked);
    let ran = workspace.run(&["doctor"]);
    assert!(ran.stdout.contains("workspace.json"), "{ran:?}");
    let ran = workspace.run(&["correct", SKILL, "Link the status page."]);
    ran.fails(3, "workspace.json");
    assert!(ran.stderr.contains("git checkout --merge"), "{ran:?}");
    assert_eq!(workspace.read(file), marked);
    workspace.write(file, &text);
    correct(&workspace, "Link the status page.");
    workspace.run(&["memory", "audit", "verify"]).succeeds();
}

#[test]
fn forgotten_words_of_a_colleague_are_data_until_they_are_approved_again() {
    let workspace = Workspace::sample();
    correct(&workspace, "Never promise a date.");
    let theirs = "a039037b-35e4-4481-8999-004bb793708e";
    for name in ["reflexion_entries.json", "corrections.json"] {
        let text = workspace.read(&format!(".agentura/{name}"));
        workspace.write(&format!(".agentura/remote/{theirs}/{name}"), text);
    }
    let learned = || {
        let prompt = workspace.json(&["memory", "prompt", SKILL]);
        let text = prompt["prompt"].as_str().unwrap().to_owned();
        let (_, rest) = text.split_once("Learned Rules").unwrap_or_default();
        rest.contains("Never promise a date.") && !rest.contains("not reviewed")
    };
    assert!(learned());
    workspace.run(&["forget", "REFL-001"]).succeeds();
    assert!(!learned());
    workspace.run(&["undo"]).succeeds();
    assert!(learned());
}

#[test]
fn number_of_a_correction_that_a_rule_names_is_taken() {
    let from = Workspace::sample();
    correct(&from, "Always name the order number.");
    let file = from.root().join("rules.jsonl");
    let file = file.to_str().unwrap();
    let export = ["memory", "export", "--kind", "rule", "-o", file];
    from.run(&export).succeeds();
    let to = Workspace::sample();
    to.run(&["memory", "import", file, "--trust"]).succeeds();
    let new = correct(&to, "Never promise a delivery date.");
    assert_eq!(new["correction_id"], "CORR-002", "{new}");
    assert_eq!(new["reflexion_id"], "REFL-002", "{new}");
}
