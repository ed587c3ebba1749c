//! Edits fields of a record.
//!
//! Fields outside the table of [`editable`] are not editable: ids, links, times and counts are facts, not opinions. The
//! validation of a rule is a fact too, but a program with tests of its own reports it through an edit. The metadata of
//! a memory is checked against its type.
//!
//! Only the given fields are written; every other byte of the entry stays. A new text makes a rule or a lesson
//! a different one, so the evidence from tests and use, which belongs to the old text, is reset. Fields around
//! it (confidence, cause of the mistake) reset nothing.
//!
//! The guardrail of a rule gets the new text unless somebody has edited it; then a warning names the file.
//!
//! Deliberately absent: tests. They come from the correction, not from the text of the rule.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::lessons::storage::table::prepare;
use crate::model::{
    CANDIDATE, CallAction, Kind, MemoryType, Procedure, QUARANTINED, Record as _, Reflexion,
    SkillPath, Trust, ending,
};
use crate::notes::indexing::Index;
use crate::notes::remember::misfits;
use crate::rules::in_use::suspicion;
use crate::rules::place::changes::conflicts_of;
use crate::rules::{Conflict, acting};
use crate::store::Entry;
use crate::store::workspace::redacting_writer::redaction_warning;
use crate::store::workspace::{
    Error, Workspace, entry, level, locate, raw, repair_warnings, stamp,
};

/// Result of an edit.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct EditReport {
    /// Id of the record.
    pub id: String,
    /// Kind of the record.
    pub kind: Kind,
    /// Names of the changed fields.
    pub changed: Vec<&'static str>,
    /// Names of the fields that were reset because of the change.
    pub reset: Vec<&'static str>,
    /// Changed fields with their text as stored.
    #[serde(skip)]
    pub now: Vec<(&'static str, String)>,
    /// Patterns of a rule that goes on to act on calls.
    #[serde(skip)]
    pub patterns: Vec<String>,
    /// Guardrail files that got the new text of a rule.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guardrails: Vec<String>,
    /// Files and records that still have the old text, and non-fatal problems.
    pub warnings: Vec<String>,
}

/// Text of a record that may be edited.
#[derive(Debug)]
pub struct Draft {
    /// Id of the record.
    pub id: String,
    /// Name of the field with the text of the record, as `rule` or `content`.
    pub field: &'static str,
    /// The text.
    pub text: String,
}

/// Form of a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Text that is not empty.
    Words,
    /// Any text.
    Text,
    /// Number from 0 to 1.
    Share,
    /// `true` or `false`.
    Flag,
    /// JSON array of strings.
    List,
    /// JSON object.
    Object,
    /// RFC 3339 time, a date or a span from now, or empty.
    Time,
    /// One of the five types of memory.
    NoteType,
}

const METADATA: &str = "metadata";
const MEMORY_TYPE: &str = "memory_type";

/// Returns the editable fields of a kind with the form of their values; the first is its text.
const fn editable(kind: Kind) -> &'static [(&'static str, Form)] {
    match kind {
        Kind::Reflexion => &[
            ("rule", Form::Words),
            ("applies_when", Form::Text),
            ("mistake", Form::Text),
            ("root_cause", Form::Text),
            ("confidence", Form::Share),
            ("validated_by_test", Form::Flag),
            ("generated_test_ids", Form::List),
        ],
        Kind::Procedure => &[("lesson", Form::Words)],
        Kind::Memory => &[
            ("content", Form::Words),
            (MEMORY_TYPE, Form::NoteType),
            (METADATA, Form::Object),
            ("expires_at", Form::Time),
        ],
        // What was said and done stays as it was.
        Kind::Execution | Kind::Correction | Kind::Session => &[],
    }
}

impl Form {
    /// Returns the given value as JSON text, or the form that it should have. JSON keeps its number format and key
    /// order.
    fn json(self, given: &str, now: DateTime<Utc>) -> Result<Box<RawValue>, &'static str> {
        let text = match self {
            Self::Words if memctl_redact::says_nothing(&memctl_redact::redact(given).text) => {
                return Err("it must say something");
            }
            Self::Words | Self::Text => json!(given).to_string(),
            Self::NoteType => json!(given.trim()).to_string(),
            Self::Time if matches!(given.trim(), "" | "null") => "null".to_owned(),
            Self::Time => json!(ending(given.trim(), now)?.map(stamp)).to_string(),
            _ => given.trim().to_owned(),
        };
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        let (fits, form) = match (self, &value) {
            (Self::Share, value) => {
                let is_share = value
                    .as_f64()
                    .is_some_and(|share| (0.0..=1.0).contains(&share));
                (is_share, "it must be a number from 0 to 1")
            }
            (Self::Flag, value) => (value.is_boolean(), "it must be true or false"),
            (Self::List, value) => {
                let texts = value.as_array().into_iter().flatten();
                let is_list = value.is_array() && texts.into_iter().all(Value::is_string);
                (
                    is_list,
                    "it must be a JSON array of texts, as in `[\"first\", \"second\"]`",
                )
            }
            (Self::Object, value) => (
                value.is_object(),
                "it must be a JSON object, as in `{\"team\": \"sales\"}`",
            ),
            (Self::NoteType, value) => {
                let is_type = serde_json::from_value::<MemoryType>(value.clone()).is_ok();
                (
                    is_type,
                    "it must be brand_memory, user_preferences, competitive_memory, \
                     task_memory or performance_memory",
                )
            }
            _ => (true, ""),
        };
        if !fits {
            return Err(form);
        }
        RawValue::from_string(text).map_err(|_| "it must be JSON; texts stand in quotation marks")
    }
}

/// Returns a stored value as text: a text without quotation marks, other JSON on one line.
fn shown(stored: Option<&RawValue>) -> String {
    let Some(stored) = stored.map(RawValue::get) else {
        return String::new();
    };
    match serde_json::from_str::<Option<String>>(stored) {
        Ok(text) => text.unwrap_or_default(),
        Err(_) => memctl_files::json::compact(stored),
    }
}

/// Fields of an entry as JSON text, by name.
type Fields = HashMap<String, Box<RawValue>>;

/// Returns `true` if an editable field holds a text.
pub fn is_text(kind: Kind, field: &str) -> bool {
    let mut fields = editable(kind).iter();
    fields.any(|(name, form)| *name == field && matches!(form, Form::Words | Form::Text))
}

/// Returns the text of a record.
pub fn draft(workspace: &Workspace, id: &str) -> Result<Draft, Error> {
    let (kind, id) = locate(&workspace.store, id)?;
    let Some((field, _)) = editable(kind).first() else {
        return Err(not_editable(kind, &id, None));
    };
    let entry = entry(&workspace.store, kind, &id)?;
    // Opening an editor is a read. If it cannot be audited, the edit cannot be written either.
    drop(workspace.note_read([(kind, (id.as_str(), entry.user_id().as_deref()))]));
    let stored = fields_of(&entry)?;
    let text = shown(stored.get(*field).map(Box::as_ref));
    Ok(Draft { id, field, text })
}

/// Sets fields of a record: all of them, or none if one value does not fit.
pub fn edit(
    workspace: &Workspace,
    id: &str,
    given: &[(String, String)],
) -> Result<EditReport, Error> {
    let (kind, id) = locate(&workspace.store, id)?;
    let mut writer = workspace.writer()?;
    let before = entry(writer.store(), kind, &id)?;
    let stored = fields_of(&before)?;
    let mut values = read(kind, &id, given, workspace.now, &stored)?;
    values.retain(|(field, value)| {
        let before = stored.get(*field);
        // Numbers are compared as written.
        let meaning = |raw: &RawValue| (raw.get().starts_with('"'), shown(Some(raw)));
        before.is_none_or(|before| meaning(before) != meaning(value))
    });
    let mut report = EditReport {
        changed: values.iter().map(|(field, _)| *field).collect(),
        reset: Vec::new(),
        now: Vec::new(),
        patterns: Vec::new(),
        guardrails: Vec::new(),
        warnings: Vec::new(),
        id,
        kind,
    };
    if values.is_empty() {
        return Ok(report);
    }
    let mut update = values;
    let is_given = |name: &str| given.iter().any(|(given, _)| given == name);
    for (name, value) in afresh(&before, &report.changed) {
        if is_given(name) {
            continue;
        }
        report.reset.push(name);
        update.push((name, raw(&value)?));
    }
    if kind == Kind::Memory {
        update.push(("updated_at", raw(&workspace.timestamp())?));
    }
    let counted = level(writer.store(), &before) != Trust::Observed;
    // A rule that the person let act on calls goes on to act with its new text: the edit is their own.
    let acted = before.parse::<Reflexion>();
    let acted = acted.is_ok_and(|rule| writer.store().approvals().own_words().seals(&rule));
    let entry = writer.update(kind, &report.id, &update)?;
    if counted {
        // An edit does not approve a record that was not approved before.
        writer.vouch(kind, &report.id)?;
    }
    if acted {
        writer.let_act(&report.id)?;
        let rule: Reflexion = writer.store().get(&report.id)?;
        let is_off = rule.action == CallAction::Off;
        let patterns = rule.seen_by.into_iter().filter(|_| !is_off);
        report.patterns = patterns.map(|pattern| pattern.matches).collect();
        acting::prepare(writer.store())?;
    }
    let warnings = &mut report.warnings;
    warnings.extend(repair_warnings(writer.take_repairs()));
    warnings.extend(redaction_warning(writer.take_left_out()));
    if kind == Kind::Procedure {
        prepare(writer.store())?;
    }
    if kind == Kind::Reflexion
        && let (Ok(old), Ok(new)) = (before.parse::<Reflexion>(), entry.parse::<Reflexion>())
        && (&old.rule, &old.mistake) != (&new.rule, &new.mistake)
    {
        report.guardrails =
            workspace.change_guardrail(&mut writer, &old, Some(&new), &mut report.warnings);
    }
    drop(writer);
    let stored = fields_of(&entry)?;
    let changed = report.changed.iter();
    let now = changed.map(|name| (*name, shown(stored.get(*name).map(Box::as_ref))));
    report.now = now.collect();
    still_says(workspace, &entry, &mut report)?;
    Index::drop_gone(&workspace.store)?;
    Ok(report)
}

/// Reads the given values.
fn read(
    kind: Kind,
    id: &str,
    given: &[(String, String)],
    now: DateTime<Utc>,
    stored: &Fields,
) -> Result<Vec<(&'static str, Box<RawValue>)>, Error> {
    let mut values: Vec<(&'static str, Box<RawValue>)> = Vec::new();
    for (name, text) in given {
        let found = editable(kind).iter().find(|(field, _)| field == name);
        let (field, form) = found.ok_or_else(|| not_editable(kind, id, Some(name)))?;
        let value = form.json(text, now).map_err(|reason| {
            let hint = if text.trim().is_empty() {
                format!("to delete it: memctl forget {id}")
            } else {
                format!("give it as `--set {field}=VALUE`, in quotation marks for the shell")
            };
            Error::input(format!("invalid value for `{field}`: {reason}"), hint)
        })?;
        values.retain(|(other, _)| other != field);
        values.push((field, value));
    }
    if kind == Kind::Memory {
        fit(&values, stored)?;
    }
    Ok(values)
}

/// Checks a given type or given metadata of a memory against the other one. Without either nothing is checked, so a
/// memory that does not fit its type stays editable in its other fields.
fn fit(values: &[(&'static str, Box<RawValue>)], stored: &Fields) -> Result<(), Error> {
    let given = |name: &str| {
        let given = values.iter().find(|(field, _)| *field == name);
        given.map(|(_, value)| value)
    };
    let (new_type, new) = (given(MEMORY_TYPE), given(METADATA));
    if new_type.is_none() && new.is_none() {
        return Ok(());
    }
    let of = new_type.or(stored.get(MEMORY_TYPE));
    let of: Option<MemoryType> = of.and_then(|of| serde_json::from_str(of.get()).ok());
    let Some((memory_type, metadata)) = of.zip(new.or(stored.get(METADATA))) else {
        return Ok(());
    };
    let problems = misfits(memory_type, metadata);
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::bad_memory(memory_type, &problems))
}

/// Warns about text derived from the old record, and about new conflicts and suspicious text.
fn still_says(workspace: &Workspace, entry: &Entry, report: &mut EditReport) -> Result<(), Error> {
    let warnings = &mut report.warnings;
    let mut changed = report.changed.iter();
    match entry.kind {
        Kind::Reflexion if changed.any(|name| ["rule", "mistake"].contains(name)) => {
            let rule: Reflexion = workspace.store.get(&entry.id)?;
            warnings.extend(suspicion(&rule));
            // A rule of an import may name a skill in another form, which has no neighbours.
            if rule.skill.parse::<SkillPath>().is_ok() {
                for Conflict { id, reason, .. } in conflicts_of(&workspace.store, &rule)? {
                    warnings.push(format!("it contradicts `{id}` now: {reason}"));
                }
            }
        }
        Kind::Procedure => {
            let procedure: Procedure = workspace.store.get(&entry.id)?;
            if let Some(reason) = memctl_redact::admit(&procedure.content()).quarantine {
                warnings.push(format!("`{}` is suspicious: {reason}", entry.id));
            }
            if procedure.state == QUARANTINED {
                warnings.push(format!(
                    "`{0}` is still quarantined: memctl approve {0}",
                    entry.id
                ));
            }
        }
        _ => {}
    }
    Ok(())
}

/// Returns the fields of an entry.
fn fields_of(entry: &Entry) -> Result<Fields, Error> {
    let unreadable = |error| {
        let id = &entry.id;
        let message = format!("`{id}` cannot be edited here: its entry is not JSON: {error}");
        Error::input(message, "edit the file; memctl doctor shows its path")
    };
    serde_json::from_slice(&entry.text).map_err(unreadable)
}

/// Evidence fields to reset after these fields of a record changed: only those that are present and
/// not at their initial value.
fn afresh(entry: &Entry, changed: &[&str]) -> Vec<(&'static str, Value)> {
    let anew: &[(&str, Value)] = match entry.kind {
        Kind::Reflexion if changed.iter().any(|f| ["rule", "applies_when"].contains(f)) => &[
            ("validated_by_test", json!(false)),
            ("generated_test_ids", json!([])),
            ("times_injected", json!(0)),
            ("times_helped", json!(0)),
            ("times_harmed", json!(0)),
            ("times_told", json!(0)),
            ("times_heeded", json!(0)),
            ("times_recurred", json!(0)),
            ("times_overridden", json!(0)),
            ("utility_score", json!(0.5)),
            ("distilled_by", json!("user")),
        ],
        Kind::Procedure => &[
            ("distilled_by", json!("user")),
            ("worded_by", json!("person")),
            ("shown", json!(0)),
            ("helped", json!(0)),
            ("harmed", json!(0)),
            ("needless", json!(0)),
            ("state", json!("active")),
        ],
        _ => &[],
    };
    let Ok(stored) = serde_json::from_slice::<HashMap<String, Value>>(&entry.text) else {
        return Vec::new();
    };
    let text = |name: &str| stored.get(name).and_then(Value::as_str).unwrap_or_default();
    // A superseded rule keeps its score, which hides it from the reference implementation, and a candidate
    // hides by it from programs that do not know candidates.
    let is_hidden = !text("superseded_by").is_empty() || text("status") == CANDIDATE;
    let is_meant = |(name, value): &&(&str, Value)| {
        let Some(before) = stored.get(*name) else {
            return false;
        };
        match *name {
            "utility_score" if is_hidden => false,
            // Only retirement by use is undone; a quarantined procedure still waits for a person.
            "state" => before == "retired",
            _ => before != value,
        }
    };
    let mut reset: Vec<_> = anew.iter().filter(is_meant).cloned().collect();
    // Confidence from the evidence of the old text does not apply to the new one.
    if entry.kind == Kind::Reflexion
        && !anew.is_empty()
        && !changed.contains(&"confidence")
        && let Ok(rule) = entry.parse::<Reflexion>()
        && let Some(promised) = rule.promised().filter(|p| Some(*p) != rule.confidence)
    {
        reset.push(("confidence", json!(promised)));
    }
    reset
}

fn not_editable(kind: Kind, id: &str, field: Option<&str>) -> Error {
    let what = field.map(|field| format!("`{}`", field.escape_debug()));
    let what = what.unwrap_or_else(|| "the fields".to_owned());
    let allowed: Vec<_> = editable(kind).iter().map(|(name, _)| *name).collect();
    let hint = match (allowed.first(), kind) {
        (None, _) => format!("memctl show {id}"),
        // At other calls, or in other projects, it is another one.
        (Some(first), Kind::Reflexion | Kind::Procedure) => format!(
            "memctl edit {id} --set {first}=…; these can be edited: {}; for anything else: memctl correct, \
             memctl lesson add, each with --replaces {id}, or memctl memory promote {id}",
            allowed.join(", ")
        ),
        (Some(first), _) => format!(
            "memctl edit {id} --set {first}=…; these can be edited: {}",
            allowed.join(", ")
        ),
    };
    Error::input(
        format!("{what} of the {} `{id}` cannot be edited", kind.noun()),
        hint,
    )
}
