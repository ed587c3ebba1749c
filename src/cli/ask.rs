//! Questions to the user at the terminal, and the price of model calls before the first one.
//!
//! Without a terminal nothing is asked: the command itself is the decision, and `--max-calls` is
//! the cap.

use std::io::BufRead as _;

use console::Term;
use dialoguer::Editor;
use memctl_files::process::USUAL_EDITOR;

use crate::cli::config::Environment;
use crate::cli::context::Context;
use crate::cli::output::{Done, Style, end, plural};
use crate::model::error::UserError;
use crate::review::{self, Draft, EditReport};
use crate::store::workspace::Workspace;

/// Asks a question with the answers yes and no. An empty line is the default; the end of the input is no.
pub(crate) fn confirms(prompt: &str, default: bool) -> Result<bool, UserError> {
    let answers = if default { "Y/n" } else { "y/N" };
    let line = answer(&format!("{prompt} [{answers}] "))?;
    Ok(line.is_some_and(|line| match line.to_lowercase().as_str() {
        "" => default,
        line => "yes".starts_with(line),
    }))
}

/// Asks for a line, which the terminal lets the user edit. Returns it without the spaces around it; `None` at the end of
/// the input.
pub(crate) fn answer(question: &str) -> Result<Option<String>, UserError> {
    Term::stderr().write_str(question)?;
    let mut line = Vec::new();
    std::io::stdin().lock().read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(&line).trim().to_owned()))
}

/// Shows keys with their effects, and asks until a line begins with one of them. Returns it, and the words behind it,
/// which only `x` takes. The last key is the way out, also at the end of the input.
pub(crate) fn choice(
    context: &Context,
    keys: &[(char, &str)],
) -> Result<(char, String), UserError> {
    let all = keys.iter().map(|(key, name)| format!("{key} {name}"));
    let all = all.collect::<Vec<_>>().join(" · ");
    let mut page = context.printer.page();
    page.sentence(Style::Strong, "", &all);
    Term::stderr().write_str(&page.into_text())?;
    loop {
        let Some(line) = answer("> ")? else {
            let way_out = keys.last().map(|(key, _)| *key);
            return Ok((way_out.unwrap_or_default(), String::new()));
        };
        let mut letters = line.chars();
        let Some(key) = letters.next() else {
            continue;
        };
        let words = letters.as_str();
        let takes_words = key == 'x' && words.starts_with(' ');
        if keys.iter().any(|(own, _)| *own == key) && (words.is_empty() || takes_words) {
            return Ok((key, words.trim().to_owned()));
        }
        let unknown = format!("`{}` is no key here", end(&line, 20));
        context.printer.warn(&unknown);
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

/// Opens the text of a record in the editor until it is valid or the user gives up.
pub(crate) fn in_editor(
    context: &Context,
    workspace: &Workspace,
    draft: &Draft,
) -> Done<EditReport> {
    let mut text = draft.text.clone();
    loop {
        let edited = editor(&context.environment)
            .extension(".txt")
            .require_save(true)
            .edit(&text);
        let edited = edited.map_err(|error| {
            UserError::usage(
                format!("cannot open the editor: {error}"),
                format!("memctl edit {} --set FIELD=VALUE", draft.id),
            )
        })?;
        // A file that was not saved leaves the record unchanged.
        let edited = edited.unwrap_or_else(|| draft.text.clone());
        let given = edited.trim_end();
        let is_changed = given != draft.text.trim_end();
        let given = is_changed.then(|| (draft.field.to_owned(), given.to_owned()));
        let error = match review::edit(workspace, &draft.id, given.as_slice()) {
            Ok(report) => return Ok(report),
            Err(error) => UserError::from(error),
        };
        context.printer.warn(&error.message);
        if !confirms("Edit again?", true)? {
            return Err(error);
        }
        text = edited;
    }
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
        let limit: f64 = context.config_quietly(None)?.parsed("llm.ask_above_usd")?;
        if yes || !context.is_interactive() || !self.is_much(limit) {
            return Ok(true);
        }
        // The cost again, because `--quiet` hides the note.
        confirms(&format!("{calls}, {cost}. Go on?"), false)
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
