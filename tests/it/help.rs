//! Help and output pages as snapshots, so that a change is visible in the diff.
//!
//! `INSTA_UPDATE=always cargo test help` updates them.

use std::fs;

use crate::support::correction;
use crate::workspace::{Ran, Workspace};

const SKILL: &str = "hr/resume-screen";

/// Every command, as the words that name it: the program itself, and what its help lists, and so
/// on downwards.
fn commands(workspace: &Workspace) -> Vec<Vec<String>> {
    let mut found: Vec<Vec<String>> = vec![Vec::new()];
    let mut next = 0;
    while next < found.len() {
        let command = found[next].clone();
        let listed = if command.is_empty() {
            let all = workspace.run(&["help", "--all"]).succeeds().stdout.clone();
            let (groups, _) = all.split_once("Options:").unwrap();
            groups.to_owned()
        } else {
            let help = help(workspace, &command);
            let commands = help.split_once("Commands:\n").map_or("", |(_, rest)| rest);
            let (commands, _) = commands.split_once("\n\n").unwrap_or((commands, ""));
            commands.to_owned()
        };
        for line in listed.lines() {
            let name = line.split_whitespace().next().unwrap_or_default();
            // Lines that go on with a description stand further in; `help` is clap's own.
            let is_name = line.starts_with("  ") && !line.starts_with("   ");
            if is_name && name != "help" {
                found.push([&command[..], &[name.to_owned()]].concat());
            }
        }
        next += 1;
    }
    found
}

/// The commands that do something themselves; the others need a subcommand.
pub(crate) fn runnable(workspace: &Workspace) -> Vec<Vec<String>> {
    let needs_more = |command: &Vec<String>| {
        let help = help(workspace, command);
        let usage = help.lines().find(|line| line.starts_with("Usage: "));
        usage.unwrap().ends_with(" <COMMAND>")
    };
    let mut commands = commands(workspace);
    commands.retain(|command| !needs_more(command));
    commands
}

/// Help page of each command by its words; that of the program has none.
pub(crate) fn pages(workspace: &Workspace) -> Vec<(String, String)> {
    let mut commands = commands(workspace);
    commands.push(vec!["help".to_owned()]);
    commands
        .into_iter()
        .map(|command| (command.join(" "), help(workspace, &command)))
        .collect()
}

fn help(workspace: &Workspace, command: &[String]) -> String {
    let mut arguments = command.to_vec();
    arguments.push("--help".to_owned());
    let ran = workspace.run(&arguments);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{arguments:?}");
    ran.stdout
}

/// Compares a page with its snapshot. Where the test ran and how long an answer took are no part
/// of it.
fn looks(workspace: &Workspace, name: &str, ran: &Ran) {
    let mut text = format!("exit code {}\n", ran.code);
    for (stream, said) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
        if !said.is_empty() {
            text.push_str(&format!("-- {stream}\n{said}"));
        }
    }
    let text = workspace.without_directories(&text);
    let lines: Vec<&str> = text
        .lines()
        .map(|line| match line.split_once("latency:") {
            Some(("", _)) => "latency:      [time]",
            _ => line.trim_end(),
        })
        .collect();
    insta::assert_snapshot!(name, lines.join("\n"));
}

#[test]
fn the_help_of_every_command_is_as_it_was() {
    let workspace = Workspace::empty();
    let commands = commands(&workspace);
    assert!(commands.len() >= 16, "{commands:?}");
    for command in &commands {
        let name = [&["memctl".to_owned()], &command[..]].concat().join("-");
        insta::assert_snapshot!(format!("help-{name}"), help(&workspace, command));
    }
}

#[test]
fn every_page_has_two_examples_that_name_the_command() {
    let workspace = Workspace::empty();
    for command in commands(&workspace) {
        let help = help(&workspace, &command);
        let (about, _) = help.split_once('\n').unwrap();
        assert!(about.chars().count() <= 80, "{command:?}: {about}");
        let (_, examples) = help
            .split_once("\nExamples:\n")
            .unwrap_or_else(|| panic!("{command:?} has no examples"));
        let typed = [&["memctl".to_owned()], &command[..]].concat().join(" ");
        assert!(examples.contains(&typed), "{command:?}: {examples}");
        // Long lines are broken anywhere, and then can no longer be copied to a shell.
        let lines: Vec<&str> = examples.lines().take_while(|l| !l.is_empty()).collect();
        let mut count = 0;
        for (i, line) in lines.iter().enumerate() {
            let goes_on = i > 0 && lines[i - 1].ends_with('\\');
            assert!(goes_on || line.contains("memctl "), "{command:?}: {line}");
            count += usize::from(!goes_on);
        }
        assert!(count >= 2, "{command:?} has one example");
    }
}

#[test]
fn the_manual_and_the_completions_know_every_command() {
    let workspace = Workspace::empty();
    let directory = workspace.root().join("man");
    fs::create_dir(&directory).unwrap();
    workspace.run(&["man", "--dir", "man"]).succeeds();
    let script = crate::completions::script(&workspace, "bash");
    for command in commands(&workspace) {
        let name = [&["memctl".to_owned()], &command[..]].concat();
        let page = directory.join(format!("{}.1", name.join("-")));
        assert!(page.is_file(), "{page:?}");
        if command.is_empty() {
            continue;
        }
        let function = name.join("__subcmd__").replace('-', "__");
        assert!(script.contains(&function), "{function}");
    }
}

#[test]
fn pages_of_records_match_their_snapshots() {
    let workspace = Workspace::over("reference");
    for (name, arguments) in [
        ("status", &["memory", "status"][..]),
        ("search", &["memory", "search", "system design"]),
        ("search-nothing", &["memory", "search", "zzyzx"]),
        ("list-rules", &["memory", "list"]),
        (
            "list-executions",
            &["memory", "list", "executions", "-n", "3"],
        ),
        ("list-none", &["memory", "list", "procedures"]),
        ("show", &["memory", "show", "REFL-001"]),
        ("doctor", &["doctor"]),
    ] {
        looks(&workspace, name, &workspace.run(arguments));
    }
    looks(
        &workspace,
        "forget",
        &workspace.run(&["memory", "forget", "REFL-002"]),
    );
}

#[test]
fn the_loop_looks_as_it_did() {
    let workspace = Workspace::sample();
    looks(&workspace, "init", &workspace.run(&["init"]));
    looks(&workspace, "init-again", &workspace.run(&["init"]));
    let run = ["run", SKILL, "--input", "fixtures/sample_input.json"];
    looks(
        &workspace,
        "run-dry",
        &workspace.run(&[&run[..], &["--dry-run"]].concat()),
    );
    looks(&workspace, "run", &workspace.run(&run));
    let correct = |said| {
        let arguments = correction(said);
        workspace.run(&arguments)
    };
    let said = "When screening for senior roles, a candidate without distributed systems should score below 60.";
    looks(&workspace, "correct", &correct(said));
    looks(&workspace, "correct-again", &correct(said));
    looks(&workspace, "correct-vague", &correct("this is wrong"));
    looks(&workspace, "accept", &workspace.run(&["accept", "latest"]));
    let reject = ["reject", "latest", "--reason", "made-up employer"];
    looks(&workspace, "reject", &workspace.run(&reject));
}

#[test]
fn settings_look_as_they_did() {
    let mut workspace = Workspace::empty().naming_no_model();
    workspace
        .set("ANTHROPIC_API_KEY", "sk-never-shown")
        .set("MEMCTL_LLM_RETRIES", "5");
    let ran = workspace.run(&["config", "show"]);
    assert!(!ran.stdout.contains("never-shown"));
    looks(&workspace, "config-show", &ran);
}

#[test]
#[cfg_attr(windows, ignore = "it expects messages of Unix")]
fn errors_say_what_to_type_next() {
    let mut workspace = Workspace::over("reference").naming_no_model();
    // Agents of this machine are none of the tests.
    workspace.set("PATH", "/usr/bin:/bin");
    workspace.write("broken.json", "{\"a\": }");
    workspace.write(".agentura/memories.json", "no json at all");
    let correct = |execution| {
        [
            "correct", SKILL, "--execution-id", execution, "--correction", "Always x.",
        ]
    };
    for (name, arguments) in [
        ("error-no-command", &[][..]),
        ("error-no-command-of-memory", &["memory"]),
        ("error-command", &["mémory", "status"]),
        ("error-command-mistyped", &["memory", "serach", "x"]),
        ("error-flag", &["memory", "status", "--jsn"]),
        ("error-skill", &["run", "hr/resume-scren"]),
        ("error-skill-path", &["run", "../.."]),
        ("error-execution", &correct("EXEC-20260301091501")),
        ("error-ambiguous", &correct("EXEC-20260301")),
        (
            "error-correction-missing",
            &["correct", SKILL, "--execution-id", "latest"],
        ),
        ("error-id", &["memory", "show", "three"]),
        (
            "error-input-missing",
            &["run", SKILL, "--input", "none.json"],
        ),
        (
            "error-input-broken",
            &["run", SKILL, "--input", "broken.json"],
        ),
        ("error-scope", &["run", SKILL, "--scope", "dev"]),
        ("error-model-name", &["run", SKILL, "--model", "nonsense"]),
        (
            "error-no-key",
            &["run", SKILL, "--model", "anthropic/claude-haiku-4-5"],
        ),
        (
            "error-no-answer",
            &[
                "run",
                "dev/code-review",
                "--input",
                "fixtures/sample_input.json",
            ],
        ),
        ("error-damage", &["doctor"]),
    ] {
        let ran = workspace.run(arguments);
        assert_ne!(ran.code, 0, "{arguments:?}");
        looks(&workspace, name, &ran);
    }
}
