//! Explanations of errors of the engine.

use crate::model::SkillPath;
use crate::model::error::{Explain, Explanation, Kind, of_io};
use crate::store::workspace::{BlockError, Error, SessionError};
use memctl_search::embedder;

/// Hint for a runtime that cannot be started.
const RUNTIME: &str = "check the limits on threads and open files: ulimit -a";

impl Explain for Error {
    fn explain(&self) -> Explanation {
        let usage = |hint: &str| (Kind::Usage, Some(hint.to_owned()));
        let input = |hint: &str| (Kind::Input, Some(hint.to_owned()));
        let missing = |hint: &str| (Kind::NotFound, Some(hint.to_owned()));
        match self {
            Self::Store(error) => error.explain(),
            Self::Skill(error) => error.explain(),
            Self::Llm(error) => error.explain(),
            Self::Asked { execution, source } => recorded(execution, source),
            Self::SkillPath(_) => input("memctl run hr/resume-screen"),
            Self::ModelName { .. } => input("memctl config show"),
            Self::NoNearCase { .. } | Self::NoModel { .. } => {
                (Kind::Model, ways_to_an_answer(self))
            }
            Self::NotJson { path, .. } => input(&format!(
                "check it with: python3 -m json.tool {}",
                path.display()
            )),
            Self::Embed(_) => (Kind::Model, None),
            Self::Runtime { .. } => (Kind::Io, Some(RUNTIME.to_owned())),
            Self::VectorSize { .. } => (Kind::Model, Some("memctl index --rebuild".to_owned())),
            Self::Index => (Kind::Store, Some("memctl index".to_owned())),
            Self::Unreadable { source, .. } => (of_io(source), None),
            Self::NoInput(skill) => usage(&format!("memctl run {skill} --input FILE")),
            Self::Session(error) => error.explain(),
            Self::EmptyCorrection => input("say what should change: --correction \"…\""),
            Self::OtherSkill {
                actual, execution, ..
            } => input(&format!(
                "memctl correct {actual} --execution-id {execution} --correction \"…\""
            )),
            Self::NoCase { .. } => missing("memctl test --json lists the cases"),
            Self::NoId(_) => input("memctl list executions"),
            Self::Forgotten { kind, .. } => missing(&format!("memctl list {}", kind.nouns())),
            Self::NothingOpen { open, .. } => (
                Kind::NotFound,
                Some(match open.first() {
                    Some(field) => format!("an open field: --field {field}"),
                    None => "memctl doctor lists open merge conflicts".to_owned(),
                }),
            ),
            Self::NothingToUndo | Self::NoChange(_) => missing("memctl undo --list"),
            Self::NoParent { path } => input(&match path.parent() {
                Some(parent) => format!("mkdir -p {}", parent.display()),
                None => "name another file".to_owned(),
            }),
            Self::NoPath { .. } => input("name a file or a directory that exists"),
            Self::NotUndoable { .. } => input("memctl undo --list"),
            Self::NotApprovable { .. }
            | Self::NotRejectable { .. }
            | Self::NotMergeable { .. }
            | Self::NotARule { .. }
            | Self::NoPatterns { .. }
            | Self::NotHeard { .. }
            | Self::NotEditable { .. } => input(&of_review(self)),
            Self::NotInjected {
                execution,
                injected,
                ..
            } => input(&match injected.first() {
                Some(id) => format!(
                    "memctl reject {execution} --rule {id}; rules that applied: {}",
                    injected.join(", ")
                ),
                None => format!("memctl reject {execution}; no rule applied"),
            }),
            Self::NotPromotable { id, .. } => input(&format!("memctl show {id}")),
            Self::BadField { field, .. } => input(&format!(
                "give it as `--set {field}=VALUE`, in quotation marks for the shell"
            )),
            Self::BadVector { .. } => input("memctl config show lists the embedder"),
            Self::UnknownPrice { .. } => {
                input("limit the calls instead: memctl consolidate --max-calls N")
            }
            Self::BadProcedure { .. } => input(
                "give `{\"status\": \"procedure_learned\", \"data\": {…}}` as the whole document",
            ),
            Self::BadMemory { .. } => {
                input("memctl memory add --help lists the fields of each type")
            }
            Self::Suspicious { .. } => {
                input("only a user can add it: memctl memory add --type TYPE --content \"…\"")
            }
            Self::NotEditableText { .. } => input("edit the file; memctl doctor shows its path"),
            Self::Occupied { .. } => {
                input("choose another path, or replace the file with `--force`")
            }
            Self::Block(error) => error.explain(),
            Self::NeedsDirectory => usage("memctl memory export --format skills --output DIR"),
            Self::NoImport { .. } => input(
                "memctl memory import FILE --from SOURCE; docs/import.md describes the sources",
            ),
            Self::NotStored { source, .. } => {
                let (kind, hint) = source.explain();
                let is_remote = kind == Kind::Remote;
                (if is_remote { kind } else { Kind::Store }, hint)
            }
        }
    }
}

/// Hint for a run that no model answers.
fn ways_to_an_answer(error: &Error) -> Option<String> {
    match error {
        Error::NoNearCase { skill, .. } => Some(format!(
            "add a case to `skills/{skill}/examples/`, lower `offline.min_similarity`, or name a \
             model: memctl run {skill} --model PROVIDER/MODEL"
        )),
        Error::NoModel {
            skill,
            agents,
            replayable,
            ..
        } => Some(ways_to_a_model(skill, agents, *replayable)),
        _ => None,
    }
}

/// Lists the ways to a model, one a line: a program, a key, a server; and the nearest case, where
/// there is one.
fn ways_to_a_model(skill: &SkillPath, agents: &[String], replayable: bool) -> String {
    let mut ways: Vec<String> = agents
        .iter()
        .map(|agent| format!("an installed agent: memctl run {skill} --model '{agent}'"))
        .collect();
    if agents.is_empty() {
        ways.push(format!(
            "an agent's program: memctl run {skill} --model 'exec:claude -p'"
        ));
    }
    ways.push("a key: set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY".to_owned());
    ways.push(
        "a local server: start Ollama (port 11434), or set MEMCTL_LOCAL_BASE_URL to another"
            .to_owned(),
    );
    if replayable {
        ways.push(format!(
            "or replay the nearest case: memctl run {skill} --model offline"
        ));
    }
    format!("choose who answers\n  {}", ways.join("\n  "))
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

/// Hint for a decision that a record does not allow.
fn of_review(error: &Error) -> String {
    match error {
        Error::NotHeard { .. } => "memctl correct --help lists the fields of `--heard`".to_owned(),
        Error::NotApprovable { id, kind } if *kind == crate::model::Kind::Execution => {
            format!("memctl accept {id}")
        }
        Error::NotApprovable { .. } => "memctl list lessons".to_owned(),
        Error::NotRejectable { id, .. } => format!("memctl forget {id}"),
        Error::NotMergeable { .. } | Error::NotARule { .. } => "memctl memory conflicts".to_owned(),
        Error::NoPatterns { id } => format!("memctl approve {id}"),
        Error::NotEditable { id, allowed, .. } => match allowed.first() {
            Some(first) => format!(
                "memctl edit {id} --set {first}=…; these can be edited: {}",
                allowed.join(", ")
            ),
            None => format!("memctl show {id}"),
        },
        _ => "memctl review".to_owned(),
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
