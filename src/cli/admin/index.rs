//! `index`: a full update of the search index.

use clap::Args;

use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report, plural};
use crate::cli::price::{Spending, price};
use crate::model::error::UserError;
use crate::upkeep::{self, IndexOptions, IndexReport, IndexStage};
use memctl_search::embedder::Destination;

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
                .get_or_insert_with(|| printer.bar("words"))
                .reach(done, of),
            IndexStage::Sends(texts, to) => {
                words = None;
                printer.note(&sending(texts, to));
                answer = is_wanted(context, texts, to, args.yes);
            }
            IndexStage::Vectors(done, of) => {
                words = None;
                vectors
                    .get_or_insert_with(|| printer.bar("vectors"))
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
        let kilobytes = self.bytes.div_ceil(1_000);
        page.line(format!(
            "{} indexed, {} with vectors ({} new, {kilobytes} kB).",
            plural(self.documents as u64, "record"),
            self.vectors,
            self.made
        ));
        page.dim(format!("embedder: {}", self.embedder));
    }
}
