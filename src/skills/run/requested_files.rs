//! Files of a skill that a model asks for before it answers.

use serde::Deserialize;

use crate::skills::prompt::tokens;
use crate::store::skill::{Skill, Skills};

use super::answer::output;

/// Maximum size of the files of one request, in tokens.
const BUDGET: usize = 4_000;

/// Answer that asks for files.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    read: Vec<String>,
}

/// Returns the files that an answer asks for, as a further part of the prompt; `None` if it is an answer.
/// A file that is not listed, cannot be read or exceeds the budget is named with the reason.
pub(crate) fn requested_files(skills: &Skills, skill: &Skill, answer: &str) -> Option<String> {
    if skill.files.is_empty() {
        return None;
    }
    let Wanted { mut read } = serde_json::from_str(output(answer).get()).ok()?;
    read.dedup();
    read.truncate(skill.files.len());
    let mut room = BUDGET;
    let mut part = "\n\n---\n\n# Files that you asked for; answer now".to_owned();
    for path in &read {
        let shown = path.escape_debug().to_string();
        let is_listed = skill.files.iter().any(|file| file.path == *path);
        let text = if is_listed {
            let text = skills.read(&skill.dir.join(path)).ok().flatten();
            text.map(|text| memctl_redact::redact(&text).text.into_owned())
        } else {
            None
        };
        let text = match text {
            Some(text) if tokens(&text) <= room => {
                room -= tokens(&text);
                text
            }
            Some(_) => format!("(left out: more than {BUDGET} tokens with the others)"),
            None => "(not a file of this skill that can be read)".to_owned(),
        };
        part.extend(["\n\n## ", &shown, "\n\n", text.trim()]);
    }
    Some(part)
}
