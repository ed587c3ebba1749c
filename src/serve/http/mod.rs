//! The memory over HTTP.
//!
//! - `listen`: the socket, and the stop in order. `connections`: who has one, and which one ends where there
//!   are too many. `stall`: who does not read.
//! - `table`: every operation, once: the router is made of it, and so is the `OpenAPI` document.
//! - `state`: what every request works with; the one place where a request opens the memory.
//! - `auth`: who asks. `origin`: by which name and from which pages. `limits`: how much and how long.
//! - `problem`: what is answered when it cannot be done, in the shapes of three kinds of clients.
//! - `input`: bodies and parameters, and what is wrong with them. `reply`: answers.
//! - `functions`, `rpc`: the endpoints of the source documents, in the shapes of Supabase; `recall` is what
//!   they search by, `insert` what an analyst writes to.
//! - `native`: executions, corrections, hints, search, prompts.
//! - `mcp`: the tools of agents.
//! - `events`: what changes, as it changes. `metrics`: how the server does.
//! - `openapi`, `schemas`: the description of all this for programs.
//!
//! Invariants: no request without a token reaches the memory; what it reads and writes is held to the
//! token's user and domains by the store; a request that is wrong is told so with a 4xx and a reason;
//! no answer and no log holds a token.
//!
//! Deliberately absent: TLS, which a proxy in front of it does better, and HTTP/2, which browsers and
//! clients speak with TLS only.

mod auth;
mod connections;
mod events;
mod functions;
mod input;
mod insert;
mod limits;
mod listen;
mod mcp;
mod metrics;
mod native;
mod openapi;
mod origin;
mod problem;
mod recall;
mod reply;
mod rpc;
mod schemas;
mod stall;
mod state;
mod table;

pub use limits::Limits;
pub use listen::{Address, Bound, NotListening, bind};
pub use origin::{InvalidOrigin, Origins};
pub use state::{Clock, Log, Options, Server};
