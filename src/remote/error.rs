//! Errors of the shared store, each with its hint.
//!
//! No variant holds a URL. A database is named by host, port and name, without user and password.

use crate::model::error::{Explain, Explanation, Kind};
use crate::store;

use super::login_guard::Refusal;
use super::sync::Shrinking;

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
    #[error("{doing}: another session holds a lock on it")]
    Locked {
        /// Failed step.
        doing: String,
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
    /// The operation would remove more than a tenth of the records.
    #[error("{0}: nothing was changed")]
    Shrinks(Shrinking),
    /// The login is not mapped to a user.
    #[error("this login is not mapped to a user in `{0}`")]
    Nobody(String),
    /// The database did not answer within the time limit.
    #[error("the database does not answer")]
    NoAnswer,
    /// Anything else that stops an operation: its kind, what is wrong, and the way out.
    #[error("{1}")]
    Stopped(Kind, String, String),
    /// Error of the local store.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Error {
    /// Error that a person at the database can help with.
    pub(super) fn stopped(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Stopped(Kind::Remote, message.into(), hint.into())
    }

    /// Error of what was given.
    pub(super) fn input(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Stopped(Kind::Input, message.into(), hint.into())
    }
}

impl Explain for Error {
    fn explain(&self) -> Explanation {
        let hint = match self {
            Self::Url(_) => {
                let form =
                    "write it as postgres://user:password@host:5432/name?sslmode=verify-full";
                return (Kind::Input, Some(form.to_owned()));
            }
            Self::Shrinks(_) => {
                let hint = "memctl sync --dry-run, then memctl sync --yes";
                return (Kind::Usage, Some(hint.to_owned()));
            }
            Self::Stopped(kind, _, hint) => return (*kind, Some(hint.clone())),
            Self::Store(error) => return error.explain(),
            Self::Statement { denied: false, .. } => return (Kind::Remote, None),
            Self::Tls { .. } => {
                "enable TLS on the server (ssl = on), and give the issuer of its certificate in the URL: \
                 sslrootcert=FILE"
            }
            Self::Login { refusal, .. } => of_refusal(*refusal),
            Self::Locked { .. } => {
                "wait for that session, or find and end it as an administrator: select pid, usename, mode, \
                 relation::regclass from pg_locks join pg_stat_activity using (pid); select \
                 pg_terminate_backend(PID)"
            }
            Self::Unreachable { .. } => "check host and port, and that the server runs",
            Self::Refused { .. } => "check user and password in the URL",
            Self::Foreign(_) => "memctl remote init --url ADMIN_URL",
            Self::Taken { .. } => "use a separate database, or rename the existing object",
            Self::Pooled { .. } => {
                "use the pooler's session mode, or connect to the server itself: memctl remote check"
            }
            Self::Statement { denied: true, .. } => {
                "use the URL of an administrator, or of a user, whose role has the privilege"
            }
            Self::Nobody(_) => "memctl remote user add NAME --url ADMIN_URL",
            Self::NoAnswer => "check that the server runs: memctl remote check",
        };
        (Kind::Remote, Some(hint.to_owned()))
    }
}

/// Returns the way out of a refused login.
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
