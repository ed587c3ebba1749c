//! Searches of the source documents over this memory: hybrid search for procedures, semantic search
//! for typed memories.
//!
//! A vector from a client must come from this memory's embedder; zeros may pad it to the 1,536
//! dimensions of the source documents' tables.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::model::{Kind, Memory, MemoryType, Procedure, Record, Trust};
use crate::notes::indexing::Filter;
use crate::notes::{self, FindOptions, Found};
use crate::serve::arguments::Bounds;
use crate::store;
use crate::store::workspace::Workspace;
use memctl_search::{Fusion, Rrf};

use super::super::problem::Problem;

/// Maximum dimension of a vector.
const DIMENSIONS: usize = 4_096;
/// Results of a search for procedures.
pub(super) const PROCEDURES: Bounds = Bounds::of(0, 10, 200);
/// Results of a search for memories.
pub(super) const MEMORIES: Bounds = Bounds::of(0, 5, 200);
/// Rank constants of reciprocal rank fusion.
const RANK_CONSTANT: Bounds = Bounds::of(0, 50, 1_000_000);

/// Search for procedures: the arguments of `hybrid_search_context_eng_memories`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hybrid {
    /// Search query.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    pub(super) query_text: String,
    /// Vector of this memory's embedder, as a list or as text; computed if absent.
    #[serde(default, deserialize_with = "vector")]
    #[schemars(with = "Option<VectorForm>")]
    pub(super) query_embedding: Option<Vec<f32>>,
    /// Maximum number of results, 0 to 200; default 10.
    #[schemars(range(min = PROCEDURES.least, max = PROCEDURES.most))]
    pub(super) match_count: Option<i64>,
    /// Weight of the keyword ranking; default 1.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub(super) full_text_weight: Option<f64>,
    /// Weight of the semantic ranking; default 1.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub(super) semantic_weight: Option<f64>,
    /// Rank constant: a larger value favours the first ranks less; default 50.
    #[schemars(range(min = RANK_CONSTANT.least, max = RANK_CONSTANT.most))]
    pub(super) rrf_k: Option<i64>,
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
    pub(super) fn rows(
        self,
        workspace: &Workspace,
        counts: Bounds,
    ) -> Result<Vec<RankedRow>, Problem> {
        let count = counts.check("match_count", self.match_count)?;
        let weight = |name, given: Option<f64>| number(name, given.unwrap_or(1.0), 0.0..=1e6);
        let keyword = weight("full_text_weight", self.full_text_weight)?;
        let semantic = weight("semantic_weight", self.semantic_weight)?;
        #[expect(clippy::cast_precision_loss, reason = "it is small")]
        let k = RANK_CONSTANT.check("rrf_k", self.rrf_k)? as f64;
        if count == 0 {
            return Ok(Vec::new());
        }
        let options = FindOptions {
            filter: Filter {
                kind: Some(Kind::Procedure),
                ..Filter::default()
            },
            fusion: Fusion::Rrf(Rrf {
                k,
                keyword,
                semantic,
            }),
            vector: self.query_embedding,
            // The document's function has no minimum.
            floor: Some(f32::MIN_POSITIVE),
            ..FindOptions::new(self.query_text, count)
        };
        let found = notes::find(workspace, &options, &mut |_, _| {})?;
        let part = |weight: f64, rank: Option<usize>| {
            #[expect(clippy::cast_precision_loss, reason = "ranks are small")]
            let part = rank.map_or(0.0, |rank| weight / (k + rank as f64));
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
                rrf_score: part(keyword, keyword_rank) + part(semantic, semantic_rank),
                keyword_rank,
                semantic_rank,
            });
        }
        Ok(rows)
    }
}

/// Search for typed memories: the arguments of `match_memory`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Near {
    /// Text to embed if there is no vector.
    #[serde(skip)]
    pub(super) query: String,
    /// Vector of this memory's embedder, as a list or as text.
    #[serde(deserialize_with = "vector")]
    #[schemars(with = "VectorForm")]
    pub(super) query_embedding: Option<Vec<f32>>,
    /// Minimum similarity, from -1 to 1; default 0.7.
    #[schemars(range(min = -1, max = 1))]
    pub(super) match_threshold: Option<f64>,
    /// Maximum number of results, 0 to 200; default 5.
    #[schemars(range(min = MEMORIES.least, max = MEMORIES.most))]
    pub(super) match_count: Option<i64>,
    /// Only memories of this type.
    pub(super) memory_type: Option<MemoryType>,
    /// Id of the caller; another user's id returns nothing.
    pub(super) filter_user_id: Option<String>,
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
    pub(super) fn rows(
        self,
        workspace: &Workspace,
        counts: Bounds,
        usual_threshold: f64,
    ) -> Result<Vec<SimilarRow>, Problem> {
        let count = counts.check("match_count", self.match_count)?;
        let threshold = self.match_threshold.unwrap_or(usual_threshold);
        let threshold = number("match_threshold", threshold, -1.0..=1.0)?;
        if count == 0 {
            return Ok(Vec::new());
        }
        let options = FindOptions {
            filter: Filter {
                kind: Some(Kind::Memory),
                memory_type: self.memory_type,
                ..Filter::default()
            },
            fusion: Fusion::Semantic,
            vector: self.query_embedding,
            // The rows are compared exactly below; this only lets all of them through.
            #[expect(clippy::cast_possible_truncation, reason = "rounded down")]
            floor: Some((threshold as f32).next_down()),
            explain: true,
            ..FindOptions::new(self.query, count)
        };
        let found = notes::find(workspace, &options, &mut |_, _| {})?;
        let similarity =
            |found: &Found| found.explain.as_ref().and_then(|explain| explain.semantic);
        let mut rows = Vec::new();
        for found in found.results {
            let Some(similarity) = similarity(&found).filter(|like| *like > threshold) else {
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
        Err(store::Error::NotFound(..)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn number(name: &str, given: f64, permitted: RangeInclusive<f64>) -> Result<f64, Problem> {
    if permitted.contains(&given) {
        return Ok(given);
    }
    let (least, most) = permitted.into_inner();
    let hint = format!("give a number from {least} to {most}");
    Err(Problem::unfit(format!("`{name}` is {given}"), hint))
}

/// Vector as a list of numbers, or in the text form of PostgreSQL.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum VectorForm {
    List(Vec<f32>),
    Text(String),
}

/// Parses a vector.
pub(super) fn vector<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Vec<f32>>, D::Error> {
    let vector = match Option::<VectorForm>::deserialize(reader)? {
        None => return Ok(None),
        Some(VectorForm::List(list)) => list,
        Some(VectorForm::Text(text)) => serde_json::from_str(&text).map_err(D::Error::custom)?,
    };
    if vector.is_empty() || vector.len() > DIMENSIONS || vector.iter().any(|x| !x.is_finite()) {
        return Err(D::Error::custom("a vector has 1 to 4096 finite numbers"));
    }
    Ok(Some(vector))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_vector_is_a_list_or_its_text() {
        let check = |given: Value, expected: Option<Vec<f32>>| {
            let read: Result<Hybrid, _> =
                serde_json::from_value(json!({ "query_text": "x", "query_embedding": given }));
            assert_eq!(
                read.ok().map(|read| read.query_embedding),
                expected.map(Some),
                "{given}"
            );
        };
        check(json!([1, 0.5]), Some(vec![1.0, 0.5]));
        check(json!("[1,0.5]"), Some(vec![1.0, 0.5]));
        for bad in [
            json!([]),
            json!("[]"),
            json!("1"),
            json!(1),
            json!(["a"]),
            json!([1e300]),
        ] {
            check(bad, None);
        }
        let none: Hybrid =
            serde_json::from_value(json!({ "query_text": "x", "query_embedding": null })).unwrap();
        assert_eq!(none.query_embedding, None);
    }
}
