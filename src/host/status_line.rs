//! Status line of Claude Code: its entry in the settings, and the removal.
//!
//! Claude Code has one status line. One of the user is never replaced, so there is nothing to restore: the
//! removal takes out the inserted piece and keeps every other byte.

use std::path::Path;

use serde_json::json;

use crate::store;
use memctl_files::SharedFile;

use super::install::Error;
use super::jsonc::{self, Node};
use super::settings_piece::{Piece, settings_of};

const KEY: &str = "statusLine";
/// End of the command that prints the line.
const CALL: &str = " statusline";

const PIECE: Piece = Piece {
    name: "statusline",
    is_there: |root| find(root) == StatusLine::Own,
    place: |text, root| {
        let at = root
            .members()?
            .iter()
            .position(|member| member.key == KEY)?;
        Some(jsonc::removal(text, root, at))
    },
};

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
    Ok(find(&settings_of(settings)?.0))
}

/// Sets the status line if there is none. Returns the one that was set before.
pub fn set_status_line(
    settings: &SharedFile,
    state_dir: Option<&Path>,
    command: &str,
) -> Result<StatusLine, Error> {
    let found = status_line(settings)?;
    if found == StatusLine::Absent {
        let value = json!({"type": "command", "command": command});
        let value = serde_json::to_string_pretty(&value).map_err(store::Error::from)?;
        let member = format!("\"{KEY}\": {value}");
        PIECE.insert(settings, state_dir, |text, root| {
            jsonc::append(text, root, &member)
        })?;
    }
    Ok(found)
}

/// Removes the status line of this program. Returns `true` if there was one.
pub fn remove_status_line(settings: &SharedFile, state_dir: Option<&Path>) -> Result<bool, Error> {
    PIECE.remove(settings, state_dir)
}

fn find(root: &Node) -> StatusLine {
    let Some(value) = root.get(KEY) else {
        return StatusLine::Absent;
    };
    let command = value.get("command").and_then(Node::text);
    // A script that calls this program beside another is the user's.
    let is_own = command.and_then(|command| command.trim_end().strip_suffix(CALL));
    match is_own.map(|program| program.trim_matches('\'')) {
        Some(program) if program.ends_with("memctl") || program.ends_with("memctl.exe") => {
            StatusLine::Own
        }
        _ => StatusLine::Other,
    }
}

#[cfg(test)]
mod tests {
    use memctl_files::named;

    use super::*;

    const OWN: &str = "/opt/memctl statusline";

    #[test]
    fn removal_restores_every_byte() {
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
            let text = json!({"statusLine": {"type": "command", "command": command}}).to_string();
            named::replace(&file, text.as_bytes()).unwrap();
            let found = set_status_line(&settings, None, OWN).unwrap();
            assert_eq!(found, StatusLine::Other, "{command}");
            assert!(!remove_status_line(&settings, None).unwrap());
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
    }
}
