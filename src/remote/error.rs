//! Errors of the shared store, each with its hint.
//!
//! No variant holds a URL. A database is named by host, port and name, without user and password.

use std::fmt;

use crate::model::error::{Explain, Explanation, Kind};
use crate::store;

use super::locks::Shrinking;
use super::login_guard::Refusal;

/// Error of an operation on the shared store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Invalid URL or unsupported option.
    #[error("invalid database URL: {0}")]
    Url(String),
    /// The connection cannot be secured.
    #[error("no secure connection to `{database}`: {reason}")]
    Tls {
        /// Host, port and name.
        database: String,
        /// Reason of the failure.
        reason: String,
    },
    /// No server answers.
    #[error("cannot reach `{database}`: {reason}")]
    Unreachable {
        /// Host, port and name.
        database: String,
        /// Message of the operating system.
        reason: String,
    },
    /// The server rejects the login.
    #[error("`{database}` refuses the login: {reason}")]
    Refused {
        /// Host, port and name.
        database: String,
        /// Message of the server.
        reason: String,
    },
    /// The server asks for a login that would reveal the password, or that does not authenticate
    /// the server.
    #[error("`{database}` {refusal}")]
    Login {
        /// Host, port and name.
        database: String,
        /// Refused login method.
        refusal: Refusal,
    },
    /// Another session holds a lock past the time limit.
    #[error("{doing}: {} holds a lock on it", holder.as_ref().map_or_else(|| "another session".to_owned(), ToString::to_string))]
    Locked {
        /// Failed step.
        doing: String,
        /// Session that holds the lock; `None` if unknown.
        holder: Option<Holder>,
    },
    /// The server is too old or lacks a required feature.
    #[error("`{database}` cannot be used: {reason}")]
    Unsuitable {
        /// Host, port and name.
        database: String,
        /// Missing requirement.
        reason: String,
    },
    /// The database has no schema of memctl.
    #[error("`{0}` has no memctl schema")]
    Foreign(String),
    /// An object of another program uses a required name.
    #[error("`{object}` exists and belongs to another program: {reason}; nothing was changed")]
    Taken {
        /// Schema, table or function.
        object: String,
        /// Difference from the expected object.
        reason: String,
    },
    /// An applied migration differs from the one in this program.
    #[error("the migration {version} `{name}` was applied with different SQL")]
    Changed {
        /// Version number.
        version: i32,
        /// Name of the migration.
        name: String,
    },
    /// The schema is newer than this program.
    #[error("`{database}` has the schema {found}; this memctl knows {known}")]
    Newer {
        /// Host, port and name.
        database: String,
        /// Schema version of the database.
        found: i32,
        /// Newest version that this program knows.
        known: i32,
    },
    /// Migrations are missing.
    #[error("`{database}` has the schema {found}; this memctl needs {known}")]
    Older {
        /// Host, port and name.
        database: String,
        /// Schema version of the database.
        found: i32,
        /// Version that this program needs.
        known: i32,
    },
    /// Invalid login name.
    #[error(
        "`{}` cannot be the name of a user: allowed are up to 40 of a–z, 0–9 and `_`, a letter first",
        .0.escape_debug()
    )]
    Name(String),
    /// Invalid user id.
    #[error("`{}` is not a user id: it has the form `2f1c…-…` of a UUID", .0.escape_debug())]
    UserId(String),
    /// The login exists already.
    #[error("the login `{0}` exists already")]
    Exists(String),
    /// A statement failed.
    #[error("{doing}: {message}")]
    Statement {
        /// Failed step.
        doing: String,
        /// Message of the server.
        message: String,
        /// `true` if the role lacks a privilege.
        denied: bool,
    },
    /// A session lost its prepared statements: its connection is shared.
    #[error("{doing}: the connection goes through a pooler in transaction mode")]
    Pooled {
        /// Failed step.
        doing: String,
    },
    /// The isolation check failed.
    #[error("`{database}` does not isolate users, so nothing was sent: {reason}")]
    Unsafe {
        /// Host, port and name.
        database: String,
        /// Failed checks.
        reason: String,
    },
    /// The operation would remove more than a tenth of the records.
    #[error("{0}: nothing was changed")]
    Shrinks(Shrinking),
    /// Embedding failed.
    #[error("cannot create vectors: {reason}")]
    Vectors {
        /// Message of the embedder.
        reason: String,
    },
    /// The login is not mapped to a user.
    #[error("this login is not mapped to a user in `{0}`")]
    Nobody(String),
    /// The directory is a copy of a memory in another database.
    #[error("`{shown}` is not the database of the memory `{origin}`")]
    OtherDatabase {
        /// Host, port and name of the given database.
        shown: String,
        /// Name of the memory.
        origin: String,
    },
    /// The database has no memory of this name.
    #[error("memory `{0}` not found in the database")]
    NoMemory(String),
    /// Invalid memory name.
    #[error("`{}` cannot be the name of a memory: allowed are up to 64 letters, digits, `.`, `_` and `-`", .0.escape_debug())]
    MemoryName(String),
    /// The directory is already a copy of a different memory.
    #[error("this memory is already stored in `{shown}` as `{origin}`")]
    Joined {
        /// Host, port and name of that database.
        shown: String,
        /// Name of that memory.
        origin: String,
    },
    /// The directory and the memory in the database both have records.
    #[error(
        "`{origin}` is there, and this memory has {records} records of its own: nothing was changed"
    )]
    BothFull {
        /// Name of the memory in the database.
        origin: String,
        /// Number of records in the directory.
        records: u64,
    },
    /// The name belongs to a workspace that pushes its files.
    #[error("`{0}` is the name of a workspace that shares its own files")]
    Shared(String),
    /// This workspace pushes its files under another name.
    #[error("this workspace shares its files as `{0}`")]
    SharedAs(String),
    /// Another writer holds the write lock past the time limit.
    #[error("another program has been writing to `{origin}` for {waited_ms} ms")]
    Busy {
        /// Name of the memory.
        origin: String,
        /// Time waited, in milliseconds.
        waited_ms: u128,
    },
    /// Another writer stored records during this turn.
    #[error("another program wrote to `{0}` at the same time: nothing was stored")]
    Overtaken(String),
    /// A record that cannot be stored as a row.
    #[error("{kind} `{}` cannot be stored in a database: its id must consist of letters, digits, `.`, `_` and `-`, and its text must not contain NUL", id.escape_debug())]
    Unfit {
        /// Record kind.
        kind: crate::model::Kind,
        /// Record id.
        id: String,
    },
    /// The database did not answer within the time limit.
    #[error("the database does not answer")]
    NoAnswer,
    /// Error of the local store.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// Session that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Role that logged in.
    pub role: String,
    /// Process id on the server.
    pub process: i32,
    /// Locked table, or the lock type.
    pub object: String,
    /// Lock mode as the server names it.
    pub mode: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            role,
            process,
            object,
            mode,
        } = self;
        write!(f, "`{role}` (process {process}, {mode} of {object})")
    }
}

impl Explain for Error {
    fn explain(&self) -> Explanation {
        let remote = |hint: &str| (Kind::Remote, Some(hint.to_owned()));
        match self {
            Self::Url(_) => (
                Kind::Input,
                Some(
                    "write it as postgres://user:password@host:5432/name?sslmode=verify-full"
                        .into(),
                ),
            ),
            Self::Name(_) => (
                Kind::Input,
                Some("memctl remote user add ann --url ADMIN_URL".into()),
            ),
            Self::UserId(_) => (
                Kind::Input,
                Some("memctl remote status shows the id of a login".into()),
            ),
            Self::Exists(_) => (
                Kind::Input,
                Some("choose another name, or remove it on the server: drop role".into()),
            ),
            Self::Tls { .. } => remote(
                "enable TLS on the server (ssl = on), and give the issuer of its certificate in the URL: \
                 sslrootcert=FILE",
            ),
            Self::Login { refusal, .. } => remote(of_refusal(*refusal)),
            Self::Locked { holder, .. } => remote(&match holder {
                Some(holder) => format!(
                    "wait for that session, or end it as an administrator: select pg_terminate_backend({})",
                    holder.process
                ),
                None => "wait for the other session, or end it".to_owned(),
            }),
            Self::Unreachable { .. } => remote("check host and port, and that the server runs"),
            Self::Refused { .. } => remote("check user and password in the URL"),
            Self::Unsuitable { .. } => remote("install PostgreSQL 15 and pgvector 0.8 or newer"),
            Self::Foreign(_) | Self::Older { .. } => remote("memctl remote init --url ADMIN_URL"),
            Self::Taken { .. } => remote("use a separate database, or rename the existing object"),
            Self::Changed { .. } | Self::Newer { .. } => remote("install the newest memctl"),
            Self::Pooled { .. } => remote(
                "use the pooler's session mode, or connect to the server itself: memctl remote check",
            ),
            Self::Statement { denied: true, .. } => remote(
                "use the URL of an administrator, or of a user, whose role has the privilege",
            ),
            Self::Statement { .. } | Self::Vectors { .. } => (Kind::Remote, None),
            Self::Unsafe { .. } => remote("memctl remote check"),
            Self::Nobody(_) => remote("memctl remote user add NAME --url ADMIN_URL"),
            Self::OtherDatabase { .. } => remote(
                "set MEMCTL_DATABASE_URL to the URL used for `remote join`, or: memctl remote leave",
            ),
            Self::NoMemory(name) => remote(&format!(
                "memctl remote leave, then memctl remote join {name}"
            )),
            Self::MemoryName(_) => (Kind::Input, Some("memctl remote join support".into())),
            Self::Joined { .. } => (Kind::Usage, Some("memctl remote leave".into())),
            Self::BothFull { .. } => (
                Kind::Input,
                Some(
                    "join from an empty directory: memctl remote join NAME --root NEW_DIRECTORY"
                        .into(),
                ),
            ),
            Self::Shared(_) => (Kind::Input, Some("choose another name".into())),
            Self::SharedAs(own) => (
                Kind::Input,
                Some(format!("keep the name: memctl remote join {own}")),
            ),
            Self::Busy { .. } => remote("wait for the other program, or end it"),
            Self::Overtaken(_) => remote("run the command again"),
            Self::Unfit { .. } => (Kind::Input, Some("memctl doctor".into())),
            Self::NoAnswer => remote("check that the server runs: memctl remote check"),
            Self::Shrinks(_) => (
                Kind::Usage,
                Some("memctl sync --dry-run, then memctl sync --yes".into()),
            ),
            Self::Store(error) => error.explain(),
        }
    }
}

/// Returns the hint for a login that this client refused.
fn of_refusal(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::ClearText => {
            "use scram-sha-256 in pg_hba.conf of the server; to send it nevertheless, add to the URL: \
             sslmode=verify-full&require_auth=password"
        }
        Refusal::Md5 => {
            "use scram-sha-256 on the server (password_encryption, then set the password again); to go on \
             nevertheless, add to the URL: sslmode=verify-full&require_auth=md5"
        }
        Refusal::Unbound => {
            "connect to the server itself; where a pooler ends TLS, trust it by its certificate: \
             sslmode=verify-full&channel_binding=prefer"
        }
        Refusal::Unproven => {
            "set a password method (scram-sha-256) in pg_hba.conf of the server; to trust it nevertheless, \
             add to the URL: require_auth=none"
        }
        Refusal::Scram => "add scram-sha-256 to `require_auth` in the URL",
        Refusal::Unknown => "use scram-sha-256 in pg_hba.conf of the server",
        Refusal::Rounds | Refusal::Garbled => {
            "check host and port: the server does not follow the PostgreSQL protocol"
        }
    }
}

/// Error text with all causes, on one line.
pub(super) fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.contains(&said) {
            text.extend([": ", &said]);
        }
        next = cause.source();
    }
    text
}
