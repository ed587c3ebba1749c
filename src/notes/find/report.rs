//! Request and result of a search, and the query's vector: computed by the embedder, or given by the caller.

use std::borrow::Cow;
use std::sync::Arc;

use memctl_search::Fusion;
use memctl_search::embedder::{Embedder, Embedding, Vector};
use serde::Serialize;

use crate::model::{Kind, MemoryType, Procedure, ProcedureFields, Trust, with_origin};
use crate::notes::indexing::Filter;
use crate::store::workspace::{Error, Providers, Workspace};

/// Search request.
#[derive(Debug)]
pub struct FindOptions {
    /// Query text.
    pub query: String,
    /// Vector of the query, for callers that have one. It must come from the embedder of this memory, and may be
    /// padded with zeros to any length.
    pub vector: Option<Vec<f32>>,
    /// Maximum number of results; at least one.
    pub limit: usize,
    /// Filter of the records.
    pub filter: Filter,
    /// Method to merge the keyword and the semantic ranking. `Keyword` alone loads no embedder.
    pub fusion: Fusion,
    /// Minimum cosine of a record without a query word; `None` for the usual one.
    pub floor: Option<f32>,
    /// Fills the results with weak matches, if `floor` is `None`.
    pub weak: bool,
    /// Minimum score of a result; `None` for all.
    pub min_score: Option<f64>,
    /// Adds an explanation to each result.
    pub explain: bool,
}

impl FindOptions {
    /// Creates the options of a search of all records.
    pub fn new(query: String, limit: usize) -> Self {
        Self {
            query,
            vector: None,
            limit,
            filter: Filter::default(),
            fusion: Fusion::default(),
            floor: None,
            weak: true,
            min_score: None,
            explain: false,
        }
    }
}

/// Search result.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct FindReport {
    /// Query text.
    pub query: String,
    /// Results, best first.
    pub results: Vec<Found>,
    /// Interpretation of the query, if an explanation was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
    /// Duration in milliseconds.
    pub took_ms: f64,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Single match.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Found {
    /// Id of the record.
    pub id: String,
    /// Kind of the record.
    pub kind: Kind,
    /// Skill of the record; `None` if it has none.
    pub skill: Option<String>,
    /// User of the record; `None` if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// Type of a memory; `None` for other kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_type: Option<MemoryType>,
    /// Score; higher is better, comparable within one answer only.
    pub score: f64,
    /// Excerpt with the most query words.
    pub snippet: String,
    /// Full text, for callers that show more than an excerpt. Of a procedure: name and numbered
    /// steps, then the rest.
    #[serde(skip)]
    pub content: String,
    /// Steps of a procedure, in order; empty for other kinds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// Rank in each ranking, from 1.
    pub ranks: Ranks,
    /// `true` for a weak match: no query word, and only a distant meaning. They follow all others.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub weak: bool,
    /// Explanation of the score, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<Explanation>,
    /// Workspace where the record was created; `None` if it has no name yet.
    pub origin: Option<String>,
    /// True for a remote record; `memctl show` finds it as `ID@ORIGIN`.
    pub pulled: bool,
    /// Trust level.
    pub trust: Trust,
    /// Status of a rule or a procedure; `None` for other kinds.
    pub status: Option<String>,
    /// Supplier of the record; `None` if the record does not name one.
    pub source: Option<String>,
}

impl Found {
    /// Id for `memctl show`; for a remote record with its origin.
    pub fn name(&self) -> String {
        let origin = self.origin.as_deref().filter(|_| self.pulled);
        origin.map_or_else(|| self.id.clone(), |origin| with_origin(&self.id, origin))
    }
}

/// Ranks from 1; `None` if a ranking does not include the record.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Ranks {
    /// Rank by keyword score.
    pub keyword: Option<usize>,
    /// Rank by semantic score.
    pub semantic: Option<usize>,
}

/// Interpretation of a query.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Asked {
    /// Query words in their normalized form.
    pub terms: Vec<Term>,
    /// Method that merged the two rankings.
    pub fusion: &'static str,
    /// Name of the embedder; `None` for a keyword search.
    pub embedder: Option<String>,
    /// Text that was compared by meaning, if the query has names that a third of the records contain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedded: Option<String>,
    /// Number of records that pass the filter.
    pub documents: usize,
    /// Number of those records that have a vector.
    pub vectors: usize,
}

/// Query word.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Term {
    /// Word in its normalized form.
    pub word: String,
    /// Number of records that contain the word.
    pub documents: usize,
}

/// Explanation of a result.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Explanation {
    /// Query words that the record contains.
    pub matched: Vec<String>,
    /// BM25 score; 0 if no query word matches.
    pub keyword: f64,
    /// Cosine of the record's and the query's vectors; `None` if one of them is missing.
    pub semantic: Option<f64>,
    /// Id of the earlier record about the same thing whose place it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub later_than: Option<String>,
}

impl Found {
    /// Adds the steps of a procedure, and puts them first in the full text. Older versions or other programs may have
    /// stored secrets.
    pub(crate) fn add_steps(&mut self, procedure: &Procedure) {
        let fields = procedure.fields();
        let redacted = |text: &str| memctl_redact::redact(text).text.into_owned();
        self.steps = fields.steps().map(redacted).collect();
        if !self.steps.is_empty() {
            self.content = redacted(&laid_out(&fields));
        }
    }
}

/// Name, condition and numbered steps of a procedure, then its other texts.
fn laid_out(fields: &ProcedureFields) -> String {
    let mut text = fields.name.clone();
    for (number, step) in (1..).zip(fields.steps()) {
        text.extend([&format!("\n{number}. "), step]);
    }
    let when = fields.when();
    let rest = [
        ("When: ", when.as_str()),
        ("", &fields.description),
        ("", &fields.failure),
        ("", &fields.intervention),
        ("", &fields.example),
    ];
    for (label, value) in rest {
        if !value.trim().is_empty() {
            text.extend(["\n", label, value]);
        }
    }
    text
}

/// Query vector, and the embedder for records that have no vector yet.
pub(crate) struct QueryEmbedding {
    pub(crate) embedder: Arc<Embedder>,
    pub(crate) vector: Vector,
    /// Text that was embedded, if frequent names of the query were left out.
    pub(crate) without_names: Option<String>,
}

impl QueryEmbedding {
    /// Opens the embedder, then waits for `to_embed`, the text of the query or a part of it. A vector that is
    /// `given` needs no text.
    pub(crate) fn new<'q>(
        providers: &Providers,
        query: &str,
        to_embed: impl FnOnce() -> Cow<'q, str>,
        given: Option<&[f32]>,
        many_texts: bool,
    ) -> Result<Self, Error> {
        let embedder = providers.open_embedder(many_texts)?;
        let dimensions = embedder.embedding().map(|embedding| embedding.dimensions);
        if let Some(given) = given {
            return Ok(Self {
                vector: fitted(given, dimensions)?,
                embedder,
                without_names: None,
            });
        }
        let text = to_embed();
        let vector = embedder.embed(&[&*text])?.pop().unwrap_or_default();
        if let Some(expected) = dimensions.filter(|expected| *expected != vector.len()) {
            return Err(embedder.other_size(vector.len(), expected).into());
        }
        Ok(Self {
            embedder,
            vector,
            without_names: (text != query).then(|| text.into_owned()),
        })
    }

    pub(crate) fn embedding(&self) -> Embedding {
        self.embedder.embedding_of(self.vector.len())
    }
}

/// Removes the zero padding of a vector from the caller, and normalizes it.
fn fitted(given: &[f32], dimensions: Option<usize>) -> Result<Vector, Error> {
    let expected = dimensions.unwrap_or(given.len());
    let (vector, rest) = given.split_at(expected.min(given.len()));
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    let is_sound = norm.is_finite() && norm > 0.0;
    if vector.len() != expected || rest.iter().any(|x| *x != 0.0) || !is_sound {
        return Err(Error::BadVector {
            found: given.len(),
            expected,
        });
    }
    Ok(vector.iter().map(|x| x / norm).collect())
}

/// Vectors and their embedder.
#[derive(Debug, Serialize)]
pub struct Embedded {
    /// Name of the embedder, as stored in the index.
    pub model: String,
    /// Vectors in the order of the texts, all normalized and of one size.
    pub vectors: Vec<Vector>,
}

/// Embeds texts. Reads and writes no records.
pub fn embed(workspace: &Workspace, texts: &[&str]) -> Result<Embedded, Error> {
    let embedder = workspace.providers.open_embedder(texts.len() > 1)?;
    let vectors = embedder.embed(texts)?;
    let size = vectors.first().map_or(0, Vec::len);
    Ok(Embedded {
        model: embedder.embedding_of(size).name,
        vectors,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_come_before_the_rest() {
        let fields: ProcedureFields = serde_json::from_value(serde_json::json!({
            "procedure_name": "Add a column", "semantic_description": "How to.",
            "identified_root_cause": "No type.", "learned_procedure_steps": ["Choose.", " ", "Run."]
        }))
        .unwrap();
        assert_eq!(
            laid_out(&fields),
            "Add a column\n1. Choose.\n2. Run.\nWhen: No type.\nHow to."
        );
    }
}
