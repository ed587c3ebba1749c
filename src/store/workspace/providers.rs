//! Model selection.
//!
//! In order: the model that the caller names; the model that the skill's author asks for, if its
//! provider is reachable; the first provider with a key; a local server that responds; no model, in
//! which case only a case that is nearly the same answers.
//!
//! Only the caller and the configuration may name a program or a file. A skill is untrusted, so the
//! model it asks for is looked up among providers only.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use memctl_files::named;
use memctl_llm::{Chat, Endpoint, Exec, Limits, Llm, Scripted, Secret, list_models};
use memctl_search::embedder::Patience;
use memctl_search::embedder::{Embedder, EmbedderCache, EmbedderConfig};

use crate::store::Error;

/// Timeout for probing a local server.
const PROBE: Duration = Duration::from_millis(300);
/// Providers with their default models, in the order in which they are tried.
const DEFAULTS: [(&str, &str); 3] = [
    ("anthropic", "claude-haiku-4-5"),
    ("openai", "gpt-5.4-mini"),
    ("openrouter", "anthropic/claude-haiku-4.5"),
];

/// Model providers: names, keys, URLs and limits.
#[derive(Debug, Clone, Default)]
pub struct Providers {
    /// Model named by the caller or the configuration: `provider/model`, `exec:…`, `scripted:…`, or
    /// `offline`.
    pub named: Option<String>,
    /// Anthropic API key.
    pub anthropic_key: Option<Secret>,
    /// Base URL of the Anthropic API; `None` uses the public one.
    pub anthropic_url: Option<String>,
    /// `OpenAI` API key.
    pub openai_key: Option<Secret>,
    /// Base URL of the `OpenAI` API; `None` uses the public one.
    pub openai_url: Option<String>,
    /// `OpenRouter` API key.
    pub openrouter_key: Option<Secret>,
    /// Base URL of `OpenRouter`; `None` uses the public one.
    pub openrouter_url: Option<String>,
    /// Base URL of a local server that speaks the `OpenAI` protocol.
    pub local_url: String,
    /// API key of the local server; `None` if it needs none.
    pub local_key: Option<Secret>,
    /// Model of the local server; `None` takes the first one that it lists.
    pub local_model: Option<String>,
    /// `true` if the local server is configured; otherwise it is used only if it responds.
    pub local_configured: bool,
    /// `true` to probe for a local server if none is configured.
    pub local_probe: bool,
    /// Directories with the user's programs, to name those that can answer.
    pub search_path: Vec<PathBuf>,
    /// Embedder of the search.
    pub embedder: EmbedderConfig,
    /// Embedder cache, for a process that runs more than one search.
    pub embedder_cache: Option<EmbedderCache>,
    /// Time limit of a model call.
    pub answer_within: Duration,
    /// Maximum number of retries after the first request.
    pub max_retries: u32,
}

/// Selected model.
#[derive(Debug)]
pub enum Chosen {
    /// Answers with a model.
    Model(Box<Llm>),
    /// Answers with the nearest known case.
    Offline,
}

impl Chosen {
    /// Model name as stored in records: `provider/model`.
    pub fn name(&self) -> &str {
        match self {
            Self::Model(llm) => llm.model(),
            Self::Offline => "offline",
        }
    }
}

impl Providers {
    /// Returns `true` if the caller or the configuration names the offline answer. Otherwise
    /// [`Chosen::Offline`] means that there is no model.
    pub(crate) const fn asks_for_offline(&self) -> bool {
        self.named.is_some()
    }

    /// Returns the embedder of a search, loaded for one text or for many.
    pub(crate) fn open_embedder(&self, many_texts: bool) -> Result<Arc<Embedder>, Error> {
        if let Some(embedder_cache) = &self.embedder_cache {
            return Ok(embedder_cache.open(&self.embedder)?);
        }
        let embedder = self.embedder.open(Patience::Search, many_texts)?;
        Ok(Arc::new(embedder))
    }

    /// Selects the model. `requested` is the model that the skill's author asks for.
    pub async fn choose(&self, requested: Option<&str>) -> Result<Chosen, Error> {
        if let Some(named) = self.named.as_deref() {
            return self.named(named);
        }
        if let Some((provider, model)) = requested.and_then(|requested| requested.split_once('/'))
            && let Some(chosen) = self.reachable(provider, model)?
        {
            return Ok(chosen);
        }
        for (provider, model) in DEFAULTS {
            if let Some(chosen) = self.of_provider(provider, model)? {
                return Ok(chosen);
            }
        }
        let local = match self.local_model().await? {
            Some(model) => self.of_provider("local", &model)?,
            None => None,
        };
        Ok(local.unwrap_or(Chosen::Offline))
    }

    fn named(&self, given: &str) -> Result<Chosen, Error> {
        let refuse = |reason: &str| Error::ModelName {
            given: given.to_owned(),
            reason: reason.to_owned(),
        };
        if given == "offline" || given == "offline/nearest-case" {
            return Ok(Chosen::Offline);
        }
        if let Some(command) = given.strip_prefix("exec:") {
            let exec = Exec::new(command, self.answer_within)?;
            return Ok(Chosen::Model(Box::new(Llm::Exec(exec))));
        }
        if let Some(file) = given.strip_prefix("scripted:") {
            let path = PathBuf::from(file);
            let text = named::read_any_text(&path).map_err(Error::unreadable(&path))?;
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let replies = Scripted::parse(&name, &text)?;
            return Ok(Chosen::Model(Box::new(Llm::Scripted(replies))));
        }
        let (provider, model) = given
            .split_once('/')
            .filter(|(_, model)| !model.is_empty())
            .ok_or_else(|| {
                refuse("write `provider/model`, `exec:PROGRAM`, `scripted:FILE` or `offline`")
            })?;
        if let Some(chosen) = self.of_provider(provider, model)? {
            return Ok(chosen);
        }
        Err(match provider {
            "anthropic" | "openai" | "openrouter" => {
                let variable = provider.to_uppercase() + "_API_KEY";
                refuse(&format!("`{variable}` is not set"))
            }
            _ => refuse("the providers are anthropic, openai, openrouter, ollama and local"),
        })
    }

    /// Returns the model that a skill's author asks for, if its provider is reachable.
    fn reachable(&self, provider: &str, model: &str) -> Result<Option<Chosen>, Error> {
        let direct = match provider {
            // People and OpenRouter write dots in a version, Anthropic writes dashes.
            "anthropic" => self.of_provider(provider, &model.replace('.', "-"))?,
            "openai" | "openrouter" => self.of_provider(provider, model)?,
            _ => None,
        };
        match direct {
            None if provider != "openrouter" => {
                self.of_provider("openrouter", &format!("{provider}/{model}"))
            }
            direct => Ok(direct),
        }
    }

    /// Returns a model of a provider; `None` if it is unknown, or has no key.
    fn of_provider(&self, provider: &str, model: &str) -> Result<Option<Chosen>, Error> {
        let (key, url) = match provider {
            "anthropic" => (&self.anthropic_key, &self.anthropic_url),
            "openai" => (&self.openai_key, &self.openai_url),
            "openrouter" => (&self.openrouter_key, &self.openrouter_url),
            "local" | "ollama" => (&self.local_key, &Some(self.local_url.clone())),
            _ => return Ok(None),
        };
        if key.is_none() && !matches!(provider, "local" | "ollama") {
            return Ok(None);
        }
        let mut endpoint = Endpoint::new(provider, model, key.clone());
        if let Some(url) = url {
            endpoint.base_url.clone_from(url);
        }
        endpoint.limits = Limits {
            answer_within: self.answer_within,
            max_retries: self.max_retries,
            ..Limits::default()
        };
        let chat = Chat::new(endpoint)?;
        Ok(Some(Chosen::Model(Box::new(Llm::Chat(chat)))))
    }

    /// Returns the model of the local server. A configured server must respond; any other is only
    /// probed.
    async fn local_model(&self) -> Result<Option<String>, Error> {
        if self.local_configured
            && let Some(model) = &self.local_model
        {
            return Ok(Some(model.clone()));
        }
        if !self.local_configured && !self.local_probe {
            return Ok(None);
        }
        let models = list_models("local", &self.local_url, self.local_key.as_ref(), PROBE).await;
        match models {
            Ok(models) => Ok(self
                .local_model
                .clone()
                .or_else(|| models.into_iter().next())),
            Err(error) if self.local_configured => Err(error.into()),
            Err(_) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn providers() -> Providers {
        Providers {
            // A port without a listener.
            local_url: "http://127.0.0.1:9/v1".to_owned(),
            answer_within: Duration::from_secs(1),
            ..Providers::default()
        }
    }

    fn choose(providers: &Providers, requested: Option<&str>) -> Result<String, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let chosen = runtime.block_on(providers.choose(requested));
        chosen
            .map(|c| c.name().to_owned())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_order_is_named_asked_key_local_nobody() {
        let mut providers = providers();
        let key = |text: &str| Some(Secret::new(text));
        assert_eq!(
            choose(&providers, Some("anthropic/claude-x")).unwrap(),
            "offline"
        );
        providers.openrouter_key = key("r");
        assert_eq!(
            choose(&providers, None).unwrap(),
            format!("openrouter/{}", DEFAULTS[2].1)
        );
        assert_eq!(
            choose(&providers, Some("google/gem")).unwrap(),
            "openrouter/google/gem"
        );
        providers.openai_key = key("o");
        assert_eq!(
            choose(&providers, None).unwrap(),
            format!("openai/{}", DEFAULTS[1].1)
        );
        assert_eq!(
            choose(&providers, Some("openai/gpt-x")).unwrap(),
            "openai/gpt-x"
        );
        providers.anthropic_key = key("a");
        assert_eq!(
            choose(&providers, Some("anthropic/claude-x-4.5")).unwrap(),
            "anthropic/claude-x-4-5"
        );
        assert_eq!(
            choose(&providers, Some("unheard/of")).unwrap(),
            "openrouter/unheard/of"
        );
        providers.named = Some("offline".to_owned());
        assert_eq!(choose(&providers, Some("anthropic/x")).unwrap(), "offline");
    }

    #[test]
    fn a_skill_can_name_no_program_and_no_file() {
        let providers = providers();
        for requested in [
            "exec:touch /tmp/x", "scripted:/etc/passwd", "exec:/bin/sh", "offline",
        ] {
            assert_eq!(
                choose(&providers, Some(requested)).unwrap(),
                "offline",
                "{requested}"
            );
        }
    }

    #[test]
    fn a_name_that_nobody_understands_says_what_is_missing() {
        let check = |named: &str, part: &str| {
            let providers = Providers {
                named: Some(named.to_owned()),
                ..providers()
            };
            let error = choose(&providers, None).unwrap_err();
            assert!(error.contains(part), "{error}");
        };
        check("gpt", "provider/model");
        check("anthropic/x", "ANTHROPIC_API_KEY");
        check("acme/x", "the providers are");
        check("anthropic/", "provider/model");
        check("scripted:/does/not/exist", "cannot read");
    }
}
