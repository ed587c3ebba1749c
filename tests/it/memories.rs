//! Typed memories from outside: add, list, search, expire and remove.

use std::fs;
use std::path::Path;

use memctl::model::{Memory, MemoryType, Scope, Shape};
use memctl::store::{Scoped, Selection};
use memctl_files::json::compact;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::mcp::Server;
use crate::support::ids;
use crate::workspace::{Ran, Workspace};

const MEMORIES: &str = ".agentura/memories.json";

/// The examples of the five types, each with metadata that has every field of its schema.
const EXAMPLES: [(&str, &str, &str); 5] = [
    (
        "brand_memory",
        "Brand: TechFlow\nVoice: Professional yet approachable, technical but not jargon-heavy\nICP: B2B SaaS \
         companies, 10-500 employees, looking to streamline operations\nMessaging: \"Automate your \
         workflow, amplify your impact\"",
        r#"{"brand_name": "TechFlow", "industry": "B2B SaaS", "target_audience": "10-500 employees",
            "tone": ["professional", "friendly"], "keywords": ["automate"], "competitors": ["Acme Corp"],
            "source": "user_input"}"#,
    ),
    (
        "user_preferences",
        "Preferred video format: Portrait 9:16\nPreferred video length: 15-30 seconds\nPreferred actors: \
         Diverse representation, professional setting\nPreferred tone: Energetic, motivational\nPreferred \
         platforms: TikTok, Instagram Reels",
        r#"{"preference_type": "video_format", "confidence_score": 0.9, "last_updated": "2026-02-01",
            "source": "explicit_choice"}"#,
    ),
    (
        "competitive_memory",
        "Competitor: Acme Corp\nHook: \"Stop wasting 10 hours a week on manual data entry\"\nFormat: \
         Problem-Solution-CTA in 20 seconds\nPlatform: Meta Ads MultiIndex\nPerformance: High engagement (10k+ \
         likes)\nKey insight: Direct pain point addressing works better than feature-first",
        r#"{"competitor_name": "Acme Corp", "platform": "meta", "ad_id": "42", "performance_metrics":
            {"engagement_rate": 0.12, "view_count": 120000, "share_count": 300}, "date_captured":
            "2026-01-15", "hook_type": "pain_point", "cta_type": "trial"}"#,
    ),
    (
        "task_memory",
        "Task: Full agent run for TikTok ad campaign\nOutcome: Success (3 videos generated, all approved by \
         user)\nKey decisions:\n- Used competitor hook from Nike campaign\n- Selected energetic background \
         music\n- Chose portrait format for mobile optimization\nUser feedback: Positive",
        r#"{"session_id": "SESS-20260220110000", "task_type": "full_agent_run", "outcome": "success",
            "user_feedback": "positive", "decisions_made": ["portrait", "energetic music"],
            "tools_used": ["search"]}"#,
    ),
    (
        "performance_memory",
        "Video: \"TechFlow Demo - Problem-Solution Hook\"\nPlatform: TikTok\nPerformance: 50k views, 8% \
         engagement rate, 2% CTR\nWhat worked: Direct problem statement in first 3 seconds\nWhat didn't \
         work: CTA was too subtle, needed stronger call-to-action\nInsight: Pain point hooks outperform \
         feature-first hooks 3:1",
        r#"{"video_id": "v-7", "platform": "tiktok", "metrics": {"views": 50000, "engagement_rate": 0.08,
            "conversion_rate": 0.01, "ctr": 0.02}, "campaign_context": "launch", "what_worked":
            "problem first", "what_didnt_work": "subtle CTA"}"#,
    ),
];

fn workspace() -> Workspace {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    workspace
}

fn add(workspace: &Workspace, of: &str, content: &str, metadata: &str, more: &[&str]) -> Ran {
    let args = [
        "memory", "add", "--type", of, "--content", content, "--metadata", metadata, "--json",
    ];
    workspace.run(&[&args, more].concat())
}

fn added(workspace: &Workspace, of: &str, content: &str, metadata: &str, more: &[&str]) -> Value {
    let ran = add(workspace, of, content, metadata, more);
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.document()
}

/// The program a hundred days later, when tasks are over.
fn later(workspace: &mut Workspace) {
    workspace.set("MEMCTL_NOW", "2026-06-01T00:00:00Z");
}

#[test]
fn every_example_goes_in_comes_back_typed_and_is_found() {
    let workspace = workspace();
    for (number, (of, content, metadata)) in (1..).zip(EXAMPLES) {
        let report = added(&workspace, of, content, metadata, &[]);
        let id = format!("MEM-{number:03}");
        let ends = (of == "task_memory").then_some("2026-05-21T12:43:41.681444+00:00");
        assert_eq!(report["id"], id);
        assert_eq!(report["memory_type"], of);
        assert_eq!(report["expires_at"], json!(ends));
        assert_eq!(
            (&report["added"], &report["warnings"]),
            (&json!(true), &json!([]))
        );
        let shown = workspace.json(&["memory", "show", &id]);
        let record = &shown["record"];
        assert_eq!(
            (&record["memory_type"], &record["content"]),
            (&json!(of), &json!(content))
        );
        let metadata: Value = serde_json::from_str(metadata).unwrap();
        assert_eq!(record["metadata"], metadata);
        // The example has every field of its schema.
        let of: MemoryType = serde_json::from_value(json!(of)).unwrap();
        for &(name, ..) in of.fields() {
            assert!(metadata.get(name).is_some(), "{name}");
        }
    }
    for (words, id) in [
        ("how should our company sound", "MEM-001"),
        ("which clips does the user like best", "MEM-002"),
        ("what do rivals say in their adverts", "MEM-003"),
        ("what did the agent decide last time", "MEM-004"),
        ("results of the demo clip", "MEM-005"),
    ] {
        let found = workspace.json(&["memory", "search", words, "-n", "2"]);
        assert!(ids(&found["results"]).contains(&id), "{words}: {found}");
    }
    // The filter comes before the cut: the one that is asked for is not the best of all.
    let best = |args: &[&str]| {
        let search = ["memory", "search", "TikTok video", "-n", "1"];
        let found = workspace.json(&[&search[..], args].concat());
        ids(&found["results"]).concat()
    };
    assert_eq!(best(&[]), "MEM-002");
    assert_eq!(best(&["--type", "task_memory"]), "MEM-004");
    for (number, (of, _, _)) in (1..).zip(EXAMPLES) {
        let id = format!("MEM-{number:03}");
        let list = workspace.json(&["memory", "list", "--type", of]);
        assert_eq!(ids(&list["records"]), [id.as_str()]);
        assert_eq!(list["records"][0]["memory_type"], of);
        let found = workspace.json(&["memory", "search", "TikTok video", "--type", of]);
        let found: Vec<&Value> = found["results"].as_array().unwrap().iter().collect();
        assert!(found.iter().all(|r| r["memory_type"] == of), "{found:?}");
    }
    assert_eq!(workspace.json(&["memory", "status"])["memories"], 5);
}

#[test]
fn invalid_memory_is_refused_as_a_whole_and_writes_nothing() {
    let workspace = workspace();
    let check = |of: &str, metadata: &str, expected: &[&str]| {
        let ran = add(&workspace, of, "x", metadata, &[]);
        assert_eq!(ran.code, 2, "{ran:?}");
        let error = &ran.document()["error"];
        assert_eq!(error["kind"], "input");
        let message = error["message"].as_str().unwrap();
        for part in expected {
            assert!(message.contains(part), "{message}\n{part}");
        }
        assert!(
            error["hint"]
                .as_str()
                .unwrap()
                .contains("memory add --help"),
            "{error}"
        );
    };
    check(
        "user_preferences",
        r#"{"preference_type": "Music!", "confidence_score": 1.5}"#,
        &[
            "`metadata.preference_type` is `\"Music!\"`, and must be one of `video_format`, `actor`, `music`, `tone`, \
             `platform`",
            "`metadata.confidence_score` is `1.5`, and must be a number from 0 to 1",
        ],
    );
    check(
        "brand_memory",
        r#"{"tone": "calm"}"#,
        &["`\"calm\"`, and must be a list of texts"],
    );
    check(
        "brand_memory",
        "[1]",
        &["`metadata` is `[1]`, and must be an object"],
    );
    check(
        "performance_memory",
        r#"{"video_id": "v", "metrics": {"views": "many"}}"#,
        &["`metadata.metrics.views` is `\"many\"`, and must be a number, 0 or more"],
    );
    // Every value of every closed set is taken, and no other.
    for of in MemoryType::ALL {
        for &(field, _, shape) in of.fields() {
            let Shape::OneOf(names) = shape else {
                continue;
            };
            for name in names {
                let metadata = format!(r#"{{"{field}": "{name}"}}"#);
                let raw = serde_json::value::RawValue::from_string(metadata).unwrap();
                let misfits = of.check(&raw);
                assert!(misfits.iter().all(|m| m.value.is_none()), "{misfits:?}");
            }
            check(
                of.name(),
                &format!(r#"{{"{field}": "none of it"}}"#),
                &[names[0], field],
            );
        }
    }
    for (content, end, part) in [
        (" \n", "30d", "`content` is empty"),
        ("<private>x</private>", "30d", "`content` is empty"),
        (
            "x",
            "2026-02-20",
            "`expires_at` is `2026-02-20`: that is over already",
        ),
        ("x", "soon", "`expires_at` is `soon`: it must be a time"),
        ("x", "0d", "over already"),
        ("x", "999999999999999999y", "too far"),
    ] {
        let ran = add(
            &workspace,
            "brand_memory",
            content,
            "{}",
            &["--expires-at", end],
        );
        assert_eq!(ran.code, 2, "{ran:?}");
        let error = ran.document()["error"]["message"].to_string();
        assert!(error.contains(part), "{error}");
    }
    // All of one document at once: content, metadata and time.
    let ran = add(
        &workspace,
        "task_memory",
        "",
        "{}",
        &["--expires-at", "soon"],
    );
    assert!(
        ran.stdout.contains("2 problems with the task_memory"),
        "{ran:?}"
    );
    // A secret in a wrong value is not repeated.
    let key = ["ghp_", &"a1B2c3D4e5F6".repeat(3)].concat();
    let ran = add(
        &workspace,
        "brand_memory",
        "x",
        &format!(r#"{{"tone": "{key}"}}"#),
        &[],
    );
    assert!(ran.code == 2 && !ran.stdout.contains(&key), "{ran:?}");
    for (args, part) in [
        (&["--metadata", "{"][..], "is not JSON"),
        (&["--metadata", "@none.json"], "cannot read"),
        (&["--metadata", "-", "--content", "-"], "only one of"),
    ] {
        let fixed = ["memory", "add", "--type", "brand_memory"];
        let content: &[&str] = if args.contains(&"--content") {
            &[]
        } else {
            &["--content", "x"]
        };
        let ran = workspace.run(&[&fixed, args, content].concat());
        assert!(ran.code == 2 && ran.stderr.contains(part), "{ran:?}");
    }
    assert!(!workspace.memory("memories.json").exists());
    // Without any metadata it is taken, as the source document's clients write it, and said to lack some.
    let bare = workspace.json(&[
        "memory", "add", "--type", "task_memory", "--content", "Made three videos",
    ]);
    assert!(bare["expires_at"].is_string());
    let warnings = bare["warnings"].to_string();
    assert!(
        warnings.contains("`metadata.task_type` is missing"),
        "{warnings}"
    );
}

#[test]
fn metadata_comes_from_a_file_and_secrets_stay_outside() {
    let workspace = workspace();
    let key = ["ghp_", &"a1B2c3D4e5F6".repeat(3)].concat();
    workspace.write("m.json", format!("\u{feff}{{\"keywords\": [\"{key}\"]}}\n"));
    let content = format!("Voice: calm <private>our lawyer says</private>, token {key}");
    let report = added(&workspace, "brand_memory", &content, "@m.json", &[]);
    let text = workspace.read(MEMORIES);
    assert!(
        !text.contains(&key) && !text.contains("lawyer") && text.contains("Voice: calm"),
        "{text}"
    );
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("private passages"), "{warnings}");
    // Adding the same text again returns the same memory.
    let again = added(&workspace, "brand_memory", &content, "@m.json", &[]);
    assert_eq!(
        (&again["id"], &again["added"]),
        (&json!("MEM-001"), &json!(false))
    );
}

#[test]
fn the_same_said_again_is_one_memory_that_lasts_as_long_as_the_last() {
    let mut workspace = workspace();
    let (of, content, metadata) = EXAMPLES[3];
    added(&workspace, of, content, metadata, &[]);
    workspace.set("MEMCTL_NOW", "2026-03-20T00:00:00Z");
    let report = added(&workspace, of, content, metadata, &[]);
    assert_eq!(
        (&report["id"], &report["added"]),
        (&json!("MEM-001"), &json!(false))
    );
    let ends = |workspace: &Workspace| {
        workspace.stored("memories.json")["entries"][0]["expires_at"].clone()
    };
    assert_eq!(report["expires_at"], "2026-06-18T00:00:00.000000+00:00");
    assert_eq!(ends(&workspace), report["expires_at"]);
    // A given `--expires-at` replaces the expiry; without one, the expiry stays.
    for (end, expected) in [
        ("3d", json!("2026-03-23T00:00:00.000000+00:00")),
        ("never", json!(null)),
    ] {
        added(&workspace, of, content, metadata, &["--expires-at", end]);
        assert_eq!(ends(&workspace), expected);
    }
    added(&workspace, of, content, metadata, &[]);
    assert_eq!(ends(&workspace), json!(null));
    // Another user, another type and other metadata are other memories.
    let of_alice = added(&workspace, of, content, metadata, &["--user", "alice"]);
    assert_eq!(
        (&of_alice["id"], &of_alice["warnings"]),
        (&json!("MEM-002"), &json!([]))
    );
    let other = metadata.replace("positive", "neutral");
    let other = added(&workspace, of, content, &other, &[]);
    assert_eq!(other["id"], "MEM-003");
    // A person can add a removed memory again, with a warning.
    workspace.run(&["memory", "forget", "MEM-001"]).succeeds();
    workspace.run(&["memory", "forget", "MEM-003"]).succeeds();
    let back = added(&workspace, of, content, metadata, &[]);
    assert_eq!(back["id"], "MEM-004");
    assert_eq!(
        back["warnings"][0],
        "the same was removed on 2026-03-20, as `MEM-003`"
    );
}

#[test]
fn tasks_end_after_as_many_days_as_are_configured() {
    let mut workspace = workspace();
    let (of, content, metadata) = EXAMPLES[3];
    for (days, expected) in [
        ("1", json!("2026-02-21T12:43:41.681444+00:00")),
        ("0", json!(null)),
        ("4294967295", json!(null)),
    ] {
        workspace.set("MEMCTL_MEMORY_TASK_DAYS", days);
        let report = added(&workspace, of, &format!("{content} {days}"), metadata, &[]);
        assert_eq!(report["expires_at"], expected, "{days}");
    }
    workspace.set("MEMCTL_MEMORY_TASK_DAYS", "many");
    assert_eq!(add(&workspace, of, content, metadata, &[]).code, 2);
}

/// Everything that reads, as far as it needs no terminal and no model. What takes an id is asked for
/// the id that must not be there.
fn reading(id: &str) -> Vec<Vec<String>> {
    let words = |line: &str| {
        line.split(' ')
            .map(|w| w.replace("ID", id).replace('_', " "))
            .collect()
    };
    [
        "memory list memories",
        "memory list memories -n 1",
        "memory list --type task_memory",
        "memory show ID",
        "memory show MEM-",
        "memory why ID",
        "memory edit ID --set content=seen",
        "memory forget ID",
        "memory approve ID",
        "memory search saffron_portrait -n 50",
        "memory search saffron --keyword --explain",
        "memory search saffron",
        "memory search saffron --type task_memory",
        "memory status",
        "review",
        "memory prompt hr/resume-screen",
        "stats",
        "doctor",
        "index",
        "index --rebuild",
        "hint --error saffron",
        "config show",
    ]
    .iter()
    .map(|line| words(&line.replace("task_memory", "task\u{1}memory")))
    .map(|args: Vec<String>| args.iter().map(|arg| arg.replace('\u{1}', "_")).collect())
    .collect()
}

#[test]
fn expired_record_is_hidden_from_every_read_at_once() {
    let mut workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    let (of, _, metadata) = EXAMPLES[3];
    let report = added(&workspace, of, "Task: saffron in portrait", metadata, &[]);
    assert_eq!(report["id"], "MEM-001");
    let (kept, _, metadata) = EXAMPLES[0];
    added(&workspace, kept, "Voice: calm", metadata, &[]);
    let said = |workspace: &Workspace, args: &[String]| {
        let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
        args.push("--json");
        Ran::of(workspace.command().args(&args).output().unwrap())
    };
    // Before it expires, every reader sees it.
    let sees = |workspace: &Workspace| {
        let harmless = |args: &Vec<String>| !["edit", "forget"].contains(&args[1].as_str());
        let all = reading("MEM-001")
            .into_iter()
            .filter(|args| args.len() < 2 || harmless(args));
        all.filter(|args| {
            said(workspace, args)
                .stdout
                .to_lowercase()
                .contains("saffron in")
        })
        .count()
    };
    assert!(sees(&workspace) >= 8, "{}", sees(&workspace));
    // The index holds its words and its vector; only the clock has moved.
    later(&mut workspace);
    for args in reading("MEM-001") {
        let ran = said(&workspace, &args);
        let all = format!("{}{}", ran.stdout, ran.stderr).to_lowercase();
        assert!(!all.contains("saffron in"), "{args:?}: {ran:?}");
        let asks = args.iter().any(|arg| arg == "MEM-001");
        assert!(asks || !all.contains("mem-001"), "{args:?}: {ran:?}");
        if asks {
            assert_eq!(ran.code, 2, "{args:?}: {ran:?}");
        }
    }
    assert_eq!(workspace.json(&["memory", "status"])["memories"], 1);
    assert_eq!(workspace.json(&["memory", "show", "MEM-"])["id"], "MEM-002");
    assert!(workspace.read(MEMORIES).contains("saffron in portrait"));
}

/// Every file of the index that holds this text.
fn index_files_with(workspace: &Workspace, text: &str) -> usize {
    let files = fs::read_dir(workspace.memory(".index/search")).unwrap();
    let holds = |path: &Path| {
        let bytes = fs::read(path).unwrap();
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    files
        .filter(|file| holds(&file.as_ref().unwrap().path()))
        .count()
}

#[test]
fn pruning_removes_the_record_its_words_and_its_vector() {
    let mut workspace = workspace();
    for (of, content, metadata) in EXAMPLES {
        added(&workspace, of, content, metadata, &[]);
    }
    let (of, _, metadata) = EXAMPLES[3];
    added(
        &workspace,
        of,
        "Task: saffron",
        metadata,
        &["--user", "alice"],
    );
    let text = workspace.read(MEMORIES).replacen(
        "\"expires_at\": null",
        "\"expires_at\": \"some day\"",
        1,
    );
    workspace.write(MEMORIES, text);
    workspace.json(&["index"]);
    assert!(index_files_with(&workspace, "saffron") > 0);
    let before = workspace.read(MEMORIES);
    let nothing = workspace.json(&["memory", "prune"]);
    assert_eq!(
        (&nothing["removed"], &nothing["unreadable"]),
        (&json!([]), &json!(["MEM-001"]))
    );
    later(&mut workspace);
    let planned = workspace.json(&["memory", "prune", "--dry-run"]);
    assert_eq!(ids(&planned["removed"]), ["MEM-004", "MEM-006"]);
    assert_eq!(
        planned["removed"][0]["expired_at"],
        "2026-05-21T12:43:41.681444Z"
    );
    assert_eq!(workspace.read(MEMORIES), before);
    // A user prunes only their own memories.
    let of_alice = workspace.json(&["memory", "prune", "--user", "alice"]);
    assert_eq!(ids(&of_alice["removed"]), ["MEM-006"]);
    assert_eq!(index_files_with(&workspace, "saffron"), 0);
    let report = workspace.json(&["memory", "prune"]);
    assert_eq!(
        (&report["dry_run"], &report["unreadable"]),
        (&json!(false), &json!(["MEM-001"]))
    );
    assert_eq!(ids(&report["removed"]), ["MEM-004"]);
    assert_eq!(report["removed"][0]["memory_type"], "task_memory");
    let stored = workspace.stored("memories.json");
    assert_eq!(
        ids(&stored["entries"]),
        ["MEM-001", "MEM-002", "MEM-003", "MEM-005"]
    );
    let ran = workspace.run(&["memory", "show", "MEM-004"]);
    assert!(
        ran.code == 2 && ran.stderr.contains("was removed on 2026-06-01"),
        "{ran:?}"
    );
    // Ids are not given again.
    let new = added(&workspace, "brand_memory", "new", "{}", &[]);
    assert_eq!(new["id"], "MEM-007");
    let ran = workspace.run(&["memory", "prune"]);
    assert!(ran.stdout.contains("Nothing has expired"), "{ran:?}");
}

#[test]
fn an_edited_memory_still_fits_its_type() {
    let workspace = workspace();
    for (of, content, metadata) in EXAMPLES {
        added(&workspace, of, content, metadata, &[]);
    }
    let edit = |id: &str, sets: &[&str]| {
        let args: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        workspace.run(&[&["memory", "edit", id, "--json"], &args[..]].concat())
    };
    let entry = |number: usize| workspace.stored("memories.json")["entries"][number - 1].clone();
    let untouched = entry(2);
    let with = |number: usize, name: &str, value: Value| {
        let mut metadata = entry(number)["metadata"].clone();
        metadata[name] = value;
        format!("metadata={metadata}")
    };
    edit("MEM-001", &[&with(1, "tone", json!(["calm"]))]).succeeds();
    let metadata = &entry(1)["metadata"];
    assert_eq!(metadata["tone"], json!(["calm"]));
    assert_eq!(metadata["brand_name"], "TechFlow");
    edit("MEM-005", &["expires_at=2w", "content=60k views"]).succeeds();
    let edited = entry(5);
    assert_eq!(
        (&edited["content"], &edited["expires_at"]),
        (
            &json!("60k views"),
            &json!("2026-03-06T12:43:41.681444+00:00")
        )
    );
    edit("MEM-005", &["expires_at=never"]).succeeds();
    assert_eq!(entry(5)["expires_at"], json!(null));
    for (id, sets, parts) in [
        (
            "MEM-001",
            &[&*with(1, "tone", json!("calm"))][..],
            &["metadata.tone"][..],
        ),
        (
            "MEM-002",
            &[&*with(2, "confidence_score", json!(1.2))],
            &["`metadata.confidence_score` is `1.2`, and must be a number from 0 to 1"],
        ),
        (
            "MEM-002",
            &["memory_type=task_memory"],
            &["`metadata.session_id` is missing"],
        ),
        (
            "MEM-002",
            &["metadata={}"],
            &["preference_type", "confidence_score", "last_updated"],
        ),
        ("MEM-002", &["expires_at=2026-01-01"], &["over already"]),
        ("MEM-002", &["content= "], &["must say something"]),
        (
            "MEM-002",
            &["user_id=bob"],
            &["`user_id` of the note `MEM-002` cannot be edited"],
        ),
    ] {
        let ran = edit(id, sets);
        assert_eq!(ran.code, 2, "{ran:?}");
        let message = ran.document()["error"]["message"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
    assert_eq!(entry(2), untouched);
    let words =
        json!({"session_id": "s", "task_type": "research_only", "outcome": "failure"}).to_string();
    edit(
        "MEM-002",
        &["memory_type=task_memory", &format!("metadata={words}")],
    )
    .succeeds();
    assert_eq!(entry(2)["memory_type"], "task_memory");
}

#[test]
fn entry_written_by_hand_without_a_user_works_for_the_owner() {
    let workspace = workspace();
    let text = r#"{"entries": [
      {"id": "MEM-007", "memory_type": "brand_memory", "content": "Voice: calm",   "metadata": {"tone": "calm", "big": 12345678901234567890123}, "created_at": "2026-01-01T00:00:00Z", "mine": [1e300]},
      {"id": "MEM-008", "memory_type": "future_memory", "content": "unknown type"},
      {"id": "MEM-009", "memory_type": "task_memory", "content": "Task: old", "expires_at": "2030-01-01"}
    ]}"#;
    workspace.write(MEMORIES, text);
    let list = workspace.json(&["memory", "list", "memories"]);
    assert_eq!(ids(&list["records"]), ["MEM-009", "MEM-008", "MEM-007"]);
    let shown = workspace.json(&["memory", "show", "MEM-007"]);
    let warning = shown["warnings"][0].as_str().unwrap();
    assert!(
        warning.contains("`metadata.tone` is `\"calm\"`"),
        "{warning}"
    );
    let found = workspace.json(&["memory", "search", "how do we sound"]);
    assert_eq!(found["results"][0]["id"], "MEM-007");
    // Other fields can be edited although the metadata does not fit, and every other byte stays.
    workspace.json(&["memory", "edit", "MEM-007", "--set", "content=Voice: loud"]);
    let after = workspace.read(MEMORIES);
    for kept in [
        r#""metadata": {"tone": "calm", "big": 12345678901234567890123}"#,
        r#""mine": [1e300]"#,
    ] {
        assert!(after.contains(kept), "{after}");
    }
    let list = workspace.json(&["memory", "list", "--type", "task_memory"]);
    assert_eq!(ids(&list["records"]), ["MEM-009"]);
}

fn json_value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?"
            .prop_filter("a number that readers take", |number| number
                .parse::<f64>()
                .is_ok_and(f64::is_finite)),
        "[a-zäß日😀 ]{0,8}".prop_map(|text| json!(text).to_string()),
        Just("\"\\u00e9\\/\\ud83d\\ude00\"".to_owned()),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let list = prop::collection::vec(inner.clone(), 0..4);
        let fields = prop::collection::vec(("[p-z]{1,3}\\.?[0-9]", inner), 0..4);
        prop_oneof![
            list.prop_map(|items| format!("[{}]", items.join(" , "))),
            fields.prop_map(|fields| {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(k, v)| format!("\"{k}\":  {v}"))
                    .collect();
                format!("{{ {} }}", fields.join(","))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn unknown_metadata_comes_back_byte_for_byte(value in json_value()) {
        let workspace = workspace();
        let metadata = format!("{{\"tone\": [\"calm\"], \"unknown\": {value}, \"industry\": \"x\"}}");
        added(&workspace, "brand_memory", "Voice: calm", &metadata, &[]);
        let store = Scoped::new(workspace.root().join(".agentura"), Scope::All);
        let stored = || {
            let memories = store.list::<Memory>(&Selection::default()).unwrap().records;
            compact(memories[0].metadata.get())
        };
        // White space between tokens changes; the tokens do not.
        prop_assert_eq!(stored(), compact(&metadata));
        let entry = |text: &str| text[text.find("\"unknown\"").unwrap()..text.find("\"industry\"").unwrap()].to_owned();
        let before = entry(&workspace.read(MEMORIES));
        workspace.json(&["memory", "edit", "MEM-001", "--set", "content=Voice: loud"]);
        prop_assert_eq!(entry(&workspace.read(MEMORIES)), before);
        prop_assert_eq!(stored(), compact(&metadata));
    }

    #[test]
    fn pruning_leaves_every_other_byte_as_it_was(
        expired in prop::collection::vec(any::<bool>(), 0..9),
        gap in "[ \n\t]{0,3}",
    ) {
        let workspace = workspace();
        let entry = |(number, expired): (usize, &bool)| {
            let end = if *expired { "2026-01-01" } else { "2030-01-01" };
            format!("{{\"id\": \"MEM-{number:03}\",  \"memory_type\": \"brand_memory\", \"content\": \"c{number}\", \"expires_at\": \"{end}\"}}")
        };
        let file = |entries: Vec<String>| entries.join(&format!("{gap},{gap}"));
        let all: Vec<String> = expired.iter().enumerate().map(entry).collect();
        workspace.write(MEMORIES, format!("{{\"entries\": [{gap}{}{gap}], \"mine\": 1.0}}", file(all.clone())));
        let report = workspace.json(&["memory", "prune"]);
        let over = expired.iter().filter(|over| **over).count();
        prop_assert_eq!(report["removed"].as_array().unwrap().len(), over);
        let after = workspace.read(MEMORIES);
        let parsed: Value = serde_json::from_str(&after).unwrap();
        prop_assert_eq!(parsed["entries"].as_array().unwrap().len(), expired.len() - over);
        for (entry, expired) in all.iter().zip(&expired) {
            prop_assert_eq!(after.contains(entry), !expired);
        }
        let is_whole = after.ends_with("], \"mine\": 1.0}");
        prop_assert!(is_whole, "{}", after);
        let removals = fs::read_to_string(workspace.memory("tombstones.jsonl")).unwrap_or_default();
        prop_assert_eq!(removals.lines().count(), over);
    }
}

/// A decision, its amendment, and another note about a thing beside it, each with a question. Of 24, the number of
/// questions whose first result is right: about amendments, and about the other notes.
fn first_of_amended(dates: [&str; 3]) -> [usize; 2] {
    let cases = include_str!("../../fixtures/amended.jsonl");
    let cases: Vec<Value> = cases
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let notes = cases
        .iter()
        .flat_map(|case| ["earlier", "later", "beside"].map(|name| case[name].clone()));
    let entries: Vec<Value> = (1..)
        .zip(notes)
        .map(|(number, text)| {
            json!({"id": format!("MEM-{number:03}"), "memory_type": "brand_memory", "content": text,
                "metadata": {}, "created_at": dates[(number - 1) % 3]})
        })
        .collect();
    let workspace = Workspace::sample();
    let file = json!({"entries": entries}).to_string();
    workspace.write(".agentura/memories.json", file);
    workspace.json(&["index"]);
    let mut server = Server::greeted(&workspace, &["mcp"]);
    let found = [("ask", 2), ("ask_beside", 3)].map(|(question, place)| {
        let right = cases.iter().enumerate().filter(|(case, texts)| {
            let (found, _) = server.done("search", &json!({"query": texts[question]}));
            let id = format!("MEM-{:03}", 3 * case + place);
            found["results"][0]["id"] == id
        });
        right.count()
    });
    server.end();
    found
}

#[test]
fn amended_decision_comes_after_its_amendment() {
    let dates = [1, 2, 3].map(|month| format!("2026-0{month}-01T00:00:00Z"));
    assert_eq!(
        first_of_amended([&dates[0], &dates[1], &dates[2]]),
        [18, 24]
    );
    assert_eq!(first_of_amended([""; 3]), [4, 24]);
}

#[test]
fn an_amended_memory_is_not_found_any_more() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let add = |content: &str, more: &[&str]| {
        let args = [
            "memory", "add", "--type", "brand_memory", "--content", content,
        ];
        workspace.json(&[&args[..], more].concat())["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let old = add("Deliveries are retried three times.", &[]);
    let new = add("Deliveries are retried five times.", &["--replaces", &old]);
    let found = workspace.json(&["memory", "search", "how often is a delivery retried"]);
    let ids: Vec<&Value> = found["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| &hit["id"])
        .collect();
    assert_eq!(ids, [&json!(new)]);
    let stored = workspace.stored("memories.json").to_string();
    assert!(
        stored.contains(&format!("\"superseded_by\":\"{new}\"")),
        "{stored}"
    );
}
