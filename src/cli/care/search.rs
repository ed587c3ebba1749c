//! `index` and `eval`: a full update of the search index, and the quality of search.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use memctl_files::named;
use memctl_search::embedder::Destination;
use memctl_search::{Fusion, Rrf};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Number;

use crate::cli::ask::{Spending, price};
use crate::cli::config;
use crate::cli::context::Context;
use crate::cli::output::printer::Work;
use crate::cli::output::{Done, Page, Report, ms, plural};
use crate::model::error::UserError;
use crate::store::workspace::Error;
use crate::upkeep::{
    self, EvaluateReport, IndexOptions, IndexReport, IndexStage, Passage, Question, evaluate,
};

/// Measure the quality of search
///
/// ```console
/// $ memctl eval retrieval --docs docs.jsonl --queries queries.jsonl
/// $ memctl eval retrieval --docs docs.jsonl --queries queries.jsonl --json
/// ```
#[derive(Debug, Subcommand)]
pub(crate) enum EvalCommand {
    Retrieval(RetrievalArgs),
}

/// Measure search quality on your own documents and queries
///
/// Both files hold one JSON object per line: documents `{id, text, group?, created?}`, queries
/// `{qid, text, relevant: [id…], grades?: {id: number}, group?}`. A query with a group searches that
/// group only; of two documents about one thing the one created later (RFC 3339) comes first.
/// Nothing is stored.
///
/// ```console
/// $ memctl eval retrieval --docs docs.jsonl --queries queries.jsonl
/// $ memctl eval retrieval --docs docs.jsonl --queries queries.jsonl --fusion rrf
/// ```
#[derive(Debug, Args)]
pub(crate) struct RetrievalArgs {
    /// JSON Lines file with the documents
    #[arg(long, value_name = "FILE")]
    docs: PathBuf,
    /// JSON Lines file with the queries
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,
    /// Method that combines the keyword and the semantic ranking
    #[arg(long, value_name = "HOW", default_value = "default")]
    fusion: FusionName,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "lower")]
enum FusionName {
    /// By the share of the query that each half of a record covers
    Default,
    /// Reciprocal rank fusion with equal weights and the rank constant 50
    Rrf,
    /// Keyword ranking only
    Keyword,
    /// Semantic ranking only
    Semantic,
}

pub(crate) fn eval(context: &Context, command: &EvalCommand) -> Done<EvaluateReport> {
    let EvalCommand::Retrieval(args) = command;
    let docs = context.environment.absolute(&args.docs);
    let queries = context.environment.absolute(&args.queries);
    let passages = lines(&docs, |document: Document| {
        Ok(Passage {
            id: document.id.into(),
            text: document.text,
            group: document.group.map(String::from),
            created: document.created,
        })
    })?;
    let questions = lines(&queries, |query: Query| {
        Ok(Question {
            text: query.text,
            relevant: graded(query.relevant, &query.grades.unwrap_or_default())?,
            group: query.group.map(String::from),
        })
    })?;
    let config = context.config()?;
    let embedder = config::embedder(&context.environment, &config)?;
    let fusion = match args.fusion {
        FusionName::Default => Fusion::Coverage,
        FusionName::Rrf => Fusion::Rrf(Rrf::default()),
        FusionName::Keyword => Fusion::Keyword,
        FusionName::Semantic => Fusion::Semantic,
    };
    if fusion != Fusion::Keyword
        && let Some(to) = embedder.destination()?
    {
        let texts = passages.len() + questions.len();
        context.printer.note(&sending(texts, &to));
    }
    let report = context.printer.counting("vectors", |progress| {
        let dataset = dataset(&docs);
        evaluate(dataset, &passages, &questions, fusion, &embedder, progress)
    });
    Ok(report?)
}

/// Returns the name of the data set: the directory of the documents, else the file name.
fn dataset(docs: &Path) -> String {
    let directory = docs.parent().and_then(Path::file_name);
    let name = directory.or(docs.file_stem()).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Line of the documents.
#[derive(Deserialize)]
struct Document {
    id: Name,
    text: String,
    group: Option<Name>,
    created: Option<String>,
}

/// Line of the queries.
#[derive(Deserialize)]
struct Query {
    text: String,
    relevant: Vec<Name>,
    grades: Option<HashMap<String, f64>>,
    group: Option<Name>,
}

/// Text or a number, as a name.
#[derive(Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Number(Number),
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        match name {
            Name::Text(text) => text,
            Name::Number(number) => number.to_string(),
        }
    }
}

/// Returns the relevant document ids with their grades; 1 without a grade.
fn graded(ids: Vec<Name>, grades: &HashMap<String, f64>) -> Result<HashMap<String, f64>, String> {
    let relevant = ids.into_iter().map(|id| {
        let id = String::from(id);
        match grades.get(&id).copied().unwrap_or(1.0) {
            grade if grade > 0.0 => Ok((id, grade)),
            _ => Err(format!("the grade of `{id}` is not a number above 0")),
        }
    });
    relevant.collect()
}

impl Report for EvaluateReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        page.document(self, &[]);
    }
}

/// Reads the objects of a file, one per line; skips empty lines.
fn lines<L: DeserializeOwned, T>(
    path: &Path,
    read: impl Fn(L) -> Result<T, String>,
) -> Result<Vec<T>, UserError> {
    let content = named::read_any_text(path).map_err(|source| {
        let path = path.to_owned();
        Error::Unreadable { path, source }
    })?;
    let content = content.trim_start_matches('\u{feff}');
    let lines = (1..).zip(content.lines());
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let read = lines.map(|(number, line)| {
        let line = serde_json::from_str(line).map_err(|error| error.to_string());
        line.and_then(&read).map_err(|why| {
            let message = format!("cannot read `{}`, line {number}: {why}", path.display());
            UserError::input(message, "memctl eval retrieval --help")
        })
    });
    read.collect()
}

/// Update the search index, with a vector for every record
///
/// Searches update a part of the index each time. After an import, or with a new embedder, this
/// updates all of it. It can be interrupted, and continues where it stopped.
///
/// With `embedding.provider` set to `openai` or `ollama`, the first 4,000 characters of each record
/// without a vector are sent there. The number of texts, the host and the cost are printed first. A
/// terminal asks if the cost is above `llm.ask_above_usd`, or if it is unknown and there are many
/// requests.
///
/// ```console
/// $ memctl index
/// $ memctl index --keyword
/// ```
#[derive(Debug, Args)]
pub(crate) struct IndexArgs {
    /// Update the keyword index only; later searches add vectors
    #[arg(long)]
    keyword: bool,
    /// Discard the index and build it again
    #[arg(long)]
    rebuild: bool,
    /// Call a paid embedder without a question about the cost
    #[arg(long)]
    yes: bool,
}

pub(crate) fn index(context: &Context, args: &IndexArgs) -> Done<IndexReport> {
    let options = IndexOptions {
        keyword: args.keyword,
        rebuild: args.rebuild,
    };
    let workspace = context.workspace(None)?;
    let printer = &context.printer;
    let mut work: Option<Work> = None;
    let mut answer = Ok(true);
    let report = upkeep::index(&workspace, options, &mut |stage| {
        let (name, done, of) = match stage {
            IndexStage::Words(done, of) => ("words", done, of),
            IndexStage::Vectors(done, of) => ("vectors", done, of),
            IndexStage::Sends(texts, to) => {
                // No line is printed below a question.
                work = None;
                printer.note(&sending(texts, to));
                let spending = Spending {
                    models: std::slice::from_ref(&to.model),
                    calls: to.requests(texts),
                    cost_usd: to.highest_cost(texts),
                    ..Spending::default()
                };
                answer = spending.is_wanted(context, args.yes);
                return matches!(answer, Ok(true));
            }
        };
        let line = work.get_or_insert_with(|| printer.work(name));
        line.say(format!("{name} {done}/{of}"));
        true
    });
    drop(work);
    answer?;
    Ok(report?)
}

/// Returns a sentence with the number of texts, the host that receives them, and the cost.
pub(crate) fn sending(texts: usize, to: &Destination) -> String {
    let cost = match to.highest_cost(texts) {
        Some(cost) if cost > 0.0 => format!(", at most {}", price(Some(cost))),
        _ => String::new(),
    };
    format!(
        "sending {} to `{}` for embedding with `{}`, in {}{cost}",
        plural(texts as u64, "text"),
        to.host,
        to.model,
        plural(to.requests(texts) as u64, "request")
    )
}

impl Report for IndexReport {
    fn page(&self, page: &mut Page) {
        let (records, took) = (plural(self.documents as u64, "record"), ms(self.took_ms));
        let (vectors, new) = (self.vectors, self.made);
        page.line(format!(
            "{records} indexed, {vectors} with a vector ({new} new), in {took}"
        ));
        page.dim(format!("embedder: {}", self.embedder));
    }
}
