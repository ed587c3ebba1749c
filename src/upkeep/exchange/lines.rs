//! Native export format: JSON Lines.
//!
//! ```text
//! {"format":"memctl-export","version":1,"workspace":…,"exported_at":…,"counts":{"reflexions":2,…}}
//! {"kind":"reflexion","id":"REFL-001","entry":{…}}
//! {"kind":"memory","id":"MEM-001","text":"{ … NaN … }"}
//! {"log":"tombstones.jsonl","entry":{…}}
//! ```
//!
//! `entry` is the record on one line; numbers, strings and key order are those of the file. An entry that
//! other programs cannot read as JSON (`NaN`, which Python writes) is the string `text` instead. So every
//! line is valid JSON. The counts show if the file is complete.
//!
//! Deliberately absent: the layout of an entry in its file, and what other programs keep around the entries.

use std::collections::BTreeMap;

use memctl_files::json::compact;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::model::Kind;
use crate::store::laid_out;

/// Value of `format` in the first line.
pub const FORMAT: &str = "memctl-export";
/// Newest version of the format, which is written and read.
pub const VERSION: u64 = 1;

/// First line of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT`].
    pub format: String,
    /// Version of the format.
    pub version: u64,
    /// Name of the workspace.
    pub workspace: Option<String>,
    /// Time of the export: RFC 3339, UTC.
    pub exported_at: String,
    /// Number of records per kind (plural name), and of lines per log.
    pub counts: BTreeMap<String, u64>,
}

impl Header {
    /// Parses a header; `None` if the line is not one.
    pub fn of(line: &str) -> Option<Self> {
        let header: Self = serde_json::from_str(line.trim_start_matches('\u{feff}')).ok()?;
        (header.format == FORMAT).then_some(header)
    }
}

/// Line after the header: a record, or a line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What the text is.
    pub of: Of,
    /// JSON text, on any number of lines.
    pub text: String,
}

/// What a line holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Of {
    /// Record of a kind; its id is empty if it has none.
    Record(Kind, String),
    /// Line of the log with this file name.
    Log(String),
}

/// JSON form of a line.
#[derive(Default, Serialize, Deserialize)]
struct Written<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<String>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    entry: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl Line {
    /// Serialises the line, without the line break.
    pub fn write(&self) -> Result<String, serde_json::Error> {
        let mut written = Written::default();
        match &self.of {
            Of::Record(kind, id) => {
                written.kind = Some(*kind);
                written.id = Some(id.clone());
            }
            Of::Log(name) => written.log = Some(name.clone()),
        }
        let flat = compact(&self.text);
        // `RawValue` accepts lone surrogates, which make the line invalid for other programs.
        let is_sound = serde_json::from_str::<serde_json::Value>(&flat).is_ok();
        written.entry = is_sound.then(|| serde_json::from_str(&flat)).transpose()?;
        written.text = (!is_sound).then(|| self.text.clone());
        serde_json::to_string(&written)
    }

    /// Parses a line; a record gets the layout of this program's files. The error is the reason as text.
    pub fn read(line: &str) -> Result<Self, String> {
        let written: Written<'_> = serde_json::from_str(line)
            .map_err(|error| format!("it is no line of an export: {error}"))?;
        let entry = written.entry.map(RawValue::get);
        let (of, entry) = match (written.kind, written.log) {
            (Some(kind), _) => {
                let of = Of::Record(kind, written.id.unwrap_or_default());
                (of, entry.map(laid_out))
            }
            (None, Some(name)) => (Of::Log(name), entry.map(str::to_owned)),
            (None, None) => return Err("it is neither a record nor a line of a log".to_owned()),
        };
        match entry.or(written.text) {
            Some(text) => Ok(Self { of, text }),
            None => Err("it holds nothing: `entry` and `text` are missing".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back_on_one_line() {
        let check = |text: &str, has: &str| {
            let record = Line {
                of: Of::Record(Kind::Memory, "MEM-001".to_owned()),
                text: text.to_owned(),
            };
            let line = record.write().unwrap();
            assert!(!line.contains('\n'), "{line}");
            let object: serde_json::Map<String, serde_json::Value> =
                serde_json::from_str(&line).unwrap();
            let names: Vec<&str> = object.keys().map(String::as_str).skip(2).collect();
            assert_eq!(names, [has], "{line}");
            let read = Line::read(&line).unwrap();
            assert_eq!(compact(&read.text), compact(text));
            assert_eq!(read.of, record.of);
        };
        check("{\n  \"a\":1062.0,\n\"b\":[]}", "entry");
        check("{\"a\":12345678901234567890123}", "entry");
        check("{\"\\ud83d\": \"\\udcff\"}", "text");
        check("{\"a\": NaN,\n \"b\": -Infinity}", "text");
        check("{\"é\": \"\u{2028}\u{85}\"}", "entry");
        check("", "text");
    }

    #[test]
    fn what_is_no_line_says_why() {
        for (line, said) in [
            ("", "no line of an export"),
            ("[]", "no line of an export"),
            ("{}", "neither a record nor"),
            ("{\"kind\":\"memory\"}", "it holds nothing"),
            ("{\"kind\":\"dream\",\"entry\":{}}", "no line of an export"),
        ] {
            let error = Line::read(line).unwrap_err();
            assert!(error.contains(said), "{line}: {error}");
        }
        assert_eq!(Header::of("{\"format\":\"other\"}"), None);
    }
}
