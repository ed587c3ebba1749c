//! Searches everything that is remembered.
//!
//! - `report`: what is asked, and what is answered.
//! - `asking`: the query's vector.

mod asking;
mod report;

use std::thread;
use std::time::Instant;

use crate::model::{
    Correction, Document, Execution, Fix, Kind, Memory, Procedure, Record, Reflexion, Session,
    Trust,
};
use crate::search::{ByWords, Filter, Fusion, Question, Ranked, Ranker, snippet, words};
use crate::store::{Entry, Scoped};

use super::error::chain;
use super::index::{Library, Progress};
use super::{Engine, Error, Rewrite, milliseconds};

use asking::Asking;
pub use report::{Asked, Explanation, FindOptions, FindReport, Found, Ranks, Term};

/// So many records at most get their vectors during one search: nobody waits long for the first
/// search after an import, and the others are found by their words until their turn comes.
const NEW_VECTORS: usize = 64;

/// With so many records left without a vector, it is time to say how they all get theirs.
const MANY: usize = 1_000;

/// The longest excerpt that is shown of a record, in characters.
pub(super) const SNIPPET: usize = 200;

impl Engine {
    /// Searches everything that is remembered. `progress` is told how many records were analysed, where
    /// many are new.
    pub fn find(&self, options: &FindOptions, progress: Progress<'_>) -> Result<FindReport, Error> {
        self.find_near(options, None, progress)
    }

    /// The same, near a vector that the caller has made, where there is one. It has to be of the embedder
    /// that this memory uses; zeros may fill it up to any length.
    ///
    /// # Errors
    ///
    /// [`Error::BadVector`] for a vector of another size, or without a direction.
    pub fn find_near(
        &self,
        options: &FindOptions,
        vector: Option<&[f32]>,
        progress: Progress<'_>,
    ) -> Result<FindReport, Error> {
        let start = Instant::now();
        let rewritten = options.rewrite.apply(&options.query);
        let text = rewritten.as_deref().unwrap_or(&options.query);
        let mut index = Library::open(&self.store)?;
        // Words that are none mean nothing; a vector by itself does.
        let means_something = vector.is_some() || !text.trim().is_empty();
        let by_meaning = options.fusion != Fusion::Keyword && !index.is_blank() && means_something;
        let filter = Filter {
            now: self.now.timestamp(),
            scope: self.store.scope().clone(),
            viewer: self.store.viewer().clone(),
            ..options.filter.clone()
        };
        // The query gets its vector while the index is brought up to date and the words are looked for.
        let (updated, by_words, model) = thread::scope(|scope| {
            let providers = &self.providers;
            let many_texts = !index.has_all_vectors();
            let ask = move || Asking::new(providers, text, vector, many_texts);
            let model = by_meaning.then(|| scope.spawn(ask));
            let updated = index.update(by_meaning, progress);
            // What is damaged is found again, and mended, where no thread waits.
            let early = model.is_some() && updated.is_ok() && options.fusion != Fusion::Semantic;
            let ranker = early.then(|| index.ranker(&filter)).and_then(Result::ok);
            let by_words = ranker.and_then(|ranker| ranker.by_words(text).ok());
            (updated, by_words, model.map(thread::ScopedJoinHandle::join))
        });
        updated?;
        let mut troubles = Vec::new();
        // Who cannot be asked for the meaning is no reason not to look for the words.
        let asking = match model.transpose().map_err(|_| Error::Index)? {
            Some(Ok(asking)) => Some(asking),
            Some(Err(error @ Error::BadVector { .. })) => return Err(error),
            Some(Err(error)) => {
                troubles.push(format!("searched by words alone: {}", chain(&error)));
                None
            }
            None => None,
        };
        let embedding = asking.as_ref().map(Asking::embedding);
        index.ask_for(embedding.as_ref());
        let searched = search(
            &mut index,
            options,
            text,
            &filter,
            asking.as_ref(),
            by_words.as_ref(),
        );
        let answer = match searched {
            Err(Error::Index) => {
                index.renew(progress)?;
                search(&mut index, options, text, &filter, asking.as_ref(), None)?
            }
            searched => searched?,
        };
        let (found, asked) = (answer.found, answer.asked);
        troubles.extend(answer.trouble);
        let origin = self.store.identity().map(|identity| identity.origin);
        let read = found.iter().map(|found| {
            let touched = (found.id.as_str(), found.user_id.as_deref());
            (found.kind, touched)
        });
        let unnoted = self.note_read(read);
        let results = found.into_iter().map(|found| Found {
            origin: found.origin.clone().or_else(|| origin.clone()),
            ..found
        });
        let mut warnings: Vec<String> = index.problems(options.filter.kind).collect();
        warnings.extend(unnoted);
        warnings.extend(troubles);
        if asking.is_some() {
            warnings.extend(lacking(&index, self.store.sees_all()));
        }
        Ok(FindReport {
            results: results.collect(),
            query: options.query.clone(),
            rewritten: answer.with_kin.or(rewritten),
            asked,
            took_ms: milliseconds(start.elapsed()),
            warnings,
        })
    }
}

/// What is to be said of records that have no vector to compare.
/// The number of others' records is nobody else's to know.
fn lacking(index: &Library, tells_numbers: bool) -> Option<String> {
    const UNTIL: &str = "found by their words alone until `memctl index` has run";
    let number = |count: usize| {
        let told = tells_numbers.then(|| count.to_string());
        told.unwrap_or_else(|| "some".to_owned())
    };
    if let Some((documents, name)) = index.of_others() {
        let documents = number(documents);
        return Some(format!(
            "{documents} records have their vectors from `{name}` and are {UNTIL}"
        ));
    }
    let waiting = index.without_vector();
    (waiting >= MANY).then(|| format!("{} records are {UNTIL}", number(waiting)))
}

/// What a search came to.
struct Answer {
    found: Vec<Found>,
    asked: Option<Asked>,
    /// The text that was looked for, where words of the index came to it.
    with_kin: Option<String>,
    /// Why records that have no vector did not get one.
    trouble: Option<String>,
}

/// Ranks, and reads what came out. `by_words` is what the words of the text have come to already, in
/// the index as it is. [`Error::Index`] is damage.
fn search(
    index: &mut Library,
    options: &FindOptions,
    text: &str,
    filter: &Filter,
    asking: Option<&Asking>,
    by_words: Option<&ByWords>,
) -> Result<Answer, Error> {
    let mut trouble = None;
    if let Some(asking) = asking.filter(|_| index.without_vector() > 0) {
        match index.fill_missing(text, filter, NEW_VECTORS, &asking.maker) {
            Err(Error::Index) => return Err(Error::Index),
            Err(error) => {
                let why = chain(&error);
                trouble = Some(format!("new records are found by their words alone: {why}"));
            }
            Ok(_) => {}
        }
    }
    let ranker = index.ranker(filter)?;
    let with_kin = match options.rewrite {
        Rewrite::Offline => with_kin(&ranker, text)?,
        Rewrite::Not | Rewrite::To(_) => None,
    };
    let text = with_kin.as_deref().unwrap_or(text);
    let question = Question {
        text,
        vector: asking.map(|asking| asking.vector.as_slice()),
        fusion: options.fusion,
        limit: options.limit,
        weight,
    };
    let asked = words(text);
    let mut found = Vec::new();
    let hits = match by_words.filter(|_| with_kin.is_none()) {
        Some(words) => ranker.rank_with(&question, words),
        None => ranker.rank(&question)?,
    };
    for ranked in hits {
        let (part, place) = ranker.place(ranked.document).ok_or(Error::Index)?;
        if let Some((origin, document)) = index.record(part, place)? {
            // The index knows what the file says of trust; what counts, only the user's own notes.
            if filter.trust.is_some_and(|least| document.trust < least) {
                continue;
            }
            let found_one = result(document, &ranked, &asked, options.explain);
            found.push(Found {
                pulled: origin.is_some(),
                origin: origin.map(str::to_owned),
                ..found_one
            });
        }
    }
    let understood = options
        .explain
        .then(|| understood(index, &ranker, text, filter, options.fusion));
    Ok(Answer {
        found,
        asked: understood.transpose()?,
        with_kin,
        trouble,
    })
}

fn result(document: Document, ranked: &Ranked, asked: &[String], explain: bool) -> Found {
    let explanation = || {
        let held = words(&document.content);
        let mut matched: Vec<String> = Vec::new();
        for word in asked.iter().filter(|word| held.contains(word)) {
            if !matched.contains(word) {
                matched.push(word.clone());
            }
        }
        Explanation {
            matched,
            keyword: rounded(ranked.words),
            semantic: ranked.cosine.map(|cosine| rounded(f64::from(cosine))),
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
        snippet: snippet(&document.content, asked, SNIPPET),
        ranks: Ranks {
            keyword: ranked.keyword,
            semantic: ranked.semantic,
        },
        origin: None,
        pulled: false,
        trust: document.trust,
        status: document.status,
        source: document.source,
        content: document.content,
    }
}

/// The text with what its mistyped words may have meant; `None` where there is nothing to add.
pub(super) fn with_kin(ranker: &Ranker<'_>, text: &str) -> Result<Option<String>, Error> {
    let kin = ranker.kin(text)?;
    Ok((!kin.is_empty()).then(|| format!("{text} {}", kin.join(" "))))
}

fn understood(
    index: &Library,
    ranker: &Ranker<'_>,
    text: &str,
    filter: &Filter,
    fusion: Fusion,
) -> Result<Asked, Error> {
    let terms = ranker.terms(text)?.into_iter();
    // Of others' records not even the number is told.
    let (documents, vectors) = index.counts(filter)?;
    Ok(Asked {
        terms: terms
            .map(|(word, documents)| Term { word, documents })
            .collect(),
        fusion: fusion.name(),
        embedder: index.asked_for().map(str::to_owned),
        documents,
        vectors,
    })
}

pub(super) fn rounded(score: f64) -> f64 {
    (score * 10_000.0).round() / 10_000.0
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

/// The level of trust of an entry: `observed` where this user does not stand behind it.
pub(super) fn level(store: &Scoped, entry: &Entry) -> Trust {
    let own = document(entry).map_or(Trust::Observed, |document| document.trust);
    store.standing().of_entry(entry, own)
}

/// What was learnt comes before what it was learnt from, where both fit the query equally well.
fn weight(kind: Kind) -> f64 {
    match kind {
        Kind::Reflexion | Kind::Procedure | Kind::Fix | Kind::Memory => 1.0,
        Kind::Correction => 0.9,
        Kind::Execution | Kind::Session => 0.5,
    }
}
