//! Which model answers.
//!
//! In order: what the caller names; what the skill's author asks for, where its provider can be
//! reached; the first provider that has a key; a local server that answers; nobody, and then the
//! memory itself answers.
//!
//! Only the caller and the configuration may name a program or a file. A skill may come from
//! anywhere, and what it names is looked up among providers and nowhere else.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::llm::{
    Anthropic, AnthropicConfig, Exec, ExecConfig, Limits, Llm, OpenAi, OpenAiConfig, Scripted,
    Secret, list_models, words,
};
use crate::platform::named;

use super::embedder::{Maker, Patience};
use super::{Embedder, Error, Kept};

/// How long a local server may take to say that it is there.
const PROBE: Duration = Duration::from_millis(300);
const DEFAULT_ANTHROPIC: &str = "claude-haiku-4-5";
const DEFAULT_OPENAI: &str = "gpt-5.4-mini";
const DEFAULT_OPENROUTER: &str = "anthropic/claude-haiku-4.5";

/// Whose models may be asked, and where.
#[derive(Debug, Clone, Default)]
pub struct Providers {
    /// What the caller or the configuration names: `provider/model`, `exec:…`, `scripted:…`, or
    /// `offline`.
    pub named: Option<String>,
    /// The key for Anthropic.
    pub anthropic_key: Option<Secret>,
    /// Where the Anthropic protocol is spoken, if not at its home.
    pub anthropic_url: Option<String>,
    /// The key for `OpenAI`.
    pub openai_key: Option<Secret>,
    /// Where the `OpenAI` protocol is spoken, if not at its home.
    pub openai_url: Option<String>,
    /// The key for `OpenRouter`.
    pub openrouter_key: Option<Secret>,
    /// Where `OpenRouter` is, if not at its home.
    pub openrouter_url: Option<String>,
    /// A server on this machine or network that speaks the `OpenAI` protocol.
    pub local_url: String,
    /// Its key, if it wants one.
    pub local_key: Option<Secret>,
    /// Its model, if it is not to be asked for one.
    pub local_model: Option<String>,
    /// Whether the local server was configured; an unconfigured one is only used where it answers.
    pub local_configured: bool,
    /// Whether to look for one where none was configured.
    pub local_probe: bool,
    /// Who makes the vectors of the search.
    pub embedder: Embedder,
    /// Keeps that loaded for the next search, where the process lives for more than one.
    pub kept: Option<Kept>,
    /// Time limit of a question.
    pub answer_within: Duration,
    /// Requests after the first.
    pub max_retries: u32,
}

/// Who answers.
#[derive(Debug)]
pub enum Chosen {
    /// A model.
    Model(Box<Llm>),
    /// Nobody: the nearest known case stands in.
    Offline,
}

impl Chosen {
    /// `provider/model`, as records carry it.
    pub fn name(&self) -> &str {
        match self {
            Self::Model(llm) => llm.model(),
            Self::Offline => "offline",
        }
    }
}

impl Providers {
    /// Who makes the vectors of a search, ready to be used, for one text or for many.
    pub(super) fn maker(&self, many_texts: bool) -> Result<Arc<Maker>, Error> {
        if let Some(kept) = &self.kept {
            return kept.open(&self.embedder);
        }
        let maker = self.embedder.open(Patience::Search, many_texts)?;
        Ok(Arc::new(maker))
    }

    /// Decides who answers. `asked` is what the skill's author asks for.
    pub async fn choose(&self, asked: Option<&str>) -> Result<Chosen, Error> {
        if let Some(named) = self.named.as_deref() {
            return self.named(named);
        }
        if let Some((provider, model)) = asked.and_then(|asked| asked.split_once('/'))
            && let Some(chosen) = self.reachable(provider, model)?
        {
            return Ok(chosen);
        }
        if let Some(key) = &self.anthropic_key {
            return self.anthropic(DEFAULT_ANTHROPIC, key);
        }
        if let Some(key) = &self.openai_key {
            return self.openai(DEFAULT_OPENAI, key);
        }
        if let Some(key) = &self.openrouter_key {
            return self.openrouter(DEFAULT_OPENROUTER, key);
        }
        match self.local_model().await? {
            Some(model) => self.local("local", &model),
            None => Ok(Chosen::Offline),
        }
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
            let mut config = ExecConfig::new(words(command)?);
            config.answer_within = self.answer_within;
            return Ok(Chosen::Model(Box::new(Llm::Exec(Exec::new(config)?))));
        }
        if let Some(file) = given.strip_prefix("scripted:") {
            let path = PathBuf::from(file);
            let text = named::read_any_text(&path).map_err(|source| Error::Unreadable {
                path: path.clone(),
                source,
            })?;
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            return Ok(Chosen::Model(Box::new(Llm::Scripted(Scripted::parse(
                &name, &text,
            )?))));
        }
        let (provider, model) = given
            .split_once('/')
            .filter(|(_, model)| !model.is_empty())
            .ok_or_else(|| {
                refuse("write `provider/model`, `exec:PROGRAM`, `scripted:FILE` or `offline`")
            })?;
        let key = |key: &Option<Secret>, variable: &str| {
            key.clone()
                .ok_or_else(|| refuse(&format!("`{variable}` is not set")))
        };
        match provider {
            "anthropic" => self.anthropic(model, &key(&self.anthropic_key, "ANTHROPIC_API_KEY")?),
            "openai" => self.openai(model, &key(&self.openai_key, "OPENAI_API_KEY")?),
            "openrouter" => {
                self.openrouter(model, &key(&self.openrouter_key, "OPENROUTER_API_KEY")?)
            }
            "local" | "ollama" => self.local(provider, model),
            _ => Err(refuse(
                "the providers are anthropic, openai, openrouter, ollama and local",
            )),
        }
    }

    /// The model that a skill's author asks for, where it can be had here.
    fn reachable(&self, provider: &str, model: &str) -> Result<Option<Chosen>, Error> {
        let direct = match (provider, &self.anthropic_key, &self.openai_key) {
            // Written with points by people and by OpenRouter, with dashes by its maker.
            ("anthropic", Some(key), _) => self.anthropic(&model.replace('.', "-"), key).map(Some),
            ("openai", _, Some(key)) => self.openai(model, key).map(Some),
            ("openrouter", _, _) => {
                let key = self.openrouter_key.as_ref();
                key.map(|key| self.openrouter(model, key)).transpose()
            }
            _ => Ok(None),
        }?;
        match (&direct, &self.openrouter_key) {
            (None, Some(key)) if provider != "openrouter" => self
                .openrouter(&format!("{provider}/{model}"), key)
                .map(Some),
            _ => Ok(direct),
        }
    }

    fn anthropic(&self, model: &str, key: &Secret) -> Result<Chosen, Error> {
        let mut config = AnthropicConfig::new(model, key.clone());
        if let Some(url) = &self.anthropic_url {
            config.base_url.clone_from(url);
        }
        config.limits = self.limits();
        Ok(Chosen::Model(Box::new(Llm::Anthropic(Anthropic::new(
            config,
        )?))))
    }

    fn openai(&self, model: &str, key: &Secret) -> Result<Chosen, Error> {
        self.speaks_openai(
            OpenAiConfig::openai(model, key.clone()),
            self.openai_url.as_deref(),
        )
    }

    fn openrouter(&self, model: &str, key: &Secret) -> Result<Chosen, Error> {
        self.speaks_openai(
            OpenAiConfig::openrouter(model, key.clone()),
            self.openrouter_url.as_deref(),
        )
    }

    fn local(&self, provider: &str, model: &str) -> Result<Chosen, Error> {
        let mut config = OpenAiConfig::local(provider, &self.local_url, model);
        config.key.clone_from(&self.local_key);
        self.speaks_openai(config, None)
    }

    fn speaks_openai(&self, mut config: OpenAiConfig, url: Option<&str>) -> Result<Chosen, Error> {
        if let Some(url) = url {
            url.clone_into(&mut config.base_url);
        }
        config.limits = self.limits();
        Ok(Chosen::Model(Box::new(Llm::OpenAi(OpenAi::new(config)?))))
    }

    fn limits(&self) -> Limits {
        let mut limits = Limits {
            answer_within: self.answer_within,
            ..Limits::default()
        };
        limits.retry.max_retries = self.max_retries;
        limits
    }

    /// The model of the local server. One that was configured must answer; one that was not is
    /// only asked whether it happens to be there.
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
            // A port on which nobody listens.
            local_url: "http://127.0.0.1:9/v1".to_owned(),
            answer_within: Duration::from_secs(1),
            ..Providers::default()
        }
    }

    fn choose(providers: &Providers, asked: Option<&str>) -> Result<String, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let chosen = runtime.block_on(providers.choose(asked));
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
            format!("openrouter/{DEFAULT_OPENROUTER}")
        );
        assert_eq!(
            choose(&providers, Some("google/gem")).unwrap(),
            "openrouter/google/gem"
        );
        providers.openai_key = key("o");
        assert_eq!(
            choose(&providers, None).unwrap(),
            format!("openai/{DEFAULT_OPENAI}")
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
        for asked in [
            "exec:touch /tmp/x", "scripted:/etc/passwd", "exec:/bin/sh", "offline",
        ] {
            assert_eq!(
                choose(&providers, Some(asked)).unwrap(),
                "offline",
                "{asked}"
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
