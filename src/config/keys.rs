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

#[derive(Debug, PartialEq, Eq)]
enum Guard {
    Open,
    /// Names a host for data, or files to read.
    Host,
    /// Can enable sending of data.
    EmbedderConfig,
    /// Can name a program or a file.
    Model,
}

impl Key {
    /// Returns `true` if this value counts only from a trusted file.
    pub(super) fn is_guarded(&self, value: &str) -> bool {
        match self.guard {
            Guard::Open => false,
            Guard::Host => true,
            Guard::EmbedderConfig => value != "built-in",
            Guard::Model => value.contains(':'),
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
        about: "who answers: `provider/model`, `exec:PROGRAM`, `scripted:FILE` or `offline`",
    },
    Key::open(
        "user",
        "",
        "who works here: sees and adds only this user's memories and sessions",
    ),
    Key::open(
        "memory.task_days",
        "90",
        "days after which a task_memory expires; 0 is never",
    ),
    Key::open(
        "prompt.rules_tokens",
        "2000",
        "room for learned rules in a prompt, in tokens",
    ),
    Key::open(
        "offline.min_similarity",
        "0.35",
        "how alike a known case must be to answer, 0 to 1",
    ),
    Key::open(
        "llm.timeout_seconds",
        "120",
        "time limit of a question, retries included",
    ),
    Key::open("llm.retries", "2", "requests after a first one that failed"),
    Key::open("llm.max_output_tokens", "8192", "longest answer of a model"),
    Key::host(
        "anthropic.base_url",
        "",
        &["ANTHROPIC_BASE_URL"],
        "where the Anthropic protocol is spoken",
    ),
    Key::host(
        "openai.base_url",
        "",
        &["OPENAI_BASE_URL"],
        "where the OpenAI protocol is spoken",
    ),
    Key::host(
        "openrouter.base_url",
        "",
        &["OPENROUTER_BASE_URL"],
        "where OpenRouter is",
    ),
    Key::host(
        "local.base_url",
        "http://127.0.0.1:11434/v1",
        &[],
        "a server of your own that speaks the OpenAI protocol",
    ),
    Key::open(
        "local.probe",
        "true",
        "whether to look for a local server where none is configured",
    ),
    Key::open(
        "local.model",
        "",
        "its model; empty takes the first that it offers",
    ),
    Key::open(
        "search.rewrite",
        "off",
        "whether queries are rewritten: `off`, `offline` or `model`",
    ),
    Key::open(
        "audit.reads",
        "personal",
        "which reads the audit notes: `personal` (memories and sessions) or `all`",
    ),
    Key::open(
        "experiment.withhold",
        "0",
        "share of hints and rules that is withheld at random to prove that they help, 0 to 0.9",
    ),
    Key::host(
        "traces.file",
        "",
        &[],
        "where runs leave traces as OTLP/JSON lines, seen from the workspace; empty is nowhere",
    ),
    Key::host(
        "traces.content",
        "false",
        &["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"],
        "whether traces tell what was given and what came out",
    ),
    Key::host(
        "traces.service",
        "memctl",
        &["OTEL_SERVICE_NAME"],
        "what traces call this program",
    ),
    Key {
        name: "embedding.provider",
        default: "built-in",
        variables: &[],
        guard: Guard::EmbedderConfig,
        about: "who makes vectors: `built-in`, `openai` (or what speaks its protocol), `ollama` or `folder`",
    },
    Key::host(
        "embedding.base_url",
        "",
        &[],
        "where the embedder is; empty takes its home",
    ),
    Key::host(
        "embedding.folder",
        "",
        &[],
        "a folder with a sentence-transformers ONNX export, seen from the workspace",
    ),
    Key::open(
        "embedding.model",
        "",
        "the embedder's model; empty takes a common one",
    ),
    Key::open(
        "embedding.dimensions",
        "",
        "how many numbers to ask a vector of; empty leaves it to the model",
    ),
    Key::open(
        "embedding.batch",
        "64",
        "how many texts go into one request to an embedder, 1 to 512",
    ),
];
