//! Vectors of rows: embeds pushed records that have no vector or one of another model, and rows of other
//! programs that have none.
//!
//! The database lists these rows, so an interrupted run continues where it stopped, and changed
//! content is embedded again.

use std::time::{Duration, Instant};

use super::super::address::Address;
use super::super::connection::{Connection, Parameter};
use super::super::error::Error;
use super::super::tables::{Table, table};
use super::report::{OnSync, SyncStage, VectorsReport};
use crate::model::Kind;
use crate::model::error::message;
use crate::store;
use memctl_search::embedder::Patience;
use memctl_search::embedder::{Embedder, EmbedderConfig};

/// Dimensions of the vector columns.
const DIMENSIONS: usize = 1536;
/// Maximum number of texts per embedding call.
const BATCH: i64 = 64;

/// Embedder for shared records.
#[derive(Debug)]
pub struct SharedEmbedder {
    embedder: Embedder,
    /// Name of the embedder, with the size of its vectors.
    name: String,
}

impl SharedEmbedder {
    /// Opens an embedder.
    pub fn open(config: &EmbedderConfig, patience: Patience) -> Result<Self, store::Error> {
        let embedder = config.open(patience, true)?;
        let embedding = match embedder.embedding() {
            Some(some) => some,
            // A model behind a URL may reveal the size of its vectors only by making one.
            None => embedder.embedding_of(embedder.embed(&["size"])?.first().map_or(0, Vec::len)),
        };
        Ok(Self {
            name: embedding.name,
            embedder,
        })
    }
}

const DOING: &str = "vectors cannot be stored";

/// Prepares a session to store vectors of an embedder. Returns the schema of their type.
async fn prepare(connection: &Connection, embedder: &str) -> Result<String, Error> {
    let on = "set memctl.vectors = 'on'";
    connection.batch(DOING, on).await?;
    // Clients that name no model search these vectors.
    let note = "insert into memctl.embedders (model) values ($1)
        on conflict (user_id) do update set model = excluded.model
        where memctl.embedders.model <> excluded.model";
    connection.run(DOING, note, &[&embedder]).await?;
    connection.vector_schema().await
}

/// Embeds the rows of a workspace or a memory, and those of other programs, until the time limit. Vectors
/// are marked with the embedder, since vectors of different embedders cannot be compared. A vector of another
/// program stays as it is.
pub async fn fill_vectors(
    address: &Address,
    origin: &str,
    shared: &SharedEmbedder,
    limit: Duration,
    on: OnSync<'_>,
) -> Result<VectorsReport, Error> {
    let start = Instant::now();
    let connection = Connection::open(address).await?;
    let embedder = shared.name.as_str();
    let schema = prepare(&connection, embedder).await?;
    let lacking = |table: Table| {
        format!(
            "{} and deleted_at is null and content <> ''
             and (origin = $1 and (embedding is null or embedding_model <> $2)
               or origin is null and embedding is null)",
            table.own()
        )
    };
    let tables = || Kind::ALL.map(table).into_iter().filter(|of| of.has_vector);
    let mut report = VectorsReport {
        embedder: embedder.to_owned(),
        ..VectorsReport::default()
    };
    for table in tables() {
        let lacking = lacking(table);
        let count = format!("select count(*) from {lacking}");
        let row = connection.row(DOING, &count, &[&origin, &embedder]).await?;
        let count: i64 = row.get(0);
        report.waiting += u64::try_from(count).unwrap_or_default();
    }
    let total = report.waiting;
    for table in tables() {
        let (lacking, Table { name, holder, .. }) = (lacking(table), table);
        let (key, first) = match name {
            "agent_memory" => ("uuid", "00000000-0000-0000-0000-000000000000"),
            _ => ("bigint", "0"),
        };
        let some = format!(
            "select id::text, content from {lacking} and id > $3::text::{key}
             order by id limit {BATCH}"
        );
        let store = format!(
            "update public.{name} as t set embedding = i.embedding::{schema}.vector, embedding_model = $1
             from unnest($2::text[], $3::text[], $4::text[]) as i (key, content, embedding)
             where t.{holder} = (select memctl.current_user_id()) and t.id = i.key::{key} and t.content = i.content"
        );
        let mut after = first.to_owned();
        while start.elapsed() < limit {
            let parameters: [&dyn Parameter; 3] = [&origin, &embedder, &after];
            let rows = connection.rows(DOING, &some, &parameters).await?;
            let ids: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
            let texts: Vec<String> = rows.iter().map(|row| row.get(1)).collect();
            let Some(last) = ids.last() else { break };
            after.clone_from(last);
            let contents: Vec<&str> = texts.iter().map(String::as_str).collect();
            let vectors = shared.embedder.embed(&contents).map_err(|error| {
                let hint = "memctl config show lists the embedder";
                Error::stopped(format!("cannot create vectors: {}", message(&error)), hint)
            })?;
            let vectors: Vec<String> = vectors.iter().map(|vector| as_vector(vector)).collect();
            let parameters: [&dyn Parameter; 4] = [&embedder, &ids, &texts, &vectors];
            let stored = connection.run(DOING, &store, &parameters).await?;
            report.made += stored;
            report.waiting = report.waiting.saturating_sub(stored);
            on(SyncStage::Vectors(report.made, total));
        }
    }
    Ok(report)
}

/// Text form of a vector for the server, padded with zeros, which change no cosine.
pub(crate) fn as_vector(vector: &[f32]) -> String {
    let zeros = std::iter::repeat_n(&0.0, DIMENSIONS.saturating_sub(vector.len()));
    let numbers: Vec<String> = vector
        .iter()
        .take(DIMENSIONS)
        .chain(zeros)
        .map(f32::to_string)
        .collect();
    format!("[{}]", numbers.join(","))
}
