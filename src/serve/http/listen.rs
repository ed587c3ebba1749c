//! Listening socket and graceful shutdown.
//!
//! At a shutdown, the server accepts no new connection and answers requests in flight.
//! Started writes are completed. Only a kill interrupts them, and the store recovers as after any crash.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use socket2::SockRef;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use memctl_files::process;

use crate::model::error::{Kind, UserError};

use super::state::Server;
use super::state::{CONNECTIONS, GRACE, STALL};
use super::table;

/// Maximum time for the head of a request, and maximum pause between two of a connection.
const HEAD: Duration = Duration::from_secs(15);
/// Maximum size of a request head in bytes, and maximum number of headers.
const LARGEST_HEAD: usize = 64 << 10;
const MOST_HEADERS: usize = 100;
/// Pause after the system failed to accept a connection.
const BREATH: Duration = Duration::from_millis(50);

/// IP address and port.
pub type Address = SocketAddr;

/// Listening socket, before it accepts connections.
#[derive(Debug)]
pub struct Bound {
    listener: std::net::TcpListener,
    /// Bound address, with the port chosen by the system.
    pub address: SocketAddr,
}

/// Listens at an address; port 0 is any free one. `allow_remote` permits addresses that other
/// machines can reach.
///
/// # Errors
///
/// Fails if other machines can reach the address and that is not permitted, or if the system refuses it.
pub fn bind(address: SocketAddr, allow_remote: bool) -> Result<Bound, UserError> {
    if !address.ip().is_loopback() && !allow_remote {
        return Err(UserError::usage(
            format!("`{address}` is not a loopback address"),
            "add `--allow-remote` to serve other machines",
        ));
    }
    let refused = |error| {
        let message = format!("cannot listen on `{address}`: {error}");
        UserError::new(Kind::Io, message, "memctl serve --addr 127.0.0.1:0")
    };
    let listener = std::net::TcpListener::bind(address).map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    Ok(Bound { listener, address })
}

impl Bound {
    /// Answers requests until `stop` resolves, then shuts down gracefully.
    ///
    /// # Errors
    ///
    /// Fails if the system takes the socket away.
    pub async fn serve(
        self,
        server: Server,
        stop: impl Future<Output = ()>,
    ) -> std::io::Result<()> {
        let listener = TcpListener::from_std(self.listener)?;
        let server = Arc::new(server);
        let seats = Arc::new(Semaphore::new(CONNECTIONS));
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
            let Ok((stream, _)) = accepted else {
                // Too many open files, or a client that has disconnected.
                tokio::time::sleep(BREATH).await;
                continue;
            };
            let seat = tokio::select! {
                () = &mut stop => break,
                seat = Arc::clone(&seats).acquire_owned() => seat,
            };
            // Answers are short; delaying them to combine packets gains nothing.
            drop(stream.set_nodelay(true));
            // A peer that reads nothing keeps no connection.
            let socket = SockRef::from(&stream);
            drop(process::limit_unreceived(&socket, Some(STALL)));
            let connection = builder.serve_connection(TokioIo::new(stream), service.clone());
            let connection = graceful.watch(connection);
            tokio::spawn(async move {
                let _seat = seat;
                // A broken connection is the client's problem.
                drop(connection.await);
            });
        }
        drop(listener);
        let ended = tokio::time::timeout(GRACE, graceful.shutdown()).await;
        if ended.is_err() {
            (server.options.log)("some clients did not finish in time and were disconnected");
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
        assert_eq!(bind(bound.address, false).unwrap_err().kind, Kind::Io);
    }
}
