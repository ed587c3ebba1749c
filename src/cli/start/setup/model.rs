//! Offer to let an installed agent answer for a model.

use dialoguer::Confirm;

use crate::cli::config;
use crate::cli::context::Context;
use crate::cli::question::ask;
use crate::model::error::UserError;
use crate::skills::agent_programs::installed_agents;
use crate::store::workspace::redacting_writer::write_output;
use memctl_files::named;

use super::report::{ModelOffer, SetupReport};

/// Variables with the key or the address of a model.
const CONFIGURED: [&str; 4] = [
    "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "MEMCTL_LOCAL_BASE_URL",
];

/// Returns the first installed agent that can answer, unless a model is configured.
pub(super) fn offer(context: &Context) -> Result<Option<ModelOffer>, UserError> {
    let environment = &context.environment;
    let config = context.config_quietly()?;
    let has_key = CONFIGURED
        .iter()
        .any(|name| environment.var(name).is_some());
    if has_key || config.is_set("model") {
        return Ok(None);
    }
    let agents = installed_agents(&environment.search_path());
    let settings = environment.config_dir.as_ref();
    let settings = settings.map(|dir| dir.join(config::FILE));
    Ok(agents
        .into_iter()
        .next()
        .zip(settings)
        .map(|(model, settings)| ModelOffer {
            model,
            settings: settings.display().to_string(),
            set: false,
        }))
}

/// Asks whether the agent may answer, and writes the setting if so.
pub(super) fn ask_for(context: &Context, report: &mut SetupReport) -> Result<(), UserError> {
    let Some(offer) = &mut report.model else {
        return Ok(());
    };
    let program = offer.model.trim_start_matches("exec:");
    let prompt =
        format!("Use `{program}` where a command asks for a model? Its plan pays each call.");
    let question = Confirm::new().with_prompt(prompt).default(false);
    if !ask(|| question.interact())? {
        return Ok(());
    }
    let Some(directory) = &context.environment.config_dir else {
        return Ok(());
    };
    let path = directory.join(config::FILE);
    let text = match named::read_text(&path, config::LONGEST) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error.into()),
    };
    // A key before the first table is one of the whole file.
    let text = text.trim_start_matches('\u{feff}');
    let text = format!("model = \"{}\"\n{text}", offer.model);
    named::create_dir(directory)?;
    write_output(&path, text.as_bytes())?;
    offer.set = true;
    Ok(())
}
