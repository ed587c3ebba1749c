//! Measures search quality on texts with known answers.
//!
//! Reads and writes no store. The ranking is that of `memctl search`, without its weights for kinds
//! of records.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Instant;

use serde::{Serialize, Serializer};

use memctl_search::{
    Attributes, Builder, Fusion, Metrics, Part, Question as Asked, Ranked, Ranker, Segment,
    SlotLayout, Slots, percentile, seconds, slot, slots_header, texts_of, words,
};

use crate::notes::find::newer_first::{Dated, newer_first};
use crate::store::workspace::Error;
use memctl_search::embedder::config::{EmbedderConfig, Patience};
use memctl_search::embedder::{Embedder, Embedding};

/// Number of texts to embed between two progress reports.
const BATCH: usize = 32;

/// Number of results to examine per question.
const DEPTH: usize = 10;

/// Passage to search.
#[derive(Debug, Clone)]
pub struct Passage {
    /// Id of the passage.
    pub id: String,
    /// Text of the passage.
    pub text: String,
    /// Group; only questions of the same group find the passage.
    pub group: Option<String>,
    /// Time of creation, RFC 3339; later passages come before earlier ones about the same thing.
    pub created: Option<String>,
}

/// Question with its known answers.
#[derive(Debug, Clone)]
pub struct Question {
    /// Text of the question.
    pub text: String,
    /// Ids of the relevant passages with their relevance; 1 if the dataset gives none.
    pub relevant: HashMap<String, f64>,
    /// Group; the question finds only passages of the same group.
    pub group: Option<String>,
}

/// Search quality.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct EvaluateReport {
    /// Name of the dataset.
    pub dataset: String,
    /// Number of passages.
    pub documents: usize,
    /// Number of questions asked; those without an answer are left out.
    pub queries: usize,
    /// Means over the questions, from 0 to 1.
    #[serde(serialize_with = "measures")]
    #[schemars(with = "BTreeMap<String, f64>")]
    pub metrics: Metrics,
    /// Milliseconds from the text of a question to its ranking, without loading.
    pub latency_ms: Latency,
    /// Method that merged the two rankings.
    pub fusion: &'static str,
    /// Name of the embedder; `None` for a keyword search.
    pub embedder: Option<String>,
    /// Non-fatal problems.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// Latency in milliseconds.
#[derive(Debug, Clone, Copy, Default, Serialize, schemars::JsonSchema)]
pub struct Latency {
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
}

/// Asks every question and measures the rankings. `progress` gets the number of passages embedded
/// and the total.
///
/// # Errors
///
/// Embedder cannot be used, or returns invalid vectors.
pub fn evaluate(
    dataset: String,
    passages: &[Passage],
    questions: &[Question],
    fusion: Fusion,
    embedder: &EmbedderConfig,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<EvaluateReport, Error> {
    let model = match fusion {
        Fusion::Keyword => None,
        _ => Some(embedder.open(Patience::Index, true)?),
    };
    let mut groups: BTreeMap<Option<&str>, Vec<&Passage>> = BTreeMap::new();
    for passage in passages {
        let group = groups.entry(passage.group.as_deref()).or_default();
        group.push(passage);
    }
    let mut indexed = BTreeMap::new();
    let mut done = 0;
    for (name, group) in groups {
        let mut progress = |more| {
            done += more;
            progress(done, passages.len());
        };
        let index = Index::of(group, model.as_ref(), &mut progress)?;
        indexed.insert(name, index);
    }
    let mut all = Vec::new();
    let mut times = Vec::new();
    for question in questions.iter().filter(|q| !q.relevant.is_empty()) {
        let Some(index) = indexed.get(&question.group.as_deref()) else {
            all.push(Metrics::default());
            continue;
        };
        let start = Instant::now();
        let text = question.text.as_str();
        let ranker = index.ranker();
        let vector = match &model {
            Some(model) => {
                let rest = ranker.without_frequent_names(text)?;
                model.embed(&[&*rest])?.pop()
            }
            None => None,
        };
        let query = Asked {
            text,
            vector: vector.as_deref(),
            fusion,
            floor: None,
            weak: true,
            limit: DEPTH,
            weight: |_| 1.0,
        };
        let hits = ranker.rank(&query)?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
        let dated = |hit: &Ranked| Dated {
            document: hit.document,
            group: (!hit.weak).then_some(0),
            created: ranker.created(hit.document),
            standing: 0,
            score: hit.score,
            text: &index.passages[hit.document].text,
        };
        let dated: Vec<Dated<'_>> = hits.iter().map(dated).collect();
        let order = newer_first(&dated, &words(text), |one, other| {
            ranker.nearness(one, other)
        });
        let gain = |(at, _): &(usize, Option<usize>)| {
            let id = &index.passages[hits[*at].document].id;
            question.relevant.get(id).copied().unwrap_or(0.0)
        };
        let ranking: Vec<f64> = order.iter().map(gain).collect();
        let relevant: Vec<f64> = question.relevant.values().copied().collect();
        all.push(Metrics::of(&ranking, &relevant));
    }
    let embedding = indexed.values().find_map(|index| index.embedding.as_ref());
    Ok(EvaluateReport {
        dataset,
        documents: passages.len(),
        queries: all.len(),
        metrics: Metrics::mean(&all),
        latency_ms: Latency {
            p50: rounded(percentile(&times, 0.5), 1000.0),
            p95: rounded(percentile(&times, 0.95), 1000.0),
        },
        fusion: fusion.name(),
        embedder: embedding.map(|embedding| embedding.name.clone()),
        warnings: warnings(passages, questions),
    })
}

/// Passages that are searched together, in the form that a search reads.
struct Index<'a> {
    passages: Vec<&'a Passage>,
    segment: Vec<u8>,
    layout: SlotLayout,
    slots: Vec<u8>,
    /// Embedder of the vectors; `None` without any.
    embedding: Option<Embedding>,
}

impl<'a> Index<'a> {
    /// Builds the index. `progress` gets the number of passages that were embedded since.
    fn of(
        passages: Vec<&'a Passage>,
        model: Option<&Embedder>,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Self, Error> {
        let mut builder = Builder::default();
        for passage in &passages {
            let created = passage.created.as_deref().and_then(seconds);
            let attributes = Attributes {
                created: created.unwrap_or(i64::MIN),
                ..Attributes::default()
            };
            builder.add(&attributes, &passage.text);
        }
        let segment = builder.segment();
        // The number of dimensions does not matter.
        let reads_windows = model.is_some_and(|model| model.embedding_of(0).reads_windows());
        let layout = match Segment::open(&segment) {
            Some(segment) if reads_windows => SlotLayout::of(&segment),
            _ => SlotLayout::single(passages.len()),
        };
        let (mut slots, mut embedding) = (Vec::new(), None);
        if let Some(model) = model {
            let numbers: Vec<usize> = (0..passages.len()).collect();
            for batch in numbers.chunks(BATCH) {
                let of_document = |document: &usize| {
                    let vectors = layout.of_document(*document).len();
                    texts_of(&passages[*document].text, vectors)
                };
                let texts: Vec<&str> = batch.iter().flat_map(of_document).collect();
                let vectors = model.embed(&texts)?;
                let size = vectors.first().map(Vec::len);
                embedding = embedding.or(size.map(|size| model.embedding_of(size)));
                slots.extend(vectors.iter().flat_map(|vector| slot(vector)));
                progress(batch.len());
            }
        }
        if let Some(embedding) = &embedding {
            slots.splice(0..0, slots_header(embedding, layout.slots()));
        }
        Ok(Self {
            passages,
            segment,
            layout,
            slots,
            embedding,
        })
    }

    fn ranker(&self) -> Ranker<'_> {
        let part = Segment::open(&self.segment).map(|segment| {
            let embedding = self.embedding.as_ref();
            let slots = embedding.and_then(|of| Slots::open(&self.slots, of, &self.layout));
            Part::new(segment, slots, None)
        });
        Ranker::new(part.into_iter().collect())
    }
}

/// Faults of the dataset that lower the figures.
fn warnings(passages: &[Passage], questions: &[Question]) -> Vec<String> {
    let ids: HashSet<&str> = passages.iter().map(|p| p.id.as_str()).collect();
    let mut warnings = Vec::new();
    let relevant = questions.iter().flat_map(|q| q.relevant.keys());
    let missing = relevant.filter(|id| !ids.contains(id.as_str())).count();
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
    if ids.len() < passages.len() {
        warnings.push("some documents share their id; any of them counts as found".to_owned());
    }
    warnings
}

fn rounded(value: f64, steps: f64) -> f64 {
    (value * steps).round() / steps
}

/// Serializes the measures, rounded to four digits.
fn measures<S: Serializer>(metrics: &Metrics, serializer: S) -> Result<S::Ok, S::Error> {
    let named = metrics.named();
    serializer.collect_map(named.map(|(name, value)| (name, rounded(value, 1e4))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(id: &str, group: Option<&str>, text: &str) -> Passage {
        Passage {
            id: id.to_owned(),
            text: text.to_owned(),
            group: group.map(str::to_owned),
            created: None,
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
        let mut reports = Vec::new();
        let report = evaluate(
            "sample".to_owned(),
            &passages,
            &questions,
            Fusion::default(),
            &EmbedderConfig::BuiltIn,
            &mut |done, of| reports.push((done, of)),
        )
        .unwrap();
        assert_eq!((report.documents, report.queries), (3, 3));
        assert_eq!(reports, [(1, 3), (3, 3)]);
        assert_eq!(report.warnings.len(), 1);
        let json = serde_json::to_string(&report).unwrap();
        assert!(json.contains(r#""recall@1":0.3333"#), "{json}");
        assert!(json.ends_with(r#""fusion":"default","embedder":"all-minilm-l6-v2-int8/384"}"#));
    }
}
