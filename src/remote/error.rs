//! Everything that can go wrong with the shared store.
//!
//! No variant holds a URL: a database is named by host and name, without user and password.

use crate::store;

use super::limits::Holder;
use super::login_guard::Refusal;
use super::sync::Shrinking;

/// Why the shared store did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A URL that is none, or asks for something that does not exist.
    #[error("the URL of the database is not usable: {0}")]
    Url(String),
    /// There is no way to secure the connection.
    #[error("no secure connection to `{database}`: {reason}")]
    Tls {
        /// Host and name.
        database: String,
        /// What is wrong.
        reason: String,
    },
    /// Nobody answers.
    #[error("cannot reach `{database}`: {reason}")]
    Unreachable {
        /// Host and name.
        database: String,
        /// What the system said.
        reason: String,
    },
    /// The database does not let this role in.
    #[error("`{database}` refuses the login: {reason}")]
    Refused {
        /// Host and name.
        database: String,
        /// What the server said.
        reason: String,
    },
    /// The server asks for a login that would give the password away, or that proves nothing.
    #[error("`{database}` {refusal}")]
    Login {
        /// Host and name.
        database: String,
        /// The reason.
        refusal: Refusal,
    },
    /// Another session holds a lock for too long.
    #[error("{doing}: {} holds a lock on it", holder.as_ref().map_or_else(|| "another session".to_owned(), ToString::to_string))]
    Locked {
        /// What was being done.
        doing: String,
        /// The session, where the server says which it is.
        holder: Option<Holder>,
    },
    /// The server is older than what is needed, or lacks something.
    #[error("`{database}` cannot be used: {reason}")]
    Unsuitable {
        /// Host and name.
        database: String,
        /// What is missing.
        reason: String,
    },
    /// The database belongs to something else.
    #[error("`{0}` is not a store of memctl")]
    Foreign(String),
    /// Something of another program has a name that we need.
    #[error("`{object}` exists and is not ours: {reason}; nothing was changed")]
    Taken {
        /// A schema or a table.
        object: String,
        /// How it differs.
        reason: String,
    },
    /// A migration that was applied is not the one that this program has.
    #[error("the migration {version} `{name}` was applied with another text")]
    Changed {
        /// Its number.
        version: i32,
        /// Its name.
        name: String,
    },
    /// A newer program has been here.
    #[error("`{database}` has the schema {found}; this memctl knows {known}")]
    Newer {
        /// Host and name.
        database: String,
        /// The version there.
        found: i32,
        /// The newest one here.
        known: i32,
    },
    /// Migrations are missing.
    #[error("`{database}` has the schema {found}; this memctl needs {known}")]
    Older {
        /// Host and name.
        database: String,
        /// The version there.
        found: i32,
        /// The newest one here.
        known: i32,
    },
    /// A name that no login can have.
    #[error(
        "`{}` cannot be the name of a user: allowed are up to 40 of a–z, 0–9 and `_`, a letter first",
        .0.escape_debug()
    )]
    Name(String),
    /// A user id that is none.
    #[error("`{}` is not a user id: it has the form `2f1c…-…` of a UUID", .0.escape_debug())]
    UserId(String),
    /// A login that exists.
    #[error("the login `{0}` exists already")]
    Exists(String),
    /// A statement failed.
    #[error("{doing}: {message}")]
    Statement {
        /// What was being done.
        doing: String,
        /// What the server said.
        message: String,
        /// Whether it said that the role lacks a right.
        denied: bool,
    },
    /// The proof that rows are kept apart fails.
    #[error("nothing is sent to `{database}`, since it does not keep users apart: {reason}")]
    Unsafe {
        /// Host and name.
        database: String,
        /// What is wrong.
        reason: String,
    },
    /// Much would go.
    #[error("{0}: nothing was changed")]
    Shrinks(Shrinking),
    /// Vectors cannot be made.
    #[error("vectors cannot be made: {reason}")]
    Vectors {
        /// What went wrong.
        reason: String,
    },
    /// The login belongs to no user.
    #[error("`{0}` knows this login as nobody's")]
    Nobody(String),
    /// A copy of a memory in another database.
    #[error("`{shown}` is not the database that the memory `{origin}` lies in")]
    OtherDatabase {
        /// Host and name of the one that was named.
        shown: String,
        /// The name of the memory.
        origin: String,
    },
    /// There is no memory of this name.
    #[error("no memory `{0}` lies in the database")]
    NoMemory(String),
    /// A name that no memory can have.
    #[error("`{}` cannot be the name of a memory: allowed are up to 64 letters, digits, `.`, `_` and `-`", .0.escape_debug())]
    MemoryName(String),
    /// This directory is a copy of something else.
    #[error("this memory lies in `{shown}` already, as `{origin}`")]
    Joined {
        /// Host and name of the database.
        shown: String,
        /// Its name there.
        origin: String,
    },
    /// There are records on both sides.
    #[error(
        "`{origin}` is there, and this memory has {records} records of its own: nothing was changed"
    )]
    BothFull {
        /// The name of the memory in the database.
        origin: String,
        /// How many records are here.
        records: u64,
    },
    /// A workspace shares its files under this name.
    #[error("`{0}` is the name of a workspace that shares its own files")]
    Shared(String),
    /// This workspace shares its files, under another name.
    #[error("this workspace shares its files as `{0}`")]
    SharedAs(String),
    /// Another writer takes long.
    #[error("another program has been writing to `{origin}` for {waited_ms} ms")]
    Busy {
        /// The name of the memory.
        origin: String,
        /// How long was waited.
        waited_ms: u128,
    },
    /// The turn was lost.
    #[error("somebody else has written to `{0}` in between: nothing was stored")]
    Overtaken(String),
    /// A record that no row can hold.
    #[error("{kind} `{}` cannot lie in a database: its id has to be of letters, digits, `.`, `_` and `-`, and its text without NUL", id.escape_debug())]
    Unfit {
        /// Its kind.
        kind: crate::model::Kind,
        /// Its id.
        id: String,
    },
    /// Nothing was heard for too long.
    #[error("the database does not answer")]
    NoAnswer,
    /// The files here.
    #[error(transparent)]
    Store(#[from] store::Error),
}
