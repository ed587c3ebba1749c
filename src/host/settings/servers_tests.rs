//! Tests with settings of many forms, with the server and after its removal.

use super::*;
use crate::host::Item;
use memctl_files::SharedFile;

fn shared(file: &Path) -> SharedFile {
    SharedFile::of_user(file).unwrap()
}

fn place(host: Host, settings: &SharedFile, state: Option<&Path>, start: &Start) -> Place {
    Place {
        item: Item::Server,
        host,
        settings: settings.clone(),
        state_dir: state.map(Path::to_owned),
        start: start.clone(),
    }
}

fn register(
    host: Host,
    settings: &SharedFile,
    state: Option<&Path>,
    start: &Start,
) -> Result<bool, Error> {
    place(host, settings, state, start).install()
}

fn unregister(host: Host, settings: &SharedFile, state: Option<&Path>) -> Result<bool, Error> {
    place(host, settings, state, &Start::default()).remove()
}

fn registered(host: Host, settings: &SharedFile) -> Result<Found<Served>, Error> {
    status(&place(host, settings, None, &Start::default()))
}

fn start() -> Start {
    Start {
        command: "/opt/my tools/memctl".to_owned(),
        args: ["mcp", "--scope", "hr", "--root", "${workspaceFolder}"]
            .map(str::to_owned)
            .to_vec(),
    }
}

#[test]
fn entries_have_the_form_that_the_agent_hosts_write() {
    let start = Start {
        command: "/opt/memctl".to_owned(),
        args: vec!["mcp".to_owned()],
    };
    let check = |host: Host, key: &str, expected: serde_json::Value| {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings");
        register(host, &shared(&file), None, &start).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        let settings: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(settings, serde_json::json!({key: {"memctl": expected}}));
    };
    // As `copilot mcp add`, `opencode mcp add` and `cline mcp add` write them.
    check(
        Host::Copilot,
        "mcpServers",
        serde_json::json!({"tools": ["*"], "type": "local", "command": "/opt/memctl", "args": ["mcp"]}),
    );
    check(
        Host::OpenCode,
        "mcp",
        serde_json::json!({"type": "local", "command": ["/opt/memctl", "mcp"], "enabled": true}),
    );
    check(
        Host::Cline,
        "mcpServers",
        serde_json::json!({"transport": {"type": "stdio", "command": "/opt/memctl", "args": ["mcp"]}}),
    );
}

const JSON: &[&str] = &[
    "{}",
    "{}\n",
    "{\n}\n",
    "\u{feff}{\"a\": 1}",
    "{\"mcpServers\":{}, \"servers\": {}}",
    "{\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\", \"args\": [\"mcp\"]}\n  }\n}\n",
    "{\r\n\t\"env\": {\"A\": \"1\"},\r\n\t\"servers\": {\r\n\t\t\"b\": {\"url\": \"http://x\"}\r\n\t}\r\n}\r\n",
    "// mine\n{\n    \"a\": 1, // one\n    /* two */ \"mcpServers\": {\"b\": {},},\n}\n",
    "{\"oauth\": {\"n\": 123456789012345678901234567890, \"memctl\": 1}, \"é\": \"\\u00e9\"}",
];

const TOML: &[&str] = &[
    "model = \"gpt\"\n",
    "model = \"gpt\"",
    "# only words\n",
    "[mcp_servers.other]\ncommand = \"x\"\n\n[mcp_servers.other.env]\nA = \"1\"\n",
    "a = 1\r\n[b]\r\nc = [\r\n  1,\r\n]\r\n",
    "[projects.\"/home/me/p\"]\ntrust_level = \"trusted\"\n",
];

fn texts(host: Host) -> &'static [&'static str] {
    match host {
        Host::Codex => TOML,
        _ => JSON,
    }
}

#[test]
fn taking_it_out_restores_every_byte() {
    for host in Host::ALL {
        for original in texts(host) {
            let dir = tempfile::tempdir().unwrap();
            let state = dir.path().join("state");
            let file = dir.path().join("settings");
            named::replace(&file, original.as_bytes()).unwrap();
            let there = || registered(host, &shared(&file)).unwrap().of.start;
            assert_eq!(there(), None, "{original}");
            assert!(register(host, &shared(&file), Some(&state), &start()).unwrap());
            assert_eq!(there(), Some(start()), "{original}");
            assert!(!register(host, &shared(&file), Some(&state), &start()).unwrap());
            let text = std::fs::read_to_string(&file).unwrap();
            // Another form replaces it.
            let other = Start {
                args: vec!["mcp".to_owned()],
                ..start()
            };
            assert!(register(host, &shared(&file), Some(&state), &other).unwrap());
            assert_eq!(there(), Some(other), "{original}");
            register(host, &shared(&file), Some(&state), &start()).unwrap();
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
            assert!(unregister(host, &shared(&file), Some(&state)).unwrap());
            assert_eq!(
                std::fs::read_to_string(&file).unwrap(),
                *original,
                "{}",
                host.name()
            );
            assert!(!unregister(host, &shared(&file), Some(&state)).unwrap());
        }
    }
}

#[test]
fn a_file_that_was_not_there_is_gone_again() {
    for host in Host::ALL {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let file = dir.path().join("a/b/settings");
        register(host, &shared(&file), Some(&state), &start()).unwrap();
        assert!(file.is_file());
        unregister(host, &shared(&file), Some(&state)).unwrap();
        assert!(!dir.path().join("a").exists(), "{}", host.name());
    }
}

#[test]
fn removal_without_a_saved_change_removes_only_the_entry() {
    for host in Host::ALL {
        for original in texts(host) {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("settings");
            named::replace(&file, original.as_bytes()).unwrap();
            register(host, &shared(&file), None, &start()).unwrap();
            assert!(
                unregister(host, &shared(&file), None).unwrap(),
                "{original}"
            );
            let text = std::fs::read_to_string(&file).unwrap();
            assert_eq!(started(host, &text).unwrap(), None, "{text}");
            assert!(
                text.contains("other") == original.contains("other"),
                "{text}"
            );
        }
    }
}

#[test]
fn a_program_that_is_gone_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("settings");
    let standing = |command: &Path| {
        let start = Start {
            command: command.display().to_string(),
            ..start()
        };
        register(Host::Cursor, &shared(&file), None, &start).unwrap();
        registered(Host::Cursor, &shared(&file)).unwrap().standing
    };
    let program = dir.path().join("memctl");
    assert_eq!(standing(&program), InstallationStatus::Outdated);
    named::replace(&program, b"").unwrap();
    assert_eq!(standing(&program), InstallationStatus::Installed);
    assert_eq!(standing(Path::new("memctl")), InstallationStatus::Installed);
}

#[test]
fn foreign_or_unreadable_entry_is_never_changed() {
    let check = |host: Host, text: &str, expected: &str| {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings");
        named::replace(&file, text.as_bytes()).unwrap();
        let refused = register(host, &shared(&file), None, &start()).unwrap_err();
        assert!(refused.to_string().contains(expected), "{refused}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    };
    let code = Host::ClaudeCode;
    let other = "{\"mcpServers\": {\"memctl\": {\"command\": \"python\", \"args\": [\"mcp\"]}}}";
    check(code, other, "which starts `python`");
    check(
        code,
        "{\"mcpServers\": []}",
        "`mcpServers` that is not an object",
    );
    check(code, "{,}", "line 1");
    check(code, "[]", "a value that is not an object");
    let codex = Host::Codex;
    check(
        codex,
        "[mcp_servers.memctl]\nurl = \"http://x\"\n",
        "another server",
    );
    check(codex, "a = 1\nb = \n", "invalid TOML in line 2");
    check(
        codex,
        "mcp_servers = { a = { command = \"x\" } }\n",
        "invalid TOML in line",
    );
    // A hand-written entry in another form is left unchanged.
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("settings");
    let inline = "mcp_servers = { memctl = { command = \"memctl\", args = [\"mcp\"] } }\n";
    named::replace(&file, inline.as_bytes()).unwrap();
    assert_eq!(
        registered(codex, &shared(&file)).unwrap().standing,
        InstallationStatus::Installed
    );
    let refused = unregister(codex, &shared(&file), None).unwrap_err();
    assert!(refused.to_string().contains("by hand"), "{refused}");
}

#[test]
fn only_the_lines_of_the_table_are_removed() {
    let check = |original: &str, expected: &str| {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings");
        named::replace(&file, original.as_bytes()).unwrap();
        unregister(Host::Codex, &shared(&file), None).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), expected);
    };
    // The comment belongs to the next table.
    check(
        "\u{feff}# first\r\n[a]\r\nb = 1\r\n\r\n# ours\r\n[mcp_servers.\"memctl\"]\r\ncommand = \"memctl\"\r\nargs = [\r\n\"mcp\"\r\n] # end\r\n\r\n# other\r\n[mcp_servers.c]\r\ncommand = \"c\"\r\n",
        "\u{feff}# first\r\n[a]\r\nb = 1\r\n\r\n# ours\r\n# other\r\n[mcp_servers.c]\r\ncommand = \"c\"\r\n",
    );
    // Tables below it may stand elsewhere.
    check(
        "[mcp_servers.memctl.env]\nA = \"1\"\n[b]\nc = 1\n[mcp_servers.memctl]\ncommand = \"memctl\"\nargs = [\"mcp\"]\nf.g = 2\n[[mcp_servers.memctl.d]]\n[[mcp_servers.memctl.d]]\ne = { h = 1 }\n[mcp_servers.memctl.tools.x]\ni = 1",
        "[b]\nc = 1\n",
    );
}
