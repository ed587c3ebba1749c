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

/// Error for users and programs.
#[derive(Debug)]
pub struct UserError {
    /// Kind, which decides the exit code.
    pub kind: Kind,
    /// Message, on one line.
    pub message: String,
    /// Next command or action; `None` if there is none.
    pub hint: Option<String>,
}

/// Document of a failed command.
#[derive(Serialize, schemars::JsonSchema)]
pub struct ErrorDocument<'a> {
    error: ErrorFields<'a>,
}

/// Error as programs read it.
#[derive(Serialize, schemars::JsonSchema)]
struct ErrorFields<'a> {
    /// Kind, which decides the exit code.
    kind: &'a str,
    /// Message, on one line.
    message: &'a str,
    /// Next command or action; null if there is none.
    hint: Option<&'a str>,
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
        let error = ErrorFields {
            kind: self.kind.name(),
            message: &self.message,
            hint: self.hint.as_deref(),
        };
        json!(ErrorDocument { error })
    }
}

impl<E: Explain> From<E> for UserError {
    fn from(error: E) -> Self {
        let (kind, hint) = match refused(&error) {
            Some(refused) => of_refused(refused),
            None => error.explain(),
        };
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

/// Finds a refused file in the error chain: a link, or another file that is not regular.
fn refused<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Refused> {
    chain(error)
        .filter_map(|cause| cause.downcast_ref())
        .find_map(Refused::in_error)
}

fn of_refused(refused: &Refused) -> Explanation {
    let kind = match refused.reason {
        Reason::Special => Kind::Input,
        _ => Kind::Store,
    };
    (kind, Some(refused.hint()))
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
mod tests;
