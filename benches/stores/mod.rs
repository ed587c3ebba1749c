//! Stores of any size, in the shape of the reference implementation's own benchmark.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;

use memctl::model::Execution;
use serde_json::json;

/// Number of skills of a store.
const SKILLS: usize = 26;

/// Skill of an execution.
pub(crate) fn skill(i: usize) -> String {
    format!("d{}/s{}", i % SKILLS % 5, i % SKILLS)
}

/// Execution of 1.4 kB.
pub(crate) fn execution(i: usize) -> Execution {
    let text = "Maintained a Flask and Django application with a REST API, background jobs and a payment provider. ";
    serde_json::from_value(json!({
        "execution_id": "",
        "skill": skill(i),
        "timestamp": "2026-01-01T00:00:00.000000+00:00",
        "input_summary": { "candidate": format!("Candidate {i}"), "role": "Data Engineer", "resume_text": text.repeat(5) },
        "output_summary": { "overall_score": i % 100, "recommendation": "hold", "rationale": text.repeat(4) },
        "outcome": "accepted",
        "cost_usd": 0.0093,
        "latency_ms": 1062.0,
        "model_used": "anthropic/claude-haiku-4-5",
    }))
    .unwrap()
}

/// Makes a workspace with so many executions, written in the layout of the reference.
pub(crate) fn generate(root: &Path, size: usize) {
    let memory = root.join(".agentura");
    fs::create_dir_all(&memory).unwrap();
    for i in 0..SKILLS {
        let dir = root.join("skills").join(skill(i));
        fs::create_dir_all(&dir).unwrap();
        let name = format!("s{i}");
        fs::write(
            dir.join("SKILL.md"),
            format!("---\nname: {name}\ndescription: A skill.\n---\n\nDo it.\n"),
        )
        .unwrap();
    }
    let rules = (size / 20).max(3);
    write(&memory.join("episodic_memory.json"), "entries", size, |i| {
        let mut entry = execution(i);
        entry.execution_id = format!("EXEC-{}", 20_260_101_000_000 + i);
        serde_json::to_value(entry).unwrap()
    });
    write(
        &memory.join("corrections.json"),
        "corrections",
        rules,
        |i| {
            json!({ "correction_id": format!("CORR-{:03}", i + 1), "execution_id": format!("EXEC-{}", 20_260_101_000_000 + i),
            "skill": skill(i), "timestamp": "2026-01-01T00:00:00+00:00", "original_output": execution(i).output_summary,
            "user_correction": format!("When screening case {i}, system design should be weighted separately.") })
        },
    );
    write(
        &memory.join("reflexion_entries.json"),
        "entries",
        rules,
        |i| {
            json!({ "reflexion_id": format!("REFL-{:03}", i + 1), "skill": skill(i), "created_at": "2026-01-01T00:00:00+00:00",
            "correction_id": format!("CORR-{:03}", i + 1), "mistake": "Scored too high.", "root_cause": "Treated all experience alike.",
            "rule": format!("When screening case {i}, ALWAYS weigh system design separately."), "applies_when": "When screening.",
            "confidence": 0.9, "validated_by_test": false, "generated_test_ids": [] })
        },
    );
}

pub(crate) fn write(
    path: &Path,
    key: &str,
    count: usize,
    entry: impl Fn(usize) -> serde_json::Value,
) {
    let mut out = BufWriter::new(File::create(path).unwrap());
    write!(out, "{{\n  \"{key}\": [").unwrap();
    for i in 0..count {
        let text = serde_json::to_string_pretty(&entry(i))
            .unwrap()
            .replace('\n', "\n    ");
        write!(out, "{}\n    {text}", if i == 0 { "" } else { "," }).unwrap();
    }
    write!(out, "\n  ]\n}}").unwrap();
    out.flush().unwrap();
}
