//! Cuts a working call down to what the failing call lacked.

use crate::learn::shell_command::Run;
use crate::model::Step;

use super::difference::Difference;
use super::script::{Part, Script};

/// Working line without the commands that the failing line did not need either: looking around,
/// printing, a `cd` to an absolute directory, and filters of the output.
pub(super) fn minimal(failing: &str, working: &str) -> String {
    let (before, after) = (Script::of(failing), Script::of(working));
    // The goal of a search is to look: nothing of it is a bystander.
    let is_search = before
        .parts
        .last()
        .and_then(Part::run)
        .is_some_and(|run| run.looks);
    if is_search {
        return after.render(&after.parts);
    }
    let known: Vec<Vec<&str>> = before.parts.iter().map(Part::words).collect();
    let goals: Vec<String> = before
        .parts
        .iter()
        .filter_map(Part::run)
        .map(|run| run.name)
        .collect();
    let of_goal = |part: &Part| part.run().is_some_and(|run| goals.contains(&run.name));
    let is_new = |part: &&Part| !known.contains(&part.words());
    let acts = |part: &&Part| {
        let run = part.run();
        run.is_some_and(|run| !run.looks && !is_bystander(&run, part, &goals))
    };
    let needed: Vec<&Part> = after
        .parts
        .iter()
        .filter(|part| of_goal(part) || is_new(part) && acts(part))
        .collect();
    // If nothing else differs, the directory is the difference.
    let without = after.render(needed.iter().copied());
    let changed = Difference::between(failing, &without);
    if needed.is_empty()
        || is_trivial(&changed) && !is_trivial(&Difference::between(failing, working))
    {
        return working.trim().to_owned();
    }
    without
}

/// Commands beside the goal that change nothing about it.
fn is_bystander(run: &Run, part: &Part, goals: &[String]) -> bool {
    let words = part.words();
    let absolute = words
        .get(1)
        .is_some_and(|to| to.starts_with(['/', '~']) || to.contains(':'));
    let of_git = goals.iter().any(|goal| goal.starts_with("git"));
    match run.name.as_str() {
        "cd" | "pushd" => absolute,
        "git add" | "git commit" => !of_git,
        "echo" | "printf" | "true" | ":" | "sleep" | "pwd" | "date" | "clear" | "wait" | "set"
        | "whoami" | "hostname" | "uname" | "id" | "popd" => true,
        _ => false,
    }
}

/// Call without the text of messages and titles, which say what one change was about.
pub(super) fn without_messages(call: &str) -> String {
    let is_message = |flag: &str| {
        ["--message", "--title", "--body", "--description", "--notes"].contains(&flag)
            || flag.len() < 6
                && flag.starts_with('-')
                && flag.ends_with('m')
                && flag[1..].bytes().all(|b| b.is_ascii_lowercase())
    };
    let mut text = call.to_owned();
    for simple in Script::of(call)
        .parts
        .iter()
        .flat_map(|part| &part.commands)
    {
        for pair in simple.words.windows(2) {
            if is_message(&pair[0]) && pair[1].contains(' ') {
                text = text.replace(&pair[1], "…");
            }
        }
    }
    text
}

/// Arguments of the working call beside its command, as a comment: a time limit, for example.
pub(super) fn other_arguments(failed: &Step, success: &Step) -> String {
    let (Some(before), Some(after)) = (failed.input.as_object(), success.input.as_object()) else {
        return String::new();
    };
    let said: Vec<String> = after
        .iter()
        .filter(|(name, value)| {
            !["command", "cmd", "script", "description", "workdir", "cwd"].contains(&name.as_str())
                && (value.is_number() || value.is_boolean())
                && before.get(*name) != Some(value)
        })
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    if said.is_empty() {
        String::new()
    } else {
        format!("  # with {}", said.join(", "))
    }
}

/// Returns `true` if a line consists of commands of another line.
pub(super) fn is_part_of(part: &str, whole: &str) -> bool {
    let (part, whole) = (Script::of(part), Script::of(whole));
    let known: Vec<Vec<&str>> = whole.parts.iter().map(Part::words).collect();
    let leads = |part: &Part| part.run().is_some_and(|run| run.name == "cd");
    part.parts.len() < whole.parts.len()
        && part.parts.iter().all(|part| known.contains(&part.words()))
        && !whole.parts.iter().any(leads)
}

/// Differences that change what is printed, not what is done.
pub(super) fn is_trivial(difference: &Difference) -> bool {
    let quiet = |word: &String| {
        matches!(
            word.as_str(),
            "--short"
                | "--oneline"
                | "--stat"
                | "--name-only"
                | "--porcelain"
                | "-v"
                | "-vv"
                | "-q"
                | "--verbose"
                | "--quiet"
                | "--no-color"
                | "--color=never"
                | "--no-pager"
                | "sleep"
                | "time"
                | "echo"
                | "pwd"
                | "--progress"
                | "-s"
                | "--silent"
        ) || word.bytes().all(|b| b.is_ascii_digit())
            && difference.added.iter().any(|w| w == "sleep")
    };
    !difference.requoted
        && difference.added.iter().all(quiet)
        && difference.dropped.iter().all(quiet)
}
