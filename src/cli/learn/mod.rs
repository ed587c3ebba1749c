//! Commands that learn from sessions of agents: `learn`, `lesson`, `hint`, `record`, `hook`, `hooks`.

pub(crate) mod hint;
pub(crate) mod lesson;
pub(crate) mod sessions;
