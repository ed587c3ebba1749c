//! Models that the settings and the environment name.
//!
//! A key goes to no host but its own.

use std::num::NonZero;
use std::time::Duration;

use memctl_llm::{Endpoint, Limits, Secret};
use memctl_search::embedder::{EmbedderConfig, EmbedderName, RemoteEmbedderConfig};

use super::{Config, Environment};
use crate::model::error::UserError;
use crate::store::workspace::Providers;

/// Default base URLs of the embedding services.
const OPENAI: &str = "https://api.openai.com/v1";
const OLLAMA: &str = "http://127.0.0.1:11434/v1";

/// Maximum number of texts in one request: their vectors have to fit into one answer.
const LARGEST_BATCH: usize = 512;

/// Returns the models that the settings and the environment name.
pub(crate) fn providers(
    environment: &Environment,
    config: &Config,
) -> Result<Providers, UserError> {
    let key = |name: &str| environment.var(name).map(|key| Secret::new(&key));
    let url = |name: &str| config.text(name).map(str::to_owned);
    Ok(Providers {
        named: url("model"),
        anthropic_key: key("ANTHROPIC_API_KEY"),
        anthropic_url: url("anthropic.base_url"),
        openai_key: key("OPENAI_API_KEY"),
        openai_url: url("openai.base_url"),
        openrouter_key: key("OPENROUTER_API_KEY"),
        openrouter_url: url("openrouter.base_url"),
        local_url: url("local.base_url").unwrap_or_default(),
        local_key: key("MEMCTL_LOCAL_API_KEY"),
        local_model: url("local.model"),
        local_configured: config.is_set("local.base_url") || config.is_set("local.model"),
        local_probe: config.parsed("local.probe")?,
        search_path: environment.search_path(),
        embedder: embedder(environment, config)?,
        embedder_cache: None,
        answer_within: Duration::from_secs(config.parsed("llm.timeout_seconds")?),
        max_retries: config.parsed("llm.retries")?,
    })
}

/// Returns the embedder that the settings name.
pub(crate) fn embedder(
    environment: &Environment,
    config: &Config,
) -> Result<EmbedderConfig, UserError> {
    let text = |name: &str| config.text(name).map(str::to_owned);
    let key = |name: &str| environment.var(name).map(|key| Secret::new(&key));
    let given = text("embedding.base_url");
    let (provider, home, model, key_of_home) = match config.parsed("embedding.provider")? {
        EmbedderName::BuiltIn => return Ok(EmbedderConfig::BuiltIn),
        EmbedderName::OpenAi => (
            "openai",
            text("openai.base_url").unwrap_or_else(|| OPENAI.to_owned()),
            "text-embedding-3-small",
            key("OPENAI_API_KEY"),
        ),
        EmbedderName::Ollama => ("ollama", OLLAMA.to_owned(), "nomic-embed-text", None),
    };
    // The key of the default host goes to no other host.
    let is_home = given.as_ref().is_none_or(|given| *given == home);
    let number = |name: &str| config.parsed(name).map(NonZero::<usize>::get);
    let dimensions = config.text("embedding.dimensions");
    let dimensions = dimensions.map(|_| number("embedding.dimensions"));
    let limits = Limits {
        answer_within: Duration::from_secs(config.parsed("llm.timeout_seconds")?),
        max_retries: config.parsed("llm.retries")?,
        ..Limits::default()
    };
    let endpoint = Endpoint {
        provider: provider.to_owned(),
        key: key("MEMCTL_EMBEDDING_API_KEY").or(key_of_home.filter(|_| is_home)),
        base_url: given.unwrap_or(home),
        model: text("embedding.model").unwrap_or_else(|| model.to_owned()),
        limits,
    };
    Ok(EmbedderConfig::Remote(Box::new(RemoteEmbedderConfig {
        endpoint,
        dimensions: dimensions.transpose()?,
        batch: number("embedding.batch")?.min(LARGEST_BATCH),
    })))
}
