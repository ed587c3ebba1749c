//! Conversion of typed errors to user errors: decides the kind, the exit code and the hint.
//!
//! A message is a lower-case fragment with the object in backticks; the hint is the next command to
//! type. All interfaces use the same message; an interface without a command line replaces the
//! hint.
//!
//! Only error types that implement [`Explain`] convert, so every type has a decided kind; errors of
//! libraries and of the crates of this workspace implement it here. A failure that no rule covers is
//! [`Kind::Internal`].

use std::error::Error;
use std::io;

use memctl_files::{Reason, Refused};
use memctl_search::embedder;
use serde::Serialize;
use serde_json::json;

use crate::model::words::names;

/// Hint of internal errors.
const REPORT: &str = "this is a defect of memctl: report the output of `memctl --version`, the command and this \
     message (SECURITY.md says where)";

names! {
    /// Error kinds with the exit codes in `docs/reference/exit-codes.md`. A check that found something is no error: its
    /// report exits with 1.
    Kind {
        /// Unknown or contradictory commands and options, or a missing precondition of a command.
        Usage = "usage",
        /// Invalid value, file or setting.
        Input = "input",
        /// Missing record, skill or file.
        NotFound = "not_found",
        /// Failure of the store.
        Store = "store",
        /// Failure of the model.
        Model = "model",
        /// Not permitted for this scope or user.
        Permission = "permission",
        /// Failure of the shared store.
        Remote = "remote",
        /// Failure of the operating system outside of the store.
        Io = "io",
        /// Defect of this program.
        Internal = "internal",
        /// Interrupt by the user.
        Interrupted = "interrupted",
    }
}

impl Kind {
    /// Returns the exit code.
    pub const fn code(self) -> u8 {
        match self {
            Self::Usage | Self::Input | Self::NotFound => 2,
            Self::Store => 3,
            Self::Model => 4,
            Self::Permission => 5,
            Self::Remote => 6,
            Self::Internal => 70,
            Self::Io => 74,
            Self::Interrupted => 130,
        }
    }
}

/// Kind and hint of an error.
pub(crate) type Explanation = (Kind, Option<String>);

/// Error with a decided kind.
pub trait Explain: Error + Send + Sync + 'static {
    /// Returns the kind and the hint.
    fn explain(&self) -> (Kind, Option<String>);
}

/// Error as programs read it.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "ErrorFields")]
pub struct UserError {
    /// Kind, which decides the exit code.
    #[schemars(with = "String")]
    pub kind: Kind,
    /// Message, on one line.
    pub message: String,
    /// Next command or action; null if there is none.
    pub hint: Option<String>,
}

/// Document of a failed command.
#[derive(Serialize, schemars::JsonSchema)]
pub struct ErrorDocument<'a> {
    error: &'a UserError,
}

impl UserError {
    /// Creates an error.
    pub fn new(kind: Kind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: Some(hint.into()),
        }
    }

    /// Creates an error for wrong usage.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message, hint)
    }

    /// Creates an error for an invalid value.
    pub fn input(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Kind::Input, message, hint)
    }

    /// Creates an error for a defect of this program. The hint says what to report.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Kind::Internal, message, REPORT)
    }

    /// Creates the error for an interrupt.
    pub fn interrupted() -> Self {
        Self {
            kind: Kind::Interrupted,
            message: "interrupted".to_owned(),
            hint: None,
        }
    }

    /// Replaces the hint.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// Returns the document that `--json` prints.
    pub fn json(&self) -> serde_json::Value {
        json!(ErrorDocument { error: self })
    }
}

impl<E: Explain> From<E> for UserError {
    fn from(error: E) -> Self {
        let (kind, hint) = refused(&error).unwrap_or_else(|| error.explain());
        Self {
            kind,
            message: message(&error),
            hint: hint.or_else(|| (kind == Kind::Internal).then(|| REPORT.to_owned())),
        }
    }
}

/// Joins the messages of the error chain on one line, without repetitions.
pub(crate) fn message(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    for part in chain(error).map(ToString::to_string) {
        if text.is_empty() {
            text = part;
        } else if !text.contains(&part) {
            text.extend([": ", &part]);
        }
    }
    text
}

/// Iterates over the error and its sources.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// Explains a refused file in the error chain: a link, or another file that is not regular.
fn refused(error: &(dyn Error + 'static)) -> Option<Explanation> {
    let mut causes = chain(error).filter_map(|cause| cause.downcast_ref());
    let refused = causes.find_map(Refused::in_error)?;
    let kind = match refused.reason {
        Reason::Special => Kind::Input,
        _ => Kind::Store,
    };
    Some((kind, Some(refused.hint())))
}

/// Returns the kind of an error of the operating system, outside of the store.
pub(crate) fn of_io(error: &io::Error) -> Kind {
    use io::ErrorKind as Of;
    if let Some(inner) = error.get_ref()
        && inner.is::<Refused>()
    {
        return Kind::Input;
    }
    match error.kind() {
        Of::NotFound => Kind::NotFound,
        Of::InvalidData
        | Of::InvalidInput
        | Of::InvalidFilename
        | Of::IsADirectory
        | Of::NotADirectory => Kind::Input,
        _ => Kind::Io,
    }
}

impl Explain for memctl_llm::Error {
    fn explain(&self) -> Explanation {
        use memctl_llm::ErrorKind as Of;
        let hint = match self.kind {
            Of::Config => "memctl config show",
            Of::Auth => "check the key in the environment",
            Of::SpendLimit => "raise the limit at the provider, or use another `--model`",
            Of::RateLimited | Of::Overloaded => "try again later, or use another `--model`",
            Of::Unreachable => "check the connection, or run with `--model offline`",
            Of::TimedOut => "raise the time limit: MEMCTL_LLM_TIMEOUT_SECONDS=300",
            Of::Truncated => "raise the token limit: MEMCTL_LLM_MAX_OUTPUT_TOKENS=16000",
            _ => return (Kind::Model, None),
        };
        (Kind::Model, Some(hint.to_owned()))
    }
}

impl Explain for embedder::Error {
    fn explain(&self) -> Explanation {
        match self {
            Self::Load(_) | Self::Run(_) | Self::NoVector => (Kind::Model, None),
            Self::Llm(error) => error.explain(),
            Self::VectorSize { .. } => (Kind::Model, Some("memctl index --rebuild".to_owned())),
            Self::Runtime { .. } => {
                let hint = "check the limits on threads and open files: ulimit -a";
                (Kind::Io, Some(hint.to_owned()))
            }
        }
    }
}

impl Explain for io::Error {
    fn explain(&self) -> Explanation {
        (of_io(self), None)
    }
}

/// Own reports always serialize, so a failure is a defect.
impl Explain for serde_json::Error {
    fn explain(&self) -> Explanation {
        (Kind::Internal, None)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::store::{Error, skill};
    use crate::{model, remote};

    fn os(kind: io::ErrorKind) -> io::Error {
        io::Error::from(kind)
    }

    fn path() -> PathBuf {
        PathBuf::from("a.json")
    }

    fn json_error() -> serde_json::Error {
        serde_json::from_str::<u8>("{").unwrap_err()
    }

    #[track_caller]
    fn check(error: impl Into<UserError>, kind: Kind, code: u8) {
        let error = error.into();
        assert_eq!((error.kind, error.kind.code()), (kind, code), "{error:?}");
        assert!(!error.message.is_empty());
    }

    #[test]
    fn kinds_have_the_documented_names_and_codes() {
        let table = [
            (Kind::Usage, "usage", 2),
            (Kind::Input, "input", 2),
            (Kind::NotFound, "not_found", 2),
            (Kind::Store, "store", 3),
            (Kind::Model, "model", 4),
            (Kind::Permission, "permission", 5),
            (Kind::Remote, "remote", 6),
            (Kind::Internal, "internal", 70),
            (Kind::Io, "io", 74),
            (Kind::Interrupted, "interrupted", 130),
        ];
        let page = include_str!("../../docs/reference/exit-codes.md");
        for (kind, name, code) in table {
            assert_eq!((kind.name(), kind.code()), (name, code));
            let row = page.lines().find(|line| {
                line.starts_with(&format!("| {code} |")) && line.contains(&format!("`{name}`"))
            });
            assert!(row.is_some(), "the page has no row for {code} `{name}`");
        }
    }

    #[test]
    fn engine_errors_have_their_kinds() {
        check(Error::usage("x", "y"), Kind::Usage, 2);
        check(Error::NoId("x".to_owned()), Kind::Input, 2);
        check(Error::not_json(&path(), &json_error()), Kind::Input, 2);
        check(Error::missing("x", "y"), Kind::NotFound, 2);
        let forgotten = Error::Forgotten {
            id: "REFL-1".to_owned(),
            kind: model::Kind::Reflexion,
            day: "2026-02-20".to_owned(),
        };
        check(forgotten, Kind::NotFound, 2);
        check(Error::Index, Kind::Store, 3);
        check(Error::from(embedder::Error::NoVector), Kind::Model, 4);
        let runtime = embedder::Error::Runtime(os(io::ErrorKind::OutOfMemory));
        check(Error::from(runtime), Kind::Io, 74);
        // A failed store keeps the kind `store` for every cause, except that of a remote store.
        let not_stored = |source| Error::NotStored {
            file: path(),
            source: Box::new(source),
        };
        let exists = Error::Exists("EXEC-1".to_owned());
        check(not_stored(exists), Kind::Store, 3);
        let no_primary = Error::NoPrimary(path());
        check(not_stored(no_primary), Kind::Remote, 6);
    }

    #[test]
    fn unreadable_files_have_the_kind_of_their_cause() {
        let read = |kind| Error::Unreadable {
            path: path(),
            source: os(kind),
        };
        check(read(io::ErrorKind::NotFound), Kind::NotFound, 2);
        check(read(io::ErrorKind::InvalidData), Kind::Input, 2);
        check(read(io::ErrorKind::IsADirectory), Kind::Input, 2);
        check(read(io::ErrorKind::PermissionDenied), Kind::Io, 74);
        check(os(io::ErrorKind::StorageFull), Kind::Io, 74);
    }

    #[test]
    fn store_remote_skill_and_model_errors_have_their_kinds() {
        let missing = Error::not_found(model::Kind::Reflexion, "REFL-9");
        check(missing, Kind::NotFound, 2);
        let outside = Error::OutOfScope("hr/x".to_owned());
        check(outside, Kind::Permission, 5);
        let failed = Error::Io {
            action: "write",
            path: path(),
            source: os(io::ErrorKind::StorageFull),
        };
        check(failed, Kind::Store, 3);
        let disabled = Error::Disabled(path());
        check(disabled, Kind::Usage, 2);
        let disabled = Error::DisabledForUser("ada".to_owned());
        check(disabled, Kind::Permission, 5);
        check(
            Error::from(remote::Address::parse("no").unwrap_err()),
            Kind::Input,
            2,
        );
        check(remote::Error::NoAnswer, Kind::Remote, 6);
        let no_skill = Error::NoSkill {
            skill: "hr/x".parse().unwrap(),
            similar: None,
        };
        check(no_skill, Kind::NotFound, 2);
        let reason = Reason::Link;
        let link = Refused {
            path: path(),
            reason,
        };
        check(skill::refused(&link), Kind::Input, 2);
        let refused = memctl_llm::Error::new(memctl_llm::ErrorKind::Auth, "no".to_owned());
        check(refused, Kind::Model, 4);
    }

    #[test]
    fn internal_error_says_what_to_report() {
        for error in [
            UserError::from(json_error()),
            Error::Serialize(json_error()).into(),
            UserError::internal("x"),
        ] {
            assert_eq!((error.kind, error.kind.code()), (Kind::Internal, 70));
            let hint = error.hint.unwrap();
            assert!(hint.contains("memctl --version"), "{hint}");
            assert!(hint.contains("SECURITY.md"), "{hint}");
        }
    }

    #[test]
    fn message_joins_the_chain_without_repetitions() {
        let error = Error::Unreadable {
            path: path(),
            source: io::Error::other("cause"),
        };
        assert_eq!(message(&error), "cannot read `a.json`: cause");
        let error = Error::Primary(Box::new(io::Error::other("cause")));
        assert_eq!(message(&error), "cause");
    }
}
