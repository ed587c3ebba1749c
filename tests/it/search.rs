//! `memctl search` by keywords and meaning.

use std::path::Path;

use serde_json::json;

use crate::support::ids;
use crate::workspace::{Workspace, copy};

/// Project with the records of the repository's sample.
fn workspace() -> Workspace {
    let workspace = Workspace::sample();
    let memory = Path::new(env!("CARGO_MANIFEST_DIR")).join(".agentura");
    copy(&memory, &workspace.root().join(".agentura"));
    workspace
}

/// Writes memories with the ids `MEM-001` and up.
fn write_memories(workspace: &Workspace, contents: impl IntoIterator<Item = String>) {
    let entry = |(number, content): (usize, String)| {
        json!({"id": format!("MEM-{number:03}"), "memory_type": "task_memory",
            "content": content, "metadata": {}, "created_at": "2026-01-01T00:00:00Z",
            "updated_at": "2026-01-01T00:00:00Z"})
    };
    let entries: Vec<_> = (1..).zip(contents).map(entry).collect();
    workspace.write(
        ".agentura/memories.json",
        json!({ "entries": entries }).to_string(),
    );
}

#[test]
fn paraphrase_is_found_by_its_meaning() {
    let workspace = workspace();
    let query = ["memory", "search", "verify regulatory requirements"];
    let report = workspace.json(&query);
    assert!(ids(&report["results"]).contains(&"REFL-001"), "{report}");
    assert!(report["results"][0]["ranks"]["keyword"].is_null());
    assert_eq!(report["results"][0]["ranks"]["semantic"], 1);
    let report = workspace.json(&[&query[..], &["--keyword"]].concat());
    assert_eq!(ids(&report["results"]), [""; 0]);
    // The question of the source document, also where the answer is a weak match.
    write_memories(
        &workspace,
        ["Follow all regulatory requirements.", "The tea is green."].map(str::to_owned),
    );
    let report = workspace.json(&["memory", "search", "check compliance", "--kind", "memory"]);
    assert_eq!(report["results"][0]["id"], "MEM-001", "{report}");
}

#[test]
fn record_without_a_keyword_or_semantic_match_is_left_out() {
    let workspace = workspace();
    for query in [
        "execution_id input_summary output_summary",
        "timestamp user_correction original_output",
        "baking bread",
        "",
    ] {
        let search = ["memory", "search", query];
        let report = workspace.json(&search);
        let mut shown = report["results"].as_array().unwrap().iter();
        assert!(
            shown.all(|found| found["weak"] == true),
            "{query}: {report}"
        );
        let report = workspace.json(&[&search[..], &["--min-score", "0.2"]].concat());
        assert_eq!(ids(&report["results"]), [""; 0], "{query}: {report}");
    }
}

#[test]
fn a_sentence_deep_in_a_long_record_is_found_and_shown() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let filler = |topic: &str| {
        let sentence =
            |n| format!("The {topic} report number {n} was printed and filed on shelf {n}.");
        (0..20).map(sentence).collect::<Vec<_>>().join(" ")
    };
    let deep = "My dog chewed up the sofa while nobody was home. The puppy tore the curtains and both \
        cushions of the couch, so that we had to throw the chairs and the table away as well.";
    let memories = [
        filler("harvest"),
        format!("{} {deep} {}", filler("traffic"), "The rest is unknown."),
        filler("weather"),
    ];
    write_memories(&workspace, memories);
    let report = workspace.json(&["search", "pet destroyed furniture"]);
    assert_eq!(report["results"][0]["id"], "MEM-002", "{report}");
    let snippet = report["results"][0]["snippet"].as_str().unwrap();
    assert!(
        snippet.contains("sofa") && snippet.starts_with('…'),
        "{snippet}"
    );
    assert!(snippet.chars().count() <= 200, "{snippet}");
    assert_eq!(
        report["results"][0]["ranks"]["keyword"],
        serde_json::Value::Null
    );
}

/// Most of a chat names its speakers, so a question about one of them is near to every greeting.
#[test]
fn a_question_about_a_speaker_finds_what_was_said_and_no_greeting() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let greetings = [
        "Greta: Sleep well, Anton.",
        "Anton: Good night, Greta.",
        "Greta: Hey Anton, wonderful!",
        "Anton: Hi Greta, how was it?",
    ];
    let chat = greetings.iter().cycle().take(24).copied();
    let said = chat.chain(["Anton: We had oatmeal with berries for breakfast."]);
    write_memories(&workspace, said.map(str::to_owned));

    let query = [
        "memory",
        "search",
        "What does Greta eat in the morning?",
        "--explain",
    ];
    let report = workspace.json(&query);
    assert_eq!(report["results"][0]["id"], "MEM-025", "{report}");
    assert_eq!(report["query"], query[2]);
    let embedded = &report["asked"]["embedded"];
    assert_eq!(embedded, "What does eat in the morning?");
    let shown = workspace.run(&query);
    let reasons = [
        "MEM-025  no query word; meaning 0.",
        "compared:     What does eat in the morning?",
    ];
    for reason in reasons {
        assert!(shown.succeeds().stdout.contains(reason), "{shown:?}");
    }

    let report = workspace.json(&["memory", "search", "breakfast", "--explain"]);
    assert!(report["asked"]["embedded"].is_null(), "{report}");
}
