//! A seed file as one text, all of it: taken apart into its entries and put together again.
//!
//! For those who have a version of a file that lies nowhere, as in the history of version control. A file
//! that is not sound in every byte is refused: what is written from it would hide the damage.

use crate::model::Kind;

use super::carry::Frame;
use super::json_file::FORMAT;
use super::json_text::{fields, skip_space, skip_value};
use super::three_way::spans;

/// The entries of a file, oldest first, and what stands around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeedText {
    /// What stands around the entries.
    pub frame: Frame,
    /// Their texts.
    pub entries: Vec<String>,
}

impl SeedText {
    /// Takes a file apart.
    ///
    /// # Errors
    ///
    /// Says why it is not sound.
    pub fn parse(kind: Kind, text: &str) -> Result<Self, &'static str> {
        let bytes = text.as_bytes();
        let start = text.strip_prefix('\u{feff}').map_or(0, |_| 3);
        if text.trim().is_empty() {
            return Ok(Self::empty(kind));
        }
        let start = skip_space(bytes, start);
        let end = skip_value(bytes, start).map_err(|_| "it is torn, or no JSON")?;
        if bytes.get(start) != Some(&b'{') || skip_space(bytes, end) != bytes.len() {
            return Err("it is no JSON object, or there is more behind its end");
        }
        let mut array = None;
        for (key, span) in fields(&bytes[start..]) {
            let value = &text[start + span.start..start + span.end];
            if key == kind.root_key() && value.starts_with('[') {
                if array.is_some() {
                    return Err("it has two arrays of entries");
                }
                array = Some(start + span.start..start + span.end);
            } else if key == "format" && value.parse::<u64>().unwrap_or(u64::MAX) > FORMAT {
                return Err("a newer memctl has written it");
            }
        }
        let array = array.ok_or("it has no array of entries")?;
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

    /// A file without entries.
    pub fn empty(kind: Kind) -> Self {
        Self {
            frame: Frame::plain(kind),
            entries: Vec::new(),
        }
    }

    /// The text of the file.
    pub fn render(&self, kind: Kind) -> String {
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
            let seed = SeedText::parse(Kind::Fix, text).unwrap();
            assert_eq!(seed.entries, entries, "{text}");
            let again = SeedText::parse(Kind::Fix, &seed.render(Kind::Fix)).unwrap();
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
            SeedText::parse(Kind::Fix, text).unwrap().render(Kind::Fix),
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
            assert!(SeedText::parse(Kind::Fix, text).is_err(), "{text}");
        }
    }
}
