//! Explanations of errors of skills, models, settings, agent hosts and the system.

use std::io;

use super::{Explain, Explanation, Kind, of_io};
use crate::arguments::Invalid;
use crate::model::InvalidSkillPath;
use crate::serve::http::{InvalidOrigin, NotListening};
use crate::serve::token::InvalidSecret;
use crate::store::skill;
use crate::upkeep::merge::git;
use crate::{config, host};

impl Explain for skill::Error {
    fn explain(&self) -> Explanation {
        let (kind, hint) = match self {
            Self::NotFound { candidates, .. } => {
                let hint = match candidates.first() {
                    Some(candidate) => format!("memctl run {candidate}"),
                    None => "ls skills/*/".to_owned(),
                };
                (Kind::NotFound, hint)
            }
            Self::NoDirectory { path } => {
                let example = path.join("DOMAIN/SKILL/SKILL.md");
                let hint = format!(
                    "write the instructions of the skill to `{}`; for a coding agent, without \
                     skills: memctl lesson add",
                    example.display()
                );
                (Kind::NotFound, hint)
            }
            Self::Outside { .. } => (
                Kind::Input,
                "replace the link by the file itself".to_owned(),
            ),
            Self::Io { source, .. } => (of_io(source), "memctl doctor".to_owned()),
            Self::NoMetadata { .. } => (
                Kind::Input,
                r"begin the file with: ---\ndescription: what the skill does\n---".to_owned(),
            ),
            Self::Metadata { .. }
            | Self::Role { .. }
            | Self::TooLarge { .. }
            | Self::Link { .. }
            | Self::NotAFile { .. } => (Kind::Input, "memctl doctor".to_owned()),
        };
        (kind, Some(hint))
    }
}

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

impl Explain for config::Error {
    fn explain(&self) -> Explanation {
        match self {
            Self::Store(error) => error.explain(),
            Self::Invalid { .. } => (Kind::Input, Some("memctl config show".to_owned())),
            Self::Unreadable { path, source } => (
                of_io(source),
                Some(format!("repair or remove `{}`", path.display())),
            ),
            Self::NotToml { path, .. } => (
                Kind::Input,
                Some(format!("repair or remove `{}`", path.display())),
            ),
        }
    }
}

impl Explain for host::Error {
    fn explain(&self) -> Explanation {
        let (kind, path) = match self {
            Self::Store(error) => return error.explain(),
            Self::Unreadable { path, source } => (of_io(source), path),
            Self::Invalid { path, .. } | Self::Shape { path, .. } => (Kind::Input, path),
        };
        let hint = format!("repair `{}` and try again", path.display());
        (kind, Some(hint))
    }
}

impl Explain for Invalid {
    fn explain(&self) -> Explanation {
        let hint = match self {
            Self::Empty { name } => format!("give `{name}` a value"),
            Self::TooLong { name, most, .. } => format!("`{name}` may have at most {most} bytes"),
            Self::OutOfRange { bounds, .. } => {
                format!("give a number from {} to {}", bounds.least, bounds.most)
            }
        };
        (Kind::Input, Some(hint))
    }
}

impl Explain for InvalidSkillPath {
    fn explain(&self) -> Explanation {
        (Kind::Input, Some("memctl run hr/resume-screen".to_owned()))
    }
}

impl Explain for InvalidOrigin {
    fn explain(&self) -> Explanation {
        (Kind::Input, Some("memctl serve --help".to_owned()))
    }
}

impl Explain for NotListening {
    fn explain(&self) -> Explanation {
        match self {
            Self::NotLoopback(_) => (
                Kind::Usage,
                Some("add `--allow-remote` to serve other machines".to_owned()),
            ),
            Self::Refused { .. } => (Kind::Io, Some("memctl serve --addr 127.0.0.1:0".to_owned())),
        }
    }
}

impl Explain for InvalidSecret {
    fn explain(&self) -> Explanation {
        let kind = match self {
            Self::Store(error) => return error.explain(),
            Self::Unreadable { source, .. } => of_io(source),
            Self::Short { .. } | Self::Long { .. } => Kind::Input,
        };
        (kind, Some("openssl rand -hex 32 > secret.txt".to_owned()))
    }
}

impl Explain for git::Error {
    fn explain(&self) -> Explanation {
        let hint = match self {
            Self::Start(_) => "install git, and check that it is in PATH",
            Self::Failed { .. } | Self::UnknownSide(_) => "git status",
        };
        (Kind::Io, Some(hint.to_owned()))
    }
}

impl Explain for io::Error {
    fn explain(&self) -> Explanation {
        (of_io(self), None)
    }
}

impl Explain for notify::Error {
    fn explain(&self) -> Explanation {
        let hint = "check the limit of watched files: sysctl fs.inotify";
        (Kind::Io, Some(hint.to_owned()))
    }
}

impl Explain for dialoguer::Error {
    fn explain(&self) -> Explanation {
        (
            Kind::Io,
            Some("give the answer as an option; see --help".to_owned()),
        )
    }
}

/// Own reports always serialize, so a failure is a defect.
impl Explain for serde_json::Error {
    fn explain(&self) -> Explanation {
        (Kind::Internal, None)
    }
}
