//! `memory …`: what is remembered, looked at from every side.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::engine::{
    FindOptions, FindReport, ForgetReport, ListReport, PromptReport, ShowReport, StatusReport,
};
use crate::model::{Kind, SkillPath};

use super::context::Context;
use super::error::CliError;
use super::output::{Align, Page, Report, Style, Table, clean, plural, when};

/// What is remembered
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  memctl memory status")]
pub(super) enum MemoryCommand {
    Status(StatusArgs),
    Search(SearchArgs),
    Prompt(PromptArgs),
    List(ListArgs),
    Show(ShowArgs),
    Forget(ForgetArgs),
}

pub(super) fn memory(
    context: &Context,
    command: MemoryCommand,
) -> Result<Box<dyn Report>, CliError> {
    match command {
        MemoryCommand::Status(args) => status(context, &args),
        MemoryCommand::Search(args) => search(context, args),
        MemoryCommand::Prompt(args) => prompt(context, &args),
        MemoryCommand::List(args) => list(context, &args),
        MemoryCommand::Show(args) => Ok(Box::new(context.engine(None)?.show(&args.id)?)),
        MemoryCommand::Forget(args) => Ok(Box::new(context.engine(None)?.forget(&args.id)?)),
    }
}

/// Count what is remembered
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  memctl memory status")]
pub(super) struct StatusArgs {}

fn status(context: &Context, _args: &StatusArgs) -> Result<Box<dyn Report>, CliError> {
    Ok(Box::new(context.engine(None)?.status()?))
}

impl Report for StatusReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        page.line(format!("Store: {}", self.store));
        page.line(format!(
            "Executions: {}  |  Corrections: {}  |  Reflexions: {}  |  Tests: {}",
            self.executions, self.corrections, self.reflexions, self.tests
        ));
        let others = [
            (self.procedures, "procedure"),
            (self.fixes, "fix"),
            (self.memories, "memory"),
            (self.sessions, "session"),
        ];
        let others: Vec<String> = others
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, noun)| match (count, noun) {
                (1, _) | (_, "procedure" | "session") => plural(count, noun),
                (_, "fix") => format!("{count} fixes"),
                _ => format!("{count} memories"),
            })
            .collect();
        if !others.is_empty() {
            page.line(others.join("  |  "));
        }
        page.styled(&[(Style::Dim, &self.directory)]);
        for problem in &self.problems {
            page.styled(&[(Style::Warn, "problem: "), (Style::Plain, problem)]);
        }
    }
}

/// Find records by their words
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  memctl memory search \"compliance check\" -n 5")]
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
}

fn search(context: &Context, args: SearchArgs) -> Result<Box<dyn Report>, CliError> {
    let options = FindOptions {
        query: args.query,
        limit: args.limit as usize,
        kind: args.kind.map(KindName::kind),
        skill: args.skill.as_deref().map(str::parse).transpose()?,
    };
    let engine = context.engine(None)?;
    let spinner = context.printer.spinner("searching");
    let report = engine.find(&options);
    drop(spinner);
    Ok(Box::new(report?))
}

impl Report for FindReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        if self.results.is_empty() {
            page.line(format!(
                "Nothing that is remembered holds a word of \"{}\".",
                self.query
            ));
            return;
        }
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
                found.id.clone(),
                found.kind.name().to_owned(),
                found.skill.clone().unwrap_or_default(),
                format!("{:.2}", found.score),
                found.snippet.clone(),
            ]);
        }
        page.table(&table);
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// Show the prompt that a skill's model gets
///
/// The plain output is the prompt alone, byte for byte.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  memctl memory prompt hr/resume-screen")]
pub(super) struct PromptArgs {
    /// The skill, as `domain/skill`
    skill: String,
    /// The input that it would be for; learned rules are chosen by it when room runs out
    #[arg(long, short, value_name = "FILE")]
    input: Option<PathBuf>,
}

fn prompt(context: &Context, args: &PromptArgs) -> Result<Box<dyn Report>, CliError> {
    let skill: SkillPath = args.skill.parse()?;
    let input = args
        .input
        .as_deref()
        .map(|path| context.json(path))
        .transpose()?;
    let engine = context.engine(None)?;
    let report = engine.prompt(
        &skill,
        input.as_deref().map(serde_json::value::RawValue::get),
    )?;
    Ok(Box::new(report))
}

impl Report for PromptReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        page.verbatim(&self.assembly.prompt);
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// A kind of record, in singular or plural.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "lower")]
enum KindName {
    #[value(alias = "executions")]
    Execution,
    #[value(alias = "corrections")]
    Correction,
    #[value(aliases = ["reflexions", "rule", "rules"])]
    Reflexion,
    #[value(alias = "procedures")]
    Procedure,
    #[value(alias = "fixes")]
    Fix,
    #[value(alias = "memories")]
    Memory,
    #[value(alias = "sessions")]
    Session,
}

impl KindName {
    const fn kind(self) -> Kind {
        match self {
            Self::Execution => Kind::Execution,
            Self::Correction => Kind::Correction,
            Self::Reflexion => Kind::Reflexion,
            Self::Procedure => Kind::Procedure,
            Self::Fix => Kind::Fix,
            Self::Memory => Kind::Memory,
            Self::Session => Kind::Session,
        }
    }
}

/// List the newest records of a kind
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl memory list\n  memctl memory list executions --skill hr/resume-screen -n 50"
)]
pub(super) struct ListArgs {
    /// The kind
    #[arg(default_value = "reflexion", value_name = "KIND")]
    kind: KindName,
    /// Records of this skill only
    #[arg(long, value_name = "SKILL")]
    skill: Option<String>,
    /// How many at most
    #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..), value_name = "N")]
    limit: u32,
}

fn list(context: &Context, args: &ListArgs) -> Result<Box<dyn Report>, CliError> {
    let skill: Option<SkillPath> = args.skill.as_deref().map(str::parse).transpose()?;
    let engine = context.engine(None)?;
    let report = engine.list(args.kind.kind(), skill.as_ref(), args.limit as usize)?;
    Ok(Box::new(Listing {
        report,
        now: context.environment.now,
    }))
}

/// A list, and the time that its ages are counted from.
struct Listing {
    report: ListReport,
    now: chrono::DateTime<chrono::Utc>,
}

impl Report for Listing {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&self.report)
    }

    fn page(&self, page: &mut Page) {
        if self.report.records.is_empty() {
            page.line(format!("There are no {} here.", self.report.kind.plural()));
            return;
        }
        let columns = [
            ("ID", Align::Left),
            ("Skill", Align::Left),
            ("Age", Align::Right),
            ("Text", Align::Prose),
        ];
        let mut table = Table::new(&columns, &[3, 1]);
        for record in &self.report.records {
            table.row([
                record.id.clone(),
                record.skill.clone().unwrap_or_default(),
                when(&record.created, self.now),
                record.summary.clone(),
            ]);
        }
        page.table(&table);
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

/// Show one record as it stands in its file
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl memory show REFL-003\n  memctl memory show latest")]
pub(super) struct ShowArgs {
    /// An id, the beginning of one, or `latest` for the newest execution
    id: String,
}

impl Report for ShowReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        page.verbatim(&clean(self.record.get()).replace("\n    ", "\n"));
    }
}

/// Remove a record; what it said is not learnt again by itself
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  memctl memory forget REFL-003")]
pub(super) struct ForgetArgs {
    /// An id, or the beginning of one
    id: String,
}

impl Report for ForgetReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        page.styled(&[(Style::Good, "forgotten "), (Style::Plain, &self.id)]);
        page.field(self.kind.name(), &self.summary);
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }
}
