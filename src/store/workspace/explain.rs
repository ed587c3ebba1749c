//! Explanations of the errors of verbs.

use memctl_search::embedder;

use crate::model::error::{Explain, Explanation, Kind, of_io};
use crate::store::workspace::{BlockError, Error, SessionError};

/// Hint for a runtime that cannot be started.
const RUNTIME: &str = "check the limits on threads and open files: ulimit -a";

impl Explain for Error {
    fn explain(&self) -> Explanation {
        let input = |hint: &str| (Kind::Input, Some(hint.to_owned()));
        match self {
            Self::Store(error) => error.explain(),
            Self::Skill(error) => error.explain(),
            Self::Llm(error) => error.explain(),
            Self::Session(error) => error.explain(),
            Self::Block(error) => error.explain(),
            Self::Refused(kind, _, hint) => (*kind, Some(hint.clone())),
            Self::Asked { execution, source } => recorded(execution, source),
            Self::SkillPath(error) => error.explain(),
            Self::ModelName { .. } => input("memctl config show"),
            Self::NotJson { path, .. } => input(&format!(
                "check it with: python3 -m json.tool {}",
                path.display()
            )),
            Self::Embed(_) => (Kind::Model, None),
            Self::Runtime { .. } => (Kind::Io, Some(RUNTIME.to_owned())),
            Self::VectorSize { .. } => (Kind::Model, Some("memctl index --rebuild".to_owned())),
            Self::Index => (Kind::Store, Some("memctl index".to_owned())),
            Self::Unreadable { source, .. } => (of_io(source), None),
            Self::EmptyCorrection => input("say what should change: --correction \"…\""),
            Self::NotHeard { .. } => input("memctl correct --help lists the fields of `--heard`"),
            Self::OtherSkill {
                actual, execution, ..
            } => input(&format!(
                "memctl correct {actual} --execution-id {execution} --correction \"…\""
            )),
            Self::NoId(_) => input("memctl list executions"),
            Self::Forgotten { kind, .. } => (
                Kind::NotFound,
                Some(format!("memctl list {}", kind.nouns())),
            ),
            Self::BadVector { .. } => input("memctl config show lists the embedder"),
            Self::BadMemory { .. } => {
                input("memctl memory add --help lists the fields of each type")
            }
            Self::Suspicious { .. } => {
                input("only a user can add it: memctl memory add --type TYPE --content \"…\"")
            }
            Self::NotStored { source, .. } => {
                let (kind, hint) = source.explain();
                let is_remote = kind == Kind::Remote;
                (if is_remote { kind } else { Kind::Store }, hint)
            }
        }
    }
}

/// Explains a failed call of a model whose attempt is recorded.
fn recorded(execution: &str, source: &memctl_llm::Error) -> Explanation {
    let (kind, hint) = source.explain();
    let recorded = format!("the attempt is recorded: memctl show {execution}");
    let hint = hint.map_or(recorded.clone(), |hint| format!("{hint}; {recorded}"));
    (kind, Some(hint))
}

impl Explain for BlockError {
    fn explain(&self) -> Explanation {
        let (kind, hint) = match self {
            Self::NoFile => (
                Kind::Usage,
                "memctl memory export --format agents-md --output AGENTS.md",
            ),
            Self::NotOfWorkspace { .. } => (
                Kind::Input,
                "memctl memory export --format agents-md --output AGENTS.md",
            ),
            Self::Misplaced { .. } => (
                Kind::Input,
                "leave one `<!-- memctl:begin … -->` and one `<!-- memctl:end -->` behind it, or none",
            ),
            Self::Edited { .. } => (
                Kind::Input,
                "see the difference with `--dry-run`, take it over with `memctl edit`, then \
                 replace the block with `--force`",
            ),
        };
        (kind, Some(hint.to_owned()))
    }
}

impl Explain for SessionError {
    fn explain(&self) -> Explanation {
        let hint = match self {
            Self::Move { id, allowed, .. } => {
                let next = allowed.first().map_or("…", |state| state.as_str());
                format!("memctl session progress {id} --status {next}")
            }
            Self::Ended { .. } => "memctl session start".to_owned(),
            Self::Missing { .. } => "add `--error \"…\"`".to_owned(),
            Self::Value { field, .. } => match *field {
                "confidence_score" | "step_name" => "memctl session log --help".to_owned(),
                _ => "memctl session progress --help".to_owned(),
            },
        };
        (Kind::Input, Some(hint))
    }
}

/// Errors of the embedder have the same kinds alone as within an engine error.
impl Explain for embedder::Error {
    fn explain(&self) -> Explanation {
        match self {
            Self::Embed(_) => (Kind::Model, None),
            Self::Llm(error) => error.explain(),
            Self::VectorSize { .. } => (Kind::Model, Some("memctl index --rebuild".to_owned())),
            Self::Runtime { .. } => (Kind::Io, Some(RUNTIME.to_owned())),
        }
    }
}
