//! Text around the entries of a data file: a `format`, and keys of other programs.

use memctl_files::json::{compact, fields, skip_space, skip_value};

use crate::model::Kind;

/// Closing brackets of a file that this program writes.
pub(crate) const CLOSING: &str = "\n  ]\n}\n";

/// Text around the entries of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Text before the first entry.
    pub head: String,
    /// Text after the last entry.
    pub tail: String,
}

impl Frame {
    /// Returns the frame that this program writes.
    pub fn plain(kind: Kind) -> Self {
        Self {
            head: format!("{{\n  \"{}\": [\n    ", kind.root_key()),
            tail: CLOSING.to_owned(),
        }
    }

    /// Returns `true` if entries fit into the frame.
    pub(crate) fn holds(&self, kind: Kind) -> bool {
        let whole = format!("{}{}", self.head, self.tail);
        let text = whole.as_bytes();
        let is_whole = skip_value(text, skip_space(text, 0)).is_ok();
        let array = fields(text).find(|(key, _)| key == kind.root_key());
        is_whole && array.is_some_and(|(_, span)| compact(&whole[span]) == "[]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_holds_no_entries_is_not_used() {
        for (head, tail, holds) in [
            ("{\"entries\": [", "]}", true),
            ("{\"format\": 1, \"entries\":[ ", " ] }\n", true),
            ("{\"entries\": [1, ", "]}", false),
            ("{\"other\": [", "]}", false),
            ("{\"entries\": [", "", false),
            ("", "", false),
        ] {
            let frame = Frame {
                head: head.to_owned(),
                tail: tail.to_owned(),
            };
            assert_eq!(frame.holds(Kind::Memory), holds, "{head}{tail}");
        }
    }
}
