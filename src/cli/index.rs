//! `index`: the search index, brought up to date at once.

use clap::Args;

use crate::engine::{IndexOptions, IndexReport, IndexStage};

use super::context::Context;
use super::error::CliError;
use super::output::{Page, Report, Style, plural};

/// Bring the search index up to date, with a vector for every record
///
/// Searches do this by themselves, a part each time. After an import this does it at once. It can
/// be stopped at any time, and goes on where it stopped.
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
    let mut shown = (IndexStage::Words, context.printer.bar("words"));
    let report = engine.index(options, &mut |stage, done, of| {
        if stage != shown.0 {
            shown = (stage, context.printer.bar("vectors"));
        }
        shown.1.reach(done, of);
    });
    drop(shown);
    Ok(Box::new(report?))
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
