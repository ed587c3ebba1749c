//! Explanations of the errors of verbs.

use memctl_search::embedder;

use crate::model::error::{Explain, Explanation, Kind, of_io};
use crate::store::workspace::Error;

/// Hint for a runtime that cannot be started.
const RUNTIME: &str = "check the limits on threads and open files: ulimit -a";

impl Explain for Error {
    fn explain(&self) -> Explanation {
        let input = |hint: &str| (Kind::Input, Some(hint.to_owned()));
        match self {
            Self::Store(error) => error.explain(),
            Self::Skill(error) => error.explain(),
            Self::Llm(error) => error.explain(),
            Self::Refused(kind, _, hint) => (*kind, Some(hint.clone())),
            Self::Asked { execution, source } => recorded(execution, source),
            Self::SkillPath(error) => error.explain(),
            Self::ModelName { .. } => input("memctl config show"),
            Self::NotJson { path, .. } => input(&format!(
                "check it with: python3 -m json.tool {}",
                path.display()
            )),
            Self::Embedder(error) => error.explain(),
            Self::Index => (Kind::Store, Some("memctl index".to_owned())),
            Self::Unreadable { source, .. } => {
                let is_missing = source.kind() == std::io::ErrorKind::NotFound;
                let hint = is_missing.then(|| "name a file or a folder that is there".to_owned());
                (of_io(source), hint)
            }
            Self::EmptyCorrection => input("say what should change: --correction \"…\""),
            Self::NotHeard { .. } => input("memctl correct --help lists the fields of `--heard`"),
            Self::OtherSkill {
                actual, execution, ..
            } => input(&format!(
                "memctl correct {actual} --execution-id {execution} --correction \"…\""
            )),
            Self::NoId(_) => {
                input("memctl list shows the ids; memctl search finds one by its words")
            }
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
