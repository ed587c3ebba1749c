//! Merges the files that corrections write into skills: regression cases, their exports,
//! guardrails.
//!
//! A case is named after its correction, so a new id of the correction renames the file. Unedited
//! generated files are written again; in edited files only the ids change.

use std::collections::{BTreeSet, HashMap};

use crate::rules::regression::case::{self, Case};
use crate::rules::regression::export;
use crate::store::skill::guardrails;
use crate::store::three_way;

use super::side::Files;
use memctl_files::json::with_other_strings;

/// Directory of the cases of a skill.
const CASES: &str = "/tests/generated/";
const GUARDRAILS: &str = "GUARDRAILS.md";

/// Returns true if the file may name records.
pub fn is_of_corrections(path: &str) -> bool {
    path.contains(CASES) || path.rsplit('/').next() == Some(GUARDRAILS)
}

/// Replaces ids in the files of one side, and renames case files. `base` is the common ancestor
/// with its own new ids: an id in a base file means the record of that time.
pub(crate) fn mended(
    files: &Files,
    ids: &HashMap<String, String>,
    (base, of_base): (&Files, &HashMap<String, String>),
) -> Files {
    if ids.is_empty() && of_base.is_empty() {
        return files.clone();
    }
    let mut out = Files::new();
    for (path, bytes) in files {
        let mut ids = ids.clone();
        if let Some(before) = base
            .get(path)
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
        {
            for word in before.split(|c| !is_word(c)) {
                match of_base.get(word) {
                    Some(new) => ids.insert(word.to_owned(), new.clone()),
                    None => ids.remove(word),
                };
            }
        }
        let new_path = moved(path, &ids).unwrap_or_else(|| path.clone());
        let text = std::str::from_utf8(bytes)
            .ok()
            .map(|text| with_ids(path, text, &ids));
        let bytes = text.map_or_else(|| bytes.clone(), String::into_bytes);
        out.insert(new_path, bytes);
    }
    // Exports are made from the cases, which have their new ids by now.
    let paths: Vec<String> = out.keys().cloned().collect();
    let back: HashMap<&str, &str> = ids
        .iter()
        .map(|(old, new)| (new.as_str(), old.as_str()))
        .collect();
    for path in paths {
        let before = files
            .get(&unmoved(&path, &back))
            .or_else(|| files.get(&path));
        if before != out.get(&path) {
            export_again(&mut out, &path, before);
        }
    }
    out
}

/// Writes an unedited export again.
fn export_again(files: &mut Files, path: &str, before: Option<&Vec<u8>>) {
    let before = before.and_then(|bytes| std::str::from_utf8(bytes).ok());
    if !before.is_some_and(export::is_untouched) {
        return;
    }
    let new = if path.strip_suffix(".py").is_some() {
        let case = path.strip_suffix(".py").map(|stem| format!("{stem}.json"));
        case.and_then(|path| read_case(files, &path))
            .map(|case| export::deepeval(&case))
    } else if path.ends_with(export::PROMPTFOO) {
        promptfoo(files, path)
    } else {
        None
    };
    if let Some(new) = new {
        files.insert(path.to_owned(), new.into_bytes());
    }
}

/// Combined file of all cases in the same directory.
fn promptfoo(files: &Files, path: &str) -> Option<String> {
    let directory = path.strip_suffix(export::PROMPTFOO)?;
    let mut cases: Vec<(u64, Case)> = files
        .range(directory.to_owned()..)
        .take_while(|(path, _)| path.starts_with(directory))
        .filter_map(|(path, _)| Some((number(path)?, read_case(files, path)?)))
        .collect();
    cases.sort_by_key(|(number, _)| *number);
    let cases: Vec<Case> = cases.into_iter().map(|(_, case)| case).collect();
    let skill = &cases.first()?.skill;
    Some(export::promptfoo(skill, &cases))
}

fn read_case(files: &Files, path: &str) -> Option<Case> {
    number(path)?;
    let stem = path.rsplit('/').next()?.strip_suffix(".json")?;
    let text = std::str::from_utf8(files.get(path)?).ok()?;
    Case::parse(stem, text).ok()
}

/// Number of the correction in the name of a case file.
fn number(path: &str) -> Option<u64> {
    let name = path.rsplit('/').next()?;
    name.strip_prefix("test_correction_")?
        .strip_suffix(".json")?
        .parse()
        .ok()
}

/// New path of a case; `None` if it stays.
pub(crate) fn moved(path: &str, ids: &HashMap<String, String>) -> Option<String> {
    let (directory, name) = path.rsplit_once('/')?;
    let (stem, end) = name.rsplit_once('.')?;
    let new = ids.get(stem).filter(|_| path.contains(CASES))?;
    Some(format!("{directory}/{new}.{end}"))
}

/// Former path of a case.
fn unmoved(path: &str, ids: &HashMap<&str, &str>) -> String {
    let from = || {
        let (directory, name) = path.rsplit_once('/')?;
        let (stem, end) = name.rsplit_once('.')?;
        let old = ids.get(stem)?;
        Some(format!("{directory}/{old}.{end}"))
    };
    from().unwrap_or_else(|| path.to_owned())
}

/// Replaces ids in the text of a file.
fn with_ids(path: &str, text: &str, ids: &HashMap<String, String>) -> String {
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

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_')
}

/// Replaces ids where they are whole words.
fn words(text: &str, ids: &HashMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        let end = rest[start..]
            .find(|c| !is_word(c))
            .map_or(rest.len(), |n| start + n);
        out.push_str(&rest[..start]);
        let word = &rest[start..end];
        out.push_str(ids.get(word).map_or(word, String::as_str));
        rest = &rest[end..];
    }
    out + rest
}

/// Merge result of a file that both sides have changed.
pub(crate) enum Both {
    Joined(Vec<u8>),
    /// Only a person can merge the file, for this reason.
    Refused(&'static str),
}

/// Merges the files of skills. Returns the merged files, and each unmerged path with the reason.
pub(crate) fn union(
    base: &Files,
    ours: &Files,
    theirs: &Files,
) -> (Files, Vec<(String, &'static str)>) {
    let paths: BTreeSet<&String> = [base, ours, theirs]
        .into_iter()
        .flat_map(Files::keys)
        .collect();
    let mut out = Files::new();
    let mut late = Vec::new();
    let mut refused = Vec::new();
    for path in paths {
        let (o, a, b) = (base.get(path), ours.get(path), theirs.get(path));
        let decided = if a == b || o == b {
            a
        } else if o == a {
            b
        } else {
            late.push(path);
            continue;
        };
        if let Some(bytes) = decided {
            out.insert(path.clone(), bytes.clone());
        }
    }
    // Cases first: the other files are made from them.
    late.sort_by_key(|path| path.strip_suffix(".json").is_none());
    for path in late {
        let versions = [base, ours, theirs].map(|files| files.get(path).map(Vec::as_slice));
        match both(path, versions, &out) {
            Both::Joined(bytes) => {
                out.insert(path.clone(), bytes);
            }
            Both::Refused(reason) => refused.push((path.clone(), reason)),
        }
    }
    (out, refused)
}

fn both(path: &str, versions: [Option<&[u8]>; 3], files: &Files) -> Both {
    let [base, ours, theirs] = versions.map(|bytes| bytes.map(std::str::from_utf8));
    let (Some(Ok(ours)), Some(Ok(theirs))) = (ours, theirs) else {
        return Both::Refused(
            "one side has changed it, the other has removed it, or it is no text",
        );
    };
    let base = base.and_then(Result::ok);
    let joined = if path.strip_suffix(".json").is_some() {
        let decided = three_way(base, ours, theirs);
        let is_json = serde_json::from_str::<serde_json::Value>(&decided.text).is_ok();
        let is_ours = case::is_untouched(ours) && case::is_untouched(theirs);
        let conflicts = decided
            .conflicts
            .iter()
            .filter(|field| field.pointer != "/seal");
        match (conflicts.count(), is_json) {
            (0, true) if is_ours => Some(sealed(&decided.text)),
            (0, true) => Some(decided.text),
            _ => None,
        }
    } else if path.ends_with(GUARDRAILS) {
        guardrails::join(base.unwrap_or_default(), ours, theirs)
    } else if export::is_untouched(ours) && export::is_untouched(theirs) {
        let mut again = files.clone();
        again.insert(path.to_owned(), ours.as_bytes().to_vec());
        export_again(&mut again, path, Some(&ours.as_bytes().to_vec()));
        again
            .remove(path)
            .and_then(|bytes| String::from_utf8(bytes).ok())
    } else if path.ends_with(export::PROMPTFOO) {
        with_cases(path, base.unwrap_or_default(), ours, theirs, files)
    } else {
        None
    };
    joined.map_or(
        Both::Refused("both sides have changed it by hand"),
        |text| Both::Joined(text.into_bytes()),
    )
}

/// Combined case file that a person has edited on one side, with the missing cases added.
fn with_cases(path: &str, base: &str, ours: &str, theirs: &str, files: &Files) -> Option<String> {
    let mut text = match (export::is_untouched(ours), export::is_untouched(theirs)) {
        (false, true) => ours.to_owned(),
        (true, false) => theirs.to_owned(),
        _ if ours == base => theirs.to_owned(),
        _ => return None,
    };
    let directory = path.strip_suffix(export::PROMPTFOO)?;
    for name in files.keys().filter(|name| name.starts_with(directory)) {
        let Some(case) = read_case(files, name) else {
            continue;
        };
        if let Some(longer) = export::append_to_promptfoo(&text, &case) {
            text = longer;
        } else if !text.contains(&case.correction_id) {
            return None;
        }
    }
    Some(text)
}
