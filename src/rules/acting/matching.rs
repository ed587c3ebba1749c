//! Matching of a rule's patterns with a call, and the earlier calls that make a later one fine.
//!
//! Forms of a command. Each simple command is tried in several forms, with these limits:
//! - The whole line is tried if the pattern has a sign of a chain, each pipeline if it has a sign of a pipe.
//! - The form without quotes is only for patterns without quotes.
//! - The form without the options before a subcommand, or without a runner such as `npx`, is skipped for a
//!   rule that speaks of them. The first is also skipped for a pattern that looks for something absent.
//! - Text for people, such as a commit message, counts only for a pattern that names the program, or for a
//!   rule about messages.
//! - A negated beginning (`^(?!…)`) must hold for every form, and for the variables set before the command.
//! - A call of a tool other than a shell needs a pattern on the tool's name, or on the path of a command that
//!   does the same. Paths within the project stay relative unless the pattern is absolute. A temporary file
//!   needs a pattern that is absolute or names `tmp`.
//!
//! Content. A pattern about code matches prose files such as Markdown only if its `within` names them. A
//! pattern with `within` matches only in a file that fits; an unknown file never fits.
//!
//! Exceptions. `unless` is tried with all forms of the command, with the line, or with the content and its
//! files. `after` accepts a call if a matching one succeeded earlier in the session, or stands before it in
//! its chain. A call that may fail unnoticed (`x || true`), a dry run and a look do not count.

use memctl_shell::{Bare, PROSE_EXTENSIONS, Simple};

use super::call::{Call, Content};
use super::command::{
    has_pipe, is_help, is_rehearsal, names_taken, only_looks, reading, spans_commands, wants_runner,
};
use super::patterns::{Compiled, Expression};
use crate::model::{CallPart, CallPattern};

/// Returns `true` if one of the patterns of a rule with these words matches the call. `is_done` says whether
/// a call that matches an `after` succeeded earlier.
pub fn breaks(
    call: &Call,
    rule: &str,
    patterns: &[CallPattern],
    is_done: &dyn Fn(&str) -> bool,
) -> bool {
    patterns.iter().any(|pattern| {
        let is_fine = !pattern.after.is_empty() && is_done(&pattern.after);
        !is_fine && Compiled::of(pattern).is_ok_and(|compiled| compiled.matches_call(call, rule))
    })
}

/// Returns `true` for a file with text for people.
fn is_prose(forms: &[String]) -> bool {
    forms
        .last()
        .is_some_and(|path| memctl_shell::is_prose(path))
}

/// Returns `true` if an expression speaks of code: a call, a member, an operator, or a keyword that it begins
/// with.
fn is_of_code(pattern: &str) -> bool {
    const SIGNS: [&str; 8] = [r"\{", "::", "=>", "->", "==", ";", "#include", r"\$\{"];
    const KEYWORDS: [&str; 12] = [
        "import", "from", "require", "include", "def", "fn", "func", "class", "const", "let",
        "var", "return",
    ];
    // `console\s*\??\.(?:log|info)` is a member, too.
    let dense = pattern.replace(r"\s*", "").replace(r"\?", "");
    let dense = dense.replace(['?', ':', '(', '['], "");
    let parts: Vec<&str> = dense.split(r"\.").collect();
    let is_member = |two: &[&str]| {
        let ends = two[0].ends_with(|c: char| c.is_ascii_lowercase());
        ends && two[1].starts_with(|c: char| c.is_ascii_lowercase())
    };
    let is_address = pattern.contains("http") || pattern.contains("www");
    // `\]\(` is a link.
    let mut calls = pattern.match_indices(r"\(");
    let is_call = calls.any(|(at, _)| at > 0 && !pattern[..at].ends_with(']'));
    let begin = pattern.trim_start_matches("(?m)").trim_start_matches('^');
    let begin = begin.trim_start_matches(r"\s*").trim_start_matches(r"\b");
    let mut keywords = KEYWORDS.iter().filter_map(|word| begin.strip_prefix(word));
    is_call
        || !is_address && pattern.contains("//")
        || SIGNS.iter().any(|sign| pattern.contains(sign))
        || !is_address && parts.windows(2).any(is_member)
        || keywords.any(|rest| rest.starts_with([' ', '\\']))
}

/// Returns the `after` expressions that a successful call matches.
pub fn fulfilled_by(call: &Call, patterns: &[CallPattern]) -> Vec<String> {
    let mut patterns: Vec<&CallPattern> = patterns.iter().collect();
    patterns.retain(|pattern| {
        let after = Compiled::of(pattern)
            .ok()
            .and_then(|compiled| compiled.after);
        after.is_some_and(|after| {
            let mut sure = call.commands.iter().filter(|one| !one.may_fail);
            let is_sure = |one: &Simple| !one.may_fail && !only_looks(one, after.as_str());
            let is_line = call.is_tool() || spans_commands(after.as_str());
            sure.any(|simple| fulfils(&after, simple))
                || is_line
                    && call.commands.iter().all(is_sure)
                    && after.is_match(&call.line)
                    && !call.is_match_unnamed(&after)
        })
    });
    patterns.into_iter().map(|one| one.after.clone()).collect()
}

/// Returns `true` if a command is what an `after` wants, and not only a look at it.
fn fulfils(after: &Expression, simple: &Simple) -> bool {
    let mut texts = reading(simple, "", after.as_str()).texts();
    texts.any(|text| after.is_match(text)) && !only_looks(simple, after.as_str())
}

impl Compiled {
    fn matches_call(&self, call: &Call, rule: &str) -> bool {
        match self.on {
            CallPart::Command => self.matches_commands(call, rule) || self.matches_alike(call),
            CallPart::Path => call.paths.iter().any(|forms| {
                let forms = forms_for(&self.matches, forms);
                let is_seen = forms.iter().any(|form| self.matches.is_match(form));
                is_seen && !forms.iter().any(|form| self.rules_out(form))
            }),
            CallPart::Content => call.contents.iter().any(|content| {
                let files = call.files_of(content);
                let mut paths = files.iter().flatten();
                self.is_placed(files)
                    && !self.is_out_of_place(files)
                    && !paths.any(|path| self.rules_out(path))
                    && self.is_new(content)
            }),
        }
    }

    /// Returns `true` if a command that does the same as a tool matches, because of its path.
    fn matches_alike(&self, call: &Call) -> bool {
        call.alike.iter().any(|alike| {
            self.matches.is_match(&alike.command)
                && !self.matches.is_match(&alike.pathless)
                && !self.rules_out(&alike.command)
        })
    }

    fn matches_commands(&self, call: &Call, rule: &str) -> bool {
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
            let is_match = self.matches_simple(simple, rule) || self.matches_pipeline(simple);
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
        (call.is_tool() || spans_commands(self.matches.as_str()))
            && !call.commands.iter().any(is_single)
            && self.matches.is_match(&call.line)
            && !call.is_match_unnamed(&self.matches)
            && !self.rules_out(&call.line)
            && !is_before(call.commands.len())
    }

    fn matches_simple(&self, simple: &Simple, rule: &str) -> bool {
        let mut forms = self.forms(simple, rule);
        let own = simple.quiet.as_ref().unwrap_or(&simple.typed);
        let after = self.after.as_ref();
        forms.any(|form| self.matches.is_match(form))
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

    /// Returns `true` if one of the files is where new text counts.
    fn is_placed(&self, files: &[Vec<String>]) -> bool {
        let is_at = |place: &Expression, forms: &[String]| {
            let mut forms = forms_for(place, forms).into_iter();
            forms.any(|form| place.is_match(form))
        };
        let is_in = |forms: &Vec<String>| self.within.iter().any(|place| is_at(place, forms));
        self.within.is_empty() || files.iter().any(is_in)
    }

    /// Returns `true` if the pattern speaks of code, and all its files are prose that its places do not name.
    fn is_out_of_place(&self, files: &[Vec<String>]) -> bool {
        let names_prose = |place: &Expression| {
            let place = place.as_str();
            place.contains("doc")
                || PROSE_EXTENSIONS
                    .iter()
                    .any(|extension| place.contains(extension))
        };
        !files.is_empty()
            && files.iter().all(|forms| is_prose(forms))
            && !self.within.iter().any(names_prose)
            && is_of_code(self.matches.as_str())
    }

    fn rules_out(&self, text: &str) -> bool {
        let unless = self.unless.as_ref();
        unless.is_some_and(|unless| unless.is_match(text))
    }

    /// Returns `true` if the new text has more matches than the text that it replaces.
    fn is_new(&self, content: &Content) -> bool {
        let count = |text: &str| self.matches.count(text);
        count(&content.new) > count(&content.old) && !self.rules_out(&content.new)
    }
}

/// Forms of a path that an expression is for: relative ones, if there are any.
fn forms_for<'p>(expression: &Expression, forms: &'p [String]) -> Vec<&'p String> {
    let pattern = expression.as_str();
    // `[^/]` is a class.
    let mut places = pattern.match_indices("^/");
    if places.any(|(at, _)| !pattern[..at].ends_with('[')) {
        return forms.iter().collect();
    }
    let (absolute, relative): (Vec<&String>, Vec<&String>) =
        forms.iter().partition(|form| form.starts_with('/'));
    let is_temporary = |path: &&String| path.starts_with("/tmp/") || path.starts_with("/var/tmp/");
    if !relative.is_empty() {
        relative
    } else if absolute.iter().any(is_temporary) && !pattern.contains("tmp") {
        // A file of the same name in a directory of nobody is another one.
        Vec::new()
    } else {
        absolute
    }
}

#[cfg(test)]
#[path = "matching_tests.rs"]
mod tests;
