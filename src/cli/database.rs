//! Files or the database of `DATABASE_URL`: which of them keeps a memory.
//!
//! A directory that holds no records yet becomes a copy of a memory in the database, under the name of its
//! project, as `memctl remote join` does it. Records that are in files stay there, and a line says what moves or
//! shares them: nothing of a person's is sent to a database unasked.
//!
//! Many shells have a `DATABASE_URL` of something else. A database without our schema is never touched, and only
//! `memory status` speaks of it. What a database is, is kept for an hour, so that no command waits for one that
//! does not answer. Hooks do not come here: they answer from the files.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use chrono::TimeDelta;
use memctl_files::{hex, named};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::cli::config::{Config, Environment};
use crate::cli::context::{Context, random};
use crate::cli::ending::wait;
use crate::model::error::UserError;
use crate::model::{Kind, Scope};
use crate::remote::{self, Address};
use crate::store::workspace::redacting_writer::write_output;
use crate::store::{Scoped, is_origin};

/// Variables that name the database, in order of precedence.
pub(crate) const DATABASE: [&str; 2] = ["MEMCTL_DATABASE_URL", "DATABASE_URL"];

/// Time for a database to say what it is.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Time for which the answer counts.
const FRESH: TimeDelta = TimeDelta::hours(1);
/// File in the state directory with the answers.
const FILE: &str = "databases.json";
/// Maximum size of that file.
const LONGEST: u64 = 1 << 20;

/// Commands that choose by themselves, or work on the files as files.
const THEMSELVES: [&str; 9] = [
    "sync", "remote", "doctor", "config", "trust", "index", "eval", "hint", "watch",
];
/// Commands that create a memory where there is none.
const CREATE: [&str; 12] = [
    "run", "correct", "accept", "reject", "record", "learn", "lesson", "serve", "session",
    "memory add", "memory import", "mcp",
];

/// Setting `store`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreChoice {
    /// The database if it is ours and no records are in files, else files.
    Auto,
    /// Files.
    Json,
    /// The database, or an error.
    Postgres,
}

impl FromStr for StoreChoice {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "json" => Ok(Self::Json),
            "postgres" => Ok(Self::Postgres),
            _ => Err("it is `auto`, `json` or `postgres`"),
        }
    }
}

/// Relation of a database to this program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
enum Database {
    /// It has our schema, and the login is a user of it.
    Ours,
    /// It has no schema of ours.
    Foreign,
    /// It does not answer, or cannot be used with this login.
    Unusable { reason: String },
}

/// Last known relation of a database, and its time.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Answer {
    at: String,
    #[serde(flatten)]
    database: Database,
    /// `true` once it was ours: its absence is then no matter of another program.
    was_ours: bool,
}

/// Database that the environment names.
struct Named {
    variable: &'static str,
    address: Address,
    /// Name of its answer, without the password.
    key: String,
}

impl Named {
    fn of(environment: &Environment) -> Result<Option<Self>, UserError> {
        let mut names = DATABASE.into_iter();
        let Some((variable, url)) = names.find_map(|name| Some((name, environment.var(name)?)))
        else {
            return Ok(None);
        };
        let address = match Address::parse(&url) {
            Ok(address) => address,
            // A URL of another kind of database is of another program.
            Err(_) if variable == "DATABASE_URL" => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        Ok(Some(Self {
            variable,
            address,
            key: hex(&Sha256::digest(url)),
        }))
    }

    /// Returns what the database is: as it was known within the last hour, or as it says now.
    fn answer(&self, environment: &Environment, is_asked_anew: bool) -> Result<Answer, UserError> {
        let file = environment.state_dir.as_ref().map(|dir| dir.join(FILE));
        let text = file
            .as_ref()
            .and_then(|file| named::read_text(file, LONGEST).ok());
        let text = text.unwrap_or_default();
        let mut answers: BTreeMap<String, Answer> = serde_json::from_str(&text).unwrap_or_default();
        let fresh = |answer: &Answer| {
            let at = chrono::DateTime::parse_from_rfc3339(&answer.at).ok();
            at.is_some_and(|at| (environment.now - at.to_utc()).abs() < FRESH)
        };
        let known = answers.get(&self.key);
        if let Some(known) = known.filter(|known| !is_asked_anew && fresh(known)) {
            return Ok(known.clone());
        }
        let asked = wait(async {
            tokio::time::timeout(ANSWER_WITHIN, remote::is_ours(&self.address)).await
        })?;
        let database = match asked {
            Ok(Ok(true)) => Database::Ours,
            Ok(Ok(false)) => Database::Foreign,
            Ok(Err(error)) => Database::Unusable {
                reason: error.to_string(),
            },
            Err(_) => Database::Unusable {
                reason: format!("no answer within {} s", ANSWER_WITHIN.as_secs()),
            },
        };
        let answer = Answer {
            at: environment.now.to_rfc3339(),
            was_ours: database == Database::Ours || known.is_some_and(|known| known.was_ours),
            database,
        };
        answers.insert(self.key.clone(), answer.clone());
        if let Some(directory) = &environment.state_dir
            && let Ok(bytes) = serde_json::to_vec_pretty(&answers)
            && named::create_dir(directory).is_ok()
        {
            // Without the file, the next command asks again.
            drop(write_output(&directory.join(FILE), &bytes));
        }
        Ok(answer)
    }
}

impl Context {
    /// Makes this memory one of the database that the environment names, if the setting `store` and the rules
    /// above say so.
    pub(crate) fn choose_store(&self, config: &Config) -> Result<(), UserError> {
        let choice: StoreChoice = config.parsed("store")?;
        if choice == StoreChoice::Json || !self.may_choose() || is(&THEMSELVES, self.why()) {
            return Ok(());
        }
        let store = Scoped::new(&self.places.memory, Scope::All).at(self.environment.now);
        let is_settled =
            store.primary_name()?.is_some() || choice == StoreChoice::Auto && store.is_shared();
        if is_settled {
            return Ok(());
        }
        let Some(named) = Named::of(&self.environment)? else {
            if choice == StoreChoice::Auto {
                return Ok(());
            }
            let message = "`store` is `postgres`, and neither `MEMCTL_DATABASE_URL` nor `DATABASE_URL` names one";
            return Err(UserError::usage(
                message,
                "memctl remote user add NAME --url ADMIN_URL",
            ));
        };
        let answer = named.answer(&self.environment, false)?;
        let (variable, database) = (named.variable, named.address.shown());
        match answer.database {
            Database::Ours => {}
            Database::Foreign | Database::Unusable { .. } if choice == StoreChoice::Postgres => {
                // The error says what to do.
                return Err(match wait(remote::is_ours(&named.address))? {
                    Ok(_) => remote::Error::Foreign(database).into(),
                    Err(error) => error.into(),
                });
            }
            Database::Unusable { reason } if answer.was_ours || variable != "DATABASE_URL" => {
                self.printer.warn(&format!(
                    "`{variable}` names a database that cannot be used, so records are kept in files: {reason}"
                ));
                return Ok(());
            }
            Database::Foreign | Database::Unusable { .. } => return Ok(()),
        }
        let name = self.name_there();
        let is_here = store.directory().is_there();
        let counts = Kind::ALL.into_iter().map(|kind| store.count(kind));
        let records: u64 = counts.sum::<Result<u64, _>>()?;
        if records > 0 && choice == StoreChoice::Auto {
            self.printer.note(&format!(
                "`{variable}` names {database}, and this memory is in files: `memctl sync` shares it, \
                 `memctl remote join {name}` moves it, `store = \"json\"` keeps it without this line"
            ));
            return Ok(());
        }
        if !is_here
            && !is(&CREATE, self.why())
            && !wait(remote::has_memory(&named.address, &name))??
        {
            return Ok(());
        }
        let joined = wait(remote::join(
            &named.address,
            &store,
            &name,
            &mut random,
            &mut |_| {},
        ))?;
        match joined {
            Ok(_) => self.printer.note(&format!(
                "this memory is kept in {database} as `{name}`, since `{variable}` names it; \
                 `memctl remote leave` and `--store json` keep it in files"
            )),
            Err(error) if choice == StoreChoice::Auto => self.printer.warn(&format!(
                "records are kept in files, not in the database that `{variable}` names: {error}"
            )),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Name of this memory in a database: that of the project.
    fn name_there(&self) -> String {
        let project = self.project_name().unwrap_or_default();
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || "._-".contains(c) {
                c
            } else {
                '-'
            }
        };
        let name: String = project.chars().map(plain).take(64).collect();
        let name = name.trim_start_matches(['.', '_', '-']);
        if is_origin(name) {
            name.to_owned()
        } else {
            "memory".to_owned()
        }
    }

    /// Says why this memory is in files although the environment names a database; `None` if none is named.
    pub(crate) fn why_files(&self) -> Result<Option<String>, UserError> {
        let Some(named) = Named::of(&self.environment)? else {
            return Ok(None);
        };
        let config = self.config_quietly()?;
        if config.parsed::<StoreChoice>("store")? == StoreChoice::Json {
            return Ok(Some("the setting `store` is `json`".to_owned()));
        }
        let database = named.address.shown();
        Ok(Some(
            match named.answer(&self.environment, true)?.database {
                Database::Ours => format!(
                    "`{}` names {database}: `memctl sync` shares these records, `memctl remote join {}` moves them",
                    named.variable,
                    self.name_there()
                ),
                Database::Foreign => format!(
                    "`{}` names {database}, which has no memctl schema: if it is meant for memctl, `memctl remote \
                 init`; else nothing touches it",
                    named.variable
                ),
                Database::Unusable { reason } => {
                    format!(
                        "`{}` names a database that cannot be used: {reason}",
                        named.variable
                    )
                }
            },
        ))
    }
}

/// Forgets what the databases are, after a command that may have changed it.
pub(crate) fn forget(environment: &Environment) {
    if let Some(directory) = &environment.state_dir {
        drop(named::remove(&directory.join(FILE)));
    }
}

/// Returns `true` if a command is one of these, or of their group.
fn is(commands: &[&str], why: &str) -> bool {
    commands.iter().any(|command| {
        let rest = why.strip_prefix(command);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    })
}
