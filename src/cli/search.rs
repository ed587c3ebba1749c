//! `memory search`: records by their words and their meaning.

use std::time::Instant;

use chrono::{DateTime, NaiveDate};
use clap::{Args, ValueEnum};

use crate::engine::{Elsewhere, FindOptions, FindReport, Found, Ranks, Rewrite, RewriteBy};
use crate::model::{Condition, Kind, Trust};
use crate::remote::{self, RemoteQuestion};
use crate::search::{Filter, Fusion, Rrf};

use super::context::{Context, follow, wait};
use super::error::CliError;
use super::memories::TypeName;
use super::output::{Align, Page, Report, Style, Table};
use super::records::{KindName, marked};
use super::remote::address;

/// Find records by their words and their meaning
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl memory search \"compliance check\" -n 5\n  memctl memory search \"disk full\" --kind fix --explain\n  memctl memory search \"calm voice\" --type brand_memory --where tone=friendly"
)]
pub(super) struct SearchArgs {
    /// The words
    query: String,
    /// How many results at most
    #[arg(short = 'n', long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..), value_name = "N")]
    limit: u32,
    /// Records of this kind only
    #[arg(long, value_name = "KIND")]
    kind: Option<KindName>,
    /// Records of this skill only
    #[arg(long, value_name = "SKILL")]
    skill: Option<String>,
    /// Memories of this type only
    #[arg(long = "type", value_name = "TYPE")]
    memory_type: Option<TypeName>,
    /// Memories whose metadata fulfils this only, e.g. `tone=friendly` or `metrics.views>=1000`; all of
    /// several
    #[arg(long = "where", value_name = "CONDITION")]
    conditions: Vec<Condition>,
    /// Records that may be believed at least so far
    #[arg(long, value_name = "TRUST")]
    trust: Option<TrustName>,
    /// Records made at this time or later, as `2026-01-31` or RFC 3339
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<i64>,
    /// Records made before this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<i64>,
    /// Look for it in other words; the setting `search.rewrite` says it for every search
    #[arg(long, value_name = "HOW")]
    rewrite: Option<RewriteName>,
    /// By words alone
    #[arg(long, conflicts_with = "fusion")]
    keyword: bool,
    #[command(flatten)]
    fusion: FusionArgs,
    /// Say how each result came about
    #[arg(long)]
    explain: bool,
    /// Ask the shared store itself, for procedures and memories
    ///
    /// The database is the one in `MEMCTL_DATABASE_URL` or `DATABASE_URL`. What `memctl sync` has pulled is
    /// found without this.
    #[arg(long, conflicts_with_all = ["conditions", "trust", "since", "until", "rewrite", "keyword", "fusion", "rrf_k", "explain", "skill"])]
    remote: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "lower")]
enum RewriteName {
    /// As it was typed
    Off,
    /// Without the opening of a question, and with what mistyped words may have meant
    Offline,
    /// By the model that is configured
    Model,
}

impl RewriteName {
    const fn by(self) -> RewriteBy {
        match self {
            Self::Off => RewriteBy::Off,
            Self::Offline => RewriteBy::Offline,
            Self::Model => RewriteBy::Model,
        }
    }
}

/// How the two rankings become one.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct FusionArgs {
    /// How the rankings by words and by meaning become one
    #[arg(long, value_name = "HOW", default_value = "default")]
    fusion: FusionName,
    /// With `--fusion rrf`: how little the first ranks stand out
    #[arg(long, value_name = "K", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    rrf_k: u32,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "lower")]
enum FusionName {
    /// By how much of the query each half of a record covers
    Default,
    /// Reciprocal rank fusion with equal weights
    Rrf,
    /// Words alone
    Keyword,
    /// Meaning alone
    Semantic,
}

impl FusionArgs {
    pub(super) fn fusion(self) -> Fusion {
        match self.fusion {
            FusionName::Default => Fusion::Coverage,
            FusionName::Rrf => Fusion::Rrf(Rrf {
                k: f64::from(self.rrf_k),
                ..Rrf::default()
            }),
            FusionName::Keyword => Fusion::Keyword,
            FusionName::Semantic => Fusion::Semantic,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "lower")]
enum TrustName {
    /// Taken from what tools printed
    Observed,
    /// That, and approved by a person
    Approved,
    /// Said by a person
    User,
}

impl TrustName {
    const fn trust(self) -> Trust {
        match self {
            Self::Observed => Trust::Observed,
            Self::Approved => Trust::Approved,
            Self::User => Trust::User,
        }
    }
}

/// A time in seconds since 1970; a date is its first moment, UTC.
fn time(text: &str) -> Result<i64, String> {
    let date = text.parse::<NaiveDate>().ok();
    let midnight = date.and_then(|date| date.and_hms_opt(0, 0, 0));
    let moment = midnight.map(|moment| moment.and_utc().timestamp());
    let exact = DateTime::parse_from_rfc3339(text).map(|time| time.timestamp());
    moment
        .or(exact.ok())
        .ok_or_else(|| "a time is written as 2026-01-31 or 2026-01-31T12:00:00Z".to_owned())
}

pub(super) fn search(context: &Context, args: &SearchArgs) -> Result<Box<dyn Report>, CliError> {
    if args.remote {
        return search_remotely(context, args);
    }
    let mut filter = Filter {
        kind: args.kind.map(KindName::kind),
        skill: args.skill.as_deref().map(str::parse).transpose()?,
        memory_type: args.memory_type.map(TypeName::memory_type),
        trust: args.trust.map(TrustName::trust),
        since: args.since,
        until: args.until,
        ..Filter::default()
    };
    let engine = context.engine(None)?;
    if !args.conditions.is_empty() {
        if let Some(kind) = filter.kind.filter(|kind| *kind != Kind::Memory) {
            return Err(CliError::usage(
                format!("`--where` is for memories, and a {kind} has no metadata"),
                "leave `--kind` out",
            ));
        }
        filter.kind = Some(Kind::Memory);
        filter.keys = Some(engine.memories_where(&args.conditions)?);
    }
    let by = args
        .rewrite
        .map_or(engine.settings.rewrite, RewriteName::by);
    let (rewrite, warning) = match by {
        RewriteBy::Off => (Rewrite::Not, None),
        RewriteBy::Offline => (Rewrite::Offline, None),
        RewriteBy::Model => {
            let spinner = context.printer.spinner("rewriting");
            wait(engine.rewrite(&args.query, &mut follow(&spinner)))??
        }
    };
    let options = FindOptions {
        query: args.query.clone(),
        limit: args.limit as usize,
        filter,
        fusion: if args.keyword {
            Fusion::Keyword
        } else {
            args.fusion.fusion()
        },
        rewrite,
        explain: args.explain,
    };
    let bar = context.printer.bar("indexing");
    let report = engine.find(&options, &mut |done, of| bar.reach(done, of));
    drop(bar);
    let mut report = report?;
    report.warnings.extend(warning);
    Ok(Box::new(report))
}

/// Asks the shared store instead of the files.
fn search_remotely(context: &Context, args: &SearchArgs) -> Result<Box<dyn Report>, CliError> {
    let start = Instant::now();
    let kind = args.kind.map(KindName::kind);
    if let Some(kind) = kind.filter(|kind| !matches!(kind, Kind::Procedure | Kind::Memory)) {
        return Err(CliError::usage(
            format!("the shared store is searched for procedures and memories, not for a {kind}"),
            "memctl sync, then the same without `--remote`",
        ));
    }
    let address = address(context, None)?;
    let engine = context.engine(None)?;
    let embedded = engine.embed(&[&args.query])?;
    let vector = embedded.vectors.into_iter().next().unwrap_or_default();
    let question = RemoteQuestion {
        text: &args.query,
        vector: &vector,
        embedder: &embedded.model,
        kind,
        memory_type: args.memory_type.map(TypeName::memory_type),
        limit: args.limit,
    };
    let spinner = context.printer.spinner("asking the shared store");
    let hits = wait(remote::search(&address, &question))??;
    drop(spinner);
    let found = hits.into_iter().map(|hit| Elsewhere {
        kind: hit.kind,
        id: hit.id,
        origin: hit.origin,
        entry: hit.entry,
        content: hit.content,
        score: hit.score,
        ranks: Ranks {
            keyword: hit.keyword,
            semantic: hit.semantic,
        },
    });
    Ok(Box::new(engine.found_elsewhere(
        &args.query,
        found.collect(),
        start,
    )))
}

impl Report for FindReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        if let Some(rewritten) = &self.rewritten {
            page.styled(&[(Style::Dim, &format!("looked for: {rewritten}"))]);
        }
        if self.results.is_empty() {
            page.line(format!(
                "Nothing that is remembered fits \"{}\".",
                self.query
            ));
        } else {
            let columns = [
                ("ID", Align::Left),
                ("Kind", Align::Left),
                ("Skill", Align::Left),
                ("Score", Align::Right),
                ("Text", Align::Prose),
            ];
            let mut table = Table::new(&columns, &[4, 2]);
            for found in &self.results {
                table.row([
                    found.name(),
                    found.kind.name().to_owned(),
                    found.skill.clone().unwrap_or_default(),
                    format!("{:.2}", found.score),
                    marked(
                        found.status.as_deref(),
                        found.source.as_deref(),
                        &found.snippet,
                    ),
                ]);
            }
            page.table(&table);
        }
        if let Some(asked) = &self.asked {
            for found in &self.results {
                page.line(reasons(found));
            }
            let terms = asked.terms.iter();
            let terms: Vec<String> = terms
                .map(|term| format!("{} ({})", term.word, term.documents))
                .collect();
            let embedder = asked.embedder.as_deref().unwrap_or("none");
            page.styled(&[(
                Style::Dim,
                &format!(
                    "words and how many of {} records hold them: {}\nfusion: {}, embedder: {embedder}, {} with a vector",
                    asked.documents,
                    terms.join(", "),
                    asked.fusion,
                    asked.vectors
                ),
            )]);
        }
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// Why a record was found, on one line.
fn reasons(found: &Found) -> String {
    let Some(explain) = &found.explain else {
        return found.id.clone();
    };
    let rank =
        |rank: Option<usize>| rank.map_or("no rank".to_owned(), |rank| format!("rank {rank}"));
    let words = format!(
        "words {:.2} ({}): {}",
        explain.keyword,
        rank(found.ranks.keyword),
        explain.matched.join(" ")
    );
    let meaning = explain.semantic.map_or("no vector".to_owned(), |cosine| {
        format!("meaning {cosine:.2} ({})", rank(found.ranks.semantic))
    });
    format!("{}  {words}; {meaning}", found.id)
}
