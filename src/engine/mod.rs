//! The verbs: the only place where store, search, models and learning meet. One file a verb.
//!
//! A verb goes down to one module after another and comes back with a report: data that can be
//! serialised, and that somebody else prints. What went wrong on the way and did not stop the verb
//! stands in its `warnings`.
//!
//! Order matters in all of them: what a person or a paid model gave is stored before the next step
//! can fail, and the lock of the store is never held while a model is asked.

mod analyse;
mod approve;
mod assemble;
mod audit;
mod backtest;
mod briefing;
mod browse;
mod cases;
mod conflicts;
mod correct;
mod doctor;
mod door;
mod edit;
mod elsewhere;
mod embed;
mod embedder;
mod error;
mod evaluate;
mod evaluate_corrections;
mod evidence;
mod executions;
mod experiment;
mod export;
mod find;
mod fixes;
mod forget;
mod git_merge;
mod guardrails;
mod hint;
mod import;
mod index;
mod init;
mod kept;
mod learn;
mod memories;
mod merge;
mod model;
mod nearest;
mod passed_on;
mod procedures;
mod prune;
mod purge;
mod record;
mod reindex;
mod remember;
mod resolve;
mod review;
mod rewrite;
mod rules;
mod run;
mod secrets;
mod session;
mod session_files;
mod shared;
mod sharing;
mod stats;
mod status;
mod test;
mod trace;
mod trust;
mod undo;
mod why;

use chrono::{DateTime, Utc};

use crate::model::SkillPath;
use crate::skill::{Skill, Skills};
use crate::store::{Problem, Scoped};

pub use analyse::{AnalysisPlan, AnalysisReport};
pub use approve::Approved;
pub use assemble::PromptReport;
pub use audit::{AuditFilter, AuditReads, AuditReport, InvalidReads};
pub use backtest::{BacktestOptions, BacktestReport, ErrorReport, ProblemReport, backtest};
pub use briefing::Briefing;
pub use browse::{ListReport, Listed, ShowReport};
pub use conflicts::{ConflictsReport, RulePair};
pub use correct::{CorrectOptions, CorrectReport};
pub use doctor::DoctorReport;
pub use edit::{Draft, EditReport};
pub use elsewhere::Elsewhere;
pub use embed::Embedded;
pub use embedder::{Destination, Embedder, EmbedderName, RemoteEmbedder};
pub use error::Error;
pub use evaluate::{EvaluateReport, Latency, Passage, Question, evaluate};
pub use evaluate_corrections::{
    CorrectionsReport, JudgedCorrection, JudgedPair, Measured, evaluate_corrections,
};
pub use executions::{ExecutionOptions, LoggedExecution, Records};
pub use experiment::{InvalidShare, Share};
pub use export::{ExportFormat, ExportOptions, ExportReport, OnRecords};
pub use find::{Asked, Explanation, FindOptions, FindReport, Found, Ranks, Term};
pub use forget::ForgetReport;
pub use git_merge::{
    Conflict as MergeConflict, Files, Finished, Joined, NewId, Pending, Unjoinable, Versions,
    give_back, is_of_corrections, join,
};
pub use hint::{Adviser, HintOptions, HintReport};
pub use import::{ImportOptions, ImportReport, ImportSource, Renamed};
pub use init::{InitReport, initialise, make_hook, with_lines};
pub use kept::Kept;
pub use learn::{EpisodeReport, LearnOptions, LearnReport, OnBytes, TranscriptReport};
pub use merge::MergeReport;
pub use model::{Chosen, Providers};
pub use procedures::ProcedureReport;
pub use prune::{PruneReport, Pruned};
pub use purge::{PurgeReport, Removed};
pub use record::{RecordReport, Success};
pub use reindex::{IndexOptions, IndexReport, IndexStage};
pub use remember::{AddOptions, AddReport};
pub use resolve::{ResolveReport, Side};
pub use review::ReviewReport;
pub use rewrite::{Rewrite, RewriteBy};
pub use rules::Conflict;
pub use run::{RunOptions, RunReport};
pub use secrets::{SecretAt, SecretsReport};
pub use session::{
    ActionReport, ChangedSession, NewAction, NewSession, SessionChange, SessionError,
    SessionReport, SessionsReport,
};
pub use sharing::Vectoriser;
pub use stats::{Arm, Comparison, Estimate, Part, Period, Piece, StatsReport, Used};
pub use status::{PulledStatus, StatusReport};
pub use test::{CaseReport, Status, TestPlan, TestReport};
pub use trace::TraceOptions;
pub use trust::{TrustMode, Untrusted, UntrustedRecord};
pub use undo::{ChangeReport, UndoReport, Undone};
pub use why::{Link, Relation, WhyReport};

/// A workspace, opened, and what the verbs need from outside.
#[derive(Debug, Clone)]
pub struct Engine {
    /// The records.
    pub store: Scoped,
    /// Where skills are; the directory need not exist.
    pub skills_dir: std::path::PathBuf,
    /// What may be configured.
    pub settings: Settings,
    /// Whose models may be asked.
    pub providers: Providers,
    /// Where a paid answer is kept when the memory directory takes nothing.
    pub spare_dir: std::path::PathBuf,
    /// Now.
    pub now: DateTime<Utc>,
    /// Makes a random name.
    pub random: fn() -> String,
}

/// What may be configured about the verbs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The room for learned rules in a prompt, in tokens.
    pub rules_tokens: usize,
    /// The longest answer of a model, in tokens.
    pub max_output_tokens: u32,
    /// How like the input a known case must be to answer for it, from 0 to 1.
    pub min_similarity: f64,
    /// The prompt for turning corrections into rules, where a user has put one in place of ours.
    pub reflect_prompt: Option<String>,
    /// The prompt for putting procedures into words, where a user has put one in place of ours.
    pub analyse_prompt: Option<String>,
    /// The prompt for judging outputs, likewise.
    pub judge_prompt: Option<String>,
    /// The prompt for rewriting queries, likewise.
    pub rewrite_prompt: Option<String>,
    /// Whether the queries of a search are rewritten, where nobody says otherwise.
    pub rewrite: RewriteBy,
    /// The share of rules that is withheld at random.
    pub withhold: Share,
    /// Which reads are noted in the audit.
    pub audit_reads: AuditReads,
    /// After how many days a task memory expires where nobody says otherwise; 0 is never.
    pub task_days: u32,
}

impl Engine {
    /// The skills directory.
    fn skills(&self) -> Result<Skills, Error> {
        Ok(Skills::open(&self.skills_dir)?)
    }

    /// A skill that the scope covers.
    fn skill(&self, path: &SkillPath) -> Result<(Skills, Skill), Error> {
        self.permit(path)?;
        let skills = self.skills()?;
        let skill = skills.load(path)?;
        Ok((skills, skill))
    }

    fn permit(&self, path: &SkillPath) -> Result<(), Error> {
        let name = path.to_string();
        if self.store.scope().allows(Some(&name)) {
            Ok(())
        } else {
            Err(crate::store::Error::OutOfScope { what: name }.into())
        }
    }

    /// The time as records carry it: RFC 3339 with microseconds and `+00:00`.
    fn timestamp(&self) -> String {
        stamp(self.now)
    }
}

/// A time as records carry it.
fn stamp(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
}

/// What a writer has mended, as warnings.
fn mended(problems: Vec<Problem>) -> impl Iterator<Item = String> {
    problems.into_iter().map(|problem| {
        format!("mended after a crash: {problem}; what stood there is kept in `recovered/`")
    })
}

/// A duration as reports show it: milliseconds, to a tenth.
fn milliseconds(duration: std::time::Duration) -> f64 {
    (duration.as_secs_f64() * 10_000.0).round() / 10.0
}

/// An amount as records carry it: to a billionth of a dollar, which is less than any token costs.
fn dollars(amount: f64) -> f64 {
    (amount * 1e9).round() / 1e9
}
