//! Any bytes as an event of a host, and as its settings.

use std::fs;

use memctl::host::{HookCall, Host, Item, Place, hook_command};
use memctl::lessons::HintService;
use memctl::model::Scope;
use memctl::store::{Here, Scoped};
use memctl_files::SharedFile;

const PROCEDURES: &str = r#"{"entries": [{"procedure_id": "PROC-001", "pattern": {"error_key": "KeyError: <name>",
    "failing_code": "python3 a.py", "working_code": "python3 b.py"}, "occurrences": 2}]}"#;

pub(crate) fn run(bytes: &[u8]) {
    let Ok(dir) = tempfile::tempdir() else { return };
    fs::write(dir.path().join("procedural_memory.json"), PROCEDURES).unwrap();
    let store = Scoped::new(dir.path(), Scope::All);
    for host in Host::ALL {
        let Some(event) = host.event(bytes) else {
            continue;
        };
        let call = HookCall {
            host,
            event: &event,
            hints: HintService {
                store: &store,
                now: chrono::DateTime::UNIX_EPOCH,
                random: || "n0nce".to_owned(),
                forbids: memctl::rules::forbids_advice,
                here: Here::default(),
            },
            is_read_only: false,
            settings: &|| None,
            primary: &|| None,
        };
        if let Some(answer) = call.answer() {
            let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
            let fields = answer.as_object().unwrap();
            // Other hosts have answers of their own form.
            if matches!(host, Host::ClaudeCode | Host::Codex | Host::Gemini) {
                assert_eq!(fields["hookSpecificOutput"]["hookEventName"], event.name);
                assert_eq!(fields.len(), 1);
            }
        }
    }
    let settings = dir.path().join("settings.json");
    let place = Place {
        item: Item::Hooks,
        host: Host::Codex,
        settings: SharedFile::of_user(&settings).unwrap(),
        state_dir: None,
        start: hook_command("memctl", Host::Codex, false),
    };
    fs::write(&settings, bytes).unwrap();
    if place.install().is_ok() {
        place.remove().unwrap();
    } else {
        assert_eq!(fs::read(&settings).unwrap(), bytes);
    }
}
