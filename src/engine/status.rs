//! Counts what is remembered.

use serde::Serialize;

use crate::model::Kind;
use crate::skill::Skills;

use super::{Engine, Error};

/// The counts of a workspace, as far as the scope sees them.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names are the definition: one count each")]
pub struct StatusReport {
    /// The kind of store, by the names of the source document: `JSONStore` is files alone,
    /// `CompositeStore` files that are shared through a database, `PgStore` a database that the files are a
    /// copy of.
    pub store: &'static str,
    /// Where it lies.
    pub directory: String,
    pub executions: u64,
    pub corrections: u64,
    pub reflexions: u64,
    pub procedures: u64,
    pub fixes: u64,
    pub memories: u64,
    pub sessions: u64,
    /// Generated regression tests of all skills.
    pub tests: usize,
    /// The size of the data files; `None` where the scope is not everything.
    pub bytes: Option<u64>,
    /// Whether memory is on; off it is neither read nor written.
    pub enabled: bool,
    /// What of other workspaces was pulled, as far as the scope sees it.
    pub pulled: PulledStatus,
    /// What is wrong with the files, one sentence each.
    pub problems: Vec<String>,
}

/// How much was pulled.
#[derive(Debug, Default, Serialize)]
pub struct PulledStatus {
    /// From how many workspaces.
    pub workspaces: usize,
    /// How many records of theirs are here.
    pub records: u64,
}

impl Engine {
    /// Counts what is remembered. Reads no record.
    pub fn status(&self) -> Result<StatusReport, Error> {
        let mut problems = Vec::new();
        let mut counts = [0; Kind::ALL.len()];
        for (count, kind) in counts.iter_mut().zip(Kind::ALL) {
            *count = self.store.count(kind)?;
            if self.store.has_problems(kind)? {
                problems.push(format!(
                    "`{}` has damaged parts; see `memctl doctor`",
                    kind.file()
                ));
            }
        }
        let [
            executions,
            corrections,
            reflexions,
            procedures,
            fixes,
            memories,
            sessions,
        ] = counts;
        let mut pulled = PulledStatus::default();
        for other in self.store.pulled() {
            pulled.workspaces += 1;
            for kind in Kind::ALL {
                pulled.records += other.store.count(kind)?;
            }
        }
        let skills = Skills::open(&self.skills_dir).ok();
        Ok(StatusReport {
            store: if self.store.primary_name()?.is_some() {
                "PgStore"
            } else if self.store.is_shared() {
                "CompositeStore"
            } else {
                "JSONStore"
            },
            directory: self.store.directory().display().to_string(),
            executions,
            corrections,
            reflexions,
            procedures,
            fixes,
            memories,
            sessions,
            tests: skills.map_or(0, |skills| skills.count_generated_tests()),
            bytes: self.store.bytes(),
            enabled: !crate::store::is_disabled(self.store.directory()),
            pulled,
            problems,
        })
    }
}
