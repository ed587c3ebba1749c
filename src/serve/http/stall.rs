//! Socket with a write timeout.
//!
//! A peer that reads nothing for too long is disconnected. Otherwise a stalled connection would
//! keep its seat, its event stream and its pending data for many minutes, or forever.
//!
//! Only a complete stall counts: a client that reads slowly stays connected.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// Socket that fails with [`io::ErrorKind::TimedOut`] if its peer reads nothing for too long.
pub(super) struct Socket {
    stream: TcpStream,
    limit: Duration,
    /// Deadline for the peer to read; `None` while nothing is pending.
    until: Option<Pin<Box<Sleep>>>,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, limit: Duration) -> Self {
        Self {
            stream,
            limit,
            until: None,
        }
    }

    /// Returns the result of a write, or a timeout error if it has been pending for too long.
    fn judge<T>(&mut self, cx: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.until = None;
            return done;
        }
        let limit = self.limit;
        let until = self.until.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(until.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

/// Returns `true` if a connection ended because its peer did not read.
pub(super) fn is_stall(error: &hyper::Error) -> bool {
    let source = std::error::Error::source(error);
    let source = source.and_then(|source| source.downcast_ref::<io::Error>());
    source.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut)
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judge(cx, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.judge(cx, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
