//! Finds the entries in the text of a data file from start to end: the slow path, used when the
//! derived offsets do not match the file.
//!
//! A file that ends inside an entry is the result of a crash: all entries before it count. Invalid bytes
//! elsewhere are damage: they are reported, and reading continues at the next text that looks like an entry.
//! Conflict markers of git are no damage: only the merge is to be done again.

use std::ops::Range;
use std::path::Path;

use memctl_files::json::{self, Stop};
use memctl_files::text::first_conflict;

use crate::model::Kind;
use crate::store::{Problem, ProblemKind};

/// Structure of the file as a whole.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outline {
    /// Offset of the next entry: after the last one, or after the opening bracket.
    pub(crate) tail: u64,
    /// Offset of the array's closing bracket; `None` if the file ends before it.
    pub(crate) close: Option<u64>,
    /// Value of the `format` key; 1 if there is none.
    pub(crate) format: u64,
    /// Problems found.
    pub(crate) problems: Vec<Problem>,
    /// `true` if the file is empty or missing.
    pub(crate) empty: bool,
}

/// Scans the text of a file; `each` gets the offset and the text of every complete entry.
pub(crate) fn scan(
    text: &[u8],
    path: &Path,
    root_key: &str,
    each: &mut dyn FnMut(u64, &[u8]),
) -> Outline {
    let mut scan = Scan {
        text,
        at: 0,
        wasted: 0,
        lines: LineNumbers::of(text, path),
        outline: Outline {
            format: 1,
            ..Outline::default()
        },
    };
    scan.root(root_key, each);
    // The lines of a conflict are the cause of all other problems. A file without problems has none.
    if !scan.outline.problems.is_empty()
        && let Some(at) = first_conflict(text)
    {
        let message = "git has left a merge conflict in the file".to_owned();
        scan.outline.problems.clear();
        scan.problem_at(at as u64, ProblemKind::Conflict, message);
    }
    scan.outline
}

struct Scan<'a> {
    text: &'a [u8],
    /// Position of the next byte to read.
    at: usize,
    /// Number of bytes read in values that turned out to have no end.
    wasted: usize,
    lines: LineNumbers<'a>,
    outline: Outline,
}

impl Scan<'_> {
    fn root(&mut self, root_key: &str, each: &mut dyn FnMut(u64, &[u8])) {
        const BROKEN: &str = "the root object is broken here";
        if self.text.starts_with(b"\xef\xbb\xbf") {
            self.at = 3;
        }
        match self.next_byte() {
            None => {
                self.outline.empty = true;
                // No program leaves such a file: a full disk or a power failure does.
                return self.problem(
                    ProblemKind::Damage,
                    "the file is empty: what it held is gone",
                );
            }
            Some(b'{') => self.at += 1,
            Some(_) => return self.problem(ProblemKind::File, "the file is not a JSON object"),
        }
        let mut found = false;
        loop {
            match self.next_byte() {
                Some(b'"') => {}
                Some(b'}') => break self.at += 1,
                Some(b',') => {
                    self.at += 1;
                    continue;
                }
                None if found => {
                    // The array's bracket reached the disk, but the root's did not.
                    self.outline.close = None;
                    return self.torn(self.outline.tail);
                }
                _ => return self.problem(ProblemKind::File, BROKEN),
            }
            let Ok(key) = self.value() else {
                return self.problem(ProblemKind::File, BROKEN);
            };
            let key = &self.text[key.start + 1..key.end - 1];
            if self.next_byte() != Some(b':') {
                return self.problem(ProblemKind::File, "expected `:` after a key of the root");
            }
            self.at += 1;
            let first = self.next_byte();
            if key == root_key.as_bytes() && first == Some(b'[') && !found {
                found = true;
                self.at += 1;
                if !self.entries(each) {
                    return;
                }
                continue;
            }
            let Ok(value) = self.value() else {
                return self.problem(ProblemKind::File, BROKEN);
            };
            if key == b"format" {
                let text = String::from_utf8_lossy(&self.text[value]);
                // An unknown format must not be overwritten.
                self.outline.format = text.parse().unwrap_or(u64::MAX);
            }
        }
        if !found {
            let message = format!("the root object has no array `{root_key}`");
            return self.problem(ProblemKind::File, &message);
        }
        if self.next_byte().is_some() {
            let message = "unexpected text after the end of the root";
            self.problem(ProblemKind::Damage, message);
        }
    }

    /// Reads the entries after the array's opening bracket. Returns `true` if the end of the array
    /// was found.
    fn entries(&mut self, each: &mut dyn FnMut(u64, &[u8])) -> bool {
        self.outline.tail = self.at as u64;
        let mut expect_comma = false;
        loop {
            match self.next_byte() {
                None => {
                    self.torn(self.outline.tail);
                    return false;
                }
                Some(b']') => {
                    self.outline.close = Some(self.at as u64);
                    self.at += 1;
                    return true;
                }
                Some(b',') => {
                    self.at += 1;
                    expect_comma = false;
                    continue;
                }
                Some(_) => {}
            }
            if expect_comma {
                self.problem(ProblemKind::Damage, "a comma is missing before this entry");
            }
            let start = self.at;
            match self.value() {
                Ok(span) => {
                    each(start as u64, &self.text[span]);
                    self.outline.tail = self.at as u64;
                    expect_comma = true;
                }
                Err(Stop::Incomplete) => {
                    self.torn(start as u64);
                    return false;
                }
                Err(Stop::Malformed(at)) => {
                    if !self.resume_at_next_entry() {
                        self.broken_end(start, at);
                        return false;
                    }
                    self.broken(start, at);
                    expect_comma = false;
                }
            }
        }
    }

    /// Handles an end of the file without a further entry. If the closing brackets are present, the
    /// last entry is damaged. Otherwise a write was cut off: between the old brackets and the new
    /// entry, or before the zeros that a file system leaves after a power failure.
    fn broken_end(&mut self, start: usize, at: usize) {
        let rest = self.text[start..].trim_ascii_end();
        let array = rest.strip_suffix(b"}").map(<[u8]>::trim_ascii_end);
        let Some(last) = array.and_then(|array| array.strip_suffix(b"]")) else {
            return self.torn(start as u64);
        };
        self.outline.close = Some((start + last.len()) as u64);
        self.outline.tail = (start + last.trim_ascii_end().len()) as u64;
        self.broken(start, at);
    }

    fn broken(&mut self, start: usize, at: usize) {
        let before = String::from_utf8_lossy(&self.text[start..at]);
        let id = before.split('"').find(|text| Kind::of_id(text).is_some());
        let id = id.map_or_else(String::new, |id| format!(" `{id}`"));
        let message = format!("the entry{id} is broken here");
        self.problem_at(at as u64, ProblemKind::Damage, message);
    }

    fn torn(&mut self, offset: u64) {
        let message = "the file ends inside an entry".to_owned();
        self.problem_at(offset, ProblemKind::TornTail, message);
    }

    fn problem(&mut self, kind: ProblemKind, message: &str) {
        self.problem_at(self.at as u64, kind, message.to_owned());
    }

    fn problem_at(&mut self, offset: u64, kind: ProblemKind, message: String) {
        let problem = self.lines.problem(offset, kind, message);
        self.outline.problems.push(problem);
    }

    /// Moves to the next byte that is not white space, without consuming it.
    fn next_byte(&mut self) -> Option<u8> {
        self.at = json::skip_space(self.text, self.at);
        self.text.get(self.at).copied()
    }

    /// Reads the value that starts here.
    fn value(&mut self) -> Result<Range<usize>, Stop> {
        let start = self.at;
        self.at = self.end_of(start)?;
        Ok(start..self.at)
    }

    /// Returns the end of the value that starts at this position.
    fn end_of(&mut self, start: usize) -> Result<usize, Stop> {
        let done = json::skip_value(self.text, start);
        self.wasted += match done {
            Ok(_) => 0,
            Err(Stop::Incomplete) => self.text.len() - start,
            Err(Stop::Malformed(at)) => at - start,
        };
        done
    }

    /// Moves to the next text that looks like the start of an entry, with an indentation of two
    /// spaces per level; `false` if there is none, or if so much was read in vain that the rest counts
    /// as one damaged part: containers that are opened and never closed would cost the square of the
    /// file.
    fn resume_at_next_entry(&mut self) -> bool {
        const ENTRY: &[u8] = b"\n    {";
        let mut from = self.at + 1;
        while self.wasted <= patience(self.text.len()) {
            let Some(found) = memchr::memmem::find(&self.text[from..], ENTRY) else {
                return false;
            };
            from += found + ENTRY.len() - 1;
            if self.end_of(from).is_ok() {
                self.at = from;
                return true;
            }
        }
        false
    }
}

/// Returns the number of bytes that may be read in vain in a broken text of this length.
pub(crate) fn patience(length: usize) -> usize {
    length.saturating_mul(4).saturating_add(4 << 20)
}

/// Line numbers, from 1, of bytes in a text. Queries in the order of the text read it only once.
#[derive(Debug)]
pub(crate) struct LineNumbers<'a> {
    text: &'a [u8],
    path: &'a Path,
    at: usize,
    line: u64,
}

impl<'a> LineNumbers<'a> {
    pub(crate) fn of(text: &'a [u8], path: &'a Path) -> Self {
        Self {
            text,
            path,
            at: 0,
            line: 1,
        }
    }

    /// Returns a problem at `offset`.
    pub(crate) fn problem(&mut self, offset: u64, kind: ProblemKind, message: String) -> Problem {
        let to = usize::try_from(offset).map_or(self.text.len(), |to| to.min(self.text.len()));
        if to < self.at {
            (self.at, self.line) = (0, 1);
        }
        self.line += memchr::memchr_iter(b'\n', &self.text[self.at..to]).count() as u64;
        self.at = to;
        Problem {
            path: self.path.to_owned(),
            offset,
            line: self.line,
            kind,
            message,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(text: &[u8]) -> (Outline, Vec<String>) {
        let mut entries = Vec::new();
        let outline = scan(text, Path::new("f.json"), "entries", &mut |at, entry| {
            let at = usize::try_from(at).unwrap();
            assert_eq!(&text[at..at + entry.len()], entry);
            entries.push(String::from_utf8_lossy(entry).into_owned());
        });
        (outline, entries)
    }

    #[test]
    fn entries_are_found_in_any_layout() {
        let check = |text: &str, entries: &[&str]| {
            let (outline, found) = outline(text.as_bytes());
            assert_eq!(found, entries, "{text}");
            assert_eq!(outline.problems, [], "{text}");
            assert_eq!(outline.close, text.rfind(']').map(|at| at as u64), "{text}");
        };
        check("{\"entries\": []}", &[]);
        check(
            "\u{feff}{\n  \"entries\": [\n    {\"a\": 1}\n  ]\n}\n",
            &["{\"a\": 1}"],
        );
        check(
            "{\"entries\":[1,{\"x\":NaN} , \"s\"],\"other\":{}}",
            &["1", "{\"x\":NaN}", "\"s\""],
        );
        check("{\"format\": 1, \"entries\": [{}]}", &["{}"]);
    }

    #[test]
    fn an_empty_file_is_empty_and_a_newer_one_says_so() {
        assert!(outline(b"").0.empty);
        assert!(outline(b" \n").0.empty);
        assert_eq!(outline(b"{\"format\": 7, \"entries\": []}").0.format, 7);
        assert_eq!(
            outline(b"{\"entries\": [], \"format\": \"x\"}").0.format,
            u64::MAX
        );
    }

    #[test]
    fn a_file_cut_anywhere_keeps_every_whole_entry() {
        let text = "{\n  \"entries\": [\n    {\"a\": 1},\n    {\"b\": [2]}\n  ]\n}";
        let first = text.find("},").unwrap() + 1;
        let second = text.find("]}").unwrap() + 2;
        let array = text.find('[').unwrap();
        for end in array + 1..text.len() {
            let (outline, found) = outline(&text.as_bytes()[..end]);
            let whole = usize::from(end >= first) + usize::from(end >= second);
            assert_eq!(found.len(), whole, "{end}");
            if outline.close.is_none() {
                assert_eq!(outline.problems[0].kind, ProblemKind::TornTail, "{end}");
            }
        }
    }

    #[test]
    fn damage_in_one_entry_hides_no_other() {
        let text =
            b"{\n  \"entries\": [\n    {\"a\": 1},\n    {\"b\": oops},\n    {\"c\": 3}\n  ]\n}";
        let (outline, found) = outline(text);
        assert_eq!(found, ["{\"a\": 1}", "{\"c\": 3}"]);
        assert_eq!(outline.problems.len(), 1);
        assert_eq!(outline.problems[0].kind, ProblemKind::Damage);
        assert_eq!(outline.problems[0].line, 4);
        assert!(outline.close.is_some());
    }

    #[test]
    fn damage_in_the_last_entry_is_not_taken_for_a_crash() {
        let text = b"{\n  \"entries\": [\n    {\"a\": 1},\n    {\"b\" 2}\n  ]\n}\n";
        let (outline, found) = outline(text);
        assert_eq!(found.len(), 1);
        assert_eq!(outline.problems[0].kind, ProblemKind::Damage);
        assert_eq!(outline.close, Some(text.len() as u64 - 4));
        assert_eq!(outline.tail, text.len() as u64 - 7);
    }

    #[test]
    fn zeros_at_the_end_are_a_crash() {
        let mut text = b"{\n  \"entries\": [\n    {\"a\": 1},\n    {\"b\": ".to_vec();
        text.extend([0; 64]);
        let (outline, found) = outline(&text);
        assert_eq!(found.len(), 1);
        assert_eq!(outline.problems[0].kind, ProblemKind::TornTail);
    }

    #[test]
    fn file_without_entries_is_refused() {
        let check = |text: &[u8], message: &str| {
            let (outline, found) = outline(text);
            assert!(found.is_empty());
            assert_eq!(outline.problems[0].message, message);
        };
        check(b"[]", "the file is not a JSON object");
        check(b"{}", "the root object has no array `entries`");
        check(
            b"{\"entries\": {}}",
            "the root object has no array `entries`",
        );
        check(b"{\"entries\": [], x}", "the root object is broken here");
        check(
            b"{\"entries\": []} {}",
            "unexpected text after the end of the root",
        );
    }
}
