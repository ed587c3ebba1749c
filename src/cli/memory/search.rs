//! `search` and `index`: keyword and semantic search of records, and a full update of its index.

use chrono::DateTime;
use clap::Args;
use memctl_search::Fusion;

use crate::cli::ask::Spending;
use crate::cli::context::Context;
use crate::cli::memory::list::{marked, of_rule};
use crate::cli::output::printer::Work;
use crate::cli::output::{Done, Page, Report, Table, ms, plural};
use crate::model::{Kind, MemoryType, Trust};
use crate::notes::indexing::Filter;
use crate::notes::{self, Explanation, FindOptions, FindReport, Found};
use crate::serve::arguments::{RESULTS, TYPED};
use crate::upkeep::{self, IndexOptions, IndexReport, IndexStage};

/// Search records by keywords and meaning
///
/// The embedder is part of the program: nothing is sent, unless the settings name another one. Weak
/// matches fill the page after a line that says so; `--min-score` leaves them out. Expired records are
/// never shown.
///
/// ```console
/// $ memctl search "compliance check" -n 5
/// $ memctl search "disk full" --kind lesson --explain
/// $ memctl search "calm voice" --type brand_memory
/// ```
#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Search query
    query: String,
    /// Maximum number of results
    #[arg(short = 'n', long, default_value_t = RESULTS.usual, value_parser = clap::value_parser!(u32).range(TYPED), value_name = "N")]
    limit: u32,
    /// Search only records of this kind
    #[arg(long, value_name = "KIND")]
    kind: Option<Kind>,
    /// Search only records of this skill
    #[arg(long, value_name = "SKILL")]
    skill: Option<String>,
    /// Search only notes of this type
    #[arg(long = "type", value_name = "TYPE")]
    memory_type: Option<MemoryType>,
    /// Search only records with at least this trust
    #[arg(long, value_name = "TRUST")]
    trust: Option<Trust>,
    /// Search only records created at this time or later, as `2026-01-31` or RFC 3339
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<i64>,
    /// Search only records created before this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<i64>,
    /// Search by keywords only
    #[arg(long)]
    keyword: bool,
    /// Show only results with at least this score, for scripts
    #[arg(long, value_name = "SCORE")]
    min_score: Option<f64>,
    /// Show how each score was computed
    #[arg(long)]
    explain: bool,
}

/// Parses a time into seconds since 1970; a date is midnight UTC.
fn time(text: &str) -> Result<i64, String> {
    let midnight = format!("{text}T00:00:00Z");
    let time = [text, &midnight]
        .into_iter()
        .find_map(|text| DateTime::parse_from_rfc3339(text).ok());
    let time = time.map(|time| time.timestamp());
    time.ok_or_else(|| "expected a time such as 2026-01-31 or 2026-01-31T12:00:00Z".to_owned())
}

pub(crate) fn search(context: &Context, args: &SearchArgs) -> Done<FindReport> {
    let filter = Filter {
        kind: args.kind,
        skill: args.skill.as_deref().map(str::parse).transpose()?,
        memory_type: args.memory_type,
        trust: args.trust,
        since: args.since,
        until: args.until,
    };
    let workspace = context.workspace_of_user(None)?;
    let options = FindOptions {
        filter,
        fusion: if args.keyword {
            Fusion::Keyword
        } else {
            Fusion::default()
        },
        explain: args.explain,
        min_score: args.min_score,
        ..FindOptions::new(args.query.clone(), args.limit as usize)
    };
    Ok(context.printer.counting("indexing", |progress| {
        notes::find(&workspace, &options, progress)
    })?)
}

impl Report for FindReport {
    fn page(&self, page: &mut Page) {
        if self.results.is_empty() {
            page.line(format!("No matches for \"{}\".", self.query));
        }
        let strong = self.results.partition_point(|found| !found.weak);
        let (strong, weak) = self.results.split_at(strong);
        if !strong.is_empty() {
            page.table(&table(strong));
        }
        if !weak.is_empty() {
            page.dim("weak matches: no word of the query, and a distant meaning");
            page.table(&table(weak));
        }
        // The only step of a lesson is its text.
        let is_text = |found: &&Found| match &found.steps[..] {
            [step] => step.contains(found.snippet.trim_matches('…').trim()),
            steps => steps.is_empty(),
        };
        for found in self.results.iter().filter(|found| !is_text(found)) {
            page.dim(format!("steps of {}", found.name()));
            for (number, step) in (1..).zip(&found.steps) {
                let step: Vec<&str> = step.split_whitespace().collect();
                page.line(format!("  {number}. {}", step.join(" ")));
            }
        }
        let explained = self.results.iter();
        let explained = explained.filter_map(|found| Some((found, found.explain.as_ref()?)));
        explained.for_each(|(found, explain)| page.line(reasons(found, explain)));
        if let Some(asked) = &self.asked {
            let terms = asked.terms.iter();
            let terms = terms.map(|term| format!("{} ({})", term.word, term.documents));
            let terms = terms.collect::<Vec<_>>().join(", ");
            page.dim(format!(
                "records that contain each word, of {}: {terms}",
                asked.documents
            ));
            let (fusion, vectors) = (&asked.fusion, asked.vectors);
            let embedder = asked.embedder.as_deref().unwrap_or("none");
            page.dim(format!(
                "fusion: {fusion}, embedder: {embedder}, {vectors} with a vector"
            ));
            page.some("compared", asked.embedded.as_ref());
        }
    }
}

/// Returns the scores of a result on one line.
fn reasons(found: &Found, explain: &Explanation) -> String {
    let rank =
        |rank: Option<usize>| rank.map_or("no rank".to_owned(), |rank| format!("rank {rank}"));
    let words = match explain.matched.join(" ") {
        none if none.is_empty() => "no query word".to_owned(),
        matched => {
            let by_words = rank(found.ranks.keyword);
            format!("words {:.2} ({by_words}): {matched}", explain.keyword)
        }
    };
    let meaning = explain.semantic.map_or("no vector".to_owned(), |cosine| {
        format!("meaning {cosine:.2} ({})", rank(found.ranks.semantic))
    });
    let later = explain.later_than.as_ref();
    let later = later.map_or(String::new(), |earlier| format!("; later than {earlier}"));
    format!("{}  {words}; {meaning}{later}", found.id)
}

/// Returns results with their scores as a table.
fn table(results: &[Found]) -> Table {
    let mut table = Table::new("ID|Kind|Skill|>Score|~Text");
    for found in results {
        table.row([
            found.name(),
            found.kind.noun().to_owned(),
            found.skill.clone().unwrap_or_default(),
            format!("{:.2}", found.score),
            marked(
                found.status.as_deref(),
                found.source.as_deref(),
                of_rule(found.kind, Some(found.trust)),
                &found.snippet,
            ),
        ]);
    }
    table
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
                let spending = Spending {
                    models: std::slice::from_ref(&to.model),
                    calls: to.requests(texts),
                    cost_usd: to.highest_cost(texts),
                    about: format!(
                        ", sending {} to `{}`",
                        plural(texts as u64, "text"),
                        to.host
                    ),
                    ..Spending::default()
                };
                answer = spending.announce(context, args.yes);
                return matches!(answer, Ok(true));
            }
        };
        let line = work.get_or_insert_with(|| printer.work(name));
        line.say(&format!("{name} {done}/{of}"));
        true
    });
    drop(work);
    answer?;
    Ok(report?)
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
