//! Patterns of a rule without look-ahead, which takes more than linear time.
//!
//! Models write `^npm\s+i(?!.*--dry-run)` and `^npm(?=\s|$)`, the forms of most other engines. At the top
//! level of an expression they have another form that says the same or less, so that a rule is silent at
//! least where the original is:
//!
//! - what must follow at the end of an expression or of an alternative is a part of the match;
//! - what must not follow is an exception (`unless`): the beginning of the match with the excluded text;
//!   within an exception or a condition (`after`) it is left out, so that those hold more often.
//!
//! Look-ahead inside a group, and look-behind, stay as they are and are refused.

use crate::model::CallPattern;

/// Writes look-ahead of a pattern in forms that need none, as far as they say the same or less.
pub(crate) fn without_look_ahead(mut pattern: CallPattern) -> CallPattern {
    let CallPattern {
        matches,
        unless,
        after,
        ..
    } = &mut pattern;
    for expression in [&mut *matches, &mut *unless, &mut *after] {
        *expression = with_what_follows(expression);
    }
    for expression in [&mut *unless, &mut *after] {
        while let Some(found) = LookAhead::first_of(expression).filter(|one| one.excludes) {
            *expression = format!("{}{}", found.before, found.after);
        }
    }
    let mut exceptions: Vec<String> = Vec::new();
    while let Some(found) = LookAhead::first_of(matches).filter(|one| one.excludes) {
        exceptions.push(format!("{}{}", found.before, alternatives(found.inside)));
        *matches = format!("{}{}", found.before, found.after);
    }
    if !exceptions.is_empty() {
        if !unless.is_empty() {
            exceptions.insert(0, unless.clone());
        }
        let all: Vec<String> = exceptions.iter().map(|one| alternatives(one)).collect();
        *unless = all.join("|");
    }
    pattern
}

/// Makes what must follow at the end of an alternative a part of it: nothing comes after it.
fn with_what_follows(expression: &str) -> String {
    let mut all = expression.to_owned();
    for found in look_aheads(expression) {
        let is_last = found.after.is_empty() || found.after.starts_with('|');
        if !found.excludes && is_last {
            let at = found.before.len();
            all.replace_range(at..at + "(?=".len(), "(?:");
        }
    }
    all
}

fn alternatives(expression: &str) -> String {
    format!("(?:{expression})")
}

/// Look-ahead at the top level of an expression.
struct LookAhead<'a> {
    /// `(?!…)`; `(?=…)` requires.
    excludes: bool,
    before: &'a str,
    inside: &'a str,
    after: &'a str,
}

impl<'a> LookAhead<'a> {
    /// Finds the first one. An alternative at the top level has exceptions of its own: nothing is found.
    fn first_of(expression: &'a str) -> Option<Self> {
        let found = look_aheads(expression).into_iter().next();
        found.filter(|_| !has_alternatives(expression))
    }
}

/// Returns `true` if a `|` stands at the top level.
fn has_alternatives(expression: &str) -> bool {
    walk(expression).any(|(_, c, depth)| c == '|' && depth == 0)
}

/// Returns the look-ahead at the top level of an expression, in its order.
fn look_aheads(expression: &str) -> Vec<LookAhead<'_>> {
    let mut all = Vec::new();
    let mut begins: Option<(bool, usize)> = None;
    for (at, c, depth) in walk(expression) {
        match (c, depth, begins) {
            ('(', 0, _) => {
                begins = match expression.get(at..at + "(?!".len()) {
                    Some("(?!") => Some((true, at)),
                    Some("(?=") => Some((false, at)),
                    _ => None,
                };
            }
            (')', 0, Some((excludes, begin))) => {
                all.push(LookAhead {
                    excludes,
                    before: &expression[..begin],
                    inside: &expression[begin + "(?!".len()..at],
                    after: &expression[at + 1..],
                });
                begins = None;
            }
            _ => {}
        }
    }
    all
}

/// Characters that mean something to the structure, with their place and the number of groups around
/// them: neither escaped nor in a class.
fn walk(expression: &str) -> impl Iterator<Item = (usize, char, usize)> {
    let (mut depth, mut in_class, mut escaped) = (0usize, false, false);
    expression.char_indices().filter_map(move |(at, c)| {
        if std::mem::take(&mut escaped) {
            return None;
        }
        match c {
            '\\' => escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            _ if in_class => {}
            '(' => {
                depth += 1;
                return Some((at, c, depth - 1));
            }
            ')' => {
                depth = depth.saturating_sub(1);
                return Some((at, c, depth));
            }
            '|' => return Some((at, c, depth)),
            _ => {}
        }
        None
    })
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
        check("^a(?=b)|^c(?=d)", "", ("^a(?:b)|^c(?:d)", ""));
        // An exception that holds more often is silent more often.
        check("^a", "b(?=\\s|$)|c(?!d)", ("^a", "b(?:\\s|$)|c(?!d)"));
        check("^a", "b(?!d)", ("^a", "b"));
        // Not the same, or less: such a pattern is refused afterwards.
        for as_it_is in [
            "^a(?=b).", "^(a(?!b)|c)", "^a(?!b)|^c", "(?<!a)b", "^a\\(?!b",
        ] {
            check(as_it_is, "", (as_it_is, ""));
        }
    }
}
