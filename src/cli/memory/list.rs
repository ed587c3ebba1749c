//! `list` and `show`: the newest records of one kind or of all, and one record as stored.

use std::collections::BTreeMap;

use clap::Args;
use clap::builder::PossibleValuesParser;
use console::measure_text_width;
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report, Style, change, clean, day, end};
use crate::model::error::UserError;
use crate::model::{
    CANDIDATE, EPISODE, Evidence, Kind, MemoryType, QUARANTINED, REJECTED, Receipts, SkillPath,
    Trust, USER_STORE, mark, with_origin,
};
use crate::notes::{self, ListReport, Listed, ShowReport};
use crate::serve::arguments::{LISTED, TYPED};
use crate::store::workspace::Error;

/// Maximum width of a change.
const CHANGE: usize = 110;
/// Maximum width of the error that a pattern is about.
const ERROR: usize = 60;
/// Minimum length of the text of a record on its line, in columns.
const LEAST: usize = 20;
/// Statuses of rules and procedures.
const STATUSES: [&str; 7] = [
    "active", CANDIDATE, REJECTED, "superseded", "retired", QUARANTINED, EPISODE,
];

/// List the newest records
///
/// Without a kind, it lists each kind; the document has the rules at the top, and the list of each
/// kind in `kinds`. A lesson with the status `episode` is the pattern of a recovery that nobody has
/// worded or approved.
///
/// ```console
/// $ memctl list
/// $ memctl list rules
/// $ memctl list executions --skill hr/resume-screen -n 50
/// $ memctl list --type performance_memory
/// ```
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Kind of record. Default: all; rules with `--status`, notes with `--type`
    #[arg(value_name = "KIND")]
    kind: Option<Kind>,
    /// List only records of this skill
    #[arg(long, value_name = "SKILL")]
    skill: Option<String>,
    /// List only notes of this type
    #[arg(long = "type", value_name = "TYPE")]
    memory_type: Option<MemoryType>,
    /// List only rules or lessons with this status
    #[arg(long, value_name = "STATUS", conflicts_with = "memory_type",
        value_parser = PossibleValuesParser::new(STATUSES))]
    status: Option<String>,
    /// List only the user store
    #[arg(long)]
    user_store: bool,
    /// Maximum number of records; without a kind, of each kind
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
    let (limit, status) = (args.limit as usize, args.status.as_deref());
    let asks_notes = args.memory_type.is_some();
    let meant = match status {
        Some(QUARANTINED | EPISODE) => Some(Kind::Procedure),
        Some(_) => Some(Kind::Reflexion),
        None => asks_notes.then_some(Kind::Memory),
    };
    let takes_status = matches!(args.kind, None | Some(Kind::Reflexion | Kind::Procedure));
    if status.is_some() && !takes_status {
        return Err(UserError::usage(
            "`--status` applies to rules and lessons",
            "memctl list lessons --status episode",
        ));
    }
    if asks_notes && !matches!(args.kind, None | Some(Kind::Memory)) {
        return Err(UserError::usage(
            "`--type` applies to notes",
            "memctl list notes --type brand_memory",
        ));
    }
    // Records of `--user-store` are named by it, as they are elsewhere.
    let of = |kind| -> Result<ListReport, Error> {
        let mut report = notes::list(&workspace, kind, skill.as_ref(), status, limit)?;
        for record in report.records.iter_mut().filter(|_| args.user_store) {
            record.id = with_origin(&record.id, USER_STORE);
        }
        Ok(report)
    };
    if let Some(kind) = args.kind.or(meant) {
        return Ok(Box::new(match args.memory_type {
            Some(memory_type) => notes::list_memories(&workspace, memory_type, limit)?,
            None => of(kind)?,
        }));
    }
    let kinds = Kind::ALL
        .into_iter()
        .map(|kind| Ok((kind.name(), of(kind)?)));
    let kinds: BTreeMap<_, ListReport> = kinds.collect::<Result<_, Error>>()?;
    Ok(Box::new(AllKinds {
        rules: kinds[Kind::Reflexion.name()].clone(),
        kinds,
    }))
}

/// Shows a record on a line: what it is about, and its text as far as it fits; its outcome is below.
fn show_one(page: &mut Page, kind: Kind, record: &Listed) {
    let facts = [
        record.skill.clone(),
        record.memory_type.map(|of| of.name().to_owned()),
        record.user_id.clone(),
        Some(page.age(&record.created)),
        record
            .expires_at
            .as_deref()
            .map(|at| format!("expires {}", day(at))),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    let facts = format!("  {}  ", facts.join("  "));
    let (status, source) = (record.status.as_deref(), record.source.as_deref());
    // Advice, before the error that it is about.
    let change = change_of(record);
    let text = change.as_ref().unwrap_or(&record.summary);
    let text = marked(status, source, of_rule(kind, record.trust), text);
    let used = measure_text_width(&record.id) + measure_text_width(&facts);
    let text = end(&text, page.width.saturating_sub(used).max(LEAST));
    page.styled(&[
        (Style::Strong, &record.id),
        (Style::Dim, &facts),
        (Style::Plain, &text),
    ]);
    let outcome = match kind {
        Kind::Procedure => about(record),
        _ => record.receipts.map(Receipts::words).unwrap_or_default(),
    };
    let error = change.map(|_| format!(": {}", end(&record.summary, ERROR)));
    let outcome = outcome + &error.unwrap_or_default();
    if !outcome.is_empty() {
        page.sentence(Style::Dim, "  ", &outcome);
    }
}

/// Returns the text of a record for a table, after its status mark.
pub(crate) fn marked(
    status: Option<&str>,
    source: Option<&str>,
    trust: Option<Trust>,
    text: &str,
) -> String {
    match mark(status, source, trust) {
        Some(mark) => format!("{mark}: {text}"),
        None => text.to_owned(),
    }
}

/// Trust in a rule; `None` for other kinds.
pub(crate) fn of_rule(kind: Kind, trust: Option<Trust>) -> Option<Trust> {
    trust.filter(|_| kind == Kind::Reflexion)
}

/// Returns the change that a pattern is: a recovery that nobody has worded.
fn change_of(record: &Listed) -> Option<String> {
    let lesson = record.lesson.as_ref()?;
    let is_pattern = lesson.lesson.is_empty() && !lesson.working_code.is_empty();
    is_pattern.then(|| change(&lesson.failing_code, &lesson.working_code, CHANGE))
}

/// Approval and status of a procedure, and its use if it was told.
fn about(record: &Listed) -> String {
    let lesson = record.lesson.as_ref();
    let lesson = lesson.filter(|lesson| lesson.evidence != Evidence::default());
    let status = record
        .status
        .as_deref()
        .filter(|status| *status != "active");
    let words = [
        record.trust.map(|trust| match trust {
            Trust::Observed => "not approved".to_owned(),
            Trust::Approved | Trust::User => "approved".to_owned(),
        }),
        status.map(|status| match status {
            EPISODE => "a pattern".to_owned(),
            status => status.to_owned(),
        }),
        lesson.map(|lesson| {
            let (of, followed) = (lesson.evidence, lesson.followed);
            let (shown, helped, harmed) = (of.shown, of.helped, of.harmed);
            format!("told {shown}, followed {followed}, helped {helped}, harmed {harmed}")
        }),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    words.join(", ")
}

impl Report for ListReport {
    fn page(&self, page: &mut Page) {
        if self.records.is_empty() {
            let end = if self.is_filtered { "like that" } else { "yet" };
            page.line(format!("No {} {end}.", self.kind.nouns()));
        }
        for record in &self.records {
            show_one(page, self.kind, record);
        }
        page.newest(self.records.len(), self.total);
        let waiting = self.records.iter();
        let waiting = waiting.filter(|record| record.status.as_deref() == Some(CANDIDATE));
        match waiting.count() as u64 {
            0 => {}
            1 => page.dim("1 candidate waits for your approval: memctl review"),
            count => page.dim(format!(
                "{count} candidates wait for your approval: memctl review"
            )),
        }
    }
}

/// Newest records of every kind: the list of rules, with the list of each kind in `kinds`.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct AllKinds {
    #[serde(flatten)]
    rules: ListReport,
    /// List of each kind, by its name.
    kinds: BTreeMap<&'static str, ListReport>,
}

impl Report for AllKinds {
    fn page(&self, page: &mut Page) {
        for list in self.kinds.values() {
            if list.kind != self.rules.kind {
                page.warnings.extend_from_slice(&list.warnings);
            }
            if !list.records.is_empty() {
                page.styled(&[(Style::Strong, list.kind.nouns())]);
                list.page(page);
            }
        }
        if page.is_empty() {
            page.line("No records yet.");
        }
    }
}

/// Show one record as stored
///
/// Secrets are redacted. Ids of remote records and of the user store work too.
///
/// ```console
/// $ memctl show REFL-003
/// $ memctl show latest
/// ```
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Record id, a prefix of one, or `latest` for the newest execution
    id: String,
}

pub(crate) fn show(context: &Context, args: &ShowArgs) -> Done<ShowReport> {
    Ok(notes::show(&context.workspace_of_user(None)?, &args.id)?)
}

impl Report for ShowReport {
    fn page(&self, page: &mut Page) {
        let trust = of_rule(self.kind, self.trust);
        if let Some(mark) = mark(self.status.as_deref(), self.source.as_deref(), trust) {
            let waits = self.status.as_deref() == Some(CANDIDATE);
            let hint = waits.then(|| format!("  memctl approve {}", self.id));
            page.warn(mark, hint.unwrap_or_default());
        }
        page.verbatim(&clean(self.record.get()).replace("\n    ", "\n"));
    }
}
