//! New text counts in the files that `within` names; an unknown file is none of them. A pattern that speaks of code
//! counts in files with text for people, such as Markdown, only if `within` names them.

use memctl_shell::PROSE_EXTENSIONS;

use super::forms_for;
use crate::rules::acting::call::Content;
use crate::rules::acting::patterns::{Compiled, Expression};

impl Compiled {
    /// Returns `true` if new text in these files matches.
    pub(super) fn matches_content(&self, content: &Content, files: &[Vec<String>]) -> bool {
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
