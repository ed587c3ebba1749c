//! `list` and `show`: the newest records of one kind or of all, and one record as stored.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::DateTime;
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::learn::sessions::LEAST_TEXT;
use crate::cli::memory::marked;
use crate::cli::memory::notes::table as notes_table;
use crate::cli::output::{Done, Page, Report, Style, Table, change, clean, end, plural};
use crate::model::error::UserError;
use crate::model::{
    CANDIDATE, Condition, EPISODE, Evidence, Kind, MemoryType, QUARANTINED, Receipts, SkillPath,
    USER_STORE, mark, with_origin,
};
use crate::notes;
use crate::notes::{ListReport, Listed, ShowReport};
use crate::serve::arguments::{LISTED, TYPED};
use crate::store::workspace::{Error, Workspace};

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
pub(crate) struct ListArgs {
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

impl ListArgs {
    /// The usual list of one kind.
    pub(crate) fn of(kind: Kind) -> Self {
        Self {
            kind: Some(kind),
            skill: None,
            memory_type: None,
            status: None,
            conditions: Vec::new(),
            user_store: false,
            limit: LISTED.usual,
        }
    }
}

pub(crate) fn list(context: &Context, args: &ListArgs) -> Done {
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
            notes::list_memories(&workspace, args.memory_type, &args.conditions, limit)?
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
            let of = |kind| of_kind(args, &workspace, kind, skill.as_ref());
            let rules = of(Kind::Reflexion)?;
            let mut kinds = BTreeMap::from([(Kind::Reflexion.name(), rules.clone())]);
            for kind in Kind::ALL
                .into_iter()
                .filter(|kind| *kind != Kind::Reflexion)
            {
                kinds.insert(kind.name(), of(kind)?);
            }
            return Ok(Box::new(AllKinds {
                rules,
                kinds,
                limit,
            }));
        }
        kind => of_kind(
            args,
            &workspace,
            kind.unwrap_or(Kind::Reflexion),
            skill.as_ref(),
        )?,
    };
    Ok(Box::new(report))
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
        |workspace: &Workspace| notes::list(workspace, kind, skill, args.status.as_deref(), limit);
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

impl ListReport {
    fn table(&self, page: &mut Page) {
        let mut table = Table::new("ID|Skill|>Age|~Text", &[3, 1]);
        for record in &self.records {
            let text = format!("{}{}{}", receipts(record), text(record), heard(record));
            table.row([
                record.id.clone(),
                record.skill.clone().unwrap_or_default(),
                page.age(&record.created),
                marked(record.status.as_deref(), record.source.as_deref(), &text),
            ]);
        }
        page.table(&table);
    }

    /// Procedures on two lines each, since a lesson and a call need the whole width: the lesson or the
    /// error, then the change that worked, with its approval and its use.
    fn procedures(&self, page: &mut Page) {
        let ids = self.records.iter().map(|record| record.id.len());
        let indent = ids.max().unwrap_or_default() + 2;
        let room = page.width().saturating_sub(indent).max(LEAST_TEXT);
        for record in &self.records {
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
    // A person who typed the rule themselves was in no session.
    let place = match said.session.as_str() {
        "" => String::new(),
        session => format!(" in session {session}"),
    };
    // A typed rule is the quote, so that only its place and its repetitions are left to say.
    let quote = if said.quote.trim() == record.summary.trim() {
        String::new()
    } else {
        format!("\"{}\"", said.quote)
    };
    match format!("{quote}{place}{times}").trim_start_matches([' ', ',']) {
        "" => String::new(),
        heard => format!(" ({heard})"),
    }
}

/// Receipts of a rule, before its text, so that a narrow terminal shows them; empty if it was never
/// told.
fn receipts(record: &Listed) -> String {
    let words = record.receipts.map(Receipts::words).unwrap_or_default();
    if words.is_empty() {
        words
    } else {
        format!("[{words}] ")
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

impl Report for ListReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        match self.kind {
            _ if self.records.is_empty() => page.line(format!("No {} yet.", self.kind.nouns())),
            Kind::Memory => notes_table(&self.records, page),
            Kind::Procedure => self.procedures(page),
            _ => self.table(page),
        }
        page.newest(self.records.len(), self.total);
        let is_waiting = |record: &&Listed| record.status.as_deref() == Some(CANDIDATE);
        if let Some(first) = self.records.iter().find(is_waiting) {
            page.dim(format!(
                "a candidate waits for your approval: memctl approve {}",
                first.id
            ));
        }
    }
}

/// Text of a record, after its pin.
fn text(record: &Listed) -> String {
    let pinned = if record.pinned { "pinned: " } else { "" };
    format!("{pinned}{}", record.summary)
}

/// Newest records of every kind: the list of rules, with the list of each kind in `kinds`.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct AllKinds {
    #[serde(flatten)]
    rules: ListReport,
    /// List of each kind, by its name.
    kinds: BTreeMap<&'static str, ListReport>,
    /// Maximum number of records on the page.
    #[serde(skip)]
    limit: usize,
}

impl AllKinds {
    /// Returns the records of all kinds, newest first; those without a readable time at the end.
    fn newest(&self) -> Vec<(Kind, &Listed)> {
        let lists = self.kinds.values();
        let records = lists.flat_map(|list| list.records.iter().map(|record| (list.kind, record)));
        let mut records: Vec<_> = records.collect();
        records.sort_by_cached_key(|(_, record)| {
            Reverse(DateTime::parse_from_rfc3339(&record.created).ok())
        });
        records.truncate(self.limit);
        records
    }
}

impl Report for AllKinds {
    fn page(&self, page: &mut Page) {
        for list in self.kinds.values() {
            page.warnings(&list.warnings);
        }
        let records = self.newest();
        if records.is_empty() {
            return page.line("No records yet.");
        }
        let mut table = Table::new("Kind|ID|>Age|~Text", &[3]);
        for (kind, record) in &records {
            let (status, source) = (record.status.as_deref(), record.source.as_deref());
            table.row([
                kind.noun().to_owned(),
                record.id.clone(),
                page.age(&record.created),
                marked(status, source, &text(record)),
            ]);
        }
        page.table(&table);
        let total: u64 = self.kinds.values().map(|list| list.total).sum();
        let shown = records.len() as u64;
        if total > shown {
            page.dim(format!(
                "the newest {shown} of {total}; of one kind: memctl list KIND"
            ));
        }
    }
}

/// Show one record as stored
///
/// Secrets are redacted. Ids of remote records and of the user store work too.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl show REFL-003\n  memctl show latest")]
pub(crate) struct ShowArgs {
    /// Record id, a prefix of one, or `latest` for the newest execution
    id: String,
}

pub(crate) fn show(context: &Context, args: &ShowArgs) -> Done {
    let report = notes::show(&context.workspace_of_user(None)?, &args.id)?;
    Ok(Box::new(report))
}

impl Report for ShowReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        if let Some(mark) = mark(self.status.as_deref(), self.source.as_deref()) {
            let waits = self.status.as_deref() == Some(CANDIDATE);
            let hint = format!("memctl approve {}", self.id);
            page.styled(&[
                (Style::Warn, mark),
                (Style::Dim, if waits { "  " } else { "" }),
                (Style::Dim, if waits { &hint } else { "" }),
            ]);
        }
        if let Some(retrieved) = &self.retrieved {
            let times = plural(retrieved.times, "time");
            let last = &retrieved.last;
            page.dim(format!("retrieved {times}, last {last}"));
        }
        page.verbatim(&clean(self.record.get()).replace("\n    ", "\n"));
    }
}
