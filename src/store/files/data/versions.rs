//! A whole data file as text: split into its entries and assembled again.
//!
//! For versions of a file that are not in a directory, as in version control history. A file with
//! any damage is rejected, because a rewrite would hide the damage.
//!
//! Text around the entries of a data file: a `format`, and keys of other programs.
//!
//! Line numbers of positions in a file, for messages.
//!
//! Three-way merge of one entry, field by field.
//!
//! A change on one side wins. If both sides changed a field, counts add up, the later of two times
//! wins, lists become their union without removed items, and objects merge recursively. Everything
//! else is a conflict: the entry keeps our value, and theirs is returned for a user to decide.
//!
//! Works on text: numbers, strings and layout stay byte for byte unless they are merged.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;

use memctl_files::PositionedFile as _;
use memctl_files::json::{compact, fields, skip_space, skip_value, with_fields, without_fields};

use crate::model::Kind;
use crate::store::FORMAT;

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
        is_whole && array.is_some_and(|(_, span)| compact(&whole[span]) == "[]")
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

/// Usage counters: the changes of both sides add up.
const COUNTS: [&str; 13] = [
    "times_injected", "times_helped", "times_harmed", "occurrences", "shown", "helped", "harmed",
    "repeats", "needless", "times_told", "times_heeded", "times_recurred", "times_overridden",
];
/// Fields between 0 and 1 that every outcome moves slightly.
const SHARES: [&str; 2] = ["confidence", "utility_score"];
/// Fields with the time of the last event.
const LATEST: [&str; 2] = ["updated_at", "last_seen"];

/// A merged entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// JSON text.
    pub text: String,
    /// Fields with conflicting values.
    pub conflicts: Vec<Undecided>,
}

/// A field with different values on the two sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecided {
    /// Location as a JSON pointer: `/rule`, `/metadata/tone`.
    pub pointer: String,
    /// JSON text on their side; `None` if they removed the field.
    pub theirs: Option<String>,
}

/// Merges two versions of an object; `base` is the common ancestor, if known.
pub fn three_way(base: Option<&str>, ours: &str, theirs: &str) -> Decided {
    let mut conflicts = Vec::new();
    let text = objects("", base, ours, theirs, 6, &mut conflicts);
    Decided { text, conflicts }
}

fn objects(
    pointer: &str,
    base: Option<&str>,
    ours: &str,
    theirs: &str,
    indent: usize,
    conflicts: &mut Vec<Undecided>,
) -> String {
    let o = base.map(parts).unwrap_or_default();
    let a = parts(ours);
    let b = parts(theirs);
    let mut names: Vec<&String> = a.iter().map(|(name, _)| name).collect();
    names.extend(
        b.iter()
            .map(|(name, _)| name)
            .filter(|n| find(&a, n).is_none()),
    );
    let mut changes: Vec<(&str, String)> = Vec::new();
    let mut gone: Vec<&str> = Vec::new();
    for name in names {
        let field = Field {
            pointer: format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1")),
            name,
            is_known: base.is_some(),
            indent,
        };
        let ours = find(&a, name);
        let decided = field.decide(find(&o, name), ours, find(&b, name), conflicts);
        match (decided, ours) {
            (Some(text), before) if before != Some(text.as_str()) => changes.push((name, text)),
            (None, Some(_)) => gone.push(name),
            _ => {}
        }
    }
    let text = with_fields(ours, &changes, indent);
    if gone.is_empty() {
        text
    } else {
        without_fields(&text, &gone)
    }
}

struct Field<'a> {
    pointer: String,
    name: &'a str,
    /// `true` if the common ancestor is known.
    is_known: bool,
    indent: usize,
}

impl Field<'_> {
    fn decide(
        &self,
        base: Option<&str>,
        ours: Option<&str>,
        theirs: Option<&str>,
        conflicts: &mut Vec<Undecided>,
    ) -> Option<String> {
        let is_same = |a: Option<&str>, b: Option<&str>| a.map(compact) == b.map(compact);
        let own = |value: Option<&str>| value.map(str::to_owned);
        if is_same(ours, theirs) || (self.is_known && is_same(base, theirs)) {
            return own(ours);
        }
        if self.is_known && is_same(base, ours) {
            return own(theirs);
        }
        if let (Some(a), Some(b)) = (ours, theirs) {
            if let Some(joined) = self.numbers(base, a, b).or_else(|| self.times(a, b)) {
                return Some(joined);
            }
            if a.starts_with('{') && b.starts_with('{') {
                let base = base.filter(|base| base.starts_with('{'));
                let indent = self.indent + 2;
                return Some(objects(&self.pointer, base, a, b, indent, conflicts));
            }
            if a.starts_with('[') && b.starts_with('[') {
                return Some(lists(base, a, b));
            }
        } else if !self.is_known {
            // Without an ancestor, a field that one side lacks counts as added by the other.
            return own(ours.or(theirs));
        }
        conflicts.push(Undecided {
            pointer: self.pointer.clone(),
            theirs: own(theirs),
        });
        own(ours)
    }

    fn numbers(&self, base: Option<&str>, ours: &str, theirs: &str) -> Option<String> {
        let is_count = COUNTS.contains(&self.name);
        if !is_count && !SHARES.contains(&self.name) {
            return None;
        }
        let (a, b): (f64, f64) = (ours.parse().ok()?, theirs.parse().ok()?);
        let before: Option<f64> = match base {
            Some(base) => Some(base.parse().ok()?),
            None => (self.is_known && is_count).then_some(0.0),
        };
        let sum = before.map_or(a.max(b), |before| a + b - before);
        let sum = if is_count {
            sum.max(0.0)
        } else {
            (sum.clamp(0.0, 1.0) * 10_000.0).round() / 10_000.0
        };
        // A count stays a whole number if it was one.
        let is_whole = is_count && !ours.contains(['.', 'e', 'E']) && sum.fract() == 0.0;
        Some(if is_whole {
            format!("{sum:.0}")
        } else {
            format!("{sum:?}")
        })
    }

    fn times(&self, ours: &str, theirs: &str) -> Option<String> {
        if !LATEST.contains(&self.name) {
            return None;
        }
        let time = |text: &str| {
            let text: String = serde_json::from_str(text).ok()?;
            chrono::DateTime::parse_from_rfc3339(&text).ok()
        };
        let later = if time(theirs)? > time(ours)? {
            theirs
        } else {
            ours
        };
        Some(later.to_owned())
    }
}

/// Returns the union of both lists, without items that one side has removed.
fn lists(base: Option<&str>, ours: &str, theirs: &str) -> String {
    let before: Vec<String> = base
        .map(items)
        .unwrap_or_default()
        .iter()
        .map(|i| compact(i))
        .collect();
    let a = items(ours);
    let b = items(theirs);
    let key = |items: &[&str]| items.iter().map(|i| compact(i)).collect::<Vec<_>>();
    let (of_ours, of_theirs) = (key(&a), key(&b));
    let stays = |item: &String| !before.contains(item) || of_theirs.contains(item);
    let mut kept: Vec<&str> = (a.iter().zip(&of_ours))
        .filter(|(_, item)| stays(item))
        .map(|(text, _)| *text)
        .collect();
    kept.extend(
        (b.iter().zip(&of_theirs))
            .filter(|(_, item)| !before.contains(item) && !of_ours.contains(item))
            .map(|(text, _)| *text),
    );
    format!("[{}]", kept.join(", "))
}

fn parts(object: &str) -> Vec<(String, String)> {
    // The last field of a name wins.
    let mut found: Vec<(String, String)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (name, span) in fields(object.as_bytes()) {
        let name = name.into_owned();
        let value = object[span].to_owned();
        if let Some(&at) = places.get(&name) {
            found[at].1 = value;
        } else {
            places.insert(name.clone(), found.len());
            found.push((name, value));
        }
    }
    found
}

fn find<'a>(parts: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let (_, value) = parts.iter().find(|(known, _)| known == name)?;
    Some(value)
}

/// Returns the texts of the items of an array.
fn items(array: &str) -> Vec<&str> {
    spans(array.as_bytes(), 0)
        .into_iter()
        .map(|span| &array[span])
        .collect()
}

/// Returns the spans of the items of the array that starts here, up to the first damage.
pub(crate) fn spans(text: &[u8], start: usize) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = skip_space(text, start + 1);
    while let Ok(end) = skip_value(text, at) {
        found.push(at..end);
        let next = skip_space(text, end);
        if text.get(next) != Some(&b',') {
            break;
        }
        at = skip_space(text, next + 1);
    }
    found
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

#[cfg(test)]
mod tests_of_three_way {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_are_decided_one_by_one() {
        let check = |base: &str, ours: &str, theirs: &str, expected: &str, open: &[&str]| {
            let base = (!base.is_empty()).then_some(base);
            let decided = three_way(base, ours, theirs);
            assert_eq!(compact(&decided.text), expected, "{ours} {theirs}");
            let pointers: Vec<&str> = decided
                .conflicts
                .iter()
                .map(|c| c.pointer.as_str())
                .collect();
            assert_eq!(pointers, open, "{ours} {theirs}");
        };
        let o = r#"{"a":1,"b":"x","n":1062.0}"#;
        check(
            o,
            r#"{"a":2,"b":"x","n":1062.0}"#,
            r#"{"a":1,"b":"y","n":1062.0}"#,
            r#"{"a":2,"b":"y","n":1062.0}"#,
            &[],
        );
        check(
            o,
            r#"{"a":2,"b":"x"}"#,
            r#"{"a":3,"b":"x","n":1062.0}"#,
            r#"{"a":2,"b":"x"}"#,
            &["/a"],
        );
        check(o, r#"{"b":"x"}"#, r#"{"a":1,"b":"z"}"#, r#"{"b":"z"}"#, &[]);
        check(
            o,
            r#"{"a":1,"b":"x","c":NaN}"#,
            r#"{"b":"x","n":1}"#,
            r#"{"b":"x","c":NaN}"#,
            &["/n"],
        );
        check(
            r#"{"times_helped":2}"#,
            r#"{"times_helped":5}"#,
            r#"{"times_helped":3}"#,
            r#"{"times_helped":6}"#,
            &[],
        );
        check(
            "{}",
            r#"{"shown":5}"#,
            r#"{"shown":3}"#,
            r#"{"shown":8}"#,
            &[],
        );
        check(
            "",
            r#"{"shown":5.0}"#,
            r#"{"shown":3}"#,
            r#"{"shown":5.0}"#,
            &[],
        );
        check(
            r#"{"confidence":0.5}"#,
            r#"{"confidence":0.9}"#,
            r#"{"confidence":0.8}"#,
            r#"{"confidence":1.0}"#,
            &[],
        );
        let at = |at: &str| format!(r#"{{"updated_at":"{at}"}}"#);
        check(
            &at("2026-01-01T00:00:00Z"),
            &at("2026-01-03T00:00:00Z"),
            &at("2026-01-02T00:00:00Z"),
            &at("2026-01-03T00:00:00Z"),
            &[],
        );
        check(&at("x"), &at("y"), &at("z"), &at("y"), &["/updated_at"]);
        check(
            r#"{"l":[1,2,3]}"#,
            r#"{"l":[1,3,4]}"#,
            r#"{"l":[1,2,3,5]}"#,
            r#"{"l":[1,3,4,5]}"#,
            &[],
        );
        check(
            r#"{"m":{"x":1,"y":1}}"#,
            r#"{"m":{"x":2,"y":1}}"#,
            r#"{"m":{"x":3,"y":2,"z/~":0}}"#,
            r#"{"m":{"x":2,"y":2,"z/~":0}}"#,
            &["/m/x"],
        );
        check("", r#"{"a":1}"#, r#"{"b":2}"#, r#"{"a":1,"b":2}"#, &[]);
        check("", r#"{"a":1}"#, r#"{"a":2}"#, r#"{"a":1}"#, &["/a"]);
    }

    #[test]
    fn what_is_not_touched_keeps_its_bytes() {
        let ours = "{\n  \"a\":   1062.0,\n  \"b\": [ 1,2 ]\n}";
        let decided = three_way(Some(ours), ours, "{\"a\": 1062.0, \"b\": [1, 2], \"c\": 1}");
        assert_eq!(
            decided.text,
            "{\n  \"a\":   1062.0,\n  \"b\": [ 1,2 ],\n      \"c\": 1\n}"
        );
    }

    fn object() -> impl Strategy<Value = String> {
        let value = prop_oneof![
            (0..4_u8).prop_map(|n| n.to_string()),
            proptest::collection::vec(0..4_u8, 0..3).prop_map(|l| format!("{l:?}")),
            (0..3_u8).prop_map(|n| format!("{{\"in\": {n}}}")),
        ];
        proptest::collection::btree_map(prop_oneof!["a", "b", "shown", "helped"], value, 0..4)
            .prop_map(|fields| {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(k, v)| format!("\"{k}\": {v}"))
                    .collect();
                format!("{{{}}}", fields.join(", "))
            })
    }

    proptest! {
        #[test]
        fn a_side_that_changed_nothing_leaves_the_other_one(base in object(), other in object()) {
            let same = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            for (ours, theirs) in [(&base, &other), (&other, &base), (&other, &other)] {
                let decided = three_way(Some(&base), ours, theirs);
                prop_assert_eq!(same(&decided.text), same(&other));
                prop_assert_eq!(decided.conflicts, vec![]);
            }
        }

        #[test]
        fn both_ways_round_the_same_is_open_and_what_comes_out_is_an_object(
            base in object(), a in object(), b in object(),
        ) {
            let pointers = |d: &Decided| {
                let mut p: Vec<String> = d.conflicts.iter().map(|c| c.pointer.clone()).collect();
                p.sort();
                p
            };
            let (one, other) = (three_way(Some(&base), &a, &b), three_way(Some(&base), &b, &a));
            prop_assert_eq!(pointers(&one), pointers(&other));
            let value: serde_json::Value = serde_json::from_str(&one.text).unwrap();
            prop_assert!(value.is_object());
        }
    }
}
