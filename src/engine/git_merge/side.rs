//! One side of a merge: its files, taken apart.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::model::Kind;
use crate::store::{DIRECTORY, Role, SeedText, Tombstone, logs, text_field, with_fields};

use super::super::import::{FROM as IMPORTED, created, mend};
use super::Unjoinable;

/// Files by their path from the workspace, with `/` between the names.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The field of a record that got another id in a merge: the ids that it had before.
pub(super) const MERGED_FROM: &str = "merged_from";

/// A record.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) id: String,
    pub(super) text: String,
    pub(super) created: String,
    /// The ids that it had before.
    pub(super) before: Vec<String>,
}

impl Record {
    pub(super) fn of(kind: Kind, text: String) -> Self {
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

    /// Every id that it ever had, the present one first.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        let own = std::iter::once(self.id.as_str());
        own.chain(self.before.iter().map(String::as_str))
    }
}

/// The ids that a record had before.
pub(super) fn ids_before(text: &str) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Before {
        #[serde(default)]
        merged_from: Vec<String>,
    }
    serde_json::from_str::<Before>(text).map_or_else(|_| Vec::new(), |before| before.merged_from)
}

/// The memory of one side.
#[derive(Debug, Default)]
pub(super) struct Side {
    pub(super) seeds: HashMap<Kind, SeedText>,
    pub(super) records: HashMap<Kind, Vec<Record>>,
    /// The lines of the logs, tombstones too.
    pub(super) lines: HashMap<&'static str, Vec<String>>,
}

impl Side {
    /// Takes the files of a side apart.
    pub(super) fn of(files: &Files) -> Result<Self, Unjoinable> {
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
            let seed = SeedText::parse(kind, text).map_err(refused)?;
            let records = seed.entries.iter();
            let records = records.map(|text| Record::of(kind, text.clone())).collect();
            side.records.insert(kind, records);
            side.seeds.insert(kind, seed);
        }
        for (name, role) in logs().filter(|(_, role)| *role != Role::Account) {
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
            // A line that a hand has broken says nothing; one between two marks of a conflict would.
            let is_marked =
                |line: &String| ["<<<<<<<", ">>>>>>>"].iter().any(|m| line.starts_with(m));
            if lines.iter().any(is_marked) {
                return Err(refused("a conflict in it was never resolved"));
            }
            if role == Role::Tombstones
                && lines
                    .iter()
                    .any(|line| serde_json::from_str::<Tombstone>(line).is_err())
            {
                return Err(refused("a line of it cannot be read"));
            }
            side.lines.insert(name, lines);
        }
        Ok(side)
    }

    pub(super) fn records(&self, kind: Kind) -> &[Record] {
        self.records.get(&kind).map_or(&[], Vec::as_slice)
    }

    pub(super) fn lines(&self, name: &str) -> &[String] {
        self.lines.get(name).map_or(&[], Vec::as_slice)
    }

    pub(super) fn stones(&self) -> Vec<Tombstone> {
        let name = logs().find(|(_, role)| *role == Role::Tombstones);
        let lines = name.map_or(&[][..], |(name, _)| self.lines(name));
        lines
            .iter()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// What was removed on purpose and has not come back.
    pub(super) fn buried(&self) -> HashSet<(Kind, String)> {
        let mut buried = HashSet::new();
        for stone in self.stones() {
            let key = (stone.kind, stone.id);
            if stone.lifted {
                buried.remove(&key);
            } else {
                buried.insert(key);
            }
        }
        buried
    }

    /// The same with other ids.
    pub(super) fn mended(&self, ids: &HashMap<String, String>) -> Self {
        if ids.is_empty() {
            return Self {
                seeds: self.seeds.clone(),
                records: self.records.clone(),
                lines: self.lines.clone(),
            };
        }
        let records = |(kind, records): (&Kind, &Vec<Record>)| {
            let records = records.iter();
            let records = records.map(|r| Record::of(*kind, mended_record(&r.text, ids)));
            (*kind, records.collect())
        };
        let line = |line: &String| mend(line, ids).unwrap_or_else(|| line.clone());
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

/// The text of a record with other ids. What says which ids it had elsewhere or before stays.
pub(super) fn mended_record(text: &str, ids: &HashMap<String, String>) -> String {
    let Some(new) = mend(text, ids) else {
        return text.to_owned();
    };
    let fixed: Vec<(&str, String)> = [MERGED_FROM, IMPORTED]
        .into_iter()
        .filter(|name| text.contains(name))
        .filter_map(|name| Some((name, crate::store::raw_field(text, name)?)))
        .collect();
    with_fields(&new, &fixed, 6)
}
