//! Access to the memory for other programs: one table of operations, and the interfaces that offer
//! it.
//!
//! - `operations`: the operations, their arguments and answers.
//! - `mcp`: the Model Context Protocol, over standard input and output, and over HTTP.
//! - `http`: a server, for the clients of the source documents and for the user's own programs.
//! - `token`: authentication by signed tokens.
//!
//! An interface identifies the caller and opens a [`Workspace`] for every
//! call, so that each call sees the writes of others. The operation is independent of the
//! interface, and works in the scope and for the viewer of that workspace.

pub mod arguments;
pub mod http;
pub mod mcp;
pub mod operations;

/// JSON Web Tokens that authenticate callers and limit their domains.
///
/// - `keys`: secrets, the public keys of an external issuer, and signatures.
/// - `verify`: the claims of a token, and its conversion to a [`Caller`](token::Caller), or to an error.
///
/// Invariants: verification fails closed. A missing, empty or unknown claim is an error, and never
/// means "everything". The type of a key determines its algorithms; the algorithm in a token must
/// agree with it. No error message contains a token or a secret.
pub mod token {
    mod keys;
    mod verify;

    pub use keys::{Jwks, Refused, Secret, default_file};
    pub use verify::{AUDIENCE, Caller, Keys, Minted, NewToken, Verifier, mint};
}

use tokio::runtime::Handle;
use tokio::task::{JoinError, spawn_blocking};

use crate::store::workspace::Workspace;

/// Opens the memory and runs a verb on it: the one place where a request of an asynchronous server waits for the
/// memory.
///
/// Operations block on files and locks, and some await a model. So an operation runs on a thread of its own, which
/// also opens the memory. The runtime of the server drives the calls of a model.
///
/// # Errors
///
/// Fails if `open` or `verb` panics.
async fn call<T: Send + 'static, E: Send + 'static>(
    open: impl FnOnce() -> Result<Workspace, E> + Send + 'static,
    verb: impl AsyncFnOnce(&Workspace) -> Result<T, E> + Send + 'static,
) -> Result<Result<T, E>, JoinError> {
    let runtime = Handle::current();
    let called = spawn_blocking(move || {
        let workspace = open()?;
        runtime.block_on(verb(&workspace))
    });
    called.await
}
