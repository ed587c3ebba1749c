//! Texts of a model that may replace the learned ones.
//!
//! A working call keeps to the words of its session, so that no model invents a command. Titles,
//! causes and steps are free, short, and screened like text of a tool.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex_lite::Regex;

use crate::guard;
use crate::learn::fix::difference::{Difference, tokens};
use crate::learn::fix::hazard::{hazards, new_hazards};
use crate::learn::reflect::{dropped, is_said};

/// Maximum length of a sentence, in characters.
const MAX_SENTENCE: usize = 400;
/// Maximum length of a working call, in characters.
const MAX_CODE: usize = 3_000;
/// Maximum number of steps.
const MAX_STEPS: usize = 8;

/// Placeholder for a name that the reader replaces.
static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(
        clippy::unwrap_used,
        reason = "a constant pattern, compiled in the tests"
    )]
    Regex::new(r"<[a-z][a-z _-]{0,30}>").unwrap()
});

/// Texts that a fix was learned from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LearnedFrom<'a> {
    /// Failing call.
    pub(crate) failing: &'a str,
    /// Working call.
    pub(crate) working: &'a str,
    /// Error line.
    pub(crate) error: &'a str,
}

/// Returns the proposed working call if it may replace the learned one.
///
/// # Errors
///
/// Returns a lower-case fragment that says why it may not.
pub(crate) fn code(proposed: &str, evidence: &LearnedFrom<'_>) -> Result<String, String> {
    let proposed = proposed.trim();
    if proposed.chars().count() > MAX_CODE {
        return Err("it is too long".to_owned());
    }
    if guard::admit(proposed).quarantine.is_some() {
        return Err("it is suspicious".to_owned());
    }
    let plain = PLACEHOLDER.replace_all(proposed, " ");
    let known: HashSet<String> = [evidence.failing, evidence.working, evidence.error]
        .into_iter()
        .flat_map(tokens)
        .collect();
    if let Some(word) = tokens(&plain)
        .into_iter()
        .find(|word| !known.contains(word))
    {
        return Err(format!("`{word}` does not occur in the session"));
    }
    if !new_hazards(evidence.failing, proposed).is_empty() {
        return Err("it is dangerous".to_owned());
    }
    let learned = Difference::between(evidence.failing, evidence.working);
    let new = Difference::between(evidence.failing, proposed);
    let same = |a: &[String], b: &[String]| a.iter().any(|word| b.contains(word));
    if !(same(&learned.added, &new.added)
        || same(&learned.dropped, &new.dropped)
        || learned.requoted && new.requoted)
    {
        return Err("it leaves out what made the call work".to_owned());
    }
    Ok(guard::redact(proposed).text.into_owned())
}

/// Returns a text on one line, redacted and cut; `None` if it is empty or suspicious.
pub(crate) fn sentence(text: &str) -> Option<String> {
    if guard::admit(text).quarantine.is_some() {
        return None;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = guard::redact(&words.join(" ")).text.into_owned();
    let text: String = guard::unfenced(&text).chars().take(MAX_SENTENCE).collect();
    (!text.is_empty()).then_some(text)
}

/// Returns the proposed demand and condition of a rule that was heard as `quote`, if they keep its
/// numbers and quoted names. A condition of other words than the quote's is left out.
///
/// # Errors
///
/// Returns a lower-case fragment that says why they may not replace the quote.
pub(crate) fn demand(
    rule: &str,
    applies_when: &str,
    quote: &str,
) -> Result<(String, String), String> {
    let Some(rule) = sentence(rule) else {
        return Err("it is empty or suspicious".to_owned());
    };
    let condition = sentence(applies_when).filter(|condition| is_said(condition, quote));
    let condition = condition.unwrap_or_default();
    if let Some(term) = dropped(quote, &format!("{rule} {condition}"), &[]).first() {
        return Err(format!("it leaves out `{term}`"));
    }
    Ok((rule, condition))
}

/// Returns the steps if all of them may be shown to an agent; `None` otherwise.
pub(crate) fn steps(proposed: &[String]) -> Option<Vec<String>> {
    let safe = |step: &String| sentence(step).filter(|step| !is_dangerous(step));
    let steps: Option<Vec<String>> = proposed.iter().map(safe).collect();
    steps.filter(|steps| (1..=MAX_STEPS).contains(&steps.len()))
}

/// Returns `true` if a command anywhere in a sentence is dangerous.
fn is_dangerous(sentence: &str) -> bool {
    let plain = sentence.replace('`', " ");
    let words: Vec<&str> = plain.split_whitespace().collect();
    (0..words.len()).any(|start| !hazards(&words[start..].join(" ")).is_empty())
}
