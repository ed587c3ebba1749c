//! Sockets on Unix.

use std::io;
use std::path::Path;
use std::time::Duration;

use socket2::SockRef;
use tokio_postgres::config::Host;

pub(in crate::platform) use tokio::net::UnixStream as Stream;

pub(in crate::platform) async fn connect(path: &Path) -> io::Result<Stream> {
    Stream::connect(path).await
}

pub(in crate::platform) fn name(host: &Host) -> String {
    match host {
        Host::Unix(directory) => directory.display().to_string(),
        Host::Tcp(name) => name.clone(),
    }
}

pub(in crate::platform) fn directory(host: &Host) -> Option<&Path> {
    match host {
        Host::Unix(directory) => Some(directory),
        Host::Tcp(_) => None,
    }
}

#[cfg(target_os = "linux")]
pub(in crate::platform) fn limit_unreceived(
    socket: &SockRef<'_>,
    limit: Option<Duration>,
) -> io::Result<()> {
    socket.set_tcp_user_timeout(limit)
}

/// Does nothing: the system has no such limit.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "it can fail on other systems")]
pub(in crate::platform) const fn limit_unreceived(
    _: &SockRef<'_>,
    _: Option<Duration>,
) -> io::Result<()> {
    Ok(())
}
