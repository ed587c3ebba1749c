//! Exceptions that name an earlier command: "never push without the tests" as
//! `{"match": "^git push", "unless": "make test.*&&.*git push"}`.
//!
//! `unless` is compared with the matched command alone, so such an exception would never apply. Its commands
//! before the last one therefore become `after`: they must have succeeded in the session, or stand earlier in
//! the line. Several of them become several patterns, each with its own `after`. An exception that begins
//! with another program (`^make test`) counts as such a command, too.

use memctl_shell::{Layer, Word, layer};

use crate::model::CallPart;
use crate::rules::acting::patterns::{end_of_group, leading_look_ahead};

use super::heard::SeeArg;

/// Maximum number of patterns that one becomes.
const MOST: usize = 8;

/// Returns a pattern with its exceptions about earlier commands as conditions.
pub(super) fn with_conditions(see: SeeArg) -> Vec<SeeArg> {
    if see.part != CallPart::Command || !see.after.is_empty() {
        return vec![see];
    }
    let mut split = see.clone();
    if split.unless.is_empty()
        && let Some((absent, rest)) = leading_look_ahead(&see.matches)
    {
        (split.unless, split.matches) = (absent.to_owned(), rest);
    }
    let Some((unless, conditions)) = conditions(&split.unless, &split.matches) else {
        return vec![see];
    };
    let with = |after: String| SeeArg {
        after,
        unless: unless.clone(),
        ..split.clone()
    };
    conditions.into_iter().map(with).collect()
}

/// Returns what is left of an exception, and the commands of which each has to come before. `None` if it
/// speaks of none.
fn conditions<'u>(unless: &'u str, matches: &str) -> Option<(String, Vec<String>)> {
    let flags = unless.len() - unless.trim_start_matches("(?i)").len();
    let (flags, unless) = unless.split_at(flags);
    let own = words(matches);
    let mut left: Vec<&str> = Vec::new();
    // All commands of one alternative or all of another: one of each, in every combination.
    let mut all: Vec<Vec<&str>> = vec![Vec::new()];
    for parts in split(unless, '|', &|_| 0) {
        let commands = match split(parts, '\0', &separator)[..] {
            [part] if is_other_program(part, matches) => vec![part],
            [ref before @ .., last] => commands_before(before, last, &own),
            [] => Vec::new(),
        };
        if commands.is_empty() {
            left.push(parts);
            continue;
        }
        let with = |one: &Vec<&'u str>| {
            let with = |command: &&'u str| [&one[..], &[*command]].concat();
            commands.iter().map(with).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(with).collect();
    }
    if all.len() > MOST || all[0].is_empty() {
        return None;
    }
    let joined = |texts: &[&str]| format!("{flags}{}", texts.join("|"));
    let mut conditions: Vec<String> = all.iter().map(|one| joined(one)).collect();
    conditions.sort();
    conditions.dedup();
    let left = (!left.is_empty()).then(|| joined(&left));
    Some((left.unwrap_or_default(), conditions))
}

/// Returns the commands before the last part; none unless that one is about the command of the pattern and they are not.
fn commands_before<'u>(before: &[&'u str], last: &str, own: &[String]) -> Vec<&'u str> {
    let last = words(last);
    let is_own = |word: &String| own.contains(word);
    let is_last = last.is_empty() || last.iter().any(is_own);
    let mut before: Vec<&str> = before.iter().copied().map(trimmed).collect();
    before.retain(|part| !part.is_empty());
    let are_others = before.iter().all(|part| !words(part).iter().all(is_own));
    before.retain(|_| is_last && are_others);
    before
}

/// Returns `true` if both expressions begin with a program, and not with the same one: no command matches both.
fn is_other_program(exception: &str, matches: &str) -> bool {
    let program = |text: &'_ str| {
        let text = text.strip_prefix('^')?;
        let end = text.find(|c: char| !c.is_alphanumeric() && !"-_".contains(c));
        let (name, rest) = text.split_at(end.unwrap_or(text.len()));
        let ends = rest.is_empty() || [" ", r"\b", r"\s"].iter().any(|end| rest.starts_with(end));
        (ends && !name.is_empty()).then(|| name.to_owned())
    };
    let (Some(other), Some(own)) = (program(exception), program(matches)) else {
        return false;
    };
    let is_other = other != own;
    let word = |text: String| Word {
        text,
        ..Word::default()
    };
    // A program that runs another one may come before it.
    let words = [other, "a".to_owned(), "b".to_owned()].map(word);
    is_other && layer(&words) == Layer::Program
}

/// Words of an expression.
fn words(expression: &str) -> Vec<String> {
    let escapes = [r"\b", r"\s", r"\S", r"\w", r"\d"];
    let plain = escapes.iter().fold(expression.to_owned(), |text, escape| {
        text.replace(escape, " ")
    });
    let words = plain.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| word.chars().count() > 1);
    words.map(str::to_lowercase).collect()
}

/// Removes what matches anything from both ends.
fn trimmed(mut part: &str) -> &str {
    const ANY: [&str; 8] = [".*?", ".*", ".+", r"\s*", r"\s+", r"\s", " ", "^"];
    loop {
        let before = part.len();
        for any in ANY {
            part = part.strip_prefix(any).unwrap_or(part);
            part = part.strip_suffix(any).unwrap_or(part);
        }
        if part.len() == before {
            return part;
        }
    }
}

/// Splits an expression, outside of its groups and classes, at a character and where a separator has a length.
fn split<'t>(text: &'t str, at: char, separator: &dyn Fn(&str) -> usize) -> Vec<&'t str> {
    let (mut parts, mut start, mut place) = (Vec::new(), 0, 0);
    while let Some(c) = text[place..].chars().next() {
        let rest = &text[place..];
        let behind = &rest[c.len_utf8()..];
        let length = if c == at { 1 } else { separator(rest) };
        if length > 0 {
            parts.push(&text[start..place]);
            start = place + length;
        }
        place += match c {
            _ if length > 0 => length,
            '\\' => 1 + behind.chars().next().map_or(0, char::len_utf8),
            '(' => end_of_group(behind).map_or(1, |end| end + 2),
            // A `]` at the beginning of a class is a member of it.
            '[' => behind
                .get(1..)
                .and_then(|rest| rest.find(']'))
                .map_or(1, |end| end + 3),
            c => c.len_utf8(),
        };
    }
    parts.push(&text[start..]);
    parts
}

/// Length of the separator of two commands at the beginning of an expression; 0 without one.
fn separator(rest: &str) -> usize {
    const SIGNS: [&str; 9] = [
        "&&", r"\&\&", r"\;", ";", r"\n", r"[\s\S]", r"[\S\s]", "(?s:.)", "(?s:.*)",
    ];
    let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
    let class = rest
        .strip_prefix('[')
        .and_then(|class| class.split_once(']'));
    let class =
        class.filter(|(class, _)| class.trim_matches([';', '&', '|', '\\', 'n']).is_empty());
    let length = sign.map_or(0, |sign| sign.len());
    let length = length.max(class.map_or(0, |(class, _)| class.len() + 2));
    let behind = &rest[length..];
    let quantifier = behind.len() - behind.trim_start_matches(['*', '+', '?']).len();
    if length > 0 { length + quantifier } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(matches: &str, unless: &str, expected: &[(&str, &str, &str)]) {
        let see = SeeArg {
            matches: matches.to_owned(),
            unless: unless.to_owned(),
            ..SeeArg::default()
        };
        let found = with_conditions(see);
        let found: Vec<(&str, &str, &str)> = found
            .iter()
            .map(|one| (&*one.matches, &*one.unless, &*one.after))
            .collect();
        assert_eq!(found, expected, "{matches} unless {unless}");
    }

    #[test]
    fn an_exception_about_an_earlier_command_is_a_condition() {
        let push = "^git push";
        check(push, "make test.*&&.*git push", &[(push, "", "make test")]);
        check(
            push,
            r"make test\s*[;&]+\s*git\s+push",
            &[(push, "", "make test")],
        );
        check(
            push,
            r"(make|just) test[\s\S]*git\s+push",
            &[(push, "", "(make|just) test")],
        );
        check(push, "make test &&", &[(push, "", "make test")]);
        check(push, "(?i)make test.*&&", &[(push, "", "(?i)make test")]);
        check(push, r"^make\s+test\b", &[(push, "", r"^make\s+test\b")]);
        check(
            push,
            "^make test|--dry-run",
            &[(push, "--dry-run", "^make test")],
        );
        check(
            push,
            "--dry-run|make test && git push",
            &[(push, "--dry-run", "make test")],
        );
        // Each of two commands has to come before.
        check(
            push,
            r"make lint\b.*&&.*make test\b.*&&.*git push",
            &[(push, "", r"make lint\b"), (push, "", r"make test\b")],
        );
        // Either the one or the other.
        check(
            push,
            "make test && git push|just test && git push",
            &[(push, "", "make test|just test")],
        );
        check(
            r"^(?!.*make test.*&&).*git push",
            "",
            &[(r"^.*git push", "", "make test")],
        );
    }

    #[test]
    fn other_exceptions_stay() {
        for (matches, unless) in [
            ("^git push", "--dry-run"),
            ("^git push", "^git push --dry-run"),
            ("^apt install", "^sudo apt"),
            ("^apt install", r"^timeout\b"),
            (r"\bprod\b", "^kubectl get"),
            ("^git push", r"git push[\s\S]*--dry-run"),
            ("^git commit", "git commit.*&& git push"),
            ("^git push", "(make test && )?git push"),
            ("^git push", r"echo [^;&|]*x"),
            (r"^npm i(?!.*--dry-run)", ""),
            (r"^(?!sudo )apt install", ""),
        ] {
            check(matches, unless, &[(matches, unless, "")]);
        }
    }
}
