//! Commands that share a memory: `sync`, `remote`, `serve`, `mcp`, `token`.

mod background_log;
mod embed;
pub(super) mod join;
pub(super) mod mcp;
pub(super) mod remote;
pub(super) mod serve;
pub(super) mod sync;
pub(super) mod token;
