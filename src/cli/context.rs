//! Context of every command: settings, workspace, clock and user, and the switches that turn memory off.
//!
//! The switches are the marker file in the memory directory, for every user of it; the list of users there, for one of
//! them; and `MEMCTL_MEMORY=off`, for one process. Each of them is enough.

use std::path::{Path, PathBuf};

use memctl_files::{Directory, named, process};

use crate::cli::arguments::Global;
use crate::cli::config::{self, Config, Environment, Places};
use crate::cli::connections::Connection;
use crate::cli::output::Printer;
use crate::host::Asks;
use crate::model::error::{Explain, Explanation, Kind, UserError};
use crate::model::{
    InvalidSkillPath, Scope, SkillPath, USER_STORE, Viewer, split_origin, with_origin,
};
use crate::store::skill::Skills;
use crate::store::workspace::{Settings, Workspace};
use crate::store::{AuditContext, Here, Project, Scoped, disabled_users, is_disabled};

#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) environment: Environment,
    pub(crate) places: Places,
    pub(crate) printer: Printer,
    /// Reason why memory is switched off; `None` while it is on.
    pub(crate) off: Option<Off>,
    /// Options of the command line.
    pub(crate) global: Global,
    /// `true` if the environment may name the store: not of another workspace than that of the command line.
    pub(crate) may_choose: bool,
    pub(crate) connection: Connection,
    /// Words of the command in audit events and the undo journal.
    why: String,
    /// Name of the change that the command makes.
    change: String,
}

impl Context {
    pub(crate) fn new(
        environment: Environment,
        global: Global,
        printer: Printer,
        why: String,
        connection: Connection,
    ) -> Self {
        let places = Places::find(&environment, global.root.as_deref());
        Self {
            why,
            change: AuditContext::change_name(&random()),
            off: Off::of(&environment, &places, global.user.as_deref()),
            places,
            global,
            may_choose: true,
            connection,
            environment,
            printer,
        }
    }

    /// Returns this context for one more change, which is undone by itself.
    pub(crate) fn for_next_change(&self) -> Self {
        Self {
            change: AuditContext::change_name(&random()),
            ..self.clone()
        }
    }

    /// Returns `true` if the command is one of these, or of their group.
    pub(crate) fn is_one_of(&self, commands: &[&str]) -> bool {
        commands.iter().any(|command| {
            let rest = self.why.strip_prefix(command);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        })
    }

    /// Opens the store for the caller's scope and user, at the current time.
    pub(crate) fn store(&self, config: &Config) -> Result<Scoped, UserError> {
        let viewer = config.viewer()?;
        let change = self.change.clone();
        let audit_context = audit_context(&self.environment, &viewer, &self.why, change);
        let scope = self
            .global
            .scope
            .as_deref()
            .map_or(Scope::All, Scope::parse);
        let store = Scoped::new(&self.places.memory, scope)
            .at(self.environment.now)
            .seen_by(viewer)
            .acting(audit_context)
            .trusting(self.environment.approvals(&self.places.memory));
        if self.shows_files() || matches!(self.off, Some(Off::Marker(_) | Off::Variable(_))) {
            // No file of the memory is read while it is off.
            return Ok(store);
        }
        let store = self.connection.back(&self.environment, store)?;
        if store.primary().is_some() {
            let embedder = config::embedder(&self.environment, config)?;
            self.connection.embed_with(embedder);
        }
        Ok(store)
    }

    /// Loads the settings and prints their warnings.
    pub(crate) fn config(&self) -> Result<Config, UserError> {
        self.config_with(None)
    }

    fn config_with(&self, model: Option<&str>) -> Result<Config, UserError> {
        let config = self.config_quietly(model)?;
        let warnings = config.warnings.iter();
        warnings.for_each(|warning| self.printer.warn(warning));
        Ok(config)
    }

    /// Loads the settings without printing their warnings. `model` is the model of the command line.
    pub(crate) fn config_quietly(&self, model: Option<&str>) -> Result<Config, UserError> {
        let given = [
            ("model", model),
            ("user", self.global.user.as_deref()),
            ("store", self.global.store.as_deref()),
        ];
        let flags = given
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?.to_owned())));
        let flags: Vec<_> = flags.collect();
        Config::load(&self.environment, &self.places.memory, &flags)
    }

    /// Returns `true` if the command line asks for the files, also for those of a memory in a database: reads answer
    /// from the copy as it is, and writes fail.
    pub(crate) fn shows_files(&self) -> bool {
        self.global.store.as_deref() == Some("json")
    }

    /// Returns `true` if the command creates a memory where there is none.
    pub(crate) fn begins_memory(&self) -> bool {
        self.is_one_of(CREATE) && !self.is_one_of(ASK)
    }

    /// Returns the context of the user store, without scope or user, for the commands that change it.
    pub(crate) fn of_user_store(&self) -> Result<Self, UserError> {
        let places = Places::of_user(&self.environment).ok_or_else(|| {
            UserError::usage("there is no data directory for a user store", "set HOME")
        })?;
        Ok(Self {
            off: Off::of(&self.environment, &places, None),
            places,
            global: Global {
                verbose: self.global.verbose,
                ..Global::default()
            },
            may_choose: false,
            ..self.clone()
        })
    }

    /// Returns the id of a changed record as its user knows it. `given` was typed for it.
    pub(crate) fn id_of(&self, given: &str, id: String) -> String {
        match split_origin(given) {
            (_, Some(USER_STORE)) => {
                self.note_change_of_user_store();
                with_origin(&id, USER_STORE)
            }
            _ => id,
        }
    }

    /// Says how to revert a change of the user store. The last change of this workspace is another.
    pub(crate) fn note_change_of_user_store(&self) {
        self.printer.note("to undo it: memctl undo --user-store");
    }

    /// Opens the workspace over the files as they are.
    pub(crate) fn workspace_over_files(&self, model: Option<&str>) -> Result<Workspace, UserError> {
        let config = self.config_with(model)?;
        if self.global.verbose {
            let (memory, skills) = (self.places.memory.display(), self.places.skills.display());
            self.printer
                .note(&format!("memory: {memory}\nskills: {skills}"));
        }
        // Hooks read these, and have nobody to tell about a wrong value.
        config.parsed::<Asks>("learning.ask")?;
        for name in ["learning.chat", "memory.user_store"] {
            config.parsed::<bool>(name)?;
        }
        Ok(Workspace {
            store: self.store(&config)?,
            skills_dir: self.places.skills.clone(),
            settings: Settings {
                rules_tokens: config.parsed("prompt.rules_tokens")?,
                procedures_tokens: config.parsed("prompt.procedures_tokens")?,
                max_output_tokens: config.parsed("llm.max_output_tokens")?,
                min_similarity: config.parsed("offline.min_similarity")?,
                reflect_prompt: self.prompt("reflect.md"),
                past_session_prompt: self.prompt("past_session.md"),
                person: self.environment.person(),
                judge_prompt: self.prompt("judge.md"),
                export_tests: config.parsed("tests.export")?,
                task_days: config.parsed("memory.task_days")?,
            },
            providers: config::providers(&self.environment, &config)?,
            spare_dir: self.environment.temp_dir.clone(),
            group_commit: std::sync::Arc::default(),
            seen_notes: std::sync::Arc::default(),
            now: self.environment.now,
            random,
        })
    }

    /// Returns `true` if there is a memory here: a directory, or one of a database.
    pub(crate) fn has_memory(&self) -> bool {
        Directory::at(&self.places.memory).is_there()
    }

    /// Fails if there is no memory here, and says how to begin one. Anything else in its place, such as a link, is for
    /// the store to refuse.
    pub(crate) fn needs_memory(&self) -> Result<(), UserError> {
        if named::link_metadata(&self.places.memory).is_ok() {
            return Ok(());
        }
        let path = self.places.memory.display();
        let message = format!("no workspace found at `{path}`");
        Err(UserError::usage(message, "memctl init, or memctl setup"))
    }

    /// Reads the path of a skill. A name without its domain is told those that there are.
    pub(crate) fn skill(&self, given: &str) -> Result<SkillPath, UserError> {
        given.parse().map_err(|error: InvalidSkillPath| {
            let skills = Skills::open(&self.places.skills).and_then(|skills| skills.list());
            let skills = skills.map(|listing| listing.skills).unwrap_or_default();
            let of_name = skills.iter().map(ToString::to_string);
            let meant = of_name.filter(|skill| skill.rsplit('/').next() == Some(given));
            let meant: Vec<String> = meant.collect();
            match meant.join("` or `") {
                none if none.is_empty() => error.into(),
                meant => UserError::from(error).with_hint(format!("did you mean `{meant}`?")),
            }
        })
    }

    /// Returns a prompt that replaces the built-in one.
    fn prompt(&self, name: &str) -> Option<String> {
        let (text, is_ignored) = config::prompt(&self.environment, &self.places.memory, name);
        if is_ignored {
            let file = self.places.memory.join("prompts").join(name);
            let file = file.display();
            let warning = format!("`{file}` is ignored until you run `memctl trust`");
            self.printer.warn(&warning);
        }
        text
    }

    /// Returns the session of a command: from the flag, else from the variable `MEMCTL_SESSION`.
    pub(crate) fn session(&self, given: Option<String>) -> Option<String> {
        given.or_else(|| self.environment.var("MEMCTL_SESSION"))
    }

    /// Directory of the project: the one that holds the memory.
    pub(crate) fn project(&self) -> &Path {
        self.places.memory.parent().unwrap_or(&self.places.memory)
    }

    /// Name of the project: as git says, else that of the directory of the memory, else of this one.
    pub(crate) fn project_name(&self) -> Option<String> {
        let project = self.git_project();
        self.here(project.as_ref()).project_name()
    }

    /// Returns the project of the working directory, as git says; `None` without a repository.
    pub(crate) fn git_project(&self) -> Option<Project> {
        let environment = &self.environment;
        let project = Project::of(&environment.current_dir, environment.home.as_deref())?;
        Some(project.identified(&self.places.memory))
    }

    /// Returns the place that this program runs in.
    pub(crate) fn here<'a>(&'a self, project: Option<&'a Project>) -> Here<'a> {
        Here {
            directory: Some(&self.environment.current_dir),
            root: Some(self.project()),
            project,
            ..Here::default()
        }
    }

    /// Returns `true` if a person at a terminal can answer questions.
    pub(crate) fn is_interactive(&self) -> bool {
        use std::io::IsTerminal as _;
        !self.printer.is_json() && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }
}

/// Returns a random UUID.
pub(crate) fn random() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// Returns the audit context of a command: user, command and time. A secret in its arguments is redacted.
pub(crate) fn audit_context(
    environment: &Environment,
    viewer: &Viewer,
    why: &str,
    change: String,
) -> AuditContext {
    let user = viewer.user_id().map(str::to_owned);
    // A process without a login still has a user id.
    let who = user
        .or_else(|| environment.login())
        .unwrap_or_else(process::user);
    let at = environment
        .now
        .to_rfc3339_opts(chrono::SecondsFormat::Micros, true);
    AuditContext {
        who,
        why: memctl_redact::redact(why).text.into_owned(),
        at,
        change,
    }
}

/// Commands that create a memory where there is none.
const CREATE: &[&str] = &[
    "run", "correct", "accept", "reject", "record", "learn", "lesson", "serve", "session",
    "memory add", "memory import", "mcp",
];
/// Commands of these groups that only read.
const ASK: &[&str] = &["lesson list", "session list", "session show"];

/// Variable that switches memory off for one process.
const VARIABLE: &str = "MEMCTL_MEMORY";

/// Reason why memory is off.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Off {
    /// The marker file at this path.
    #[error("memory is disabled by `{}`", .0.display())]
    Marker(PathBuf),
    /// The environment variable, with its value.
    #[error("memory is disabled by `MEMCTL_MEMORY={0}`")]
    Variable(String),
    /// The list of users, with the current one.
    #[error("memory is disabled for the user `{}`", .0.escape_debug())]
    User(String),
}

impl Explain for Off {
    fn explain(&self) -> Explanation {
        (Kind::Usage, Some(self.hint()))
    }
}

impl Off {
    /// Returns the reason why memory is off; `None` while it is on. An unknown value of the
    /// variable switches it off too: the user meant something, and unwanted writes cannot be
    /// undone.
    /// `user` is the user of the command line.
    pub(crate) fn of(
        environment: &Environment,
        places: &Places,
        user: Option<&str>,
    ) -> Option<Self> {
        let value = environment.var(VARIABLE).unwrap_or_default();
        let on = ["", "on", "1", "true", "yes"];
        if !on.contains(&value.trim().to_lowercase().as_str()) {
            return Some(Self::Variable(value));
        }
        let memory = Directory::at(&places.memory);
        if is_disabled(&memory) {
            return Some(Self::Marker(places.memory.join("disabled")));
        }
        // The store refuses users while the list cannot be read.
        let users = disabled_users(&memory).unwrap_or_default();
        if users.is_empty() {
            return None;
        }
        let flags = user.map(|user| ("user", user.to_owned()));
        let config = Config::load(environment, &places.memory, flags.as_slice()).ok()?;
        let viewer = config.viewer().ok()?;
        let user = viewer.user_id()?;
        users.into_iter().find(|name| name == user).map(Self::User)
    }

    /// Returns the way to switch memory on again.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::Marker(_) => "memctl memory enable".to_owned(),
            Self::User(user) => format!("memctl memory enable --user {user}"),
            Self::Variable(_) => format!("unset {VARIABLE}, or set it to `on`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn off_by_one_of_two_is_off() {
        let home = tempfile::tempdir().unwrap();
        let off = |value: &str| {
            let vars = [(VARIABLE, value), ("AGENTURA_KNOWLEDGE_DIR", "m")];
            let environment = Environment::fixed(home.path(), home.path(), &vars);
            Off::of(&environment, &Places::find(&environment, None), None)
        };
        for on in ["", "on", "1", "TRUE", "yes"] {
            assert_eq!(off(on), None, "{on}");
        }
        for word in ["off", "0", "false", "no", "nonsense"] {
            assert_eq!(off(word), Some(Off::Variable(word.to_owned())));
        }
        Scoped::new(home.path().join("m"), Scope::All)
            .disable()
            .unwrap();
        assert!(matches!(off("on"), Some(Off::Marker(_))));
        assert!(matches!(off("off"), Some(Off::Variable(_))));
    }
}
