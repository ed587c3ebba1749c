//! Each simple command of a line is tried in several forms, with these limits:
//! - The whole line is tried if the pattern has a sign of a chain, each pipeline if it has a sign of a pipe.
//! - The form without quotes is only for patterns without quotes.
//! - The form without the options before a subcommand, or without a runner such as `npx`, is skipped for a
//!   rule that speaks of them. The first is also skipped for a pattern that looks for something absent.
//! - Text for people, such as a commit message, counts only for a pattern that names the program, or for a
//!   rule about messages.
//! - A negated beginning (`^(?!…)`) must hold for every form, and for the variables set before the command.
//! - The form with the directory that it runs in is only for a pattern that names the place.
//! - A call of a tool other than a shell needs a pattern on the tool's name, or on the path of a command that
//!   does the same.

use memctl_shell::{Bare, Simple};

use super::conditions::{
    has_pipe, is_help, is_rehearsal, names_taken, reading, spans_commands, wants_runner,
};
use super::fulfils;
use crate::rules::acting::call::{Call, Of};
use crate::rules::acting::patterns::{Compiled, Expression};

impl Compiled {
    /// Returns `true` if the call of a tool that is no shell matches, by its name or by its path.
    pub(super) fn matches_tool(&self, call: &Call) -> bool {
        call.is_matched(&[Of::Tool, Of::FileTool], &self.matches)
            && !call.tool_texts().any(|text| self.rules_out(text))
    }

    pub(super) fn matches_commands(&self, call: &Call, rule: &str) -> bool {
        let is_before = |at: usize| {
            let chain = call.commands.get(at).map(|one| one.chain);
            let before = call.commands[..at.min(call.commands.len())].iter();
            let mut before =
                before.filter(|one| !one.may_fail && chain.is_none_or(|chain| one.chain == chain));
            let after = self.after.as_ref();
            after.is_some_and(|after| before.any(|one| fulfils(after, one)))
        };
        let mut commands = call.commands.iter().enumerate();
        if commands.any(|(at, simple)| {
            let names_place = |expression: &_| call.is_matched(&[Of::Command(at)], expression);
            let is_out = self.unless.as_ref().is_some_and(names_place);
            let is_match = !is_out && self.matches_simple(simple, &names_place, rule)
                || self.matches_pipeline(simple);
            let program = simple.words.first().map_or("", String::as_str);
            is_match && !is_before(at) && !wants_runner(rule, &simple.runners, program)
        }) {
            return true;
        }
        // A match of a single command is judged above, with its own `unless` and `after`.
        let is_single = |one: &Simple| {
            self.forms(one, rule)
                .any(|form| self.matches.is_match(form))
        };
        spans_commands(self.matches.as_str())
            && !call.commands.iter().any(is_single)
            && self.matches.is_match(&call.line)
            && !self.rules_out(&call.line)
            && !is_before(call.commands.len())
    }

    /// Returns `true` if a command matches, or if the pattern `names_place`, the directory that it runs in.
    fn matches_simple(
        &self,
        simple: &Simple,
        names_place: &dyn Fn(&Expression) -> bool,
        rule: &str,
    ) -> bool {
        let mut forms = self.forms(simple, rule);
        let own = simple.quiet.as_ref().unwrap_or(&simple.typed);
        let after = self.after.as_ref();
        (forms.any(|form| self.matches.is_match(form)) || names_place(&self.matches))
            && !own.texts().any(|form| self.rules_out(form))
            && !self.rules_out(&simple.variables)
            && !self.is_ahead(simple)
            && !is_help(simple, self.matches.as_str())
            && !is_rehearsal(simple, rule, self.matches.as_str())
            // The first command breaks nothing itself.
            && !after.is_some_and(|after| fulfils(after, simple))
    }

    /// Returns `true` if the pipeline that ends with a command matches.
    fn matches_pipeline(&self, simple: &Simple) -> bool {
        let mut pipelines = simple.pipeline.iter();
        has_pipe(self.matches.as_str())
            && pipelines.any(|form| self.matches.is_match(form))
            && !simple.pipeline.iter().any(|form| self.rules_out(form))
            && !self.rules_out(&simple.variables)
    }

    /// Returns `true` if what may not stand at the beginning does, in a form or in a variable set before.
    fn is_ahead(&self, simple: &Simple) -> bool {
        let Some(absent) = &self.not_ahead else {
            return false;
        };
        let written = simple.typed.forms.iter().map(String::as_str);
        let mut texts = written.chain(simple.variables.lines());
        texts.any(|text| absent.is_match(text))
    }

    /// Forms of a command that the pattern is for.
    fn forms<'s>(&self, simple: &'s Simple, rule: &str) -> impl Iterator<Item = &'s str> + use<'s> {
        // Text that a shell reads in another way between quotation marks is sought as it is typed.
        let pattern = self.matches.as_str();
        let is_about_quotes = pattern.contains(['"', '\''])
            || [r"\$", r"\*", r"\["]
                .iter()
                .any(|sign| pattern.contains(sign));
        let reading = reading(simple, rule, pattern);
        let plain = (!is_about_quotes).then_some(&reading.plain);
        let looks_behind = pattern.contains("(?<");
        let is_for = |bare: &Bare| {
            let lacks_options = !bare.taken.is_empty();
            let is_wanted = self.wants_absent && lacks_options || looks_behind;
            // An option of an exception is looked for in the command as it is typed.
            let is_excepted = lacks_options && self.unless.is_some();
            !is_wanted && (is_excepted || !names_taken(rule, bare))
        };
        let bare: Vec<&Bare> = reading.bare.iter().filter(|bare| is_for(bare)).collect();
        let bare = bare.into_iter().flat_map(|bare| &bare.forms);
        let written = reading.forms.iter().chain(plain);
        let with_values = reading.fed.iter().chain(&reading.filled);
        written.chain(with_values).chain(bare).map(String::as_str)
    }
}
