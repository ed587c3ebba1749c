//! Database session.

use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row, Transaction};

use super::address::Address;
use super::dial::{LoggedIn, dial};
use super::error::Error;
use crate::model::error::message;

/// Default limits, unless the URL (`options=-c lock_timeout=…`), the role or the server sets one.
const LIMITS: &str = "
    select pg_catalog.set_config(s.name, s.wanted, false)
    from (values ('lock_timeout', '10s'), ('statement_timeout', '10min'),
                 ('idle_in_transaction_session_timeout', '1min')) s (name, wanted)
    where pg_catalog.current_setting(s.name) = '0'";

/// Oldest supported server version.
const OLDEST_SERVER: i32 = 150_000;
/// Oldest supported pgvector version: the first with iterative scans, which continue when row-level
/// security removes candidates.
const OLDEST_PGVECTOR: (u32, u32) = (0, 8);

/// Open database session.
pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) address: Address,
    /// `verified`, `encrypted` or `plain`.
    pub(super) security: &'static str,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connection {
    /// Logs in. The runtime has to run until the connection is dropped.
    pub(super) async fn open(address: &Address) -> Result<Self, Error> {
        let LoggedIn {
            client,
            session,
            security,
        } = dial(address).await?;
        // An error that ends the connection reaches the caller with the next statement.
        let task = tokio::spawn(async move { drop(session.await) });
        let opened = Self {
            client,
            address: address.clone(),
            security,
            task,
        };
        opened.set_limits().await?;
        Ok(opened)
    }

    /// Sets the default time limits.
    async fn set_limits(&self) -> Result<(), Error> {
        let failed = self.failed("time limits cannot be set");
        self.client.batch_execute(LIMITS).await.map_err(failed)
    }

    /// Removes the statement and idle limits: a migration works on all rows.
    pub(super) async fn lift_limits(&self) -> Result<(), Error> {
        let failed = self.failed("time limits cannot be set");
        let set = "set statement_timeout = 0; set idle_in_transaction_session_timeout = 0";
        self.client.batch_execute(set).await.map_err(failed)
    }

    /// Converts the error of a failed statement; `doing` describes the failed step.
    pub(super) fn failed(&self, doing: &str) -> impl Fn(tokio_postgres::Error) -> Error + use<> {
        let address = self.address.clone();
        let doing = doing.to_owned();
        move |error| failure(&address, &doing, &error)
    }

    /// Returns the rows of a query; `doing` describes the step.
    pub(super) async fn rows(
        &self,
        doing: &str,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        let rows = self.client.query(sql, parameters).await;
        rows.map_err(self.failed(doing))
    }

    /// Returns the only row of a query.
    pub(super) async fn row(
        &self,
        doing: &str,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Row, Error> {
        let row = self.client.query_one(sql, parameters).await;
        row.map_err(self.failed(doing))
    }

    /// Runs a statement, and returns the number of rows.
    pub(super) async fn run(
        &self,
        doing: &str,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, Error> {
        let done = self.client.execute(sql, parameters).await;
        done.map_err(self.failed(doing))
    }

    /// Returns the rows of a query that is not prepared, which saves a round trip.
    pub(super) async fn rows_typed(
        &self,
        doing: &str,
        sql: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, Error> {
        let rows = self.client.query_typed(sql, parameters).await;
        rows.map_err(self.failed(doing))
    }

    /// Runs a statement that is not prepared.
    pub(super) async fn run_typed(
        &self,
        doing: &str,
        sql: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<(), Error> {
        let done = self.client.execute_typed(sql, parameters).await;
        done.map(drop).map_err(self.failed(doing))
    }

    pub(super) async fn begin(&mut self) -> Result<Transaction<'_>, Error> {
        let failed = self.failed("a transaction cannot be opened");
        self.client.transaction().await.map_err(failed)
    }

    /// Quoted name of the schema that contains the pgvector extension.
    pub(super) async fn vector_schema(&self) -> Result<String, Error> {
        let schema = "select quote_ident(n.nspname) from pg_catalog.pg_extension e
            join pg_catalog.pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector'";
        let row = self.row("pgvector cannot be found", schema, &[]).await?;
        Ok(row.get(0))
    }

    /// Unique name of the database and the user of this session. A recreated database gets a new
    /// name.
    pub(super) async fn name(&self) -> Result<String, Error> {
        let name = "select memctl.current_user_id()::text || '@' || extract(epoch from min(applied_at))::text
            from memctl.migrations";
        let doing = "the database does not say which it is";
        let rows = self.rows_typed(doing, name, &[]).await?;
        let name = rows.first().and_then(|row| row.get::<_, Option<String>>(0));
        name.ok_or_else(|| Error::Nobody(self.address.shown()))
    }

    /// Versions and role of the server.
    pub(super) async fn server(&self) -> Result<Server, Error> {
        let about =
            "select current_setting('server_version_num')::int, current_setting('server_version'),
            current_user::text, current_database()::text,
            (select extversion from pg_catalog.pg_extension where extname = 'vector'),
            (select default_version from pg_catalog.pg_available_extensions where name = 'vector')";
        let doing = "the server does not say what it is";
        let row = self.row(doing, about, &[]).await?;
        Ok(Server {
            number: row.get(0),
            version: row.get::<_, String>(1),
            role: row.get(2),
            pgvector: row.get(4),
            pgvector_available: row.get(5),
        })
    }
}

/// Properties of the server and of the role that logged in.
#[derive(Debug)]
pub(super) struct Server {
    number: i32,
    pub(super) version: String,
    pub(super) role: String,
    /// Installed pgvector version; `None` if not installed.
    pub(super) pgvector: Option<String>,
    /// pgvector version that can be installed; `None` if not available.
    pub(super) pgvector_available: Option<String>,
}

impl Server {
    /// Reason why the server is too old; `None` if it is supported.
    pub(super) fn trouble(&self) -> Option<String> {
        (self.number < OLDEST_SERVER)
            .then(|| format!("PostgreSQL is {}, needed is 15 or newer", self.version))
    }

    /// Reason why the installed or available pgvector is unsuitable; `None` if it is supported.
    pub(super) fn pgvector_trouble(&self) -> Option<String> {
        let version = self.pgvector.as_ref().or(self.pgvector_available.as_ref());
        let Some(version) = version else {
            return Some("the extension `vector` (pgvector) is not on the server".to_owned());
        };
        let mut numbers = version.split('.').map(|n| n.parse().unwrap_or(0));
        let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        (found < OLDEST_PGVECTOR).then(|| format!("pgvector is {version}, needed is 0.8 or newer"))
    }
}

/// Converts a driver error into [`Error`]. See [`Connection::failed`].
pub(super) fn failure(address: &Address, doing: &str, error: &tokio_postgres::Error) -> Error {
    if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) {
        return Error::Locked {
            doing: doing.to_owned(),
        };
    }
    // The prepared statement is that of another client of the pooler, or is in another session.
    let of_others = [
        SqlState::INVALID_SQL_STATEMENT_NAME,
        SqlState::DUPLICATE_PSTATEMENT,
        SqlState::PROTOCOL_VIOLATION,
    ];
    if error.code().is_some_and(|code| of_others.contains(code)) {
        return Error::Pooled {
            doing: doing.to_owned(),
        };
    }
    let (message, denied) = match error.as_db_error() {
        Some(said) => (
            said.message().to_owned(),
            *said.code() == SqlState::INSUFFICIENT_PRIVILEGE,
        ),
        None => (message(error), false),
    };
    Error::Statement {
        doing: doing.to_owned(),
        message: address.scrub(&message),
        denied,
    }
}
