//! Skills.

pub(crate) mod agent_programs;
pub(crate) mod approved_procedures;
pub(crate) mod assemble;
pub(crate) mod executions;
pub(crate) mod nearest;
pub mod prompt;
pub(crate) mod run;
pub(crate) mod test;

pub use assemble::{PromptReport, prompt};
pub use executions::{ExecutionOptions, LoggedExecution, Records, log_execution, records};
pub use run::{RunOptions, RunReport, run};
pub use test::{
    CaseReport, OutputVerdict, Status, TestExportReport, TestPlan, TestReport, decide_output,
    export_tests, plan_tests, test, write_report,
};
