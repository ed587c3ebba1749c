//! From typed errors to what a person or a program is told: one place that decides the kind, the
//! exit code and the hint.
//!
//! A message is a lower-case fragment with the object in backticks; the hint is the command to type
//! next. Every front says the same of an error; where a front has another way out than a command
//! line, it puts its own words in place of the hint.

use serde_json::json;

use crate::platform::{Reason, Refused};
use crate::{config, engine, host, llm, remote, search, skill, store};

/// The exit codes of errors, as documented in the README. A check that found something is no
/// error: its report carries 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Wrong usage or bad input.
    Usage,
    /// The store.
    Store,
    /// The model.
    Model,
    /// Not permitted in this scope.
    Scope,
    /// The shared store.
    Remote,
    /// The user interrupted.
    Interrupted,
}

impl Kind {
    /// The exit code.
    pub const fn code(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::Store => 3,
            Self::Model => 4,
            Self::Scope => 5,
            Self::Remote => 6,
            Self::Interrupted => 130,
        }
    }

    /// The word for it in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Store => "store",
            Self::Model => "model",
            Self::Scope => "scope",
            Self::Remote => "remote",
            Self::Interrupted => "interrupted",
        }
    }
}

/// An error as a person or a program is told of it.
#[derive(Debug)]
pub struct Explained {
    /// What it is about.
    pub kind: Kind,
    /// What went wrong, on one line.
    pub message: String,
    /// The way out.
    pub hint: Option<String>,
}

impl Explained {
    /// Wrong usage or bad input.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            kind: Kind::Usage,
            message: message.into(),
            hint: Some(hint.into()),
        }
    }

    /// The user has interrupted.
    pub fn interrupted() -> Self {
        Self {
            kind: Kind::Interrupted,
            message: "interrupted".to_owned(),
            hint: None,
        }
    }

    /// The same with another way out.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// The document that `--json` prints.
    pub fn json(&self) -> serde_json::Value {
        json!({ "error": { "kind": self.kind.name(), "message": self.message, "hint": self.hint } })
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Explained {
    fn from(error: E) -> Self {
        let error = anyhow::Error::from(error);
        let (kind, hint) = explain(&error);
        Self {
            kind,
            message: message(&error),
            hint,
        }
    }
}

/// The whole chain on one line, without saying anything twice.
fn message(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for part in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = part;
        } else if !text.contains(&part) {
            text.extend([": ", &part]);
        }
    }
    text
}

/// A link, or something else that is no plain file, wherever it was met.
fn refused(error: &anyhow::Error) -> Option<&Refused> {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref())
        .find_map(Refused::in_error)
}

fn explain(error: &anyhow::Error) -> (Kind, Option<String>) {
    if let Some(refused) = refused(error) {
        let kind = match refused.reason {
            Reason::Special => Kind::Usage,
            _ => Kind::Store,
        };
        return (kind, Some(refused.hint()));
    }
    if let Some(error) = error.downcast_ref::<engine::Error>() {
        return of_engine(error);
    }
    if let Some(error) = error.downcast_ref::<store::Error>() {
        return of_store(error);
    }
    if let Some(error) = error.downcast_ref::<remote::Error>() {
        return of_remote(error);
    }
    if let Some(error) = error.downcast_ref::<host::Error>() {
        return match error {
            host::Error::Store(error) => of_store(error),
            host::Error::Unreadable { path, .. }
            | host::Error::Invalid { path, .. }
            | host::Error::Shape { path, .. } => (
                Kind::Usage,
                Some(format!("mend `{}` and try again", path.display())),
            ),
        };
    }
    if let Some(error) = error.downcast_ref::<config::Error>() {
        let hint = match error {
            config::Error::Store(error) => return of_store(error),
            config::Error::Invalid { .. } => "memctl config show".to_owned(),
            config::Error::Unreadable { path, .. } | config::Error::NotToml { path, .. } => {
                format!("mend or remove `{}`", path.display())
            }
        };
        return (Kind::Usage, Some(hint));
    }
    if error
        .downcast_ref::<crate::model::InvalidSkillPath>()
        .is_some()
    {
        return (Kind::Usage, Some("memctl run hr/resume-screen".to_owned()));
    }
    (Kind::Usage, None)
}

fn of_engine(error: &engine::Error) -> (Kind, Option<String>) {
    use engine::Error;
    let usage = |hint: &str| (Kind::Usage, Some(hint.to_owned()));
    match error {
        Error::Store(error) => of_store(error),
        Error::Skill(error) => of_skill(error),
        Error::Llm(error) => of_llm(error),
        Error::Asked { execution, source } => {
            let (kind, hint) = of_llm(source);
            let recorded = format!("the attempt is recorded: memctl memory show {execution}");
            (
                kind,
                Some(hint.map_or(recorded.clone(), |hint| format!("{hint}; {recorded}"))),
            )
        }
        Error::SkillPath(_) => usage("memctl run hr/resume-screen"),
        Error::ModelName { .. } | Error::Embed(search::EmbedError::Unusable(_)) => {
            usage("memctl config show")
        }
        Error::NoAnswer { skill, .. } => (
            Kind::Model,
            Some(format!(
                "set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY, start a local server, \
                 name a program with `--model 'exec:claude -p'`, or add a case to \
                 `skills/{skill}/examples/`"
            )),
        ),
        Error::NotJson { path, .. } => usage(&format!(
            "check it with: python3 -m json.tool {}",
            path.display()
        )),
        Error::Embed(_) | Error::Runtime { .. } => (Kind::Model, None),
        Error::VectorSize { .. } => (Kind::Model, Some("memctl index --rebuild".to_owned())),
        Error::Index => (Kind::Store, Some("memctl index".to_owned())),
        Error::Unreadable { .. } => (Kind::Usage, None),
        Error::NoInput(skill) => usage(&format!("memctl run {skill} --input FILE")),
        Error::Session(error) => (Kind::Usage, Some(of_session(error))),
        Error::EmptyCorrection => usage("say what should be different: --correction \"…\""),
        Error::OtherSkill {
            actual, execution, ..
        } => usage(&format!(
            "memctl correct {actual} --execution-id {execution} --correction \"…\""
        )),
        Error::NoId(_) => usage("memctl memory list executions"),
        Error::Forgotten { kind, .. } => usage(&format!("memctl memory list {}", kind.plural())),
        Error::NothingOpen { open, .. } => (
            Kind::Usage,
            Some(match open.first() {
                Some(field) => format!("open is: --field {field}"),
                None => "memctl doctor names what merges have left open".to_owned(),
            }),
        ),
        Error::NothingToUndo | Error::NoChange(_) | Error::NotUndoable { .. } => {
            usage("memctl memory undo --list")
        }
        Error::NotApprovable { id, kind } if *kind == crate::model::Kind::Execution => {
            usage(&format!("memctl accept {id}"))
        }
        Error::NotApprovable { .. } => usage("memctl memory list fixes"),
        Error::NotMergeable { .. } => usage("memctl memory conflicts"),
        Error::NotEditable { id, allowed, .. } => match allowed.first() {
            Some(first) => usage(&format!(
                "memctl memory edit {id} --set {first}=…; these can be edited: {}",
                allowed.join(", ")
            )),
            None => usage(&format!("memctl memory show {id}")),
        },
        Error::BadField { field, .. } => usage(&format!(
            "give it as `--set {field}=VALUE`, in quotation marks for the shell"
        )),
        Error::BadVector { .. } => usage("memctl config show names the embedder"),
        Error::BadProcedure { .. } => usage(
            "give `{\"status\": \"procedure_learned\", \"data\": {…}}` as the source document has it",
        ),
        Error::BadMemory { .. } => usage("memctl memory add --help lists the fields of each type"),
        Error::Suspicious { .. } => {
            usage("a person may say it: memctl memory add --type TYPE --content \"…\"")
        }
        Error::NotEditableText { .. } => usage("edit the file; memctl doctor says where it is"),
        Error::Occupied { .. } => {
            usage("name another place, or take the place of a file with `--force`")
        }
        Error::NeedsDirectory => usage("memctl memory export --format skills --output DIR"),
        Error::NoImport { .. } => usage(
            "memctl memory import FILE --from SOURCE; docs/import.md says what each source looks like",
        ),
        Error::NotStored { source, .. } => {
            let (kind, hint) = of_store(source);
            let is_remote = kind == Kind::Remote;
            (if is_remote { kind } else { Kind::Store }, hint)
        }
    }
}

fn of_session(error: &engine::SessionError) -> String {
    use engine::SessionError;
    match error {
        SessionError::Move { id, allowed, .. } => {
            let next = allowed.first().map_or("…", |state| state.as_str());
            format!("memctl session progress {id} --status {next}")
        }
        SessionError::Ended { .. } => "memctl session start".to_owned(),
        SessionError::Missing { .. } => "say it with `--error \"…\"`".to_owned(),
        SessionError::Value { field, .. } => match *field {
            "confidence_score" | "step_name" => "memctl session log --help".to_owned(),
            _ => "memctl session progress --help".to_owned(),
        },
    }
}

fn of_store(error: &store::Error) -> (Kind, Option<String>) {
    use store::Error;
    match error {
        Error::NotFound { kind, similar, .. } => {
            let list = kind.map_or("memctl memory status".to_owned(), |kind| {
                format!("memctl memory list {}", kind.plural())
            });
            let hint = match similar.first() {
                Some(id) => format!("did you mean `{id}`? see: {list}"),
                None => list,
            };
            (Kind::Usage, Some(hint))
        }
        Error::Ambiguous { examples, .. } => (
            Kind::Usage,
            Some(format!("type more of it: {}", examples.join(", "))),
        ),
        Error::NoOrigin { known, .. } => (
            Kind::Usage,
            Some(if known.is_empty() {
                "memctl sync".to_owned()
            } else {
                format!("type more of it: {}", known.join(", "))
            }),
        ),
        Error::Exists { .. } => (Kind::Usage, None),
        Error::OutOfScope { .. } => (
            Kind::Scope,
            Some("give a `--scope` that covers it".to_owned()),
        ),
        Error::Damaged(_) => (Kind::Store, Some("memctl doctor --repair".to_owned())),
        Error::NewerFormat { .. } => (
            Kind::Store,
            Some("install a newer memctl; this one only reads it".to_owned()),
        ),
        Error::Locked { .. } => (
            Kind::Store,
            Some("wait for the other process, or end it".to_owned()),
        ),
        Error::Changing { .. } => (
            Kind::Store,
            Some("type it again when the other program has saved the file".to_owned()),
        ),
        Error::Io { path, .. } => (
            Kind::Store,
            Some(format!(
                "check the rights and the free space of `{}`",
                path.display()
            )),
        ),
        Error::Disabled { .. } => (Kind::Usage, Some("memctl memory enable".to_owned())),
        Error::NoPrimary { .. } => (
            Kind::Remote,
            Some(
                "set MEMCTL_DATABASE_URL, or make it a memory of files: memctl remote leave".into(),
            ),
        ),
        Error::Primary(source) => match source.downcast_ref::<remote::Error>() {
            Some(error) => of_remote(error),
            None => (Kind::Remote, None),
        },
        Error::Serialize(_) | Error::Unjoinable { .. } | Error::InvalidJournal { .. } => {
            (Kind::Store, None)
        }
    }
}

fn of_remote(error: &remote::Error) -> (Kind, Option<String>) {
    use remote::Error;
    let remote = |hint: &str| (Kind::Remote, Some(hint.to_owned()));
    match error {
        Error::Url(_) => (
            Kind::Usage,
            Some(
                "it looks like postgres://user:password@host:5432/name?sslmode=verify-full".into(),
            ),
        ),
        Error::Name(_) => (
            Kind::Usage,
            Some("memctl remote user add ann --url ADMIN_URL".into()),
        ),
        Error::UserId(_) => (
            Kind::Usage,
            Some("memctl remote status shows a login's".into()),
        ),
        Error::Exists(_) => (
            Kind::Usage,
            Some("choose another name, or remove it on the server: drop role".into()),
        ),
        Error::Tls { .. } => remote(
            "turn TLS on at the server (ssl = on), and name who signed its certificate in the URL: \
             sslrootcert=FILE",
        ),
        Error::Login { refusal, .. } => remote(of_refusal(*refusal)),
        Error::Locked { holder, .. } => remote(&match holder {
            Some(holder) => format!(
                "wait for it, or end it as an administrator: select pg_terminate_backend({})",
                holder.process
            ),
            None => "wait for the other session, or end it".to_owned(),
        }),
        Error::Unreachable { .. } => remote("check host and port, and that the server runs"),
        Error::Refused { .. } => remote("check user and password in the URL"),
        Error::Unsuitable { .. } => remote("install PostgreSQL 15 and pgvector 0.8 or newer"),
        Error::Foreign(_) | Error::Older { .. } => remote("memctl remote init --url ADMIN_URL"),
        Error::Taken { .. } => remote("use a database of its own, or rename what is there"),
        Error::Changed { .. } | Error::Newer { .. } => remote("install the newest memctl"),
        Error::Statement { denied: true, .. } => {
            remote("give a URL whose role has the right: that of an administrator, or of a user")
        }
        Error::Statement { .. } | Error::Vectors { .. } => (Kind::Remote, None),
        Error::Unsafe { .. } => remote("memctl remote check"),
        Error::Nobody(_) => remote("memctl remote user add NAME --url ADMIN_URL"),
        Error::OtherDatabase { .. } => remote(
            "set MEMCTL_DATABASE_URL to the URL that it was joined with, or: memctl remote leave",
        ),
        Error::NoMemory(name) => remote(&format!(
            "memctl remote leave, then memctl remote join {name}"
        )),
        Error::MemoryName(_) => (Kind::Usage, Some("memctl remote join support".into())),
        Error::Joined { .. } => (Kind::Usage, Some("memctl remote leave".into())),
        Error::BothFull { .. } => (
            Kind::Usage,
            Some(
                "take it over where there is none: memctl remote join NAME --root NEW_DIRECTORY"
                    .into(),
            ),
        ),
        Error::Shared(_) => (Kind::Usage, Some("choose another name".into())),
        Error::SharedAs(own) => (
            Kind::Usage,
            Some(format!("keep the name: memctl remote join {own}")),
        ),
        Error::Busy { .. } => remote("wait for the other program, or end it"),
        Error::Overtaken(_) => remote("do it again"),
        Error::Unfit { .. } => (Kind::Usage, Some("memctl doctor".into())),
        Error::NoAnswer => remote("check that the server runs: memctl remote check"),
        Error::Shrinks(_) => (
            Kind::Usage,
            Some("memctl sync --dry-run, then memctl sync --yes".into()),
        ),
        Error::Store(error) => of_store(error),
    }
}

/// The remedy where a login was refused on this side.
fn of_refusal(refusal: remote::Refusal) -> &'static str {
    use remote::Refusal;
    match refusal {
        Refusal::ClearText => {
            "use scram-sha-256 in pg_hba.conf of the server; to send it all the same, say so in the URL: \
             sslmode=verify-full&require_auth=password"
        }
        Refusal::Md5 => {
            "use scram-sha-256 on the server (password_encryption, then set the password again); to go on \
             all the same, say so in the URL: sslmode=verify-full&require_auth=md5"
        }
        Refusal::Unbound => {
            "connect to the server itself; where a pooler ends TLS, trust it by its certificate: \
             sslmode=verify-full&channel_binding=prefer"
        }
        Refusal::Unproven => {
            "set a password method (scram-sha-256) in pg_hba.conf of the server; to trust it all the same, \
             say so in the URL: require_auth=none"
        }
        Refusal::Scram => "add scram-sha-256 to `require_auth` in the URL",
        Refusal::Unknown => "use scram-sha-256 in pg_hba.conf of the server",
        Refusal::Rounds | Refusal::Garbled => "check host and port: this is no sound server",
    }
}

fn of_skill(error: &skill::Error) -> (Kind, Option<String>) {
    let hint = match error {
        skill::Error::NotFound { candidates, .. } => match candidates.first() {
            Some(candidate) => format!("memctl run {candidate}"),
            None => "ls skills/*/".to_owned(),
        },
        skill::Error::NoDirectory { .. } => "memctl init".to_owned(),
        skill::Error::Outside { .. } => "replace the link by the file itself".to_owned(),
        _ => "memctl doctor".to_owned(),
    };
    (Kind::Usage, Some(hint))
}

fn of_llm(error: &llm::Error) -> (Kind, Option<String>) {
    let hint = match error {
        llm::Error::Config { .. } => "memctl config show".to_owned(),
        llm::Error::Auth { .. } => "check the key in the environment".to_owned(),
        llm::Error::SpendLimit { .. } => {
            "raise the limit at the provider, or use another `--model`".to_owned()
        }
        llm::Error::RateLimited { .. } | llm::Error::Overloaded { .. } => {
            "try again later, or use another `--model`".to_owned()
        }
        llm::Error::Unreachable { .. } => {
            "check the connection, or run with `--model offline`".to_owned()
        }
        llm::Error::TimedOut { .. } => "raise it: MEMCTL_LLM_TIMEOUT_SECONDS=300".to_owned(),
        llm::Error::Truncated { .. } => "raise it: MEMCTL_LLM_MAX_OUTPUT_TOKENS=16000".to_owned(),
        _ => return (Kind::Model, None),
    };
    (Kind::Model, Some(hint))
}
