//! Finds the cure of a failure: the difference that made it work, if it is worth a hint.
//!
//! A fix must be minimal, general, causal and safe. Steps between failure and success that have
//! nothing to do with the error are left out. A retry, a way around a check, a dangerous command
//! and an edit of one place teach nothing that another agent could use.
//!
//! - `difference`: words that two calls do not share. `script`: a shell line and its parts.
//! - `contribution`: which steps contributed. `hazard`: what is never advice.
//! - `people`: what names a person. `subject`: what an error is about, and so what a cure depends on.

mod contribution;
pub(crate) mod difference;
pub(crate) mod hazard;
mod one_off;
pub(crate) mod people;
mod script;
pub(crate) mod subject;

use crate::model::Step;

use super::error_key::normalised;
use super::error_line::error_lines;
use super::goal::Goal;
use super::recover::Episode;
use super::shell_command::Run;
use difference::Difference;
use script::{Part, Script};
use subject::{is_absolute, is_conventional, last_part, names, subjects};

/// Cure of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cure {
    /// Indices of the steps before the success that contributed.
    pub(crate) changes: Vec<usize>,
    /// Failing call.
    pub(crate) failing: String,
    /// Working call without the parts that made no difference.
    pub(crate) working: String,
    /// Names in the error that the cure depends on; empty if it helps with any.
    pub(crate) subject: Vec<String>,
    /// The cure is knowledge of one project.
    pub(crate) is_local: bool,
}

/// Reason why a recovery is no hint for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoHint {
    /// The failing call printed no error.
    NoError,
    /// Nothing that was changed has to do with the error: the same call worked later.
    Retry,
    /// The later call reports the same error.
    StillFails,
    /// It destroys, takes rights, switches a check off or runs what the network sends.
    Dangerous,
    /// Code, data or a path of one place.
    OneOff,
}

impl NoHint {
    /// Name in JSON: `no_error`, `retry`, `still_fails`, `dangerous`, `one_off`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoError => "no_error",
            Self::Retry => "retry",
            Self::StillFails => "still_fails",
            Self::Dangerous => "dangerous",
            Self::OneOff => "one_off",
        }
    }
}

/// Finds the cure of an episode. `steps` must include those from the failure to the success;
/// `code` renders a call.
pub(crate) fn find(
    episode: &Episode,
    steps: &[Step],
    code: &dyn Fn(&Step) -> String,
) -> Result<Cure, NoHint> {
    let at = |index: usize| {
        let found = steps.binary_search_by_key(&index, |step| step.index);
        found.ok().map(|at| &steps[at])
    };
    let (Some(failed), Some(success)) = (at(episode.fail_step), at(episode.success_step)) else {
        return Err(NoHint::NoError);
    };
    if repeats_the_error(episode, success) {
        return Err(NoHint::StillFails);
    }
    let failing = code(failed);
    let call = match (failed.command(), success.command()) {
        (Some(before), Some(after)) if failed.tool == success.tool => {
            let call = minimal(&before, &after) + &other_arguments(failed, success);
            people::without_people(&call)
        }
        _ => code(success),
    };
    let own = Difference::between(&failing, &call);
    let error = Failure {
        line: &episode.error_line,
        output: &failed.output,
        call: &failing,
    };
    let is_same_call = is_trivial(&own) || is_part_of(&call, &failing);
    let changes: Vec<&Step> = episode.changes.iter().filter_map(|c| at(*c)).collect();
    let changes = contribution::contributing(&changes, &error, &own, is_same_call, code);
    if is_same_call && changes.is_empty() {
        return Err(NoHint::Retry);
    }
    let change_codes: Vec<String> = changes.iter().map(|step| code(step)).collect();
    let whole = [change_codes.join("\n"), call.clone()].join("\n");
    if !hazard::new_hazards(&failing, &whole).is_empty() {
        return Err(NoHint::Dangerous);
    }
    if one_off::is_one_off(failed, success, &own, is_same_call, &changes, &error) {
        return Err(NoHint::OneOff);
    }
    let difference = Difference::between(&failing, whole.trim());
    let (subject, is_local) = dependence(&error, &difference, &failing, &whole);
    Ok(Cure {
        changes: changes.iter().map(|step| step.index).collect(),
        failing: without_messages(&failing),
        working: without_messages(&call),
        subject,
        is_local,
    })
}

/// Failing call and its error.
#[derive(Debug, Clone, Copy)]
struct Failure<'a> {
    /// Most specific line.
    line: &'a str,
    /// Whole output.
    output: &'a str,
    /// Call as text.
    call: &'a str,
}

/// Returns `true` if the working call printed the same error line.
fn repeats_the_error(episode: &Episode, success: &Step) -> bool {
    let line = normalised(&episode.error_line);
    !line.is_empty()
        && error_lines(&success.output)
            .iter()
            .any(|said| normalised(said) == line)
}

/// Working line without the commands that the failing line did not need either: looking around,
/// printing, a `cd` to an absolute directory, and filters of the output.
fn minimal(failing: &str, working: &str) -> String {
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
fn without_messages(call: &str) -> String {
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
fn other_arguments(failed: &Step, success: &Step) -> String {
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
fn is_part_of(part: &str, whole: &str) -> bool {
    let (part, whole) = (Script::of(part), Script::of(whole));
    let known: Vec<Vec<&str>> = whole.parts.iter().map(Part::words).collect();
    let leads = |part: &Part| part.run().is_some_and(|run| run.name == "cd");
    part.parts.len() < whole.parts.len()
        && part.parts.iter().all(|part| known.contains(&part.words()))
        && !whole.parts.iter().any(leads)
}

/// Differences that change what is printed, not what is done.
fn is_trivial(difference: &Difference) -> bool {
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

/// Names that a cure depends on, and whether it is knowledge of one project.
///
/// A cure that brings in a name of its own (`opencv-python`) is a mapping from the subject of the
/// error to that name, and helps with this subject only. It does not depend on the subject if its
/// new words are options and verbs, or if the error itself says them.
fn dependence(
    error: &Failure<'_>,
    difference: &Difference,
    failing: &str,
    working: &str,
) -> (Vec<String>, bool) {
    // The end of a path that the caller chose is no subject.
    let paths: Vec<&str> = error
        .line
        .split_whitespace()
        .map(|word| word.trim_matches(['\'', '"', '`', ',', ':', '.', '‘', '’']))
        .filter(|word| is_absolute(word))
        .collect();
    let is_own_path = |name: &String| {
        names(error.call, name)
            && paths
                .iter()
                .any(|path| last_part(path).eq_ignore_ascii_case(name))
    };
    let mut subjects = subjects(error.line);
    subjects.retain(|name| !is_own_path(name));
    let replaced: Vec<String> = difference
        .dropped
        .iter()
        .filter(|word| !word.starts_with('-'))
        .map(|word| word.to_ascii_lowercase())
        .filter(|word| names(error.line, word))
        .collect();
    let said = |word: &str| {
        let word = word.trim_matches(['\'', '"']);
        names(error.output, word)
            || names(failing, word)
            || difference::tokens(word).iter().any(|part| {
                part.len() > 2
                    && subjects
                        .iter()
                        .any(|subject| subject == &part.to_ascii_lowercase())
            })
    };
    let own: Vec<&String> = names_brought_in(difference, working)
        .into_iter()
        .filter(|word| !said(word) && !is_conventional(word))
        .collect();
    // A number that an option takes, such as a port, is a setting of one project.
    let all = difference::words(working);
    let is_value = |word: &String| {
        word.len() > 1
            && word.bytes().all(|b| b.is_ascii_digit())
            && all
                .windows(2)
                .any(|pair| pair[0].starts_with('-') && &pair[1] == word)
    };
    let is_local = !failing.contains('{')
        && difference
            .added
            .iter()
            .any(|word| is_value(word) && !said(word))
        && error.line.bytes().any(|b| b.is_ascii_digit());
    if !replaced.is_empty() && !difference.requoted {
        return (replaced, is_local);
    }
    if own.is_empty() {
        return (Vec::new(), is_local);
    }
    (subjects, is_local)
}

/// Added words that are names: neither options with their values, nor programs and their verbs.
fn names_brought_in<'d>(difference: &'d Difference, working: &str) -> Vec<&'d String> {
    let script = Script::of(working);
    let mut verbs: Vec<String> = Vec::new();
    let mut values: Vec<&str> = Vec::new();
    let mut wrappers: Vec<String> = Vec::new();
    for simple in script.parts.iter().flat_map(|part| &part.commands) {
        let run = script::plain(simple);
        let is_added = simple
            .words
            .first()
            .is_some_and(|w| difference.added.contains(w));
        // `poetry run pytest` is another way to run the same program.
        let inner = run.name.split(' ').next().unwrap_or_default();
        if is_added && simple.words.iter().skip(1).any(|w| w == inner) {
            wrappers.extend(simple.words.first().cloned());
        }
        verbs.extend(run.name.split(' ').map(str::to_owned));
        verbs.extend(
            simple
                .words
                .first()
                .filter(|word| !word.contains('='))
                .cloned(),
        );
        let installs = run.name.split(' ').next() != Some("git")
            && INSTALLS
                .iter()
                .any(|verb| simple.words.iter().any(|w| w == verb));
        for pair in simple.words.windows(2) {
            if pair[0].starts_with('-') && !pair[0].contains('=') && !installs {
                values.push(&pair[1]);
            }
        }
    }
    difference
        .added
        .iter()
        .filter(|word| {
            wrappers.contains(word)
                || is_dotted_value(word)
                || !(word.starts_with(['-', '+'])
                    || verbs.contains(word)
                    || values.contains(&word.as_str())
                    || word.bytes().all(|b| b.is_ascii_digit()))
        })
        .collect()
}

/// `--settings=config.local`: an option whose value is a name of the project.
fn is_dotted_value(word: &str) -> bool {
    let value = word
        .split_once('=')
        .filter(|(option, _)| option.starts_with("--"));
    value.is_some_and(|(_, value)| {
        value.split('.').count() > 1
            && value
                .split('.')
                .all(|part| part.starts_with(char::is_alphabetic))
    })
}

/// Verbs whose operand is the name of a package.
pub(crate) const INSTALLS: &[&str] = &["install", "add", "get", "i", "require"];

/// Goal of a step, for the rooms below.
fn goal(step: &Step) -> Goal {
    Goal::of(step)
}

#[cfg(test)]
mod tests;
