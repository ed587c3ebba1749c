//! The protocol over standard input and output: one message a line, and nothing else on the output.

use std::io;

use rmcp::service::{ServerInitializeError, serve_server};
use rmcp::transport::stdio_pipes;

use super::Server;

/// Serves until the input ends. Calls that are under way then are answered first, as long as they take
/// no more than a few seconds; what they write is written in any case.
pub async fn serve(server: Server) -> io::Result<()> {
    match serve_server(server, stdio_pipes()).await {
        Ok(running) => running.waiting().await.map(drop).map_err(io::Error::other),
        // Whoever only looks whether the program starts closes the input again.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(io::Error::other(error)),
    }
}
