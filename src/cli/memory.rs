//! `memory …`: what is remembered, looked at as a whole. Single records are in `records`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::engine::{FindOptions, FindReport, PromptReport, StatusReport};
use crate::model::SkillPath;

use super::context::Context;
use super::error::CliError;
use super::output::{Align, Page, Report, Style, Table, plural};
use super::records::{self, ForgetArgs, KindName, ListArgs, ShowArgs};

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
        MemoryCommand::List(args) => records::list(context, &args),
        MemoryCommand::Show(args) => records::show(context, &args),
        MemoryCommand::Forget(args) => records::forget(context, &args),
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

/// Find records by their words and their meaning
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
    /// By words alone
    #[arg(long)]
    keyword: bool,
}

fn search(context: &Context, args: SearchArgs) -> Result<Box<dyn Report>, CliError> {
    let options = FindOptions {
        query: args.query,
        limit: args.limit as usize,
        kind: args.kind.map(KindName::kind),
        skill: args.skill.as_deref().map(str::parse).transpose()?,
        keyword: args.keyword,
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
                "Nothing that is remembered fits \"{}\".",
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
