//! Choice between files and the database that the environment names, for a memory that is in neither by command.
//!
//! A directory that holds no records yet becomes a copy of a memory in the database, under the name of its
//! project, as with `memctl remote join`. Records in files stay there: nothing of a person is sent to a database
//! without a request. So do files that people share by git: who has asked for that wants no second way to share.
//!
//! Many shells have a `DATABASE_URL` for something else. A database without our schema is never touched. The
//! answer of a database counts for an hour, so that no command waits for one that does not respond.
//!
//! The result is data: callers join the memory, and say why it is where it is.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use memctl_files::{hex, named};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::address::Address;
use super::error::Error;
use super::migrate::is_ours;
use super::primary::has_memory;
use crate::store::workspace::redacting_writer::write_output;
use crate::store::{Scoped, is_origin};

/// Time for a database to say what it is.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Time for which the answer counts.
const FRESH: TimeDelta = TimeDelta::hours(1);
/// File in the state directory with the answers.
const FILE: &str = "databases.json";
/// Maximum size of that file.
const LARGEST_FILE: u64 = 1 << 20;
/// Variable that other programs use as well.
const OF_ANY_PROGRAM: &str = "DATABASE_URL";

/// Setting `store`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreSetting {
    /// The database if it is ours and no records are in files, else files.
    Auto,
    /// Files.
    Json,
    /// The database, or an error.
    Postgres,
}

impl FromStr for StoreSetting {
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

/// Store of a memory, beside the database that the environment names.
#[derive(Debug)]
pub struct Choice {
    /// Variable that names the database.
    pub variable: &'static str,
    /// Database that it names.
    pub address: Address,
    /// Setting `store`.
    pub setting: StoreSetting,
    /// Name of the memory in the database.
    pub name: String,
    /// `true` if the person may not know yet that the database is not used.
    pub is_news: bool,
    /// Store, with the reason.
    pub store: ChosenStore,
}

/// Store of a memory, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChosenStore {
    /// Files, since the database has no schema of ours.
    FilesNotForeign,
    /// Files, since the database does not answer, or refuses this login, for this reason.
    FilesNotUnusable(String),
    /// Files, which people share by git.
    FilesOfGit,
    /// Files, which hold the records already.
    FilesWithRecords,
    /// The database, once there is a record. Until then nothing is anywhere.
    DatabaseLater,
    /// The database, which the memory is to join now.
    Database,
}

/// Memory whose store is to be chosen.
pub struct Undecided<'a> {
    /// Memory, with access to all of it.
    pub store: &'a Scoped,
    /// Setting `store`, not `json`.
    pub setting: StoreSetting,
    /// `true` if the caller begins a memory where there is none.
    pub begins: bool,
    /// `true` if people share the files of the memory by git.
    pub is_of_git: bool,
    /// Returns the name of the project.
    pub project: &'a dyn Fn() -> Option<String>,
    /// Directory with the answers of databases.
    pub state_dir: Option<&'a Path>,
    /// Current time.
    pub now: DateTime<Utc>,
    /// `true` to ask the database even if its answer is known.
    pub asks_anew: bool,
}

impl Undecided<'_> {
    /// Chooses between files and the database that a variable names; `None` if that is the database of another kind
    /// of program. Joins nothing.
    pub async fn choose(&self, variable: &'static str, url: &str) -> Result<Option<Choice>, Error> {
        let address = match Address::parse(url) {
            Ok(address) => address,
            Err(_) if variable == OF_ANY_PROGRAM => return Ok(None),
            Err(error) => return Err(error),
        };
        let name = self.name();
        let (is_news, store) = if self.setting == StoreSetting::Postgres {
            // The person demands this database: the error says what to do.
            if !is_ours(&address).await? {
                return Err(Error::Foreign(address.shown()));
            }
            (false, self.in_ours(&address, &name).await?)
        } else {
            let answer = self.answer(&address, url).await;
            let is_there = self.store.directory().is_there();
            let is_news =
                answer.was_ours || answer.is_new || !is_there || variable != OF_ANY_PROGRAM;
            let store = match answer.database {
                Database::Ours => self.in_ours(&address, &name).await?,
                Database::Foreign => ChosenStore::FilesNotForeign,
                Database::Unusable { reason } => ChosenStore::FilesNotUnusable(reason),
            };
            (is_news, store)
        };
        Ok(Some(Choice {
            variable,
            address,
            setting: self.setting,
            name,
            is_news,
            store,
        }))
    }

    /// Chooses between files and a database of ours.
    async fn in_ours(&self, address: &Address, name: &str) -> Result<ChosenStore, Error> {
        if self.is_of_git && self.setting == StoreSetting::Auto {
            return Ok(ChosenStore::FilesOfGit);
        }
        let may_move = self.setting == StoreSetting::Postgres && self.begins;
        if !may_move && self.store.record_count()? > 0 {
            return Ok(ChosenStore::FilesWithRecords);
        }
        let is_there = self.store.directory().is_there();
        let is_begun = is_there || self.begins || has_memory(address, name).await?;
        Ok(if is_begun {
            ChosenStore::Database
        } else {
            ChosenStore::DatabaseLater
        })
    }

    /// Name of this memory in a database: that of the project.
    fn name(&self) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let project = (self.project)().unwrap_or_default();
        let name = project.replace(|c| !is_plain(c), "-");
        let name: String = name.chars().take(64).collect();
        let name = name.trim_start_matches(['.', '_', '-']);
        let name = if is_origin(name) { name } else { "memory" };
        name.to_owned()
    }

    /// Returns what the database is: as it was known within the last hour, or as it says now.
    async fn answer(&self, address: &Address, url: &str) -> Answer {
        let file = self.state_dir.map(|dir| dir.join(FILE));
        let mut answers = file.as_deref().map(read).unwrap_or_default();
        // Names the answer without the password.
        let key = hex(&Sha256::digest(url));
        let cached = answers.get(&key);
        let is_fresh = |answer: &&Answer| {
            let at = DateTime::parse_from_rfc3339(&answer.at);
            at.is_ok_and(|at| (self.now - at.to_utc()).abs() < FRESH)
        };
        if let Some(cached) = cached.filter(is_fresh).filter(|_| !self.asks_anew) {
            return cached.clone();
        }
        let is_ours = tokio::time::timeout(ANSWER_WITHIN, is_ours(address)).await;
        let unusable = |reason| Database::Unusable { reason };
        let database = match is_ours {
            Ok(Ok(true)) => Database::Ours,
            Ok(Ok(false)) => Database::Foreign,
            Ok(Err(error)) => unusable(error.to_string()),
            Err(_) => unusable(format!("no answer within {} s", ANSWER_WITHIN.as_secs())),
        };
        let answer = Answer {
            at: self.now.to_rfc3339(),
            was_ours: database == Database::Ours || cached.is_some_and(|cached| cached.was_ours),
            database,
            is_new: true,
        };
        answers.insert(key, answer.clone());
        if let Some(file) = file {
            write(&file, &answers);
        }
        answer
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
    /// `true` if it was asked just now.
    #[serde(skip)]
    is_new: bool,
}

fn read(file: &Path) -> BTreeMap<String, Answer> {
    let text = named::read_text(file, LARGEST_FILE).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Writes the answers. Without the file, the next command asks again.
fn write(file: &Path, answers: &BTreeMap<String, Answer>) {
    let is_there = file
        .parent()
        .is_some_and(|dir| named::create_dir(dir).is_ok());
    if let Ok(bytes) = serde_json::to_vec_pretty(answers)
        && is_there
    {
        drop(write_output(file, &bytes));
    }
}

/// Forgets the answers of databases, before a command that may change them.
pub fn forget_answers(state_dir: &Path) {
    drop(named::remove(&state_dir.join(FILE)));
}
