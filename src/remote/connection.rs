//! Database session: from an address to a login, and its queries.
//!
//! The addresses of the host are tried in order until one answers. A server that asks for a login
//! method that the policy refuses ends the attempts, since the other addresses may belong to the same
//! attacker.
//!
//! Invariants: a host that counts as local is never contacted at a remote address, regardless of
//! name resolution. Each attempt has a time limit that covers the handshake and the login.
//!
//! Deliberately absent: a choice among several servers. A memory has one database; a provider that
//! keeps copies of it has a name that leads to the one which takes writes.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use futures_util::{TryStream, TryStreamExt as _};
use memctl_files::process;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_postgres::config::Config;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::{NoTls, TlsConnect};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use crate::model::error::message;
use crate::remote::address::{Address, host_name, socket_directory};
use crate::remote::error::{Error, Refusal};
use crate::remote::tls::{ScramOnly, Socket, Tls};

/// Default limits, unless the URL (`options=-c lock_timeout=…`), the role or the server sets one.
const LIMITS: &str = "
    select pg_catalog.set_config(s.name, s.wanted, false)
    from (values ('lock_timeout', '10s'), ('statement_timeout', '10min'),
                 ('idle_in_transaction_session_timeout', '1min')) s (name, wanted)
    where pg_catalog.current_setting(s.name) = '0'";

/// Shows this session the rows of removed records, which all others do not see.
const SHOW_REMOVED: &str = "set memctl.shows_removed = 'on'";

/// Time limit of a login, if the URL sets none.
const LOGIN_WITHIN: Duration = Duration::from_secs(10);

/// Time limit for an answer of the database.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// Maximum number of lines of a log per statement.
const LINES: usize = 500;

/// Oldest supported server version.
const OLDEST_SERVER: i32 = 150_000;
/// Oldest supported pgvector version: the first with iterative scans, which continue when row-level
/// security removes candidates.
const OLDEST_PGVECTOR: (u32, u32) = (0, 8);

/// Value of a parameter, with its type in SQL.
pub(super) trait Parameter: ToSql + Sync {
    fn sql_type(&self) -> Type;
}

macro_rules! parameters {
    ($($type:ident: $($of:ty),+;)+) => {
        $($(impl Parameter for $of {
            fn sql_type(&self) -> Type {
                Type::$type
            }
        })+)+
    };
}

parameters! {
    TEXT: &str, String, Option<&str>;
    TEXT_ARRAY: Vec<&str>, Vec<String>, Vec<Option<&str>>, &[String];
    INT4: i32;
    INT8: i64;
    BOOL: bool;
}

impl<P: Parameter> Parameter for &P {
    fn sql_type(&self) -> Type {
        (**self).sql_type()
    }
}

/// Parameters as the driver takes them.
pub(super) fn typed<'a>(parameters: &[&'a dyn Parameter]) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    let parameters = parameters.iter();
    parameters
        .map(|value| (*value as &(dyn ToSql + Sync), value.sql_type()))
        .collect()
}

/// Ends with an error if a future is not done within a time limit.
pub(super) async fn within<T>(
    limit: Duration,
    future: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let done = tokio::time::timeout(limit, future).await;
    done.unwrap_or(Err(Error::NoAnswer))
}

/// Open database session.
pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) address: Address,
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
        let opened = dial(address).await?;
        let settings = format!("{LIMITS}; {SHOW_REMOVED}");
        opened.batch("time limits cannot be set", &settings).await?;
        Ok(opened)
    }

    /// Converts the error of a failed statement; `doing` describes the failed step.
    pub(super) fn failed(&self, doing: &str) -> impl Fn(tokio_postgres::Error) -> Error + use<> {
        let address = self.address.clone();
        let doing = doing.to_owned();
        move |error| failure(&address, &doing, &error)
    }

    /// Runs statements without parameters, such as `begin`. A transaction that is not committed
    /// ends with the session.
    pub(super) async fn batch(&self, doing: &str, sql: &str) -> Result<(), Error> {
        let done = self.client.batch_execute(sql).await;
        done.map_err(self.failed(doing))
    }

    /// Returns the rows of a query; `doing` describes the step. No statement is prepared, which
    /// saves a round trip.
    pub(super) async fn rows(
        &self,
        doing: &str,
        sql: &str,
        parameters: &[&dyn Parameter],
    ) -> Result<Vec<Row>, Error> {
        let rows = self.client.query_typed(sql, &typed(parameters)).await;
        rows.map_err(self.failed(doing))
    }

    /// Returns the rows of a query one by one, as they come.
    pub(super) async fn stream(
        &self,
        doing: &str,
        sql: &str,
        parameters: &[&dyn Parameter],
    ) -> Result<impl TryStream<Ok = Row, Error = Error> + Unpin + use<>, Error> {
        let failed = self.failed(doing);
        let rows = self.client.query_typed_raw(sql, typed(parameters)).await;
        let rows = rows.map_err(&failed)?;
        Ok(Box::pin(rows.map_err(failed)))
    }

    /// Returns the first row of a query.
    pub(super) async fn row(
        &self,
        doing: &str,
        sql: &str,
        parameters: &[&dyn Parameter],
    ) -> Result<Row, Error> {
        let rows = self.rows(doing, sql, parameters).await?;
        rows.into_iter().next().ok_or_else(|| Error::Statement {
            doing: doing.to_owned(),
            message: "the database answers with no row".to_owned(),
            denied: false,
        })
    }

    /// Runs a statement, and returns the number of rows.
    pub(super) async fn run(
        &self,
        doing: &str,
        sql: &str,
        parameters: &[&dyn Parameter],
    ) -> Result<u64, Error> {
        let done = self.client.execute_typed(sql, &typed(parameters)).await;
        done.map_err(self.failed(doing))
    }

    /// Inserts lines of a log, as JSON objects, in statements of some hundred. Those that are there
    /// stay.
    pub(super) async fn insert_lines(
        &self,
        doing: &str,
        insert: &str,
        origin: &str,
        lines: &[String],
    ) -> Result<(), Error> {
        for lines in lines.chunks(LINES) {
            self.run(doing, insert, &[&origin, &lines]).await?;
        }
        Ok(())
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
        let name: Option<String> = self.row(doing, name, &[]).await?.get(0);
        name.ok_or_else(|| {
            let database = self.address.shown();
            Error::stopped(
                format!("this login is not mapped to a user in `{database}`"),
                "memctl remote user add NAME --url ADMIN_URL",
            )
        })
    }

    /// Versions and role of the server.
    pub(super) async fn server(&self) -> Result<Server, Error> {
        let about =
            "select current_setting('server_version_num')::int, current_setting('server_version'),
            current_user::text,
            (select extversion from pg_catalog.pg_extension where extname = 'vector'),
            (select default_version from pg_catalog.pg_available_extensions where name = 'vector')";
        let doing = "the server does not say what it is";
        let row = self.row(doing, about, &[]).await?;
        Ok(Server {
            number: row.get(0),
            version: row.get::<_, String>(1),
            role: row.get(2),
            pgvector: row.get(3),
            pgvector_available: row.get(4),
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
fn failure(address: &Address, doing: &str, error: &tokio_postgres::Error) -> Error {
    if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) {
        return Error::stopped(
            format!("{doing}: another session holds a lock on it"),
            "wait for that session, or find and end it as an administrator: select pid, usename, mode, \
             relation::regclass from pg_locks join pg_stat_activity using (pid); select \
             pg_terminate_backend(PID)",
        );
    }
    // The prepared statement is that of another client of the pooler, or is in another session.
    let of_others = [
        SqlState::INVALID_SQL_STATEMENT_NAME,
        SqlState::DUPLICATE_PSTATEMENT,
        SqlState::PROTOCOL_VIOLATION,
    ];
    if error.code().is_some_and(|code| of_others.contains(code)) {
        return Error::stopped(
            format!("{doing}: the connection goes through a pooler in transaction mode"),
            "use the pooler's session mode, or connect to the server itself: memctl remote check",
        );
    }
    let (message, denied) = match error.as_db_error() {
        Some(answer) => (
            answer.message().to_owned(),
            *answer.code() == SqlState::INSUFFICIENT_PRIVILEGE,
        ),
        None => (message(error), false),
    };
    Error::Statement {
        doing: doing.to_owned(),
        message: address.scrub(&message),
        denied,
    }
}

/// Logs in to the server, at the first address that answers.
async fn dial(address: &Address) -> Result<Connection, Error> {
    let limit = address.config.get_connect_timeout().copied();
    let limit = limit.unwrap_or(LOGIN_WITHIN);
    let mut last = address.unreachable("the name has no address that it may have");
    for target in targets(address).await? {
        last = match tokio::time::timeout(limit, attempt(address, target)).await {
            Ok(Ok(logged_in)) => return Ok(logged_in),
            Ok(Err(error)) => error,
            Err(_) => address.unreachable(&format!("no answer within {} s", limit.as_secs())),
        };
        if !matches!(last, Error::Unreachable(..)) {
            break;
        }
    }
    Err(last)
}

/// Resolves the host to its addresses; `None` is the local socket.
async fn targets(address: &Address) -> Result<Vec<Option<SocketAddr>>, Error> {
    if socket_directory(&address.host).is_some() {
        return Ok(vec![None]);
    }
    let name = host_name(&address.host);
    let found = tokio::net::lookup_host((name.as_str(), address.port())).await;
    let found = found.map_err(|error| address.unreachable(&error.to_string()))?;
    let is_allowed = |at: &SocketAddr| !address.is_local() || at.ip().to_canonical().is_loopback();
    Ok(found.filter(is_allowed).map(Some).collect())
}

/// One attempt: socket, TLS, login.
async fn attempt(address: &Address, target: Option<SocketAddr>) -> Result<Connection, Error> {
    let unreachable = |error: std::io::Error| address.unreachable(&error.to_string());
    let socket: Socket = match (target, socket_directory(&address.host)) {
        (Some(at), _) => {
            let socket = TcpStream::connect(at).await.map_err(unreachable)?;
            tune(&socket, &address.config).map_err(unreachable)?;
            Box::new(socket)
        }
        (None, directory) => {
            let name = format!(".s.PGSQL.{}", address.port());
            let socket = process::connect(&directory.unwrap_or(Path::new("")).join(name)).await;
            Box::new(socket.map_err(unreachable)?)
        }
    };
    let Some(trusted) = &address.trusted else {
        // Without a password the server cannot prove anything; a socket is trusted by the system.
        let may_ask_nothing = address.config.get_password().is_none() || target.is_none();
        let (read, write) = tokio::io::split(socket);
        let read = ScramOnly::new(read, may_ask_nothing);
        return log_in(address, tokio::io::join(read, write), NoTls).await;
    };
    let tls = Tls::new(trusted, host_name(&address.host));
    let tls = tls.map_err(|reason| Error::tls(&address.shown(), &reason))?;
    log_in(address, socket, tls).await
}

/// Login over a socket; the driver negotiates TLS, if the address says so.
async fn log_in<S, T>(address: &Address, socket: S, tls: T) -> Result<Connection, Error>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    T: TlsConnect<S, Stream: Send + 'static>,
{
    let logged_in = address.config.connect_raw(socket, tls).await;
    let (client, session) = logged_in.map_err(|error| failed(address, &error))?;
    // An error that ends the connection reaches the caller with the next statement.
    let task = tokio::spawn(async move { drop(session.await) });
    Ok(Connection {
        client,
        address: address.clone(),
        task,
    })
}

/// Classifies the error of a failed login.
fn failed(address: &Address, error: &tokio_postgres::Error) -> Error {
    let database = address.shown();
    if let Some(answer) = error.as_db_error() {
        // The server is starting or stopping; another address may be available.
        if *answer.code() == SqlState::CANNOT_CONNECT_NOW {
            return address.unreachable(answer.message());
        }
        let reason = address.scrub(answer.message());
        let message = format!("`{database}` refuses the login: {reason}");
        return Error::stopped(
            message,
            "check user, password and name of the database in the URL; for a server that wants TLS, add \
             sslmode=verify-full or sslmode=require",
        );
    }
    let source = std::error::Error::source(error);
    let io = source.and_then(|source| source.downcast_ref::<std::io::Error>());
    let refusal = io.and_then(std::io::Error::get_ref);
    let refusal = refusal.and_then(|inner| inner.downcast_ref::<Refusal>());
    let reason = message(error);
    if reason.contains("password missing") {
        return Error::stopped(
            format!("`{database}` asks for a password, and the URL has none"),
            "write it as postgres://user:password@host:5432/name",
        );
    }
    if let Some(refusal) = refusal {
        return Error::refused(&database, *refusal);
    }
    // The driver tells its errors apart by their texts only.
    if reason.contains("channel binding") {
        return Error::unbound(&database);
    }
    if reason.starts_with("error performing TLS handshake") {
        return Error::tls(&database, &reason);
    }
    address.unreachable(&reason)
}

/// Sets socket options that detect a vanished server within about a minute.
fn tune(socket: &TcpStream, config: &Config) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let socket = SockRef::from(socket);
    if config.get_keepalives() {
        let mut keepalive = TcpKeepalive::new().with_time(config.get_keepalives_idle());
        if let Some(interval) = config.get_keepalives_interval() {
            keepalive = keepalive.with_interval(interval);
        }
        if let Some(retries) = config.get_keepalives_retries() {
            keepalive = keepalive.with_retries(retries);
        }
        socket.set_tcp_keepalive(&keepalive)?;
    }
    process::limit_unreceived(&socket, config.get_tcp_user_timeout().copied())
}
