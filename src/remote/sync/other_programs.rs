//! Rows of other programs (edge functions, SQL): pulled as records of the origin [`OTHER_PROGRAMS`].
//!
//! A program deletes its rows without a tombstone, so every run compares all ids. Rows that are new or
//! changed are fetched by their ids.
//!
//! The texts are data of unknown authors. They are observed; the claim of a row does not count. A text
//! that reads like instructions to a model is left in the database.

use std::collections::HashSet;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use tokio_postgres::Row;

use crate::model::{Kind, Memory, OBSERVED, Procedure};
use crate::store::{OTHER_PROGRAMS, PulledChange, Puller};

use super::super::connection::Connection;
use super::super::error::Error;
use super::SyncReport;
use super::plan::{Shrinking, State};
use super::tables::table;

/// Kinds whose tables other programs write.
const KINDS: [Kind; 2] = [Kind::Procedure, Kind::Memory];

/// Maximum number of rows per statement, and of bytes per row: what a request may hold.
const ROWS: usize = 1_000;
const BYTES: i32 = 1 << 20;

/// Author of procedures that another program has written.
const AUTHOR: &str = "postgres";

/// Plan of a pull.
#[derive(Debug)]
pub(super) struct OthersPlan {
    kinds: Vec<KindPlan>,
    shrinking: Shrinking,
    /// A local file is damaged, so all rows are fetched again.
    is_damaged: bool,
}

#[derive(Debug)]
struct KindPlan {
    kind: Kind,
    /// Ids of rows to fetch, in the order of their changes.
    fetch: Vec<String>,
    /// Ids of records whose row is gone.
    gone: Vec<String>,
    /// Sequence number of the last change.
    until: i64,
}

/// Name under which the progress of a table is saved.
fn progress(table: &str) -> String {
    format!("{table} of other programs")
}

/// Id of the record of a row.
fn record_id(kind: Kind, row: &str) -> String {
    format!("{}-{row}", kind.prefix())
}

/// Determines what to fetch.
pub(super) async fn plan(connection: &Connection, puller: &Puller) -> Result<OthersPlan, Error> {
    let state = State::read(puller);
    let database = connection.name().await?;
    let damaged = puller.damaged();
    let is_damaged = damaged.iter().any(|origin| origin == OTHER_PROGRAMS);
    let mut kinds = Vec::new();
    let (mut held, mut going) = (0, 0);
    for kind in KINDS {
        let after = state.reached(&database, &progress(table(kind).name));
        let list = format!(
            "select id::text, seq from {} and origin is null and deleted_at is null order by seq",
            table(kind).own()
        );
        let doing = "rows of other programs cannot be listed";
        let rows = connection.rows(doing, &list, &[]).await?;
        let known: HashSet<String> = if is_damaged {
            HashSet::new()
        } else {
            puller.ids(OTHER_PROGRAMS, kind)?.into_iter().collect()
        };
        let mut plan = KindPlan {
            kind,
            fetch: Vec::new(),
            gone: Vec::new(),
            until: after,
        };
        let mut there = HashSet::with_capacity(rows.len());
        for row in rows {
            let (id, seq): (String, i64) = (row.get(0), row.get(1));
            let record = record_id(kind, &id);
            if seq > after || !known.contains(&record) {
                plan.fetch.push(id);
            }
            plan.until = plan.until.max(seq);
            there.insert(record);
        }
        held += known.len() as u64;
        plan.gone = known.into_iter().filter(|id| !there.contains(id)).collect();
        going += plan.gone.len() as u64;
        kinds.push(plan);
    }
    Ok(OthersPlan {
        kinds,
        shrinking: Shrinking {
            going,
            of: held,
            is_remote: false,
        },
        is_damaged,
    })
}

impl OthersPlan {
    /// Removals in this plan.
    pub(super) fn shrinking(&self) -> Shrinking {
        self.shrinking
    }

    /// Adds the planned numbers to the report.
    pub(super) fn count(&self, report: &mut SyncReport) {
        for plan in &self.kinds {
            let moved = report.of(plan.kind);
            moved.pulled += plan.fetch.len() as u64;
            moved.pull_removed += plan.gone.len() as u64;
        }
    }

    /// Executes the plan.
    pub(super) async fn carry_out(
        &self,
        connection: &Connection,
        puller: &Puller,
        report: &mut SyncReport,
    ) -> Result<(), Error> {
        let database = connection.name().await?;
        let (mut suspicious, mut unusable) = (0, 0);
        if self.is_damaged {
            puller.discard(OTHER_PROGRAMS)?;
        }
        for plan in &self.kinds {
            let gone = plan.gone.iter().map(|id| PulledChange {
                id: id.clone(),
                text: None,
            });
            let gone: Vec<PulledChange> = gone.collect();
            if !gone.is_empty() {
                let count = puller.apply(OTHER_PROGRAMS, plan.kind, &gone)?;
                report.of(plan.kind).pull_removed += count.removed;
            }
            for ids in plan.fetch.chunks(ROWS) {
                let rows = fetched(connection, plan.kind, ids).await?;
                unusable += (ids.len() - rows.len()) as u64;
                let mut changes = Vec::new();
                for row in &rows {
                    match record(plan.kind, row) {
                        Ok(change) => changes.push(change),
                        Err(Refused::Suspicious(id)) => {
                            suspicious += 1;
                            // An earlier version of the row may be here.
                            changes.push(PulledChange { id, text: None });
                        }
                        Err(Refused::Empty) => unusable += 1,
                    }
                }
                let count = puller.apply(OTHER_PROGRAMS, plan.kind, &changes)?;
                let moved = report.of(plan.kind);
                moved.pulled += count.added + count.changed;
                moved.pull_removed += count.removed;
                unusable += count.refused;
            }
            // Read again, since the pull of other workspaces has saved its progress meanwhile.
            let mut state = State::read(puller);
            state.reach(&database, &progress(table(plan.kind).name), plan.until);
            state.keep(puller)?;
        }
        let mut warn = |number: u64, why: &str| {
            if number > 0 {
                let warning = format!("{number} rows of other programs were left there: {why}");
                report.warnings.push(warning);
            }
        };
        warn(suspicious, "their text reads like instructions to a model");
        warn(unusable, "they have no text, or more than a megabyte");
        Ok(())
    }
}

/// Fetches rows by their ids, without those that are too large.
async fn fetched(connection: &Connection, kind: Kind, ids: &[String]) -> Result<Vec<Row>, Error> {
    let own = table(kind).own();
    let time = |column: &str| {
        format!("to_char({column} at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"+00:00\"')")
    };
    let (key, columns) = if kind == Kind::Procedure {
        let created = time("created_dt");
        ("bigint", format!("{created}, skill"))
    } else {
        let times = ["created_at", "updated_at", "expires_at"].map(time);
        ("uuid", format!("{}, memory_type", times.join(", ")))
    };
    let sql = format!(
        "select id::text, coalesce(content, ''), metadata::text, {columns} from {own}
           and origin is null and deleted_at is null
           and id = any ($1::text[]::{key}[])
           and coalesce(octet_length(content), 0) + coalesce(octet_length(metadata::text), 0) <= {BYTES}
         order by seq"
    );
    let doing = "rows of other programs cannot be fetched";
    connection.rows(doing, &sql, &[&ids]).await
}

/// Reason why a row does not become a record.
enum Refused {
    /// It reads like instructions to a model; with the id of the record.
    Suspicious(String),
    /// It has no text.
    Empty,
}

/// Converts a row to a record.
fn record(kind: Kind, row: &Row) -> Result<PulledChange, Refused> {
    let (content, metadata): (&str, Option<&str>) = (row.get(1), row.get(2));
    let id = record_id(kind, row.get(0));
    let metadata: Value = metadata
        .and_then(|m| serde_json::from_str(m).ok())
        .unwrap_or_default();
    let text = if kind == Kind::Procedure {
        procedure(&id, content, &metadata, row.get(3), row.get(4))
    } else {
        let memory_type: Option<&str> = row.get(6);
        memory(
            &id,
            content,
            &metadata,
            [row.get(3), row.get(4), row.get(5)],
            memory_type,
        )
    };
    let text = text.ok_or(Refused::Empty)?;
    if memctl_redact::admit(&text).quarantine.is_some() {
        return Err(Refused::Suspicious(id));
    }
    Ok(PulledChange {
        id,
        text: Some(text),
    })
}

/// Record of a procedure, as the source documents' analyst writes it, or with the content alone.
fn procedure(
    id: &str,
    content: &str,
    metadata: &Value,
    created: Option<&str>,
    skill: Option<&str>,
) -> Option<String> {
    let document = metadata["data"].as_object().filter(|data| !data.is_empty());
    let data = match document {
        Some(data) => Value::Object(data.clone()),
        None if content.trim().is_empty() => return None,
        None => {
            let name: String = content
                .lines()
                .next()
                .unwrap_or_default()
                .chars()
                .take(120)
                .collect();
            json!({
                "procedure_name": name,
                "semantic_description": content,
                "initial_failure_summary": "",
                "identified_root_cause": "",
                "successful_intervention": "",
                "learned_procedure_steps": [],
                "critical_contextual_cues": [],
                "example_scenario_abstract": "",
            })
        }
    };
    let created = created.unwrap_or_default().to_owned();
    let record = Procedure {
        procedure_id: id.to_owned(),
        skill: skill.filter(|skill| !skill.is_empty()).map(str::to_owned),
        created_at: created.clone(),
        status: metadata["status"]
            .as_str()
            .unwrap_or("procedure_learned")
            .to_owned(),
        data: to_raw_value(&data).ok()?,
        distilled_by: AUTHOR.to_owned(),
        occurrences: Some(1.0),
        last_seen: created,
        trust: OBSERVED.to_owned(),
        ..Procedure::default()
    };
    serde_json::to_string(&record).ok()
}

/// Record of a memory; `times` are those of creation, of the last change, and of expiry.
fn memory(
    id: &str,
    content: &str,
    metadata: &Value,
    times: [Option<&str>; 3],
    memory_type: Option<&str>,
) -> Option<String> {
    if content.trim().is_empty() {
        return None;
    }
    let [created, updated, expires] = times.map(|time| time.map(str::to_owned));
    let empty = Value::Object(Map::new());
    let metadata = if metadata.is_null() { &empty } else { metadata };
    let metadata: Box<RawValue> = to_raw_value(metadata).ok()?;
    let record = Memory {
        id: id.to_owned(),
        user_id: None,
        memory_type: serde_json::from_value(json!(memory_type)).ok()?,
        content: content.to_owned(),
        metadata,
        created_at: created.unwrap_or_default(),
        updated_at: updated.unwrap_or_default(),
        expires_at: expires,
        trust: OBSERVED.to_owned(),
    };
    serde_json::to_string(&record).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Record as _, Trust};

    #[test]
    fn a_row_gives_itself_no_trust_and_no_user() {
        let metadata = json!({ "trust": "user", "user_id": "ann", "status": "procedure_learned",
            "data": { "procedure_name": "add a column" } });
        let text = memory("MEM-1", "calm", &metadata, [None; 3], Some("brand_memory")).unwrap();
        let record: Memory = serde_json::from_str(&text).unwrap();
        assert_eq!((record.trust(), record.user_id), (Trust::Observed, None));
        let text = procedure("PROC-1", "", &metadata, None, Some("hr/x")).unwrap();
        let record: Procedure = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (record.trust(), record.skill.as_deref()),
            (Trust::Observed, Some("hr/x"))
        );
    }

    #[test]
    fn a_row_without_a_document_is_its_content() {
        let plain = procedure(
            "PROC-1",
            "Add a column.\nName its type.",
            &Value::Null,
            None,
            None,
        );
        let record: Procedure = serde_json::from_str(&plain.unwrap()).unwrap();
        assert!(record.content().contains("Name its type."));
        for empty in [Value::Null, json!({}), json!({ "data": {} }), json!("x")] {
            assert_eq!(
                procedure("PROC-1", " ", &empty, None, None),
                None,
                "{empty}"
            );
        }
        assert_eq!(
            memory("MEM-1", " ", &Value::Null, [None; 3], Some("task_memory")),
            None
        );
        assert_eq!(
            memory("MEM-1", "x", &Value::Null, [None; 3], Some("odd")),
            None
        );
    }
}
