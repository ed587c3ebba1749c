//! `memctl list`: the newest records of one kind, or of all.

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::list_all::All;
use super::memories;
use super::wording::marked;
use crate::arguments::{LISTED, TYPED};
use crate::cli::context::Context;
use crate::cli::learning::learn::LEAST_TEXT;
use crate::cli::output::{Align, Page, Report, Style, Table, change, end, plural, when};
use crate::engine::{self, ListReport, Listed};
use crate::error::UserError;
use crate::model::{
    CANDIDATE, Condition, EPISODE, Evidence, Kind, MemoryType, QUARANTINED, Receipts, SkillPath,
    USER_STORE, with_origin,
};
use crate::workspace::{Error, Workspace};

/// Statuses of rules and procedures.
const STATUSES: [&str; 6] = [
    "active", CANDIDATE, "superseded", "retired", QUARANTINED, EPISODE,
];

/// List the newest records
///
/// Without a kind, it lists all kinds; their document has the rules at the top, and the list of each
/// kind in `kinds`. A lesson with the status `episode` is the pattern of a recovery that nobody has
/// worded or approved.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl list\n  memctl list rules\n  memctl list executions --skill hr/resume-screen -n 50\n  memctl list --type performance_memory --where \"metrics.views>=1000\""
)]
pub(in crate::cli) struct ListArgs {
    /// Kind of record. Default: all; rules with `--status`, notes with `--type` or `--where`
    #[arg(value_name = "KIND")]
    kind: Option<Kind>,
    /// List only records of this skill
    #[arg(long, value_name = "SKILL")]
    skill: Option<String>,
    /// List only notes of this type
    #[arg(long = "type", value_name = "TYPE")]
    memory_type: Option<MemoryType>,
    /// List only rules or lessons with this status
    #[arg(long, value_name = "STATUS", conflicts_with_all = ["memory_type", "conditions"],
        value_parser = PossibleValuesParser::new(STATUSES))]
    status: Option<String>,
    /// Match metadata, e.g. `tone=friendly` or `metrics.views>=1000`; all must hold
    #[arg(long = "where", value_name = "CONDITION")]
    conditions: Vec<Condition>,
    /// List only the user store
    #[arg(long)]
    user_store: bool,
    /// Maximum number of records; with `--json` and without a kind, of each kind
    #[arg(short = 'n', long, default_value_t = LISTED.usual, value_parser = clap::value_parser!(u32).range(TYPED), value_name = "N")]
    limit: u32,
}

pub(in crate::cli) fn list(
    context: &Context,
    args: &ListArgs,
) -> Result<Box<dyn Report>, UserError> {
    let skill: Option<SkillPath> = args.skill.as_deref().map(str::parse).transpose()?;
    let workspace = if args.user_store {
        context.of_user_store()?.workspace(None)?
    } else {
        context.workspace_of_user(None)?
    };
    let limit = args.limit as usize;
    let of_procedures = matches!(args.status.as_deref(), Some(QUARANTINED | EPISODE));
    let kind = args.kind.or(of_procedures.then_some(Kind::Procedure));
    if args.status.is_some() && !matches!(kind, None | Some(Kind::Reflexion | Kind::Procedure)) {
        return Err(UserError::usage(
            "`--status` applies to rules and lessons",
            "memctl list lessons --status episode",
        ));
    }
    let asks_memories = args.memory_type.is_some() || !args.conditions.is_empty();
    let report = match kind {
        Some(Kind::Memory) | None if asks_memories => {
            engine::list_memories(&workspace, args.memory_type, &args.conditions, limit)?
        }
        Some(kind) if asks_memories => {
            return Err(UserError::usage(
                format!(
                    "`--type` and `--where` apply to notes, not to {}",
                    kind.nouns()
                ),
                "memctl list notes --type brand_memory",
            ));
        }
        None if args.status.is_none() => {
            let lists = Kind::ALL.map(|kind| of_kind(args, &workspace, kind, skill.as_ref()));
            let lists: Vec<ListReport> = lists.into_iter().collect::<Result<_, _>>()?;
            return Ok(Box::new(All::new(lists, limit, context.environment.now)));
        }
        kind => of_kind(
            args,
            &workspace,
            kind.unwrap_or(Kind::Reflexion),
            skill.as_ref(),
        )?,
    };
    Ok(Box::new(Listing {
        report,
        now: context.environment.now,
    }))
}

/// Lists the records of one kind, with those of the user store.
fn of_kind(
    args: &ListArgs,
    workspace: &Workspace,
    kind: Kind,
    skill: Option<&SkillPath>,
) -> Result<ListReport, Error> {
    let limit = args.limit as usize;
    let of =
        |workspace: &Workspace| engine::list(workspace, kind, skill, args.status.as_deref(), limit);
    let report = with_user_store(of(workspace)?, workspace, &of, limit)?;
    Ok(if args.user_store {
        of_user_store(report)
    } else {
        report
    })
}

/// Adds the rules or procedures of the user store to a list, newest first.
fn with_user_store(
    mut report: ListReport,
    workspace: &Workspace,
    of: &dyn Fn(&Workspace) -> Result<ListReport, Error>,
    limit: usize,
) -> Result<ListReport, Error> {
    let is_held = matches!(report.kind, Kind::Reflexion | Kind::Procedure);
    if let Some(store) = workspace.store.user_store().filter(|_| is_held) {
        let user = of(&Workspace {
            store: store.clone(),
            ..workspace.clone()
        })?;
        let user = of_user_store(user);
        report.total += user.total;
        report.records.extend(user.records);
        report.warnings.extend(user.warnings);
        // The sort is stable: of two records of one time, that of the project comes first.
        report.records.sort_by(|a, b| b.created.cmp(&a.created));
        report.records.truncate(limit);
    }
    Ok(report)
}

/// Names the records of a list as those of the user store.
fn of_user_store(mut report: ListReport) -> ListReport {
    for record in &mut report.records {
        record.id = with_origin(&record.id, USER_STORE);
    }
    report
}

/// List of records, and the time that its ages are relative to.
struct Listing {
    report: ListReport,
    now: chrono::DateTime<chrono::Utc>,
}

impl Listing {
    fn table(&self) -> Table {
        let columns = [
            ("ID", Align::Left),
            ("Skill", Align::Left),
            ("Age", Align::Right),
            ("Text", Align::Prose),
        ];
        let mut table = Table::new(&columns, &[3, 1]);
        for record in &self.report.records {
            let pinned = if record.pinned { "pinned: " } else { "" };
            table.row([
                record.id.clone(),
                record.skill.clone().unwrap_or_default(),
                when(&record.created, self.now),
                marked(
                    record.status.as_deref(),
                    record.source.as_deref(),
                    &format!(
                        "{pinned}{}{}{}",
                        record.summary,
                        heard(record),
                        receipts(record)
                    ),
                ),
            ]);
        }
        table
    }

    /// Procedures on two lines each, since a lesson and a call need the whole width: the lesson or the
    /// error, then the change that worked, with its approval and its use.
    fn procedures(&self, page: &mut Page) {
        let ids = self.report.records.iter().map(|record| record.id.len());
        let indent = ids.max().unwrap_or_default() + 2;
        let room = page.width().saturating_sub(indent).max(LEAST_TEXT);
        for record in &self.report.records {
            page.styled(&[
                (Style::Strong, &format!("{:<indent$}", record.id)),
                (Style::Plain, &end(&record.summary, room)),
            ]);
            let about = about(record);
            let text = match &record.lesson {
                Some(lesson) if !lesson.working_code.is_empty() => {
                    let room = room.saturating_sub(about.chars().count() + 2);
                    change(
                        &lesson.failing_code,
                        &lesson.working_code,
                        room.max(LEAST_TEXT),
                    ) + "  "
                }
                _ => String::new(),
            };
            page.styled(&[
                (Style::Plain, &" ".repeat(indent)),
                (Style::Plain, &text),
                (Style::Dim, &about),
            ]);
        }
    }
}

/// Messages that a rule was heard in, after its text; empty for other records.
fn heard(record: &Listed) -> String {
    let Some(said) = &record.said else {
        return String::new();
    };
    let times = match (said.times, said.sessions) {
        (0 | 1, _) => String::new(),
        (times, sessions) => format!(", {times} times in {}", plural(sessions as u64, "session")),
    };
    format!(" (\"{}\" in session {}{times})", said.quote, said.session)
}

/// Receipts of a rule, behind its text; empty if it was never told.
fn receipts(record: &Listed) -> String {
    let words = record.receipts.map(Receipts::words).unwrap_or_default();
    if words.is_empty() {
        words
    } else {
        format!(" [{words}]")
    }
}

/// Approval and status of a procedure, and its use if it was told.
fn about(record: &Listed) -> String {
    let mut words: Vec<String> = Vec::new();
    words.extend(record.trust.map(|trust| trust.name().to_owned()));
    let status = record.status.as_deref();
    words.extend(
        status
            .filter(|status| *status != "active")
            .map(str::to_owned),
    );
    if let Some(lesson) = &record.lesson
        && lesson.evidence != Evidence::default()
    {
        let Evidence {
            shown,
            helped,
            harmed,
        } = lesson.evidence;
        let followed = lesson.followed;
        words.push(format!(
            "told {shown}, followed {followed}, helped {helped}, harmed {harmed}"
        ));
    }
    let retrieved = record.retrieved.as_ref();
    words.extend(retrieved.map(|retrieved| format!("retrieved {}", retrieved.times)));
    words.join(", ")
}

impl Report for Listing {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&self.report)
    }

    fn page(&self, page: &mut Page) {
        if self.report.records.is_empty() {
            page.line(format!("No {} yet.", self.report.kind.nouns()));
            return;
        }
        match self.report.kind {
            Kind::Memory => page.table(&memories::table(&self.report.records, self.now)),
            Kind::Procedure => self.procedures(page),
            _ => page.table(&self.table()),
        }
        let shown = self.report.records.len() as u64;
        if self.report.total > shown {
            page.styled(&[(
                Style::Dim,
                &format!("the newest {shown} of {}", self.report.total),
            )]);
        }
    }

    fn warnings(&self) -> &[String] {
        &self.report.warnings
    }
}
