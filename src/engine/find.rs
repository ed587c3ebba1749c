//! Searches everything that is remembered.

use std::collections::HashSet;
use std::time::Instant;

use serde::Serialize;

use crate::model::{
    Correction, Document, Execution, Fix, Kind, Memory, Procedure, Record, Reflexion, Scope,
    Session, SkillPath, Trust,
};
use crate::search::{
    BuiltIn, COMPACT, Corpus, EMBEDDER, Fusion, Ranker, Vector, compact, restore, snippet, words,
};
use crate::store::{Entry, Selection, TextKey, text_key};

use super::{Engine, Error, milliseconds};

/// So many records at most get their vectors during one search: nobody waits long for the first
/// search after an import, and the others are found by their words until their turn comes.
const NEW_VECTORS: usize = 64;

/// The longest excerpt that is shown of a record, in characters.
const SNIPPET: usize = 200;

/// What is looked for.
#[derive(Debug)]
pub struct FindOptions {
    /// The words.
    pub query: String,
    /// How many results at most; at least one.
    pub limit: usize,
    /// Records of this kind only.
    pub kind: Option<Kind>,
    /// Records of this skill only.
    pub skill: Option<SkillPath>,
    /// By words alone; the model of meanings is not loaded.
    pub keyword: bool,
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
    /// Higher is better; comparable within one answer only.
    pub score: f64,
    /// The part of it in which most of the words stand.
    pub snippet: String,
    /// Its rank in each ranking, from 1.
    pub ranks: Ranks,
    /// The workspace that it was born in; `None` where that has no name yet.
    pub origin: Option<String>,
    /// How far it may be believed.
    pub trust: Trust,
}

/// Ranks from 1; `None` where a ranking does not hold the record.
#[derive(Debug, Serialize)]
pub struct Ranks {
    /// By words.
    pub keyword: Option<usize>,
    /// By meaning.
    pub semantic: Option<usize>,
}

impl Engine {
    /// Searches everything that is remembered.
    pub fn find(&self, options: &FindOptions) -> Result<FindReport, Error> {
        let start = Instant::now();
        let (documents, warnings) = self.documents(options.kind, options.skill.as_ref())?;
        let (vectors, query) = if options.keyword || documents.is_empty() {
            (Vec::new(), None)
        } else {
            self.meanings(&documents, options)?
        };
        let mut vectors = vectors.into_iter();
        let mut ranker = Ranker::default();
        for document in &documents {
            ranker.add(&document.content, vectors.next().flatten());
        }
        let mut hits = ranker.rank(&options.query, query.as_ref(), Fusion::default());
        for hit in &mut hits {
            hit.score *= weight(documents[hit.document].kind);
        }
        hits.sort_by(|a, b| b.score.total_cmp(&a.score));
        let asked = words(&options.query);
        let origin = self.store.identity().map(|identity| identity.origin);
        let results = hits.iter().take(options.limit).map(|hit| {
            let document = &documents[hit.document];
            Found {
                id: document.id.clone(),
                kind: document.kind,
                skill: document.skill.clone(),
                score: (hit.score * 10_000.0).round() / 10_000.0,
                snippet: snippet(&document.content, &asked, SNIPPET),
                ranks: Ranks {
                    keyword: hit.keyword,
                    semantic: hit.semantic,
                },
                origin: origin.clone(),
                trust: document.trust,
            }
        });
        Ok(FindReport {
            results: results.collect(),
            query: options.query.clone(),
            rewritten: None,
            took_ms: milliseconds(start.elapsed()),
            warnings,
        })
    }

    /// The vectors of the documents, as far as there are any, and of the query. Missing ones are
    /// made for the best by words first, then for the newest, and kept for the next search.
    #[expect(clippy::type_complexity, reason = "two results of one loading")]
    fn meanings(
        &self,
        documents: &[Document],
        options: &FindOptions,
    ) -> Result<(Vec<Option<Box<Vector>>>, Option<Vector>), Error> {
        let mut kept = self.store.vectors::<COMPACT>(EMBEDDER);
        let keys: Vec<TextKey> = documents.iter().map(|d| text_key(&d.content)).collect();
        let mut missing = Vec::new();
        if keys.iter().any(|key| kept.get(key).is_none()) {
            let mut corpus = Corpus::default();
            for document in documents {
                corpus.add(&document.content);
            }
            let by_words = corpus.search(&options.query);
            let by_words = by_words.iter().map(|hit| hit.document);
            let mut seen = HashSet::new();
            missing.extend(
                by_words
                    .chain((0..documents.len()).rev())
                    .filter(|i| kept.get(&keys[*i]).is_none() && seen.insert(keys[*i]))
                    .take(NEW_VECTORS),
            );
        }
        let mut texts = vec![options.query.as_str()];
        texts.extend(missing.iter().map(|i| documents[*i].content.as_str()));
        let mut made = BuiltIn::load()?.embed(&texts)?.into_iter();
        let query = made.next();
        for (i, vector) in missing.into_iter().zip(made) {
            kept.insert(keys[i], compact(&vector));
        }
        if options.kind.is_none() && options.skill.is_none() && *self.store.scope() == Scope::All {
            kept.retain(&keys.iter().copied().collect());
        }
        kept.save();
        let vector = |key| kept.get(key).and_then(restore).map(Box::new);
        Ok((keys.iter().map(vector).collect(), query))
    }

    fn documents(
        &self,
        kind: Option<Kind>,
        skill: Option<&SkillPath>,
    ) -> Result<(Vec<Document>, Vec<String>), Error> {
        let mut documents = Vec::new();
        let mut warnings = Vec::new();
        let selection = Selection {
            skill,
            newest: None,
        };
        for kind in Kind::ALL
            .into_iter()
            .filter(|k| kind.is_none_or(|kind| kind == *k))
        {
            let problems = self.store.each_entry(kind, &selection, &mut |entry| {
                // Entries that cannot be read are `doctor`'s to tell of.
                documents.extend(document(&entry));
            })?;
            warnings.extend(problems.iter().map(ToString::to_string));
        }
        Ok((documents, warnings))
    }
}

/// An entry as a document; `None` where it is no readable record.
pub(super) fn document(entry: &Entry) -> Option<Document> {
    fn of<R: Record>(entry: &Entry) -> Option<Document> {
        entry.parse::<R>().ok().map(|record| record.document())
    }
    match entry.kind {
        Kind::Execution => of::<Execution>(entry),
        Kind::Correction => of::<Correction>(entry),
        Kind::Reflexion => of::<Reflexion>(entry),
        Kind::Procedure => of::<Procedure>(entry),
        Kind::Fix => of::<Fix>(entry),
        Kind::Memory => of::<Memory>(entry),
        Kind::Session => of::<Session>(entry),
    }
}

/// What was learnt comes before what it was learnt from, where both fit the query equally well.
fn weight(kind: Kind) -> f64 {
    match kind {
        Kind::Reflexion | Kind::Procedure | Kind::Fix | Kind::Memory => 1.0,
        Kind::Correction => 0.9,
        Kind::Execution | Kind::Session => 0.5,
    }
}
