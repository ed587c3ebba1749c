//! Connecting: from an address to a logged-in session.
//!
//! Hosts and their addresses are tried in order until one answers. A server that asks for a login
//! method that the policy refuses ends the attempts, since the other hosts may belong to the same
//! attacker.
//!
//! Invariants: a host that counts as local is never contacted at a remote address, regardless of
//! name resolution. Each attempt has a time limit that covers the handshake and the login.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_postgres::config::{
    ChannelBinding, Config, Host, SslMode, SslNegotiation, TargetSessionAttrs,
};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Connection as Driver, SimpleQueryMessage};

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

/// Reason why an attempt failed.
enum Failed {
    /// No answer within the time limit; the next address is tried.
    Unreachable(String),
    Tls(String),
    Refused(String),
    Login(Refusal),
}

/// TLS request of the protocol, and the two answers of a server.
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
const TLS_GRANTED: u8 = b'S';
const TLS_DENIED: u8 = b'N';

/// Logs in to the first server that answers.
pub(super) async fn dial(address: &Address) -> Result<LoggedIn, Error> {
    let config = address.config();
    let count = config.get_hosts().len().max(config.get_hostaddrs().len());
    let mut last = Failed::Unreachable("its URL names no host".to_owned());
    'hosts: for number in 0..count {
        let host = config.get_hosts().get(number);
        let known = config.get_hostaddrs().get(number).copied();
        let ports = config.get_ports();
        let port = ports.get(number).or(ports.first()).copied().unwrap_or(5432);
        let targets = match targets(address, host, known, port).await {
            Ok(targets) => targets,
            Err(failed) => {
                last = failed;
                continue;
            }
        };
        for target in targets {
            let attempt = attempt(address, host, &target);
            let limit = config.get_connect_timeout().copied();
            let limit = limit.unwrap_or(Duration::from_secs(10));
            last = match tokio::time::timeout(limit, attempt).await {
                Ok(Ok(dialled)) => return Ok(dialled),
                Ok(Err(failed)) => failed,
                Err(_) => Failed::Unreachable(format!("no answer within {} s", limit.as_secs())),
            };
            if !matches!(last, Failed::Unreachable(_)) {
                break 'hosts;
            }
        }
    }
    let database = address.shown();
    Err(match last {
        Failed::Unreachable(reason) => Error::Unreachable {
            database,
            reason: address.scrub(&reason),
        },
        Failed::Tls(reason) => Error::Tls {
            database,
            reason: address.scrub(&reason),
        },
        Failed::Refused(reason) => Error::Refused {
            database,
            reason: address.scrub(&reason),
        },
        Failed::Login(refusal) => Error::Login { database, refusal },
    })
}

/// Socket address or socket path.
enum Target {
    Tcp(SocketAddr),
    Unix(std::path::PathBuf),
}

/// Resolves a host to its targets.
async fn targets(
    address: &Address,
    host: Option<&Host>,
    known: Option<IpAddr>,
    port: u16,
) -> Result<Vec<Target>, Failed> {
    let addresses = match (known, host) {
        (Some(known), _) => vec![SocketAddr::new(known, port)],
        (None, Some(host)) => {
            if let Some(directory) = socket_directory(host) {
                let socket = directory.join(format!(".s.PGSQL.{port}"));
                return Ok(vec![Target::Unix(socket)]);
            }
            let name = host_name(host);
            let found = tokio::net::lookup_host((name.as_str(), port)).await;
            found
                .map_err(|e| Failed::Unreachable(e.to_string()))?
                .collect()
        }
        (None, None) => Vec::new(),
    };
    let is_allowed = |at: &SocketAddr| !address.is_local() || at.ip().to_canonical().is_loopback();
    let targets: Vec<Target> = addresses
        .into_iter()
        .filter(is_allowed)
        .map(Target::Tcp)
        .collect();
    if targets.is_empty() {
        let reason = "the name has no address that it may have";
        return Err(Failed::Unreachable(reason.to_owned()));
    }
    Ok(targets)
}

/// One attempt: socket, TLS, login, and check of `target_session_attrs`.
async fn attempt(
    address: &Address,
    host: Option<&Host>,
    target: &Target,
) -> Result<LoggedIn, Failed> {
    let unreachable = |e: std::io::Error| Failed::Unreachable(e.to_string());
    let (socket, security) = match target {
        Target::Unix(path) => {
            let socket = process::connect(path).await;
            (Socket::Unix(socket.map_err(unreachable)?), "plain")
        }
        Target::Tcp(at) => {
            let socket = TcpStream::connect(at).await.map_err(unreachable)?;
            tune(&socket, address.config()).map_err(unreachable)?;
            encrypt(address, host, at, socket).await?
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
    let (client, mut session) = logged_in.await.map_err(|error| failed(&error, must_bind))?;
    let wanted = config.get_target_session_attrs();
    if wanted != TargetSessionAttrs::Any {
        let is_read_only = is_read_only(&client, &mut session).await?;
        if is_read_only == (wanted == TargetSessionAttrs::ReadWrite) {
            let reason = "it is not the kind of server that `target_session_attrs` asks for";
            return Err(Failed::Unreachable(reason.to_owned()));
        }
    }
    Ok(LoggedIn {
        client,
        session,
        security,
    })
}

/// Classifies the error of a failed login.
fn failed(error: &tokio_postgres::Error, must_bind: bool) -> Failed {
    if let Some(said) = error.as_db_error() {
        let message = said.message().to_owned();
        // The server is starting or stopping; another host may be available.
        return if *said.code() == SqlState::CANNOT_CONNECT_NOW {
            Failed::Unreachable(message)
        } else {
            Failed::Refused(message)
        };
    }
    let source = std::error::Error::source(error);
    let io = source.and_then(|source| source.downcast_ref::<std::io::Error>());
    let refusal = io.and_then(std::io::Error::get_ref);
    let refusal = refusal.and_then(|inner| inner.downcast_ref::<Refusal>());
    if let Some(refusal) = refusal {
        return Failed::Login(*refusal);
    }
    let reason = super::error::whole(error);
    // The server offers a binding that this client cannot compute, for example for Ed25519
    // certificates.
    if must_bind && reason.contains("channel binding") {
        return Failed::Login(Refusal::Unbound);
    }
    Failed::Unreachable(reason)
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
    host: Option<&Host>,
    at: &SocketAddr,
    mut socket: TcpStream,
) -> Result<(Socket, &'static str), Failed> {
    let policy = address.policy();
    if policy.encryption == Encryption::Never {
        return Ok((Socket::Tcp(socket), "plain"));
    }
    let is_direct = address.config().get_ssl_negotiation() == SslNegotiation::Direct;
    if !is_direct {
        let unreachable = |e: std::io::Error| Failed::Unreachable(e.to_string());
        socket.write_all(&TLS_REQUEST).await.map_err(unreachable)?;
        match socket.read_u8().await.map_err(unreachable)? {
            TLS_GRANTED => {}
            TLS_DENIED if policy.encryption == Encryption::IfOffered => {
                return Ok((Socket::Tcp(socket), "plain"));
            }
            TLS_DENIED => {
                let reason = "the server, or somebody before it, offers no TLS; nothing was sent";
                return Err(Failed::Tls(reason.to_owned()));
            }
            _ => return Err(Failed::Login(Refusal::Garbled)),
        }
    }
    let connector = tls::connector(&policy.trusted, is_direct).map_err(Failed::Tls)?;
    let name = match host {
        Some(Host::Tcp(name)) => name.clone(),
        _ => at.ip().to_string(),
    };
    let name = ServerName::try_from(name).map_err(|e| Failed::Tls(e.to_string()))?;
    let stream = connector
        .connect(name, socket)
        .await
        .map_err(|e| Failed::Tls(e.to_string()))?;
    let security = match policy.trusted {
        Trusted::AnyCertificate => "encrypted",
        Trusted::System | Trusted::File(_) => "verified",
    };
    Ok((Socket::Tls(Box::new(stream)), security))
}

/// Returns `true` if the server is read-only.
async fn is_read_only(client: &Client, session: &mut Session) -> Result<bool, Failed> {
    let gone = || Failed::Unreachable("it closed the connection".to_owned());
    let asked = client.simple_query("show transaction_read_only");
    let answer = tokio::select! {
        answer = asked => answer.map_err(|e| Failed::Unreachable(e.to_string()))?,
        _ = session => return Err(gone()),
    };
    let row = answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    Ok(row == Some("on"))
}
