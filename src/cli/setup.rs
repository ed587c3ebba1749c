//! `init` and `config`: creation of a workspace, and its settings.

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::config::Setting;
use crate::engine::{InitReport, initialise};
use crate::error::UserError;
use crate::merge::git::Repository;

use super::context::Context;
use super::output::{Align, Page, Report, Style, Table};
use super::setup_git;
use super::setup_git::project;

/// Create a workspace here: `.agentura/` for records, `skills/` for skills
///
/// In a git repository, it also installs a merge driver that merges the records of two branches:
/// lines in `.gitattributes`, a setting of this clone, and hooks that repair references after a
/// merge.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  memctl init")]
pub(super) struct InitArgs {}

pub(super) fn init(context: &Context, _args: &InitArgs) -> Result<Box<dyn Report>, UserError> {
    let places = &context.places;
    let mut random = || uuid::Uuid::new_v4().to_string();
    let store = context.store(&context.config(&[])?)?;
    let mut report = initialise(&store, &places.skills, &mut random)?;
    if let Some(repository) = Repository::of(project(places)) {
        let (done, warnings) = setup_git::install(context, &repository)?;
        report.created.extend(done);
        report.warnings.extend(warnings);
    }
    Ok(Box::new(report))
}

impl Report for InitReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        if self.created.is_empty() {
            page.line(format!("Already set up: {}", self.directory));
            return;
        }
        for created in &self.created {
            page.styled(&[(Style::Good, "created "), (Style::Plain, created)]);
        }
        page.line("\nNext: put a skill into `skills/<domain>/<skill>/SKILL.md` and run");
        page.line("  memctl run <domain>/<skill> --input FILE");
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// Show settings and their sources
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  memctl config show")]
pub(super) enum ConfigCommand {
    /// Show every setting, its value and its source
    #[command(after_help = "Example:\n  memctl config show")]
    Show,
}

pub(super) fn config(
    context: &Context,
    command: &ConfigCommand,
) -> Result<Box<dyn Report>, UserError> {
    let ConfigCommand::Show = command;
    let config = context.config(&[])?;
    let keys = [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "OPENROUTER_API_KEY",
        "MEMCTL_LOCAL_API_KEY",
        "MEMCTL_EMBEDDING_API_KEY",
    ];
    Ok(Box::new(ConfigReport {
        memory: context.places.memory.display().to_string(),
        skills: context.places.skills.display().to_string(),
        trusted: context.environment.trusts_settings(&context.places.memory),
        settings: config.settings().to_vec(),
        // The report says that a key is set, and never its value.
        keys: keys
            .into_iter()
            .map(|name| KeyState {
                name,
                set: context.environment.var(name).is_some(),
            })
            .collect(),
    }))
}

#[derive(Debug, Serialize)]
struct ConfigReport {
    memory: String,
    skills: String,
    trusted: bool,
    settings: Vec<Setting>,
    keys: Vec<KeyState>,
}

#[derive(Debug, Serialize)]
struct KeyState {
    name: &'static str,
    set: bool,
}

impl Report for ConfigReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        page.field("memory", &self.memory);
        page.field("skills", &self.skills);
        page.field("trusted", if self.trusted { "yes" } else { "no" });
        page.line("");
        let columns = [
            ("Setting", Align::Left),
            ("Value", Align::Left),
            ("From", Align::Left),
        ];
        let mut table = Table::new(&columns, &[2, 1]);
        for setting in &self.settings {
            let value = if setting.value.is_empty() {
                "–"
            } else {
                &setting.value
            };
            table.row([
                setting.name.to_owned(),
                value.to_owned(),
                setting.origin.clone(),
            ]);
        }
        for key in &self.keys {
            let state = if key.set { "set" } else { "not set" };
            table.row([
                key.name.to_owned(),
                state.to_owned(),
                "environment".to_owned(),
            ]);
        }
        page.table(&table);
    }
}
