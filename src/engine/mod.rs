//! Operations: the only place where store, search, models and learning meet. One file per
//! operation.
//!
//! An operation calls one lower module after another and returns a serialisable report, which the
//! caller prints. Non-fatal problems go to its `warnings`.
//!
//! Order matters in every operation. Input from a person or a paid model is stored before the next
//! step can fail. The store lock is never held during a model call.

pub(crate) mod assemble;
pub(crate) mod audit;
pub(crate) mod browse;
pub(crate) mod correct;
pub(crate) mod embed;
pub(crate) mod evidence;
pub(crate) mod executions;
pub(crate) mod find;
pub(crate) mod forget;
pub(crate) mod init;
pub(crate) mod memories;
pub(crate) mod nearest;
pub(crate) mod passed_on;
pub(crate) mod procedures;
pub(crate) mod record;
pub(crate) mod reindex;
pub(crate) mod remember;
pub(crate) mod remote_results;
pub(crate) mod rewrite;
pub(crate) mod rules;
pub(crate) mod run;
pub(crate) mod test;
pub(crate) mod trace;

pub use assemble::PromptReport;
pub use audit::{AuditFilter, AuditReport};
pub use browse::{ListReport, Listed, ShowReport};
pub use correct::{CorrectOptions, CorrectReport};
pub use embed::Embedded;
pub use executions::{ExecutionOptions, LoggedExecution, Records};
pub use find::{Asked, Explanation, FindOptions, FindReport, Found, Ranks, Term};
pub use forget::ForgetReport;
pub use init::{InitReport, initialise, make_hook, with_lines};
pub use procedures::ProcedureReport;
pub use record::{RecordReport, Success};
pub use reindex::{IndexOptions, IndexReport, IndexStage};
pub use remember::{AddOptions, AddReport};
pub use remote_results::RemoteResult;
pub use rules::Conflict;
pub use run::{RunOptions, RunReport};
pub use test::{CaseReport, Status, TestPlan, TestReport};
pub use trace::TraceOptions;
