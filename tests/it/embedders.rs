//! Embedders other than the built-in one: servers on real sockets.

use std::time::Instant;

use serde_json::{Value, json};

use crate::fake_model::{Behaviour, FakeModel, RecordedRequest};
use crate::support::EVER;
use crate::workspace::{Ran, Workspace};

/// What a text is about, one number a subject: near in meaning is what shares one.
const SUBJECTS: [&[&str]; 4] = [
    &["invoice", "bill", "payment"],
    &["deploy", "release", "rollout"],
    &["candidate", "applicant", "hiring"],
    &["disk", "storage", "volume"],
];

/// Texts of which no two share a word.
const RULES: [&str; 4] = [
    "Never pay an invoice twice",
    "Always tag before the deploy",
    "Ask each candidate about teamwork",
    "Check free disk space hourly",
];

/// Vector of this size for the topic of a text.
fn vector(text: &str, dimensions: usize) -> Vec<f64> {
    let text = text.to_lowercase();
    let about = |words: &&[&str]| words.iter().any(|word| text.contains(word));
    let mut vector: Vec<f64> = SUBJECTS
        .iter()
        .map(|words| if about(words) { 3.0 } else { 0.0 })
        .collect();
    vector.resize(dimensions, 0.25);
    vector
}

fn answer(request: &RecordedRequest, dimensions: usize) -> Behaviour {
    let vectors = request.input();
    Behaviour::Vectors(
        vectors
            .iter()
            .map(|text| vector(text, dimensions))
            .collect(),
    )
}

/// A server whose vectors have so many numbers.
fn server(dimensions: usize) -> FakeModel {
    FakeModel::answering(move |request| answer(request, dimensions))
}

/// A project that has been corrected a few times.
fn workspace() -> Workspace {
    let workspace = Workspace::empty();
    let entry = |(n, rule): (usize, &&str)| {
        json!({"correction_id": format!("CORR-00{n}"), "skill": "hr/screening",
            "timestamp": "2026-01-01T00:00:00+00:00", "user_correction": rule})
    };
    let entries: Vec<Value> = RULES.iter().enumerate().map(entry).collect();
    let data = json!({ "corrections": entries });
    workspace.write(".agentura/corrections.json", data.to_string());
    workspace
}

fn use_openai(workspace: &mut Workspace, model: &FakeModel) {
    workspace
        .set("MEMCTL_EMBEDDING_PROVIDER", "openai")
        .set("MEMCTL_EMBEDDING_BASE_URL", &model.openai_url())
        .set("MEMCTL_EMBEDDING_MODEL", "small");
}

fn ran(workspace: &Workspace, arguments: &[&str]) -> Ran {
    workspace.run(arguments)
}

/// The ids that are found by more than a distant meaning, and all of the report.
fn find(workspace: &Workspace, query: &str) -> (Vec<String>, Value) {
    let report = workspace.json(&["memory", "search", query, "--explain"]);
    let results = report["results"].as_array().unwrap().iter();
    let strong = results.filter(|found| found["weak"] != true);
    let ids = strong.map(|found| found["id"].as_str().unwrap().to_owned());
    (ids.collect(), report)
}

fn warnings(report: &Value) -> String {
    report["warnings"].to_string()
}

#[test]
fn both_providers_find_what_is_said_otherwise() {
    let check = |provider: &str, key: Option<&str>| {
        let model = server(8);
        let mut workspace = workspace();
        workspace
            .set("MEMCTL_EMBEDDING_PROVIDER", provider)
            .set("MEMCTL_EMBEDDING_BASE_URL", &model.openai_url())
            .set("MEMCTL_EMBEDDING_MODEL", "m-1")
            .set("MEMCTL_EMBEDDING_DIMENSIONS", "8")
            // The key for another host.
            .set("OPENAI_API_KEY", "sk-other-host");
        if let Some(key) = key {
            workspace.set("MEMCTL_EMBEDDING_API_KEY", key);
        }
        let (ids, report) = find(&workspace, "settle every bill");
        assert_eq!(ids, ["CORR-000"], "{report}");
        assert_eq!(report["results"][0]["ranks"]["keyword"], Value::Null);
        assert_eq!(report["asked"]["embedder"], format!("{provider}/m-1/8"));
        assert_eq!(warnings(&report), "[]");
        let requests = model.requests();
        assert_eq!(requests.len(), 2, "the query, and all records at once");
        assert_eq!(requests[0].input(), ["settle every bill"]);
        assert_eq!(requests[1].input().len(), RULES.len());
        for request in &requests {
            assert_eq!(request.path, "/v1/embeddings");
            assert_eq!(request.body["model"], "m-1");
            assert_eq!(request.body["dimensions"], 8);
            let authorization = key.map(|key| format!("Bearer {key}"));
            assert_eq!(request.header("authorization"), authorization.as_deref());
        }
        // The vectors are kept: only the next query is sent.
        find(&workspace, "a new rollout");
        assert_eq!(model.requests().len(), 3);
    };
    check("openai", Some("sk-embed"));
    check("openai", None);
    check("ollama", None);
}

#[test]
fn the_key_for_openai_goes_where_it_belongs() {
    let model = server(8);
    let mut workspace = workspace();
    workspace
        .set("MEMCTL_EMBEDDING_PROVIDER", "openai")
        .set("OPENAI_BASE_URL", &model.openai_url())
        .set("OPENAI_API_KEY", "sk-home");
    let (_, report) = find(&workspace, "bill");
    assert_eq!(
        report["asked"]["embedder"],
        "openai/text-embedding-3-small/8"
    );
    let requests = model.requests();
    assert_eq!(requests[0].header("authorization"), Some("Bearer sk-home"));
    assert_eq!(requests[0].body["dimensions"], Value::Null);
}

#[test]
fn an_index_says_beforehand_how_many_texts_go_where() {
    let model = server(8);
    let mut workspace = workspace();
    use_openai(&mut workspace, &model);
    workspace.set("MEMCTL_EMBEDDING_BATCH", "3");
    let ran = ran(&workspace, &["index"]);
    let host = model.openai_url();
    let host = host.trim_start_matches("http://").trim_end_matches("/v1");
    let said = format!("`: 2 calls, sending 4 texts to `{host}`, ");
    assert!(ran.succeeds().stderr.contains(&said), "{ran:?}");
    assert!(ran.stdout.contains("4 with a vector (4 new)"), "{ran:?}");
    let sizes: Vec<usize> = model.requests().iter().map(|r| r.input().len()).collect();
    assert_eq!(sizes, [3, 1]);
    // Nothing is left to be sent.
    let again = workspace.json(&["index"]);
    assert_eq!(again["embedder"], "openai/small/8");
    assert_eq!((&again["made"], &again["vectors"]), (&json!(0), &json!(4)));
    assert_eq!(model.requests().len(), 2);
}

#[test]
fn vectors_of_two_embedders_never_meet() {
    let mut workspace = workspace();
    let (ids, _) = find(&workspace, "settle every bill");
    assert_eq!(ids, ["CORR-000"]);
    let model = server(8);
    use_openai(&mut workspace, &model);
    // The query's vector alone: the records have another embedder's, and no word of it.
    let (ids, report) = find(&workspace, "settle every bill");
    assert_eq!(ids, [""; 0], "{report}");
    assert_eq!(report["asked"]["vectors"], 0);
    let expected = "4 records have their vectors from `all-minilm-l6-v2-int8-int4/384` and are found by \
                    their words alone until `memctl index` has run";
    assert!(warnings(&report).contains(expected), "{report}");
    assert_eq!(model.requests().len(), 1);
    let (ids, _) = find(&workspace, "an invoice");
    assert_eq!(ids, ["CORR-000"], "by its words it is found nevertheless");
    // New records get vectors from the current embedder.
    ran(&workspace, &["index", "--keyword"]).succeeds();
    let report = workspace.json(&["index"]);
    assert_eq!(
        (&report["made"], &report["vectors"]),
        (&json!(4), &json!(4))
    );
    let (ids, report) = find(&workspace, "settle every bill");
    assert_eq!(ids, ["CORR-000"], "{report}");
    assert_eq!(warnings(&report), "[]");
    // And back.
    workspace.set("MEMCTL_EMBEDDING_PROVIDER", "built-in");
    let (ids, report) = find(&workspace, "settle every bill");
    assert_eq!(ids, [""; 0], "{report}");
    assert!(
        warnings(&report).contains("from `openai/small/8`"),
        "{report}"
    );
    assert_eq!(workspace.json(&["index"])["vectors"], 4);
    assert_eq!(find(&workspace, "settle every bill").0, ["CORR-000"]);
}

#[test]
fn vectors_that_were_paid_for_outlive_a_search_with_another_embedder() {
    let mut workspace = workspace();
    let model = server(8);
    use_openai(&mut workspace, &model);
    ran(&workspace, &["index"]).succeeds();
    let sent = model.requests().len();
    workspace.set("MEMCTL_EMBEDDING_PROVIDER", "built-in");
    find(&workspace, "settle every bill");
    ran(&workspace, &["index", "--keyword"]).succeeds();
    ran(&workspace, &["memory", "forget", "CORR-003"]).succeeds();
    find(&workspace, "settle every bill");
    workspace.set("MEMCTL_EMBEDDING_PROVIDER", "openai");
    let report = workspace.json(&["index"]);
    assert_eq!(
        (&report["made"], &report["vectors"]),
        (&json!(0), &json!(3))
    );
    assert_eq!(model.requests().len(), sent);
}

#[test]
fn a_size_that_does_not_fit_is_named() {
    let model = server(8);
    let mut workspace = workspace();
    use_openai(&mut workspace, &model);
    workspace.set("MEMCTL_EMBEDDING_DIMENSIONS", "16");
    let said = "vectors of 8 dimensions where 16 were expected";
    ran(&workspace, &["index"]).fails(4, said);
    let (ids, report) = find(&workspace, "an invoice");
    assert_eq!(ids, ["CORR-000"]);
    assert!(warnings(&report).contains(said), "{report}");
    // The model behind a name has changed.
    workspace.set("MEMCTL_EMBEDDING_DIMENSIONS", "");
    ran(&workspace, &["index"]).succeeds();
    let other = server(12);
    workspace.set("MEMCTL_EMBEDDING_BASE_URL", &other.openai_url());
    let data = workspace.stored("corrections.json");
    let mut entries = data["corrections"].as_array().unwrap().clone();
    entries.push(json!({"correction_id": "CORR-009", "skill": "hr/screening",
        "timestamp": "2026-01-02T00:00:00+00:00", "user_correction": "Mind the rollout"}));
    let data = json!({ "corrections": entries });
    workspace.write(".agentura/corrections.json", data.to_string());
    let said = "`openai/small` returned vectors of 12 dimensions, but 8 are expected";
    ran(&workspace, &["index"])
        .fails(4, said)
        .fails(4, "memctl index --rebuild");
    let report = workspace.json(&["index", "--rebuild"]);
    assert_eq!(report["embedder"], "openai/small/12");
    assert_eq!(report["vectors"], 5);
}

#[test]
fn missing_embedder_costs_only_the_semantic_half() {
    let mut workspace = workspace();
    let unheard = FakeModel::answering(|_| Behaviour::Hang);
    let failing = FakeModel::answering(|_| Behaviour::status(500));
    let locked = FakeModel::answering(|_| Behaviour::error(401, "auth", "bad key sk-embed"));
    let strange = FakeModel::answering(|_| Behaviour::InvalidJson);
    workspace.set("MEMCTL_EMBEDDING_PROVIDER", "openai");
    workspace.set("MEMCTL_EMBEDDING_API_KEY", "sk-embed");
    let mut check = |url: &str, part: &str| {
        workspace.set("MEMCTL_EMBEDDING_BASE_URL", url);
        let start = Instant::now();
        let (ids, report) = find(&workspace, "an invoice");
        assert!(start.elapsed() < EVER, "{url}");
        assert_eq!(ids, ["CORR-000"]);
        assert!(
            warnings(&report).contains("searched by words alone"),
            "{report}"
        );
        assert!(warnings(&report).contains(part), "{report}");
        assert!(!report.to_string().contains("sk-embed"), "{report}");
        assert_eq!(report["asked"]["embedder"], Value::Null);
    };
    check("http://127.0.0.1:9/v1", "`127.0.0.1:9` cannot be reached");
    check(&unheard.openai_url(), "did not answer within 5 s");
    check(&failing.openai_url(), "status 500");
    check(&locked.openai_url(), "refused the key: bad key [key]");
    check(&strange.openai_url(), "violated its protocol");
    check("no url", "base URL");
    assert_eq!(failing.requests().len(), 1, "a search does not try again");
    // Where an index is made, it is an error.
    workspace.set("MEMCTL_EMBEDDING_BASE_URL", "http://127.0.0.1:9/v1");
    workspace.set("MEMCTL_LLM_RETRIES", "0");
    ran(&workspace, &["index"]).fails(4, "cannot be reached");
    ran(&workspace, &["index", "--keyword"]).succeeds();
}

#[test]
fn a_search_goes_on_where_only_the_records_get_no_vectors() {
    let mut workspace = workspace();
    let model = FakeModel::answering(|request| match request.input().len() {
        1 => answer(request, 8),
        _ => Behaviour::status(503),
    });
    use_openai(&mut workspace, &model);
    let (ids, report) = find(&workspace, "an invoice");
    assert_eq!(ids, ["CORR-000"]);
    assert!(
        warnings(&report).contains("new records are found by their words alone"),
        "{report}"
    );
}

#[test]
fn a_text_that_is_too_long_is_sent_shorter() {
    let mut workspace = workspace();
    let model = FakeModel::answering(|request| {
        if request.input().iter().any(|text| text.len() > 1_000) {
            return Behaviour::error(400, "invalid_request_error", "maximum context length");
        }
        answer(request, 8)
    });
    use_openai(&mut workspace, &model);
    let long = format!("deploy {}", "word ".repeat(9_000));
    let entry = json!({"correction_id": "CORR-001", "skill": "hr/screening",
        "timestamp": "2026-01-01T00:00:00+00:00", "user_correction": long});
    let data = json!({ "corrections": [entry] });
    workspace.write(".agentura/corrections.json", data.to_string());
    let report = workspace.json(&["index"]);
    assert_eq!(report["vectors"], 1, "{report}");
    let sent: Vec<usize> = model
        .requests()
        .iter()
        .map(|r| r.input()[0].len())
        .collect();
    assert_eq!(sent, [4_000, 1_000]);
}

#[test]
fn a_foreign_workspace_sends_nothing_anywhere() {
    let model = server(8);
    let mut workspace = workspace();
    workspace.set("OPENAI_API_KEY", "sk-user");
    let config = format!(
        "[embedding]\nprovider = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n",
        model.openai_url()
    );
    workspace.write(".agentura/config.toml", config);
    let ran = ran(&workspace, &["memory", "search", "settle every bill"]);
    for key in ["provider", "base_url"] {
        let said = format!("sets `embedding.{key}`, which is ignored until you run `memctl trust`");
        assert!(ran.stderr.contains(&said), "{ran:?}");
    }
    assert!(ran.succeeds().stdout.contains("CORR-000"), "{ran:?}");
    assert_eq!(model.requests().len(), 0);
    workspace.run(&["trust"]).succeeds();
    let report = workspace.json(&["index"]);
    assert_eq!(report["embedder"], "openai/m/8");
    assert_eq!(model.requests()[0].header("authorization"), None);
}

#[test]
fn settings_that_make_no_sense_are_named() {
    let check = |name: &str, value: &str, part: &str| {
        let mut workspace = workspace();
        workspace.set("MEMCTL_EMBEDDING_PROVIDER", "openai");
        workspace.set(name, value);
        ran(&workspace, &["memory", "search", "x"]).fails(2, part);
    };
    check(
        "MEMCTL_EMBEDDING_PROVIDER",
        "acme",
        "built-in, openai and ollama",
    );
    check("MEMCTL_EMBEDDING_BATCH", "0", "`embedding.batch` is `0`");
    check(
        "MEMCTL_EMBEDDING_DIMENSIONS",
        "many",
        "`embedding.dimensions` is `many`",
    );
}
