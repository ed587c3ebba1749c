//! Measures the search on texts whose right answers are known.
//!
//! The texts are not remembered: this reads and writes no store. The ranking is the one of
//! `memory search`, without what that does with kinds of records.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Instant;

use serde::{Serialize, Serializer};

use crate::search::{
    Attributes, Builder, Fusion, Metrics, Part, Question as Asked, Ranked, Ranker, Segment, Slots,
    Vector, percentile, slot, slots_header,
};

use super::embedder::{Embedder, Maker, Patience};
use super::find::with_kin;
use super::index::Embedding;
use super::{Error, Rewrite};

/// So many texts get their vectors between two reports of progress.
const BATCH: usize = 32;

/// So much of a ranking is looked at.
const DEPTH: usize = 10;

/// What is searched.
#[derive(Debug, Clone)]
pub struct Passage {
    /// Its id.
    pub id: String,
    /// Its text.
    pub text: String,
    /// Found only by questions of the same group.
    pub group: Option<String>,
}

/// What is asked, and what should be found.
#[derive(Debug, Clone)]
pub struct Question {
    /// Its text.
    pub text: String,
    /// The ids of the passages that answer it, and how well: 1 where nobody says.
    pub relevant: HashMap<String, f64>,
    /// Finds only passages of the same group.
    pub group: Option<String>,
}

/// How well the right answers are found.
#[derive(Debug, Serialize)]
pub struct EvaluateReport {
    /// What the texts are called.
    pub dataset: String,
    /// How many passages there are.
    pub documents: usize,
    /// How many questions were asked; those without an answer are left out.
    pub queries: usize,
    /// Means over the questions, from 0 to 1.
    #[serde(serialize_with = "measures")]
    pub metrics: Metrics,
    /// From a question's text to its ranking, in milliseconds; loading is not in it.
    pub latency_ms: Latency,
    /// How the two rankings were made one.
    #[serde(serialize_with = "fusion_name")]
    pub fusion: Fusion,
    /// The model of the semantic half; `None` where that was not asked.
    pub embedder: Option<String>,
    /// What went wrong and did not stop it.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// Milliseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Latency {
    /// Half of the questions took no longer.
    pub p50: f64,
    /// Of a hundred questions ninety-five took no longer.
    pub p95: f64,
}

/// Asks every question and measures the rankings. `progress` is told how many passages have a
/// vector, out of how many.
///
/// # Errors
///
/// Those of an embedder that cannot be used, or answers otherwise than it should.
pub fn evaluate(
    dataset: String,
    passages: &[Passage],
    questions: &[Question],
    fusion: Fusion,
    rewrite: &Rewrite,
    embedder: &Embedder,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<EvaluateReport, Error> {
    let model = match fusion {
        Fusion::Keyword => None,
        _ => Some(embedder.open(Patience::Index, true)?),
    };
    let vectors = embed(model.as_ref(), passages, progress)?;
    let embedding = model.as_ref().zip(vectors.first());
    let embedding = embedding.map(|(model, vector)| model.embedding_of(vector.len()));
    let mut groups: BTreeMap<Option<&str>, Group<'_>> = BTreeMap::new();
    for (i, passage) in passages.iter().enumerate() {
        let group = groups.entry(passage.group.as_deref()).or_default();
        group.add(passage, vectors.get(i));
    }
    let indexed: BTreeMap<_, _> = groups
        .iter()
        .map(|(name, g)| (*name, g.index(embedding.as_ref())))
        .collect();
    let mut all = Vec::new();
    let mut times = Vec::new();
    for question in questions.iter().filter(|q| !q.relevant.is_empty()) {
        let name = question.group.as_deref();
        let start = Instant::now();
        let rewritten = rewrite.apply(&question.text);
        let text = rewritten.as_deref().unwrap_or(&question.text);
        let vector = model.as_ref().map(|model| model.embed(&[text]));
        let vector = vector.transpose()?.and_then(|mut vectors| vectors.pop());
        let ranker = indexed
            .get(&name)
            .map(|index| index.ranker(embedding.as_ref()));
        let kin = match (&ranker, rewrite) {
            (Some(ranker), Rewrite::Offline) => with_kin(ranker, text)?,
            _ => None,
        };
        let asked = Asked {
            text: kin.as_deref().unwrap_or(text),
            vector: vector.as_deref(),
            fusion,
            limit: DEPTH,
            weight: |_| 1.0,
        };
        let hits = ranker.map_or(Ok(Vec::new()), |ranker| ranker.rank(&asked))?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
        let ids = groups.get(&name).map_or(&[][..], |group| &group.ids);
        let gain = |hit: &Ranked| {
            let id = ids.get(hit.document)?;
            question.relevant.get(*id).copied()
        };
        let ranking: Vec<f64> = hits.iter().map(|hit| gain(hit).unwrap_or(0.0)).collect();
        let relevant: Vec<f64> = question.relevant.values().copied().collect();
        all.push(Metrics::of(&ranking, &relevant));
    }
    Ok(EvaluateReport {
        dataset,
        documents: passages.len(),
        queries: all.len(),
        metrics: Metrics::mean(&all),
        latency_ms: Latency {
            p50: rounded(percentile(&times, 0.5), 1000.0),
            p95: rounded(percentile(&times, 0.95), 1000.0),
        },
        fusion,
        embedder: embedding.map(|embedding| embedding.name),
        warnings: warnings(passages, questions),
    })
}

/// The passages that are searched together.
#[derive(Default)]
struct Group<'a> {
    ids: Vec<&'a str>,
    builder: Builder,
    slots: Vec<u8>,
}

/// The same as the bytes that a search reads.
struct Index {
    segment: Vec<u8>,
    slots: Vec<u8>,
}

impl<'a> Group<'a> {
    fn add(&mut self, passage: &'a Passage, vector: Option<&Vector>) {
        self.ids.push(&passage.id);
        self.builder.add(&Attributes::default(), &passage.text);
        self.slots
            .extend(vector.into_iter().flat_map(|vector| slot(vector)));
    }

    fn index(&self, embedding: Option<&Embedding>) -> Index {
        let header = embedding.map(|e| slots_header(&e.name, e.dimensions, self.ids.len()));
        let header = header.as_ref().map_or(&[][..], |header| &header[..]);
        Index {
            segment: self.builder.segment(),
            slots: [header, &self.slots].concat(),
        }
    }
}

impl Index {
    fn ranker(&self, embedding: Option<&Embedding>) -> Ranker<'_> {
        let part = Segment::open(&self.segment).map(|segment| {
            let slots = embedding
                .and_then(|e| Slots::open(&self.slots, &e.name, e.dimensions, segment.len()));
            Part::new(segment, slots, None)
        });
        Ranker::new(part.into_iter().collect())
    }
}

fn embed(
    model: Option<&Maker>,
    passages: &[Passage],
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Vec<Vector>, Error> {
    let mut vectors = Vec::new();
    let Some(model) = model else {
        return Ok(vectors);
    };
    for batch in passages.chunks(BATCH) {
        let texts: Vec<&str> = batch.iter().map(|passage| passage.text.as_str()).collect();
        vectors.extend(model.embed(&texts)?);
        progress(vectors.len(), passages.len());
    }
    Ok(vectors)
}

/// What makes the figures lower than the search deserves.
fn warnings(passages: &[Passage], questions: &[Question]) -> Vec<String> {
    let known: HashSet<&str> = passages.iter().map(|p| p.id.as_str()).collect();
    let mut warnings = Vec::new();
    let missing = questions
        .iter()
        .flat_map(|q| q.relevant.keys())
        .filter(|id| !known.contains(id.as_str()))
        .count();
    if missing > 0 {
        warnings.push(format!(
            "{missing} relevant ids name no document; they count as not found"
        ));
    }
    let unanswered = questions.iter().filter(|q| q.relevant.is_empty()).count();
    if unanswered > 0 {
        warnings.push(format!(
            "{unanswered} queries have nothing relevant and are left out"
        ));
    }
    if known.len() < passages.len() {
        warnings.push("some documents share their id; any of them counts as found".to_owned());
    }
    warnings
}

fn rounded(value: f64, steps: f64) -> f64 {
    (value * steps).round() / steps
}

/// The measures under the names by which they are known, with four digits.
fn measures<S: Serializer>(metrics: &Metrics, serializer: S) -> Result<S::Ok, S::Error> {
    let named = EvaluateReport::named(metrics).map(|(name, value)| (name, rounded(value, 1e4)));
    serializer.collect_map(named)
}

impl EvaluateReport {
    /// The measures and the names by which they are known.
    pub fn named(metrics: &Metrics) -> [(&'static str, f64); 6] {
        [
            ("recall@1", metrics.recall_at_1),
            ("recall@5", metrics.recall_at_5),
            ("recall@10", metrics.recall_at_10),
            ("hit@5", metrics.hit_at_5),
            ("mrr@10", metrics.mrr_at_10),
            ("ndcg@10", metrics.ndcg_at_10),
        ]
    }
}

fn fusion_name<S: Serializer>(fusion: &Fusion, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(fusion.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(id: &str, group: Option<&str>, text: &str) -> Passage {
        Passage {
            id: id.to_owned(),
            text: text.to_owned(),
            group: group.map(str::to_owned),
        }
    }

    fn question(text: &str, relevant: &[&str], group: Option<&str>) -> Question {
        Question {
            text: text.to_owned(),
            relevant: relevant.iter().map(|id| ((*id).to_owned(), 1.0)).collect(),
            group: group.map(str::to_owned),
        }
    }

    #[test]
    fn a_question_searches_its_own_group() {
        let passages = [
            passage("a", Some("one"), "the lock file is out of date"),
            passage("b", Some("two"), "the lock file is out of date"),
            passage("c", Some("two"), "the disk is full"),
        ];
        let questions = [
            question("lock file", &["b"], Some("two")),
            question("lock file", &["b"], Some("one")),
            question("lock file", &["b"], Some("three")),
            question("lock file", &[], Some("two")),
        ];
        let mut told = Vec::new();
        let report = evaluate(
            "sample".to_owned(),
            &passages,
            &questions,
            Fusion::default(),
            &Rewrite::Not,
            &Embedder::BuiltIn,
            &mut |done, of| told.push((done, of)),
        )
        .unwrap();
        assert_eq!((report.documents, report.queries), (3, 3));
        assert!((report.metrics.recall_at_1 - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!(told, [(3, 3)]);
        assert_eq!(report.warnings.len(), 1);
        let json = serde_json::to_string(&report).unwrap();
        assert!(json.contains(r#""recall@1":0.3333"#), "{json}");
        assert!(json.ends_with(r#""fusion":"default","embedder":"all-minilm-l6-v2-int8/384"}"#));
    }
}
