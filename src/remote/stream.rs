//! Stream of one session: a socket, or TLS over it, behind the login guard.
//!
//! The driver gets it as an established TLS stream. Otherwise the driver would negotiate TLS
//! itself, and the guard could not inspect the messages of an unencrypted connection.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};

use memctl_files::process::LocalStream;

use super::login_guard::LoginGuard;
use super::tls;

/// TLS over TCP.
pub(super) type Encrypted = tokio_rustls::client::TlsStream<TcpStream>;

/// Transport to a server.
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(LocalStream),
    Tls(Box<Encrypted>),
}

/// Socket with a login guard, which inspects messages until the login is complete.
pub(super) struct Guarded {
    socket: Socket,
    guard: LoginGuard,
}

impl Guarded {
    pub(super) fn new(socket: Socket, guard: LoginGuard) -> Self {
        Self { socket, guard }
    }
}

/// Evaluates an expression with the inner socket.
macro_rules! with_socket {
    ($socket:expr, $name:ident => $done:expr) => {
        match $socket {
            Socket::Tcp($name) => $done,
            Socket::Unix($name) => $done,
            Socket::Tls($name) => $done,
        }
    };
}

impl AsyncRead for Guarded {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { socket, guard } = self.get_mut();
        loop {
            if guard.is_over() {
                return with_socket!(socket, s => Pin::new(s).poll_read(context, buffer));
            }
            let sound = guard.take_checked(buffer.remaining());
            if !sound.is_empty() {
                buffer.put_slice(sound);
                return Poll::Ready(Ok(()));
            }
            let mut bytes = [0; 4096];
            let mut read = ReadBuf::new(&mut bytes);
            std::task::ready!(
                with_socket!(socket, s => Pin::new(s).poll_read(context, &mut read))
            )?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            guard.receive(read.filled()).map_err(io::Error::other)?;
        }
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        with_socket!(&mut self.get_mut().socket, s => Pin::new(s).poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        with_socket!(&mut self.get_mut().socket, s => Pin::new(s).poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        with_socket!(&mut self.get_mut().socket, s => Pin::new(s).poll_shutdown(context))
    }
}

impl TlsStream for Guarded {
    fn channel_binding(&self) -> ChannelBinding {
        match &self.socket {
            Socket::Tls(stream) => {
                let certificates = stream.get_ref().1.peer_certificates();
                certificates
                    .and_then(<[_]>::first)
                    .and_then(|certificate| tls::end_point(certificate))
                    .map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
            }
            _ => ChannelBinding::none(),
        }
    }
}

/// Completed handshake: the driver receives the stream with TLS already established.
pub(super) struct Established;

impl TlsConnect<Guarded> for Established {
    type Stream = Guarded;
    type Error = Infallible;
    type Future = Ready<Result<Guarded, Infallible>>;

    fn connect(self, stream: Guarded) -> Self::Future {
        ready(Ok(stream))
    }
}
