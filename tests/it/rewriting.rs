//! Query rewriting by rules and by a model.

use serde_json::{Value, json};

use crate::fake_model::{Behaviour, FakeModel};
use crate::support::ids;
use crate::workspace::Workspace;

const QUERY: &str = "How do I handle error E0308 of the invoise?";

fn workspace() -> Workspace {
    let workspace = Workspace::empty();
    let entry = |n: usize, rule: &str| {
        json!({"correction_id": format!("CORR-00{n}"), "skill": "hr/screening",
            "timestamp": "2026-01-01T00:00:00+00:00", "user_correction": rule})
    };
    let entries = [
        entry(1, "Never pay an invoice twice"),
        entry(2, "Always tag before the deploy"),
        entry(3, "Mismatched types: add a conversion"),
    ];
    let data = json!({ "corrections": entries });
    workspace.write(".agentura/corrections.json", data.to_string());
    workspace
}

fn search(workspace: &Workspace) -> Value {
    workspace.json(&["memory", "search", QUERY, "--keyword"])
}

fn answering(query: &str) -> FakeModel {
    let reply = json!({ "query": query }).to_string();
    FakeModel::answering(move |_| Behaviour::text(&reply))
}

fn ask(workspace: &mut Workspace, model: &FakeModel) {
    workspace
        .set("MEMCTL_SEARCH_REWRITE", "model")
        .set("MEMCTL_MODEL", "anthropic/claude-x")
        .set("ANTHROPIC_API_KEY", "key")
        .set("ANTHROPIC_BASE_URL", &model.anthropic_url());
}

#[test]
fn without_being_asked_nothing_is_rewritten() {
    let workspace = workspace();
    let report = search(&workspace);
    assert_eq!(report["rewritten"], Value::Null);
    assert_eq!(ids(&report["results"]), [""; 0]);
}

#[test]
fn offline_a_mistyped_word_finds_what_was_meant() {
    let mut workspace = workspace();
    let expected = "handle error E0308 of the invoise invoic";
    workspace.set("MEMCTL_SEARCH_REWRITE", "offline");
    let report = search(&workspace);
    assert_eq!(
        (&report["query"], &report["rewritten"]),
        (&json!(QUERY), &json!(expected))
    );
    assert_eq!(ids(&report["results"]), ["CORR-001"]);
    let arguments = ["memory", "search", QUERY, "--keyword"];
    let page = workspace.run(&arguments);
    assert!(
        page.succeeds()
            .stdout
            .contains(&format!("searched for: {expected}")),
        "{page:?}"
    );
    workspace.set("MEMCTL_SEARCH_REWRITE", "off");
    assert_eq!(search(&workspace)["rewritten"], Value::Null);
    workspace.set("MEMCTL_SEARCH_REWRITE", "always");
    workspace
        .run(&arguments)
        .fails(2, "write off, offline or model");
}

#[test]
fn a_model_adds_words_and_loses_none() {
    let mut workspace = workspace();
    let model = answering("Troubleshooting mismatched types");
    ask(&mut workspace, &model);
    let report = search(&workspace);
    let expected = "Troubleshooting mismatched types handle error E0308 invoise";
    assert_eq!(report["rewritten"], expected);
    assert_eq!(ids(&report["results"]), ["CORR-003"]);
    assert_eq!(report["warnings"], json!([]));
    let requests = model.requests();
    assert_eq!(requests.len(), 1);
    assert!(requests[0].user().contains(QUERY) && requests[0].user().starts_with("<query>"));
    assert!(requests[0].system().contains("store of procedures"));
    let form = &requests[0].body["output_config"]["format"]["schema"];
    assert_eq!(form["required"], json!(["query"]));
}

#[test]
fn a_prompt_of_ones_own_takes_the_place_of_ours_once_it_is_trusted() {
    let mut workspace = workspace();
    let model = answering("mismatched types");
    ask(&mut workspace, &model);
    workspace.write(".agentura/prompts/rewrite_query.md", "Say it in French.");
    search(&workspace);
    workspace.run(&["trust"]).succeeds();
    search(&workspace);
    let systems: Vec<bool> = model
        .requests()
        .iter()
        .map(|request| request.system() == "Say it in French.")
        .collect();
    assert_eq!(systems, [false, true]);
}

#[test]
fn a_model_that_fails_costs_a_warning() {
    let check = |behaviour: Behaviour, part: &str| {
        let mut workspace = workspace();
        let model = FakeModel::answering(move |_| behaviour.clone());
        ask(&mut workspace, &model);
        let report = workspace.json(&["memory", "search", "pay an invoice", "--keyword"]);
        assert_eq!(report["rewritten"], Value::Null, "{report}");
        assert_eq!(ids(&report["results"]), ["CORR-001"]);
        let warning = report["warnings"][0].as_str().unwrap();
        assert!(
            warning.starts_with("the query was not rewritten: "),
            "{warning}"
        );
        assert!(warning.contains(part), "{warning}");
    };
    check(Behaviour::status(400), "something is wrong");
    check(Behaviour::text("I cannot"), "no complete JSON object");
    check(Behaviour::text(r#"{"query": " "}"#), "the query is empty");
    let mut without_model = workspace();
    without_model.set("MEMCTL_SEARCH_REWRITE", "model");
    let report = search(&without_model);
    assert_eq!(
        report["warnings"],
        json!(["the query was not rewritten: no model is configured"])
    );
}

#[test]
fn a_retrieval_is_measured_with_its_queries_rewritten() {
    let workspace = Workspace::empty();
    workspace.write("docs.jsonl", r#"{"id": 1, "text": "pay the invoice"}"#);
    let query = r#"{"qid": 1, "text": "how to handle an invoise", "relevant": [1]}"#;
    workspace.write("queries.jsonl", query);
    let files = [
        "eval", "retrieval", "--docs", "docs.jsonl", "--queries", "queries.jsonl", "--fusion",
        "keyword",
    ];
    let recall = |more: &[&str]| {
        let report = workspace.json(&[&files[..], more].concat());
        report["metrics"]["recall@1"].as_f64().unwrap()
    };
    let found = [recall(&[]), recall(&["--rewrite", "offline"])];
    assert!(
        (found[0]).abs() < 1e-9 && (found[1] - 1.0).abs() < 1e-9,
        "{found:?}"
    );
}
