//! Regression cases as tests of other tools: the files as real Python, YAML and JavaScript parsers
//! read them, and results of the real `DeepEval` and Promptfoo where they are installed.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::path::{Path, PathBuf};
use std::process::Command;

use memctl::rules::regression::case::Case;
use memctl::rules::regression::export;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::workspace::{Ran, Workspace};

const SKILL: &str = "hr/resume-screen";
const DIRECTORY: &str = "skills/hr/resume-screen/tests/generated";
/// The program, if it runs at all; else the test says that it was skipped.
fn program(name: &str) -> Option<PathBuf> {
    let installed = Path::new(env!("CARGO_BIN_EXE_memctl"))
        .ancestors()
        .nth(2)
        .unwrap()
        .join("clients")
        .join(name);
    let path = if name.contains('/') {
        installed
    } else {
        PathBuf::from(name)
    };
    match Command::new(&path).arg("--version").output() {
        Ok(output) if output.status.success() => Some(path),
        other => {
            println!("skipped: `{}` does not run: {other:?}", path.display());
            None
        }
    }
}

fn ran(command: &mut Command) -> Ran {
    Ran::of(command.output().unwrap())
}

/// Text that has broken generators before, and any other.
fn nasty() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "{{x}}", "{{env.HOME}}", "{% if %}", "{#", "{{{", "\"\"\"", "'''", "\\", "\\n", "\n",
        "\r\n", "\t", "\u{0}", "\u{1b}[1m", "\u{7f}", "\u{85}", "\u{2028}", "\u{feff}", "\u{fffe}",
        "\u{1f600}", "\u{10ffff}", "true", "null", "NaN", "- a: b", "# c", ": ", "''", "${HOME}",
        "file://x", "日本", "]", "}", "%s", "{0}", "<!--", "*a", "&b", "!t", "|", ">", "@", "`",
    ]);
    let piece = prop_oneof![known.prop_map(str::to_owned), ".{0,8}"];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn nasty_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        nasty().prop_map(Value::String),
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(|n| json!(n)),
        any::<i32>().prop_map(|n| json!(f64::from(n) / 8.0)),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((nasty(), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Reads the generated files with real parsers, and compares them with their source.
const READER: &str = r#"
import ast, json, sys
try:
    import yaml
except ImportError:
    yaml = None
for case in json.load(open("made.json")):
    tree = ast.parse(case["python"])
    values = {n.targets[0].id: n.value for n in tree.body
              if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)}
    names = {"null": None, "true": True, "false": False}
    found = {name: eval(compile(ast.Expression(values[name]), "", "eval"), dict(names))
             for name in ["INPUT", "CORRECTION"]}
    made = case["case"]
    for name, key in [("INPUT", "input"), ("CORRECTION", "correction")]:
        assert found[name] == made.get(key), (name, found[name], made.get(key))
    if yaml:
        test = yaml.safe_load(case["yaml"])["tests"][0]
        assert json.loads(test["vars"]["input"]) == made["input"], test
        asserted = [a["config"] for a in test["assert"]]
        assert asserted == [{"skill": made["skill"], "case": "test_correction_1"}], asserted
print("yaml" if yaml else "skipped: Python has no yaml")
"#;

#[test]
fn text_of_a_correction_is_data_in_every_form() {
    let Some(python) = program("python3") else {
        return;
    };
    let workspace = Workspace::empty();
    let mut runner = TestRunner::deterministic();
    let mut made = Vec::new();
    for number in 1..=200 {
        let mut value = |strategy: &dyn Fn(&mut TestRunner) -> Value| strategy(&mut runner);
        let text =
            |runner: &mut TestRunner| Value::String(nasty().new_tree(runner).unwrap().current());
        let case = json!({
            "id": "", "skill": SKILL, "correction_id": format!("CORR-{number}"), "reflexion_id": "REFL-1",
            "correction": value(&text), "input": value(&|runner| nasty_json().new_tree(runner).unwrap().current()),
            "assertions": [{"type": "contains", "path": "$", "text": value(&text), "said": "s"},
                {"type": "equals", "path": "$.a", "value": value(&|runner| nasty_json().new_tree(runner).unwrap().current()), "said": "s"}],
            "rubric": value(&text),
        });
        let parsed = Case::parse("test_correction_1", &case.to_string()).unwrap();
        let yaml = export::promptfoo(SKILL, std::slice::from_ref(&parsed));
        let read = memctl_files::yaml::parse(&yaml).unwrap();
        let input: Value =
            serde_json::from_str(read["tests"][0]["vars"]["input"].as_str().unwrap()).unwrap();
        assert_eq!(input, case["input"]);
        assert!(
            !yaml
                .replace("'{{input}}'", "")
                .replace("{{ '{' }}", "")
                .contains("{{"),
            "{yaml}"
        );
        made.push(json!({"case": case, "python": export::deepeval(&parsed), "yaml": yaml}));
    }
    workspace.write("made.json", json!(made).to_string());
    let read = ran(Command::new(python)
        .args(["-c", READER])
        .current_dir(workspace.root()));
    println!("{}", read.succeeds().stdout);
}

/// Scores 72, unless the prompt contains the rule; echoes its input.
const MODEL: &str = r#"
import json, sys
prompt = sys.stdin.read()
score = 55 if "below 60" in prompt else 72
print(json.dumps({"overall_score": score, "note": "{{x}}" + prompt[-90:]}))
"#;

/// A project whose model obeys a rule, and one correction with its checks in it.
fn corrected(said: &str, checks: &[&str]) -> Workspace {
    let mut workspace = Workspace::sample();
    let script = workspace.write("model.py", MODEL);
    workspace.set(
        "MEMCTL_MODEL",
        &format!("exec:python3 {}", script.display()),
    );
    workspace.set("MEMCTL", env!("CARGO_BIN_EXE_memctl"));
    workspace.set("MEMCTL_TESTS_EXPORT", "true");
    let input = workspace.write(
        "in.json",
        r#"{"resume_text": "it's {{x}} {{env.HOME}} \"\"\" \\ true null\n日本"}"#,
    );
    workspace.json(&["run", SKILL, "--input", input.to_str().unwrap()]);
    let correct = [
        "correct", SKILL, "--execution-id", "latest", "--model", "offline", "--correction", said,
    ];
    let checks = checks.iter().flat_map(|check| ["--assert", check]);
    let correct: Vec<&str> = correct.into_iter().chain(checks).collect();
    let files = workspace.json(&correct)["tests"].clone();
    let names = [
        "test_correction_1.json", "test_correction_1.py", "test_promptfoo.yaml",
    ];
    assert_eq!(
        files,
        json!(names.map(|name| format!("{DIRECTORY}/{name}")))
    );
    workspace
}

const SAID: &str =
    "Candidates without distributed systems should score below 60. Never say \"{{y}} cheap\".";
const CHECKS: &[&str] = &["$.overall_score < 60", "$ not contains \"{{y}} cheap\""];

/// Runs a tool in the directory of the tests, with and without the learned rules.
fn red_and_green(
    workspace: &Workspace,
    configure: &dyn Fn(&mut Command),
    program: &Path,
) -> (Ran, Ran) {
    let run = |without: &str| {
        let mut command = Command::new(program);
        command
            .env_clear()
            .current_dir(workspace.root().join(DIRECTORY));
        for (name, value) in workspace.command().get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        command.env("MEMCTL_WITHOUT_RULES", without);
        configure(&mut command);
        ran(&mut command)
    };
    (run("1"), run("0"))
}

#[test]
fn exports_are_written_on_request() {
    let workspace = Workspace::sample();
    workspace.json(&["run", SKILL]);
    let correct = |said: &str| {
        workspace.json(&[
            "correct", SKILL, "--execution-id", "latest", "--model", "offline", "--correction",
            said,
        ])["tests"]
            .clone()
    };
    let case = |n: u32| format!("{DIRECTORY}/test_correction_{n}.json");
    assert_eq!(correct("Never say \"cheap\"."), json!([case(1)]));
    let listed = || {
        std::fs::read_dir(workspace.root().join(DIRECTORY))
            .unwrap()
            .count()
    };
    assert_eq!(listed(), 1);
    let report = workspace.json(&["test", SKILL, "--export"]);
    let files = ["test_correction_1.py", "test_promptfoo.yaml"];
    assert_eq!(
        report,
        json!({"cases": 1, "files": files.map(|name| format!("{DIRECTORY}/{name}")), "warnings": []})
    );
    assert_eq!(listed(), 5);
    // The next correction writes its case alone.
    assert_eq!(correct("Always cite the SLA tier."), json!([case(2)]));
    assert_eq!(listed(), 6);
    assert_eq!(workspace.json(&["test", "--export"])["cases"], 2);
    let yaml = workspace.read(&format!("{DIRECTORY}/test_promptfoo.yaml"));
    assert_eq!(yaml.matches("- description: 'CORR-").count(), 2, "{yaml}");
    // One test a correction, however many files hold it.
    assert_eq!(workspace.json(&["memory", "status"])["tests"], 2);
}

#[test]
fn file_edited_by_hand_stays() {
    let workspace = corrected(SAID, CHECKS);
    let edited = [
        "test_correction_1.py", "test_promptfoo.yaml", "memctl_checks.py",
    ]
    .map(|name| {
        let path = format!("{DIRECTORY}/{name}");
        let text = workspace.read(&path) + "# mine\n";
        workspace.write(&path, &text);
        (path, text)
    });
    workspace.json(&["run", SKILL]);
    let second = "Never say \"expensive\" in the note.";
    let correct = [
        "correct", SKILL, "--execution-id", "latest", "--model", "offline", "--correction", second,
    ];
    let corrected = workspace.json(&correct);
    let warning = corrected["warnings"][0].as_str().unwrap();
    assert!(
        warning.contains("edited by hand and stays as it is for `CORR-002`"),
        "{warning}"
    );
    for (path, text) in &edited {
        assert_eq!(workspace.read(path), *text);
    }
    let status = workspace.run(&["memory", "status"]);
    assert!(status.succeeds().stdout.contains("Tests: 2"), "{status:?}");
}

#[test]
fn an_output_is_decided_in_one_place() {
    let workspace = corrected(SAID, CHECKS);
    let decide = |workspace: &Workspace, output: &str, more: &[&str]| {
        workspace.write("out.json", output);
        let args = [
            "test", SKILL, "--case", "test_correction_1", "--output", "out.json", "--json",
        ];
        workspace.run(&[&args[..], more].concat())
    };
    let high = decide(&workspace, r#"{"overall_score": 72}"#, &[]);
    assert_eq!(
        (high.code, &high.document()["status"]),
        (1, &json!("failed")),
        "{high:?}"
    );
    assert_eq!(
        high.document()["reason"],
        "`$.overall_score` is 72, not < 60"
    );
    let low = decide(&workspace, r#"{"overall_score": 55}"#, &[]);
    assert_eq!(
        (low.code, &low.document()["status"]),
        (0, &json!("passed")),
        "{low:?}"
    );
    // The helper files of both exports ask for that verdict, and no judge is there.
    let python = "import memctl_checks as c; print(c.verdict('hr/resume-screen', 'test_correction_1', '{\"overall_score\": 72}'))";
    let node = "require('./memctl_promptfoo.cjs').check('{\"overall_score\": 72}', {config: {skill: \
        'hr/resume-screen', case: 'test_correction_1'}}).then(console.log)";
    for (name, option, script) in [("python3", "-c", python), ("node", "-e", node)] {
        let Some(interpreter) = program(name) else {
            continue;
        };
        let (ran, _) = red_and_green(
            &workspace,
            &|command| {
                command.args([option, script]);
            },
            &interpreter,
        );
        let said = &ran.succeeds().stdout;
        let is_failed = said.contains("'status': 'failed'") || said.contains("pass: false");
        assert!(
            is_failed && said.contains("is 72, not < 60"),
            "{name}: {said}"
        );
    }
    workspace
        .run(&[
            "test", SKILL, "--case", "test_correction_9", "--output", "out.json",
        ])
        .fails(2, "no test case");

    // What no assertion can tell needs a judge.
    let mut judged = corrected("Write the note kindly.", &[]);
    let output = r#"{"note": "So what."}"#;
    let alone = decide(&judged, output, &[]);
    assert_eq!(alone.code, 7, "{alone:?}");
    let reason = alone.document()["reason"].to_string();
    assert!(
        reason.contains("not tested without a judge: set MEMCTL_JUDGE"),
        "{reason}"
    );
    assert_eq!(decide(&judged, output, &["--allow-skipped"]).code, 0);
    let judge = judged.write(
        "judge.py",
        "print('{\"pass\": false, \"reason\": \"rude\"}')\n",
    );
    judged.set("MEMCTL_JUDGE", &format!("python3 {}", judge.display()));
    let rude = decide(&judged, output, &[]);
    assert_eq!(
        (rude.code, &rude.document()["reason"]),
        (1, &json!("the judge says: rude"))
    );
}

#[test]
fn a_test_run_is_not_recorded() {
    let workspace = corrected(SAID, CHECKS);
    let ran = workspace.json(&["run", SKILL, "--no-record"]);
    assert_eq!(ran["execution_id"], Value::Null);
    assert_eq!(ran["output"]["overall_score"], 55);
    let executions = &workspace.stored("episodic_memory.json")["entries"];
    assert_eq!(executions.as_array().unwrap().len(), 1);
}

#[test]
#[ignore = "needs the real DeepEval: make test-exports"]
fn deepeval_runs_the_tests_as_they_are() {
    let Some(python) = program("venv/bin/python") else {
        return;
    };
    let workspace = corrected(SAID, CHECKS);
    let (red, green) = red_and_green(
        &workspace,
        &|command| {
            command.args([
                "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_correction_1.py",
            ]);
        },
        &python,
    );
    green.succeeds();
    assert_eq!(red.code, 1, "{red:?}");
    assert!(red.stdout.contains("$.overall_score"), "{red:?}");
    let deepeval = python.with_file_name("deepeval");
    let (red, green) = red_and_green(
        &workspace,
        &|command| {
            command.args(["test", "run", "test_correction_1.py"]);
        },
        &deepeval,
    );
    green.succeeds();
    assert_eq!(red.code, 1, "{red:?}");
    // Expectations without an assertion need a judge model, and are skipped without one.
    let judged = corrected("Write the note kindly, as to a friend who is worried.", &[]);
    let judge = judged.write(
        "judge.py",
        "import json\nprint(json.dumps({'pass': True, 'reason': 'kind'}))\n",
    );
    let judge = format!("python3 {}", judge.display());
    for (command, said) in [("", "1 skipped"), (judge.as_str(), "1 passed")] {
        let (_, ran) = red_and_green(
            &judged,
            &|program| {
                program.args([
                    "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_correction_1.py",
                ]);
                program.env("MEMCTL_JUDGE", command);
            },
            &python,
        );
        assert!(ran.succeeds().stdout.contains(said), "{ran:?}");
    }
}

#[test]
#[ignore = "needs the real Promptfoo: make test-exports"]
fn promptfoo_runs_the_tests_as_they_are() {
    let Some(promptfoo) = program("promptfoo/node_modules/.bin/promptfoo") else {
        return;
    };
    let workspace = corrected(SAID, CHECKS);
    let configure = |command: &mut Command| {
        command
            .args([
                "eval", "-c", "test_promptfoo.yaml", "--no-cache", "--no-table",
                "--no-progress-bar", "-o", "out.json",
            ])
            .env("PROMPTFOO_DISABLE_TELEMETRY", "1")
            .env("PROMPTFOO_DISABLE_UPDATE", "1")
            .env("PROMPTFOO_DISABLE_REMOTE_GENERATION", "1")
            .env("PROMPTFOO_CONFIG_DIR", workspace.home().join("promptfoo"));
    };
    let (red, green) = red_and_green(&workspace, &configure, &promptfoo);
    green.succeeds();
    assert_eq!(red.code, 100, "{red:?}");
    let out: Value =
        serde_json::from_str(&workspace.read(&format!("{DIRECTORY}/out.json"))).unwrap();
    let result = &out["results"]["results"][0];
    // The last run passed; the model received exactly the input of the case.
    assert_eq!(result["success"], true, "{result}");
    let note = result["response"]["output"].to_string();
    assert!(
        note.contains("{{x}}") && note.contains("{{env.HOME}}"),
        "{note}"
    );
    // What needs a judge is an error without one.
    let judged = corrected(
        "Write the note {{kindly}}, as to a friend {% who %} is worried.",
        &[],
    );
    let judge = judged.write(
        "judge.py",
        "print('{\"pass\": true, \"reason\": \"kind\"}')\n",
    );
    let judge = format!("python3 {}", judge.display());
    for (judge, code) in [("", 100), (judge.as_str(), 0)] {
        let (_, green) = red_and_green(
            &judged,
            &|command| {
                configure(command);
                command.env("MEMCTL_JUDGE", judge);
            },
            &promptfoo,
        );
        assert_eq!(green.code, code, "{green:?}");
    }
}
