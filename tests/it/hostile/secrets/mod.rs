//! Secrets in every form in which tools print them, and look-alikes that are none.
//!
//! - `templates`: texts with random parts, built while a test runs (shared with the samples of the
//!   patterns themselves).
//! - `kinds`, `field`, `carriers`, `look_alikes`: what is built.
//! - `rates`: how many survive redaction, and how many look-alikes fall.
//! - `end_to_end`: what reaches files and answers of the program.

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a measurement says what it has found; marks that are not closed are a mistake of the test"
)]

mod carriers;
mod end_to_end;
mod field;
mod kinds;
mod look_alikes;
mod rates;
#[path = "../../../../crates/redact/src/tests/templates.rs"]
mod templates;
