//! Explanations of errors of libraries, and of the crates of this workspace.

use std::io;

use super::{Explain, Explanation, Kind, of_io};

impl Explain for memctl_llm::Error {
    fn explain(&self) -> Explanation {
        let hint = match self {
            Self::Config { .. } => "memctl config show".to_owned(),
            Self::Auth { .. } => "check the key in the environment".to_owned(),
            Self::SpendLimit { .. } => {
                "raise the limit at the provider, or use another `--model`".to_owned()
            }
            Self::RateLimited { .. } | Self::Overloaded { .. } => {
                "try again later, or use another `--model`".to_owned()
            }
            Self::Unreachable { .. } => {
                "check the connection, or run with `--model offline`".to_owned()
            }
            Self::TimedOut { .. } => {
                "raise the time limit: MEMCTL_LLM_TIMEOUT_SECONDS=300".to_owned()
            }
            Self::Truncated { .. } => {
                "raise the token limit: MEMCTL_LLM_MAX_OUTPUT_TOKENS=16000".to_owned()
            }
            _ => return (Kind::Model, None),
        };
        (Kind::Model, Some(hint))
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
