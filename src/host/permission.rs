//! Permission of Claude Code for the one tool that records lessons.
//!
//! Without it, the agent would open a dialog when it answers; so it answers in its last message there.
//! Only this tool is allowed, only if the person says so, and the removal takes out the inserted piece
//! and keeps every other byte.

use std::path::Path;

use memctl_files::SharedFile;

use super::install::Error;
use super::jsonc::{self, Node};
use super::settings_piece::{Piece, settings_of};

/// Name of the tool in the settings.
pub const LESSON_TOOL: &str = "mcp__memctl__lesson";

const PIECE: Piece = Piece {
    name: "permission",
    is_there: |root| place(root).is_some(),
    place: |text, root| Some(jsonc::removal(text, list(root)?, place(root)?)),
};

/// Returns `true` if the settings allow the tool.
pub fn allows_lessons(settings: &SharedFile) -> Result<bool, Error> {
    Ok(place(&settings_of(settings)?.0).is_some())
}

/// Allows the tool. Returns `false` if it was allowed before.
pub fn allow_lessons(settings: &SharedFile, state_dir: Option<&Path>) -> Result<bool, Error> {
    if allows_lessons(settings)? {
        return Ok(false);
    }
    let entry = format!("\"{LESSON_TOOL}\"");
    let list = format!("\"allow\": [\n  {entry}\n]");
    PIECE.insert(settings, state_dir, |text, root| {
        let permissions = root.get("permissions");
        match permissions.map(|permissions| (permissions, permissions.get("allow"))) {
            None => {
                let lines = list.lines().map(|line| format!("  {line}"));
                let inner = lines.collect::<Vec<_>>().join("\n");
                jsonc::append(text, root, &format!("\"permissions\": {{\n{inner}\n}}"))
            }
            Some((permissions, None)) => jsonc::append(text, permissions, &list),
            Some((_, Some(allow))) => jsonc::append(text, allow, &entry),
        }
    })?;
    Ok(true)
}

/// Takes the permission out again. Returns `false` if this program did not give it: a permission that a
/// person gave stays.
pub fn disallow_lessons(settings: &SharedFile, state_dir: Option<&Path>) -> Result<bool, Error> {
    Ok(PIECE.is_kept(settings, state_dir) && PIECE.remove(settings, state_dir)?)
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
    use memctl_files::named;

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
