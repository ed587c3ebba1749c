//! Commands for upkeep: `config`, `doctor`, `index`, `eval`, `trust`, `merge-driver`, `completions`, `man`.

pub(crate) mod doctor;
pub(crate) mod git;
pub(crate) mod search;
pub(crate) mod settings;
