//! Native export format: JSON Lines that restore every record byte for byte.
//!
//! ```text
//! {"format":"memctl-export","version":1,"workspace":…,"exported_at":…,"counts":{"reflexions":2,…}}
//! {"kind":"reflexion","id":"REFL-001","entry":{…}}
//! {"kind":"memory","id":"MEM-001","entry":{…},"text":"{ … }"}
//! {"frame":"reflexion_entries.json","head":"…","tail":"…"}
//! {"log":"tombstones.jsonl","entry":{…}}
//! ```
//!
//! `entry` is the record on one line; numbers, strings and key order are those of the file. If the
//! file has another layout than this program writes, `text` holds the exact bytes. An entry that is
//! not JSON (`NaN`) has only `text`, and one that is not UTF-8 has only `hex`. So every line is
//! valid JSON, and nothing is lost. The counts show if the file is complete.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::model::Kind;
use crate::store::{Entry, Frame, laid_out};
use memctl_files::hex;
use memctl_files::json::compact;

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

/// Line after the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// Record.
    Entry {
        /// Kind of the record.
        kind: Kind,
        /// Record id; empty if the record has none.
        id: String,
        /// Bytes of the record in its file.
        text: Vec<u8>,
    },
    /// Text before and after the entries of a file.
    Frame {
        /// Kind of the file.
        kind: Kind,
        /// Head and tail of the file.
        frame: Frame,
    },
    /// Line of a log.
    Log {
        /// File name of the log.
        name: String,
        /// Text of the line, without the line break.
        text: Vec<u8>,
    },
}

impl From<Entry> for Line {
    fn from(entry: Entry) -> Self {
        Self::Entry {
            kind: entry.kind,
            id: entry.id,
            text: entry.text,
        }
    }
}

/// JSON form of a line.
#[derive(Default, Serialize, Deserialize)]
struct Written<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    frame: Option<String>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    entry: Option<&'a RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hex: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    head: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tail: Option<String>,
}

impl Line {
    /// Serialises the line, without the line break.
    pub fn write(&self) -> Result<String, serde_json::Error> {
        let mut written = Written::default();
        match self {
            Self::Frame { kind, frame } => {
                written.frame = Some(kind.file().to_owned());
                written.head = Some(frame.head.clone());
                written.tail = Some(frame.tail.clone());
                serde_json::to_string(&written)
            }
            Self::Entry { kind, id, text } => {
                written.kind = Some(*kind);
                written.id = Some(id.clone());
                with_text(written, text, true)
            }
            Self::Log { name, text } => {
                written.log = Some(name.clone());
                with_text(written, text, false)
            }
        }
    }

    /// Parses a line. The error is the reason as text.
    pub fn read(line: &str) -> Result<Self, String> {
        let written: Written<'_> = serde_json::from_str(line)
            .map_err(|error| format!("it is no line of an export: {error}"))?;
        let text = |is_entry: bool| -> Result<Vec<u8>, String> {
            match (&written.hex, &written.text, written.entry) {
                (Some(hex), _, _) => unhex(hex).ok_or_else(|| "its `hex` is none".to_owned()),
                (None, Some(text), _) => Ok(text.clone().into_bytes()),
                (None, None, Some(entry)) if is_entry => Ok(laid_out(entry.get()).into_bytes()),
                (None, None, Some(entry)) => Ok(entry.get().as_bytes().to_vec()),
                (None, None, None) => {
                    Err("it holds nothing: `entry` and `text` are missing".to_owned())
                }
            }
        };
        if let Some(kind) = written.kind {
            return Ok(Self::Entry {
                kind,
                text: text(true)?,
                id: written.id.unwrap_or_default(),
            });
        }
        if let Some(name) = &written.log {
            return Ok(Self::Log {
                name: name.clone(),
                text: text(false)?,
            });
        }
        let of_file = |name: &String| Kind::ALL.into_iter().find(|kind| kind.file() == name);
        match (
            written.frame.as_ref().and_then(of_file),
            written.head,
            written.tail,
        ) {
            (Some(kind), Some(head), Some(tail)) => Ok(Self::Frame {
                kind,
                frame: Frame { head, tail },
            }),
            _ => Err("it is neither a record nor a line of a log".to_owned()),
        }
    }
}

/// Adds the text of an entry or log line: as `entry` if that restores it exactly, else also as
/// `text`.
fn with_text(
    written: Written<'_>,
    bytes: &[u8],
    is_entry: bool,
) -> Result<String, serde_json::Error> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        let hex = Some(hex(bytes));
        return serde_json::to_string(&Written { hex, ..written });
    };
    let flat = if is_entry {
        compact(text)
    } else {
        text.to_owned()
    };
    let one_line = !flat.contains(['\n', '\r']) && flat.trim() == flat;
    let parsed: Option<&RawValue> = Some(flat.as_str())
        .filter(|_| one_line)
        // `RawValue` accepts lone surrogates, which make the line invalid for other programs.
        .filter(|flat| serde_json::from_str::<serde_json::Value>(flat).is_ok())
        .and_then(|flat| serde_json::from_str(flat).ok());
    let says_it_all = parsed.is_some() && (!is_entry || laid_out(&flat) == text);
    let mut written: Written<'_> = written;
    written.entry = parsed;
    written.text = (!says_it_all).then(|| text.to_owned());
    serde_json::to_string(&written)
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|c| c.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    digits
        .chunks_exact(2)
        .map(|pair| u8::try_from(pair[0] * 16 + pair[1]).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &[u8], has: &[&str]) {
        let entry = Line::Entry {
            kind: Kind::Memory,
            id: "MEM-001".to_owned(),
            text: text.to_vec(),
        };
        let line = entry.write().unwrap();
        assert!(!line.contains('\n'), "{line}");
        let object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&line).unwrap();
        let names: Vec<&str> = object.keys().map(String::as_str).skip(2).collect();
        assert_eq!(names, has, "{line}");
        assert_eq!(Line::read(&line).unwrap(), entry);
        if !text.contains(&b'\n') {
            let log = Line::Log {
                name: "hints.jsonl".to_owned(),
                text: text.to_vec(),
            };
            assert_eq!(Line::read(&log.write().unwrap()).unwrap(), log);
        }
    }

    #[test]
    fn every_text_comes_back() {
        check(laid_out("{\"a\":1062.0,\"b\":[]}").as_bytes(), &["entry"]);
        check(b"{\"a\": 1062.0}", &["entry", "text"]);
        check(b"{\"a\":12345678901234567890123}", &["entry", "text"]);
        check(b"{\"\\ud83d\": \"\\udcff\"}", &["text"]);
        check(b"{\"a\": NaN,\n \"b\": -Infinity}", &["text"]);
        check(b"{\"a\": \"\xff\"}", &["hex"]);
        check("{\"é\": \"\u{2028}\u{85}\"}".as_bytes(), &["entry", "text"]);
        check(b"", &["text"]);
    }

    #[test]
    fn what_is_no_line_says_why() {
        for (line, said) in [
            ("", "no line of an export"),
            ("[]", "neither a record nor"),
            ("{}", "neither a record nor"),
            ("{\"kind\":\"memory\"}", "it holds nothing"),
            ("{\"kind\":\"dream\",\"entry\":{}}", "no line of an export"),
            ("{\"log\":\"a\",\"hex\":\"0\"}", "its `hex` is none"),
            (
                "{\"frame\":\"none.json\",\"head\":\"\",\"tail\":\"\"}",
                "neither a record nor",
            ),
        ] {
            let error = Line::read(line).unwrap_err();
            assert!(error.contains(said), "{line}: {error}");
        }
        assert_eq!(Header::of("{\"format\":\"other\"}"), None);
    }
}
