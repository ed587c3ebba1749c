//! Parsed files of one side of a merge.
//!
//! A whole data file as text: split into its entries and assembled again.
//!
//! For versions of a file that are not in a directory, as in version control history. A file with
//! any damage is rejected, because a rewrite would hide the damage.

use std::collections::{BTreeMap, HashMap, HashSet};

use memctl_files::json::{
    fields, item_spans, skip_space, skip_value, with_fields, with_other_strings,
};
use serde::Serialize;

use crate::model::Kind;
use crate::store::{DIRECTORY, FORMAT, Frame, Role, Tombstone, logs, text_field};
use crate::upkeep::exchange::import::{FROM as IMPORTED, created};

/// Files by path relative to the workspace, separated by `/`.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Field with the former ids of a record that a merge has renamed.
pub(crate) const MERGED_FROM: &str = "merged_from";

/// Parsed record.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) created: String,
    /// Former ids of the record.
    pub(crate) before: Vec<String>,
}

impl Record {
    pub(crate) fn of(kind: Kind, text: String) -> Self {
        let before = if text.contains(MERGED_FROM) {
            ids_before(&text)
        } else {
            Vec::new()
        };
        Self {
            id: text_field(text.as_bytes(), kind.id_field()).unwrap_or_default(),
            created: created(kind, &text),
            before,
            text,
        }
    }

    /// All ids of the record, the current one first.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        let own = std::iter::once(self.id.as_str());
        own.chain(self.before.iter().map(String::as_str))
    }
}

/// Former ids of a record.
pub(crate) fn ids_before(text: &str) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Before {
        #[serde(default)]
        merged_from: Vec<String>,
    }
    serde_json::from_str::<Before>(text).map_or_else(|_| Vec::new(), |before| before.merged_from)
}

/// Memory of one side.
#[derive(Debug, Default)]
pub(crate) struct Side {
    pub(crate) seeds: HashMap<Kind, DataFileText>,
    pub(crate) records: HashMap<Kind, Vec<Record>>,
    /// Lines of the logs, including tombstones.
    pub(crate) lines: HashMap<&'static str, Vec<String>>,
}

impl Side {
    /// Parses the files of a side.
    pub(crate) fn of(files: &Files) -> Result<Self, Unjoinable> {
        let mut side = Self::default();
        for kind in Kind::ALL {
            let path = format!("{DIRECTORY}/{}", kind.file());
            let Some(bytes) = files.get(&path) else {
                continue;
            };
            let refused = |reason: &str| Unjoinable {
                path: path.clone(),
                reason: reason.to_owned(),
            };
            let text = std::str::from_utf8(bytes).map_err(|_| refused("it is not UTF-8"))?;
            let seed = DataFileText::parse(kind, text).map_err(refused)?;
            let records = seed.entries.iter();
            let records = records.map(|text| Record::of(kind, text.clone())).collect();
            side.records.insert(kind, records);
            side.seeds.insert(kind, seed);
        }
        for (name, _) in logs().filter(|(_, role)| *role == Role::Tombstones) {
            let path = format!("{DIRECTORY}/{name}");
            let Some(bytes) = files.get(&path) else {
                continue;
            };
            let refused = |reason: &str| Unjoinable {
                path: path.clone(),
                reason: reason.to_owned(),
            };
            let text = std::str::from_utf8(bytes).map_err(|_| refused("it is not UTF-8"))?;
            if !text.is_empty() && !text.ends_with('\n') {
                return Err(refused("its last line is torn"));
            }
            let lines: Vec<String> = text
                .lines()
                .filter(|line| !line.is_empty())
                .map(str::to_owned)
                .collect();
            // Conflict markers of an unresolved merge are no tombstones either.
            let mut read = lines
                .iter()
                .map(|line| serde_json::from_str::<Tombstone>(line));
            if read.any(|tombstone| tombstone.is_err()) {
                return Err(refused("a line of it cannot be read"));
            }
            side.lines.insert(name, lines);
        }
        Ok(side)
    }

    pub(crate) fn records(&self, kind: Kind) -> &[Record] {
        self.records.get(&kind).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn lines(&self, name: &str) -> &[String] {
        self.lines.get(name).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn tombstones(&self) -> Vec<Tombstone> {
        let name = logs().find(|(_, role)| *role == Role::Tombstones);
        let lines = name.map_or(&[][..], |(name, _)| self.lines(name));
        lines
            .iter()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// Tombstones that have not been lifted.
    pub(crate) fn removed_ids(&self) -> HashSet<(Kind, String)> {
        let mut removed = HashSet::new();
        for tombstone in self.tombstones() {
            let key = (tombstone.kind, tombstone.id);
            if tombstone.lifted {
                removed.remove(&key);
            } else {
                removed.insert(key);
            }
        }
        removed
    }

    /// Replaces ids in all records and lines.
    pub(crate) fn mended(&self, ids: &HashMap<String, String>) -> Self {
        if ids.is_empty() {
            return Self {
                seeds: self.seeds.clone(),
                records: self.records.clone(),
                lines: self.lines.clone(),
            };
        }
        let records = |(kind, records): (&Kind, &Vec<Record>)| {
            let records = records.iter();
            let records = records.map(|r| Record::of(*kind, with_new_ids(&r.text, ids)));
            (*kind, records.collect())
        };
        let line = |line: &String| with_other_strings(line, ids).unwrap_or_else(|| line.clone());
        let lines = self.lines.iter();
        Self {
            seeds: self.seeds.clone(),
            records: self.records.iter().map(records).collect(),
            lines: lines
                .map(|(name, lines)| (*name, lines.iter().map(line).collect()))
                .collect(),
        }
    }
}

/// Replaces ids in a record, except in the fields that keep its former ids.
pub(crate) fn with_new_ids(text: &str, ids: &HashMap<String, String>) -> String {
    let Some(new) = with_other_strings(text, ids) else {
        return text.to_owned();
    };
    let fixed: Vec<(&str, String)> = [MERGED_FROM, IMPORTED]
        .into_iter()
        .filter(|name| text.contains(name))
        .filter_map(|name| Some((name, crate::store::raw_field(text, name)?)))
        .collect();
    with_fields(&new, &fixed, 6)
}

/// Field with open conflicts of an entry: the values of theirs by JSON pointer.
pub(crate) const CONFLICT: &str = "merge_conflict";

/// Field that a person has to decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Conflict {
    /// Kind of the record.
    pub kind: Kind,
    /// Id of the record.
    pub id: String,
    /// JSON pointer to the field.
    pub field: String,
}

/// Error that prevents the whole merge.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` cannot be merged: {reason}")]
pub struct Unjoinable {
    /// Path of the damaged file.
    pub path: String,
    /// Description of the damage.
    pub reason: String,
}

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
