//! Request and result of a search.

use serde::Serialize;

use crate::model::{Kind, MemoryType, Trust, with_origin};
use crate::notes::indexing::Filter;
use memctl_search::Fusion;

use crate::notes::find::rewrite::Rewrite;

/// Search request.
#[derive(Debug)]
pub struct FindOptions {
    /// Query text.
    pub query: String,
    /// Maximum number of results; at least one.
    pub limit: usize,
    /// Filter of the records. The engine sets its scope, its viewer and its time.
    pub filter: Filter,
    /// Method to merge the keyword and the semantic ranking. `Keyword` alone loads no embedder.
    pub fusion: Fusion,
    /// Minimum cosine of a record without a query word; `None` for the usual one.
    pub floor: Option<f32>,
    /// Fills the results with weak matches, if `floor` is `None`.
    pub weak: bool,
    /// Minimum score of a result; `None` for all.
    pub min_score: Option<f64>,
    /// Rewriting of the query.
    pub rewrite: Rewrite,
    /// Adds an explanation to each result.
    pub explain: bool,
}

impl FindOptions {
    /// Creates the options of a search of all records.
    pub fn new(query: String, limit: usize) -> Self {
        Self {
            query,
            limit,
            filter: Filter::default(),
            fusion: Fusion::default(),
            floor: None,
            weak: true,
            min_score: None,
            rewrite: Rewrite::Not,
            explain: false,
        }
    }
}

/// Search result.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct FindReport {
    /// Query text.
    pub query: String,
    /// Text that was searched instead; `None` if the query was not rewritten.
    pub rewritten: Option<String>,
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
}
