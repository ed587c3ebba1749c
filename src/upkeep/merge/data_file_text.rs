//! A whole data file as text: split into its entries and assembled again.
//!
//! For versions of a file that are not in a directory, as in version control history. A file with
//! any damage is rejected, because a rewrite would hide the damage.

use memctl_files::json::{fields, item_spans, skip_space, skip_value};

use crate::model::Kind;
use crate::store::{FORMAT, Frame};

/// Entries of a file, oldest first, with the text around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DataFileText {
    /// Text around the entries.
    pub(crate) frame: Frame,
    /// Texts of the entries.
    pub(crate) entries: Vec<String>,
}

impl DataFileText {
    /// Splits a file into its entries.
    ///
    /// # Errors
    ///
    /// A description of the damage.
    pub(crate) fn parse(kind: Kind, text: &str) -> Result<Self, &'static str> {
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
        let spans = item_spans(bytes, array.start);
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
    pub(crate) fn empty(kind: Kind) -> Self {
        Self {
            frame: Frame::plain(kind),
            entries: Vec::new(),
        }
    }

    /// Returns the text of the file.
    pub(crate) fn render(&self, kind: Kind) -> String {
        if self.entries.is_empty() {
            return format!("{{\n  \"{}\": []\n}}\n", kind.root_key());
        }
        let Frame { head, tail } = &self.frame;
        [head, self.entries.join(",\n    ").as_str(), tail].concat()
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
