//! `config`: settings and their sources.

use clap::Subcommand;
use serde::Serialize;

use crate::cli::config::Setting;
use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report, Table};

/// Show settings and their sources
///
/// Later wins: defaults, `config.toml` in your configuration directory, `.agentura/config.toml`,
/// variables such as `MEMCTL_MODEL`, flags.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  memctl config show\n  memctl config show --json")]
pub(crate) enum ConfigCommand {
    /// Show every setting, its value and its source
    ///
    /// Keys are listed as set or not set, and never printed. A setting of a workspace that is not
    /// trusted is ignored if it names a program, a host or a file.
    #[command(after_help = "Examples:\n  memctl config show\n  \
        memctl config show --json | jq '.settings[] | {name, value}'")]
    Show,
}

pub(crate) fn config(context: &Context, command: &ConfigCommand) -> Done {
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
        held_back: config
            .held_back
            .iter()
            .map(|(name, _)| name.clone())
            .collect(),
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

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ConfigReport {
    memory: String,
    skills: String,
    trusted: bool,
    /// Settings that are ignored until the workspace is trusted.
    held_back: Vec<String>,
    settings: Vec<Setting>,
    keys: Vec<KeyState>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct KeyState {
    name: &'static str,
    set: bool,
}

impl Report for ConfigReport {
    fn page(&self, page: &mut Page) {
        page.field("memory", &self.memory);
        page.field("skills", &self.skills);
        let trusted = match (self.trusted, self.held_back.is_empty()) {
            (true, _) => "yes".to_owned(),
            (false, true) => "not needed: no setting names a program, a host or a file".to_owned(),
            (false, false) => format!("no; ignored: {}: memctl trust", self.held_back.join(", ")),
        };
        page.field("trusted", &trusted);
        page.line("");
        let mut table = Table::new("Setting|Value|From", &[2, 1]);
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
