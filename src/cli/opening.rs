//! Opening of a workspace for a command, and the choice between files and a database for its memory.
//!
//! The choice itself is data ([`remote::Choice`]). A command that chooses joins the memory, or says why its records
//! are in files. Hooks choose nothing: they answer from the files.

use crate::cli::connections::{database_url, no_url};
use crate::cli::context::{Context, random};
use crate::cli::ending::wait;
use crate::cli::output::plural;
use crate::model::error::UserError;
use crate::model::{Scope, USER_STORE, split_origin};
use crate::remote::{self, Choice, ChosenStore, StoreSetting, Undecided};
use crate::store::Scoped;
use crate::store::workspace::Workspace;
use crate::upkeep::StatusReport;
use crate::upkeep::merge::git::{self, ATTRIBUTES};

/// Command that prepares a database.
const INIT: &str = "memctl remote init --url ADMIN_URL";
/// Commands that choose the store by themselves, or work on the files as files.
const THEMSELVES: &[&str] = &[
    "sync", "remote", "doctor", "config", "trust", "index", "hint", "watch",
];

impl Context {
    /// Opens the workspace and applies what other copies of the memory have written. `model` is the
    /// model of the command line.
    pub(crate) fn workspace(&self, model: Option<&str>) -> Result<Workspace, UserError> {
        if self.off.is_none() && self.may_choose && !self.is_one_of(THEMSELVES) {
            settle(self)?;
        }
        let workspace = self.workspace_over_files(model)?;
        if self.off.is_none() && !(self.shows_files() && workspace.store.is_apart()?) {
            workspace.store.catch_up()?;
        }
        Ok(workspace)
    }

    /// Opens the workspace with the user store beside it, for commands that read for the user or
    /// their agents.
    pub(crate) fn workspace_of_user(&self, model: Option<&str>) -> Result<Workspace, UserError> {
        let mut workspace = self.workspace(model)?;
        if self.off.is_none() {
            let config = self.config_quietly(None)?;
            workspace.store = config.with_user_store(workspace.store, &self.environment);
        }
        Ok(workspace)
    }

    /// Opens the workspace that holds the record of an id: this one, or the user store for
    /// `REFL-001@user`. Returns it with the id in it.
    pub(crate) fn workspace_of_id(&self, id: &str) -> Result<(Workspace, String), UserError> {
        match split_origin(id) {
            (own, Some(USER_STORE)) => Ok((self.of_user_store()?.workspace(None)?, own.to_owned())),
            _ => Ok((self.workspace(None)?, id.to_owned())),
        }
    }
}

/// Chooses the store of the memory that a command works on; `None` if it is chosen already, or nothing names a
/// database.
fn choose(context: &Context, asks_anew: bool) -> Result<Option<Choice>, UserError> {
    let environment = &context.environment;
    let setting = setting(context)?;
    let store = whole(context);
    let is_chosen = match setting {
        StoreSetting::Json => true,
        StoreSetting::Auto => store.primary_name()?.is_some() || store.is_shared(),
        StoreSetting::Postgres => store.primary_name()?.is_some(),
    };
    if is_chosen {
        return Ok(None);
    }
    let Some((variable, url)) = database_url(environment) else {
        return match setting {
            StoreSetting::Postgres => Err(no_url(
                "`store` is `postgres`, and no variable names a database",
            )),
            _ => Ok(None),
        };
    };
    let undecided = Undecided {
        store: &store,
        setting,
        begins: context.begins_memory(),
        is_of_git: git::shares_memory(context.project()),
        project: &|| context.project_name(),
        state_dir: environment.state_dir.as_deref(),
        now: environment.now,
        asks_anew,
    };
    Ok(wait(undecided.choose(variable, &url))??)
}

/// Chooses the store of the memory that a command works on, joins the database if it is that, and otherwise says why
/// the records are in files.
fn settle(context: &Context) -> Result<(), UserError> {
    let Some(choice) = choose(context, false)? else {
        return Ok(());
    };
    match &choice.store {
        ChosenStore::Database => return join(context, &choice),
        ChosenStore::FilesWithRecords => context.printer.note(&reason(&choice)),
        ChosenStore::FilesNotForeign | ChosenStore::FilesNotUnusable(_) if choice.is_news => {
            context.printer.warn(&reason(&choice));
        }
        _ => {}
    }
    Ok(())
}

/// Says in a status why a memory is in files although the environment names a database, or that it will not be.
pub(crate) fn explain(context: &Context, report: &mut StatusReport) -> Result<(), UserError> {
    let is_named = database_url(&context.environment).is_some();
    if is_named && setting(context)? == StoreSetting::Json {
        report.store_reason += "; the setting `store` is `json`";
    } else if is_named && let Some(choice) = choose(context, true)? {
        if choice.store == ChosenStore::DatabaseLater {
            report.store = "PgStore";
        }
        report.store_reason = reason(&choice);
    }
    Ok(())
}

/// Returns the reason for a store, one sentence.
fn reason(choice: &Choice) -> String {
    let (variable, name, database) = (choice.variable, &choice.name, choice.address.shown());
    match &choice.store {
        ChosenStore::FilesNotForeign => format!(
            "`{variable}` names {database}, which has no memctl schema, so records are kept in files: if it is \
             meant for memctl, `{INIT}`"
        ),
        ChosenStore::FilesNotUnusable(reason) => format!(
            "`{variable}` names a database that cannot be used, so records are kept in files: {reason}"
        ),
        ChosenStore::FilesOfGit => format!(
            "git shares these files (`{ATTRIBUTES}`), and `{variable}` names {database}: `memctl remote join {name}` \
             moves the records there"
        ),
        ChosenStore::FilesWithRecords | ChosenStore::Database => format!(
            "this memory is in files, and `{variable}` names {database}: `memctl sync` shares it, `memctl remote join \
             {name}` moves it, `store = \"json\"` keeps it in files without this line"
        ),
        ChosenStore::DatabaseLater => format!(
            "the first record begins the memory `{name}` in {database}, since `{variable}` names it"
        ),
    }
}

/// Joins the memory of the database, and says so. Without a demand for the database, a failure leaves files.
fn join(context: &Context, choice: &Choice) -> Result<(), UserError> {
    let (variable, name, database) = (choice.variable, &choice.name, choice.address.shown());
    let store = whole(context);
    let (random, on) = (&mut random, &mut |_| {});
    let joined = remote::join(&choice.address, &store, name, random, on);
    match wait(joined)? {
        Ok(joined) => {
            context.printer.note(&format!(
                "this memory is kept in {database} as `{name}`, since `{variable}` names it; `memctl remote leave` \
                 makes it files again, `--store json` keeps a new one in files"
            ));
            if joined.created {
                return Ok(());
            }
            // The directory joined unasked, and a project of the same name may be a stranger.
            let store = context.connection.back(&context.environment, store)?;
            store.catch_up()?;
            let count = plural(store.record_count()?, "record");
            let begun_by: String = joined.begun_by.chars().take(8).collect();
            context.printer.note(&format!(
                "`{name}` has {count} already, and was begun by the workspace `{begun_by}`; if that is another \
                 project: `memctl remote leave`, `memctl memory purge`, `memctl remote join ANOTHER_NAME`"
            ));
        }
        Err(error) if choice.setting == StoreSetting::Auto => context.printer.warn(&format!(
            "records are kept in files, not in the database that `{variable}` names: {error}"
        )),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

fn setting(context: &Context) -> Result<StoreSetting, UserError> {
    context.config_quietly(None)?.parsed("store")
}

/// Returns the memory of a command, with access to all of it.
fn whole(context: &Context) -> Scoped {
    Scoped::new(&context.places.memory, Scope::All).at(context.environment.now)
}
