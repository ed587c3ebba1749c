//! `remote embed`: vectors for rows that other programs wrote.

use std::time::Duration;

use clap::Args;

use super::remote::address;
use crate::cli::context::Context;
use crate::cli::interrupt::wait;
use crate::cli::output::{Done, Page, Report, plural};
use crate::cli::progress::Bars;
use crate::remote::{self, VectorRows, VectorsReport};

/// Embed rows that other programs wrote to the shared store without a vector
///
/// Takes the configured embedder, for your rows of `context_eng_memories` and `agent_memory`. Rows with a
/// vector stay as they are. Until then, `memctl sync` and a search by keywords find such rows.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl remote embed\n  \
    memctl remote embed --url postgres://memctl_ann@db.example/memory")]
pub(crate) struct EmbedArgs {
    /// Database URL of a user; default: `MEMCTL_DATABASE_URL` or `DATABASE_URL`
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

pub(crate) fn embed(context: &Context, args: &EmbedArgs) -> Done {
    let address = address(context, args.url.as_deref())?;
    let workspace = context.workspace(None)?;
    let embedder = remote::shared_embedder(&workspace)?;
    let mut bars = Bars::new(&context.printer);
    let on = &mut |stage| bars.on(stage);
    let vectorise = &mut |texts: &[String]| embedder.vectors(texts);
    let rows = VectorRows::OtherPrograms;
    let (name, no_limit) = (embedder.name(), Duration::MAX);
    let filled = remote::fill_vectors(&address, rows, name, no_limit, vectorise, on);
    Ok(Box::new(wait(filled)??))
}

impl Report for VectorsReport {
    fn page(&self, page: &mut Page) {
        let made = plural(self.made, "vector");
        page.line(format!(
            "{made} added by {}; {} left.",
            self.embedder, self.waiting
        ));
    }
}
