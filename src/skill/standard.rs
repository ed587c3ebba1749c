//! Agent Skills standard: every agent that supports skills can load a conforming skill.
//!
//! Deviations are only reported. Agents accept more than the standard, and real skills use that.
//! The report is for authors who publish a skill.

use serde_json::Value;

use super::Skill;

/// All top-level keys of the standard.
const KEYS: [&str; 6] = [
    "name", "description", "license", "compatibility", "metadata", "allowed-tools",
];

/// Deviations of a skill's metadata from the standard.
pub fn deviations(skill: &Skill) -> Vec<String> {
    let mut found = Vec::new();
    for key in skill
        .keys
        .iter()
        .filter(|key| !KEYS.contains(&key.as_str()))
    {
        found.push(format!(
            "`{key}` is not a key of the standard; put it below `metadata`"
        ));
    }
    let text = |key: &str| skill.metadata.get(key).and_then(Value::as_str);
    match text("name") {
        None => found.push("`name` is missing".to_owned()),
        Some(name) => found.extend(name_deviation(name, skill.path.name())),
    }
    let length = |key: &str| text(key).map_or(0, |text| text.trim().chars().count());
    if !(1..=1024).contains(&length("description")) {
        found.push("`description` needs 1 to 1024 characters".to_owned());
    }
    if skill.metadata.contains_key("compatibility") && !(1..=500).contains(&length("compatibility"))
    {
        found.push("`compatibility` needs 1 to 500 characters".to_owned());
    }
    let tools = skill.metadata.get("allowed-tools");
    if tools.is_some_and(|tools| !tools.is_string()) {
        found.push("`allowed-tools` must be one string, with spaces between the tools".to_owned());
    }
    if let Some(metadata) = skill.metadata.get("metadata") {
        let flat = metadata
            .as_object()
            .is_some_and(|map| map.values().all(Value::is_string));
        if !flat {
            found.push("`metadata` must map strings to strings".to_owned());
        }
    }
    found
}

fn name_deviation(name: &str, directory: &str) -> Option<String> {
    let allowed =
        |c: char| c == '-' || c.is_ascii_digit() || (c.is_alphabetic() && !c.is_uppercase());
    let is_good = (1..=64).contains(&name.chars().count())
        && name.chars().all(allowed)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--");
    if !is_good {
        return Some(format!(
            "`name` is `{name}`; it needs 1 to 64 lower-case letters, digits and single hyphens"
        ));
    }
    (name != directory).then(|| format!("`name` is `{name}` and the directory `{directory}`"))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::{Role, read_front_matter};
    use super::*;

    fn check(yaml: &str, expected: &[&str]) {
        let read = read_front_matter(&format!("---\n{yaml}\n---\nx")).unwrap();
        let skill = Skill {
            path: "hr/screen".parse().unwrap(),
            dir: PathBuf::new(),
            name: String::new(),
            description: String::new(),
            model: None,
            role: Role::default(),
            body: String::new(),
            keys: read.metadata.keys().cloned().collect(),
            metadata: read.metadata,
            context: Vec::new(),
            problems: Vec::new(),
            source: PathBuf::new(),
        };
        assert_eq!(deviations(&skill), expected, "{yaml}");
    }

    #[test]
    fn deviations_are_told() {
        check(
            "name: screen\ndescription: d\nmetadata:\n  memctl.model: a",
            &[],
        );
        check(
            "name: screen\ndescription: d\nallowed-tools: Read Bash(git:*)",
            &[],
        );
        check(
            "name: screen\ndescription: d\nmodel: a",
            &["`model` is not a key of the standard; put it below `metadata`"],
        );
        check(
            "name: scan\ndescription: d",
            &["`name` is `scan` and the directory `screen`"],
        );
        for name in ["Screen", "-a", "a-", "a--b", "a b", "a_b"] {
            let found = format!(
                "`name` is `{name}`; it needs 1 to 64 lower-case letters, digits and single hyphens"
            );
            check(&format!("name: '{name}'\ndescription: d"), &[&found]);
        }
        check(
            "license: MIT\nmetadata:\n  a: [1]\ncompatibility: ''\nallowed-tools: [Read]",
            &[
                "`name` is missing",
                "`description` needs 1 to 1024 characters",
                "`compatibility` needs 1 to 500 characters",
                "`allowed-tools` must be one string, with spaces between the tools",
                "`metadata` must map strings to strings",
            ],
        );
    }
}
