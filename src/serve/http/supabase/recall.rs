//! Searches of the source documents over this memory: hybrid search for procedures, semantic search
//! for typed memories.
//!
//! A vector from a client must come from this memory's embedder; zeros may pad it to the 1,536
//! dimensions of the source documents' tables.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::model::{Kind, Memory, MemoryType, Procedure, Record, Trust};
use crate::notes::indexing::Filter;
use crate::notes::{self, FindOptions, Found};
use crate::store;
use crate::store::workspace::Workspace;
use memctl_search::{Fusion, Rrf};

use super::super::problem::Problem;

/// Search for procedures.
#[derive(Debug)]
pub(crate) struct Hybrid {
    pub(crate) query_text: String,
    pub(crate) query_embedding: Option<Vec<f32>>,
    pub(crate) match_count: usize,
    pub(crate) full_text_weight: f64,
    pub(crate) semantic_weight: f64,
    pub(crate) rrf_k: f64,
}

/// Row of `hybrid_search_context_eng_memories`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RankedRow {
    id: String,
    content: String,
    metadata: Metadata,
    created_dt: String,
    rrf_score: f64,
    keyword_rank: Option<usize>,
    semantic_rank: Option<usize>,
    trust: Trust,
}

/// Document of a procedure, in the form of the source document's analyst.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Metadata {
    pub(crate) status: String,
    pub(crate) data: Box<RawValue>,
}

impl Hybrid {
    /// Returns the best matching procedures.
    pub(crate) fn rows(self, workspace: &Workspace) -> Result<Vec<RankedRow>, Problem> {
        if self.match_count == 0 {
            return Ok(Vec::new());
        }
        let options = FindOptions {
            filter: Filter {
                kind: Some(Kind::Procedure),
                ..Filter::default()
            },
            fusion: Fusion::Rrf(Rrf {
                k: self.rrf_k,
                keyword: self.full_text_weight,
                semantic: self.semantic_weight,
            }),
            // The document's function has no minimum.
            floor: Some(f32::MIN_POSITIVE),
            ..FindOptions::new(self.query_text, self.match_count)
        };
        let found = notes::find_near(
            workspace,
            &options,
            self.query_embedding.as_deref(),
            &mut |_, _| {},
        )?;
        let part = |weight: f64, rank: Option<usize>| {
            #[expect(clippy::cast_precision_loss, reason = "ranks are small")]
            let part = rank.map_or(0.0, |rank| weight / (self.rrf_k + rank as f64));
            part
        };
        let mut rows = Vec::new();
        for found in found.results {
            // Records deleted since the search are skipped.
            let Some(procedure) = record::<Procedure>(workspace, &found)? else {
                continue;
            };
            let (keyword_rank, semantic_rank) = (found.ranks.keyword, found.ranks.semantic);
            rows.push(RankedRow {
                content: procedure.shown_content(),
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

/// Search for typed memories.
#[derive(Debug)]
pub(crate) struct Near {
    pub(crate) query: String,
    pub(crate) query_embedding: Option<Vec<f32>>,
    pub(crate) match_threshold: f64,
    pub(crate) match_count: usize,
    pub(crate) memory_type: Option<MemoryType>,
}

/// Row of `match_memory`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SimilarRow {
    id: String,
    content: String,
    similarity: f64,
    metadata: Box<RawValue>,
    created_at: String,
    trust: Trust,
}

impl Near {
    /// Returns the caller's memories above the similarity threshold, most similar first.
    pub(crate) fn rows(self, workspace: &Workspace) -> Result<Vec<SimilarRow>, Problem> {
        if self.match_count == 0 {
            return Ok(Vec::new());
        }
        let options = FindOptions {
            filter: Filter {
                kind: Some(Kind::Memory),
                memory_type: self.memory_type,
                ..Filter::default()
            },
            fusion: Fusion::Semantic,
            // The rows are compared exactly below; this only lets all of them through.
            #[expect(clippy::cast_possible_truncation, reason = "rounded down")]
            floor: Some((self.match_threshold as f32).next_down()),
            explain: true,
            ..FindOptions::new(self.query, self.match_count)
        };
        let found = notes::find_near(
            workspace,
            &options,
            self.query_embedding.as_deref(),
            &mut |_, _| {},
        )?;
        let similarity =
            |found: &Found| found.explain.as_ref().and_then(|explain| explain.semantic);
        let mut rows = Vec::new();
        for found in found.results {
            let Some(similarity) = similarity(&found).filter(|like| *like > self.match_threshold)
            else {
                continue;
            };
            let Some(memory) = record::<Memory>(workspace, &found)? else {
                continue;
            };
            rows.push(SimilarRow {
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

/// Returns the record of a result, local or remote; `None` if it has been deleted since.
fn record<R: Record>(workspace: &Workspace, found: &Found) -> Result<Option<R>, Problem> {
    let (workspace, id) = workspace.of_id(&found.name())?;
    match workspace.store.get::<R>(&id) {
        Ok(record) => Ok(Some(record)),
        Err(store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
