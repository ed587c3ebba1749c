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
use std::time::Duration;

use memctl_files::process;
use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_postgres::config::{ChannelBinding, Config, SslMode, SslNegotiation};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Connection as Driver, Row, Transaction};

use crate::model::error::message;
use crate::remote::address::{Address, Binding, Encryption, Trusted, host_name, socket_directory};
use crate::remote::error::Error;
use crate::remote::login_guard::{LoginGuard, Refusal};
use crate::remote::tls;
use crate::remote::tls::{Established, Guarded, Socket};

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

/// Driver connection, which has to be polled.
pub(super) type Session = Driver<Guarded, Guarded>;

/// Logged-in session.
pub(super) struct LoggedIn {
    pub(super) client: Client,
    pub(super) session: Session,
    /// `verified`, `encrypted` or `plain`.
    pub(super) security: &'static str,
}

/// TLS request of the protocol, and the two answers of a server.
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
const TLS_GRANTED: u8 = b'S';
const TLS_DENIED: u8 = b'N';

/// Logs in to the server, at the first address that answers.
pub(super) async fn dial(address: &Address) -> Result<LoggedIn, Error> {
    let limit = address.config().get_connect_timeout().copied();
    let limit = limit.unwrap_or(Duration::from_secs(10));
    let mut last = address.unreachable("the name has no address that it may have");
    for target in targets(address).await? {
        last = match tokio::time::timeout(limit, attempt(address, &target)).await {
            Ok(Ok(logged_in)) => return Ok(logged_in),
            Ok(Err(error)) => error,
            Err(_) => address.unreachable(&format!("no answer within {} s", limit.as_secs())),
        };
        if !matches!(last, Error::Unreachable { .. }) {
            break;
        }
    }
    Err(last)
}

/// Socket address or socket path.
enum Target {
    Tcp(SocketAddr),
    Unix(std::path::PathBuf),
}

/// Resolves the host to its targets.
async fn targets(address: &Address) -> Result<Vec<Target>, Error> {
    let (host, port) = (address.host(), address.port());
    if let Some(directory) = socket_directory(host) {
        let socket = directory.join(format!(".s.PGSQL.{port}"));
        return Ok(vec![Target::Unix(socket)]);
    }
    let name = host_name(host);
    let found = tokio::net::lookup_host((name.as_str(), port)).await;
    let found = found.map_err(|error| address.unreachable(&error.to_string()))?;
    let is_allowed = |at: &SocketAddr| !address.is_local() || at.ip().to_canonical().is_loopback();
    Ok(found.filter(is_allowed).map(Target::Tcp).collect())
}

/// One attempt: socket, TLS, login.
async fn attempt(address: &Address, target: &Target) -> Result<LoggedIn, Error> {
    let unreachable = |error: std::io::Error| address.unreachable(&error.to_string());
    let (socket, security) = match target {
        Target::Unix(path) => {
            let socket = process::connect(path).await;
            (Socket::Unix(socket.map_err(unreachable)?), "plain")
        }
        Target::Tcp(at) => {
            let socket = TcpStream::connect(at).await.map_err(unreachable)?;
            tune(&socket, address.config()).map_err(unreachable)?;
            encrypt(address, socket).await?
        }
    };
    let policy = address.policy();
    let is_encrypted = security != "plain";
    let binding = match policy.binding {
        Binding::Always if is_encrypted || policy.is_binding_given => ChannelBinding::Require,
        Binding::IfOffered if is_encrypted => ChannelBinding::Prefer,
        _ => ChannelBinding::Disable,
    };
    let must_bind = binding == ChannelBinding::Require;
    let guard = LoginGuard::new(policy.methods, must_bind);
    // The stream is encrypted already, so the driver must not negotiate TLS itself.
    let mut config = address.config().clone();
    config
        .ssl_mode(SslMode::Require)
        .ssl_negotiation(SslNegotiation::Direct)
        .channel_binding(binding);
    let logged_in = config.connect_raw(Guarded::new(socket, guard), Established);
    let (client, session) = logged_in
        .await
        .map_err(|error| failed(address, &error, must_bind))?;
    Ok(LoggedIn {
        client,
        session,
        security,
    })
}

/// Classifies the error of a failed login.
fn failed(address: &Address, error: &tokio_postgres::Error, must_bind: bool) -> Error {
    let database = address.shown();
    if let Some(said) = error.as_db_error() {
        // The server is starting or stopping; another address may be available.
        if *said.code() == SqlState::CANNOT_CONNECT_NOW {
            return address.unreachable(said.message());
        }
        let reason = address.scrub(said.message());
        return Error::Refused { database, reason };
    }
    let source = std::error::Error::source(error);
    let io = source.and_then(|source| source.downcast_ref::<std::io::Error>());
    let refusal = io.and_then(std::io::Error::get_ref);
    let refusal = refusal.and_then(|inner| inner.downcast_ref::<Refusal>());
    let reason = message(error);
    // The server offers a binding that this client cannot compute, for example for Ed25519
    // certificates.
    let is_unbound = must_bind && reason.contains("channel binding");
    match refusal.copied().or(is_unbound.then_some(Refusal::Unbound)) {
        Some(refusal) => Error::Login { database, refusal },
        None => address.unreachable(&reason),
    }
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

/// Negotiates TLS and verifies the certificate according to the policy.
async fn encrypt(
    address: &Address,
    mut socket: TcpStream,
) -> Result<(Socket, &'static str), Error> {
    let policy = address.policy();
    let insecure = |reason: &str| Error::Tls {
        database: address.shown(),
        reason: address.scrub(reason),
    };
    if policy.encryption == Encryption::Never {
        return Ok((Socket::Tcp(socket), "plain"));
    }
    let is_direct = address.config().get_ssl_negotiation() == SslNegotiation::Direct;
    if !is_direct {
        let unreachable = |error: std::io::Error| address.unreachable(&error.to_string());
        socket.write_all(&TLS_REQUEST).await.map_err(unreachable)?;
        match socket.read_u8().await.map_err(unreachable)? {
            TLS_GRANTED => {}
            TLS_DENIED if policy.encryption == Encryption::IfOffered => {
                return Ok((Socket::Tcp(socket), "plain"));
            }
            TLS_DENIED => {
                let reason = "the server, or somebody before it, offers no TLS; nothing was sent";
                return Err(insecure(reason));
            }
            _ => {
                return Err(Error::Login {
                    database: address.shown(),
                    refusal: Refusal::Garbled,
                });
            }
        }
    }
    let connector = tls::connector(&policy.trusted, is_direct);
    let connector = connector.map_err(|reason| insecure(&reason))?;
    let name = ServerName::try_from(host_name(address.host()));
    let name = name.map_err(|error| insecure(&error.to_string()))?;
    let stream = connector.connect(name, socket).await;
    let stream = stream.map_err(|error| insecure(&error.to_string()))?;
    let security = match policy.trusted {
        Trusted::AnyCertificate => "encrypted",
        Trusted::System | Trusted::File(_) => "verified",
    };
    Ok((Socket::Tls(Box::new(stream)), security))
}
