//! `eval corrections`: handling of corrections, measured on labelled data.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value};

use super::eval_lines::{lines, text};
use crate::cli::context::Context;
use crate::cli::output::{Align, Page, Report, Table};
use crate::error::UserError;
use crate::insight::{CorrectionsReport, JudgedCorrection, JudgedPair, evaluate_corrections};

/// Measure the detection of duplicates, contradictions and unusable corrections
///
/// Both files hold one JSON object per line: corrections `{id, text, generalisable?, key_terms?}`,
/// pairs `{a, b, label}` with the label `duplicate`, `contradiction` or any other. Only these pairs
/// count. No model is called, and nothing is stored.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl eval corrections --corrections corrections.jsonl --pairs pairs.jsonl\n  \
        memctl eval corrections --corrections corrections.jsonl --pairs pairs.jsonl --json"
)]
pub(in crate::cli) struct CorrectionsArgs {
    /// JSON Lines file with the corrections
    #[arg(long, value_name = "FILE")]
    corrections: PathBuf,
    /// JSON Lines file with the labelled pairs
    #[arg(long, value_name = "FILE")]
    pairs: PathBuf,
}

pub(in crate::cli) fn corrections(
    context: &Context,
    args: &CorrectionsArgs,
) -> Result<Box<dyn Report>, UserError> {
    let said = lines(&context.environment.absolute(&args.corrections), |object| {
        Ok(JudgedCorrection {
            id: text(object, "id")?,
            text: text(object, "text")?,
            generalisable: flag(object, "generalisable")?.unwrap_or(true),
            key_terms: terms(object)?,
        })
    })?;
    let pairs = lines(&context.environment.absolute(&args.pairs), |object| {
        Ok(JudgedPair {
            a: text(object, "a")?,
            b: text(object, "b")?,
            label: text(object, "label")?,
        })
    })?;
    let bar = context.printer.bar("corrections");
    let report = evaluate_corrections(&said, &pairs, &mut |done, of| bar.reach(done, of));
    drop(bar);
    Ok(Box::new(report?))
}

fn flag(object: &Map<String, Value>, field: &str) -> Result<Option<bool>, String> {
    match object.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(format!("`{field}` is neither true nor false")),
    }
}

fn terms(object: &Map<String, Value>) -> Result<Vec<String>, String> {
    let wrong = || "`key_terms` is not an array of strings".to_owned();
    match object.get("key_terms") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(terms)) => terms
            .iter()
            .map(|term| term.as_str().map(str::to_owned).ok_or_else(wrong))
            .collect(),
        Some(_) => Err(wrong()),
    }
}

/// Share with three decimals; a dash without anything to measure.
fn share(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{share:.3}"))
}

impl Report for CorrectionsReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        page.line(format!(
            "{} corrections, {} judged pairs",
            self.corrections, self.pairs
        ));
        let mut table = Table::new(
            &[
                ("What", Align::Left),
                ("Found", Align::Right),
                ("Right", Align::Right),
                ("Expected", Align::Right),
                ("Precision", Align::Right),
                ("Recall", Align::Right),
            ],
            &[0],
        );
        for (name, measured) in [
            ("duplicates", &self.duplicates),
            ("contradictions", &self.contradictions),
            ("no lasting rule", &self.rejected),
        ] {
            table.row([
                name.to_owned(),
                measured.found.to_string(),
                measured.right.to_string(),
                measured.expected.to_string(),
                share(measured.precision),
                share(measured.recall),
            ]);
        }
        page.table(&table);
        if let Some(kept) = self.key_terms_kept {
            page.line(format!(
                "{:.1}% of the rules keep all their key terms",
                kept * 100.0
            ));
        }
    }
}
