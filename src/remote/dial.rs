//! Connecting: from an address to a logged-in session.
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

use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_postgres::config::{ChannelBinding, Config, SslMode, SslNegotiation};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Connection as Driver};

use memctl_files::process;

use super::address::{Address, host_name, socket_directory};
use super::error::Error;
use super::login_guard::{LoginGuard, Refusal};
use super::policy::{Binding, Encryption, Trusted};
use super::stream::{Established, Guarded, Socket};
use super::tls;

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
    let reason = crate::model::error::message(error);
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
