//! Commands that learn from sessions of agents: `learn`, `lesson`, `hint`, `record`.

pub(crate) mod hint;
pub(crate) mod lesson;
pub(crate) mod repeats;
pub(crate) mod sessions;
