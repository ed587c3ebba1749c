//! Files of a rule that leaves: its guardrail and its tests go with it, and nobody else's text does.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{correct, files_below};
use crate::workspace::{Workspace, copy};

const SKILL: &str = "hr/resume-screen";
const GUARDRAILS: &str = "skills/hr/resume-screen/GUARDRAILS.md";
const CASE: &str = "skills/hr/resume-screen/tests/generated/test_correction_1.json";

/// A project with an execution, before any correction.
fn ran() -> Workspace {
    let mut workspace = Workspace::sample();
    workspace.set("MEMCTL_TESTS_EXPORT", "true");
    workspace.run(&["init"]).succeeds();
    workspace.json(&["run", SKILL, "--input", "fixtures/sample_input.json"]);
    workspace
}

/// Every file below the skills directory.
fn skills(workspace: &Workspace) -> BTreeMap<PathBuf, String> {
    let files = files_below(&workspace.root().join("skills")).into_iter();
    files
        .map(|file| (file.clone(), fs::read_to_string(&file).unwrap()))
        .collect()
}

fn forget(workspace: &Workspace, id: &str) -> Value {
    workspace.json(&["memory", "forget", id])
}

#[test]
fn a_forgotten_rule_leaves_the_files_as_they_were_and_undo_brings_them_back() {
    let workspace = ran();
    let before = skills(&workspace);
    correct(&workspace, "Never name competitors in the summary");
    let with_one = skills(&workspace);
    correct(&workspace, "Always state the years of experience");
    let with_two = skills(&workspace);
    let report = forget(&workspace, "REFL-002");
    assert_eq!(report["guardrails"], json!([GUARDRAILS]));
    assert_eq!(report["tests"].as_array().unwrap().len(), 3, "{report}");
    assert_eq!(report["warnings"], json!([]));
    assert!(skills(&workspace) == with_one);
    workspace.json(&["memory", "undo"]);
    assert!(skills(&workspace) == with_two);
    // The order does not matter, and the last test takes the helpers along.
    forget(&workspace, "REFL-001");
    assert!(!workspace.read(GUARDRAILS).contains("competitors"));
    assert!(workspace.read(GUARDRAILS).contains("years of experience"));
    forget(&workspace, "REFL-002");
    assert!(skills(&workspace) == before);
    workspace.json(&["memory", "undo"]);
    workspace.json(&["memory", "undo"]);
    assert!(skills(&workspace) == with_two);
}

#[test]
fn a_rule_forgotten_for_good_is_in_no_file_and_no_journal() {
    let workspace = ran();
    let before = skills(&workspace);
    correct(&workspace, "Never name competitors in the summary");
    let args = ["memory", "forget", "REFL-001", "--for-good"];
    workspace.json(&args);
    assert!(skills(&workspace) == before);
    let journal = workspace.read(".agentura/changes.jsonl");
    assert!(!journal.contains("GRD-"), "{journal}");
}

#[test]
fn windows_line_ends_and_sections_of_others_keep_their_bytes() {
    let workspace = ran();
    let own = "# Ours\r\n\r\nA word.\r\n\r\n---\r\n\r\n## GRD-001: by hand\r\n\r\n**Source**: a review\r\n";
    workspace.write(GUARDRAILS, own);
    correct(&workspace, "Never name competitors in the summary");
    correct(&workspace, "Always state the years of experience");
    let both = workspace.read(GUARDRAILS);
    assert!(!both.replace("\r\n", "").contains('\n'));
    forget(&workspace, "REFL-001");
    let one = workspace.read(GUARDRAILS);
    assert!(one.starts_with(own) && one.contains("## GRD-003") && !one.contains("CORR-001"));
    assert!(both.ends_with(&one[own.len()..]));
    forget(&workspace, "REFL-002");
    assert_eq!(workspace.read(GUARDRAILS), own);
}

#[test]
fn a_text_that_a_person_has_edited_stays_with_a_warning() {
    type Edit = fn(&str) -> String;
    let edits: [Edit; 3] = [
        |text| text.replace("learned from a correction", "reviewed"),
        |text| {
            text.replace(
                "**Source**: CORR-001\n",
                "**Source**: CORR-001\nSeen twice.\n",
            )
        },
        |text| {
            text.replace(
                "**Source**: CORR-001\n",
                "**Source**: CORR-001\n\nSeen twice.\n",
            )
        },
    ];
    for edit in edits {
        let workspace = ran();
        correct(&workspace, "Never name competitors in the summary");
        let edited = edit(&workspace.read(GUARDRAILS));
        assert_ne!(edited, workspace.read(GUARDRAILS));
        workspace.write(GUARDRAILS, &edited);
        let case = workspace
            .read(CASE)
            .replace("\"correction\": \"N", "\"correction\": \"Please n");
        assert_ne!(case, workspace.read(CASE));
        workspace.write(CASE, &case);
        let report = forget(&workspace, "REFL-001");
        let warnings = report["warnings"].to_string();
        for file in [GUARDRAILS, CASE] {
            assert!(warnings.contains(file), "{warnings}");
        }
        assert!(report.get("guardrails").is_none() && report.get("tests").is_none());
        assert_eq!(workspace.read(GUARDRAILS), edited);
        assert_eq!(workspace.read(CASE), case);
    }
}

#[cfg(unix)]
#[test]
fn a_link_and_a_read_only_file_stay_and_the_rule_is_gone_all_the_same() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    for is_link in [true, false] {
        let workspace = ran();
        correct(&workspace, "Never name competitors in the summary");
        let path = workspace.root().join(GUARDRAILS);
        let text = workspace.read(GUARDRAILS);
        if is_link {
            let target = workspace.root().join("elsewhere.md");
            fs::rename(&path, &target).unwrap();
            symlink(&target, &path).unwrap();
        } else {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        }
        let report = forget(&workspace, "REFL-001");
        let warnings = report["warnings"].to_string();
        assert!(warnings.contains("stays as it was"), "{warnings}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(
            workspace.stored("reflexion_entries.json")["entries"],
            json!([])
        );
    }
}

#[test]
fn a_skill_that_is_not_there_any_more_hinders_nothing() {
    let workspace = ran();
    correct(&workspace, "Never name competitors in the summary");
    fs::remove_dir_all(workspace.root().join("skills/hr/resume-screen")).unwrap();
    assert_eq!(forget(&workspace, "REFL-001")["warnings"], json!([]));
    fs::remove_dir_all(workspace.root().join("skills")).unwrap();
    workspace.json(&["memory", "undo"]);
    assert_eq!(forget(&workspace, "REFL-001")["warnings"], json!([]));
}

#[test]
fn a_merged_rule_keeps_its_test_and_loses_its_guardrail() {
    let workspace = ran();
    correct(&workspace, "Never name competitors in the summary");
    let with_one = workspace.read(GUARDRAILS);
    correct(&workspace, "Always state the years of experience");
    let before = skills(&workspace);
    let args = ["memory", "conflicts", "--merge", "REFL-001", "REFL-002"];
    let report = workspace.json(&args);
    assert_eq!(report["guardrails"], json!([GUARDRAILS]));
    assert_eq!(workspace.read(GUARDRAILS), with_one);
    workspace.read(&CASE.replace("_1", "_2"));
    workspace.json(&["memory", "undo"]);
    assert!(skills(&workspace) == before);
    // The rule that holds takes the tests of both along.
    workspace.json(&args);
    forget(&workspace, "REFL-001");
    for number in ["_1", "_2"] {
        let case = workspace.root().join(CASE.replace("_1", number));
        assert!(!case.exists());
    }
}

#[test]
fn a_superseded_rule_loses_its_guardrail() {
    let workspace = ran();
    correct(&workspace, "Always name competitors in the summary");
    let mut args = crate::support::correction("Never name competitors in the summary").to_vec();
    args.extend(["--replaces", "REFL-001"]);
    workspace.json(&args);
    let text = workspace.read(GUARDRAILS);
    assert!(!text.contains("CORR-001") && text.contains("CORR-002"));
    workspace.json(&["memory", "undo"]);
    let text = workspace.read(GUARDRAILS);
    assert!(text.contains("CORR-001") && !text.contains("CORR-002"));
}

#[test]
fn an_edited_rule_rewords_its_guardrail() {
    let workspace = ran();
    correct(&workspace, "Never name competitors in the summary");
    let before = workspace.read(GUARDRAILS);
    let rule = workspace.stored("reflexion_entries.json")["entries"][0]["rule"].clone();
    let edit = |text: &str| {
        let set = format!("rule={text}");
        workspace.json(&["memory", "edit", "REFL-001", "--set", &set])
    };
    let report = edit("NEVER name a rival.");
    assert_eq!(report["guardrails"], json!([GUARDRAILS]));
    assert_eq!(report["warnings"], json!([]));
    let old = format!("**Rule**: {}", rule.as_str().unwrap());
    let after = before.replace(&old, "**Rule**: NEVER name a rival.");
    assert_ne!(after, before);
    assert_eq!(workspace.read(GUARDRAILS), after);
    workspace.json(&["memory", "undo"]);
    assert_eq!(workspace.read(GUARDRAILS), before);
    let edited = before.replace("learned from a correction", "reviewed");
    workspace.write(GUARDRAILS, &edited);
    let warnings = edit("NEVER name a rival.")["warnings"].to_string();
    assert!(warnings.contains(GUARDRAILS), "{warnings}");
    assert_eq!(workspace.read(GUARDRAILS), edited);
}

/// The skill folder of another project, in which `said` was corrected, over the one of this project.
fn copy_skill(workspace: &Workspace, said: &str) {
    let mut other = ran();
    other.set("MEMCTL_NOW", "2026-02-21T10:00:00.5+00:00");
    correct(&other, said);
    for name in ["GUARDRAILS.md", "tests"] {
        let name = format!("skills/{SKILL}/{name}");
        let (from, to) = (other.root().join(&name), workspace.root().join(&name));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).unwrap();
        }
    }
}

#[test]
fn a_skill_that_was_copied_keeps_what_the_rules_of_its_project_wrote() {
    let workspace = ran();
    copy_skill(&workspace, "Never name competitors in the summary");
    let foreign = workspace.read(CASE);
    let report = correct(&workspace, "Always state the years of experience");
    assert_eq!(report["correction_id"], "CORR-002", "{report}");
    assert_eq!(report["guardrails"], json!([GUARDRAILS]));
    let tests = report["tests"].to_string();
    assert!(tests.contains("test_correction_2.json"), "{tests}");
    let guardrails = workspace.read(GUARDRAILS);
    assert!(guardrails.contains("competitors") && guardrails.contains("years of experience"));
    // The case names REFL-001, which is another rule here: it is no test of that one, and does not go with it.
    let report = workspace.json(&["test", SKILL, "--allow-skipped"]);
    let case = &report["cases"][0];
    assert_eq!(case["id"], "test_correction_1");
    assert_eq!(
        (&case["status"], &case["reflexion_id"]),
        (&json!("skipped"), &Value::Null),
        "{case}"
    );
    assert!(
        case["reason"].as_str().unwrap().contains("another memory"),
        "{case}"
    );
    assert_eq!(report["cases"][1]["reflexion_id"], "REFL-001");
    forget(&workspace, "REFL-001");
    assert_eq!(workspace.read(CASE), foreign);
    assert!(workspace.read(GUARDRAILS).contains("competitors"));
}

#[test]
fn a_test_that_was_copied_over_one_of_the_same_number_is_not_overwritten() {
    let workspace = ran();
    let said = "Always state the years of experience";
    correct(&workspace, said);
    copy_skill(&workspace, "Never name competitors in the summary");
    let foreign = workspace.read(CASE);
    let report = correct(&workspace, said);
    assert_eq!(report["correction_id"], "CORR-001");
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("is a test of another memory"), "{report}");
    assert_eq!(workspace.read(CASE), foreign);
}
