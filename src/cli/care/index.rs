//! `index`: a full update of the search index.

use clap::Args;
use memctl_search::embedder::Destination;

use crate::cli::ask::{Spending, price};
use crate::cli::context::Context;
use crate::cli::output::printer::Work;
use crate::cli::output::{Done, Page, Report, ms, plural};
use crate::upkeep::{self, IndexOptions, IndexReport, IndexStage};

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
fn sending(texts: usize, to: &Destination) -> String {
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
