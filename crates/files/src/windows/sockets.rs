//! Sockets on Windows, where none has a path.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection that cannot exist.
#[derive(Debug)]
pub enum Stream {}

#[expect(clippy::unused_async, reason = "connecting waits on other systems")]
pub(crate) async fn connect(_: &Path) -> io::Result<Stream> {
    Err(io::ErrorKind::Unsupported.into())
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match *self {}
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        match *self {}
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match *self {}
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match *self {}
    }
}

/// Does nothing: the system has no such limit.
#[expect(clippy::unnecessary_wraps, reason = "it can fail on other systems")]
pub(crate) const fn limit_unreceived(_: &SockRef<'_>, _: Option<Duration>) -> io::Result<()> {
    Ok(())
}
