//! Matching of a rule's patterns with a call, and the earlier calls that make a later one fine.
//!
//! - `commands`: the forms of a command that a pattern is tried on. `conditions`: which of them, by what the pattern
//!   and the rule speak of.
//!
//! New text counts in the files that `within` names; an unknown file is none of them. A pattern that speaks of code
//! counts in files with text for people, such as Markdown, only if `within` names them.
//!
//! Paths within the project stay relative unless the pattern is absolute. A temporary file needs a pattern that is
//! absolute or names `tmp`.
//!
//! `unless` is tried with all forms of the command, with the line, or with the content and its files. `after` accepts
//! a call if a matching one succeeded earlier in the session, or stands before it in its chain. A call that may fail
//! unnoticed (`x || true`), a dry run and a look do not count.

mod commands;
mod conditions;

use memctl_shell::{PROSE_EXTENSIONS, Simple};

use super::call::{Call, Content, Of};
use super::patterns::{Compiled, Expression};
use conditions::{only_looks, reading, spans_commands};

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
            sure.any(|simple| fulfils(&after, simple))
                || spans_commands(after.as_str())
                    && call.commands.iter().all(is_sure)
                    && after.is_match(&call.line)
                || call.is_matched(&[Of::Tool], &after)
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
            CallPart::Command => self.matches_commands(call, rule) || self.matches_tool(call),
            CallPart::Path => call.paths.iter().any(|forms| {
                let forms = forms_for(&self.matches, forms);
                let is_seen = forms.iter().any(|form| self.matches.is_match(form));
                is_seen && !forms.iter().any(|form| self.rules_out(form))
            }),
            CallPart::Content => call
                .contents
                .iter()
                .any(|content| self.matches_content(content, call.files_of(content))),
        }
    }

    fn rules_out(&self, text: &str) -> bool {
        let unless = self.unless.as_ref();
        unless.is_some_and(|unless| unless.is_match(text))
    }

    /// Returns `true` if new text in these files matches.
    fn matches_content(&self, content: &Content, files: &[Vec<String>]) -> bool {
        let mut paths = files.iter().flatten();
        self.is_placed(files)
            && !self.is_out_of_place(files)
            && !paths.any(|path| self.rules_out(path))
            && self.is_new(content)
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

#[cfg(test)]
mod tests;
