//! Commands that share a memory: `sync`, `remote`, `serve`, `mcp`, `token`.

pub(crate) mod mcp;
pub(crate) mod remote;
pub(crate) mod serve;
pub(crate) mod sync;
