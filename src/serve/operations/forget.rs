//! `forget`: removes a record, so that it can be brought back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::error::Explained;
use crate::guard::fence;
use crate::model::Kind;

use super::{Report, room, told, undo};

/// The longest summary, in characters.
const SUMMARY: usize = 500;

/// Which record.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgetArgs {
    /// The record's id, such as MEM-001
    pub id: String,
}

/// What was removed.
#[derive(Debug, Serialize)]
pub struct Forgotten {
    /// Its id, which is never given again.
    pub id: String,
    /// Its kind.
    pub kind: Kind,
    /// Its words, on one line: the last sight of them.
    pub summary: String,
    /// The command by which a person brings it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// What went wrong and did not stop it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

pub(super) fn forget(engine: &Engine, args: &ForgetArgs) -> Result<Forgotten, Explained> {
    let report = engine.forget(&args.id, false).map_err(told)?;
    Ok(Forgotten {
        id: report.id,
        kind: report.kind,
        summary: room::beginning(&room::outward(&report.summary), SUMMARY).into_owned(),
        undo: undo(engine),
        warnings: report.warnings,
    })
}

impl Report for Forgotten {
    fn text(&self, nonce: &str) -> String {
        let mut text = format!("Forgotten: {} {}. It said:\n", self.kind, self.id);
        text.push_str(&fence(&[&self.summary], nonce));
        if let Some(undo) = &self.undo {
            text.extend(["A person brings it back by `", undo, "`.\n"]);
        }
        for warning in &self.warnings {
            text.extend(["warning: ", warning, "\n"]);
        }
        text
    }
}
