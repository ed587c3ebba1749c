//! Searches all records.
//!
//! - `report`: request and result of a search, and the embedding of the query.
//! - `newer_first`: later records before earlier ones about the same thing.

pub(crate) mod newer_first;
pub(crate) mod report;

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use crate::model::{CANDIDATE, Document, Kind, REJECTED};
use memctl_search::{
    Admission, ByWords, Fusion, Question, Ranked, Ranker, has_names, snippet, texts_of, words,
};

use crate::model::error::message as chain;
use crate::notes::indexing::{Index, MultiIndex, Progress};
use crate::store::workspace::{Error, Workspace, milliseconds};

use newer_first::{COMPARED, Dated, newer_first};
use report::QueryEmbedding;
pub use report::{Asked, Explanation, FindOptions, FindReport, Found, Ranks, Term};

/// Maximum number of records to embed during a search. After an import no search waits long; the
/// remaining records match by keyword until they are embedded.
const NEW_VECTORS: usize = 64;

/// Number of records without a vector from which the report suggests `memctl index`.
const MANY: usize = 1_000;

/// Maximum length of an excerpt, in characters.
pub(crate) const SNIPPET: usize = 200;

/// Searches all records. `progress` gets the number of records indexed and the total.
///
/// # Errors
///
/// [`Error::BadVector`] for a given vector of the wrong size, or a zero vector.
pub fn find(
    workspace: &Workspace,
    options: &FindOptions,
    progress: Progress<'_>,
) -> Result<FindReport, Error> {
    let mut report = compare(workspace, options, progress)?;
    let read = report.results.iter().map(|found| {
        let touched = (found.id.as_str(), found.user_id.as_deref());
        (found.kind, touched)
    });
    report.warnings.extend(workspace.note_read(read));
    Ok(report)
}

/// Searches without a trace: no read is audited. For callers that show only some of the results.
pub(crate) fn compare(
    workspace: &Workspace,
    options: &FindOptions,
    progress: Progress<'_>,
) -> Result<FindReport, Error> {
    let start = Instant::now();
    let text = options.query.as_str();
    let vector = options.vector.as_deref();
    let mut index = MultiIndex::open(&workspace.store)?;
    // A blank text has no meaning to compare, but a given vector has.
    let means_something = vector.is_some() || !text.trim().is_empty();
    let by_meaning =
        options.fusion != Fusion::Keyword && !index.iter().all(Index::is_blank) && means_something;
    let (scope, viewer) = (workspace.store.scope(), workspace.store.viewer());
    let admission = options
        .filter
        .admission(workspace.now.timestamp(), scope, viewer);
    // The query is embedded while the index is updated and searched by keyword. If it has names, only the
    // updated index knows what to embed.
    let has_names = has_names(text);
    let wants_words = options.fusion != Fusion::Semantic;
    let (updated, by_words, model) = thread::scope(|scope| {
        let providers = &workspace.providers;
        let many_texts = !index.iter().all(Index::has_all_vectors);
        let (send, receive) = mpsc::sync_channel(1);
        let to_embed = move || receive.recv().unwrap_or(Cow::Borrowed(text));
        let ask = move || QueryEmbedding::new(providers, text, to_embed, vector, many_texts);
        let model = by_meaning.then(|| scope.spawn(ask));
        if !has_names {
            drop(send.send(Cow::Borrowed(text)));
        }
        let updated = index.update(by_meaning, progress);
        // Damage found here is found again, and repaired, after the threads have ended.
        let early = model.is_some() && updated.is_ok() && (wants_words || has_names);
        let ranker = early.then(|| index.ranker(&admission)).and_then(Result::ok);
        if has_names && let Some(ranker) = &ranker {
            let rest = ranker.without_frequent_names(text);
            drop(send.send(rest.unwrap_or(Cow::Borrowed(text))));
        }
        drop(send);
        let by_words = ranker
            .filter(|_| wants_words)
            .and_then(|ranker| ranker.by_words(text).ok());
        (updated, by_words, model.map(thread::ScopedJoinHandle::join))
    });
    updated?;
    let mut troubles = Vec::new();
    // A failed embedder does not stop the keyword search.
    let query = match model.transpose().map_err(|_| Error::Index)? {
        Some(Ok(query)) => Some(query),
        Some(Err(error @ Error::BadVector { .. })) => return Err(error),
        Some(Err(error)) => {
            troubles.push(format!("searched by words alone: {}", chain(&error)));
            None
        }
        None => None,
    };
    let embedding = query.as_ref().map(QueryEmbedding::embedding);
    index.ask_for(embedding.as_ref());
    let searched = search(
        &mut index,
        options,
        &admission,
        query.as_ref(),
        by_words.as_ref(),
    );
    let answer = match searched {
        Err(Error::Index) => {
            index.renew(progress)?;
            search(&mut index, options, &admission, query.as_ref(), None)?
        }
        searched => searched?,
    };
    troubles.extend(answer.trouble);
    let origin = workspace.store.identity().map(|identity| identity.origin);
    let mut results = answer.found;
    for found in results.iter_mut().filter(|found| !found.pulled) {
        found.origin.clone_from(&origin);
    }
    let problems = index
        .iter()
        .flat_map(|index| index.problems(options.filter.kind));
    let mut warnings: Vec<String> = problems.collect();
    warnings.extend(troubles);
    if query.is_some() {
        warnings.extend(lacking(&index, workspace.store.sees_all()));
    }
    Ok(FindReport {
        results,
        query: options.query.clone(),
        asked: answer.asked,
        took_ms: milliseconds(start.elapsed()),
        warnings,
    })
}

/// Warning about records without a comparable vector. Callers with restricted access get no
/// numbers, since these count the records of other users.
fn lacking(index: &MultiIndex, tells_numbers: bool) -> Option<String> {
    const UNTIL: &str = "found by their words alone until `memctl index` has run";
    let number = |count: usize| {
        let number = tells_numbers.then(|| count.to_string());
        number.unwrap_or_else(|| "some".to_owned())
    };
    let others = index.iter().filter_map(Index::of_others);
    let others = others.reduce(|(sum, _), (documents, name)| (sum + documents, name));
    if let Some((documents, name)) = others {
        let documents = number(documents);
        return Some(format!(
            "{documents} records have their vectors from `{name}` and are {UNTIL}"
        ));
    }
    let waiting = index.without_vector();
    (waiting >= MANY).then(|| format!("{} records are {UNTIL}", number(waiting)))
}

/// Result of the ranking.
struct Answer {
    found: Vec<Found>,
    asked: Option<Asked>,
    /// Reason why records without a vector did not get one.
    trouble: Option<String>,
}

/// Ranks and reads the results. `by_words` holds keyword scores computed before, on the same index.
/// [`Error::Index`] means damage.
fn search(
    index: &mut MultiIndex,
    options: &FindOptions,
    admission: &Admission,
    query: Option<&QueryEmbedding>,
    by_words: Option<&ByWords>,
) -> Result<Answer, Error> {
    let text = options.query.as_str();
    let mut trouble = None;
    if let Some(query) = query.filter(|_| index.without_vector() > 0) {
        match index.fill_missing(text, admission, NEW_VECTORS, &query.embedder) {
            Err(Error::Index) => return Err(Error::Index),
            Err(error) => {
                let why = chain(&error);
                trouble = Some(format!("new records are found by their words alone: {why}"));
            }
            Ok(_) => {}
        }
    }
    let ranker = index.ranker(admission)?;
    let question = Question {
        text,
        vector: query.map(|query| query.vector.as_slice()),
        fusion: options.fusion,
        floor: options.floor,
        weak: options.weak,
        // A later record may take the place of an earlier one from below the limit.
        limit: options.limit.max(COMPARED),
        weight,
    };
    let query_words = words(text);
    let hits = match by_words {
        Some(words) => ranker.rank_with(&question, words),
        None => ranker.rank(&question)?,
    };
    let mut read = Vec::new();
    for ranked in hits {
        let (part, place) = ranker.place(ranked.document).ok_or(Error::Index)?;
        if let Some((origin, entry, document)) = index.record(part, place)? {
            // The index holds the trust that a file claims; only this user's approvals count.
            if options
                .filter
                .trust
                .is_none_or(|least| document.trust >= least)
            {
                read.push((ranked, origin.map(str::to_owned), entry, document));
            }
        }
    }
    let dated = read
        .iter()
        .map(|(ranked, .., document)| dated(&ranker, ranked, document));
    let dated: Vec<Dated<'_>> = dated.collect();
    let order = newer_first(&dated, &query_words, |one, other| {
        ranker.nearness(one, other)
    });
    let mut found = Vec::new();
    for (at, earlier) in order {
        let (hit, origin, entry, document) = &read[at];
        let earlier = earlier.map(|at| &read[at]);
        let score = earlier.map_or(hit.score, |(earlier, ..)| earlier.score.max(hit.score));
        if options.min_score.is_none_or(|least| score >= least) {
            let hit = Ranked { score, ..*hit };
            let mut one = result(document.clone(), &hit, &query_words, options.explain);
            (one.origin, one.pulled) = (origin.clone(), origin.is_some());
            if let (Some(explain), Some((.., earlier))) = (&mut one.explain, earlier) {
                explain.later_than = Some(earlier.id.clone());
            }
            if one.kind == Kind::Procedure
                && let Ok(procedure) = entry.parse()
            {
                one.add_steps(&procedure);
            }
            found.push(one);
        }
    }
    found.truncate(options.limit);
    let understood = options
        .explain
        .then(|| understood(index, &ranker, options, admission, query));
    Ok(Answer {
        found,
        asked: understood.transpose()?,
        trouble,
    })
}

/// Returns the part of a hit that [`newer_first()`] compares: notes and rules, no single events.
fn dated<'t>(ranker: &Ranker<'_>, hit: &Ranked, document: &'t Document) -> Dated<'t> {
    let is_active = !matches!(document.status.as_deref(), Some(CANDIDATE | REJECTED));
    Dated {
        document: hit.document,
        group: match document.kind {
            Kind::Memory => Some(0),
            Kind::Reflexion => Some(1),
            _ => None,
        }
        .filter(|_| !hit.weak),
        created: ranker.created(hit.document),
        standing: document.trust as u8 + u8::from(is_active),
        score: hit.score,
        text: &document.content,
    }
}

fn result(document: Document, ranked: &Ranked, query_words: &[String], explain: bool) -> Found {
    let explanation = || {
        let words_of_hit = words(&document.content);
        let mut matched: Vec<String> = Vec::new();
        for word in query_words
            .iter()
            .filter(|word| words_of_hit.contains(word))
        {
            if !matched.contains(word) {
                matched.push(word.clone());
            }
        }
        Explanation {
            matched,
            keyword: rounded(ranked.words),
            semantic: ranked.cosine.map(|cosine| rounded(f64::from(cosine))),
            later_than: None,
        }
    };
    Found {
        explain: explain.then(explanation),
        id: document.id,
        kind: document.kind,
        skill: document.skill,
        user_id: document.user_id,
        memory_type: document.memory_type,
        score: rounded(ranked.score),
        snippet: passage(&document.content, ranked, query_words),
        ranks: Ranks {
            keyword: ranked.keyword,
            semantic: ranked.semantic,
        },
        weak: ranked.weak,
        origin: None,
        pulled: false,
        trust: document.trust,
        status: document.status,
        source: document.source,
        content: document.content,
        steps: Vec::new(),
    }
}

/// Returns the part of a text that fits the query best: the one with most of its words, or without any
/// the nearest window.
fn passage(text: &str, ranked: &Ranked, query_words: &[String]) -> String {
    match ranked.window.filter(|_| ranked.keyword.is_none()) {
        Some((window, of)) if window > 0 => {
            let window = texts_of(text, of + 1).get(window + 1).copied();
            let shown = snippet(window.unwrap_or_default(), query_words, SNIPPET - 1);
            format!("…{shown}")
        }
        _ => snippet(&without_repetitions(text), query_words, SNIPPET),
    }
}

/// A text without the lines that it has before: the fields of a lesson repeat its line.
fn without_repetitions(text: &str) -> String {
    let mut seen = HashSet::new();
    let lines = text.lines().filter(|line| seen.insert(line.trim()));
    lines.collect::<Vec<_>>().join("\n")
}

fn understood(
    index: &MultiIndex,
    ranker: &Ranker<'_>,
    options: &FindOptions,
    admission: &Admission,
    query: Option<&QueryEmbedding>,
) -> Result<Asked, Error> {
    let terms = ranker.terms(&options.query)?.into_iter();
    // Callers with restricted access learn nothing about other records, not even their number.
    let (documents, vectors) = index.counts(admission)?;
    Ok(Asked {
        terms: terms
            .map(|(word, documents)| Term { word, documents })
            .collect(),
        fusion: options.fusion.name(),
        embedder: index.asked_for().map(str::to_owned),
        embedded: query.and_then(|query| query.without_names.clone()),
        documents,
        vectors,
    })
}

pub(crate) fn rounded(score: f64) -> f64 {
    (score * 10_000.0).round() / 10_000.0
}

/// Score weight of a kind, by its number in the index: learned records rank before their sources if both match
/// equally well.
fn weight(kind: u8) -> f64 {
    match Kind::ALL.get(usize::from(kind)) {
        Some(Kind::Correction) => 0.9,
        Some(Kind::Execution | Kind::Session) => 0.5,
        Some(Kind::Reflexion | Kind::Procedure | Kind::Memory) | None => 1.0,
    }
}
