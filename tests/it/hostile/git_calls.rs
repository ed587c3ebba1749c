//! Calls of git in a repository of others: its settings name programs, its files are links and pipes.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::workspace::{Ran, Workspace};

fn git(directory: &Path, arguments: &[&str]) {
    let ran = Command::new("git")
        .current_dir(directory)
        .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{arguments:?}: {ran:?}");
}

fn run_in(workspace: &Workspace, directory: &Path, command: &str) -> Ran {
    let mut program = workspace.command();
    program.current_dir(directory).args(command.split(' '));
    Ran::of(program.output().unwrap())
}

/// Commands that ask git.
const COMMANDS: &[&str] = &[
    "setup --dry-run", "doctor", "trust --dry-run", "init", "init --git", "list", "stats",
];

#[test]
fn no_command_runs_a_program_of_a_repository() {
    let workspace = Workspace::empty();
    let executed = workspace.home().join("executed");
    let program = format!("#!/bin/sh\ntouch {}\n", executed.display());
    // An unpacked archive brings its own settings; a clone brings a directory that looks like a repository.
    for (name, is_bare) in [("unpacked", false), ("clone", true)] {
        let directory = workspace.root().join(name);
        fs::create_dir(&directory).unwrap();
        let kind: &[&str] = if is_bare {
            &["init", "-q", "--bare"]
        } else {
            &["init", "-q"]
        };
        git(&directory, kind);
        fs::write(directory.join("f.sh"), &program).unwrap();
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(directory.join("f.sh"), mode.clone()).unwrap();
        let of_git = if is_bare {
            directory.clone()
        } else {
            directory.join(".git")
        };
        fs::create_dir_all(of_git.join("hooks")).unwrap();
        fs::write(of_git.join("hooks/post-index-change"), &program).unwrap();
        fs::set_permissions(of_git.join("hooks/post-index-change"), mode).unwrap();
        for (setting, value) in [
            ("core.bare", "false"),
            ("core.worktree", if is_bare { "." } else { ".." }),
            ("core.fsmonitor", "./f.sh"),
            ("core.pager", "./f.sh"),
            ("diff.external", "./f.sh"),
        ] {
            git(&of_git, &["config", "--file", "config", setting, value]);
        }
        fs::create_dir(directory.join(".agentura")).unwrap();
        for command in COMMANDS {
            let ran = run_in(&workspace, &directory, command);
            assert!(!executed.exists(), "{name}: {command}: {ran:?}");
        }
    }
}

#[test]
fn settings_of_git_are_not_written_through_a_link() {
    for is_there in [false, true] {
        let workspace = Workspace::empty();
        git(&workspace.root(), &["init", "-q"]);
        let (config, outside) = (
            workspace.root().join(".git/config"),
            workspace.home().join("x"),
        );
        let before = is_there.then(|| fs::read_to_string(&config).unwrap());
        if let Some(text) = &before {
            fs::write(&outside, text).unwrap();
        }
        fs::remove_file(&config).unwrap();
        symlink(&outside, &config).unwrap();
        workspace
            .run(&["init", "--git"])
            .fails(74, "is a link, which is not followed");
        assert_eq!(fs::read_to_string(&outside).ok(), before);
    }
}

#[test]
fn pipes_in_files_of_git_are_not_waited_for() {
    let workspace = Workspace::empty();
    git(&workspace.root(), &["init", "-q"]);
    workspace.run(&["init"]).succeeds();
    for (file, command) in [
        (".gitattributes", "doctor"),
        (".agentura/.gitignore", "init"),
    ] {
        let pipe = workspace.root().join(file);
        drop(fs::remove_file(&pipe));
        assert!(
            Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        let start = Instant::now();
        let ran = run_in(&workspace, &workspace.root(), command);
        assert!(
            start.elapsed() < Duration::from_secs(40),
            "{command}: {ran:?}"
        );
        fs::remove_file(&pipe).unwrap();
    }
}
