//! Mistakes that a newcomer makes, with the way out that each is told, and everyday questions, with the command that answers and a part of its answer.

use crate::terminal::Terminal;
use crate::workspace::Workspace;

/// What is typed, the exit code, and a part of what is said.
type Tried = (&'static [&'static str], i32, &'static str);

const MISTAKES: &[Tried] = &[
    (&["lern"], 2, "did you mean `memctl learn`"),
    (&["memory", "aprove"], 2, "did you mean `memctl approve`?"),
    (&["login"], 2, "hint: memctl help --all"),
    (
        &["config", "set", "learning.ask", "off"],
        2,
        "a line of `.agentura/config.toml`",
    ),
    (
        &["list", "--all"],
        2,
        "'--all' found\nhint: usage: memctl list",
    ),
    (
        &["correct", "Use", "pnpm", "here."],
        2,
        "put the text between quotes: memctl correct",
    ),
    (
        &["correct", "\u{201c}Use", "yarn\u{201d}"],
        2,
        "straight quotes: memctl correct",
    ),
    (&["correct", ""], 2, "is a sentence"),
    (
        &["correct", "yarn"],
        2,
        "a rule for coding agents is a sentence",
    ),
    (&["import", "notes.jsonl"], 2, "`memctl memory import`"),
    (&["approve"], 2, "usage: memctl approve <ID>"),
    (&["approve", "REFL-999"], 2, "hint: memctl list rules"),
    (&["show", "RULE-1"], 2, "ids look like"),
    (
        &["run", "resume-screen"],
        2,
        "a skill is written as `domain/skill`",
    ),
    (&["correct"], 2, "hint: memctl correct"),
    (
        &["correct", "Keep it short.", "hr/resume-screen"],
        2,
        "a rule for coding agents is a sentence",
    ),
    (
        &["list", "rules", "hr/resume-screen"],
        2,
        "did you mean `--skill hr/resume-screen`?",
    ),
    (&["accept", "REFL-001"], 2, "`REFL-001` is a rule"),
    (
        &["memory", "export", "--output", "."],
        2,
        "hint: memctl memory export --output ",
    ),
    (
        &["run", "hr/resume-screen", "--input", "nope.json"],
        2,
        "name a file that can be read",
    ),
    (&["learn", "nowhere.jsonl"], 2, "cannot read `"),
    (
        &["learn", "README.md"],
        2,
        "README.md` is no session file of a known format",
    ),
    (
        &["setup", "--host", "claude"],
        2,
        "usage: memctl setup [OPTIONS] [HOST]",
    ),
    (
        &["lesson", "add", "--session", "none/s-1", "Run `npm ci`."],
        2,
        "no calls of `none/s-1` are known here",
    ),
];

/// "How do I …?" in the order of the first days. The memory has one approved rule, `REFL-001`.
const QUESTIONS: &[Tried] = &[
    // … see what version this is, and what it keeps where?
    (
        &["--version"],
        0,
        concat!("memctl ", env!("CARGO_PKG_VERSION")),
    ),
    (&["status"], 0, "Memory is on: "),
    (&["status"], 0, "1 rule, 0 lessons, 0 notes"),
    (&["config", "show"], 0, "Setting"),
    (&["doctor"], 0, "No problems found."),
    (&["help", "--all"], 0, "memory disable"),
    // … know that my agent is told anything?
    (&["hooks", "status"], 0, "no hooks in:"),
    (&["setup", "--undo"], 0, "Nothing of setup is installed."),
    // … see what it learnt, and from what?
    (&["review"], 0, "Nothing waits for a decision."),
    (&["list", "rules"], 0, "Always round the budget"),
    (&["list", "notes"], 0, "No notes yet."),
    (&["list", "lessons"], 0, "No lessons yet."),
    (&["session", "list"], 0, "No sessions yet."),
    (&["why", "REFL-001"], 0, "said in"),
    (&["search", "budget"], 0, "REFL-001"),
    (&["stats"], 0, "rules:        1"),
    (&["memory", "audit"], 0, "approve"),
    // … change it, and take that back?
    (
        &["edit", "REFL-001", "Always round the budget to hundreds."],
        0,
        "edited REFL-001",
    ),
    (&["forget", "REFL-001"], 0, "forgotten REFL-001"),
    (&["undo"], 0, "Always round the budget to hundreds."),
    // … switch it off?
    (&["memory", "disable"], 0, "Memory is off"),
];

fn check(workspace: &Workspace, &(args, code, said): &Tried) {
    let ran = workspace.run(args);
    assert_eq!(ran.code, code, "{args:?}: {ran:?}");
    let found = ran.stdout.contains(said) || ran.stderr.contains(said);
    assert!(found, "{args:?} does not say {said:?}: {ran:?}");
    assert!(!ran.stderr.contains("panicked"), "{args:?}: {ran:?}");
}

#[test]
fn a_mistake_is_told_with_the_way_out_and_changes_nothing() {
    let workspace = Workspace::empty();
    workspace.write("README.md", "# A project\n");
    workspace.run(&["init"]).succeeds();
    for mistake in MISTAKES {
        check(&workspace, mistake);
    }
    workspace
        .run(&["undo"])
        .fails(2, "no change of this user to revert");
}

#[test]
fn an_everyday_question_is_answered_by_one_command() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    workspace
        .run(&["correct", "Always round the budget to thousands."])
        .succeeds();
    let waiting = workspace.json(&["review"]);
    let id = waiting["waiting"][0]["id"].as_str().unwrap();
    workspace.run(&["approve", id]).succeeds();
    for question in QUESTIONS {
        check(&workspace, question);
    }
}

#[test]
fn correct_alone_asks_for_a_rule_where_no_skill_ran() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let Some(terminal) = Terminal::open(&workspace, 100, 24) else {
        return;
    };
    terminal.type_line("memctl correct");
    terminal.wait_for("do from now on?");
    terminal.type_line("Use pnpm here, never npm.");
    terminal.wait_for("candidate");
    let rules = workspace.json(&["list", "rules"]).to_string();
    assert!(rules.contains("Use pnpm here, never npm."), "{rules}");
}

#[test]
fn a_skill_of_another_name_is_told_where_it_is() {
    let workspace = Workspace::sample();
    workspace
        .run(&["run", "resume-screen", "--input", "x.json"])
        .fails(2, "did you mean `hr/resume-screen`?");
    let words = "Keep the summary below 120 words.";
    workspace.json(&["correct", "hr/resume-screen", words]);
    let folder = |name: &str| workspace.root().join("skills/hr").join(name);
    std::fs::rename(folder("resume-screen"), folder("screening")).unwrap();
    let doctor = workspace.run(&["doctor"]);
    let said = "REFL-001 is a rule of `hr/resume-screen`, which is not there";
    assert!(doctor.stdout.contains(said), "{doctor:?}");
    // The way out that it names.
    let take = ["correct", "hr/screening", words, "--replaces", "REFL-001"];
    let taken = workspace.run(&take);
    assert!(
        !taken.succeeds().stdout.contains("memory conflicts"),
        "{taken:?}"
    );
    workspace.run(&["doctor"]).succeeds();
    let prompt = workspace.run(&["memory", "prompt", "hr/screening"]);
    assert!(prompt.succeeds().stdout.contains(words), "{prompt:?}");
}

#[test]
fn what_was_corrected_or_said_before_is_named() {
    let workspace = Workspace::sample();
    let skill = "hr/resume-screen";
    let run = workspace.json(&["run", skill]);
    let id = run["execution_id"].as_str().unwrap();
    let words = "Always name the years of experience.";
    workspace.json(&["correct", skill, words, "--execution-id", id]);
    let accepted = workspace.run(&["accept", "latest"]);
    let said = format!("`{id}` was corrected (`CORR-001`): it counts as wrong");
    assert!(accepted.succeeds().stderr.contains(&said), "{accepted:?}");
    let words = "Keep the summary below 120 words.";
    workspace.json(&["correct", skill, words]);
    let again = workspace.run(&["correct", skill, words]);
    let said = "REFL-002 already says the same";
    assert!(again.succeeds().stdout.contains(said), "{again:?}");
}
