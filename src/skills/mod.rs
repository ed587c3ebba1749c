//! Skills: a layered prompt, its answer, and regression tests from corrections.
//!
//! - `assemble`: the prompt of a skill: its own layers, then rules and approved procedures within a budget.
//!   `prompt`: how layers become one text.
//! - `run`: prompt, answer, record. `nearest`: the most similar case answers without a model.
//!   `executions`: runs of other programs.
//! - `test`: runs regression cases with and without the rules, judges, and credits the rules.
//!
//! Invariants: the store is checked before a model is paid, and a paid answer is kept in any case. An
//! execution names the records that were in its prompt.
//!
//! Deliberately absent: reading `SKILL.md` (`store::skill`), since rules write into skills too.

pub(crate) mod assemble;
pub(crate) mod executions;
pub(crate) mod nearest;
pub mod prompt;
pub(crate) mod run;
pub(crate) mod test;

pub use assemble::{PromptReport, prompt};
pub use executions::{LoggedExecution, log_execution};
pub(crate) use run::installed_agents;
pub use run::{RunOptions, RunReport, run};
pub use test::{
    CaseReport, OutputVerdict, Status, TestExportReport, TestPlan, TestReport, decide_output,
    export_tests, plan_tests, test,
};
