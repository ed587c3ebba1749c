//! Table of all settings.

#[derive(Debug)]
pub(super) struct Key {
    /// Name in a settings file; dots join nested tables.
    pub(super) name: &'static str,
    /// Default value; empty for none.
    pub(super) default: &'static str,
    /// Variables of other programs that set it too. `MEMCTL_…` overrides them.
    pub(super) variables: &'static [&'static str],
    /// Restriction on values from an untrusted workspace.
    guard: Guard,
    /// Description.
    pub(super) about: &'static str,
}

/// Trust of the user in a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileTrust {
    /// None.
    Nothing,
    /// In the records beside it: the user began the workspace, or trusts it as a source.
    Records,
    /// In its settings: the file is the user's, or trusted as it is now.
    Settings,
}

#[derive(Debug, PartialEq, Eq)]
enum Guard {
    Open,
    /// Names a host for data, or files to read.
    Host,
    /// Can enable sending of data.
    EmbedderConfig,
    /// Can name a program or a file.
    Model,
    /// Amount of money; more than the default needs trust.
    Spending,
    /// Can silence the user's own rules; another value than the default counts in a workspace that
    /// the user began or trusts.
    Rules,
}

impl Key {
    /// Returns `true` if this value does not count from a file with this trust.
    pub(super) fn is_guarded(&self, value: &str, trust: FileTrust) -> bool {
        match trust {
            FileTrust::Settings => false,
            FileTrust::Records if self.guard == Guard::Rules => false,
            _ => self.needs_trust(value),
        }
    }

    fn needs_trust(&self, value: &str) -> bool {
        match self.guard {
            Guard::Open => false,
            Guard::Host => true,
            Guard::EmbedderConfig => value != "built-in",
            Guard::Rules => value != self.default,
            Guard::Model => value.contains(':'),
            Guard::Spending => {
                let amount = |text: &str| text.parse::<f64>().ok();
                amount(value)
                    .is_none_or(|value| value.is_nan() || amount(self.default) < Some(value))
            }
        }
    }

    const fn open(name: &'static str, default: &'static str, about: &'static str) -> Self {
        Self {
            name,
            default,
            variables: &[],
            guard: Guard::Open,
            about,
        }
    }

    const fn rules(name: &'static str, default: &'static str, about: &'static str) -> Self {
        Self {
            guard: Guard::Rules,
            ..Self::open(name, default, about)
        }
    }

    const fn host(
        name: &'static str,
        default: &'static str,
        variables: &'static [&'static str],
        about: &'static str,
    ) -> Self {
        Self {
            name,
            default,
            variables,
            guard: Guard::Host,
            about,
        }
    }
}

/// All settings.
pub(super) const KEYS: &[Key] = &[
    Key {
        name: "model",
        default: "",
        variables: &[],
        guard: Guard::Model,
        about: "model that answers: `provider/model`, `exec:PROGRAM`, `scripted:FILE` or `offline`",
    },
    Key::open(
        "user",
        "",
        "current user: reads and writes only this user's memories and sessions",
    ),
    Key::open(
        "store",
        "auto",
        "where the memory is kept: `auto` (the database of `DATABASE_URL` if it is one of memctl, else files), `json` (files) or `postgres`",
    ),
    Key::open(
        "memory.task_days",
        "90",
        "days until a task_memory expires; 0 means never",
    ),
    Key::rules(
        "memory.user_store",
        "true",
        "use the rules and lessons of the user store, once `memory promote` has created it",
    ),
    Key::rules(
        "prompt.rules_tokens",
        "2000",
        "token budget for learned rules in a prompt",
    ),
    Key::rules(
        "prompt.procedures_tokens",
        "500",
        "token budget for learned procedures in a prompt",
    ),
    Key::open(
        "offline.min_similarity",
        "0.35",
        "minimum similarity of a known case that may answer `--model offline`, 0 to 1",
    ),
    Key::open(
        "llm.timeout_seconds",
        "120",
        "time limit of a model call in seconds, retries included",
    ),
    Key::open(
        "llm.retries",
        "2",
        "number of retries after a failed request",
    ),
    Key::open(
        "llm.max_output_tokens",
        "8192",
        "maximum length of an answer in tokens",
    ),
    Key {
        name: "llm.ask_above_usd",
        default: "0.50",
        variables: &[],
        guard: Guard::Spending,
        about: "estimated cost in US dollars above which a command asks before it calls a model",
    },
    Key::host(
        "anthropic.base_url",
        "",
        &["ANTHROPIC_BASE_URL"],
        "base URL of the Anthropic API",
    ),
    Key::host(
        "openai.base_url",
        "",
        &["OPENAI_BASE_URL"],
        "base URL of the OpenAI API",
    ),
    Key::host(
        "openrouter.base_url",
        "",
        &["OPENROUTER_BASE_URL"],
        "base URL of OpenRouter",
    ),
    Key::host(
        "local.base_url",
        "http://127.0.0.1:11434/v1",
        &[],
        "base URL of a local server with the OpenAI API",
    ),
    Key::open(
        "local.probe",
        "true",
        "look for a local server if no model is configured",
    ),
    Key::open(
        "local.model",
        "",
        "model of the local server; empty takes the first that it offers",
    ),
    Key::open(
        "search.rewrite",
        "off",
        "query rewriting: `off`, `offline` or `model`",
    ),
    Key::open(
        "audit.reads",
        "personal",
        "reads in the audit log: `personal` (memories and sessions) or `all`",
    ),
    Key::open(
        "learning.chat",
        "true",
        "ask the agent to record what people's messages state for good; none acts before approval",
    ),
    Key::open(
        "learning.ask",
        "stop",
        "when an agent is asked what its session found out: `stop`, `recovery` or `off`",
    ),
    Key::open(
        "tests.export",
        "false",
        "also write the tests of corrections for DeepEval and Promptfoo",
    ),
    Key {
        name: "embedding.provider",
        default: "built-in",
        variables: &[],
        guard: Guard::EmbedderConfig,
        about: "embedding provider: `built-in`, `openai` (or a compatible service) or `ollama`",
    },
    Key::host(
        "embedding.base_url",
        "",
        &[],
        "base URL of the embedding service; empty takes the provider's default",
    ),
    Key::open(
        "embedding.model",
        "",
        "embedding model; empty takes the provider's default",
    ),
    Key::open(
        "embedding.dimensions",
        "",
        "vector size to request; empty takes the model's default",
    ),
    Key::open(
        "embedding.batch",
        "64",
        "number of texts in one embedding request, 1 to 512",
    ),
];
