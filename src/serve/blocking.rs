//! From an asynchronous server to an operation, and back: the one place where a request waits for the memory.
//!
//! Operations block on files and locks, and some await a model. So an operation runs on a thread of its
//! own, which also opens the memory. The runtime of the server drives the calls of a model.

use tokio::runtime::Handle;
use tokio::task::{JoinError, spawn_blocking};

use crate::store::workspace::Workspace;

/// Opens the memory and runs a verb on it.
///
/// # Errors
///
/// Fails if `open` or `verb` panics.
pub(super) async fn call<T: Send + 'static, E: Send + 'static>(
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
