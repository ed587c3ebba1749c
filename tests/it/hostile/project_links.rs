//! Links of a clone in the places of files that memctl shares with other programs: settings of agent
//! hosts, `AGENTS.md`, `.gitattributes`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::tally::Tally;
use crate::workspace::Workspace;

/// Files of a project, and the commands that write them.
const WRITES: &[(&str, &str)] = &[
    (".mcp.json", "mcp install claude-code --project"),
    (".codex/config.toml", "mcp install codex --project"),
    (".gemini/settings.json", "mcp install gemini --project"),
    (".cursor/mcp.json", "mcp install cursor --project"),
    (".vscode/mcp.json", "mcp install vscode --project"),
    (".github/mcp.json", "mcp install copilot --project"),
    ("opencode.json", "mcp install opencode --project"),
    (".cursor/mcp.json", "setup cursor --yes"),
    (".vscode/mcp.json", "setup vscode --yes"),
    (".cursor/mcp.json", "mcp uninstall cursor --project"),
    (".vscode/mcp.json", "setup vscode --undo"),
    (
        ".claude/settings.json",
        "hooks install claude-code --project",
    ),
    (".codex/hooks.json", "hooks install codex --project"),
    (".gemini/settings.json", "hooks install gemini --project"),
    (
        ".github/hooks/memctl.json",
        "hooks install copilot --project",
    ),
    (
        ".opencode/plugins/memctl.js",
        "hooks install opencode --project",
    ),
    (".cursor/hooks.json", "hooks install cursor --project"),
    (
        ".claude/settings.json",
        "hooks uninstall claude-code --project",
    ),
    ("AGENTS.md", "memory export --format agents-md"),
    (
        "docs/CLAUDE.md",
        "memory export --format agents-md --output docs/CLAUDE.md",
    ),
    (".gitattributes", "init --git"),
];

/// Attacks on one file: a link in its place, a dangling link, and a link in the place of the directory
/// above it.
const LINKS: &[&str] = &["file", "missing", "directory"];

/// Files below a directory with their content, and the directories.
fn everything(directory: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path.clone());
                found.push((path, None));
            } else {
                let text = fs::read(&path).unwrap();
                found.push((path, Some(text)));
            }
        }
    }
    found.sort();
    found
}

fn clone_with(file: &str, link: &str, outside: &Path, workspace: &Workspace) -> bool {
    let place = workspace.root().join(file);
    let name = place.file_name().unwrap();
    fs::create_dir_all(outside.join("directory")).unwrap();
    // The content is what the command would change.
    let text = match file {
        "AGENTS.md" | "docs/CLAUDE.md" => {
            "# House\n<!-- memctl:begin -->\n- x\n<!-- memctl:end -->\n".to_owned()
        }
        _ if file.ends_with("toml") => "[mcp_servers.memctl]\ncommand = \"memctl\"\n".to_owned(),
        _ => r#"{"mcpServers": {"memctl": {"command": "memctl", "args": ["mcp"]}}}"#.to_owned(),
    };
    fs::write(outside.join("file"), &text).unwrap();
    fs::write(outside.join("directory").join(name), &text).unwrap();
    let (target, place) = match link {
        "directory" => match Path::new(file).components().next() {
            Some(first) if Path::new(file).components().count() > 1 => {
                (outside.join("directory"), workspace.root().join(first))
            }
            _ => return false,
        },
        link => (outside.join(link), place),
    };
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    symlink(target, place).unwrap();
    true
}

#[test]
fn no_command_follows_a_link_of_a_project_to_a_file_of_another_program() {
    let mut tally = Tally::of("Links of a clone in the places of shared files");
    for (file, command) in WRITES {
        for link in LINKS {
            let workspace = Workspace::empty();
            let git = |arguments: &[&str]| {
                let mut git = Command::new("git");
                git.current_dir(workspace.root()).args(arguments);
                assert!(git.output().unwrap().status.success());
            };
            git(&["init", "-q"]);
            workspace.run(&["init"]).succeeds();
            let outside = workspace.home().join("v");
            if !clone_with(file, link, &outside, &workspace) {
                continue;
            }
            let before = everything(&outside);
            let words: Vec<&str> = command.split(' ').collect();
            let ran = workspace.run(&words);
            let attack = format!("{command}: {file} is a link to a {link}: {ran:?}");
            assert!(ran.code != 101, "{attack}");
            tally.attempt(&attack, everything(&outside) != before);
        }
    }
    tally.holds();
}

#[test]
fn plan_names_the_refused_link_and_the_target_of_ones_own() {
    let workspace = Workspace::empty();
    let outside = workspace.home().join("v");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, workspace.root().join(".vscode")).unwrap();
    let plan = workspace.json_of(&["setup", "vscode", "--dry-run"]);
    let step = &plan["steps"][1];
    assert_eq!(step["state"], "failed", "{plan}");
    let detail = step["detail"].as_str().unwrap();
    assert!(
        detail.contains(".vscode` is a symbolic link, and links are not followed"),
        "{detail}"
    );
    // Programs that manage dotfiles make links in the home directory.
    let target = workspace.home().join("dotfiles.json");
    fs::write(&target, "{}\n").unwrap();
    fs::create_dir(workspace.home().join(".claude")).unwrap();
    let link = workspace.home().join(".claude/settings.json");
    symlink(&target, &link).unwrap();
    let plan = workspace.json(&["setup", "claude-code", "--dry-run"]);
    let path = plan["steps"][1]["path"].as_str().unwrap();
    assert!(path.contains("/.claude/settings.json -> "), "{path}");
    assert!(path.ends_with("dotfiles.json"), "{path}");
    workspace
        .run(&["hooks", "install", "claude-code"])
        .succeeds();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&target).unwrap().contains("memctl"));
}

#[test]
fn import_of_a_directory_reads_no_link_out_of_it() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let note = |text: &str| {
        format!(
            r#"{{"entries": [{{"id": "MEM-001", "memory_type": "brand_memory", "content": "{text}"}}]}}"#
        )
    };
    let rule = r#"{"entries": [{"reflexion_id": "REFL-001", "rule": "The zebra is mine."}]}"#;
    let outside = workspace.home().join("private.json");
    fs::write(&outside, rule).unwrap();
    workspace.write("docs/memories.json", note("Use pnpm."));
    symlink(
        &outside,
        workspace.root().join("docs/reflexion_entries.json"),
    )
    .unwrap();
    let refused = workspace.run(&["memory", "import", "docs"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(
        refused.stderr.contains("links are not followed"),
        "{refused:?}"
    );
    let listed = workspace.run(&["list"]).stdout;
    assert!(
        !listed.contains("zebra") && !listed.contains("pnpm"),
        "{listed}"
    );
    fs::remove_file(workspace.root().join("docs/reflexion_entries.json")).unwrap();
    workspace.run(&["memory", "import", "docs"]).succeeds();
    let listed = workspace.run(&["list"]).stdout;
    assert!(listed.contains("Use pnpm."), "{listed}");
}
