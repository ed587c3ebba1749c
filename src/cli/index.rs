//! `index`: the search index, brought up to date at once.

use clap::Args;

use crate::engine::{Destination, IndexOptions, IndexReport, IndexStage};

use super::context::Context;
use super::error::CliError;
use super::output::{Page, Report, Style, plural};

/// Bring the search index up to date, with a vector for every record
///
/// Searches do this by themselves, a part each time. After an import, and with another embedder,
/// this does it at once. It can be stopped at any time, and goes on where it stopped.
///
/// With `embedding.provider` set to `openai` or `ollama` the first 4,000 characters of each record
/// that has no vector yet are sent there; how many texts go where is said before.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  memctl index")]
pub(super) struct IndexArgs {
    /// Words only; vectors are left to later searches
    #[arg(long)]
    keyword: bool,
    /// Throw away what there is and make everything again
    #[arg(long)]
    rebuild: bool,
}

pub(super) fn index(context: &Context, args: &IndexArgs) -> Result<Box<dyn Report>, CliError> {
    let options = IndexOptions {
        keyword: args.keyword,
        rebuild: args.rebuild,
    };
    let engine = context.engine(None)?;
    let printer = &context.printer;
    let (mut words, mut vectors) = (None, None);
    let report = engine.index(options, &mut |stage| match stage {
        IndexStage::Words(done, of) => words
            .get_or_insert_with(|| printer.bar("words"))
            .reach(done, of),
        IndexStage::Sends(texts, to) => {
            words = None;
            printer.note(&sending(texts, to));
        }
        IndexStage::Vectors(done, of) => {
            words = None;
            vectors
                .get_or_insert_with(|| printer.bar("vectors"))
                .reach(done, of);
        }
    });
    drop((words, vectors));
    Ok(Box::new(report?))
}

/// How many texts are about to go where.
pub(super) fn sending(texts: usize, to: &Destination) -> String {
    format!(
        "{} to `{}` for their vectors by `{}`, in {}",
        match texts {
            1 => "1 text goes".to_owned(),
            _ => format!("{texts} texts go"),
        },
        to.host,
        to.model,
        plural(texts.div_ceil(to.batch.max(1)) as u64, "request")
    )
}

impl Report for IndexReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        let kilobytes = self.bytes.div_ceil(1_000);
        page.line(format!(
            "{} can be found, {} of them also by meaning ({} made now, {kilobytes} kB).",
            plural(self.documents as u64, "record"),
            self.vectors,
            self.made
        ));
        page.styled(&[(Style::Dim, &format!("embedder: {}", self.embedder))]);
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }
}
