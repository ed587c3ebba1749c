//! A whole data file as text: split into its entries and assembled again.
//!
//! For versions of a file that are not in a directory, as in version control history. A file with
//! any damage is rejected, because a rewrite would hide the damage.
//!
//! Text around the entries of a data file: a `format`, and keys of other programs.
//!
//! Line numbers of positions in a file, for messages.

use std::fs::File;
use std::io;

use memctl_files::json::{fields, skip_space, skip_value};
use memctl_files::{PositionedFile as _, json};

use crate::model::Kind;
use crate::store::files::data::json_file::FORMAT;
use crate::store::files::data::three_way::spans;

/// Entries of a file, oldest first, with the text around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFileText {
    /// Text around the entries.
    pub frame: Frame,
    /// Texts of the entries.
    pub entries: Vec<String>,
}

impl DataFileText {
    /// Splits a file into its entries.
    ///
    /// # Errors
    ///
    /// A description of the damage.
    pub fn parse(kind: Kind, text: &str) -> Result<Self, &'static str> {
        let bytes = text.as_bytes();
        let start = text.strip_prefix('\u{feff}').map_or(0, |_| 3);
        if text.trim().is_empty() {
            return Ok(Self::empty(kind));
        }
        let start = skip_space(bytes, start);
        let end = skip_value(bytes, start).map_err(|_| "it is incomplete or not valid JSON")?;
        if bytes.get(start) != Some(&b'{') || skip_space(bytes, end) != bytes.len() {
            return Err("it is not a single JSON object");
        }
        let mut array = None;
        for (key, span) in fields(&bytes[start..]) {
            let value = &text[start + span.start..start + span.end];
            if key == kind.root_key() && value.starts_with('[') {
                if array.is_some() {
                    return Err("the array of entries occurs twice");
                }
                array = Some(start + span.start..start + span.end);
            } else if key == "format" && value.parse::<u64>().unwrap_or(u64::MAX) > FORMAT {
                return Err("it was written by a newer version of memctl");
            }
        }
        let array = array.ok_or("the array of entries is missing")?;
        let spans = spans(bytes, array.start);
        let head = spans.first().map_or(array.start + 1, |first| first.start);
        let tail = spans.last().map_or(array.start + 1, |last| last.end);
        Ok(Self {
            frame: Frame {
                head: text[..head].to_owned(),
                tail: text[tail..].to_owned(),
            },
            entries: spans
                .into_iter()
                .map(|span| text[span].to_owned())
                .collect(),
        })
    }

    /// Returns a file without entries.
    pub fn empty(kind: Kind) -> Self {
        Self {
            frame: Frame::plain(kind),
            entries: Vec::new(),
        }
    }

    /// Returns the text of the file.
    pub fn render(&self, kind: Kind) -> String {
        if self.entries.is_empty() {
            return format!("{{\n  \"{}\": []\n}}\n", kind.root_key());
        }
        let Frame { head, tail } = &self.frame;
        [head, self.entries.join(",\n    ").as_str(), tail].concat()
    }
}

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
        is_whole && array.is_some_and(|(_, span)| json::compact(&whole[span]) == "[]")
    }
}

/// Number of bytes that are read at once.
const BLOCK: usize = 64 << 10;

/// Line numbers, from 1, of bytes in a file. Queries in file order read the file only once.
#[derive(Debug)]
pub(crate) struct LineNumbers<'a> {
    file: &'a File,
    at: u64,
    line: u64,
    chunk: Vec<u8>,
}

impl<'a> LineNumbers<'a> {
    pub(crate) fn of(file: &'a File) -> Self {
        Self {
            file,
            at: 0,
            line: 1,
            chunk: Vec::new(),
        }
    }

    /// Returns the line of the byte at `offset`.
    pub(crate) fn at(&mut self, offset: u64) -> io::Result<u64> {
        if offset < self.at {
            (self.at, self.line) = (0, 1);
        }
        self.chunk.resize(BLOCK, 0);
        while self.at < offset {
            let want = usize::try_from(offset - self.at)
                .unwrap_or(BLOCK)
                .min(BLOCK);
            let read = self.file.read_at(&mut self.chunk[..want], self.at)?;
            if read == 0 {
                break;
            }
            self.line += memchr::memchr_iter(b'\n', &self.chunk[..read]).count() as u64;
            self.at += read as u64;
        }
        Ok(self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sound_file_comes_apart_and_together_again() {
        let check = |text: &str, entries: &[&str]| {
            let seed = DataFileText::parse(Kind::Procedure, text).unwrap();
            assert_eq!(seed.entries, entries, "{text}");
            let again =
                DataFileText::parse(Kind::Procedure, &seed.render(Kind::Procedure)).unwrap();
            assert_eq!(again.entries, entries, "{text}");
        };
        check("", &[]);
        check("{\"entries\": []}", &[]);
        check(
            "{\n  \"entries\": [\n    {\"a\": 1},\n    {\"b\": NaN}\n  ]\n}\n",
            &["{\"a\": 1}", "{\"b\": NaN}"],
        );
        check("\u{feff}{\"x\": [1], \"entries\":[{}]}", &["{}"]);
        let text = "{\n  \"entries\": [\n    {\"a\":  1},\n    {\"b\": NaN}\n  ],\n  \"x\": 1\n}\n";
        assert_eq!(
            DataFileText::parse(Kind::Procedure, text)
                .unwrap()
                .render(Kind::Procedure),
            text
        );
    }

    #[test]
    fn what_is_not_sound_is_refused() {
        for text in [
            "{\"entries\": [{\"a\": 1}",
            "[]",
            "{\"entries\": {}}",
            "{\"entries\": []} x",
            "{\"entries\": [{} {}]}",
            "<<<<<<< HEAD",
            "{\"format\": 9, \"entries\": []}",
            "{\"entries\": [], \"entries\": [1]}",
        ] {
            assert!(
                DataFileText::parse(Kind::Procedure, text).is_err(),
                "{text}"
            );
        }
    }
}

#[cfg(test)]
mod tests_of_frame {
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
