//! Commands about skills: `run`, `correct`, `accept`, `reject`, `test`.

pub(super) mod correct;
pub(super) mod junit;
pub(super) mod run;
pub(super) mod test;
pub(super) mod verdict;
