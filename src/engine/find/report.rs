//! What a search is asked, and what it answers.

use serde::Serialize;

use crate::model::{Kind, MemoryType, Trust, abroad};
use crate::search::{Filter, Fusion};

use super::super::Rewrite;

/// What is looked for.
#[derive(Debug)]
pub struct FindOptions {
    /// The words.
    pub query: String,
    /// How many results at most; at least one.
    pub limit: usize,
    /// What may be found. Its scope, its viewer and its time are set by the engine.
    pub filter: Filter,
    /// How the rankings by words and by meaning become one. By words alone, the model of meanings is
    /// not loaded.
    pub fusion: Fusion,
    /// What is looked for instead of the words.
    pub rewrite: Rewrite,
    /// Whether to say how each result came about.
    pub explain: bool,
}

/// What was found.
#[derive(Debug, Serialize)]
pub struct FindReport {
    /// The words that were looked for.
    pub query: String,
    /// The words that were looked for instead, where they were rewritten.
    pub rewritten: Option<String>,
    /// Best first.
    pub results: Vec<Found>,
    /// How the query was understood, where that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
    /// Milliseconds.
    pub took_ms: f64,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

/// One result.
#[derive(Debug, Serialize)]
pub struct Found {
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: Kind,
    /// The skill that it belongs to.
    pub skill: Option<String>,
    /// Whose it is, if it is somebody's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// Which type of memory it is, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_type: Option<MemoryType>,
    /// Higher is better; comparable within one answer only.
    pub score: f64,
    /// The part of it in which most of the words stand.
    pub snippet: String,
    /// All of its words: for those who have more room than a line.
    #[serde(skip)]
    pub content: String,
    /// Its rank in each ranking, from 1.
    pub ranks: Ranks,
    /// How it came about, where that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<Explanation>,
    /// The workspace that it was born in; `None` where that has no name yet.
    pub origin: Option<String>,
    /// Whether it was pulled from another workspace: then `memctl memory show` finds it under `ID@ORIGIN`.
    pub pulled: bool,
    /// How far it may be believed.
    pub trust: Trust,
    /// Of a rule or a fix: how it stands.
    pub status: Option<String>,
    /// Who brought it, where the record says so.
    pub source: Option<String>,
}

impl Found {
    /// The id by which it is shown again; one that was pulled says from where.
    pub fn name(&self) -> String {
        let origin = self.origin.as_deref().filter(|_| self.pulled);
        origin.map_or_else(|| self.id.clone(), |origin| abroad(&self.id, origin))
    }
}

/// Ranks from 1; `None` where a ranking does not hold the record.
#[derive(Debug, Serialize)]
pub struct Ranks {
    /// By words.
    pub keyword: Option<usize>,
    /// By meaning.
    pub semantic: Option<usize>,
}

/// How a query was understood.
#[derive(Debug, Serialize)]
pub struct Asked {
    /// Its words, as they are compared.
    pub terms: Vec<Term>,
    /// How the two rankings became one.
    pub fusion: &'static str,
    /// What made the vectors; `None` where meaning was not asked.
    pub embedder: Option<String>,
    /// How many records could be found, and how many of them have a vector.
    pub documents: usize,
    /// See `documents`.
    pub vectors: usize,
}

/// A word of a query.
#[derive(Debug, Serialize)]
pub struct Term {
    /// The word, as it is compared.
    pub word: String,
    /// In how many records it stands.
    pub documents: usize,
}

/// How a result came about.
#[derive(Debug, Serialize)]
pub struct Explanation {
    /// The words of the query that stand in it.
    pub matched: Vec<String>,
    /// Its BM25 score; 0 where none does.
    pub keyword: f64,
    /// The cosine of its vector and the query's; `None` where there is none to compare.
    pub semantic: Option<f64>,
}
