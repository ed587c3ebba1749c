//! Settings of Claude Code beside its hooks: the status line, and the permission for the one tool that records
//! lessons.
//!
//! Claude Code has one status line, and one of the user is never replaced. Without the permission, the agent
//! would open a dialog when it answers, so it answers in its last message there; only this tool is allowed,
//! and only if the person says so.

use std::path::Path;

use jsonc_parser::cst::{CstNode, CstObject};
use jsonc_parser::json;

use memctl_files::SharedFile;

use super::{
    Document, Entry, Error, Fault, InstallationStatus, Settings, member, object_for, object_in,
    read_in, text_in,
};

const KEY: &str = "statusLine";
/// End of the command that prints the line.
const CALL: &str = " statusline";

/// Status line in a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusLine {
    /// That of this program.
    Own,
    /// Another one, which is kept.
    Other,
    /// None.
    Absent,
}

/// Returns the status line that is set.
pub fn status_line(settings: &SharedFile) -> Result<StatusLine, Error> {
    read_in(settings, |text| Ok(line_in(&Document::read(text)?.object)))
}

/// Sets the status line if there is none. Returns the one that was set before.
pub fn set_status_line(
    settings: &SharedFile,
    state_dir: Option<&Path>,
    command: &str,
) -> Result<StatusLine, Error> {
    let found = status_line(settings)?;
    if found == StatusLine::Absent {
        let file = settings;
        Settings { file, state_dir }.add(&Line { command })?;
    }
    Ok(found)
}

/// Removes the status line of this program. Returns `true` if there was one.
pub fn remove_status_line(file: &SharedFile, state_dir: Option<&Path>) -> Result<bool, Error> {
    Settings { file, state_dir }.remove(&Line { command: "" })
}

struct Line<'a> {
    command: &'a str,
}

impl Entry for Line<'_> {
    const NAME: &'static str = "statusline";

    fn find(&self, text: &str) -> Result<InstallationStatus, Fault> {
        Ok(match line_in(&Document::read(text)?.object) {
            StatusLine::Own => InstallationStatus::Installed,
            StatusLine::Other | StatusLine::Absent => InstallationStatus::Absent,
        })
    }

    fn add(&self, text: &str) -> Result<String, Fault> {
        let document = Document::read(text)?;
        let value = json!({"type": "command", "command": (self.command)});
        document.object.append(KEY, value);
        Ok(document.text())
    }

    fn take_out(&self, text: &str) -> Result<String, Fault> {
        let document = Document::read(text)?;
        if let Some(line) = member(&document.object, KEY) {
            line.remove();
        }
        Ok(document.text())
    }
}

fn line_in(settings: &CstObject) -> StatusLine {
    let Some(line) = member(settings, KEY) else {
        return StatusLine::Absent;
    };
    let command = line
        .object_value()
        .and_then(|line| text_in(&line, "command"))
        .unwrap_or_default();
    // A script that calls this program beside another is the user's.
    let is_own = command.trim_end().strip_suffix(CALL);
    match is_own.map(|program| program.trim_matches('\'')) {
        Some(program) if program.ends_with("memctl") || program.ends_with("memctl.exe") => {
            StatusLine::Own
        }
        _ => StatusLine::Other,
    }
}

/// Name of the tool in the settings.
pub const LESSON_TOOL: &str = "mcp__memctl__lesson";

/// Returns `true` if the settings allow the tool.
pub fn allows_lessons(settings: &SharedFile) -> Result<bool, Error> {
    let found = read_in(settings, |text| Permission.find(text));
    Ok(found? == InstallationStatus::Installed)
}

/// Allows the tool. Returns `false` if it was allowed before.
pub fn allow_lessons(file: &SharedFile, state_dir: Option<&Path>) -> Result<bool, Error> {
    Settings { file, state_dir }.add(&Permission)
}

/// Takes the permission out again. Returns `false` if this program did not give it: a permission that a
/// person gave stays.
pub fn disallow_lessons(file: &SharedFile, state_dir: Option<&Path>) -> Result<bool, Error> {
    let settings = Settings { file, state_dir };
    Ok(settings.kept(Permission::NAME).is_some() && settings.remove(&Permission)?)
}

struct Permission;

impl Permission {
    /// The tool in the list of what is allowed.
    fn place(document: &Document) -> Option<CstNode> {
        let permissions = object_in(&document.object, "permissions").ok()??;
        let items = member(&permissions, "allow")?.array_value()?.elements();
        items.into_iter().find(|item| {
            let text = item.as_string_lit();
            text.is_some_and(|text| text.decoded_value().as_deref() == Ok(LESSON_TOOL))
        })
    }
}

impl Entry for Permission {
    const NAME: &'static str = "permission";

    fn find(&self, text: &str) -> Result<InstallationStatus, Fault> {
        Ok(match Self::place(&Document::read(text)?) {
            Some(_) => InstallationStatus::Installed,
            None => InstallationStatus::Absent,
        })
    }

    fn add(&self, text: &str) -> Result<String, Fault> {
        let document = Document::read(text)?;
        let permissions = object_for(&document.object, "permissions")?;
        match permissions.array_value_or_create("allow") {
            Some(allow) => allow.append(json!(LESSON_TOOL)),
            None => return Err("has `permissions.allow` that is not an array".to_owned()),
        };
        Ok(document.text())
    }

    fn take_out(&self, text: &str) -> Result<String, Fault> {
        let document = Document::read(text)?;
        while let Some(place) = Self::place(&document) {
            place.remove();
        }
        Ok(document.text())
    }
}

#[cfg(test)]
mod tests {
    use memctl_files::named;

    use super::*;

    const OWN: &str = "/opt/memctl statusline";

    #[test]
    fn removal_of_the_line_restores_every_byte() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        let settings = SharedFile::of_user(&file).unwrap();
        let state = dir.path().join("state");
        for original in [
            "{}",
            "{}\n",
            "\u{feff}{\"a\": 1}",
            "{\r\n\t\"env\": {\"A\": \"1\"}\r\n}\r\n",
            "// mine\n{\n    \"a\": 1, // one\n    /* two */ \"b\": [1, 2,],\n}\n",
            "{\"model\":\"opus\",\"hooks\":{}}",
        ] {
            named::replace(&file, original.as_bytes()).unwrap();
            let set = || set_status_line(&settings, Some(&state), OWN).unwrap();
            assert_eq!((set(), set()), (StatusLine::Absent, StatusLine::Own));
            assert_eq!(status_line(&settings).unwrap(), StatusLine::Own);
            assert!(remove_status_line(&settings, Some(&state)).unwrap());
            let now = std::fs::read_to_string(&file).unwrap();
            assert_eq!(now, original);
            // Without the stored piece, the rest stays valid.
            set();
            assert!(remove_status_line(&settings, None).unwrap());
            assert_eq!(status_line(&settings).unwrap(), StatusLine::Absent);
        }
    }

    #[test]
    fn the_line_of_a_user_stays() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        let settings = SharedFile::of_user(&file).unwrap();
        for command in ["~/line.sh", "~/line.sh; memctl statusline --json", "memctl"] {
            let line = serde_json::json!({"type": "command", "command": command});
            let text = serde_json::json!({"statusLine": line}).to_string();
            named::replace(&file, text.as_bytes()).unwrap();
            let found = set_status_line(&settings, None, OWN).unwrap();
            assert_eq!(found, StatusLine::Other, "{command}");
            assert!(!remove_status_line(&settings, None).unwrap());
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
    }

    #[test]
    fn removal_of_the_permission_restores_every_byte() {
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
