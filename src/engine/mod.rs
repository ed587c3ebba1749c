//! Operations: runs, corrections, memories, tests, and the search for records. One file per
//! operation.
//!
//! An operation is a function over a [`Workspace`](crate::workspace::Workspace), or over its store
//! alone. It calls one lower module after another and returns a serialisable report, which the
//! caller prints. Non-fatal problems go to its `warnings`.
//!
//! - `assemble`, `run`: the prompt of a skill, and its answer. `correct`: a correction and its rule.
//!   `test`: regression cases.
//! - `remember`, `memories`, `procedures`, `executions`, `record`: adds and lists records.
//! - `browse`, `find`, `rewrite`, `remote_results`: lists, shows and searches records.
//! - `forget`, `reindex`, `embed`, `audit`, `init`: removal, search index, vectors, audit log, setup.
//!
//! Order matters in every operation. Input from a person or a paid model is stored before the next
//! step can fail. The store lock is never held during a model call.

pub(crate) mod assemble;
pub(crate) mod browse;
pub(crate) mod correct;
pub(crate) mod embed;
pub(crate) mod executions;
pub(crate) mod find;
pub(crate) mod memories;
pub(crate) mod nearest;
pub(crate) mod procedures;
pub(crate) mod record;
pub(crate) mod remember;
pub(crate) mod remote_results;
pub(crate) mod rewrite;
pub(crate) mod run;
pub(crate) mod test;

pub use assemble::{PromptReport, prompt};
pub use browse::{ListReport, Listed, ShowReport, list, recent_executions, show};
pub use correct::{
    CorrectOptions, CorrectPreview, CorrectReport, RelationReport, correct, preview_correction,
};
pub use embed::{Embedded, embed};
pub use executions::{ExecutionOptions, LoggedExecution, Records, log_execution, records};
pub use find::{Asked, Explanation, FindOptions, FindReport, Found, Ranks, Term, find, find_near};
pub use memories::{list_memories, memories_where};
pub use procedures::{ProcedureReport, add_procedure};
pub use record::{RecordReport, Success};
pub use remember::{AddOptions, AddReport, add_memory, add_observed};
pub use remote_results::{RemoteResult, remote_results};
pub use rewrite::rewrite;
pub use run::{RunOptions, RunReport, run};
pub use test::{
    CaseReport, OutputVerdict, Status, TestExportReport, TestPlan, TestReport, decide_output,
    export_tests, plan_tests, test, write_report,
};
