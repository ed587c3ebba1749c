//! Access to the memory for other programs: one table of operations, and the interfaces that offer
//! it.
//!
//! - `operations`: the operations, their arguments and answers.
//! - `mcp`: the Model Context Protocol, over standard input and output, and over HTTP.
//! - `http`: a server, for the clients of the source documents and for the user's own programs.
//! - `token`: authentication by signed tokens.
//! - `blocking`: from a request to an operation, which blocks. `names`: schemas of names.
//!
//! An interface identifies the caller and opens a [`Workspace`](crate::store::workspace::Workspace) for every
//! call, so that each call sees the writes of others. The operation is independent of the
//! interface, and works in the scope and for the viewer of that workspace.

pub mod arguments;
mod blocking;
pub mod http;
pub mod mcp;
pub mod operations;
pub mod token;
