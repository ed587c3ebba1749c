//! Tests with settings of many forms, with hooks and after their removal.

use proptest::prelude::*;

use super::*;
use crate::host::Item;
use memctl_files::named;

/// Place in the settings of any host.
struct Anywhere {
    settings: SharedFile,
    state_dir: Option<PathBuf>,
    program: String,
}

impl Anywhere {
    fn of(&self, host: Host) -> Place {
        Place {
            item: Item::Hooks,
            host,
            settings: self.settings.clone(),
            state_dir: self.state_dir.clone(),
            start: hook_command(&self.program, host, false),
        }
    }
}

fn place(directory: &Path) -> Anywhere {
    Anywhere {
        settings: SharedFile::of_user(directory.join("conf/settings.json")).unwrap(),
        state_dir: Some(directory.join("state")),
        program: "/opt/memctl".to_owned(),
    }
}

fn install(host: Host, place: &Anywhere) -> Result<bool, Error> {
    place.of(host).install()
}

fn uninstall(host: Host, place: &Anywhere) -> Result<bool, Error> {
    place.of(host).remove()
}

/// Settings as people, programs and accidents leave them.
const ODD: &[&str] = &[
    "{}",
    "{}\n",
    "{\n}\n",
    "",
    " \n",
    "\u{feff}{\"a\": 1}",
    "{\"model\":\"opus\",\"hooks\":{}}",
    "{\n  \"hooks\": {\n    \"PostToolUse\": []\n  }\n}\n",
    "{\r\n\t\"env\": {\"A\": \"1\"},\r\n\t\"permissions\": {\r\n\t\t\"allow\": [\"Bash(ls:*)\"]\r\n\t}\r\n}\r\n",
    "// mine\n{\n    \"a\": 1, // one\n    /* two */ \"b\": [1, 2,],\n}\n",
    "{\"hooks\": {\"PostToolUse\": [{\"matcher\": \"Edit\", \"hooks\": [{\"type\": \"command\", \"command\": \"fmt\"}]}], \"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}]}}",
    "{\n  \"hooks\": {\n    \"SessionEnd\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"x\"}]},\n    ],\n  },\n}",
    "{\"a\": \"say \\\"hooks\\\": {}\", \"é\": \"\\u00e9\", \"n\": 1e400, \"big\": 123456789012345678901234567890}",
    "{\"hooks\": {\"PostToolUse\": [\"nonsense\", 7, {\"hooks\": 3}]}}",
];

#[test]
fn uninstalling_restores_every_byte() {
    let is_shared = |host: &Host| !matches!(host.profile().form, Form::Plugin | Form::Scripts);
    for host in Host::with_hooks().filter(is_shared) {
        for original in ODD {
            let dir = tempfile::tempdir().unwrap();
            let place = place(dir.path());
            named::create_dir(place.settings.path().parent().unwrap()).unwrap();
            named::replace(place.settings.path(), original.as_bytes()).unwrap();
            let installed = install(host, &place).unwrap();
            assert!(installed, "{original}");
            let text = std::fs::read_to_string(place.settings.path()).unwrap();
            assert_eq!(
                status(&place.of(host)).unwrap().standing,
                InstallationStatus::Installed
            );
            assert!(!install(host, &place).unwrap(), "{original}");
            assert_eq!(
                std::fs::read_to_string(place.settings.path()).unwrap(),
                text
            );
            assert!(uninstall(host, &place).unwrap());
            let restored = std::fs::read_to_string(place.settings.path()).unwrap();
            assert_eq!(restored, *original, "{}", host.name());
            assert!(!uninstall(host, &place).unwrap());
        }
    }
}

#[test]
fn removal_without_a_saved_change_removes_only_the_hooks() {
    for original in ODD
        .iter()
        .filter(|text| text.contains('"') && !text.contains("[]"))
    {
        let dir = tempfile::tempdir().unwrap();
        let mut place = place(dir.path());
        place.state_dir = None;
        named::create_dir(place.settings.path().parent().unwrap()).unwrap();
        named::replace(place.settings.path(), original.as_bytes()).unwrap();
        install(Host::ClaudeCode, &place).unwrap();
        uninstall(Host::ClaudeCode, &place).unwrap();
        let left = std::fs::read_to_string(place.settings.path()).unwrap();
        let squeezed = |text: &str| -> String {
            let text = text.replace(",\"hooks\":{}", "");
            text.chars()
                .filter(|c| !c.is_whitespace() && *c != ',')
                .collect()
        };
        assert_eq!(squeezed(&left), squeezed(original));
    }
}

#[test]
fn a_file_that_was_not_there_is_gone_again() {
    let dir = tempfile::tempdir().unwrap();
    let place = place(dir.path());
    let report = install(Host::Gemini, &place).unwrap();
    assert!(report);
    let text = std::fs::read_to_string(place.settings.path()).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let hook = &value["hooks"]["AfterTool"][0];
    assert_eq!(hook["matcher"], "*");
    assert_eq!(hook["hooks"][0]["command"], "/opt/memctl hook gemini");
    assert_eq!(hook["hooks"][0]["timeout"], 5_000);
    assert_eq!(value["hooks"]["SessionStart"][0].get("matcher"), None);
    uninstall(Host::Gemini, &place).unwrap();
    assert!(!place.settings.path().parent().unwrap().exists());
}

#[test]
fn later_changes_by_others_stay() {
    let dir = tempfile::tempdir().unwrap();
    let place = place(dir.path());
    install(Host::ClaudeCode, &place).unwrap();
    let text = std::fs::read_to_string(place.settings.path()).unwrap();
    let changed = text.replacen('{', "{\n  \"model\": \"opus\", // new", 1);
    named::replace(place.settings.path(), changed.as_bytes()).unwrap();
    assert!(!install(Host::ClaudeCode, &place).unwrap());
    uninstall(Host::ClaudeCode, &place).unwrap();
    let left = std::fs::read_to_string(place.settings.path()).unwrap();
    assert!(
        left.contains("\"model\": \"opus\"") && left.contains("// new"),
        "{left}"
    );
    assert!(!left.contains("hooks"), "{left}");
}

#[test]
fn hooks_of_another_program_path_give_way() {
    let dir = tempfile::tempdir().unwrap();
    let mut place = place(dir.path());
    named::create_dir(place.settings.path().parent().unwrap()).unwrap();
    named::replace(place.settings.path(), b"{\"a\": 1}").unwrap();
    install(Host::Codex, &place).unwrap();
    place.program = "/home/d ev/it's/memctl".to_owned();
    assert_eq!(
        status(&place.of(Host::Codex)).unwrap().standing,
        InstallationStatus::Outdated
    );
    install(Host::Codex, &place).unwrap();
    let status = status(&place.of(Host::Codex)).unwrap();
    assert_eq!(status.standing, InstallationStatus::Installed);
    assert_eq!(
        status.of.commands[0],
        r"'/home/d ev/it'\''s/memctl' hook codex"
    );
    uninstall(Host::Codex, &place).unwrap();
    assert_eq!(std::fs::read(place.settings.path()).unwrap(), b"{\"a\": 1}");
}

#[test]
fn invalid_settings_file_is_not_changed() {
    let check = |text: &[u8], message: &str| {
        let dir = tempfile::tempdir().unwrap();
        let place = place(dir.path());
        named::create_dir(place.settings.path().parent().unwrap()).unwrap();
        named::replace(place.settings.path(), text).unwrap();
        let error = install(Host::ClaudeCode, &place).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
        assert_eq!(std::fs::read(place.settings.path()).unwrap(), text);
        assert!(!dir.path().join("state").exists());
    };
    check(b"{\"a\": 1,,}", "line 1");
    check(b"[1]", "a value that is not an object");
    check(b"{\"hooks\": []}", "`hooks` that is not an object");
    check(
        b"{\"hooks\": {\"Stop\": {}}}",
        "`hooks.Stop` that is not an array",
    );
    check(b"\xff\xfe{}", "cannot read");
}

#[test]
#[cfg_attr(windows, ignore = "Wine makes no symbolic links")]
fn a_link_stays_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("conf/settings.json");
    named::create_dir(link.parent().unwrap()).unwrap();
    let target = dir.path().join("dotfiles.json");
    named::replace(&target, b"{\"a\": 1}\n").unwrap();
    memctl_files::make_link(&target, &link).unwrap();
    let place = place(dir.path());
    install(Host::ClaudeCode, &place).unwrap();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert!(std::fs::read_to_string(&target).unwrap().contains("memctl"));
    uninstall(Host::ClaudeCode, &place).unwrap();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(std::fs::read(&target).unwrap(), b"{\"a\": 1}\n");
    std::fs::remove_file(&target).unwrap();
    assert!(SharedFile::of_user(&link).is_err());
}

/// Generates JSON of any content and layout, sometimes with comments.
fn settings() -> impl Strategy<Value = String> {
    let space = prop::sample::select(vec!["", " ", "\n", "\n  ", "\r\n\t", " // c\n", "/* c */"]);
    let word = prop::sample::select(vec![
        "1", "null", "\"x\"", "\"hooks\"", "{}", "[ ]", "\"\\\"\"",
    ]);
    let member = (
        prop::sample::select(vec!["a", "b", "hooks2", "é"]),
        word,
        space.clone(),
    );
    let event = prop::sample::select(vec!["PostToolUse", "SessionEnd", "Other"]);
    let hooks = prop::collection::vec((event, space.clone()), 0..3).prop_map(|events| {
        let lists: Vec<String> = events
            .iter()
            .enumerate()
            .map(|(i, (event, space))| {
                // Duplicate keys do not occur in real settings.
                let name = if i == 0 {
                    (*event).to_owned()
                } else {
                    format!("E{i}")
                };
                format!("{space}\"{name}\":{space}[{space}{{\"hooks\": []}}{space}]")
            })
            .collect();
        format!("\"hooks\": {{{}}}", lists.join(","))
    });
    (
        prop::collection::vec(member, 0..4),
        prop::option::of(hooks),
        space.clone(),
        space,
    )
        .prop_map(|(members, hooks, before, after)| {
            let members = members
                .into_iter()
                .map(|(key, value, space)| format!("{space}\"{key}\":{space}{value}{space}"));
            let parts: Vec<String> = members.chain(hooks).collect();
            format!("{before}{{{}{after}}}", parts.join(","))
        })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn any_settings_come_back_though_something_was_added_in_front(text in settings()) {
        let dir = tempfile::tempdir().unwrap();
        let place = place(dir.path());
        named::create_dir(place.settings.path().parent().unwrap()).unwrap();
        named::replace(place.settings.path(), text.as_bytes()).unwrap();
        install(Host::ClaudeCode, &place).unwrap();
        let installed = std::fs::read_to_string(place.settings.path()).unwrap();
        let edited = format!("// edited since\n{installed}");
        named::replace(place.settings.path(), edited.as_bytes()).unwrap();
        uninstall(Host::ClaudeCode, &place).unwrap();
        let left = std::fs::read_to_string(place.settings.path()).unwrap();
        prop_assert_eq!(left, format!("// edited since\n{text}"));
    }

    #[test]
    fn any_text_is_changed_as_json_or_not_at_all(text in "[ {}\\[\\]\":,a/*\\\\\n0-9]{0,40}") {
        let dir = tempfile::tempdir().unwrap();
        let place = place(dir.path());
        named::create_dir(place.settings.path().parent().unwrap()).unwrap();
        named::replace(place.settings.path(), text.as_bytes()).unwrap();
        if install(Host::Gemini, &place).is_ok() {
            uninstall(Host::Gemini, &place).unwrap();
        }
        prop_assert_eq!(std::fs::read_to_string(place.settings.path()).unwrap(), text);
    }
}
