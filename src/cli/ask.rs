//! Questions to the user at the terminal, and the price of model calls before the first one.
//!
//! Without a terminal nothing is asked: the command itself is the decision, and `--max-calls` is
//! the cap.

use std::io::ErrorKind;
use std::sync::atomic::Ordering;

use console::{Key, Term, measure_text_width};
use dialoguer::{Confirm, Editor};
use memctl_files::process::USUAL_EDITOR;

use crate::cli::config::Environment;
use crate::cli::context::Context;
use crate::cli::ending::END_AT_ONCE;
use crate::cli::output::{plural, wrap};
use crate::model::error::{Explain, Explanation, Kind, UserError};

/// Asks, and waits for the answer. An interrupt returns an error here, so that the cursor is shown
/// again before the program ends.
pub(crate) fn ask<T>(question: impl FnOnce() -> dialoguer::Result<T>) -> Result<T, UserError> {
    END_AT_ONCE.store(false, Ordering::SeqCst);
    let answer = question();
    END_AT_ONCE.store(true, Ordering::SeqCst);
    Term::stderr().show_cursor()?;
    match answer {
        Err(dialoguer::Error::IO(error)) if error.kind() == ErrorKind::Interrupted => {
            Err(UserError::interrupted())
        }
        answer => Ok(answer?),
    }
}

/// Asks a question with the answers yes and no.
pub(crate) fn confirms(prompt: impl Into<String>, default: bool) -> Result<bool, UserError> {
    let question = Confirm::new().with_prompt(prompt).default(default);
    ask(|| question.interact())
}

/// Lets the user edit one line, which begins with `text`. `None` if they give up with Esc. The line stays in its
/// row of the terminal, and scrolls there if it is longer.
pub(crate) fn line(prompt: &str, text: &str) -> Result<Option<String>, UserError> {
    let term = Term::stderr();
    let mut prompt = prompt;
    if measure_text_width(prompt) > usize::from(term.size().1) / 2 {
        term.write_line(prompt)?;
        prompt = "> ";
    }
    let mut line = Line {
        text: text.chars().collect(),
        at: text.chars().count(),
    };
    let done = ask(|| {
        loop {
            let room = usize::from(term.size().1).saturating_sub(measure_text_width(prompt) + 1);
            let (shown, behind) = line.shown(room);
            term.clear_line()?;
            term.write_str(&[prompt, &shown].concat())?;
            term.move_cursor_left(behind)?;
            match term.read_key()? {
                Key::Enter => return Ok(true),
                Key::Escape => return Ok(false),
                key => line.take(&key),
            }
        }
    })?;
    let text: String = line.text.into_iter().collect();
    term.clear_line()?;
    let shown = [prompt.trim_start(), if done { &text } else { "" }].concat();
    let indent = &prompt[..prompt.len() - prompt.trim_start().len()];
    for row in wrap(
        &shown,
        usize::from(term.size().1).saturating_sub(indent.len()),
    ) {
        term.write_line(&[indent, &row].concat())?;
    }
    Ok(done.then_some(text))
}

/// Line that is edited, and the place of the cursor in it.
struct Line {
    text: Vec<char>,
    at: usize,
}

impl Line {
    /// Acts on a key, as shells do. Any other key does nothing.
    fn take(&mut self, key: &Key) {
        match key {
            Key::ArrowLeft => self.at = self.at.saturating_sub(1),
            Key::ArrowRight => self.at = self.text.len().min(self.at + 1),
            Key::Home => self.at = 0,
            Key::End => self.at = self.text.len(),
            Key::Backspace => self.cut(self.at.saturating_sub(1)),
            Key::Del if self.at < self.text.len() => drop(self.text.remove(self.at)),
            // Ctrl-K, Ctrl-U, Ctrl-W.
            Key::Char('\u{b}') => self.text.truncate(self.at),
            Key::Char('\u{15}') => self.cut(0),
            Key::Char('\u{17}') => {
                let before = &self.text[..self.at];
                let word = before.iter().rposition(|c| !c.is_whitespace());
                let space = before[..word.unwrap_or(0)]
                    .iter()
                    .rposition(|c| c.is_whitespace());
                self.cut(space.map_or(0, |space| space + 1));
            }
            Key::Char(c) if !c.is_control() => {
                self.text.insert(self.at, *c);
                self.at += 1;
            }
            _ => {}
        }
    }

    /// Removes the text from a place to the cursor.
    fn cut(&mut self, from: usize) {
        self.text.drain(from..self.at);
        self.at = from;
    }

    /// Returns the part around the cursor that fits into `room` columns, and the columns behind the cursor.
    fn shown(&self, room: usize) -> (String, usize) {
        let width = |c: &char| measure_text_width(c.encode_utf8(&mut [0; 4]));
        let mut used = 0;
        let mut fits = |c: &&char| {
            used += width(c);
            used <= room
        };
        let before = self.text[..self.at]
            .iter()
            .rev()
            .take_while(&mut fits)
            .count();
        let after = self.text[self.at..].iter().take_while(&mut fits).count();
        let (from, to) = (self.at - before, self.at + after);
        let behind = self.text[self.at..to].iter().map(width).sum();
        (self.text[from..to].iter().collect(), behind)
    }
}

impl Explain for dialoguer::Error {
    fn explain(&self) -> Explanation {
        let hint = "give the answer as an option; see --help";
        (Kind::Io, Some(hint.to_owned()))
    }
}

/// Editor of the user: `VISUAL`, or `EDITOR`, unless it is blank.
pub(crate) fn editor(environment: &Environment) -> Editor {
    let mut editor = Editor::new();
    let named = ["VISUAL", "EDITOR"]
        .iter()
        .filter_map(|name| environment.var(name))
        .find(|value| !value.trim().is_empty());
    editor.executable(named.as_deref().unwrap_or(USUAL_EDITOR));
    editor
}

/// Number of calls without a known price above which a person is asked.
const UNPRICED_CALLS: usize = 20;

/// Model calls that a command is about to make, and their cost.
#[derive(Default)]
pub(crate) struct Spending<'a> {
    /// Models to call.
    pub(crate) models: &'a [String],
    /// Number of calls.
    pub(crate) calls: usize,
    /// Estimated cost in US dollars; `None` if a price is unknown.
    pub(crate) cost_usd: Option<f64>,
    /// Subject of the calls, as ` about 5 records`; may be empty.
    pub(crate) about: String,
    /// Further remark, as `; 3 sessions are left for later`; may be empty.
    pub(crate) also: String,
}

impl Spending<'_> {
    /// Says the calls and the cost, and asks a person at a terminal if the calls cost more than
    /// the setting `llm.ask_above_usd`. `yes` answers beforehand. Returns `false` if the person
    /// does not want the calls.
    pub(crate) fn announce(&self, context: &Context, yes: bool) -> Result<bool, UserError> {
        let (models, cost) = (self.models.join("`, `"), price(self.cost_usd));
        let calls = plural(self.calls as u64, "call");
        let Self { about, also, .. } = self;
        context
            .printer
            .note(&format!("calling `{models}`: {calls}{about}, {cost}{also}"));
        self.is_wanted(context, yes)
    }

    /// Asks a person at a terminal if the calls cost more than the setting `llm.ask_above_usd`. `yes`
    /// answers beforehand.
    pub(crate) fn is_wanted(&self, context: &Context, yes: bool) -> Result<bool, UserError> {
        let limit: f64 = context.config_quietly()?.parsed("llm.ask_above_usd")?;
        if yes || !context.is_interactive() || !self.is_much(limit) {
            return Ok(true);
        }
        // The cost again, because `--quiet` hides the note.
        let (calls, cost) = (plural(self.calls as u64, "call"), price(self.cost_usd));
        confirms(format!("{calls}, {cost}. Go on?"), false)
    }

    /// Returns `true` if the calls cost more than a limit, or if nobody knows what many calls cost.
    fn is_much(&self, limit: f64) -> bool {
        match self.cost_usd {
            Some(cost) => cost > limit || limit.is_nan(),
            None => self.calls > UNPRICED_CALLS,
        }
    }
}

/// Returns a cost in words.
pub(crate) fn price(cost: Option<f64>) -> String {
    cost.map_or("price unknown".to_owned(), |cost| {
        format!("about ${cost:.4}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_edited_as_in_a_shell_and_stays_in_its_row() {
        let check = |begun: &str, keys: &[Key], expected: &str| {
            let (text, at) = (begun.chars().collect(), begun.chars().count());
            let mut line = Line { text, at };
            for key in keys {
                line.take(key);
            }
            line.text.insert(line.at, '|');
            assert_eq!(line.text.iter().collect::<String>(), expected, "{keys:?}");
        };
        let typed = Key::Char;
        check("make", &[typed('\u{15}'), typed('é')], "é|");
        check("make", &[Key::Home, Key::Del, Key::ArrowRight], "a|ke");
        check("make", &[Key::ArrowLeft, Key::Backspace], "ma|e");
        check(
            "make",
            &[Key::Home, Key::Backspace, Key::End, Key::Del],
            "make|",
        );
        check("make web now ", &[typed('\u{17}')], "make web |");
        check("make", &[typed('\u{17}'), typed('\u{17}')], "|");
        check(
            "make",
            &[Key::ArrowLeft, typed('\u{b}'), typed('\u{1}')],
            "mak|",
        );
        let text: Vec<char> = "make the 日本".chars().collect();
        let shown = |at: usize| {
            Line {
                text: text.clone(),
                at,
            }
            .shown(6)
        };
        assert_eq!(shown(11), ("e 日本".to_owned(), 0));
        assert_eq!(shown(0), ("make t".to_owned(), 6));
        assert_eq!(shown(4), ("make t".to_owned(), 2));
    }

    #[test]
    fn only_dear_calls_and_many_of_unknown_price_are_asked_about() {
        let check = |calls: usize, cost_usd: Option<f64>, limit: f64, expected: bool| {
            let spending = Spending {
                calls,
                cost_usd,
                ..Spending::default()
            };
            assert_eq!(spending.is_much(limit), expected, "{cost_usd:?} {limit}");
        };
        check(100, Some(0.5), 0.5, false);
        check(1, Some(0.51), 0.5, true);
        check(100, Some(0.0), 0.0, false);
        check(1, Some(0.0001), 0.0, true);
        check(1, Some(0.0001), f64::NAN, true);
        check(20, None, 0.5, false);
        check(21, None, 0.5, true);
    }
}
