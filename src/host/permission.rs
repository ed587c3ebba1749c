//! Permission of Claude Code for the one tool that records lessons.
//!
//! Without it, the agent would open a dialog when it answers; so it answers in its last message there.
//! Only this tool is allowed, only if the person says so, and the removal takes out the inserted piece
//! and keeps every other byte.

use std::path::Path;

use memctl_files::{SharedFile, named};

use super::install::{Error, read, replace};
use super::jsonc::{self, Node};
use super::settings_piece::{is_blank, keep, kept, parse, state_of, without};

/// Name of the tool in the settings.
pub const LESSON_TOOL: &str = "mcp__memctl__lesson";
/// Name of the directory with the stored pieces.
const STATE: &str = "permission";

/// Returns `true` if the settings allow the tool.
pub fn allows_lessons(settings: &SharedFile) -> Result<bool, Error> {
    let text = read(settings)?.unwrap_or_default();
    Ok(!is_blank(&text) && place(&parse(settings.path(), &text)?).is_some())
}

/// Allows the tool. Returns `false` if it was allowed before.
pub fn allow_lessons(settings: &SharedFile, state_dir: Option<&Path>) -> Result<bool, Error> {
    let path = settings.path().to_owned();
    let mut text = read(settings)?.unwrap_or_default();
    if is_blank(&text) {
        "{}\n".clone_into(&mut text);
    }
    let root = parse(&path, &text)?;
    if place(&root).is_some() {
        return Ok(false);
    }
    let entry = format!("\"{LESSON_TOOL}\"");
    let list = format!("\"allow\": [\n  {entry}\n]");
    let insertion = match root.get("permissions") {
        None => {
            let lines = list.lines().map(|line| format!("  {line}"));
            let inner = lines.collect::<Vec<_>>().join("\n");
            jsonc::append(&text, &root, &format!("\"permissions\": {{\n{inner}\n}}"))
        }
        Some(permissions) => match permissions.get("allow") {
            None => jsonc::append(&text, permissions, &list),
            Some(allow) => jsonc::append(&text, allow, &entry),
        },
    };
    text.insert_str(insertion.at, &insertion.text);
    if place(&parse(&path, &text)?).is_none() {
        let what = "a form that cannot be extended".to_owned();
        return Err(Error::Shape { path, what });
    }
    keep(
        state_of(state_dir, STATE, &path).as_deref(),
        &path,
        insertion.text,
    )?;
    replace(settings, &text)?;
    Ok(true)
}

/// Takes the permission out again. Returns `false` if this program did not give it.
pub fn disallow_lessons(settings: &SharedFile, state_dir: Option<&Path>) -> Result<bool, Error> {
    let path = settings.path().to_owned();
    // A permission that a person gave stays: only an installed piece is removed.
    let Some(state) = state_of(state_dir, STATE, &path) else {
        return Ok(false);
    };
    let Some(piece) = kept(&state, &path) else {
        return Ok(false);
    };
    let text = read(settings)?.unwrap_or_default();
    let is_allowed = !is_blank(&text) && place(&parse(&path, &text)?).is_some();
    if is_allowed {
        let by_piece = without(&text, &piece)
            .filter(|text| parse(&path, text).is_ok_and(|root| place(&root).is_none()));
        let text = match by_piece {
            Some(text) => text,
            None => without_entry(&path, text)?,
        };
        replace(settings, &text)?;
    }
    drop(named::remove(&state));
    Ok(is_allowed)
}

/// Returns the text without the entry, wherever it stands.
fn without_entry(path: &Path, mut text: String) -> Result<String, Error> {
    loop {
        let root = parse(path, &text)?;
        let (Some(at), Some(list)) = (place(&root), list(&root)) else {
            return Ok(text);
        };
        text.replace_range(jsonc::removal(&text, list, at), "");
    }
}

fn list(root: &Node) -> Option<&Node> {
    root.get("permissions")?.get("allow")
}

/// Place of the tool in the list of what is allowed.
fn place(root: &Node) -> Option<usize> {
    let items = list(root)?.items()?;
    items
        .iter()
        .position(|item| item.text() == Some(LESSON_TOOL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removal_restores_every_byte() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        let settings = SharedFile::of_user(&file).unwrap();
        let state = dir.path().join("state");
        for original in [
            "{}",
            "{\r\n\t\"env\": {\"A\": \"1\"}\r\n}\r\n",
            "// mine\n{\n    \"permissions\": {\n        \"deny\": [\"Bash(rm:*)\"]\n    }\n}\n",
            "{\"permissions\": {\"allow\": [\"Bash(ls:*)\", ]}}",
        ] {
            named::replace(&file, original.as_bytes()).unwrap();
            let allow = || allow_lessons(&settings, Some(&state)).unwrap();
            assert_eq!((allow(), allow()), (true, false), "{original}");
            assert!(allows_lessons(&settings).unwrap());
            assert!(disallow_lessons(&settings, Some(&state)).unwrap());
            assert_eq!(std::fs::read_to_string(&file).unwrap(), original);
            // Another entry that came later stays.
            assert!(allow());
            let text = std::fs::read_to_string(&file).unwrap();
            let more = text.replace(LESSON_TOOL, &format!("{LESSON_TOOL}\", \"Bash(make:*)"));
            named::replace(&file, more.as_bytes()).unwrap();
            assert!(disallow_lessons(&settings, Some(&state)).unwrap());
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(
                text.contains("Bash(make:*)") && !text.contains(LESSON_TOOL),
                "{text}"
            );
        }
    }

    #[test]
    fn what_the_person_allowed_stays() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        let settings = SharedFile::of_user(&file).unwrap();
        let text = format!("{{\"permissions\": {{\"allow\": [\"{LESSON_TOOL}\"]}}}}");
        named::replace(&file, text.as_bytes()).unwrap();
        assert!(!allow_lessons(&settings, Some(dir.path())).unwrap());
        assert!(!disallow_lessons(&settings, Some(dir.path())).unwrap());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
}
