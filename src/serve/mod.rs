//! The memory for other programs: one table of operations, and the fronts that offer it.
//!
//! - `operations`: what may be asked, with which arguments, and what the answer is.
//! - `mcp`: the Model Context Protocol, over standard input and output, and over HTTP.
//! - `http`: a server, for the clients of the source documents and for programs of one's own.
//! - `token`: who asks there, proved by a signed token.
//!
//! A front decides who asks and opens an [`Engine`](crate::engine::Engine) for that caller, anew for
//! every call, so that each sees what others have written. The operation knows no front, and works in
//! the scope and for the viewer of the engine that it is given.

pub mod http;
pub mod mcp;
pub mod operations;
pub mod token;
