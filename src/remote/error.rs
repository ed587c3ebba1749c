//! Errors of the shared store, each with its hint.
//!
//! No variant holds a URL. A database is named by host, port and name, without user and password.

use std::fmt;

use crate::model::error::{Explain, Explanation, Kind};
use crate::store;

/// Error of an operation on the shared store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No server answers at this database (host, port and name), for this reason.
    #[error("cannot reach `{0}`: {1}")]
    Unreachable(String, String),
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
    /// The database has no schema of memctl.
    #[error("`{0}` has no memctl schema")]
    Foreign(String),
    /// The operation would remove more than a tenth of the records.
    #[error("{0}: nothing was changed")]
    Shrinks(Shrinking),
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

    /// Invalid URL or unsupported option.
    pub(super) fn url(reason: &str) -> Self {
        Self::input(
            format!("invalid database URL: {reason}"),
            "write it as postgres://user:password@host:5432/name?sslmode=verify-full",
        )
    }

    /// The connection cannot be secured.
    pub(super) fn tls(database: &str, reason: &str) -> Self {
        Self::stopped(
            format!("no secure connection to `{database}`: {reason}"),
            "enable TLS on the server (ssl = on), and give the issuer of its certificate in the URL: \
             sslrootcert=FILE",
        )
    }

    /// An object of another program uses a required name.
    pub(super) fn taken(object: &str, reason: &str) -> Self {
        Self::stopped(
            format!(
                "`{object}` exists and belongs to another program: {reason}; nothing was changed"
            ),
            "use a separate database, or rename the existing object",
        )
    }

    /// The server asks for a login over a plain connection that would reveal the password, or that does
    /// not authenticate the server.
    pub(super) fn refused(database: &str, refusal: Refusal) -> Self {
        let hint = match refusal {
            Refusal::PasswordAsked => {
                "use scram-sha-256 on the server: in pg_hba.conf, and in password_encryption before the \
                 password is set again"
            }
            Refusal::Unproven => {
                "use scram-sha-256 in pg_hba.conf of the server, or leave the password out of the URL"
            }
            Refusal::Garbled => "check host and port",
        };
        Self::stopped(format!("`{database}` {refusal}"), hint)
    }

    /// The server does not bind the login to the channel; it asks for the password, or for nothing, or an
    /// attacker relays it.
    pub(super) fn unbound(database: &str) -> Self {
        Self::stopped(
            format!(
                "`{database}` does not bind the login to the encrypted channel; the password was not sent"
            ),
            "use scram-sha-256 on the server, and connect to the server itself; where a pooler ends TLS, trust \
             it by its certificate: sslmode=verify-full&channel_binding=prefer",
        )
    }
}

impl From<Error> for store::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Store(error) => error,
            error => Self::Primary(Box::new(error)),
        }
    }
}

impl Explain for Error {
    fn explain(&self) -> Explanation {
        let hint = match self {
            Self::Shrinks(_) => {
                let hint = "memctl sync --dry-run, then memctl sync --yes";
                return (Kind::Usage, Some(hint.to_owned()));
            }
            Self::Stopped(kind, _, hint) => return (*kind, Some(hint.clone())),
            Self::Store(error) => return error.explain(),
            Self::Statement { denied: false, .. } => return (Kind::Remote, None),
            Self::Statement { denied: true, .. } => {
                "use the URL of an administrator, or of a user, whose role has the privilege"
            }
            Self::Unreachable(..) => "check host and port, and that the server runs",
            Self::Foreign(_) => "memctl remote init --url ADMIN_URL",
            Self::NoAnswer => "check that the server runs: memctl remote check",
        };
        (Kind::Remote, Some(hint.to_owned()))
    }
}

/// Number of records that a plan would remove from one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shrinking {
    /// Records to remove.
    pub going: u64,
    /// Records in total.
    pub of: u64,
    /// `true` for the shared store, `false` for the local store.
    pub is_remote: bool,
}

impl Shrinking {
    /// Returns `true` if the plan removes more than a tenth.
    pub(super) fn is_much(self) -> bool {
        self.going * 10 > self.of
    }
}

impl fmt::Display for Shrinking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.is_remote {
            "this workspace shares would go from the shared store"
        } else {
            "others share would go from this memory"
        };
        write!(f, "{} of {} records that {place}", self.going, self.of)
    }
}

/// Reason why a login was ended before anything of the password was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// A hash by MD5 can replace the password.
    #[error("asks for the password in clear text or as an MD5 hash; it was not sent")]
    PasswordAsked,
    #[error("asks for no password, and so has not proven that it is the right server")]
    Unproven,
    #[error("does not follow the PostgreSQL protocol")]
    Garbled,
}
