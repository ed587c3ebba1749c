//! Export of a procedure as a skill: a folder with a `SKILL.md` in the form of the Agent Skills
//! standard.
//!
//! A skill is an instruction, so only approved procedures may become one. The text is escaped
//! anyway, except commands, which are confined to code spans and blocks.

use serde::Deserialize;
use serde_json::value::RawValue;

use memctl_redact::{lines, visible};

/// Mark of folders that this program generates.
pub const GENERATOR: &str = "memctl-procedure";

/// Length limits of the standard for names and descriptions.
const LONGEST_NAME: usize = 64;
const LONGEST_DESCRIPTION: usize = 1_024;

/// Fields of a procedure that go into the skill.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Data {
    procedure_name: String,
    semantic_description: String,
    initial_failure_summary: String,
    identified_root_cause: String,
    successful_intervention: String,
    learned_procedure_steps: Vec<String>,
    critical_contextual_cues: Vec<String>,
    example_scenario_abstract: String,
}

impl Data {
    /// Removes characters that an agent would read but a person would not see.
    fn visible(self) -> Self {
        let text = |text: String| lines(&visible(&text)).collect::<Vec<_>>().join("\n");
        let texts = |all: Vec<String>| all.into_iter().map(text).collect();
        Self {
            procedure_name: text(self.procedure_name),
            semantic_description: text(self.semantic_description),
            initial_failure_summary: text(self.initial_failure_summary),
            identified_root_cause: text(self.identified_root_cause),
            successful_intervention: text(self.successful_intervention),
            learned_procedure_steps: texts(self.learned_procedure_steps),
            critical_contextual_cues: texts(self.critical_contextual_cues),
            example_scenario_abstract: text(self.example_scenario_abstract),
        }
    }
}

/// Skill: folder name and `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFolder {
    /// Folder name.
    pub name: String,
    /// Text of `SKILL.md`.
    pub text: String,
}

/// Converts a procedure; `None` if its data is invalid or it has no steps.
pub fn skill(id: &str, data: &RawValue) -> Option<SkillFolder> {
    let data: Data = serde_json::from_str(data.get()).ok()?;
    let data = data.visible();
    if data
        .learned_procedure_steps
        .iter()
        .all(|step| step.trim().is_empty())
    {
        return None;
    }
    let name = name(id, &data.procedure_name);
    let description = [&data.semantic_description, &data.procedure_name]
        .into_iter()
        .map(|text| one_line(text))
        .find(|text| !text.is_empty())?;
    let description: String = description.chars().take(LONGEST_DESCRIPTION).collect();
    let mut text = format!(
        "---\nname: {name}\ndescription: {}\nmetadata:\n  generator: {GENERATOR}\n  procedure: {}\n---\n\n# {}\n",
        yaml(&description),
        yaml(id),
        escaped(&data.procedure_name)
    );
    for (title, said) in [
        ("What fails", &data.initial_failure_summary),
        ("Why", &data.identified_root_cause),
        ("What works", &data.successful_intervention),
    ] {
        if !said.trim().is_empty() {
            text.extend(["\n## ", title, "\n\n", &prose(said), "\n"]);
        }
    }
    text.push_str("\n## Steps\n\n");
    let steps = data
        .learned_procedure_steps
        .iter()
        .filter(|step| !step.trim().is_empty());
    for (i, step) in steps.enumerate() {
        text.push_str(&format_step(i + 1, step));
    }
    if !data.critical_contextual_cues.is_empty() {
        text.push_str("\n## When\n\n");
        for cue in &data.critical_contextual_cues {
            text.extend(["- ", &prose(cue), "\n"]);
        }
    }
    if !data.example_scenario_abstract.trim().is_empty() {
        text.extend(["\n", &prose(&data.example_scenario_abstract), "\n"]);
    }
    Some(SkillFolder { name, text })
}

/// Returns `true` for a `SKILL.md` that this program generated.
pub fn is_generated(text: &str) -> bool {
    let Some((matter, _)) = text
        .strip_prefix("---\n")
        .and_then(|rest| rest.split_once("\n---\n"))
    else {
        return false;
    };
    matter
        .lines()
        .any(|line| line.trim() == format!("generator: {GENERATOR}"))
}

fn format_step(number: usize, step: &str) -> String {
    let fence = "`".repeat(longest_run(step).max(2) + 1);
    let lines = step.trim_end().lines().map(|line| format!("   {line}\n"));
    let code: String = lines.collect();
    format!("{number}. Run or do:\n\n   {fence}\n{code}   {fence}\n")
}

/// Longest run of backticks in a text.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Escaped text in which parts between backticks stay code.
fn prose(text: &str) -> String {
    let text = one_line(text);
    let parts: Vec<&str> = text.split('`').collect();
    // With an unpaired backtick, the whole text is escaped.
    if parts.len().is_multiple_of(2) {
        return escaped(&text);
    }
    let shown = parts
        .iter()
        .enumerate()
        .map(|(i, part)| match (i % 2, part.is_empty()) {
            (1, false) => format!("`{part}`"),
            (1, true) => String::new(),
            _ => {
                // Escaping trims, but spaces next to code have to stay.
                let lead = if part.starts_with(' ') { " " } else { "" };
                let trail = if part.ends_with(' ') && part.len() > 1 {
                    " "
                } else {
                    ""
                };
                format!("{lead}{}{trail}", escaped(part))
            }
        });
    shown.collect()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Folder name such as `proc-007-get-jq-past-…`: the id makes it unique, the title readable.
fn name(id: &str, title: &str) -> String {
    let mut name = String::new();
    for c in format!("{id}-{title}").to_lowercase().chars() {
        match c {
            'a'..='z' | '0'..='9' => name.push(c),
            _ if name.ends_with('-') || name.is_empty() => {}
            _ => name.push('-'),
        }
        if name.len() >= LONGEST_NAME {
            break;
        }
    }
    name.trim_end_matches('-').to_owned()
}

/// Quoted text, valid in YAML and JSON.
fn yaml(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Text on one line, with a backslash before every special character.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut chars = text.trim().chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\r' | '\t' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
                out.push(' ');
            }
            // Control characters are removed; `guard::visible` handles other invisible ones.
            c if c.is_control() => {}
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '&'
            | '$' => {
                out.extend(['\\', c]);
            }
            // At the start of a line these begin a list, an underlined heading or a numbered item.
            '-' | '+' | '=' if out.is_empty() => out.extend(['\\', c]),
            '.' | ')' if !out.is_empty() && out.bytes().all(|b| b.is_ascii_digit()) => {
                out.extend(['\\', c]);
            }
            // Some renderers turn addresses into links.
            '@' => out.push_str("\\@"),
            ':' if chars.peek() == Some(&'/') => out.push_str("\\:"),
            '.' if out.ends_with("www") || out.ends_with("WWW") => out.push_str("\\."),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_procedure_is_a_skill_of_the_standard() {
        let data = raw(
            r#"{"procedure_name": "Get `jq` past: \"index\"\n---\n# x", "semantic_description": "How: to\nmake it work",
            "learned_procedure_steps": ["jq '.[0]' a.json\n```\n# no heading", " "], "identified_root_cause": "`a` is <b>",
            "critical_contextual_cues": ["jq"]}"#,
        );
        let skill = skill("PROC-007", &data).unwrap();
        assert_eq!(skill.name, "proc-007-get-jq-past-index-x");
        let matter = "---\nname: proc-007-get-jq-past-index-x\ndescription: \"How: to make it work\"\n\
            metadata:\n  generator: memctl-procedure\n  procedure: \"PROC-007\"\n---\n";
        assert!(skill.text.starts_with(matter), "{}", skill.text);
        assert!(skill.text.contains("`a` is \\<b\\>"), "{}", skill.text);
        assert!(
            skill
                .text
                .contains("   ````\n   jq '.[0]' a.json\n   ```\n   # no heading\n   ````\n")
        );
        assert!(is_generated(&skill.text));
        let headings: Vec<&str> = skill
            .text
            .lines()
            .filter(|line| line.starts_with('#'))
            .collect();
        assert_eq!(headings[1..], ["## Why", "## Steps", "## When"]);
        assert!(!is_generated(
            "---\nname: x\n---\ngenerator: memctl-procedure\n"
        ));
    }

    #[test]
    fn what_says_nothing_to_do_is_no_skill() {
        assert_eq!(skill("PROC-001", &raw(r#"{"procedure_name": "x"}"#)), None);
        assert_eq!(skill("PROC-001", &raw("null")), None);
        assert_eq!(
            skill("PROC-001", &raw(r#"{"learned_procedure_steps": ["x"]}"#)),
            None
        );
    }
}
