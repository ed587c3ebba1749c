//! Commands about skills: `run`, `correct`, `accept`, `reject`, `test`.

pub(crate) mod correct;
pub(crate) mod run;
pub(crate) mod test;
