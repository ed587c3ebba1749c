//! Names of calls in the words of a rule: a command, a tool or a path.
//!
//! A word is a command only if it is a program, or if the other side of "X, not Y" is one. A name has to
//! end where a phrase ends, so that "never run more than one" names nothing.

use super::rule_words::Token;
use crate::learn::shell;
use crate::learn::shell_command::{has_subcommands, is_known};
use crate::model::{Check, CheckAction};

/// Words that end a name. The last eight begin a condition.
const ENDS: &[&str] = &[
    "for", "in", "on", "to", "into", "from", "at", "of", "by", "with", "via", "as", "and", "or",
    "but", "not", "here", "there", "anywhere", "again", "ever", "anymore", "anyway", "instead",
    "directly", "because", "since", "so", "please", "always", "never", "use", "it", "this", "that",
    "these", "we", "you", "i", "unless", "without", "except", "until", "if", "when", "before",
    "while",
];

/// Reads the words of a rule. Places are indexes of words.
pub(super) struct Reader<'r> {
    pub(super) tokens: &'r [Token<'r>],
    /// Returns `true` for a program of this machine.
    pub(super) is_program: &'r dyn Fn(&str) -> bool,
}

impl Reader<'_> {
    pub(super) fn is(&self, at: usize, word: &str) -> bool {
        let token = self.tokens.get(at);
        token.is_some_and(|token| !token.is_code && token.text.eq_ignore_ascii_case(word))
    }

    pub(super) fn is_one_of(&self, at: usize, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(at, word))
    }

    /// Returns the place behind these words.
    pub(super) fn skip(&self, mut at: usize, words: &[&str]) -> usize {
        while self.is_one_of(at, words) && !self.tokens[at].ends {
            at += 1;
        }
        at
    }

    /// Returns `true` if the word is a program.
    pub(super) fn knows(&self, word: &str) -> bool {
        is_known(word) || (self.is_program)(word)
    }

    /// Command, tool or path that is named here, and the place behind. With `is_peer`, the other
    /// side of "X, not Y" is a program, and any single word can be one.
    pub(super) fn name(&self, at: usize, is_peer: bool) -> Option<(Check, usize)> {
        let token = self.tokens.get(at)?;
        let mut words = token.text.split_whitespace();
        let first = words.next()?;
        if token.is_code {
            if is_peer || self.knows(shell::basename(first)) {
                return Some((command(token.text.to_owned()), at + 1));
            }
            return self.tool(at);
        }
        if self.knows(first) {
            let end = self.end_of_command(at);
            let text: Vec<&str> = self.tokens[at..end].iter().map(|word| word.text).collect();
            return self.is_end(end).then(|| (command(text.join(" ")), end));
        }
        if is_peer && is_bare(first) && self.is_end(at + 1) {
            return Some((command(first.to_owned()), at + 1));
        }
        self.tool(at)
    }

    /// Place behind a command in plain words: the subcommand and the flags belong to it.
    pub(super) fn end_of_command(&self, at: usize) -> usize {
        let mut end = at + 1;
        let mut may_have_sub = has_subcommands(self.tokens[at].text);
        while !self.tokens[end - 1].ends
            && let Some(word) = self.tokens.get(end)
            && !word.is_code
        {
            let is_flag = word.text.starts_with('-') && word.text.len() > 1;
            let is_sub = may_have_sub && is_bare(word.text) && !is_stop(word.text);
            if !is_flag && !is_sub {
                break;
            }
            may_have_sub &= is_flag;
            end += 1;
        }
        end
    }

    /// Returns `true` if no word that belongs to the name stands at this place.
    pub(super) fn is_end(&self, at: usize) -> bool {
        let ends_before = at > 0 && self.tokens[at - 1].ends;
        let next = self.tokens.get(at);
        ends_before || next.is_none_or(|next| is_stop(next.text))
    }

    /// Name of a tool: `WebFetch`, `mcp__web__fetch`.
    pub(super) fn tool(&self, at: usize) -> Option<(Check, usize)> {
        let text = self.tokens[at].text;
        let humps = text.chars().filter(char::is_ascii_uppercase).count();
        let is_camel = humps >= 2
            && text.chars().all(|c| c.is_ascii_alphanumeric())
            && text.chars().any(|c| c.is_ascii_lowercase())
            && text.starts_with(|c: char| c.is_ascii_uppercase());
        let is_tool = (is_camel || text.starts_with("mcp__")) && self.is_end(at + 1);
        is_tool.then(|| {
            let tool = text.to_owned();
            let check = Check {
                tool,
                ..Check::default()
            };
            (check, at + 1)
        })
    }

    /// Path: it has a slash, an extension, or begins with a dot.
    pub(super) fn path(&self, at: usize) -> Option<(Check, usize)> {
        let token = self.tokens.get(at)?;
        let text = token.text;
        let extension = text.rsplit_once('.').is_some_and(|(_, extension)| {
            (1..=6).contains(&extension.len()) && extension.chars().all(char::is_alphanumeric)
        });
        let is_path = (text.contains('/') || extension || text.starts_with('.') && text.len() > 2)
            && !text.contains("://")
            && !text.contains(char::is_whitespace)
            && text.chars().any(char::is_alphanumeric);
        is_path.then(|| {
            let check = Check {
                path: text.to_owned(),
                ..Check::default()
            };
            (check, at + 1)
        })
    }
}

pub(super) fn command(command: String) -> Check {
    Check {
        command,
        action: CheckAction::Note,
        ..Check::default()
    }
}

fn is_stop(word: &str) -> bool {
    ENDS.contains(&&*word.to_lowercase())
}

fn is_bare(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase())
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':'))
}
