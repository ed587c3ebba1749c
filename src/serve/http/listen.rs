//! The socket: where it listens, and how it stops.
//!
//! A stop is in order: nothing new is accepted, requests in flight get their answers, streams of events
//! end. What has begun to write is finished whatever happens; only a kill does not wait for it, and then
//! the store does what it does for every program.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

use super::connections::{Answer, Connections};
use super::stall::{Socket, is_stall};
use super::state::Server;
use super::table;

/// How long a client may take for the head of a request.
const HEAD: Duration = Duration::from_secs(15);
/// The largest head, in bytes, and the most headers.
const LARGEST_HEAD: usize = 64 << 10;
const MOST_HEADERS: usize = 100;
/// The pause after the system could not give a connection.
const BREATH: Duration = Duration::from_millis(50);

/// An IP address and a port.
pub type Address = SocketAddr;

/// Why a server does not listen.
#[derive(Debug, thiserror::Error)]
pub enum NotListening {
    /// Others could reach it, and nobody has said that they may.
    #[error("`{0}` is not an address of this machine alone")]
    NotLoopback(SocketAddr),
    /// The system refuses.
    #[error("cannot listen on `{address}`")]
    Refused {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
}

/// A socket that listens, before anybody is answered.
#[derive(Debug)]
pub struct Bound {
    listener: std::net::TcpListener,
    /// Where it listens, with the port that the system gave.
    pub address: SocketAddr,
}

/// Listens at an address; port 0 is any free one.
///
/// # Errors
///
/// See [`NotListening`]. `allow_remote` says that others may reach it.
pub fn bind(address: SocketAddr, allow_remote: bool) -> Result<Bound, NotListening> {
    let is_local = match address.ip() {
        IpAddr::V4(ip) => ip.is_loopback(),
        IpAddr::V6(ip) => ip.is_loopback(),
    };
    if !is_local && !allow_remote {
        return Err(NotListening::NotLoopback(address));
    }
    let refused = |source| NotListening::Refused { address, source };
    let listener = std::net::TcpListener::bind(address).map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    Ok(Bound { listener, address })
}

impl Bound {
    /// Answers requests until `stop` comes; then ends in order.
    ///
    /// # Errors
    ///
    /// That the system takes the socket back.
    pub async fn serve(
        self,
        server: Server,
        stop: impl Future<Output = ()>,
    ) -> std::io::Result<()> {
        let listener = TcpListener::from_std(self.listener)?;
        let connections = Connections::new(server.limits().connections);
        let graceful = GracefulShutdown::new();
        let service = TowerToHyperService::new(table::router(&server));
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .max_buf_size(LARGEST_HEAD)
            .max_headers(MOST_HEADERS);
        let mut stop = std::pin::pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                accepted = listener.accept() => accepted,
            };
            let Ok((stream, peer)) = accepted else {
                // Too many open files, or a client that is gone again.
                tokio::time::sleep(BREATH).await;
                continue;
            };
            let evicted = || server.metrics().evicted_connection();
            let seat = tokio::select! {
                () = &mut stop => break,
                seat = connections.admit(peer.ip(), evicted) => Arc::new(seat),
            };
            // Answers are short; waiting to send more at once only delays them.
            drop(stream.set_nodelay(true));
            let socket = Socket::new(stream, server.limits().stall);
            let (service, of) = (service.clone(), Arc::clone(&seat));
            let counted = service_fn(move |request| {
                let busy = of.request();
                let answer = service.call(request);
                async move {
                    let answer = answer.await?;
                    Ok::<_, Infallible>(answer.map(|body| Body::new(Answer { body, _busy: busy })))
                }
            });
            let connection = builder.serve_connection(TokioIo::new(socket), counted);
            let connection = graceful.watch(connection);
            let server = server.clone();
            tokio::spawn(async move {
                let ended = tokio::select! {
                    // A connection that breaks is the client's to notice.
                    ended = connection => ended,
                    () = seat.ended() => return,
                };
                if ended.is_err_and(|error| is_stall(&error)) {
                    server.metrics().stalled_connection();
                }
            });
        }
        drop(listener);
        server.stop();
        let grace = server.limits().grace;
        if tokio::time::timeout(grace, graceful.shutdown())
            .await
            .is_err()
        {
            server.log("some clients did not end in time, and were cut off");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_answered_where_nobody_says_otherwise() {
        let check = |address: &str, allow: bool, expected: bool| {
            let bound = bind(address.parse().unwrap(), allow);
            assert_eq!(bound.is_ok(), expected, "{address} {allow}");
        };
        check("127.0.0.1:0", false, true);
        check("0.0.0.0:0", false, false);
        check("0.0.0.0:0", true, true);
        check("[::]:0", false, false);
        check("192.0.2.1:0", false, false);
        let bound = bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
        assert_ne!(bound.address.port(), 0);
        assert!(matches!(
            bind(bound.address, false),
            Err(NotListening::Refused { .. })
        ));
    }
}
