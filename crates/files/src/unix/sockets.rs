//! Sockets on Unix.

use std::io;
use std::path::Path;
use std::time::Duration;

use socket2::SockRef;

pub(crate) use tokio::net::UnixStream as Stream;

pub(crate) async fn connect(path: &Path) -> io::Result<Stream> {
    Stream::connect(path).await
}

#[cfg(target_os = "linux")]
pub(crate) fn limit_unreceived(socket: &SockRef<'_>, limit: Option<Duration>) -> io::Result<()> {
    socket.set_tcp_user_timeout(limit)
}

/// Does nothing: the system has no such limit.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "it can fail on other systems")]
pub(crate) const fn limit_unreceived(_: &SockRef<'_>, _: Option<Duration>) -> io::Result<()> {
    Ok(())
}
