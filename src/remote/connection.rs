//! One session with the database.

use tokio::sync::mpsc::UnboundedSender;
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, Transaction};

use super::address::Address;
use super::dial::{Dialled, dial};
use super::error::Error;
use super::limits;

/// The oldest server that is supported.
const OLDEST_SERVER: i32 = 150_000;
/// The oldest pgvector: the first that goes on searching where row-level security leaves too few.
const OLDEST_PGVECTOR: (u32, u32) = (0, 8);

/// A session.
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
    /// Logs in. Needs a runtime that runs until the connection is dropped.
    pub(super) async fn open(address: &Address) -> Result<Self, Error> {
        Self::open_hearing(address, None).await
    }

    /// The same, and passes on what is said on the channels that are listened to.
    pub(super) async fn open_hearing(
        address: &Address,
        heard: Option<UnboundedSender<String>>,
    ) -> Result<Self, Error> {
        let Dialled {
            client,
            session: mut connection,
            security,
        } = dial(address).await?;
        // What ends a connection is said to whoever asks it something next.
        let task = tokio::spawn(async move {
            while let Some(Ok(message)) =
                std::future::poll_fn(|task| connection.poll_message(task)).await
            {
                if let (AsyncMessage::Notification(said), Some(heard)) = (message, &heard) {
                    drop(heard.send(said.payload().to_owned()));
                }
            }
        });
        let opened = Self {
            client,
            address: address.clone(),
            security,
            task,
        };
        limits::set(&opened).await?;
        Ok(opened)
    }

    /// What a failed statement says: what was being done, and the server's message.
    pub(super) fn failed(&self, doing: &str) -> impl Fn(tokio_postgres::Error) -> Error + use<> {
        let address = self.address.clone();
        let doing = doing.to_owned();
        move |error| failure(&address, &doing, &error)
    }

    /// Opens a transaction.
    pub(super) async fn begin(&mut self) -> Result<Transaction<'_>, Error> {
        let failed = self.failed("a transaction cannot be opened");
        self.client.transaction().await.map_err(failed)
    }

    /// Where pgvector's type and operators are: the schema that the extension was put into.
    pub(super) async fn vector_schema(&self) -> Result<String, Error> {
        let row = self
            .client
            .query_one(
                "select quote_ident(n.nspname) from pg_catalog.pg_extension e
                 join pg_catalog.pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector'",
                &[],
            )
            .await
            .map_err(self.failed("pgvector cannot be found"))?;
        Ok(row.get(0))
    }

    /// What tells the database, and the user in it, from every other; one that was made anew has another name.
    pub(super) async fn name(&self) -> Result<String, Error> {
        let rows = self
            .client
            .query_typed(
                "select memctl.current_user_id()::text || '@' || extract(epoch from min(applied_at))::text
                 from memctl.migrations",
                &[],
            )
            .await
            .map_err(self.failed("the database does not say which it is"))?;
        let name = rows.first().and_then(|row| row.get::<_, Option<String>>(0));
        name.ok_or_else(|| Error::Nobody(self.address.shown()))
    }

    /// The server's version, if it is new enough.
    pub(super) async fn server(&self) -> Result<Server, Error> {
        let row = self
            .client
            .query_one(
                "select current_setting('server_version_num')::int, current_setting('server_version'),
                        current_user::text, current_database()::text,
                        (select extversion from pg_catalog.pg_extension where extname = 'vector'),
                        (select default_version from pg_catalog.pg_available_extensions where name = 'vector')",
                &[],
            )
            .await
            .map_err(self.failed("the server does not say what it is"))?;
        Ok(Server {
            number: row.get(0),
            version: row.get::<_, String>(1),
            role: row.get(2),
            pgvector: row.get(4),
            pgvector_available: row.get(5),
        })
    }
}

/// What stands at the other end.
#[derive(Debug)]
pub(super) struct Server {
    number: i32,
    pub(super) version: String,
    pub(super) role: String,
    /// The version of pgvector in this database.
    pub(super) pgvector: Option<String>,
    /// The version that could be installed in it.
    pub(super) pgvector_available: Option<String>,
}

impl Server {
    /// What is wrong with the server, if anything.
    pub(super) fn trouble(&self) -> Option<String> {
        (self.number < OLDEST_SERVER)
            .then(|| format!("PostgreSQL is {}, needed is 15 or newer", self.version))
    }

    /// What is wrong with pgvector, installed or about to be.
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

/// See [`Connection::failed`].
pub(super) fn failure(address: &Address, doing: &str, error: &tokio_postgres::Error) -> Error {
    if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) {
        return Error::Locked {
            doing: doing.to_owned(),
            holder: None,
        };
    }
    let (message, denied) = match error.as_db_error() {
        Some(said) => (
            said.message().to_owned(),
            *said.code() == SqlState::INSUFFICIENT_PRIVILEGE,
        ),
        None => (whole(error), false),
    };
    Error::Statement {
        doing: doing.to_owned(),
        message: address.scrub(&message),
        denied,
    }
}

/// An error with its causes, on one line.
pub(super) fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.contains(&said) {
            text.extend([": ", &said]);
        }
        next = cause.source();
    }
    text
}
