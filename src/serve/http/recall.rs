//! The two searches of the source documents, over this memory: procedures by words and meaning, and
//! typed memories by meaning.
//!
//! A vector that a client brings has to come from the embedder that this memory uses; zeros may fill it
//! up to the 1,536 numbers that the source documents' tables have.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::engine::{Engine, FindOptions, Found, Rewrite};
use crate::model::{Kind, Memory, MemoryType, Procedure, Record, Trust};
use crate::search::{Filter, Fusion, Rrf};
use crate::store;

use super::problem::Problem;

/// A search for procedures.
#[derive(Debug)]
pub(super) struct Hybrid {
    pub(super) query_text: String,
    pub(super) query_embedding: Option<Vec<f32>>,
    pub(super) match_count: usize,
    pub(super) full_text_weight: f64,
    pub(super) semantic_weight: f64,
    pub(super) rrf_k: f64,
}

/// A row of `hybrid_search_context_eng_memories`.
#[derive(Debug, Serialize)]
pub(super) struct ProcedureRow {
    id: String,
    content: String,
    metadata: Metadata,
    created_dt: String,
    rrf_score: f64,
    keyword_rank: Option<usize>,
    semantic_rank: Option<usize>,
    trust: Trust,
}

/// The document of a procedure, as the source document's analyst makes it.
#[derive(Debug, Serialize)]
pub(super) struct Metadata {
    pub(super) status: String,
    pub(super) data: Box<RawValue>,
}

impl Hybrid {
    /// The procedures that fit best.
    pub(super) fn rows(self, engine: &Engine) -> Result<Vec<ProcedureRow>, Problem> {
        if self.match_count == 0 {
            return Ok(Vec::new());
        }
        let options = FindOptions {
            query: self.query_text,
            limit: self.match_count,
            filter: Filter {
                kind: Some(Kind::Procedure),
                ..Filter::default()
            },
            fusion: Fusion::Rrf(Rrf {
                k: self.rrf_k,
                keyword: self.full_text_weight,
                semantic: self.semantic_weight,
            }),
            rewrite: Rewrite::Not,
            explain: false,
        };
        let found = engine.find_near(&options, self.query_embedding.as_deref(), &mut |_, _| {})?;
        let part = |weight: f64, rank: Option<usize>| {
            #[expect(clippy::cast_precision_loss, reason = "ranks are small")]
            let part = rank.map_or(0.0, |rank| weight / (self.rrf_k + rank as f64));
            part
        };
        let mut rows = Vec::new();
        for found in found.results {
            // What is gone since is not there.
            let Some(procedure) = record::<Procedure>(engine, &found)? else {
                continue;
            };
            let (keyword_rank, semantic_rank) = (found.ranks.keyword, found.ranks.semantic);
            rows.push(ProcedureRow {
                content: procedure.content(),
                trust: found.trust,
                id: found.name(),
                created_dt: procedure.created_at,
                metadata: Metadata {
                    status: procedure.status,
                    data: procedure.data,
                },
                rrf_score: part(self.full_text_weight, keyword_rank)
                    + part(self.semantic_weight, semantic_rank),
                keyword_rank,
                semantic_rank,
            });
        }
        Ok(rows)
    }
}

/// A search for typed memories.
#[derive(Debug)]
pub(super) struct Near {
    pub(super) query: String,
    pub(super) query_embedding: Option<Vec<f32>>,
    pub(super) match_threshold: f64,
    pub(super) match_count: usize,
    pub(super) memory_type: Option<MemoryType>,
}

/// A row of `match_memory`.
#[derive(Debug, Serialize)]
pub(super) struct MemoryRow {
    id: String,
    content: String,
    similarity: f64,
    metadata: Box<RawValue>,
    created_at: String,
    trust: Trust,
}

impl Near {
    /// The memories of the caller that are more like it than the threshold, most like it first.
    pub(super) fn rows(self, engine: &Engine) -> Result<Vec<MemoryRow>, Problem> {
        if self.match_count == 0 {
            return Ok(Vec::new());
        }
        let options = FindOptions {
            query: self.query,
            limit: self.match_count,
            filter: Filter {
                kind: Some(Kind::Memory),
                memory_type: self.memory_type,
                ..Filter::default()
            },
            fusion: Fusion::Semantic,
            rewrite: Rewrite::Not,
            explain: true,
        };
        let found = engine.find_near(&options, self.query_embedding.as_deref(), &mut |_, _| {})?;
        let similarity =
            |found: &Found| found.explain.as_ref().and_then(|explain| explain.semantic);
        let mut rows = Vec::new();
        for found in found.results {
            let Some(similarity) = similarity(&found).filter(|like| *like > self.match_threshold)
            else {
                continue;
            };
            let Some(memory) = record::<Memory>(engine, &found)? else {
                continue;
            };
            rows.push(MemoryRow {
                trust: memory.trust(),
                id: found.name(),
                content: memory.content,
                similarity,
                metadata: memory.metadata,
                created_at: memory.created_at,
            });
        }
        Ok(rows)
    }
}

/// The record that was found, here or among what was pulled; `None` where it is gone since.
fn record<R: Record>(engine: &Engine, found: &Found) -> Result<Option<R>, Problem> {
    let (engine, id) = engine.of_id(&found.name())?;
    match engine.store.get::<R>(&id) {
        Ok(record) => Ok(Some(record)),
        Err(store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
