//! Sockets, as far as systems differ in them.
//!
//! Promises: a socket with a path is connected on Unix; on Windows every such
//! connection fails. A limit of unreceived data holds on Linux alone; elsewhere
//! keepalive messages detect a vanished server.

use std::io;
use std::path::Path;
use std::time::Duration;

use socket2::SockRef;

use super::system;

/// Connection over a local socket.
pub type LocalStream = system::sockets::Stream;

/// Connects to the socket at a path.
pub async fn connect(path: &Path) -> io::Result<LocalStream> {
    system::sockets::connect(path).await
}

/// Closes a connection whose data the other side has not acknowledged for this time.
pub fn limit_unreceived(socket: &SockRef<'_>, limit: Option<Duration>) -> io::Result<()> {
    system::sockets::limit_unreceived(socket, limit)
}
