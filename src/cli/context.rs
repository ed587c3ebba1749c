//! Context of every command: settings, workspace, clock and user.

use std::io::Read as _;
use std::path::Path;

use memctl_files::{decoded, named, process};
use serde_json::value::{RawValue, to_raw_value};

use crate::cli::arguments::Global;
use crate::cli::config::{Config, Environment, Places};
use crate::cli::connections::primary;
use crate::cli::off::Off;
use crate::cli::output::Printer;
use crate::model::error::UserError;
use crate::model::{Scope, USER_STORE, Viewer, split_origin};
use crate::store::workspace::{Error, Settings, Workspace};
use crate::store::{AuditContext, Here, Project, Scoped};

#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) environment: Environment,
    pub(crate) places: Places,
    pub(crate) printer: Printer,
    /// Reason why memory is switched off; `None` while it is on.
    pub(crate) off: Option<Off>,
    /// Scope as given on the command line; `None` without the flag.
    pub(crate) given_scope: Option<String>,
    scope: Scope,
    user: Option<String>,
    /// Store of the command line.
    store: Option<String>,
    /// `false` for another workspace than that of the command line.
    may_choose: bool,
    pub(crate) verbose: bool,
    /// Name of the command in audit events and the undo journal.
    why: String,
    /// Name of the change that the command makes.
    change: String,
}

impl Context {
    pub(crate) fn new(
        environment: Environment,
        global: &Global,
        printer: Printer,
        why: String,
    ) -> Self {
        let places = Places::find(&environment, global.root.as_deref());
        Self {
            why,
            change: AuditContext::change_name(&random()),
            off: Off::of(&environment, &places, global.user.as_deref()),
            places,
            given_scope: global.scope.clone(),
            scope: global.scope.as_deref().map_or(Scope::All, Scope::parse),
            user: global.user.clone(),
            store: global.store.clone(),
            may_choose: true,
            verbose: global.verbose,
            environment,
            printer,
        }
    }

    /// Returns the context for another workspace, without scope or user.
    pub(crate) fn for_workspace(&self, places: Places) -> Self {
        Self {
            off: Off::of(&self.environment, &places, None),
            places,
            given_scope: None,
            scope: Scope::All,
            user: None,
            store: None,
            may_choose: false,
            ..self.clone()
        }
    }

    /// Returns this context for one more change, which is undone by itself.
    pub(crate) fn for_next_change(&self) -> Self {
        Self {
            change: AuditContext::change_name(&random()),
            ..self.clone()
        }
    }

    /// Opens the store for the caller's scope and user, at the current time.
    pub(crate) fn store(&self, config: &Config) -> Result<Scoped, UserError> {
        let viewer = config.viewer()?;
        let audit_context = audit_context(
            &self.environment,
            &viewer,
            self.why.clone(),
            self.change.clone(),
        );
        let store = Scoped::new(&self.places.memory, self.scope.clone());
        let store = store
            .at(self.environment.now)
            .seen_by(viewer)
            .acting(audit_context);
        let store = store.trusting(self.environment.approvals(&self.places.memory));
        if matches!(self.off, Some(Off::Marker(_) | Off::Variable(_))) {
            // No file of the memory is read.
            return Ok(store);
        }
        Ok(match primary(&self.environment, &store)? {
            Some(primary) => store.backed_by(primary),
            None => store,
        })
    }

    /// Returns `true` if the environment may name the store of this workspace.
    pub(crate) const fn may_choose(&self) -> bool {
        self.may_choose
    }

    /// Returns the words of the command.
    pub(crate) fn why(&self) -> &str {
        &self.why
    }

    /// Returns the user of the command line.
    pub(crate) fn given_user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Loads the settings and prints their warnings.
    pub(crate) fn config(&self, flags: &[(&str, String)]) -> Result<Config, UserError> {
        let flags = self.flags(flags);
        let config = Config::load(&self.environment, &self.places.memory, &flags)?;
        for warning in &config.warnings {
            self.printer.warn(warning);
        }
        Ok(config)
    }

    /// Loads the settings without printing their warnings.
    pub(crate) fn config_quietly(&self) -> Result<Config, UserError> {
        let flags = self.flags(&[]);
        Ok(Config::load(
            &self.environment, &self.places.memory, &flags,
        )?)
    }

    fn flags<'a>(&self, given: &[(&'a str, String)]) -> Vec<(&'a str, String)> {
        let user = self.user.iter().map(|user| ("user", user.clone()));
        let store = self.store.iter().map(|store| ("store", store.clone()));
        given.iter().cloned().chain(user).chain(store).collect()
    }

    /// Opens the workspace and applies what other copies of the memory have written. `model` is the
    /// model of the command line.
    pub(crate) fn workspace(&self, model: Option<&str>) -> Result<Workspace, UserError> {
        if self.off.is_none() {
            self.choose_store(&self.config_quietly()?)?;
        }
        let workspace = self.workspace_over_files(model)?;
        if self.off.is_none() {
            workspace.store.catch_up()?;
        }
        Ok(workspace)
    }

    /// Opens the workspace with the user store beside it, for commands that read for the user or
    /// their agents.
    pub(crate) fn workspace_of_user(&self, model: Option<&str>) -> Result<Workspace, UserError> {
        let mut workspace = self.workspace(model)?;
        if self.off.is_none() {
            let config = self.config_quietly()?;
            workspace.store = config.with_user_store(workspace.store, &self.environment);
        }
        Ok(workspace)
    }

    /// Returns the context of the user store, for the commands that change it.
    pub(crate) fn of_user_store(&self) -> Result<Self, UserError> {
        let places = Places::of_user(&self.environment).ok_or_else(|| {
            UserError::usage("there is no data directory for a user store", "set HOME")
        })?;
        Ok(self.for_workspace(places))
    }

    /// Opens the workspace that holds the record of an id: this one, or the user store for
    /// `REFL-001@user`. Returns it with the id in it.
    pub(crate) fn workspace_of_id(&self, id: &str) -> Result<(Workspace, String), UserError> {
        match split_origin(id) {
            (own, Some(USER_STORE)) => Ok((self.of_user_store()?.workspace(None)?, own.to_owned())),
            _ => Ok((self.workspace(None)?, id.to_owned())),
        }
    }

    /// Says how to revert a change of the user store. The last change of this workspace is another.
    pub(crate) fn note_change_of_user_store(&self) {
        self.printer.note("to undo it: memctl undo --user-store");
    }

    /// Opens the workspace over the files as they are.
    pub(crate) fn workspace_over_files(&self, model: Option<&str>) -> Result<Workspace, UserError> {
        let flags: Vec<(&str, String)> =
            model.map(|m| ("model", m.to_owned())).into_iter().collect();
        let config = self.config(&flags)?;
        if self.verbose {
            self.printer
                .note(&format!("memory: {}", self.places.memory.display()));
            self.printer
                .note(&format!("skills: {}", self.places.skills.display()));
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
                person: crate::cli::arguments::person(&self.environment),
                judge_prompt: self.prompt("judge.md"),
                audit_reads: config.parsed("audit.reads")?,
                export_tests: config.parsed("tests.export")?,
                task_days: config.parsed("memory.task_days")?,
            },
            providers: self.providers(&config)?,
            spare_dir: self.environment.temp_dir.clone(),
            group_commit: std::sync::Arc::default(),
            seen_memories: std::sync::Arc::default(),
            now: self.environment.now,
            random,
        })
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

/// Returns the audit context of a command: user, command and time.
pub(crate) fn audit_context(
    environment: &Environment,
    viewer: &Viewer,
    why: String,
    change: String,
) -> AuditContext {
    let names = ["USER", "LOGNAME", "USERNAME"];
    let of_system = || names.into_iter().find_map(|name| environment.var(name));
    let user = viewer.user_id().map(str::to_owned);
    // A process without a login still has a user id.
    AuditContext {
        who: user.or_else(of_system).unwrap_or_else(process::user),
        why,
        at: environment
            .now
            .to_rfc3339_opts(chrono::SecondsFormat::Micros, true),
        change,
    }
}

/// Returns a random UUID.
pub(crate) fn random() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// Maximum size of a text from standard input or a file: 16 MiB.
const MAX_GIVEN: u64 = 16 << 20;

impl Context {
    /// Returns the given text, or standard input for `-`.
    pub(crate) fn text(&self, given: &str) -> Result<String, UserError> {
        if given == "-" {
            self.read(Path::new("-"))
        } else {
            Ok(given.to_owned())
        }
    }

    /// Reads a JSON document from a file, or from standard input for `-`.
    pub(crate) fn json(&self, path: &Path) -> Result<Box<RawValue>, UserError> {
        let text = self.read(path)?;
        serde_json::from_str(text.trim()).map_err(|source| {
            let path = path.to_owned();
            Error::NotJson { path, source }.into()
        })
    }

    /// Reads the input of a skill. Text that does not begin like a JSON document becomes
    /// `{"input": "…"}`, except in a file whose name says that it is JSON.
    pub(crate) fn input(&self, path: &Path) -> Result<Box<RawValue>, UserError> {
        let text = self.read(path)?;
        match serde_json::from_str(text.trim()) {
            Ok(json) => Ok(json),
            Err(_) if is_plain(path, text.trim()) => {
                Ok(to_raw_value(&serde_json::json!({ "input": text.trim() }))?)
            }
            Err(source) => {
                let path = path.to_owned();
                Err(Error::NotJson { path, source }.into())
            }
        }
    }

    /// Reads the text of a file, or of standard input for `-`.
    pub(crate) fn read(&self, path: &Path) -> Result<String, UserError> {
        let unreadable = |source| Error::Unreadable {
            path: path.to_owned(),
            source,
        };
        let mut bytes = Vec::new();
        let limit = MAX_GIVEN + 1;
        if path == Path::new("-") {
            std::io::stdin()
                .lock()
                .take(limit)
                .read_to_end(&mut bytes)
                .map_err(unreadable)?;
        } else {
            let file = named::open(&self.environment.absolute(path)).map_err(unreadable)?;
            file.take(limit)
                .read_to_end(&mut bytes)
                .map_err(unreadable)?;
        }
        if bytes.len() as u64 > MAX_GIVEN {
            return Err(unreadable(invalid("larger than 16 MiB")).into());
        }
        decoded::text(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            unreadable(invalid(&format!("not valid UTF-8 at byte {at}"))).into()
        })
    }
}

/// Returns `true` for words of a person, which no program wrote as JSON.
fn is_plain(path: &Path, text: &str) -> bool {
    let is_json = path
        .extension()
        .is_some_and(|extension| extension == "json");
    !is_json && !text.is_empty() && !text.starts_with(['{', '[', '"'])
}

/// Error about the content of a file that the user named.
fn invalid(reason: &str) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, reason)
}
