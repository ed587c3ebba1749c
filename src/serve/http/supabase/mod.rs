//! Endpoints in the form of Supabase: edge functions, RPC, and tables.

pub(crate) mod functions;
pub(crate) mod query;
pub(crate) mod recall;
pub(crate) mod tables;
