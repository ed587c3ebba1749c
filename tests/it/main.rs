//! The integration tests: one binary, a module a subject.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests make the files and environments that the program must cope with"
)]

mod fake_model;
mod llm_wire;
mod store;
