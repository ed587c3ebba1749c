//! Regression.

pub mod assertion;
pub mod case;
pub(crate) mod cases;
pub mod export;
