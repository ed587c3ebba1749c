//! HTTP server of the memory.
//!
//! - `listen`: the socket, open connections, and graceful shutdown.
//! - `table`: all operations in one table, the source of the router and of the `OpenAPI` document.
//!   `route`: one operation, and the document.
//! - `state`: shared state of all requests; the one place where a request opens the memory; shares of users.
//! - `middleware`: steps around every request. `origins`: accepted host names and origins.
//! - `problem`: error responses, in the formats of three kinds of clients.
//! - `input`: bodies and parameters, their errors, and responses.
//! - `functions`, `tables`, `rows`: endpoints in the format of Supabase: edge functions and RPC, tables, and the
//!   form of their rows.
//! - `records`, `search`, `users`: native endpoints below `/v1/`, with the behaviour and the documents of the
//!   commands of the same names.
//!
//! Invariants: no request without a token reaches the memory. The store limits reads and writes to
//! the token's user and domains. A wrong request gets a 4xx status and a reason. No response and no
//! log contains a token.
//!
//! Deliberately absent: TLS, which a proxy in front provides, and HTTP/2, which browsers and
//! clients use only with TLS.

mod functions;
mod input;
mod listen;
mod middleware;
mod origins;
mod problem;
mod records;
mod route;
mod rows;
mod search;
mod state;
mod table;
mod tables;
mod users;

pub use listen::{Address, Bound, bind};
pub use origins::Origins;
pub use state::{Clock, Log, Options, RATE, Server};
