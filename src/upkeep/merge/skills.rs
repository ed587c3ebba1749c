//! Merges the files that corrections write into skills: regression cases and guardrails.
//!
//! A case is named after its correction, so a new id of the correction renames the file. An unedited
//! case gets a new seal; in an edited one only the ids change.
//!
//! Deliberately absent: exports of cases, which git merges as text. `memctl test --export` writes them
//! again.

use std::collections::BTreeSet;

use super::three_way::three_way;
use crate::rules::regression::case::{self, Case};
use crate::store::renaming::NewIds;
use crate::store::skill::guardrails;

use super::side::Files;
use memctl_files::json::with_other_strings;

/// Directory of the cases of a skill.
const CASES: &str = "/tests/generated/";
const GUARDRAILS: &str = "GUARDRAILS.md";

/// Returns true if the file may name records.
pub fn is_of_corrections(path: &str) -> bool {
    let is_case = path.contains(CASES) && path.strip_suffix(".json").is_some();
    is_case || path.rsplit('/').next() == Some(GUARDRAILS)
}

/// Returns the files of skills of one side with other ids, and case files under other names. `base` is the common
/// ancestor with its own new ids: an id in a file that is unchanged since means the record of that time.
pub(crate) fn with_ids(files: &Files, ids: &NewIds, base: &Files, of_base: &NewIds) -> Files {
    let files = files.iter().filter(|(path, _)| is_of_corrections(path));
    let files = files.map(|(path, bytes)| {
        let is_of_base = base.get(path) == Some(bytes);
        let ids = if is_of_base { of_base } else { ids };
        let new_path = moved(path, ids).unwrap_or_else(|| path.clone());
        let text = std::str::from_utf8(bytes).ok().filter(|_| !ids.is_empty());
        let text = text.map(|text| text_with_ids(path, text, ids));
        let bytes = text.map_or_else(|| bytes.clone(), String::into_bytes);
        (new_path, bytes)
    });
    files.collect()
}

/// New path of a case; `None` if it stays.
pub(crate) fn moved(path: &str, ids: &NewIds) -> Option<String> {
    let (directory, name) = path.rsplit_once('/')?;
    let (stem, end) = name.rsplit_once('.')?;
    let new = ids.get(stem).filter(|_| path.contains(CASES))?;
    Some(format!("{directory}/{new}.{end}"))
}

/// Replaces ids in the text of a file.
fn text_with_ids(path: &str, text: &str, ids: &NewIds) -> String {
    if path.strip_suffix(".json").is_none() {
        return words(text, ids);
    }
    let new = with_other_strings(text, ids).unwrap_or_else(|| text.to_owned());
    if case::is_untouched(text) {
        sealed(&new)
    } else {
        new
    }
}

/// Recomputes the seal of a case.
fn sealed(text: &str) -> String {
    let case = serde_json::from_str::<Case>(text);
    let rendered = case.and_then(|case| case.render());
    rendered.unwrap_or_else(|_| text.to_owned())
}

/// Replaces ids where they are whole words.
fn words(text: &str, ids: &NewIds) -> String {
    let is_other = |c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_'));
    let pieces = text.split_inclusive(is_other);
    let pieces = pieces.flat_map(|piece| {
        let word = piece.trim_end_matches(is_other);
        let new = ids.get(word).map_or(word, String::as_str);
        [new, &piece[word.len()..]]
    });
    pieces.collect()
}

/// Merges the files of skills. Returns the merged files, and the paths that only a person can merge.
pub(crate) fn union(base: &Files, ours: &Files, theirs: &Files) -> (Files, Vec<String>) {
    let sides = [base, ours, theirs];
    let paths: BTreeSet<&String> = sides.into_iter().flat_map(Files::keys).collect();
    let mut out = Files::new();
    let mut refused = Vec::new();
    for path in paths {
        let [before, a, b] = sides.map(|files| files.get(path));
        let joined = if a == b || before == b {
            a.cloned()
        } else if before == a {
            b.cloned()
        } else {
            let joined = both(path, [before, a, b]);
            refused.extend(joined.is_none().then(|| path.clone()));
            joined
        };
        out.extend(joined.map(|bytes| (path.clone(), bytes)));
    }
    (out, refused)
}

/// Merges a file that both sides have changed; `None` if only a person can.
fn both(path: &str, versions: [Option<&Vec<u8>>; 3]) -> Option<Vec<u8>> {
    let text = |bytes: Option<&Vec<u8>>| String::from_utf8(bytes?.clone()).ok();
    let [base, ours, theirs] = versions.map(text);
    let (base, ours, theirs) = (base.as_deref(), ours?, theirs?);
    if path.ends_with(GUARDRAILS) {
        let joined = guardrails::join(base.unwrap_or_default(), &ours, &theirs);
        return joined.map(String::into_bytes);
    }
    let decided = three_way(base, &ours, &theirs);
    let is_json = serde_json::from_str::<serde_json::Value>(&decided.text).is_ok();
    if !is_json || decided.open.keys().any(|field| field != "/seal") {
        return None;
    }
    let is_ours = case::is_untouched(&ours) && case::is_untouched(&theirs);
    let text = if is_ours {
        sealed(&decided.text)
    } else {
        decided.text
    };
    Some(text.into_bytes())
}
