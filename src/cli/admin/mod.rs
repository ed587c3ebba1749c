//! Commands for upkeep: `config`, `doctor`, `index`, `eval`, `trust`, `merge-driver`, `completions`, `man`.

pub(super) mod completions;
pub(super) mod config;
pub(super) mod doctor;
pub(super) mod eval;
pub(super) mod eval_lines;
pub(super) mod index;
pub(super) mod man;
pub(super) mod merge_driver;
pub(super) mod schema;
pub(super) mod trust;
