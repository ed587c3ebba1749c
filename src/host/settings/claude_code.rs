//! Settings of Claude Code beside its hooks: the status line, the permissions for the two tools that record lessons
//! and corrections, and the answers that permissions allow.
//!
//! Claude Code has one status line, and a user's own is never replaced. Without a permission, a tool opens a dialog
//! in the middle of a turn. Only these two are allowed, only on the person's request, and nothing that they record
//! from a chat acts before the person approves it.

use std::path::Path;

use jsonc_parser::cst::{CstNode, CstObject};
use jsonc_parser::json;
use memctl_files::{SharedFile, named};
use serde_json::Value;

use super::file::{Document, member, object_for, object_in, read_in, text_in};
use super::{Entry, Error, Fault, InstallationStatus};
use crate::lessons::AnswerBy;

const KEY: &str = "statusLine";
/// End of the command that prints the line.
const CALL: &str = " statusline";

/// The status line, with its command.
pub(super) struct Line(pub(super) String);

impl Entry for Line {
    fn name(&self) -> &'static str {
        "statusline"
    }

    fn find(&self, text: &str) -> Result<InstallationStatus, Fault> {
        match own_line(&Document::read(text)?.object) {
            None => Ok(InstallationStatus::Absent),
            Some(true) => Ok(InstallationStatus::Installed),
            Some(false) => Err("has another status line".to_owned()),
        }
    }

    fn add(&self, text: &str) -> Result<String, Fault> {
        let document = Document::read(text)?;
        let value = json!({"type": "command", "command": (self.0.as_str())});
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

    /// One of the user is never removed.
    fn is_ours(&self, text: &str, _is_kept: bool) -> bool {
        let is_own = Document::read(text).map(|document| own_line(&document.object));
        is_own != Ok(Some(false))
    }
}

/// Returns `true` if the settings have a status line of another program.
pub fn has_other_status_line(settings: &SharedFile) -> Result<bool, Error> {
    read_in(settings, |text| {
        Ok(own_line(&Document::read(text)?.object) == Some(false))
    })
}

/// Returns whether the status line is that of this program; `None` if there is none.
fn own_line(settings: &CstObject) -> Option<bool> {
    let line = member(settings, KEY)?;
    let command = line
        .object_value()
        .and_then(|line| text_in(&line, "command"))
        .unwrap_or_default();
    // A script that calls this program beside another is the user's.
    let is_own = command.trim_end().strip_suffix(CALL);
    let program = is_own.map(|program| program.trim_matches('\''));
    // Also one with a version in its name.
    let name = program.and_then(|program| program.rsplit(['/', '\\']).next());
    Some(name.is_some_and(|name| name.starts_with("memctl")))
}

/// Name of the tool for lessons in the settings.
pub const LESSON_TOOL: &str = "mcp__memctl__lesson";
/// Name of the tool for corrections in the settings.
pub const CORRECT_TOOL: &str = "mcp__memctl__correct";

/// The permission for a tool.
pub(super) struct Permission(pub(super) &'static str);

impl Permission {
    /// The tool in the list of what is allowed.
    fn place(&self, document: &Document) -> Option<CstNode> {
        let permissions = object_in(&document.object, "permissions").ok()??;
        let items = member(&permissions, "allow")?.array_value()?.elements();
        items.into_iter().find(|item| {
            let text = item.as_string_lit();
            text.is_some_and(|text| text.decoded_value().as_deref() == Ok(self.0))
        })
    }
}

impl Entry for Permission {
    fn name(&self) -> &'static str {
        match self.0 {
            LESSON_TOOL => "permission",
            _ => "permission-correct",
        }
    }

    fn find(&self, text: &str) -> Result<InstallationStatus, Fault> {
        Ok(match self.place(&Document::read(text)?) {
            Some(_) => InstallationStatus::Installed,
            None => InstallationStatus::Absent,
        })
    }

    fn add(&self, text: &str) -> Result<String, Fault> {
        let document = Document::read(text)?;
        let permissions = object_for(&document.object, "permissions")?;
        match permissions.array_value_or_create("allow") {
            Some(allow) => allow.append(json!(self.0)),
            None => return Err("has `permissions.allow` that is not an array".to_owned()),
        };
        Ok(document.text())
    }

    /// Removes the tool, and the list and the object that become empty.
    fn take_out(&self, text: &str) -> Result<String, Fault> {
        let document = Document::read(text)?;
        while let Some(place) = self.place(&document) {
            place.remove();
        }
        let permissions = object_in(&document.object, "permissions")?;
        let allow = permissions.and_then(|permissions| member(&permissions, "allow"));
        if let Some(allow) = allow
            && allow
                .array_value()
                .is_some_and(|list| list.elements().is_empty())
        {
            allow.remove();
            document.remove_empty("permissions");
        }
        Ok(document.text())
    }

    /// A permission that the person gave stays.
    fn is_ours(&self, _text: &str, is_kept: bool) -> bool {
        is_kept
    }
}

/// Maximum size of a settings file: 1 MiB.
const LARGEST: u64 = 1 << 20;

/// Returns the way to answer a question that opens no dialog, by the permissions of the user and of a project.
pub(crate) fn permitted_answer(home: Option<&Path>, project: Option<&Path>) -> AnswerBy {
    let files = [
        (home, "settings.json"),
        (project, "settings.json"),
        (project, "settings.local.json"),
    ];
    let found = files
        .iter()
        .filter_map(|(dir, file)| permitted_by(&(*dir)?.join(".claude").join(file)));
    let by = found.min_by_key(|by| *by != AnswerBy::Tool);
    by.unwrap_or(AnswerBy::Lines)
}

/// Returns the way to answer that a settings file permits.
fn permitted_by(settings: &Path) -> Option<AnswerBy> {
    let text = named::read_text(settings, LARGEST).ok()?;
    let settings: Value = serde_json::from_str(&text).ok()?;
    let allow = settings["permissions"]["allow"].as_array()?;
    let has = |names: &[&str]| allow.iter().any(|one| names.iter().any(|name| one == name));
    if has(&[LESSON_TOOL, "mcp__memctl", "mcp__memctl__*"]) {
        Some(AnswerBy::Tool)
    } else if has(&[
        "Bash(memctl lesson add:*)",
        "Bash(memctl lesson:*)",
        "Bash(memctl:*)",
    ]) {
        Some(AnswerBy::Command)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::host::{Host, Item, Place, Start};

    fn place(item: Item, file: &Path, state: Option<&Path>) -> Place {
        Place {
            item,
            host: Host::ClaudeCode,
            settings: SharedFile::of_user(file).unwrap(),
            state_dir: state.map(Path::to_owned),
            start: Start {
                command: "/opt/memctl".to_owned(),
                args: vec!["statusline".to_owned()],
            },
        }
    }

    #[test]
    fn removal_of_the_line_restores_every_byte() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        let state = dir.path().join("state");
        let line = place(Item::StatusLine, &file, Some(&state));
        for original in [
            "{}",
            "{}\n",
            "\u{feff}{\"a\": 1}",
            "{\r\n\t\"env\": {\"A\": \"1\"}\r\n}\r\n",
            "// mine\n{\n    \"a\": 1, // one\n    /* two */ \"b\": [1, 2,],\n}\n",
            "{\"model\":\"opus\",\"hooks\":{}}",
        ] {
            named::replace(&file, original.as_bytes()).unwrap();
            let set = || line.install().unwrap();
            assert_eq!((set(), set()), (true, false));
            assert_eq!(line.status().unwrap(), InstallationStatus::Installed);
            assert!(line.remove().unwrap());
            let now = std::fs::read_to_string(&file).unwrap();
            assert_eq!(now, original);
            // Without the stored piece, the rest stays valid.
            set();
            let without = place(Item::StatusLine, &file, None);
            assert!(without.remove().unwrap());
            assert_eq!(without.status().unwrap(), InstallationStatus::Absent);
        }
    }

    #[test]
    fn the_line_of_a_user_stays() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        let own = place(Item::StatusLine, &file, None);
        for command in ["~/line.sh", "~/line.sh; memctl statusline", "memctl"] {
            let line = serde_json::json!({"type": "command", "command": command});
            let text = serde_json::json!({"statusLine": line}).to_string();
            named::replace(&file, text.as_bytes()).unwrap();
            assert!(has_other_status_line(&own.settings).unwrap(), "{command}");
            assert!(own.install().is_err());
            assert!(!own.remove().unwrap());
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
    }

    #[test]
    fn removal_of_the_permission_restores_every_byte() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        let state = dir.path().join("state");
        let allowed = place(Item::Permission(LESSON_TOOL), &file, Some(&state));
        let both = place(Item::Permission(CORRECT_TOOL), &file, Some(&state));
        for original in [
            "{}",
            "{\r\n\t\"env\": {\"A\": \"1\"}\r\n}\r\n",
            "// mine\n{\n    \"permissions\": {\n        \"deny\": [\"Bash(rm:*)\"]\n    }\n}\n",
            "{\"permissions\": {\"allow\": [\"Bash(ls:*)\", ]}}",
        ] {
            named::replace(&file, original.as_bytes()).unwrap();
            let allow = || allowed.install().unwrap();
            assert_eq!((allow(), allow()), (true, false), "{original}");
            assert_eq!(allowed.status().unwrap(), InstallationStatus::Installed);
            assert!(both.install().unwrap());
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(text.contains(CORRECT_TOOL), "{text}");
            assert!(both.remove().unwrap() && allowed.remove().unwrap());
            assert_eq!(std::fs::read_to_string(&file).unwrap(), original);
            // Another entry that came later stays.
            assert!(allow());
            let text = std::fs::read_to_string(&file).unwrap();
            let more = text.replace(LESSON_TOOL, &format!("{LESSON_TOOL}\", \"Bash(make:*)"));
            named::replace(&file, more.as_bytes()).unwrap();
            assert!(allowed.remove().unwrap());
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(
                text.contains("Bash(make:*)") && !text.contains(LESSON_TOOL),
                "{text}"
            );
        }
    }

    #[test]
    fn existing_permission_stays() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        let allowed = place(Item::Permission(LESSON_TOOL), &file, Some(dir.path()));
        let text = format!("{{\"permissions\": {{\"allow\": [\"{LESSON_TOOL}\"]}}}}");
        named::replace(&file, text.as_bytes()).unwrap();
        assert!(!allowed.install().unwrap());
        assert!(!allowed.remove().unwrap());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
}
