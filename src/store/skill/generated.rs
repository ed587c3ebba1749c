//! Regression tests generated from corrections: list and count, for `status`.
//!
//! The count has to be cheap and correct for files of any origin. A correction counts once: its
//! Python and YAML exports are copies of its case. Without a case, Python files are counted by name
//! and YAML tests by the dashes of the `tests:` list, without a YAML parser. Unreadable files count
//! as zero.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Error;
use super::root::{Root, Within};

/// YAML files with tests: ours, and that of the reference implementation.
const YAML_FILES: [&str; 2] = ["test_promptfoo.yaml", "corrections.yaml"];

/// Size limit in bytes. Each case quotes its correction, which can be long.
pub(super) const MAX_CASES_BYTES: u64 = 64 * 1024 * 1024;

pub(super) fn count(root: &Root, skill_dir: &Path) -> usize {
    let dir = skill_dir.join("tests").join("generated");
    // Most skills have no generated tests, so this is all their work.
    let found = root.skills.below(&dir).list().unwrap_or_default();
    let names = || found.iter().filter_map(|found| found.name.to_str());
    let cases: BTreeSet<u64> = names().filter_map(|name| number(name, ".json")).collect();
    let mut total = cases.len();
    for name in names() {
        if YAML_FILES.contains(&name) {
            let file = root.bytes(MAX_CASES_BYTES, &dir.join(name), Within::Skills);
            let file = file.ok().flatten().unwrap_or_default();
            let tests = yaml_tests(&String::from_utf8_lossy(&file));
            let is_copy = |test: &Option<u64>| test.is_some_and(|id| cases.contains(&id));
            total += tests.iter().filter(|test| !is_copy(test)).count();
        } else if is_python_test(name) {
            let is_copy = number(name, ".py").is_some_and(|id| cases.contains(&id));
            total += usize::from(!is_copy);
        }
    }
    total
}

/// Files `test_correction_<n>.json` of a skill, sorted by number.
pub(super) fn case_files(root: &Root, skill_dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let dir = skill_dir.join("tests").join("generated");
    let listed = root.skills.below(&dir).list();
    let mut found: Vec<(u64, PathBuf)> = listed
        .map_err(|source| root.io(&dir, source))?
        .into_iter()
        .filter_map(|found| {
            let name = found.name;
            Some((number(name.to_str()?, ".json")?, dir.join(name)))
        })
        .collect();
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

fn is_python_test(name: &str) -> bool {
    name.strip_prefix("test_correction_")
        .and_then(|rest| rest.strip_suffix(".py"))
        .is_some_and(|number| !number.is_empty())
}

/// Number of the correction in `test_correction_<n><extension>`.
fn number(name: &str, extension: &str) -> Option<u64> {
    let stem = name.strip_suffix(extension)?;
    stem.strip_prefix("test_correction_")?.parse().ok()
}

/// Items of the top-level `tests:` list, each with the number of its correction, if it names one.
///
/// Lines of an item are indented deeper than its dash, so dashes in the column of the first one are
/// items.
fn yaml_tests(yaml: &str) -> Vec<Option<u64>> {
    let mut items = Vec::new();
    let mut lines = yaml.lines().skip_while(|line| line.trim_end() != "tests:");
    if lines.next().is_none() {
        return items;
    }
    let mut column = None;
    for line in lines {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let is_item = text == "-" || text.starts_with("- ");
        match column {
            None if is_item => column = Some(indent),
            Some(column) if indent > column => {
                if let (Some(id), Some(item)) = (correction_number(text), items.last_mut()) {
                    *item = Some(id);
                }
                continue;
            }
            Some(column) if indent == column && is_item => {}
            _ => break,
        }
        items.push(None);
    }
    items
}

/// Number in `correction_id: 'CORR-<n>'`.
fn correction_number(line: &str) -> Option<u64> {
    let id = line.strip_prefix("correction_id: ")?.trim();
    id.trim_matches(['\'', '"'])
        .strip_prefix("CORR-")?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_items_of_the_list_are_counted() {
        let check = |yaml, expected| assert_eq!(yaml_tests(yaml).len(), expected, "{yaml}");
        check("", 0);
        check("description: x\n", 0);
        check("tests: []\n", 0);
        check("tests:\n", 0);
        check(
            "tests:\n- assert:\n  - type: x\n  - type: y\n- vars: {}\n",
            2,
        );
        check(
            "tests:\n  - a: |\n      - no\n\n  # c\n  - b: 1\nproviders:\n  - x\n",
            2,
        );
        check(
            "a:\n- tests:\n  - x\ntests:\n-\n  a: 1\n- b: 2\nz: 1\n- c\n",
            2,
        );
        check("prompts:\n- x\n", 0);
        check("tests:\r\n- a: 1\r\n- b: 1\r\n", 2);
    }

    #[test]
    fn the_correction_of_an_item_is_read() {
        let yaml = "tests:\n  - metadata:\n      correction_id: 'CORR-012'\n  - correction_id: x\n";
        assert_eq!(yaml_tests(yaml), [Some(12), None]);
    }

    #[test]
    fn python_tests_are_told_by_their_name() {
        let check = |name, expected| assert_eq!(is_python_test(name), expected, "{name}");
        check("test_correction_1.py", true);
        check("test_correction_12.py", true);
        check("test_correction_.py", false);
        check("test_correction_1.pyc", false);
        check("conftest.py", false);
    }
}
