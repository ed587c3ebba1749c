//! Sockets of a database client.
//!
//! Promises: a socket with a path is connected on Unix; on Windows, where the database driver has
//! none, every such connection fails. A limit of unreceived data holds on Linux alone; elsewhere
//! keepalive messages detect a vanished server.

use std::io;
use std::path::Path;
use std::time::Duration;

use socket2::SockRef;
use tokio_postgres::config::Host;

use super::system;

/// Connection over a local socket.
pub(crate) type LocalStream = system::sockets::Stream;

/// Connects to the socket at a path.
pub(crate) async fn connect(path: &Path) -> io::Result<LocalStream> {
    system::sockets::connect(path).await
}

/// Returns the name of a host on the network, or the directory of a socket.
pub(crate) fn name(host: &Host) -> String {
    system::sockets::name(host)
}

/// Returns the directory of a database's socket; `None` for a host on the network.
pub(crate) fn directory(host: &Host) -> Option<&Path> {
    system::sockets::directory(host)
}

/// Closes a connection whose data the other side has not acknowledged for this time.
pub(crate) fn limit_unreceived(socket: &SockRef<'_>, limit: Option<Duration>) -> io::Result<()> {
    system::sockets::limit_unreceived(socket, limit)
}
