//! Commands for upkeep: `doctor`, `trust`, `config`, `index`, `eval`, `merge-driver`.

pub(crate) mod doctor;
pub(crate) mod git;
pub(crate) mod search;
pub(crate) mod settings;
