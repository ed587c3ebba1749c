//! Cases 10, 11, 32–35, 38, 40 and 41: looking at a store, also a missing or a damaged one.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use super::{add_skill, correct, everything, execution, over, python, rule, store};
use crate::support::{EVER, RUN, correction, lines};
use crate::workspace::{Ran, Workspace};

const SKILL: &str = "hr/resume-screen";

/// The first lines that `watch` prints. Once it has printed one, `act` is called; the program is
/// interrupted when all are there.
pub(super) fn watched(
    workspace: &Workspace,
    arguments: &[&str],
    count: usize,
    act: impl FnOnce(),
) -> Vec<String> {
    let mut child = workspace
        .command()
        .args(["watch", "--kind", "executions"])
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = lines(child.stdout.take().unwrap());
    let next = || lines.recv_timeout(EVER);
    let mut seen: Vec<String> = next().into_iter().collect();
    act();
    while seen.len() < count {
        let Ok(line) = next() else { break };
        seen.push(line);
    }
    #[cfg(unix)]
    crate::support::interrupt(&child);
    // Windows has no such signal to one process.
    #[cfg(windows)]
    child.kill().unwrap();
    seen.extend(lines.iter());
    let ran = Ran::of(child.wait_with_output().unwrap());
    let code = if cfg!(windows) { 1 } else { 130 };
    assert_eq!((ran.code, ran.stderr.as_str()), (code, ""), "{seen:?}");
    assert_eq!(seen.len(), count, "{seen:?}");
    seen
}

fn status_line(workspace: &Workspace) -> String {
    let ran = workspace.run(&["memory", "status"]);
    let mut lines = ran.succeeds().stdout.lines();
    let counts = lines.find(|line| line.starts_with("Executions: "));
    counts.unwrap().to_owned()
}

/// The ids that a search finds, best first. Weak matches, which stand after all others, are none.
fn found(workspace: &Workspace, arguments: &[&str]) -> Vec<String> {
    let document = workspace.json(&[&["memory", "search"], arguments].concat());
    let results = document["results"].as_array().unwrap();
    let is_weak = |found: &Value| found["weak"] == true;
    let strong = results.iter().take_while(|found| !is_weak(found)).count();
    let (strong, weak) = results.split_at(strong);
    assert!(weak.iter().all(is_weak), "{document}");
    let ids = strong.iter().map(|found| found["id"].as_str().unwrap());
    ids.map(str::to_owned).collect()
}

#[test]
fn case_10_a_store_that_is_not_there_is_empty() {
    const ZEROS: &str = "Executions: 0  |  Corrections: 0  |  Reflexions: 0  |  Tests: 0";
    let mut workspace = Workspace::empty();
    let before = everything(&workspace);
    assert_eq!(status_line(&workspace), ZEROS);
    for arguments in [&["memory", "list"][..], &["memory", "search", "x"]] {
        workspace.run(arguments).succeeds();
    }
    assert_eq!(everything(&workspace), before);
    fs::create_dir(workspace.root().join(".agentura")).unwrap();
    assert_eq!(status_line(&workspace), ZEROS);
    for empty in [
        "{\"entries\": []}",
        "{\n  \"entries\": [\n  ]\n}\n",
        "{\"entries\":[]}",
    ] {
        workspace.write(".agentura/episodic_memory.json", empty);
        assert_eq!(status_line(&workspace), ZEROS, "{empty}");
    }
    // An empty variable is none; one that names a missing directory names an empty store.
    let one = execution("EXEC-1", SKILL, &json!({}), &json!({}));
    store(&workspace, "episodic_memory.json", &[one]);
    workspace.set("AGENTURA_KNOWLEDGE_DIR", "");
    assert_eq!(status_line(&workspace), ZEROS.replacen('0', "1", 1));
    workspace.set("AGENTURA_KNOWLEDGE_DIR", "not/there");
    assert_eq!(status_line(&workspace), ZEROS);
    assert!(!workspace.root().join("not").exists());
}

#[test]
fn case_11_a_directory_below_uses_the_store_of_the_project() {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    let below = workspace.root().join("src/deep");
    fs::create_dir_all(&below).unwrap();
    let run = |arguments: &[&str]| {
        let command = &mut workspace.command();
        Ran::of(
            command
                .current_dir(&below)
                .args(arguments)
                .output()
                .unwrap(),
        )
    };
    run(&["run", SKILL, "--input", "../../fixtures/sample_input.json"]).succeeds();
    run(&correction("Always greet.")).succeeds();
    assert_eq!(fs::read_dir(&below).unwrap().count(), 0);
    assert!(!workspace.root().join("src/.agentura").exists());
    assert_eq!(
        status_line(&workspace),
        "Executions: 1  |  Corrections: 1  |  Reflexions: 1  |  Tests: 1"
    );
}

#[test]
fn case_32_status_has_the_lines_of_the_seed() {
    let workspace = over("reference");
    let tests = "skills/hr/resume-screen/tests/generated";
    workspace.write(&format!("{tests}/test_correction_1.py"), "");
    workspace.write(&format!("{tests}/test_correction_2.py"), "");
    workspace.write(&format!("{tests}/conftest.py"), "");
    workspace.write(
        &format!("{tests}/corrections.yaml"),
        "description: Generated\ntests:\n- assert:\n  - type: is-json\n  vars: {}\n- vars: {}\n",
    );
    workspace.write(
        "skills/dev/code-review/tests/generated/test_promptfoo.yaml",
        "tests:\n  - vars:\n      input: '{}'\n",
    );
    let ran = workspace.run(&["memory", "status"]);
    assert!(
        ran.succeeds().stdout.contains(&format!(
            "\nStore: {}\nExecutions: 5  |  Corrections: 2  |  Reflexions: 3  |  Tests: 5\n",
            Workspace::store_name()
        )),
        "{ran:?}"
    );
}

#[test]
fn case_33_search_finds_words_of_any_kind_and_no_keys() {
    let workspace = Workspace::sample();
    let said =
        |n: usize, text: &str| rule(&format!("REFL-{n:03}"), SKILL, &json!({ "rule": text }));
    store(
        &workspace,
        "reflexion_entries.json",
        &[
            said(1, "Never call a plan naïve."),
            said(2, "日本語の履歴書を読むこと。"),
            said(3, "A total of 72 is enough in the UK."),
            said(4, "Weigh system design; it is smart to do so."),
            said(5, "Résumé gaps are explained, не осуждаются."),
        ],
    );
    let check = |query: &str, expected: &[&str]| {
        assert_eq!(found(&workspace, &[query]), expected, "{query}");
    };
    check("naïve", &["REFL-001"]);
    check("日本語", &["REFL-002"]);
    check("履歴書", &["REFL-002"]);
    check("осуждаются", &["REFL-005"]);
    check("72", &["REFL-003"]);
    check("uk", &["REFL-003"]);
    check("system, design!", &["REFL-004"]);
    check("(SYSTEM) design?", &["REFL-004"]);
    check("art", &[]);
    for key in [
        "confidence", "reflexion_id", "validated_by_test", "created_at", "utility_score",
    ] {
        check(key, &[]);
    }
    check("", &[]);
    check("!?", &[]);
    assert_eq!(found(&workspace, &["naïve 72 system", "-n", "1"]).len(), 1);
    assert_eq!(found(&workspace, &["naïve 72 system", "-n", "3"]).len(), 3);
    for limit in ["0", "-1", "x", "99999999999"] {
        workspace
            .run(&["memory", "search", "72", "-n", limit])
            .fails(2, &format!("'{limit}'"));
    }
    let nothing = workspace.run(&["memory", "search", "zzyzx", "--min-score", "0.1"]);
    assert!(nothing.succeeds().stdout.contains("\"zzyzx\""));
}

#[test]
fn case_34_what_was_learnt_comes_before_what_it_was_learnt_from() {
    let workspace = Workspace::sample();
    let words = "quarterly revenue";
    let mut logged = execution("EXEC-1", SKILL, &json!({ "text": words }), &json!({}));
    logged["model_used"] = json!("");
    store(&workspace, "episodic_memory.json", &[logged]);
    let correction = json!({ "correction_id": "CORR-001", "execution_id": "EXEC-1", "skill": SKILL,
        "timestamp": "2026-02-20T12:43:41+00:00", "original_output": {}, "user_correction": words });
    store(&workspace, "corrections.json", &[correction]);
    let mut of_rule = rule("REFL-001", SKILL, &json!({ "rule": words }));
    // A field of this name must not take over the ranking.
    of_rule["score"] = json!(99);
    store(&workspace, "reflexion_entries.json", &[of_rule]);
    assert_eq!(
        found(&workspace, &[words]),
        ["REFL-001", "CORR-001", "EXEC-1"]
    );
    assert_eq!(
        found(&workspace, &[words, "--kind", "correction"]),
        ["CORR-001"]
    );
    let document = workspace.json(&["memory", "search", words]);
    let first = &document["results"][0];
    assert_eq!(first["kind"], "reflexion");
    assert_eq!(first["skill"], SKILL);
    assert_eq!(first["snippet"], words);
    assert!(first["score"].as_f64().is_some_and(|score| score < 99.0));
}

#[test]
fn case_35_a_scope_sees_and_changes_only_its_own() {
    let workspace = Workspace::sample();
    add_skill(&workspace, "finance/x", "Count.");
    let skills = [SKILL, "finance/x", "hr", ""];
    let executions: Vec<Value> = (1..)
        .zip(skills)
        .map(|(n, skill)| {
            execution(
                &format!("EXEC-{n}"),
                skill,
                &json!({ "t": "word" }),
                &json!({}),
            )
        })
        .collect();
    store(&workspace, "episodic_memory.json", &executions);
    let rules: Vec<Value> = (1..)
        .zip(skills)
        .map(|(n, skill)| rule(&format!("REFL-00{n}"), skill, &json!({ "rule": "A word." })))
        .collect();
    store(&workspace, "reflexion_entries.json", &rules);
    drop(workspace.command());
    let before = everything(&workspace);

    // Reading leaves out what is not its own.
    let check = |scope: &str, executions: &[&str], found_rules: &[&str]| {
        let listed = workspace.json(&["memory", "list", "executions", "--scope", scope]);
        let ids: Vec<_> = listed["records"].as_array().unwrap().iter().rev().collect();
        let ids: Vec<_> = ids.iter().map(|r| r["id"].as_str().unwrap()).collect();
        assert_eq!(ids, executions, "{scope}");
        assert_eq!(listed["total"], executions.len(), "{scope}");
        let status = workspace.json(&["memory", "status", "--scope", scope]);
        assert_eq!(status["executions"], executions.len(), "{scope}");
        assert_eq!(status["reflexions"], found_rules.len(), "{scope}");
        let mut found = found(&workspace, &["word", "--kind", "rule", "--scope", scope]);
        found.sort();
        assert_eq!(found, found_rules, "{scope}");
    };
    check("hr", &["EXEC-1"], &["REFL-001"]);
    check("finance", &["EXEC-2"], &["REFL-002"]);
    check(
        "hr,finance",
        &["EXEC-1", "EXEC-2"],
        &["REFL-001", "REFL-002"],
    );
    check(
        "*",
        &["EXEC-1", "EXEC-2", "EXEC-3", "EXEC-4"],
        &["REFL-001", "REFL-002", "REFL-003", "REFL-004"],
    );
    for nobody in ["", " ", ",", "Hr", "h", "hr/resume-screen"] {
        check(nobody, &[], &[]);
    }

    // Acting on another domain is not permitted; what is not seen is not there.
    let said = ["--correction", "Always count twice."];
    for scope in ["hr", ""] {
        let scoped = |arguments: &[&str]| workspace.run(&[arguments, &["--scope", scope]].concat());
        scoped(&["run", "finance/x"]).fails(5, "finance/x");
        scoped(&["memory", "prompt", "finance/x"]).fails(5, "finance/x");
        let correct = ["correct", "finance/x", "--execution-id", "EXEC-2"];
        scoped(&[&correct[..], &said].concat()).fails(5, "finance/x");
        // By the name of a skill that it may see, the execution of another is not to be had.
        if scope == "hr" {
            let correct = ["correct", SKILL, "--execution-id", "EXEC-2"];
            scoped(&[&correct[..], &said].concat()).fails(2, "EXEC-2");
        }
        for foreign in ["EXEC-2", "EXEC-3", "EXEC-4"] {
            scoped(&["accept", foreign]).fails(2, foreign);
            scoped(&["reject", foreign]).fails(2, foreign);
            scoped(&["memory", "show", foreign]).fails(2, foreign);
        }
        for foreign in ["REFL-002", "REFL-003", "REFL-004"] {
            scoped(&["memory", "show", foreign]).fails(2, foreign);
            scoped(&["memory", "forget", foreign]).fails(2, foreign);
        }
    }
    assert_eq!(everything(&workspace), before);
    let ran = workspace.run(&["memory", "forget", "REFL-002", "--scope", "*"]);
    ran.succeeds();
}

#[test]
fn case_38_a_damaged_file_is_named_and_hides_nothing_else() {
    let workspace = over("reference");
    let path = workspace.memory("corrections.json");
    let whole = fs::read_to_string(&path).unwrap();
    let damaged = whole.replacen("\"skill\": \"hr/resume-screen\"", "\"skill\": oops", 1);
    let line = 1 + damaged[..damaged.find("oops").unwrap()]
        .matches('\n')
        .count();
    fs::write(&path, &damaged).unwrap();

    let status = workspace.run(&["memory", "status"]);
    let said = &status.succeeds().stdout;
    assert!(
        said.contains("Executions: 5") && said.contains("Reflexions: 3"),
        "{said}"
    );
    assert!(
        said.contains("`corrections.json` has damaged parts"),
        "{said}"
    );
    workspace.run(&["memory", "prompt", SKILL]).succeeds();
    workspace.run(&RUN).succeeds();
    assert_eq!(
        found(&workspace, &["utils.py", "--kind", "correction"]),
        ["CORR-002"]
    );
    let listed = workspace.run(&["memory", "list", "corrections"]);
    assert!(listed.succeeds().stdout.contains("CORR-002"));
    assert!(listed.stderr.contains("corrections.json"), "{listed:?}");

    let doctor = workspace.run(&["doctor"]);
    assert_eq!(doctor.code, 1);
    let place = doctor
        .stdout
        .lines()
        .find(|l| l.contains("corrections.json"))
        .unwrap();
    // The entry begins some lines above the word that is no JSON; both are a position.
    let named: Vec<usize> = place
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|n| n.parse().ok())
        .collect();
    assert!(named.iter().any(|n| (3..=line).contains(n)), "{place}");
    assert!(doctor.stdout.contains("memctl doctor --repair"));
    assert_eq!(fs::read_to_string(&path).unwrap(), damaged);

    // A correction can still be given, and the damage is not written over.
    let ran = correct(
        &workspace, SKILL, "EXEC-20260301091500", "Always greet first.",
    );
    assert_eq!(ran.succeeds().document()["correction_id"], "CORR-003");
    assert!(
        fs::read_to_string(&path)
            .unwrap()
            .contains("\"skill\": oops")
    );

    // The rule that came of it now comes from nothing, and so not all is well.
    let ran = workspace.run(&["doctor", "--repair", "--json"]);
    assert_eq!(ran.code, 1);
    let repaired = ran.document();
    assert_eq!(repaired["dangling"].as_array().unwrap().len(), 1);
    let copy = repaired["repaired"][0]["copy"].as_str().unwrap();
    assert!(
        fs::read_to_string(copy)
            .unwrap()
            .contains("\"skill\": oops")
    );
    let left = workspace.json(&["memory", "list", "corrections"]);
    let ids: Vec<_> = left["records"].as_array().unwrap().iter().collect();
    let ids: Vec<_> = ids.iter().map(|c| c["id"].clone()).collect();
    assert_eq!(ids, ["CORR-003", "CORR-002"]);
}

#[test]
fn case_38_what_was_removed_on_purpose_is_no_damage() {
    let workspace = over("reference");
    let forget = |id| workspace.run(&["memory", "forget", id]).succeeds().code;
    forget("CORR-001");
    forget("EXEC-20260301092011-a1d3e8");
    workspace.run(&["doctor"]).succeeds();
    // What somebody cut out of the file is missed, and no repair brings it back.
    let corrections = json!({ "corrections": [] }).to_string();
    workspace.write(".agentura/corrections.json", corrections);
    let ran = workspace.run(&["doctor"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.stdout
            .contains("REFL-002 comes from CORR-002, which is not there")
    );
    assert!(!ran.stdout.contains("REFL-001") && !ran.stdout.contains("--repair"));
}

#[test]
fn case_38_a_file_cut_short_at_any_line_keeps_what_is_whole() {
    let workspace = over("reference");
    let path = workspace.memory("episodic_memory.json");
    let whole = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    for cut in [0, 1, 2, 5, 20, 40, lines.len() - 3, lines.len() - 1] {
        let torn = lines[..cut].join("\n");
        fs::write(&path, &torn).unwrap();
        let complete = torn.matches("\n    }").count();
        let listed = workspace.json(&["memory", "list", "executions"]);
        assert_eq!(
            listed["records"].as_array().unwrap().len(),
            complete,
            "{cut}"
        );
        let status = workspace.json(&["memory", "status"]);
        assert_eq!(status["reflexions"], 3);
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            torn,
            "reading mends nothing"
        );
        let ran = workspace.run(&[&RUN[..], &["--json"]].concat());
        if ran.code == 0 {
            let id = ran.document()["execution_id"].clone();
            let stored = workspace.json(&["memory", "list", "executions"]);
            assert_eq!(stored["records"].as_array().unwrap().len(), complete + 1);
            assert_eq!(stored["records"][0]["id"], id);
        } else {
            // Where not even the list has begun, nothing can be added to it.
            assert_eq!(ran.code, 3, "{cut}: {ran:?}");
            let error = &ran.document()["error"];
            assert!(
                error["message"]
                    .as_str()
                    .unwrap()
                    .contains("episodic_memory.json")
            );
            assert_eq!(error["hint"], "memctl doctor --repair");
            assert_eq!(fs::read_to_string(&path).unwrap(), torn);
            let ran = workspace.run(&["doctor", "--repair"]);
            assert!(ran.stdout.starts_with("repaired "), "{ran:?}");
            workspace.run(&RUN).succeeds();
        }
    }
}

#[test]
fn case_40_watch_shows_every_outcome_and_what_python_adds() {
    let workspace = Workspace::sample();
    let outcomes = [
        "accepted", "error", "rejected", "pending_review", "pending_approval", "approved",
        "executed", "approved_failed", "corrected",
    ];
    let mut logged: Vec<Value> = (1..)
        .zip(outcomes)
        .map(|(n, outcome)| {
            let mut entry = execution(&format!("EXEC-{n}"), SKILL, &json!({}), &json!({}));
            entry["outcome"] = json!(outcome);
            entry
        })
        .collect();
    logged[1]["cost_usd"] = json!(null);
    logged[1]["latency_ms"] = json!(null);
    logged[2]["skill"] = json!("hr/resume-screen-2");
    store(&workspace, "episodic_memory.json", &logged);
    let append = || {
        python(
            &workspace,
            "entry = dict(store.get_executions()[0], execution_id='EXEC-20260220130000-0a1b2c')
store.log_execution(entry); print(1)",
        )
        .is_some()
    };
    let has_python = append();
    let added = usize::from(has_python);

    let lines = watched(&workspace, &[], outcomes.len() + 2 * added, || {
        if has_python {
            python(
                &workspace,
                "entry = dict(store.get_executions()[0], execution_id='EXEC-20260220130001-ffffff')
store.log_execution(entry); print(1)",
            );
        }
    });
    for (line, outcome) in lines.iter().zip(outcomes) {
        assert_eq!(line.split("  ").nth(2), Some(outcome), "{line}");
    }
    assert_eq!(
        lines[0],
        "EXEC-1  hr/resume-screen  accepted  $0.0093  1.1s  claude-haiku-4-5  2026-02-20T12:43:41"
    );
    assert!(lines[1].contains("  –  –  "), "{}", lines[1]);
    if has_python {
        let last = lines.last().unwrap();
        assert!(last.starts_with("EXEC-20260220130001-ffffff"), "{last}");
    }
    // Only this skill; only the newest of it.
    let of_skill = ["--skill", "hr/resume-screen-2"];
    let lines = watched(&workspace, &of_skill, 1, || {});
    assert!(lines[0].starts_with("EXEC-3 "), "{lines:?}");
    let newest = watched(&workspace, &["-n", "2", "--json"], 2, || {});
    let newest: Value = serde_json::from_str(&newest[1]).unwrap();
    assert_eq!(
        newest["outcome"],
        if has_python { "accepted" } else { "corrected" }
    );
}

#[test]
fn case_41_a_guardrail_goes_where_guardrails_are_kept_and_nowhere_else() {
    let marker = "\n## When to Add New Guardrails\n\nWhenever.\n";
    let check = |skills: &[(&str, &str)], expected: &[&str]| {
        let workspace = Workspace::empty();
        add_skill(&workspace, "d/s", "Echo.");
        for (file, text) in skills {
            workspace.write(file, text);
        }
        let logged = execution("EXEC-1", "d/s", &json!({}), &json!({ "a": 1 }));
        store(&workspace, "episodic_memory.json", &[logged]);
        let made = correct(&workspace, "d/s", "EXEC-1", "Always greet first.").document();
        assert_eq!(made["guardrails"], json!(expected));
        for (file, before) in skills {
            let after = workspace.read(file);
            // Everything that was there is there, around one new section.
            let (head, tail) = before.split_once(marker).unwrap_or((before, ""));
            let tail = if before.contains(marker) {
                marker.to_owned() + tail
            } else {
                String::new()
            };
            assert!(
                after.starts_with(head.trim_end()) && after.ends_with(&tail),
                "{after}"
            );
            assert_eq!(
                after.matches("\n## GRD-").count(),
                before.matches("\n## GRD-").count() + 1
            );
            assert_eq!(after.matches("**Source**: CORR-001\n").count(), 1);
        }
        for file in [
            "skills/GUARDRAILS.md",
            "skills/d/GUARDRAILS.md",
            "skills/d/s/GUARDRAILS.md",
        ] {
            let given = skills.iter().any(|(name, _)| *name == file) || expected.contains(&file);
            assert_eq!(workspace.root().join(file).exists(), given, "{file}");
        }
    };
    let (own, domain) = ("skills/d/s/GUARDRAILS.md", "skills/d/GUARDRAILS.md");
    let with_marker = format!("# G\n\n## GRD-007: Old\n\nText.\n{marker}");
    // The skill's own file is made where there is none.
    check(&[], &[own]);
    check(&[(own, "# G\n")], &[own]);
    check(&[(domain, "# G\n\n## GRD-001: Old\n")], &[domain]);
    check(&[(own, &with_marker), (domain, "")], &[own, domain]);
}
