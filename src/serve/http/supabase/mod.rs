//! Endpoints in the form of Supabase: edge functions, RPC, and inserts.

pub(crate) mod functions;
pub(crate) mod insert;
pub(crate) mod recall;
pub(crate) mod rpc;
