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
}

/// Makes the table: `"name" or "VARIABLE" = "default", guard, "description";`.
macro_rules! keys {
    ($($name:literal $(or $variable:literal)? = $default:literal, $guard:ident, $about:literal;)+) => {
        &[$(Key {
            name: $name,
            default: $default,
            variables: &[$($variable)?],
            guard: Guard::$guard,
            about: $about,
        }),+]
    };
}

/// All settings.
pub(super) const KEYS: &[Key] = keys! {
    "model" = "", Model, "model that answers: `provider/model`, `exec:PROGRAM`, `scripted:FILE` or `offline`";
    "user" = "", Open, "current user: reads and writes only this user's memories and sessions";
    "store" = "auto", Open,
        "where the memory is kept: `auto` (the database of `DATABASE_URL` if it is one of memctl, else files), `json` (files) or `postgres`";
    "memory.task_days" = "90", Open, "days until a task_memory expires; 0 means never";
    "memory.user_store" = "true", Rules,
        "use the rules and lessons of the user store, once `memory promote` has created it";
    "prompt.rules_tokens" = "2000", Rules, "token budget for learned rules in a prompt";
    "prompt.procedures_tokens" = "500", Rules, "token budget for learned procedures in a prompt";
    "offline.min_similarity" = "0.35", Open,
        "minimum similarity of a known case that may answer `--model offline`, 0 to 1";
    "llm.timeout_seconds" = "120", Open, "time limit of a model call in seconds, retries included";
    "llm.retries" = "2", Open, "number of retries after a failed request";
    "llm.max_output_tokens" = "8192", Open, "maximum length of an answer in tokens";
    "llm.ask_above_usd" = "0.50", Spending,
        "estimated cost in US dollars above which a command asks before it calls a model";
    "anthropic.base_url" or "ANTHROPIC_BASE_URL" = "", Host, "base URL of the Anthropic API";
    "openai.base_url" or "OPENAI_BASE_URL" = "", Host, "base URL of the OpenAI API";
    "openrouter.base_url" or "OPENROUTER_BASE_URL" = "", Host, "base URL of OpenRouter";
    "local.base_url" = "http://127.0.0.1:11434/v1", Host, "base URL of a local server with the OpenAI API";
    "local.probe" = "true", Open, "look for a local server if no model is configured";
    "local.model" = "", Open, "model of the local server; empty takes the first that it offers";
    "audit.reads" = "personal", Open, "reads in the audit log: `personal` (memories and sessions) or `all`";
    "learning.chat" = "true", Open,
        "ask the agent to record what people's messages state for good; none acts before approval";
    "learning.ask" = "stop", Open,
        "when an agent is asked what its session found out: `stop`, `recovery` or `off`";
    "tests.export" = "false", Open, "also write the tests of corrections for DeepEval and Promptfoo";
    "embedding.provider" = "built-in", EmbedderConfig,
        "embedding provider: `built-in`, `openai` (or a compatible service) or `ollama`";
    "embedding.base_url" = "", Host, "base URL of the embedding service; empty takes the provider's default";
    "embedding.model" = "", Open, "embedding model; empty takes the provider's default";
    "embedding.dimensions" = "", Open, "vector size to request; empty takes the model's default";
    "embedding.batch" = "64", Open, "number of texts in one embedding request, 1 to 512";
};
