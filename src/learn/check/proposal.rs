//! Check from the words of a rule, for a person to confirm.
//!
//! Three forms say which call is unwanted: one thing instead of another ("use pnpm, not npm"), a
//! prohibition ("never run `git push --force`", "don't edit db/migrations/"), and a replacement
//! ("replace pip with uv"). "Use pnpm here" names no unwanted call; then the agent's last call before
//! the person's message decides, if it ran another program.
//!
//! English only. Deliberately absent: conditions. A pattern cannot see them, so a prohibition with `unless` or
//! `without` gets no proposal.

use super::named_call::{Reader, command};
use super::rule_words::{Token, tokens};
use crate::learn::shell;
use crate::learn::shell_command::AROUND;
use crate::model::{Check, Reflexion};

/// Proposed check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// Patterns, with the action `note`.
    pub check: Check,
    /// Part of the rule, or of its occasion, that names the call.
    pub because: String,
}

/// Reason for no proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoProposal {
    /// The rule names no call.
    #[error("the rule names no command, path or tool that it forbids")]
    Unnamed,
    /// The rule forbids a call only under a condition.
    #[error("the rule has a condition that no pattern can see")]
    Conditional,
}

const CONDITIONS: &[&str] = &[
    "unless", "without", "except", "until", "if", "when", "before", "while", "after", "once",
];
/// Words between a marker and the name.
const BETWEEN: &[&str] = &[
    "use", "using", "run", "running", "call", "calling", "execute", "executing", "invoke",
    "invoking", "type", "start", "launch", "with", "via", "by", "through", "the", "a", "an", "any",
    "plain", "bare", "raw", "command", "to", "ever",
];
/// Verbs that forbid a change of the file behind them.
const CHANGES: &[&str] = &[
    "edit", "editing", "change", "changing", "modify", "modifying", "touch", "touching", "write",
    "writing", "overwrite", "delete", "deleting", "remove", "removing", "rename", "renaming",
    "move", "moving", "create", "creating", "update", "updating", "alter", "altering",
];
/// Verbs before `not` that make it a prohibition or a statement, not one thing instead of another.
const MODALS: &[&str] = &[
    "do", "does", "did", "must", "should", "can", "could", "will", "would", "may", "is", "are",
    "was", "were", "shall", "need",
];

/// Proposes a check for a rule. `is_program` says if a word is a program of this machine.
pub fn propose(
    rule: &Reflexion,
    is_program: &dyn Fn(&str) -> bool,
) -> Result<Proposal, NoProposal> {
    let tokens = tokens(&rule.rule);
    let reader = Reader {
        tokens: &tokens,
        is_program,
    };
    if let Some(found) = reader.instead().or_else(|| reader.replaced()) {
        return Ok(found);
    }
    if let Some((found, behind)) = reader.forbidden() {
        let rest = &tokens[behind..];
        let is_bound = |token: &Token| CONDITIONS.contains(&&*token.text.to_lowercase());
        return if rest.iter().any(is_bound) {
            Err(NoProposal::Conditional)
        } else {
            Ok(found)
        };
    }
    reader.occasion(rule).ok_or(NoProposal::Unnamed)
}

impl Reader<'_> {
    /// "X, not Y", "X instead of Y", "X rather than Y".
    fn instead(&self) -> Option<Proposal> {
        (1..self.tokens.len()).find_map(|at| {
            let behind = if self.is(at, "not") && !self.is_one_of(at - 1, MODALS) {
                at + 1
            } else if self.is(at, "instead") && self.is(at + 1, "of")
                || self.is(at, "rather") && self.is(at + 1, "than")
            {
                at + 2
            } else {
                return None;
            };
            let peer = self.tokens[at - 1].text;
            let peer = peer.split_whitespace().next().unwrap_or_default();
            let from = self.skip(behind, BETWEEN);
            let (check, end) = self.name(from, self.knows(peer))?;
            Some(self.proposal(check, at - 1, end))
        })
    }

    /// "Replace Y with X", "switch from Y to X".
    fn replaced(&self) -> Option<Proposal> {
        (0..self.tokens.len()).find_map(|at| {
            let (from, then) = if self.is_one_of(at, &["replace", "replacing"]) {
                (at + 1, "with")
            } else if self.is(at, "from") && at > 0 {
                (at + 1, "to")
            } else {
                return None;
            };
            let (check, end) = self.name(from, false)?;
            let is_whole = self.is(end, then) && !check.command.is_empty();
            is_whole.then(|| self.proposal(check, at, (end + 2).min(self.tokens.len())))
        })
    }

    /// "Never run Y", "don't edit Y", and the place behind.
    fn forbidden(&self) -> Option<(Proposal, usize)> {
        (0..self.tokens.len()).find_map(|at| {
            let words = [
                "never", "don't", "dont", "mustn't", "shouldn't", "avoid", "stop",
            ];
            let is_modal = || self.is(at, "not") && at > 0 && self.is_one_of(at - 1, MODALS);
            if !self.is_one_of(at, &words) && !is_modal() {
                return None;
            }
            let from = self.skip(at + 1, BETWEEN);
            if self.is_one_of(from, CHANGES) {
                let (path, end) = self.path(self.skip(from + 1, BETWEEN))?;
                return Some((self.proposal(path, at, end), end));
            }
            let (check, end) = self.name(from, false)?;
            // Only a change of a file can be seen, and nothing else that is done to it.
            (check.path.is_empty()).then(|| (self.proposal(check, at, end), end))
        })
    }

    /// "Use X", after the agent ran something else.
    fn occasion(&self, rule: &Reflexion) -> Option<Proposal> {
        let wanted = (0..self.tokens.len()).find_map(|at| {
            let verbs = ["use", "using", "run", "with", "via"];
            let before = at > 0 && self.is_one_of(at - 1, &verbs);
            let program = self.tokens[at].text.split_whitespace().next()?;
            (before && self.knows(program)).then_some(program)
        })?;
        rule.said.iter().find_map(|said| {
            let (_, call) = said.after.split_once(": ")?;
            let commands = shell::commands(call);
            let mut programs = commands.iter().filter_map(|simple| {
                let program = shell::basename(simple.words.first()?);
                (!AROUND.contains(&program)).then_some(program)
            });
            let program = programs.next().filter(|program| self.knows(program))?;
            let is_other = program != wanted && programs.all(|other| other != wanted);
            is_other.then(|| Proposal {
                check: command(program.to_owned()),
                because: format!("the agent had called `{call}`"),
            })
        })
    }

    fn proposal(&self, check: Check, from: usize, end: usize) -> Proposal {
        let end = end.min(self.tokens.len());
        let words: Vec<String> = (from..end)
            .map(|at| match &self.tokens[at] {
                word if word.is_code => format!("`{}`", word.text),
                word if at + 1 == end => word.text.to_owned(),
                word => word.said.to_owned(),
            })
            .collect();
        Proposal {
            check,
            because: format!("the rule says \"{}\"", words.join(" ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Programs of the tests' machine, with those that are English words.
    fn is_program(word: &str) -> bool {
        [
            "rm", "time", "test", "more", "less", "find", "file", "sed", "jest", "vitest", "write",
            "date",
        ]
        .contains(&word)
    }

    fn proposed(rule: &str, after: &str) -> Result<Proposal, NoProposal> {
        let rule = json!({"rule": rule, "said": [{"quote": "q", "after": after}]});
        let rule: Reflexion = serde_json::from_value(rule).unwrap();
        propose(&rule, &is_program)
    }

    #[test]
    fn the_unwanted_call_is_found_in_the_rule() {
        let check = |rule: &str, expected: &str| {
            let check = proposed(rule, "").map(|found| found.check);
            let found = check.as_ref().map(|check| {
                let patterns = check
                    .patterns()
                    .map(|(name, text)| format!("{name} {text}"));
                patterns.collect::<Vec<_>>().join(", ")
            });
            assert_eq!(found.as_deref(), Ok(expected), "{rule}");
        };
        check("ALWAYS use pnpm, not npm.", "command npm");
        check("Use `uv`, not `pip install`.", "command pip install");
        check("ALWAYS use uv instead of pip.", "command pip");
        check("Use vitest rather than jest for tests", "command jest");
        check(
            "ALWAYS run the tests with just, not with make test.",
            "command make test",
        );
        check("ALWAYS use docker, not frobnicate.", "command frobnicate");
        check(
            "NEVER run `git push --force` to main.",
            "command git push --force",
        );
        check(
            "NEVER run git push --force to main.",
            "command git push --force",
        );
        check("NEVER `rm -rf` anything.", "command rm -rf");
        check("Don't call sed for edits!", "command sed");
        check("You must not use WebFetch here.", "tool WebFetch");
        check("NEVER use mcp__web__fetch.", "tool mcp__web__fetch");
        check("NEVER edit db/migrations/ by hand.", "path db/migrations/");
        check(
            "Please do not touch `package-lock.json`.",
            "path package-lock.json",
        );
        check("Replace pip with uv in all scripts.", "command pip");
        check("We switched from yarn to pnpm.", "command yarn");
    }

    #[test]
    fn a_rule_that_names_no_call_gets_no_proposal() {
        let check = |rule: &str, expected: NoProposal| {
            assert_eq!(proposed(rule, "").err(), Some(expected), "{rule}");
        };
        let unnamed = NoProposal::Unnamed;
        check("ALWAYS use ISO dates, not time stamps.", unnamed);
        check("NEVER use more than three items.", unnamed);
        check("NEVER write passive voice.", unnamed);
        check("ALWAYS answer in German, not in English.", unnamed);
        check("The total must NEVER exceed 1.5 million.", unnamed);
        check("No `any` types unless necessary.", unnamed);
        check("NEVER use `any`.", unnamed);
        check("NEVER commit .env.", unnamed);
        check("ALWAYS use pnpm here.", unnamed);
        check("Use https://a/b, not http://a/b.", unnamed);
        check("Schreib nie mit npm.", unnamed);
        check("", unnamed);
        check(
            "NEVER run cargo test without --release.",
            NoProposal::Conditional,
        );
        check("Don't edit src/a.rs unless I ask.", NoProposal::Conditional);
    }

    #[test]
    fn the_last_call_of_the_agent_is_what_use_x_replaces() {
        let check = |rule: &str, after: &str, expected: Option<&str>| {
            let found = proposed(rule, after).ok().map(|found| found.check.command);
            assert_eq!(found.as_deref(), expected, "{rule}: {after}");
        };
        check(
            "ALWAYS use pnpm here.",
            "Bash: npm install left-pad",
            Some("npm"),
        );
        check(
            "ALWAYS use pnpm.",
            "Bash: cd web && npm install",
            Some("npm"),
        );
        check("ALWAYS use pnpm here.", "Bash: pnpm install", None);
        check(
            "ALWAYS use pnpm here.",
            "Edit: {\"file_path\": \"a\"}",
            None,
        );
        check("ALWAYS use pnpm here.", "", None);
        check("ALWAYS use British spelling.", "Bash: npm install", None);
    }

    proptest! {
        #[test]
        fn no_rule_makes_it_panic(rule in "(never|not|use|from|`|npm|edit|a/b|,|\\.| |instead of){0,14}") {
            drop(proposed(&rule, "Bash: npm install"));
        }
    }
}
