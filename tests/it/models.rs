//! The correction loop with a model on a real socket, with programs and with recorded replies:
//! requests, stored results, and failures of the model.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::fake_model::{Behaviour, FakeModel};
use crate::support::{RUN, correction};
use crate::workspace::{Ran, Workspace};

const KEY: &str = "sk-secret-0123456789abcdef";
const SKILL: &str = "hr/resume-screen";
const SAID: &str = "Score candidates without distributed systems below 60.";
/// Rule text that only the model would write.
const RULE: &str = "When a senior backend role is screened, ALWAYS keep candidates who never built \
     distributed systems below 60.";

#[derive(Debug, Clone, Copy, PartialEq)]
enum Wire {
    Anthropic,
    OpenAi,
}

const WIRES: [Wire; 2] = [Wire::Anthropic, Wire::OpenAi];

impl Wire {
    /// A sample project whose models are asked at this server.
    fn workspace(self, server: &FakeModel) -> Workspace {
        match self {
            Self::Anthropic => self.workspace_at(&server.anthropic_url()),
            Self::OpenAi => self.workspace_at(&server.openai_url()),
        }
    }

    fn workspace_at(self, url: &str) -> Workspace {
        let mut workspace = Workspace::sample().naming_no_model();
        let name = match self {
            Self::Anthropic => "ANTHROPIC",
            Self::OpenAi => "OPENAI",
        };
        workspace
            .set(&format!("{name}_API_KEY"), KEY)
            .set(&format!("{name}_BASE_URL"), url);
        workspace
    }

    const fn provider(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic/",
            Self::OpenAi => "openai/",
        }
    }
}

/// Runs the program and checks that no output contains the key.
fn run(workspace: &Workspace, args: &[&str]) -> Ran {
    let ran = workspace.run(args);
    assert!(!ran.stdout.contains(KEY), "{ran:?}");
    assert!(!ran.stderr.contains(KEY), "{ran:?}");
    assert_no_key_below(workspace.root().parent().unwrap());
    ran
}

fn assert_no_key_below(directory: &Path) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_no_key_below(&path);
        } else {
            let bytes = fs::read(&path).unwrap();
            let has_key = bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes());
            assert!(!has_key, "{}", path.display());
        }
    }
}

fn document(workspace: &Workspace, args: &[&str]) -> Value {
    let ran = run(workspace, &[args, &["--json"]].concat());
    ran.succeeds().document()
}

fn correct<'a>(model: &'a [&'a str]) -> Vec<&'a str> {
    [&correction(SAID)[..], model].concat()
}

fn rule() -> String {
    json!({"learnable": true, "reason": "", "mistake": "The score was too high.",
        "root_cause": "Breadth was taken for depth.", "rule": RULE,
        "applies_when": "When a senior backend role is screened.", "confidence": 0.93})
    .to_string()
}

/// A model that knows both questions.
fn model() -> FakeModel {
    FakeModel::answering(|request| {
        if request.user().contains("<correction>") {
            Behaviour::text(&rule())
        } else {
            Behaviour::text("{\"overall_score\": 72}")
        }
    })
}

/// The last entry of a data file.
fn last(workspace: &Workspace, file: &str) -> Value {
    let file = workspace.stored(file);
    let entries = file.as_object().unwrap().values().next().unwrap();
    entries.as_array().unwrap().last().unwrap().clone()
}

/// The last execution, which must say that it failed.
fn failed_run(workspace: &Workspace, said: &str) -> Value {
    let ran = run(workspace, &RUN);
    ran.fails(4, said);
    let execution = last(workspace, "episodic_memory.json");
    assert_eq!(execution["outcome"], "error");
    let id = execution["execution_id"].as_str().unwrap();
    assert!(ran.stderr.contains(&format!("memctl show {id}")), "{ran:?}");
    let error = execution["output_summary"]["error"].as_str().unwrap();
    assert!(error.contains(said), "{error}");
    execution
}

#[test]
fn a_rule_that_the_model_worded_stands_in_the_next_question() {
    for wire in WIRES {
        let server = model();
        let workspace = wire.workspace(&server);
        let first = document(&workspace, &RUN);
        assert_eq!(first["output"], json!({"overall_score": 72}));
        assert_eq!(first["outcome"], "pending_review");
        assert!(
            first["model_used"]
                .as_str()
                .unwrap()
                .starts_with(wire.provider())
        );
        assert_eq!(
            first["usage"],
            json!({"input_tokens": 120, "output_tokens": 30})
        );
        let cost = first["cost_usd"].as_f64().unwrap();
        assert!(cost > 0.0 && cost < 0.01, "{cost}");
        let stored = last(&workspace, "episodic_memory.json");
        for field in ["model_used", "cost_usd", "usage", "latency_ms"] {
            assert_eq!(stored[field], first[field], "{field}");
        }
        assert_eq!(stored["output_summary"], first["output"]);
        let input: Value =
            serde_json::from_str(&workspace.read("fixtures/sample_input.json")).unwrap();
        assert_eq!(stored["input_summary"], input);

        // The dry run shows the prompt that is sent.
        let shown = run(&workspace, &["memory", "prompt", SKILL]);
        let requests = server.requests();
        assert_eq!(requests.len(), 1);
        assert_eq!(shown.stdout, format!("{}\n", requests[0].system()));
        assert_eq!(
            serde_json::from_str::<Value>(requests[0].user()).unwrap(),
            input
        );

        let corrected = document(&workspace, &correct(&[]));
        assert_eq!(corrected["rule"], RULE);
        assert_eq!(corrected["root_cause"], "Breadth was taken for depth.");
        assert_eq!(corrected["confidence"], 0.93);
        assert_eq!(corrected["distilled_by"], first["model_used"]);
        let stored = last(&workspace, "reflexion_entries.json");
        assert_eq!(stored["rule"], RULE);
        assert_eq!(stored["distilled_by"], first["model_used"]);
        assert_eq!(stored["correction_id"], "CORR-001");
        let asked = &server.requests()[1];
        assert!(asked.user().contains(SAID) && asked.user().contains("overall_score"));
        let form = asked.body.to_string();
        assert!(
            form.contains("applies_when") && form.contains("learnable"),
            "{form}"
        );

        // The same input again calls no model.
        let again = document(&workspace, &correct(&[]));
        assert_eq!(again["correction_id"], "CORR-001");
        assert_eq!(again["reflexion_id"], "REFL-001");
        assert_eq!(server.requests().len(), 2);

        let second = document(&workspace, &RUN);
        assert_eq!(
            second["injected"],
            json!([{"id": "REFL-001", "kind": "reflexion"}])
        );
        let requests = server.requests();
        let system = requests[2].system();
        assert!(
            system.contains(&format!("- **REFL-001** (confidence: 93%): {RULE}\n")),
            "{system}"
        );
        let shown = document(&workspace, &["memory", "prompt", SKILL]);
        assert_eq!(shown["prompt"], system);
        let header = match wire {
            Wire::Anthropic => requests[2].header("x-api-key").map(str::to_owned),
            Wire::OpenAi => requests[2]
                .header("authorization")
                .map(|h| h.replace("Bearer ", "")),
        };
        assert_eq!(header.as_deref(), Some(KEY));
    }
}

/// Address without a listener: the port is unused, and too low to be assigned to a test.
const NOWHERE: &str = "http://127.0.0.1:9";

#[test]
fn with_the_server_down_a_correction_is_learnt_and_a_run_is_recorded_as_failed() {
    for wire in WIRES {
        let mut workspace = wire.workspace_at(NOWHERE);
        workspace.set("MEMCTL_LLM_RETRIES", "0");
        let execution = failed_run(&workspace, "cannot be reached");
        assert_eq!(execution["cost_usd"], Value::Null);
        assert!(
            execution["model_used"]
                .as_str()
                .unwrap()
                .starts_with(wire.provider())
        );

        let ran = run(&workspace, &[&correct(&[])[..], &["--json"]].concat());
        let report = ran.succeeds().document();
        assert_eq!(report["distilled_by"], "offline");
        assert_eq!(report["reflexion_id"], "REFL-001");
        assert!(report["rule"].as_str().unwrap().contains("below 60"));
        assert!(
            ran.stderr
                .starts_with("warning: the rule was made without a model: ")
                && ran.stderr.contains("cannot be reached"),
            "{ran:?}"
        );
        assert_eq!(
            last(&workspace, "corrections.json")["user_correction"],
            SAID
        );
        // In JSON the error is a document.
        let ran = run(&workspace, &[&RUN[..], &["--json"]].concat());
        assert_eq!(ran.code, 4, "{ran:?}");
        assert_eq!(ran.document()["error"]["kind"], "model");
    }
}

#[test]
fn passing_troubles_are_waited_out() {
    for wire in WIRES {
        for trouble in [
            Behaviour::error(429, "rate_limit_error", "slow down").with_header("retry-after", "0"),
            Behaviour::error(529, "overloaded_error", "Overloaded"),
            Behaviour::TruncatedBody("half of".to_owned()),
        ] {
            let server = FakeModel::queue([trouble, Behaviour::text("the whole answer")]);
            let workspace = wire.workspace(&server);
            let report = document(&workspace, &RUN);
            assert_eq!(report["output"], json!({"raw_output": "the whole answer"}));
            assert_eq!(server.requests().len(), 2);
            assert_eq!(
                workspace.stored("episodic_memory.json")["entries"]
                    .as_array()
                    .unwrap()
                    .len(),
                1
            );
        }
    }
}

#[test]
fn lasting_troubles_are_told_and_recorded() {
    let timeout = ("MEMCTL_LLM_TIMEOUT_SECONDS", "1");
    let once = ("MEMCTL_LLM_RETRIES", "0");
    for wire in WIRES {
        let check = |behaviour: Behaviour, set: (&str, &str), said: &str, kept: Option<&str>| {
            let server = FakeModel::queue([behaviour]);
            let mut workspace = wire.workspace(&server);
            workspace.set(set.0, set.1);
            let execution = failed_run(&workspace, said);
            assert_eq!(server.requests().len(), 1, "{said}");
            let raw = execution["output_summary"]["raw_output"].as_str();
            match kept {
                Some(kept) => assert!(raw.is_some_and(|raw| raw.contains(kept)), "{execution}"),
                None => assert_eq!(raw, None, "{execution}"),
            }
        };
        let half = || "half of a paid answer".to_owned();
        let kept = Some("half of a paid answer");
        let default = ("MEMCTL_LLM_RETRIES", "2");
        // No retry helps here, so that none is tried.
        check(Behaviour::SpendLimit, default, "spending limit", None);
        check(
            Behaviour::error(401, "authentication_error", "bad key"),
            default,
            "refused the key",
            None,
        );
        check(
            Behaviour::InvalidJson,
            once,
            "violated its protocol",
            Some("all is well"),
        );
        check(
            Behaviour::TruncatedBody(half()),
            once,
            "broke off",
            Some("{"),
        );
        check(Behaviour::Hang, timeout, "did not answer within 1 s", None);
        check(
            Behaviour::answer(&half(), |answer| answer.stop = "max_tokens"),
            default,
            "was cut at",
            kept,
        );
        check(
            Behaviour::answer(&half(), |answer| answer.stop = "refusal"),
            default,
            "declined to answer",
            kept,
        );
    }
}

#[test]
fn cost_of_a_failed_call_is_recorded() {
    let cut = Behaviour::answer("half of it", |answer| answer.stop = "max_tokens");
    let server = FakeModel::queue([cut]);
    let workspace = Wire::Anthropic.workspace(&server);
    let execution = failed_run(&workspace, "was cut at");
    assert_eq!(
        execution["usage"],
        json!({"input_tokens": 120, "output_tokens": 30})
    );
    assert!(execution["cost_usd"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_rule_that_is_none_does_not_cost_the_correction() {
    for wire in WIRES {
        for answer in ["{\"rule\": 7}", "no JSON at all", "{\"learnable\": true}"] {
            let server = FakeModel::answering(move |request| {
                if request.user().contains("<correction>") {
                    Behaviour::text(answer)
                } else {
                    Behaviour::text("{\"overall_score\": 72}")
                }
            });
            let workspace = wire.workspace(&server);
            document(&workspace, &RUN);
            let ran = run(&workspace, &[&correct(&[])[..], &["--json"]].concat());
            let report = ran.succeeds().document();
            // Asked, and asked once more to mend it.
            assert_eq!(server.requests().len(), 3, "{answer}");
            assert_eq!(report["correction_id"], "CORR-001");
            assert_eq!(report["distilled_by"], "offline");
            assert!(report["rule"].as_str().unwrap().contains("below 60"));
            assert!(
                ran.stderr.contains("the rule was made without a model"),
                "{ran:?}"
            );
            assert!(
                ran.stderr.contains("does not match the requested schema"),
                "{ran:?}"
            );
            // It was paid for, and so it is kept.
            let kept = workspace.memory("recovered/CORR-001-answer.txt");
            assert_eq!(fs::read_to_string(kept).unwrap(), answer);
            assert_eq!(
                last(&workspace, "reflexion_entries.json")["distilled_by"],
                "offline"
            );
        }
    }
}

#[test]
fn a_rule_without_its_cause_is_not_asked_for_again() {
    let bare = json!({"learnable": true, "rule": RULE}).to_string();
    let server = FakeModel::queue([Behaviour::text("{}"), Behaviour::text(&bare)]);
    let workspace = Wire::Anthropic.workspace(&server);
    document(&workspace, &RUN);
    let report = document(&workspace, &correct(&[]));
    assert_eq!(
        (&report["rule"], &report["root_cause"]),
        (&json!(RULE), &json!(""))
    );
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_model_may_say_that_nothing_lasting_follows() {
    let nothing = json!({"learnable": false, "reason": "Say what the score should have been.",
        "mistake": "", "root_cause": "", "rule": "", "applies_when": "", "confidence": 0.55});
    let server = FakeModel::queue([Behaviour::text("{}"), Behaviour::text(&nothing.to_string())]);
    let workspace = Wire::Anthropic.workspace(&server);
    document(&workspace, &RUN);
    let report = document(&workspace, &correct(&[]));
    assert_eq!(report["reflexion_id"], Value::Null);
    assert_eq!(
        report["not_learned"],
        "Say what the score should have been."
    );
    assert_eq!(report["confidence"], 0.55);
    assert!(!workspace.memory("reflexion_entries.json").exists());
    assert_eq!(
        last(&workspace, "corrections.json")["user_correction"],
        SAID
    );
}

#[test]
fn the_providers_own_figure_is_the_cost() {
    let server = FakeModel::queue([Behaviour::answer("yes", |answer| {
        answer.cost = Some(0.00123);
    })]);
    let mut workspace = Workspace::sample().naming_no_model();
    workspace
        .set("OPENROUTER_API_KEY", KEY)
        .set("OPENROUTER_BASE_URL", &server.openai_url());
    let report = document(&workspace, &RUN);
    assert_eq!(
        report["model_used"],
        "openrouter/anthropic/claude-haiku-4.5"
    );
    assert_eq!(report["cost_usd"], 0.00123);
    assert_eq!(
        server.requests()[0].body["model"],
        "anthropic/claude-haiku-4.5"
    );
    let text = workspace.read(".agentura/episodic_memory.json");
    assert!(text.contains("\"cost_usd\": 0.00123,"), "{text}");
}

#[test]
fn a_local_server_is_used_without_a_key() {
    let server = model();
    let mut workspace = Workspace::sample().naming_no_model();
    workspace.set("MEMCTL_LOCAL_BASE_URL", &server.openai_url());
    let report = document(&workspace, &RUN);
    assert_eq!(report["model_used"], "local/fake");
    assert_eq!(report["cost_usd"], 0.0);
    let requests = server.requests();
    assert_eq!(requests[0].path, "/v1/models");
    assert_eq!(requests[1].body["model"], "fake");
    assert_eq!(requests[1].header("authorization"), None);
    // One that was configured and is not there is an error, not a silent change to another model.
    workspace.set("MEMCTL_LOCAL_BASE_URL", &format!("{NOWHERE}/v1"));
    run(&workspace, &RUN).fails(4, "cannot be reached");
}

#[test]
#[cfg_attr(windows, ignore = "it runs a program of Unix")]
fn a_program_is_asked_with_the_whole_prompt() {
    let workspace = Workspace::sample().naming_no_model();
    workspace.write(
        "model.sh",
        "cat > asked.txt\nif grep -q '<correction>' asked.txt; then cat rule.json; else echo '{\"overall_score\": 41}'; fi\n",
    );
    workspace.write("rule.json", rule());
    let model = ["--model", "exec:sh model.sh"];
    let report = document(&workspace, &[&RUN[..], &model].concat());
    assert_eq!(report["model_used"], "exec/sh");
    assert_eq!(report["output"]["overall_score"], 41);
    assert_eq!(
        (&report["cost_usd"], &report["usage"]),
        (&Value::Null, &Value::Null)
    );
    let asked = workspace.read("asked.txt");
    let shown = document(&workspace, &["memory", "prompt", SKILL]);
    assert!(asked.starts_with(shown["prompt"].as_str().unwrap()));
    assert!(asked.contains("job_description"));
    let report = document(&workspace, &correct(&model));
    assert_eq!(
        (&report["rule"], &report["distilled_by"]),
        (&json!(RULE), &json!("exec/sh"))
    );

    workspace.write(
        "model.sh",
        "echo half an answer; echo no credit >&2; exit 3",
    );
    run(&workspace, &[&RUN[..], &model].concat()).fails(4, "no credit");
    let execution = last(&workspace, "episodic_memory.json");
    assert_eq!(execution["outcome"], "error");
    assert_eq!(
        execution["output_summary"]["raw_output"],
        "half an answer\n"
    );
}

#[test]
fn recorded_replies_and_the_memory_itself_answer_by_name() {
    let server = model();
    // Keys are set, but the named model takes precedence.
    let workspace = Wire::Anthropic.workspace(&server);
    let replies = format!(
        "{}\n{}\n",
        json!({"when": {"contains": ["<correction>"]}, "reply": serde_json::from_str::<Value>(&rule()).unwrap()}),
        json!({"reply": {"overall_score": 55}, "usage": {"input_tokens": 9, "output_tokens": 2}, "cost_usd": 0.25}),
    );
    workspace.write("demo.jsonl", replies);
    let model = ["--model", "scripted:demo.jsonl"];
    let report = document(&workspace, &[&RUN[..], &model].concat());
    assert_eq!(report["model_used"], "scripted/demo");
    assert_eq!(report["output"]["overall_score"], 55);
    assert_eq!(report["cost_usd"], 0.25);
    assert_eq!(report["usage"]["input_tokens"], 9);
    let report = document(&workspace, &correct(&model));
    assert_eq!(
        (&report["rule"], &report["distilled_by"]),
        (&json!(RULE), &json!("scripted/demo"))
    );

    let report = document(&workspace, &[&RUN[..], &["--model", "offline"]].concat());
    assert_eq!(report["model_used"], "offline/nearest-case");
    assert_eq!(report["cost_usd"], 0.0);
    assert_eq!(server.requests().len(), 0);
    run(
        &workspace,
        &[&RUN[..], &["--model", "scripted:nowhere.jsonl"]].concat(),
    )
    .fails(2, "nowhere.jsonl");
    run(&workspace, &[&RUN[..], &["--model", "gpt"]].concat())
        .fails(2, "`gpt` cannot be used as a model");
}

#[test]
fn run_without_a_model_answers_only_when_asked_to_or_from_the_same_case() {
    let mut workspace = Workspace::sample().naming_no_model();
    let bin = workspace.root().join("bin");
    workspace.set("PATH", bin.to_str().unwrap());
    // An example of the skill is like the input, but is another one.
    let input = workspace.read("fixtures/sample_input.json");
    let ran = run(&workspace, &RUN);
    ran.fails(4, "no model is configured");
    assert!(ran.stderr.contains("--model offline"), "{ran:?}");
    assert!(ran.stderr.contains("ANTHROPIC_API_KEY") && ran.stderr.contains("Ollama"));
    assert!(!ran.stderr.contains("an installed agent"), "{ran:?}");
    workspace.write("bin/codex", "");
    let ran = run(&workspace, &RUN);
    let named = "an installed agent: memctl run hr/resume-screen --model 'exec:codex exec";
    assert!(ran.stderr.contains(named), "{ran:?}");
    assert!(!workspace.memory("episodic_memory.json").exists());
    // An offline answer that is asked for is given, and a corrected one is the case from then on.
    let report = document(&workspace, &[&RUN[..], &["--model", "offline"]].concat());
    assert_eq!(report["model_used"], "offline/nearest-case");
    let expected = ["--expected", "fixtures/expected_output.json"];
    document(&workspace, &correct(&expected));
    let report = document(&workspace, &RUN);
    assert_eq!(report["model_used"], "offline/nearest-case");
    assert_eq!(report["output"]["overall_score"], 54);
    // Nothing is replayed that is not near.
    workspace.write("other.json", json!({"text": input.len()}).to_string());
    let ran = run(&workspace, &["run", SKILL, "--input", "other.json"]);
    ran.fails(4, "alike");
    assert!(!ran.stderr.contains("--model offline"), "{ran:?}");
}

#[test]
#[cfg_attr(windows, ignore = "it runs a program of Unix")]
fn a_foreign_workspace_executes_nothing_until_it_is_trusted() {
    let workspace = Workspace::sample().naming_no_model();
    workspace.write("model.sh", "touch executed; echo '{\"overall_score\": 1}'");
    workspace.write(".agentura/config.toml", "model = \"exec:sh model.sh\"\n");
    let executed = workspace.root().join("executed");
    let ran = run(&workspace, &RUN);
    ran.fails(4, "no model is configured");
    assert!(
        ran.stderr
            .contains("is ignored until you run `memctl trust`"),
        "{ran:?}"
    );
    document(&workspace, &[&RUN[..], &["--model", "offline"]].concat());
    run(&workspace, &correct(&[])).succeeds();
    assert!(!executed.exists());

    run(&workspace, &["trust"]).succeeds();
    let report = document(&workspace, &RUN);
    assert_eq!(report["model_used"], "exec/sh");
    assert!(executed.exists());

    // A changed file is untrusted again.
    fs::remove_file(&executed).unwrap();
    workspace.write(".agentura/config.toml", "model = \"exec:sh ./model.sh\"\n");
    run(&workspace, &RUN).fails(4, "no model is configured");
    assert!(!executed.exists());
}

#[test]
fn a_foreign_workspace_sends_nothing_elsewhere_until_it_is_trusted() {
    let home = model();
    let elsewhere = model();
    let workspace = Wire::Anthropic.workspace(&home);
    // The variable of the user wins anyhow; the other provider's address is the workspace's alone.
    let settings = format!("[local]\nbase_url = \"{}\"\n", elsewhere.openai_url());
    workspace.write(".agentura/config.toml", settings);
    let ran = run(&workspace, &[&RUN[..], &["--model", "local/fake"]].concat());
    assert_ne!(ran.code, 0, "{ran:?}");
    assert!(
        ran.stderr
            .contains("is ignored until you run `memctl trust`"),
        "{ran:?}"
    );
    assert_eq!((home.requests().len(), elsewhere.requests().len()), (0, 0));
    run(&workspace, &["trust"]).succeeds();
    document(&workspace, &[&RUN[..], &["--model", "local/fake"]].concat());
    assert_eq!(elsewhere.requests().len(), 1);
}

#[test]
fn a_skill_cannot_name_a_program() {
    let workspace = Workspace::sample().naming_no_model();
    workspace.write("model.sh", "touch executed; echo '{\"overall_score\": 1}'");
    let path = "skills/hr/resume-screen/SKILL.md";
    let skill = workspace.read(path);
    for model in [
        "exec:sh model.sh", "exec:/bin/sh model.sh", "scripted:demo.jsonl",
    ] {
        let named = skill.replacen("---\n", &format!("---\nmodel: \"{model}\"\n"), 1);
        workspace.write(path, named);
        run(&workspace, &RUN).fails(4, "no model is configured");
        // Trust is about the workspace's settings, and makes no difference here.
        run(&workspace, &["trust"]).succeeds();
        run(&workspace, &RUN).fails(4, "no model is configured");
        document(&workspace, &[&RUN[..], &["--model", "offline"]].concat());
        run(&workspace, &correct(&[])).succeeds();
        assert!(!workspace.root().join("executed").exists(), "{model}");
    }
}
