//! Faults that were found in use, from outside, each by its right value. `docs/complaints.md` lists all
//! of them with their tests.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::workspace::{Ran, Workspace, copy};

/// Steps of a session: a call that fails, and one that works.
fn session(directory: &Path, failed: &str, error: &str, worked: &str) -> String {
    let lines = [
        json!({"session": "s-1", "cwd": directory}),
        json!({"tool": "Bash", "input": failed, "error": error, "exit_code": 1}),
        json!({"tool": "Bash", "input": worked, "output": "ok", "exit_code": 0}),
    ];
    lines.map(|line| line.to_string()).join("\n") + "\n"
}

pub(crate) fn git(directory: &Path, args: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=n", "-c", "user.email=n@example.org"])
        .args(args)
        .current_dir(directory)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
}

/// The lessons that a failing call in a directory is told.
fn hints(workspace: &Workspace, directory: &Path, error: &str, command: &str) -> Vec<Value> {
    let output = workspace
        .command()
        .current_dir(directory)
        .args(["hint", "--json", "--error", error, "--command", command])
        .output()
        .unwrap();
    let report = Ran::of(output).document();
    report["hints"].as_array().unwrap().clone()
}

const ERROR: &str = "Error: NPM_CONFIG is not set";

#[test]
#[cfg_attr(windows, ignore = "it needs git")]
fn item_10_a_project_is_what_git_says() {
    let workspace = Workspace::empty();
    let outside = tempfile::tempdir().unwrap();
    let shop = outside.path().canonicalize().unwrap().join("shop");
    std::fs::create_dir_all(shop.join("src")).unwrap();
    git(&shop, &["init", "-q"]);
    git(&shop, &["commit", "-q", "--allow-empty", "-m", "first"]);
    let run = |directory: &Path, args: &[&str]| {
        let output = workspace
            .command()
            .current_dir(directory)
            .args(args)
            .output();
        Ran::of(output.unwrap()).succeeds();
    };
    run(&shop, &["init"]);
    let failed = "npm start";
    let text = session(
        &shop.join("src"),
        failed,
        ERROR,
        "NPM_CONFIG=conf/dev.json npm start",
    );
    std::fs::write(outside.path().join("s.jsonl"), text).unwrap();
    run(&shop, &["learn", "../s.jsonl"]);
    let told = |directory: &Path| hints(&workspace, directory, ERROR, failed).len();
    assert_eq!([told(&shop), told(&shop.join("src"))], [1, 1]);
    // A work tree, and a clone under another name with the memory.
    git(&shop, &["worktree", "add", "-q", "../fix"]);
    assert_eq!(told(&outside.path().join("fix")), 1);
    git(outside.path(), &["clone", "-q", "shop", "other"]);
    let other = outside.path().join("other");
    copy(&shop.join(".agentura"), &other.join(".agentura"));
    assert_eq!(told(&other), 1);
    // A memory that lies in the project is its own, whatever the first commit is: a history begun anew.
    let same = outside.path().join("elsewhere/shop");
    std::fs::create_dir_all(&same).unwrap();
    git(&same, &["init", "-q"]);
    git(&same, &["commit", "-q", "--allow-empty", "-m", "second"]);
    copy(&shop.join(".agentura"), &same.join(".agentura"));
    assert_eq!(told(&same), 1);
}

#[test]
fn item_10_what_was_learnt_in_a_directory_holds_there() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let root = workspace.root();
    for directory in ["shop/src", "atlas"] {
        std::fs::create_dir_all(root.join(directory)).unwrap();
    }
    let failed = "make pack";
    let error = "make: *** No rule to make target 'pack'.  Stop.";
    workspace.write(
        "s.jsonl",
        session(&root.join("shop"), failed, error, "make -C build pack"),
    );
    workspace.json(&["learn", "s.jsonl"]);
    let told = |directory: &str| hints(&workspace, &root.join(directory), error, failed).len();
    assert_eq!(["shop", "shop/src", "atlas", ""].map(told), [1, 1, 0, 0]);
}

#[test]
fn item_14_a_changed_value_of_an_option_is_no_pattern() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let (failed, worked) = ("npm start -- --port=3000", "npm start -- --port=3001");
    let text = session(&workspace.root(), failed, ERROR, worked);
    workspace.write("s.jsonl", text);
    let report = workspace.json(&["learn", "s.jsonl"]);
    assert_eq!(report["learned"], json!([]));
    assert_eq!(report["episodes"][0]["no_fix"], "one_off", "{report}");
}

/// A workspace with a rule and a candidate, and a clone of its memory that nobody trusts.
fn workspace_and_clone() -> (Workspace, Workspace) {
    let workspace = Workspace::sample();
    for text in ["Name it.", "Say the score."] {
        workspace
            .run(&["correct", "hr/resume-screen", text])
            .succeeds();
    }
    let clone = Workspace::sample();
    std::fs::create_dir_all(clone.memory("")).unwrap();
    for name in [
        "reflexion_entries.json", "corrections.json", "workspace.json",
    ] {
        if workspace.memory(name).exists() {
            std::fs::copy(workspace.memory(name), clone.memory(name)).unwrap();
        }
    }
    (workspace, clone)
}

#[test]
fn after_a_revocation_nothing_is_trusted() {
    let (_, clone) = workspace_and_clone();
    let untrusted = || {
        clone.json(&["trust", "--dry-run"])["rules"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(untrusted(), 2);
    for trust in [
        &["approve", "REFL-001", "REFL-002"][..],
        &["trust", "--yes"],
    ] {
        clone.run(trust).succeeds();
        assert_eq!(untrusted(), 0);
        clone.run(&["trust", "--revoke"]).succeeds();
        assert_eq!(untrusted(), 2, "{trust:?}");
    }
    clone.run(&["trust"]).succeeds();
    assert_eq!(untrusted(), 0);
}

#[test]
fn one_word_says_the_state_of_a_rule_everywhere() {
    let (workspace, clone) = workspace_and_clone();
    let rules = || clone.json(&["list", "rules"])["records"].clone();
    assert_eq!(rules()[0]["trust"], "observed");
    assert_eq!(clone.json(&["show", "REFL-001"])["trust"], "observed");
    let found = clone.json(&["search", "score", "--keyword"]);
    assert_eq!(found["results"][0]["trust"], "observed");
    let text = |args: &[&str]| clone.run(args).succeeds().stdout.clone();
    for page in [
        text(&["list", "rules"]),
        text(&["list"]),
        text(&["search", "score", "--keyword"]),
    ] {
        assert!(page.contains("observed: Say"), "{page}");
    }
    assert!(text(&["show", "REFL-001"]).starts_with("observed"));
    assert!(text(&["why", "REFL-001"]).contains("observed"));
    // Other states of a rule.
    let path = workspace.memory("reflexion_entries.json");
    let file = std::fs::read_to_string(&path).unwrap();
    let candidate = r#""status": "candidate", "judgement": {"verdict": "discard", "by": "user"}"#;
    for (field, word) in [
        (r#""superseded_by": "REFL-002""#, "superseded"),
        (candidate, "rejected"),
    ] {
        let mut rules: Value = serde_json::from_str(&file).unwrap();
        let fields: Value = serde_json::from_str(&format!("{{{field}}}")).unwrap();
        let rule = rules["entries"][0].as_object_mut().unwrap();
        rule.extend(fields.as_object().unwrap().clone());
        std::fs::write(&path, rules.to_string()).unwrap();
        let list = workspace.json(&["list", "rules", "--status", word]);
        assert_eq!(list["records"][0]["status"], word);
        assert_eq!(
            workspace.json(&["why", "REFL-001"])["chain"][0]["status"],
            word
        );
        let page = workspace.run(&["list", "rules"]).succeeds().stdout.clone();
        assert!(page.contains(&format!("{word}: Name")), "{page}");
    }
}

#[test]
fn where_there_is_no_workspace_every_command_says_so_and_begins_none() {
    let mut workspace = Workspace::empty();
    workspace.set("MEMCTL_STORE", "json");
    for args in [
        &["list"][..],
        &["list", "rules"],
        &["search", "x", "--keyword"],
        &["review"],
        &["stats"],
        &["memory", "status"],
    ] {
        let ran = workspace.run(args);
        ran.succeeds();
        assert!(
            ran.stderr.contains("no workspace found at"),
            "{args:?}: {ran:?}"
        );
        assert!(
            ran.stderr.contains("memctl init, or memctl setup"),
            "{args:?}: {ran:?}"
        );
    }
    for args in [
        &["memory", "purge", "--yes"][..],
        &["memory", "disable", "--user", "ann"],
        &["trust"],
        &["trust", "--revoke"],
        &["doctor"],
        &["undo"],
        &["approve", "REFL-001"],
        &["why", "REFL-001"],
        &["show", "REFL-001"],
    ] {
        workspace.run(args).fails(2, "no workspace found at");
    }
    assert!(!workspace.memory("").exists());
    workspace.run(&["init"]).succeeds();
    let ran = workspace.run(&["list"]);
    assert!(!ran.stderr.contains("no workspace"), "{ran:?}");
}

#[test]
fn doctor_and_status_first_say_that_memory_is_off_and_what_switches_it_on() {
    let mut workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    workspace.run(&["memory", "disable"]).succeeds();
    let said = |workspace: &Workspace, hint: &str| {
        for args in [&["doctor"][..], &["memory", "status"]] {
            let ran = workspace.run(args);
            let first = ran.stderr.lines().next().unwrap_or_default();
            assert!(first.contains("memory is disabled by"), "{args:?}: {ran:?}");
            assert!(first.contains(hint), "{args:?}: {ran:?}");
            let advises = ran.stderr.contains("memctl memory enable")
                || ran.stdout.contains("memctl memory enable");
            assert_eq!(advises, hint == "memctl memory enable", "{args:?}: {ran:?}");
        }
    };
    said(&workspace, "memctl memory enable");
    workspace.run(&["memory", "enable"]).succeeds();
    workspace.set("MEMCTL_MEMORY", "off");
    said(&workspace, "unset MEMCTL_MEMORY");
}

#[test]
fn permanent_removal_offers_no_undo_and_hints_name_the_right_place() {
    let workspace = Workspace::sample();
    workspace
        .run(&["correct", "hr/resume-screen", "Name it."])
        .succeeds();
    workspace.run(&["memory", "promote", "REFL-001"]).succeeds();
    let ran = workspace.run(&["forget", "REFL-001@user", "--for-good"]);
    ran.succeeds();
    assert!(!ran.stderr.contains("memctl undo"), "{ran:?}");
    workspace
        .run(&["undo", "nosuch", "--user-store"])
        .fails(2, "memctl undo --list --user-store");
    workspace
        .run(&["list", "--limit", "0"])
        .fails(2, "hint: memctl list --help");
    workspace
        .run(&["session", "progress", "latest", "--status", "x"])
        .fails(2, "hint: memctl session progress --help");
}

/// One sentence of a person, which the fields of the source documents repeat, is printed once.
#[test]
fn a_long_text_is_printed_once() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let text =
        "Build the whole web client from the top of the repository, never from its own folder";
    let ran = workspace.run(&["lesson", "add", text, "--command", "make web"]);
    let id = ran.succeeds().stdout.split(' ').next().unwrap().to_owned();
    let rule =
        "Before a review, run the suite of migrations against a copy of the production schema.";
    workspace.run(&["correct", rule]).succeeds();
    let waiting = workspace.json(&["review"]);
    let waiting = waiting["waiting"].as_array().unwrap();
    let candidate = waiting
        .iter()
        .find(|one| one["kind"] == "candidate")
        .unwrap();
    let candidate = candidate["id"].as_str().unwrap();
    for (args, text) in [
        (["search", text], text),
        (["why", candidate], &rule[..40]),
        (["approve", candidate], &rule[..40]),
    ] {
        let ran = workspace.run(&args);
        assert_eq!(ran.succeeds().stdout.matches(text).count(), 1, "{ran:?}");
    }
    let stored = workspace.json(&["show", &id]);
    assert_eq!(stored["record"]["data"]["semantic_description"], text);
    // Where a record holds is decided by `promote`.
    workspace
        .run(&["edit", &id, "--set", "scope=everywhere"])
        .fails(2, "memctl memory promote PROC-001");
}

/// A second import of a file is no error, and says that it had nothing new.
#[test]
fn a_repeated_import_says_that_all_is_there() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let source = Workspace::empty();
    source.run(&["correct", "Use tabs."]).succeeds();
    source
        .run(&["memory", "export", "--output", "all.jsonl"])
        .succeeds();
    let file = workspace.write("all.jsonl", source.read("all.jsonl"));
    let args = ["memory", "import", "--trust", file.to_str().unwrap()];
    let first = workspace.run(&args);
    assert!(
        !first.succeeds().stdout.contains("already there"),
        "{first:?}"
    );
    let second = workspace.run(&args);
    assert!(
        second
            .succeeds()
            .stdout
            .contains("All of it is already there."),
        "{second:?}"
    );
    workspace.run(&["hooks", "status", "gemini-cli"]).succeeds();
}

/// A server in the file of a project is shown, and its host is not among those without one.
#[test]
fn mcp_status_has_the_files_of_a_project() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let install = ["mcp", "install", "claude-code", "--project"];
    workspace.run(&install).succeeds();
    let status = workspace.run(&["mcp", "status"]);
    let page = &status.succeeds().stdout;
    assert!(page.contains("claude-code: installed ("), "{page}");
    assert!(page.contains(".mcp.json"), "{page}");
    let without = page.lines().find(|line| line.starts_with("no server in:"));
    assert!(
        without.is_some_and(|line| !line.contains("claude-code")),
        "{page}"
    );
}

#[test]
fn a_page_of_stats_replaces_no_file_of_others() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    workspace.write("notes.html", "my notes");
    workspace
        .run(&["stats", "--html", "notes.html"])
        .fails(2, "no page of memctl");
    assert_eq!(workspace.read("notes.html"), "my notes");
    for _ in 0..2 {
        workspace.run(&["stats", "--html", "stats.html"]).succeeds();
    }
}

#[test]
fn a_rule_about_files_is_typed() {
    let workspace = Workspace::empty();
    let rule = "Never edit web/dist by hand.";
    workspace
        .run(&["correct", rule, "--path", "^web/dist/"])
        .succeeds();
    let stored = workspace.json(&["show", "REFL-001"])["record"]["seen_by"].clone();
    assert_eq!(stored[0]["match"], "^web/dist/", "{stored}");
    workspace.run(&["approve", "REFL-001"]).succeeds();
    for option in ["seen_by=[]", "commands=[]"] {
        workspace
            .run(&["edit", "REFL-001", "--set", option])
            .fails(2, "--replaces REFL-001");
    }
}

/// The same output as that of a corrected run is accepted, and the correction is named.
#[test]
fn accepting_a_corrected_answer_again_names_its_correction() {
    let workspace = Workspace::sample();
    let run = [
        "run",
        "hr/resume-screen",
        "--input",
        "fixtures/sample_input.json",
        "--model",
        "offline",
    ];
    workspace.run(&run).succeeds();
    let words = "When screening for senior roles, weigh system design separately.";
    let correct = [
        "correct", "hr/resume-screen", words, "--execution-id", "latest",
    ];
    workspace.run(&correct).succeeds();
    workspace.run(&run).succeeds();
    let accepted = workspace.json(&["accept", "latest"]);
    let warnings = accepted["warnings"].to_string();
    assert!(warnings.contains("CORR-001"), "{accepted}");
}
