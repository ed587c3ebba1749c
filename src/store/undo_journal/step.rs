//! Lines of the undo journal: a write, with the values needed to revert it.

use memctl_files::hex;
use serde::{Deserialize, Serialize};

use crate::model::Kind;
use crate::store::trust::{Mac, UserKey, parse};
use crate::store::{DataFile, Error};

/// One write: a line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Line {
    /// Id of the change that the write belongs to:
    /// [`AuditContext::change`](crate::store::AuditContext::change).
    pub change: String,
    /// Time: RFC 3339, UTC.
    pub at: String,
    /// Caller; empty if unknown.
    pub who: String,
    /// Reason: the command.
    pub why: String,
    /// The write.
    #[serde(flatten)]
    pub step: Step,
    /// Digest of the line under the key of the user who wrote it. Lines from other sources have no
    /// valid one and are not reverted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
}

impl Line {
    pub(super) fn signed(mut self, key: Option<&UserKey>) -> Result<Self, Error> {
        self.mac = match key {
            Some(key) => Some(hex(&self.digest(key)?)),
            None => None,
        };
        Ok(self)
    }

    pub(super) fn is_signed(&self, key: &UserKey) -> bool {
        let found = self.mac.as_deref().and_then(parse);
        found.is_some_and(|found| self.digest(key).is_ok_and(|digest| digest == found))
    }

    fn digest(&self, key: &UserKey) -> Result<Mac, Error> {
        let unsigned = Self {
            mac: None,
            ..self.clone()
        };
        let text = serde_json::to_string(&unsigned)?;
        Ok(key.digest("journal", [text]))
    }
}

/// A write, with the values needed to revert it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "did", rename_all = "lowercase")]
pub enum Step {
    /// A record was added.
    Added {
        /// Kind of the record.
        kind: Kind,
        /// Id of the record.
        id: String,
    },
    /// Fields of a record were changed.
    Edited {
        /// Kind of the record.
        kind: Kind,
        /// Id of the record.
        id: String,
        /// The changed fields.
        fields: Vec<Field>,
    },
    /// A record was removed.
    Removed {
        /// Kind of the record.
        kind: Kind,
        /// Id of the record.
        id: String,
        /// `true` if the record was in the local file of its kind.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        local: bool,
        /// JSON text; `None` if it is not UTF-8, so that it cannot be restored.
        text: Option<String>,
    },
    /// A record was moved to another file of its kind.
    Moved {
        /// Kind of the record.
        kind: Kind,
        /// Id of the record there.
        id: String,
        /// Id of the record before; `None` if it is the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        /// `true` if it is in the local file now.
        local: bool,
    },
    /// A file of a skill was written.
    File {
        /// Path relative to the skills directory.
        path: String,
        /// The difference.
        splice: Splice,
    },
    /// Lines of the execution log were removed or restored with their session.
    Lines {
        /// Id of the session.
        id: String,
        /// `true` if the lines were restored.
        came: bool,
        /// The lines.
        lines: Vec<PlacedLine>,
    },
    /// A change was reverted.
    Undone {
        /// Id of the reverted change.
        of: String,
    },
}

/// A field before and after an edit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Field {
    /// Name of the field.
    pub name: String,
    /// JSON text before; `None` if the field was missing.
    pub before: Option<String>,
    /// JSON text after; `None` if the field was removed.
    pub after: Option<String>,
}

/// A log line and its position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlacedLine {
    /// Byte offset in the log.
    pub at: u64,
    /// Text without the line break.
    pub text: String,
}

impl PlacedLine {
    /// Returns `true` if a log line, with or without its line break, is this one.
    pub fn is(&self, line: &[u8]) -> bool {
        line.strip_suffix(b"\n").unwrap_or(line) == self.text.as_bytes()
    }
}

/// Difference between two texts: one replaced range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Splice {
    /// Length of the common prefix in bytes.
    pub at: usize,
    /// Replaced text; `None` if the file did not exist.
    pub before: Option<String>,
    /// New text; `None` if the file was removed.
    pub after: Option<String>,
    /// Length of the whole new text in bytes.
    pub length: usize,
}

impl Step {
    /// Step of a record that is moved to this file, where it has another id or the same.
    pub(crate) fn moved(to: DataFile, from: &str, id: &str) -> Self {
        Self::Moved {
            kind: to.kind,
            id: id.to_owned(),
            from: (from != id).then(|| from.to_owned()),
            local: to.is_local,
        }
    }

    /// Returns the id of a moved record in the local and in the shared file, if they differ.
    pub fn both_ids(&self) -> Option<(&str, &str)> {
        match self {
            Self::Moved {
                id,
                from: Some(from),
                local,
                ..
            } => Some(if *local { (id, from) } else { (from, id) }),
            _ => None,
        }
    }

    /// Returns the id of the affected record, or the path of the file; `None` for [`Self::Undone`].
    pub fn target(&self) -> Option<&str> {
        match self {
            Self::Added { id, .. }
            | Self::Edited { id, .. }
            | Self::Removed { id, .. }
            | Self::Moved { id, .. }
            | Self::Lines { id, .. } => Some(id),
            Self::File { path, .. } => Some(path),
            Self::Undone { .. } => None,
        }
    }

    /// Returns the kind of the affected record.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Self::Added { kind, .. }
            | Self::Edited { kind, .. }
            | Self::Removed { kind, .. }
            | Self::Moved { kind, .. } => Some(*kind),
            Self::Lines { .. } => Some(Kind::Session),
            Self::File { .. } | Self::Undone { .. } => None,
        }
    }
}

impl Splice {
    /// Computes the difference between two texts; `None` means a missing file.
    pub fn between(before: Option<&str>, after: Option<&str>) -> Self {
        let (Some(a), Some(b)) = (before, after) else {
            return Self {
                at: 0,
                before: before.map(str::to_owned),
                after: after.map(str::to_owned),
                length: after.map_or(0, str::len),
            };
        };
        let mut start = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
        while !a.is_char_boundary(start) {
            start -= 1;
        }
        let ends = a[start..].bytes().rev().zip(b[start..].bytes().rev());
        let mut end = ends.take_while(|(a, b)| a == b).count();
        while !a.is_char_boundary(a.len() - end) {
            end -= 1;
        }
        Self {
            at: start,
            before: Some(a[start..a.len() - end].to_owned()),
            after: Some(b[start..b.len() - end].to_owned()),
            length: b.len(),
        }
    }

    /// Reverts the difference in the current text. Searches for the inserted text if the text has
    /// changed elsewhere.
    ///
    /// # Errors
    ///
    /// A message if the inserted text is missing, occurs more than once, or was changed.
    pub fn revert(&self, now: &str) -> Result<String, &'static str> {
        let (Some(before), Some(after)) = (&self.before, &self.after) else {
            return Err("it no longer exists");
        };
        let rest = now.get(self.at..).filter(|_| now.len() == self.length);
        let at = if rest.is_some_and(|rest| rest.starts_with(after.as_str())) {
            self.at
        } else {
            let mut places = now.match_indices(after.as_str());
            match (after.is_empty(), places.next(), places.next()) {
                (false, Some((at, _)), None) => at,
                _ => return Err("it was changed since then"),
            }
        };
        Ok([&now[..at], before, &now[at + after.len()..]].concat())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_splice_comes_back(a in "[ab✓é\n]{0,12}", b in "[ab✓é\n]{0,12}") {
            let splice = Splice::between(Some(&a), Some(&b));
            prop_assert_eq!(splice.revert(&b), Ok(a));
        }
    }

    #[test]
    fn a_splice_is_found_where_the_rest_has_changed() {
        let splice = Splice::between(Some("# G\n"), Some("# G\n## 1\nrule\n"));
        assert_eq!(
            splice.revert("# Title\n\n## 1\nrule\nmore\n").unwrap(),
            "# Title\n\nmore\n"
        );
        assert!(splice.revert("# G\n## 1\nother rule\n").is_err());
        assert!(splice.revert("## 1\nrule\n## 1\nrule\n").is_err());
    }
}
