//! Standard input and output transport: one message per line, and no other output.

use std::io;

use rmcp::service::{ServerInitializeError, serve_server};
use rmcp::transport::stdio_pipes;

use super::Server;

/// Serves until the input ends. Pending calls are then answered, if they take at most a few
/// seconds; their writes are completed in any case.
pub async fn serve(server: Server) -> io::Result<()> {
    match serve_server(server, stdio_pipes()).await {
        Ok(running) => running.waiting().await.map(drop).map_err(io::Error::other),
        // A client that only checks whether the program starts closes the input again.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(io::Error::other(error)),
    }
}
