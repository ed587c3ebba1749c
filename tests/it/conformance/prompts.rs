//! Cases 23–31: the prompt, byte for byte.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{add_skill, over, python, rule, store};
use crate::workspace::Workspace;

const RULER: &str = "\n\n---\n\n";
const HEADING: &str = "## Learned Rules (from past corrections)\n\n";

/// What `memory prompt` prints, without the newline that ends it.
fn prompt(workspace: &Workspace, skill: &str) -> String {
    let ran = workspace.run(&["memory", "prompt", skill]);
    ran.succeeds().stdout.strip_suffix('\n').unwrap().to_owned()
}

fn with_rules(workspace: &Workspace, rules: &[Value]) {
    store(workspace, "reflexion_entries.json", rules);
}

/// A project with one skill of each of these paths, and no other layer.
fn bare(paths: &[&str]) -> Workspace {
    let workspace = Workspace::empty().trusted();
    for path in paths {
        add_skill(&workspace, path, &format!("Body of {path}."));
    }
    workspace
}

#[test]
fn case_23_the_prompt_with_rules_is_the_reference_one() {
    let workspace = bare(&["hr/resume-screener"]);
    workspace.write(
        "skills/WORKSPACE.md",
        "\n# Organisation\n\nNever log PII.\n\n",
    );
    workspace.write("skills/hr/DOMAIN.md", "# HR\nBe fair.\n");
    let mine = "hr/resume-screener";
    with_rules(
        &workspace,
        &[
            rule(
                "REFL-001",
                mine,
                &json!({ "confidence": 0.96, "rule": "ALWAYS check for system design.",
                "applies_when": "When executing hr/resume-screener.", "utility_score": 0.5 }),
            ),
            rule(
                "REFL-002",
                mine,
                &json!({ "confidence": 0.845, "rule": "Quote the résumé.", "utility_score": 0.9,
                "validated_by_test": true, "source": "synthesis" }),
            ),
            rule(
                "REFL-003",
                mine,
                &json!({ "rule": "Sunk.", "utility_score": 0.29 }),
            ),
            rule(
                "REFL-004",
                mine,
                &json!({ "confidence": 1.0, "rule": "No emoji.", "source": "correction" }),
            ),
            rule(
                "REFL-005",
                "hr/other",
                &json!({ "rule": "Of another skill." }),
            ),
        ],
    );
    assert_eq!(
        prompt(&workspace, mine),
        "# Organisation\n\nNever log PII.\n\n---\n\n# HR\nBe fair.\n\n---\n\n\
        ## Learned Rules (from past corrections)\n\n\
        - **REFL-002** (confidence: 84% [validated] [synthesis]): Quote the résumé.\n\
        - **REFL-001** (confidence: 96%): ALWAYS check for system design.\n  \
        _Applies when_: When executing hr/resume-screener.\n\
        - **REFL-004** (confidence: 100%): No emoji.\n\n---\n\n\
        Body of hr/resume-screener."
    );
}

#[test]
fn case_23_the_files_of_the_reference_make_its_prompt() {
    let workspace = over("reference");
    let text = prompt(&workspace, "hr/resume-screen");
    let rules = "- **REFL-001** (confidence: 94%): System design should be scored separately from coding skills.\n  \
        _Applies when_: When executing hr/resume-screen.\n\
        - **REFL-003** (confidence: 84% [validated] [synthesis]): Quote the résumé for each strength.\n  \
        _Applies when_: When executing hr/resume-screen.";
    assert!(
        text.contains(&[RULER, HEADING, rules, RULER].concat()),
        "{text}"
    );
}

#[test]
fn case_24_the_prompt_without_rules_is_the_files_one_after_the_other() {
    let workspace = Workspace::sample();
    let trimmed = |name: String| workspace.read(&name).trim().to_owned();
    let mut seen = 0;
    for domain in fs::read_dir(workspace.root().join("skills")).unwrap() {
        let domain = domain.unwrap();
        if !domain.file_type().unwrap().is_dir() {
            continue;
        }
        for skill in fs::read_dir(domain.path()).unwrap() {
            let skill = skill.unwrap();
            if !skill.file_type().unwrap().is_dir() {
                continue;
            }
            let domain = domain.file_name().into_string().unwrap();
            let path = format!("{domain}/{}", skill.file_name().into_string().unwrap());
            let file = trimmed(format!("skills/{path}/SKILL.md"));
            let body = file.splitn(3, "---\n").nth(2).unwrap().trim();
            let expected = [
                trimmed("skills/WORKSPACE.md".to_owned()),
                trimmed(format!("skills/{domain}/DOMAIN.md")),
                body.to_owned(),
            ]
            .join(RULER);
            assert_eq!(prompt(&workspace, &path), expected, "{path}");
            seen += 1;
        }
    }
    assert_eq!(seen, 6);
}

#[test]
fn case_25_a_missing_or_empty_layer_is_left_out_with_its_ruler() {
    let workspace = bare(&["hr/x"]);
    workspace.write("skills/WORKSPACE.md", "W");
    assert_eq!(prompt(&workspace, "hr/x"), "W\n\n---\n\nBody of hr/x.");
    workspace.write("skills/hr/DOMAIN.md", "");
    assert_eq!(prompt(&workspace, "hr/x"), "W\n\n---\n\nBody of hr/x.");
    workspace.write("skills/hr/DOMAIN.md", " \r\n\r\n");
    assert_eq!(prompt(&workspace, "hr/x"), "W\n\n---\n\nBody of hr/x.");
    workspace.write("skills/hr/DOMAIN.md", "a\r\nb\r\n");
    assert_eq!(
        prompt(&workspace, "hr/x"),
        "W\n\n---\n\na\nb\n\n---\n\nBody of hr/x."
    );
    workspace.write(
        "skills/hr/x/SKILL.md",
        "\n---\r\nname: x\r\ndescription: d\r\n---\r\nOne\r\n\r\n---\r\n\r\nTwo\r\n---\r\n",
    );
    assert_eq!(
        prompt(&workspace, "hr/x"),
        "W\n\n---\n\na\nb\n\n---\n\nOne\n\n---\n\nTwo\n---"
    );
}

#[test]
fn case_26_a_rule_never_reaches_a_skill_of_the_same_name() {
    let paths = [
        "hr/triage", "dev/triage", "productivity/triage", "hr/pre-triage",
    ];
    let workspace = bare(&paths);
    with_rules(
        &workspace,
        &[
            rule("REFL-001", "hr/triage", &json!({ "rule": "Secret of hr." })),
            rule("REFL-002", "triage", &json!({ "rule": "Of nobody." })),
            rule(
                "REFL-003",
                "/hr/triage/",
                &json!({ "rule": "Of nobody either." }),
            ),
        ],
    );
    assert!(prompt(&workspace, "hr/triage").contains("Secret of hr."));
    for path in &paths[1..] {
        assert_eq!(prompt(&workspace, path), format!("Body of {path}."));
    }
    assert!(!prompt(&workspace, "hr/triage").contains("nobody"));
}

#[test]
fn case_27_what_has_sunk_is_not_shown() {
    let workspace = bare(&["hr/x"]);
    let shown = |scores: &[Value]| {
        let rules: Vec<Value> = scores
            .iter()
            .enumerate()
            .map(|(n, score)| {
                let mut rule = rule(&format!("REFL-00{}", n + 1), "hr/x", &json!({}));
                if !score.is_null() {
                    rule["utility_score"] = score.clone();
                }
                rule
            })
            .collect();
        with_rules(&workspace, &rules);
        let document = workspace.json(&["memory", "prompt", "hr/x"]);
        let injected = document["injected"].as_array().unwrap().iter();
        injected
            .map(|i| i["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        shown(&[json!(0.29), json!(0.3), json!(null), json!(0.51)]),
        ["REFL-004", "REFL-003", "REFL-002"]
    );
    assert!(shown(&[json!(0.29), json!(0.0), json!(-1)]).is_empty());
    assert_eq!(prompt(&workspace, "hr/x"), "Body of hr/x.");
}

#[test]
fn case_28_the_newest_rule_is_always_shown() {
    let mut workspace = bare(&["hr/x"]);
    let rules: Vec<Value> = (1..=8)
        .map(|n| {
            let fields = json!({ "created_at": format!("2026-01-0{n}T00:00:00+00:00"),
                "rule": format!("Rule {n}: {}", "word ".repeat(40)),
                "utility_score": if n < 8 { 0.92 } else { 0.5 } });
            rule(&format!("REFL-00{n}"), "hr/x", &fields)
        })
        .collect();
    with_rules(&workspace, &rules);
    let document = workspace.json(&["memory", "prompt", "hr/x"]);
    assert_eq!(document["injected"].as_array().unwrap().len(), 8);
    assert_eq!(document["omitted"], json!([]));
    // The room for them is a setting, and even without any the newest is there.
    let config = workspace.json(&["config", "show"]);
    let names = config["settings"].as_array().unwrap().iter();
    assert_eq!(
        names.filter(|s| s["name"] == "prompt.rules_tokens").count(),
        1
    );
    workspace.set("MEMCTL_PROMPT_RULES_TOKENS", "0");
    let document = workspace.json(&["memory", "prompt", "hr/x"]);
    assert_eq!(
        document["injected"],
        json!([{ "id": "REFL-008", "kind": "reflexion" }])
    );
    assert_eq!(document["omitted"].as_array().unwrap().len(), 7);
    assert!(
        document["omitted"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("budget")
    );
}

#[test]
fn case_29_confidences_are_rounded_as_python_rounds_them() {
    let mut workspace = bare(&["hr/x"]);
    workspace.set("MEMCTL_PROMPT_RULES_TOKENS", "1000000");
    let confidences: Vec<Value> = (0..=400).map(|n| json!(f64::from(n) / 400.0)).collect();
    let rules: Vec<Value> = confidences
        .iter()
        .enumerate()
        .map(|(n, c)| rule(&format!("REFL-{n:03}"), "hr/x", &json!({ "confidence": c })))
        .collect();
    with_rules(&workspace, &rules);
    let text = prompt(&workspace, "hr/x");
    let Some(expected) = python(
        &workspace,
        "print(json.dumps([f\"- **{r['reflexion_id']}** (confidence: {r['confidence']:.0%}): \"
            for r in store.get_all_reflexions()]))",
    ) else {
        return;
    };
    for line in expected.as_array().unwrap() {
        assert!(text.contains(line.as_str().unwrap()), "{line}");
    }
}

#[test]
fn case_29_badges_stand_where_they_belong_and_odd_confidences_hide_no_rule() {
    let workspace = bare(&["hr/x"]);
    let check = |fields: Value, expected: &str| {
        with_rules(&workspace, &[rule("REFL-001", "hr/x", &fields)]);
        let block = format!("{HEADING}{expected}{RULER}Body of hr/x.");
        assert_eq!(prompt(&workspace, "hr/x"), block, "{fields}");
    };
    let item = |inside: &str| format!("- **REFL-001** (confidence: {inside}): Rule REFL-001.");
    check(json!({ "confidence": 0.96 }), &item("96%"));
    check(json!({ "confidence": 0.845 }), &item("84%"));
    check(
        json!({ "validated_by_test": true }),
        &item("90% [validated]"),
    );
    check(json!({ "source": "synthesis" }), &item("90% [synthesis]"));
    check(json!({ "source": "correction" }), &item("90%"));
    check(json!({ "source": "" }), &item("90%"));
    check(
        json!({ "source": "synthesis", "validated_by_test": true }),
        &item("90% [validated] [synthesis]"),
    );
    check(
        json!({ "applies_when": "When hiring." }),
        &(item("90%") + "\n  _Applies when_: When hiring."),
    );
    check(json!({ "confidence": "0.9" }), &item("90%"));
    check(json!({ "confidence": null }), &item("50%"));
    check(json!({ "confidence": {} }), &item("50%"));
}

#[test]
fn case_30_metadata_in_a_code_block_is_read_and_taken_out() {
    let workspace = Workspace::empty();
    let file = "skills/dev/rca/SKILL.md";
    workspace.write(
        file,
        "# Root cause\n\nFind it.\n\n## Skill Metadata\n\n```yaml\nskill:\n  name: auto-rca\n  \
        domain: devops\n  role: specialist\n```\n\n## Steps\n\nLook.\n",
    );
    assert_eq!(
        prompt(&workspace, "dev/rca"),
        "# Root cause\n\nFind it.\n\n## Steps\n\nLook."
    );
    // What the metadata calls it is told, and its rules are those of its directory.
    let ran = workspace.run(&["memory", "prompt", "dev/rca"]);
    assert!(ran.stderr.contains("`devops`"), "{ran:?}");

    workspace.write(file, "# Root cause\n\nFind it.\n");
    let ran = workspace.run(&["memory", "prompt", "dev/rca"]);
    ran.fails(2, "skills/dev/rca/SKILL.md").fails(2, "metadata");
    workspace.write(file, "---\n---\nFind it.\n");
    workspace
        .run(&["memory", "prompt", "dev/rca"])
        .fails(2, "metadata");
    workspace.write(
        file,
        "---\nname: rca\ndescription: d\nrole: boss\n---\nFind it.\n",
    );
    workspace
        .run(&["memory", "prompt", "dev/rca"])
        .fails(2, "role `boss`");
}

#[test]
fn case_31_the_nearest_layer_wins_and_none_lies_above_the_project() {
    let workspace = bare(&["hr/x"]);
    let is = |expected: &str| assert_eq!(prompt(&workspace, "hr/x"), expected);
    let above = workspace.root().parent().unwrap().to_owned();
    for name in ["WORKSPACE.md", "DOMAIN.md"] {
        fs::write(above.join(name), "Above.").unwrap();
        fs::write(workspace.home().join(name), "Home.").unwrap();
    }
    workspace.write("DOMAIN.md", "Of the root, where no domain is.");
    is("Body of hr/x.");
    workspace.write("WORKSPACE.md", "Root.");
    is("Root.\n\n---\n\nBody of hr/x.");
    workspace.write("skills/WORKSPACE.md", "Skills.");
    workspace.write("skills/DOMAIN.md", "All.");
    is("Skills.\n\n---\n\nAll.\n\n---\n\nBody of hr/x.");
    workspace.write("skills/hr/WORKSPACE.md", "Hr.");
    workspace.write("skills/hr/DOMAIN.md", "Domain.");
    is("Hr.\n\n---\n\nDomain.\n\n---\n\nBody of hr/x.");
    workspace.write("skills/hr/x/WORKSPACE.md", "");
    workspace.write("skills/hr/x/DOMAIN.md", "Own.");
    is("Own.\n\n---\n\nBody of hr/x.");
    // The same from a directory below, and with the skills named relatively.
    let ran = workspace
        .command()
        .current_dir(workspace.root().join("skills/hr"))
        .env("AGENTURA_SKILLS_DIR", Path::new("..").join("../skills"))
        .args(["memory", "prompt", "hr/x"])
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8(ran.stdout).unwrap(),
        "Own.\n\n---\n\nBody of hr/x.\n"
    );
}
