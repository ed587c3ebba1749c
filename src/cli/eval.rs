//! `eval …`: how well this program does what it promises, measured on data of the user's own.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, Value};

use crate::engine::{EvaluateReport, Passage, Question, Rewrite, evaluate};
use crate::platform::named;
use crate::search::Fusion;

use super::context::Context;
use super::error::CliError;
use super::eval_corrections::{CorrectionsArgs, corrections};
use super::index::sending;
use super::output::{Align, Page, Report, Style, Table, plural};
use super::search::FusionArgs;

/// Measure how well this program does
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Example:\n  memctl eval retrieval --docs docs.jsonl --queries queries.jsonl"
)]
pub(super) enum EvalCommand {
    Retrieval(RetrievalArgs),
    Corrections(CorrectionsArgs),
}

pub(super) fn eval(context: &Context, command: EvalCommand) -> Result<Box<dyn Report>, CliError> {
    match command {
        EvalCommand::Retrieval(args) => retrieval(context, &args),
        EvalCommand::Corrections(args) => corrections(context, &args),
    }
}

/// Measure the search on documents and queries of your own
///
/// Both files hold one JSON object a line: documents `{id, text, group?}`, queries
/// `{qid, text, relevant: [id…], grades?: {id: number}, group?}`. With groups a query searches its
/// group only. Nothing is remembered.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  memctl eval retrieval --docs docs.jsonl --queries queries.jsonl --fusion rrf"
)]
pub(super) struct RetrievalArgs {
    /// What is searched
    #[arg(long, value_name = "FILE")]
    docs: PathBuf,
    /// What is asked
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,
    /// The field of a document that holds its text
    #[arg(long, value_name = "FIELD", default_value = "text")]
    doc_field: String,
    /// The field of a query that holds its text
    #[arg(long, value_name = "FIELD", default_value = "text")]
    query_field: String,
    #[command(flatten)]
    fusion: FusionArgs,
    /// Ask the queries in other words, as `memory search --rewrite` does without a model
    #[arg(long, value_name = "HOW", default_value = "off")]
    rewrite: RewriteName,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "lower")]
enum RewriteName {
    /// As they are
    Off,
    /// Without the opening of a question, and with what mistyped words may have meant
    Offline,
}

impl RewriteName {
    const fn rewrite(self) -> Rewrite {
        match self {
            Self::Off => Rewrite::Not,
            Self::Offline => Rewrite::Offline,
        }
    }
}

fn retrieval(context: &Context, args: &RetrievalArgs) -> Result<Box<dyn Report>, CliError> {
    let docs = context.environment.absolute(&args.docs);
    let queries = context.environment.absolute(&args.queries);
    let passages = lines(&docs, |object| {
        Ok(Passage {
            id: text(object, "id")?,
            text: text(object, &args.doc_field)?,
            group: group(object)?,
        })
    })?;
    let questions = lines(&queries, |object| {
        Ok(Question {
            text: text(object, &args.query_field)?,
            relevant: relevant(object)?,
            group: group(object)?,
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
    let bar = context.printer.bar("vectors");
    let mut progress = |done, of| bar.reach(done, of);
    let report = evaluate(
        dataset(&docs),
        &passages,
        &questions,
        fusion,
        &args.rewrite.rewrite(),
        &embedder,
        &mut progress,
    );
    drop(bar);
    Ok(Box::new(report?))
}

/// What the documents are called: their directory, which is what sets of data are told apart by.
fn dataset(docs: &Path) -> String {
    let directory = docs.parent().and_then(Path::file_name);
    let name = directory.or(docs.file_stem()).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The objects of a file, one a line; empty lines are skipped.
pub(super) fn lines<T>(
    path: &Path,
    read: impl Fn(&Map<String, Value>) -> Result<T, String>,
) -> Result<Vec<T>, CliError> {
    let unreadable = |source| crate::engine::Error::Unreadable {
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
            .map_err(|_| "it is no JSON object".to_owned())
            .and_then(|object| read(&object));
        out.push(read.map_err(|why| {
            CliError::usage(
                format!(
                    "`{}` cannot be used at line {number}: {why}",
                    path.display()
                ),
                "memctl eval retrieval --help",
            )
        })?);
    }
    Ok(out)
}

/// A field that holds text or a number.
pub(super) fn text(object: &Map<String, Value>, field: &str) -> Result<String, String> {
    match object.get(field) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Number(number)) => Ok(number.to_string()),
        Some(_) => Err(format!("its `{field}` is no text")),
        None => Err(format!("it has no `{field}`")),
    }
}

fn group(object: &Map<String, Value>) -> Result<Option<String>, String> {
    match object.get("group") {
        None | Some(Value::Null) => Ok(None),
        Some(_) => text(object, "group").map(Some),
    }
}

/// What answers a query, and how well where `grades` says so.
fn relevant(object: &Map<String, Value>) -> Result<HashMap<String, f64>, String> {
    let Some(Value::Array(ids)) = object.get("relevant") else {
        return Err("it has no list `relevant`".to_owned());
    };
    let grades = match object.get("grades") {
        None | Some(Value::Null) => None,
        Some(Value::Object(grades)) => Some(grades),
        Some(_) => return Err("its `grades` is no object of numbers".to_owned()),
    };
    let worth = |id: &Value| {
        let id = match id {
            Value::String(id) => id.clone(),
            Value::Number(id) => id.to_string(),
            _ => return Err("its `relevant` holds something that is no id".to_owned()),
        };
        let grade = grades.and_then(|grades| grades.get(&id));
        match grade.map_or(Some(1.0), Value::as_f64) {
            Some(grade) if grade > 0.0 => Ok((id, grade)),
            _ => Err(format!("the grade of `{id}` is no number above 0")),
        }
    };
    ids.iter().map(worth).collect()
}

impl Report for EvaluateReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
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
        let mut table = Table::new(&[("Measure", Align::Left), ("Value", Align::Right)], &[0]);
        for (name, value) in Self::named(&self.metrics) {
            table.row([name.to_owned(), format!("{value:.3}")]);
        }
        for (name, value) in [("p50", self.latency_ms.p50), ("p95", self.latency_ms.p95)] {
            table.row([name.to_owned(), format!("{value:.1} ms")]);
        }
        page.table(&table);
        let embedder = self.embedder.as_deref().unwrap_or("none");
        page.styled(&[(
            Style::Dim,
            &format!("fusion: {}, embedder: {embedder}", self.fusion.name()),
        )]);
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }
}
