//! Question about the cost before a model is called many times.

use serde_json::json;

use crate::fake_model::{Behaviour, FakeModel};
use crate::support::{RUN_SCRIPTED, correction, scripted, until};
use crate::terminal::Terminal;
use crate::workspace::Workspace;

/// A workspace with one test, and a model with a known price.
fn with_test(server: &FakeModel) -> Workspace {
    let workspace = scripted();
    workspace.run(&RUN_SCRIPTED).succeeds();
    let said = "A candidate with 5 years Python but no distributed systems should score below 60.";
    let assertion = ["--assert", "$.overall_score < 60", "--model", "offline"];
    let args = [&correction(said)[..], &assertion].concat();
    workspace.run(&args).succeeds();
    let mut workspace = workspace.naming_no_model();
    workspace
        .set("ANTHROPIC_API_KEY", "sk-test")
        .set("ANTHROPIC_BASE_URL", &server.anthropic_url());
    workspace
}

fn model() -> FakeModel {
    FakeModel::answering(|_| Behaviour::text("{\"overall_score\": 55}"))
}

#[test]
fn dear_calls_wait_for_an_answer_on_a_terminal() {
    let server = model();
    let mut workspace = with_test(&server);
    workspace.set("MEMCTL_LLM_ASK_ABOVE_USD", "0.0001");
    let Some(terminal) = Terminal::open(&workspace, 100, 24) else {
        return;
    };
    terminal.type_line("memctl test --quiet; echo code=$?");
    let screen = terminal.wait_for("Go on? [y/N]");
    assert!(screen.contains("2 calls, about $0."), "{screen}");
    terminal.keys(&["Enter"]);
    let screen = terminal.wait_for("code=2");
    assert!(screen.contains("memctl test --yes"), "{screen}");
    assert_eq!(server.requests().len(), 0);

    terminal.type_line("clear; memctl test --yes; echo code=$?");
    let screen = terminal.wait_for("code=");
    assert!(!screen.contains("Go on?"), "{screen}");
    let asked = server.requests().len();
    assert!(asked >= 2, "{screen}");
    terminal.type_line("clear; memctl test; echo code=$?");
    terminal.wait_for("Go on? [y/N]");
    terminal.type_line("y");
    until("asked", || server.requests().len() > asked);
    terminal.wait_for("code=");

    // Below the limit nothing is asked.
    terminal.type_line("clear; MEMCTL_LLM_ASK_ABOVE_USD=0.5 memctl test; echo code=$?");
    let screen = terminal.wait_for("code=");
    assert!(screen.contains("calling `anthropic/"), "{screen}");
    assert!(!screen.contains("Go on?"), "{screen}");
}

#[test]
fn scripts_are_not_asked_and_a_cap_counts_in_the_cost() {
    let server = model();
    let mut workspace = with_test(&server);
    workspace.set("MEMCTL_LLM_ASK_ABOVE_USD", "0");
    let said = |args: &[&str]| {
        let ran = workspace.run(args);
        let line = ran.stderr.lines().find(|line| line.contains("calling"));
        let line = line.unwrap_or_else(|| panic!("{ran:?}")).to_owned();
        let cost = line.split('$').nth(1).unwrap();
        let cost: f64 = cost.split(';').next().unwrap().parse().unwrap();
        (line, cost)
    };
    let (line, both) = said(&["test"]);
    assert!(line.contains("2 calls"), "{line}");
    let (line, one) = said(&["test", "--max-calls", "1"]);
    assert!(line.contains("1 call,"), "{line}");
    assert!((both / 2.0 - one).abs() < 0.0002, "{both} {one}");
}

#[test]
fn untrusted_workspace_cannot_raise_the_limit() {
    let workspace = scripted();
    workspace.run(&RUN_SCRIPTED).succeeds();
    let shown = |limit: &str| {
        workspace.write(
            ".agentura/config.toml",
            format!("[llm]\nask_above_usd = {limit}\n"),
        );
        let document = workspace.json(&["config", "show"]);
        let settings = document["settings"].as_array().unwrap().clone();
        let found = settings
            .into_iter()
            .find(|setting| setting["name"] == "llm.ask_above_usd");
        found.unwrap()["value"].clone()
    };
    assert_eq!(shown("100.0"), json!("0.50"));
    assert_eq!(shown("0.1"), json!("0.1"));
}

#[test]
fn many_texts_for_an_embedder_of_unknown_price_wait_for_an_answer() {
    let server = FakeModel::answering(|request| {
        let vectors = request.input().into_iter().map(|_| vec![0.6, 0.8]);
        Behaviour::Vectors(vectors.collect())
    });
    let mut workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let memories: Vec<_> = (1..=25)
        .map(|number| {
            json!({"id": format!("MEM-{number:03}"), "memory_type": "task_memory",
                "content": format!("Note {number}."), "metadata": {},
                "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"})
        })
        .collect();
    workspace.write(
        ".agentura/memories.json",
        json!({"entries": memories}).to_string(),
    );
    workspace
        .set("MEMCTL_EMBEDDING_PROVIDER", "openai")
        .set("MEMCTL_EMBEDDING_MODEL", "small")
        .set("MEMCTL_EMBEDDING_BATCH", "1")
        .set("OPENAI_BASE_URL", &server.openai_url())
        .set("OPENAI_API_KEY", "sk-test");
    let Some(terminal) = Terminal::open(&workspace, 100, 24) else {
        return;
    };
    terminal.type_line("memctl index; echo code=$?");
    let screen = terminal.wait_for("Go on? [y/N]");
    assert!(screen.contains("25 calls, price unknown"), "{screen}");
    terminal.keys(&["Enter"]);
    let screen = terminal.wait_for("code=0");
    assert!(
        screen.contains("25 records indexed, 0 with a vector"),
        "{screen}"
    );
    assert_eq!(server.requests().len(), 0);
    terminal.type_line("clear; memctl index --yes; echo code=$?");
    let screen = terminal.wait_for("code=0");
    assert!(screen.contains("25 with a vector"), "{screen}");
    assert!(!screen.contains("Go on?"), "{screen}");
}
