//! `index` and `eval`: a full update of the search index, and the quality of search.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use memctl_files::named;
use memctl_search::embedder::Destination;
use memctl_search::{Fusion, Rrf};
use serde_json::{Map, Value};

use crate::cli::ask::{Spending, price};
use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report, Style, Table, plural};
use crate::model::error::UserError;
use crate::upkeep;
use crate::upkeep::{
    EvaluateReport, IndexOptions, IndexReport, IndexStage, Passage, Question, evaluate,
};

/// Measure the quality of search
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  memctl eval retrieval --docs docs.jsonl --queries queries.jsonl\n  \
        memctl eval retrieval --docs docs.jsonl --queries queries.jsonl --json"
)]
pub(crate) enum EvalCommand {
    Retrieval(RetrievalArgs),
}

/// Measure search quality on your own documents and queries
///
/// Both files hold one JSON object per line: documents `{id, text, group?, created?}`, queries
/// `{qid, text, relevant: [id…], grades?: {id: number}, group?}`. A query with a group searches that
/// group only; of two documents about one thing the one created later (RFC 3339) comes first.
/// Nothing is stored.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl eval retrieval --docs docs.jsonl --queries queries.jsonl\n  \
        memctl eval retrieval --docs docs.jsonl --queries queries.jsonl --fusion rrf"
)]
pub(crate) struct RetrievalArgs {
    /// JSON Lines file with the documents
    #[arg(long, value_name = "FILE")]
    docs: PathBuf,
    /// JSON Lines file with the queries
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,
    /// Field of a document that holds its text
    #[arg(long, value_name = "FIELD", default_value = "text")]
    doc_field: String,
    /// Field of a query that holds its text
    #[arg(long, value_name = "FIELD", default_value = "text")]
    query_field: String,
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

impl FusionName {
    fn fusion(self) -> Fusion {
        match self {
            Self::Default => Fusion::Coverage,
            Self::Rrf => Fusion::Rrf(Rrf::default()),
            Self::Keyword => Fusion::Keyword,
            Self::Semantic => Fusion::Semantic,
        }
    }
}

pub(crate) fn eval(context: &Context, command: &EvalCommand) -> Done {
    let EvalCommand::Retrieval(args) = command;
    let docs = context.environment.absolute(&args.docs);
    let queries = context.environment.absolute(&args.queries);
    let passages = lines(&docs, |object| {
        Ok(Passage {
            id: text(object, "id")?,
            text: text(object, &args.doc_field)?,
            group: optional(object, "group")?,
            created: optional(object, "created")?,
        })
    })?;
    let questions = lines(&queries, |object| {
        Ok(Question {
            text: text(object, &args.query_field)?,
            relevant: relevant(object)?,
            group: optional(object, "group")?,
        })
    })?;
    let config = context.config(&[])?;
    let embedder = context.embedder(&config)?;
    let fusion = args.fusion.fusion();
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
    Ok(Box::new(report?))
}

/// Returns the name of the data set: the directory of the documents, else the file name.
fn dataset(docs: &Path) -> String {
    let directory = docs.parent().and_then(Path::file_name);
    let name = directory.or(docs.file_stem()).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn optional(object: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(_) => text(object, name).map(Some),
    }
}

/// Returns the relevant document ids with their grades; 1 without `grades`.
fn relevant(object: &Map<String, Value>) -> Result<HashMap<String, f64>, String> {
    let Some(Value::Array(ids)) = object.get("relevant") else {
        return Err("`relevant` is missing or is not an array".to_owned());
    };
    let grades = match object.get("grades") {
        None | Some(Value::Null) => None,
        Some(Value::Object(grades)) => Some(grades),
        Some(_) => return Err("`grades` is not an object of numbers".to_owned()),
    };
    let worth = |id: &Value| {
        let id = match id {
            Value::String(id) => id.clone(),
            Value::Number(id) => id.to_string(),
            _ => return Err("`relevant` contains a value that is not an id".to_owned()),
        };
        let grade = grades.and_then(|grades| grades.get(&id));
        match grade.map_or(Some(1.0), Value::as_f64) {
            Some(grade) if grade > 0.0 => Ok((id, grade)),
            _ => Err(format!("the grade of `{id}` is not a number above 0")),
        }
    };
    ids.iter().map(worth).collect()
}

impl Report for EvaluateReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        page.styled(&[
            (Style::Strong, &self.dataset),
            (
                Style::Plain,
                &format!(
                    ": {}, {} queries",
                    plural(self.documents as u64, "document"),
                    self.queries
                ),
            ),
        ]);
        let mut table = Table::new("Measure|>Value", &[0]);
        for (name, value) in self.metrics.named() {
            table.row([name.to_owned(), format!("{value:.3}")]);
        }
        for (name, value) in [("p50", self.latency_ms.p50), ("p95", self.latency_ms.p95)] {
            table.row([name.to_owned(), format!("{value:.1} ms")]);
        }
        page.table(&table);
        let embedder = self.embedder.as_deref().unwrap_or("none");
        page.dim(format!(
            "fusion: {}, embedder: {embedder}",
            self.fusion.name()
        ));
    }
}

/// Reads the objects of a file, one per line; skips empty lines.
pub(crate) fn lines<T>(
    path: &Path,
    read: impl Fn(&Map<String, Value>) -> Result<T, String>,
) -> Result<Vec<T>, UserError> {
    let unreadable = |source| crate::store::workspace::Error::Unreadable {
        path: path.to_owned(),
        source,
    };
    let content = named::read_any_text(path).map_err(unreadable)?;
    let mut out = Vec::new();
    for (number, line) in (1..).zip(content.trim_start_matches('\u{feff}').lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let object: Result<Map<String, Value>, _> = serde_json::from_str(line);
        let read = object
            .map_err(|_| "not a JSON object".to_owned())
            .and_then(|object| read(&object));
        out.push(read.map_err(|why| {
            UserError::input(
                format!("cannot read `{}`, line {number}: {why}", path.display()),
                "memctl eval retrieval --help",
            )
        })?);
    }
    Ok(out)
}

/// Returns a field that holds text or a number, as text.
pub(crate) fn text(object: &Map<String, Value>, field: &str) -> Result<String, String> {
    match object.get(field) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Number(number)) => Ok(number.to_string()),
        Some(_) => Err(format!("`{field}` is not a string")),
        None => Err(format!("`{field}` is missing")),
    }
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
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl index\n  memctl index --keyword")]
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

pub(crate) fn index(context: &Context, args: &IndexArgs) -> Done {
    let options = IndexOptions {
        keyword: args.keyword,
        rebuild: args.rebuild,
    };
    let workspace = context.workspace(None)?;
    let printer = &context.printer;
    let (mut words, mut vectors) = (None, None);
    let mut answer = Ok(true);
    let report = upkeep::index(&workspace, options, &mut |stage| {
        match stage {
            IndexStage::Words(done, of) => words
                .get_or_insert_with(|| printer.work("words"))
                .reach(done, of),
            IndexStage::Sends(texts, to) => {
                words = None;
                printer.note(&sending(texts, to));
                answer = is_wanted(context, texts, to, args.yes);
            }
            IndexStage::Vectors(done, of) => {
                words = None;
                vectors
                    .get_or_insert_with(|| printer.work("vectors"))
                    .reach(done, of);
            }
        }
        matches!(answer, Ok(true))
    });
    drop((words, vectors));
    answer?;
    Ok(Box::new(report?))
}

/// Asks about texts that are expensive to embed.
fn is_wanted(
    context: &Context,
    texts: usize,
    to: &Destination,
    yes: bool,
) -> Result<bool, UserError> {
    let spending = Spending {
        models: std::slice::from_ref(&to.model),
        calls: to.requests(texts),
        cost_usd: to.highest_cost(texts),
        about: String::new(),
        also: String::new(),
    };
    spending.is_wanted(context, yes)
}

/// Returns a sentence with the number of texts, the host that receives them, and the cost.
pub(crate) fn sending(texts: usize, to: &Destination) -> String {
    let cost = match to.highest_cost(texts) {
        Some(cost) if cost > 0.0 => format!(", at most about {}", price(Some(cost))),
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
        page.warnings(&self.warnings);
        page.line(format!(
            "{} indexed, {} with vectors ({} new).",
            plural(self.documents as u64, "record"),
            self.vectors,
            self.made
        ));
        page.dim(format!("embedder: {}", self.embedder));
    }
}
