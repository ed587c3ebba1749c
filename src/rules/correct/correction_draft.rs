//! Drafts of corrections: the words that a person typed, until a correction is stored.
//!
//! One file, private to the user, beside the copies of a repair: git ignores it, and a purge
//! removes it. It has the newest draft of each execution, without secrets.

use serde::{Deserialize, Serialize};

use crate::store::workspace::{Error, Workspace, redacting_writer};

const DIRECTORY: &str = "recovered";
const FILE: &str = "correction-drafts.json";
/// Maximum size in bytes; a larger file is not ours.
const LARGEST: u64 = 1 << 20;
/// Maximum number of drafts; the oldest are dropped.
const KEPT: usize = 8;

/// Words about an execution that no correction holds yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorrectionDraft {
    /// Time: RFC 3339, UTC.
    pub at: String,
    /// `domain/skill`.
    pub skill: String,
    /// Id of the execution.
    pub execution: String,
    /// Words of the person.
    pub text: String,
}

impl Workspace {
    /// Returns the drafts, oldest first; none if they cannot be read.
    pub fn drafts(&self) -> Vec<CorrectionDraft> {
        let directory = self.store.directory().below(DIRECTORY);
        let bytes = directory.read(FILE, LARGEST).ok().flatten();
        let drafts = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        drafts.unwrap_or_default()
    }

    /// Keeps words about an execution as its draft, redacted.
    pub fn keep_draft(&self, skill: &str, execution: &str, text: &str) -> Result<(), Error> {
        let mut drafts = self.drafts();
        drafts.retain(|draft| draft.execution != execution);
        drafts.push(CorrectionDraft {
            at: self.now.to_rfc3339(),
            skill: skill.to_owned(),
            execution: execution.to_owned(),
            text: memctl_redact::redact(text).text.into_owned(),
        });
        drafts.drain(..drafts.len().saturating_sub(KEPT));
        self.write_drafts(&drafts)
    }

    /// Returns `true` if these words are a draft.
    pub fn is_draft(&self, text: &str) -> bool {
        let text = memctl_redact::redact(text).text;
        self.drafts().iter().any(|draft| draft.text == text)
    }

    /// Removes the draft with these words. They are stored, so a failure does no harm.
    pub fn remove_draft(&self, text: &str) {
        let text = memctl_redact::redact(text).text;
        let mut drafts = self.drafts();
        let before = drafts.len();
        drafts.retain(|draft| draft.text != text);
        if drafts.is_empty() && before > 0 {
            drop(self.store.directory().below(DIRECTORY).remove(FILE));
        } else if drafts.len() < before {
            drop(self.write_drafts(&drafts));
        }
    }

    fn write_drafts(&self, drafts: &[CorrectionDraft]) -> Result<(), Error> {
        self.store.must_be_enabled()?;
        let directory = self.store.directory();
        let text = serde_json::to_string_pretty(drafts).map_err(crate::store::Error::from)?;
        let path = directory.join(DIRECTORY).join(FILE);
        redacting_writer::replace(directory, &path, &text).map(drop)
    }
}
