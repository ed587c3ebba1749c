//! Recoveries, and what is learned from them.

use serde_json::json;

use super::*;
use crate::learn::recover::analyse;

fn shell(index: usize, command: &str, output: &str, failed: bool) -> Step {
    Step {
        index,
        tool: "Bash".to_owned(),
        input: json!({ "command": command }),
        output: output.to_owned(),
        is_error: Some(failed),
        answered: true,
        ..Step::default()
    }
}

fn edit(index: usize, path: &str, old: &str, new: &str) -> Step {
    Step {
        index,
        tool: "Edit".to_owned(),
        input: json!({ "file_path": path, "old_string": old, "new_string": new }),
        output: "updated".to_owned(),
        is_error: Some(false),
        answered: true,
        ..Step::default()
    }
}

fn find_in(steps: &[Step]) -> Result<FoundFix, NoHint> {
    let found = analyse(steps, &[]);
    let code = |step: &Step| crate::learn::distil::code(step);
    find(&found.episodes[0], steps, &code).map_err(|none| none.reason)
}

#[test]
fn parts_without_a_difference_are_left_out() {
    let found = find_in(&[
        shell(0, "./go.sh", "bash: ./go.sh: Permission denied", true),
        shell(1, "ls -l", "x", false),
        edit(2, "/a/notes.md", "a", "b"),
        shell(
            3,
            "cd /home/a/x && chmod +x go.sh && git add go.sh && ./go.sh",
            "hi",
            false,
        ),
    ])
    .unwrap();
    assert_eq!(found.working, "chmod +x go.sh && ./go.sh");
    assert_eq!((found.changes, found.subject), (vec![], vec![]));
}

#[test]
fn the_step_that_has_to_do_with_the_error_is_kept() {
    let found = find_in(&[
        shell(
            0,
            "tool run",
            "tool: error: unrecognized arguments: --fast",
            true,
        ),
        shell(1, "pip install tool-fast", "ok", false),
        edit(2, "/a/b.py", "x = 1", "x = 2"),
        shell(3, "tool run", "done", false),
    ])
    .unwrap();
    assert_eq!(found.changes, [1]);
    assert_eq!(found.working, "tool run");
}

#[test]
fn a_task_of_the_project_is_knowledge_of_it_and_of_what_it_makes() {
    let error = "tar (child): dist/app.tgz: Cannot open: No such file or directory";
    let of = |task: &str| {
        find_in(&[
            shell(0, "tar xzf dist/app.tgz", error, true),
            shell(1, task, "done", false),
            shell(2, "tar xzf dist/app.tgz", "ok", false),
        ])
        .unwrap()
    };
    let found = of("mkdir -p dist && make pack");
    assert_eq!(found.subject, ["dist/app.tgz"]);
    assert!(found.is_local);
    assert!(!of("mkdir -p dist && make all").is_local);
}

#[test]
fn a_name_of_its_own_binds_a_cure_to_the_subject() {
    let found = find_in(&[
        shell(
            0,
            "python3 a.py",
            "ModuleNotFoundError: No module named 'yaml'",
            true,
        ),
        shell(1, "pip install pyyaml && python3 a.py", "ok", false),
    ])
    .unwrap();
    assert_eq!(found.subject, ["yaml"]);
    let found = find_in(&[
        shell(
            0,
            "python3 a.py",
            "ModuleNotFoundError: No module named 'attrs'",
            true,
        ),
        shell(1, "pip install attrs && python3 a.py", "ok", false),
    ])
    .unwrap();
    assert_eq!(found.subject, [""; 0], "the name is the error's own");
    let found = find_in(&[
        shell(0, "x push", "fatal: the branch 'a' has no remote", true),
        shell(1, "x push --create", "ok", false),
    ])
    .unwrap();
    assert_eq!(found.subject, [""; 0], "an option depends on nothing");
}

#[test]
fn what_teaches_nothing_is_no_hint() {
    let retry = [
        shell(0, "npm ci", "npm ERR! code ECONNRESET", true),
        edit(1, "/a/README.md", "a", "b"),
        shell(2, "sleep 5; npm ci", "added", false),
    ];
    assert_eq!(find_in(&retry), Err(NoHint::Retry));
    let hidden = [
        shell(0, "make", "a.c:1: error: x\nmake: *** [a] Error 1", true),
        shell(
            1,
            "make -k",
            "a.c:1: error: x\nmake: *** [a] Error 1",
            false,
        ),
    ];
    assert!(
        analyse(&hidden, &[]).episodes.is_empty() || find_in(&hidden) == Err(NoHint::StillFails)
    );
    let dangerous = [
        shell(
            0,
            "git push",
            "error: failed to push some refs to 'x'",
            true,
        ),
        shell(1, "git push --force", "ok", false),
    ];
    assert_eq!(find_in(&dangerous), Err(NoHint::Dangerous));
    let literal = [
        shell(
            0,
            "store ls s3://acme-2024",
            "store: error: the bucket does not exist",
            true,
        ),
        shell(1, "store ls s3://acme-2025", "x", false),
    ];
    assert_eq!(find_in(&literal), Err(NoHint::OneOff));
    let code = [
        shell(
            0,
            "node a.js",
            "a.js:1\nTypeError: x is not a function",
            true,
        ),
        edit(1, "/a/a.js", "x()", "y()"),
        shell(2, "node a.js", "ok", false),
    ];
    assert_eq!(find_in(&code), Err(NoHint::OneOff));
    let of_a_new_file = [
        shell(0, "tool run", "tool: error: no rules given", true),
        edit(1, "/a/rules.py", "x()", "y()"),
        shell(2, "tool run rules.py", "ok", false),
    ];
    assert_eq!(find_in(&of_a_new_file), Err(NoHint::OneOff));
    let words: Vec<String> = (0..60).map(|n| format!("word{n}")).collect();
    let long = [
        shell(0, "tool run", "tool: error: no input given", true),
        shell(1, &format!("tool run {}", words.join(" ")), "ok", false),
    ];
    assert_eq!(find_in(&long), Err(NoHint::OneOff));
}

#[test]
fn an_edit_that_adds_an_argument_is_general() {
    let found = find_in(&[
        shell(
            0,
            "python3 r.py",
            "Traceback (most recent call last):\n  File \"r.py\", line 1\nUnicodeDecodeError: bad",
            true,
        ),
        edit(1, "/a/r.py", "open('x')", "open('x', encoding='latin-1')"),
        shell(2, "python3 r.py", "ok", false),
    ])
    .unwrap();
    assert_eq!(found.changes, [1]);
}
