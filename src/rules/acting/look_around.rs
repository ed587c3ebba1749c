//! Patterns of a rule without look-ahead, which takes more than linear time.
//!
//! Models write `^npm\s+i(?!.*--dry-run)`, the form of most other engines. At the top level of an
//! expression it says what `unless` says: a match of the beginning followed by the excluded text. Such a
//! rule is silent at least where the original is. What stands inside a group, and look-behind, stays as
//! it is and is refused.

use crate::model::CallPattern;

/// Writes look-ahead of a pattern into its exceptions, as far as this says the same or less.
pub(crate) fn without_look_ahead(mut pattern: CallPattern) -> CallPattern {
    let mut unless: Vec<String> = Vec::new();
    while let Some(found) = LookAhead::first_of(&pattern.matches) {
        match found.kind {
            Kind::Excludes => {
                unless.push(format!("{}{}", found.before, alternatives(found.inside)));
            }
            // A required text is a part of the match if nothing else comes after it.
            Kind::Requires if found.after.is_empty() => {}
            Kind::Requires => return pattern,
        }
        let required = match found.kind {
            Kind::Excludes => String::new(),
            Kind::Requires => alternatives(found.inside),
        };
        pattern.matches = format!("{}{required}{}", found.before, found.after);
    }
    if !unless.is_empty() && !pattern.unless.is_empty() {
        unless.insert(0, pattern.unless.clone());
    }
    if !unless.is_empty() {
        let all: Vec<String> = unless.iter().map(|one| alternatives(one)).collect();
        pattern.unless = all.join("|");
    }
    pattern
}

fn alternatives(expression: &str) -> String {
    format!("(?:{expression})")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `(?!…)`
    Excludes,
    /// `(?=…)`
    Requires,
}

/// Look-ahead at the top level of an expression.
struct LookAhead<'a> {
    kind: Kind,
    before: &'a str,
    inside: &'a str,
    after: &'a str,
}

impl<'a> LookAhead<'a> {
    /// Finds the first one. An alternative at the top level has exceptions of its own: nothing is found.
    fn first_of(expression: &'a str) -> Option<Self> {
        let mut depth = 0usize;
        let mut in_class = false;
        let mut begins: Option<(Kind, usize)> = None;
        let mut found: Option<(Kind, usize, usize)> = None;
        let mut escaped = false;
        for (at, c) in expression.char_indices() {
            if std::mem::take(&mut escaped) {
                continue;
            }
            match c {
                '\\' => escaped = true,
                '[' => in_class = true,
                ']' => in_class = false,
                _ if in_class => {}
                '(' => {
                    let kind = match expression.get(at..at + 3) {
                        Some("(?!") => Some(Kind::Excludes),
                        Some("(?=") => Some(Kind::Requires),
                        _ => None,
                    };
                    if let (0, None, Some(kind)) = (depth, found, kind) {
                        begins = Some((kind, at));
                    }
                    depth += 1;
                }
                ')' => {
                    depth = depth.checked_sub(1)?;
                    if let (0, Some((kind, begin))) = (depth, begins.take_if(|_| depth == 0)) {
                        found = Some((kind, begin, at));
                    }
                }
                '|' if depth == 0 => return None,
                _ => {}
            }
        }
        let (kind, begin, end) = found?;
        Some(Self {
            kind,
            before: &expression[..begin],
            inside: &expression[begin + "(?!".len()..end],
            after: &expression[end + 1..],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_ahead_becomes_an_exception() {
        let check = |matches: &str, unless: &str, expected: (&str, &str)| {
            let pattern = CallPattern {
                matches: matches.to_owned(),
                unless: unless.to_owned(),
                ..CallPattern::default()
            };
            let found = without_look_ahead(pattern);
            assert_eq!((&*found.matches, &*found.unless), expected, "{matches}");
        };
        check("^npm\\b", "", ("^npm\\b", ""));
        check(
            "^npm i(?!.*--dry-run)",
            "",
            ("^npm i", "(?:^npm i(?:.*--dry-run))"),
        );
        check(
            "^a(?!b|c)[(?!]d(?!e)",
            "x",
            ("^a[(?!]d", "(?:x)|(?:^a(?:b|c))|(?:^a[(?!]d(?:e))"),
        );
        check("^npm(?=\\s|$)", "", ("^npm(?:\\s|$)", ""));
        // Not the same, or less: such a pattern is refused afterwards.
        for as_it_is in [
            "^a(?=b).", "^(a(?!b)|c)", "^a(?!b)|^c", "(?<!a)b", "^a\\(?!b",
        ] {
            check(as_it_is, "", (as_it_is, ""));
        }
    }
}
