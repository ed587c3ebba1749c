//! Renders records as a Markdown page, grouped by kind and then by skill or memory type.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::{Correction, Execution, Kind, Memory, Procedure, Reflexion, Session};
use crate::store::Entry;
use crate::upkeep::exchange::markdown::{self, Section};

/// Renders the page; the entries must be sorted by kind.
pub(crate) fn page(workspace: &str, at: &str, entries: &[Entry]) -> String {
    let mut sections: Vec<(Kind, Section)> = entries
        .iter()
        .map(|entry| (entry.kind, section(entry)))
        .collect();
    // A stable sort keeps the file order within a group: oldest first.
    sections.sort_by(|(a, x), (b, y)| (a, &x.group).cmp(&(b, &y.group)));
    let sections: Vec<Section> = sections.into_iter().map(|(_, section)| section).collect();
    let about = format!("{} records, exported {at}", sections.len());
    markdown::page(&format!("Memory of {workspace}"), &about, &sections)
}

fn section(entry: &Entry) -> Section {
    let read = match entry.kind {
        Kind::Execution => entry.parse().map(execution),
        Kind::Correction => entry.parse().map(correction),
        Kind::Reflexion => entry.parse().map(rule),
        Kind::Procedure => entry.parse().map(procedure),
        Kind::Memory => entry.parse().map(memory),
        Kind::Session => entry.parse().map(session),
    };
    let (group, says, fields) = read.unwrap_or_else(|error| {
        let text = String::from_utf8_lossy(&entry.text).into_owned();
        let reason = format!("cannot be read: {error}");
        (String::new(), text, vec![("problem", reason)])
    });
    let seen = |text: &str| memctl_redact::visible(text).into_owned();
    Section {
        kind: heading(entry.kind).to_owned(),
        group: seen(&group),
        id: seen(&entry.id),
        says: seen(&says),
        fields: fields
            .into_iter()
            .filter(|(_, text)| !text.trim().is_empty())
            .map(|(name, text)| (name.to_owned(), seen(&text)))
            .collect(),
    }
}

const fn heading(kind: Kind) -> &'static str {
    match kind {
        Kind::Execution => "Executions",
        Kind::Correction => "Corrections",
        Kind::Reflexion => "Rules",
        Kind::Procedure => "Procedures",
        Kind::Memory => "Memories",
        Kind::Session => "Sessions",
    }
}

/// Group, main text, and further fields of a record.
type Told = (String, String, Vec<(&'static str, String)>);

fn execution(record: Execution) -> Told {
    let fields = vec![
        ("input", pretty(&record.input_summary)),
        ("outcome", record.outcome.as_str().to_owned()),
        ("model", record.model_used),
        ("rules", record.reflexions_injected.join(", ")),
        ("note", record.reviewer_notes),
        ("made", record.timestamp),
    ];
    (record.skill, pretty(&record.output_summary), fields)
}

fn correction(record: Correction) -> Told {
    let expected = record.expected_output.as_deref().map(pretty);
    let fields = vec![
        ("execution", record.execution_id),
        ("expected", expected.unwrap_or_default()),
        ("made", record.timestamp),
    ];
    (record.skill, record.user_correction, fields)
}

fn rule(record: Reflexion) -> Told {
    let confidence = record.confidence.map(|c| format!("{:.0}%", c * 100.0));
    let validated = match record.partial_test_ids.is_empty() {
        true if record.validated_by_test => "yes",
        true => "",
        false => "partly",
    };
    let fields = vec![
        ("applies when", record.applies_when),
        ("mistake", record.mistake),
        ("root cause", record.root_cause),
        ("confidence", confidence.unwrap_or_default()),
        ("validated by a test", validated.to_owned()),
        ("correction", record.correction_id),
        ("status", record.status),
        ("source", record.source),
        ("superseded by", record.superseded_by),
        ("made", record.created_at),
    ];
    (record.skill, record.rule, fields)
}

fn procedure(record: Procedure) -> Told {
    let data: Value = serde_json::from_str(record.data.get()).unwrap_or_default();
    let text = |name: &str| data[name].as_str().unwrap_or_default().to_owned();
    let list = |name: &str| -> String {
        let items = data[name].as_array().into_iter().flatten();
        let items: Vec<&str> = items.filter_map(Value::as_str).collect();
        items.join("\n")
    };
    let fields = vec![
        ("what fails", text("initial_failure_summary")),
        ("why", text("identified_root_cause")),
        ("what works", text("successful_intervention")),
        ("steps", list("learned_procedure_steps")),
        ("trust", record.trust),
        ("made", record.created_at),
    ];
    (
        record.skill.unwrap_or_default(),
        text("procedure_name"),
        fields,
    )
}

fn memory(record: Memory) -> Told {
    let name = serde_json::to_value(record.memory_type).unwrap_or_default();
    let fields = vec![
        ("metadata", pretty(&record.metadata)),
        ("user", record.user_id.unwrap_or_default()),
        ("expires", record.expires_at.unwrap_or_default()),
        ("trust", record.trust),
        ("made", record.created_at),
    ];
    let group = name.as_str().unwrap_or_default().to_owned();
    (group, record.content, fields)
}

fn session(record: Session) -> Told {
    let fields = vec![
        ("steps", record.completed_steps.join(", ")),
        ("error", record.error_message.unwrap_or_default()),
        ("data", pretty(&record.session_data)),
        ("made", record.created_at),
    ];
    let now = record.current_step.unwrap_or_default();
    let says = format!(
        "{} {now}",
        serde_json::to_value(&record.status)
            .unwrap_or_default()
            .as_str()
            .unwrap_or_default()
    );
    (String::new(), says, fields)
}

/// Indents a JSON text; returns an empty text for `null`.
fn pretty(json: &RawValue) -> String {
    match serde_json::from_str::<Value>(json.get()) {
        Ok(Value::Null) => String::new(),
        Ok(value) => serde_json::to_string_pretty(&value).unwrap_or_default(),
        Err(_) => json.get().to_owned(),
    }
}
