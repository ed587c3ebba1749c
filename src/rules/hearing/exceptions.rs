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
    let end = unless.strip_prefix("(?").and_then(|rest| rest.find(')'));
    let is_flag = |end: &usize| {
        unless[2..2 + end]
            .bytes()
            .all(|byte| byte.is_ascii_lowercase())
    };
    let (flags, unless) = unless.split_at(end.filter(is_flag).map_or(0, |end| end + 3));
    let own = words(matches);
    let mut left: Vec<&str> = Vec::new();
    let mut earlier: Vec<Vec<&str>> = Vec::new();
    for (text, parts) in alternatives(unless)? {
        let before = match parts[..] {
            [part] if is_other_program(part, matches) => Some(vec![part]),
            _ => commands_before(parts, &own),
        };
        match before {
            Some(commands) => earlier.push(commands),
            None => left.push(text),
        }
    }
    if earlier.is_empty() {
        return None;
    }
    // All commands of one alternative or all of another: one of each, in every combination.
    let mut all: Vec<Vec<&str>> = vec![Vec::new()];
    for commands in earlier {
        let with = |one: &Vec<&'u str>| {
            let with = |command: &&'u str| [&one[..], &[*command]].concat();
            commands.iter().map(with).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(with).collect();
        if all.len() > MOST {
            return None;
        }
    }
    let joined = |texts: &[&str]| format!("{flags}{}", texts.join("|"));
    let mut conditions: Vec<String> = all.iter().map(|one| joined(one)).collect();
    conditions.sort();
    conditions.dedup();
    let left = (!left.is_empty()).then(|| joined(&left));
    Some((left.unwrap_or_default(), conditions))
}

/// Returns the commands before the last part, if that one is about the command of the pattern and they are not.
fn commands_before<'u>(mut parts: Vec<&'u str>, own: &[String]) -> Option<Vec<&'u str>> {
    let last = words(parts.pop()?);
    let is_own = |word: &String| own.contains(word);
    let mut before: Vec<&str> = parts.into_iter().map(trimmed).collect();
    before.retain(|part| !part.is_empty());
    let is_last = last.is_empty() || last.iter().any(is_own);
    let are_others = before.iter().all(|part| !words(part).iter().all(is_own));
    (is_last && are_others && !before.is_empty()).then_some(before)
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
    let mut plain = String::new();
    let mut all = expression.chars();
    while let Some(c) = all.next() {
        match c {
            '\\' => plain.push(all.next().filter(|c| !c.is_alphanumeric()).unwrap_or(' ')),
            c => plain.push(c),
        }
    }
    let words = plain.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| word.chars().count() > 1);
    words.map(str::to_lowercase).collect()
}

/// Removes what matches anything from both ends.
fn trimmed(mut part: &str) -> &str {
    const ANY: [&str; 7] = [".*?", ".*", ".+", r"\s*", r"\s+", r"\s", " "];
    loop {
        let before = part.len();
        for any in ANY {
            part = part.strip_prefix(any).unwrap_or(part);
            part = part.strip_suffix(any).unwrap_or(part);
        }
        part = part.strip_prefix('^').unwrap_or(part);
        if part.len() == before {
            return part;
        }
    }
}

/// Reads an expression as its alternatives, each as written and as parts that a chain or a gap separates.
fn alternatives(text: &str) -> Option<Vec<(&str, Vec<&str>)>> {
    let mut all = Vec::new();
    let mut parts = Vec::new();
    // Beginnings of the alternative and of its last part.
    let (mut alternative, mut part, mut at) = (0, 0, 0);
    while at < text.len() {
        let rest = &text[at..];
        let length = separator(rest);
        if length > 0 {
            parts.push(&text[part..at]);
            part = at + length;
        } else if rest.starts_with('|') {
            parts.push(&text[part..at]);
            all.push((&text[alternative..at], std::mem::take(&mut parts)));
            (alternative, part) = (at + 1, at + 1);
        }
        at += if length > 0 { length } else { atom(rest)? };
    }
    parts.push(&text[part..]);
    all.push((&text[alternative..], parts));
    Some(all)
}

/// Length of the separator of two commands at the beginning of an expression; 0 without one.
fn separator(rest: &str) -> usize {
    let quantifier = |length: usize| {
        let rest = &rest[length..];
        length + rest.len() - rest.trim_start_matches(['*', '+', '?']).len()
    };
    for text in ["&&", r"\&\&", r"\;", ";", r"\n"] {
        if rest.starts_with(text) {
            return quantifier(text.len());
        }
    }
    for gap in [
        r"[\s\S]", r"[\S\s]", r"[\w\W]", r"[\d\D]", "(?s:.)", "(?s:.*)", "(?s:.*?)",
    ] {
        if rest.starts_with(gap) {
            return quantifier(gap.len());
        }
    }
    match rest
        .strip_prefix('[')
        .and_then(|class| class.split_once(']'))
    {
        Some((class, _))
            if !class.is_empty() && class.trim_matches([';', '&', '|', '\\', 'n']).is_empty() =>
        {
            quantifier(class.len() + 2)
        }
        _ => 0,
    }
}

/// Length of the first atom: an escape, a class, a group or a character.
fn atom(rest: &str) -> Option<usize> {
    let first = rest.chars().next()?;
    match first {
        '\\' => Some(1 + rest[1..].chars().next().map_or(0, char::len_utf8)),
        // A `]` at the beginning of a class is a member of it.
        '[' => {
            let inside = rest[1..].trim_start_matches('^').trim_start_matches(']');
            let begin = rest.len() - inside.len();
            let mut is_escaped = false;
            let end = inside.find(|c| {
                let ends = c == ']' && !is_escaped;
                is_escaped = c == '\\' && !is_escaped;
                ends
            });
            Some(begin + end? + 1)
        }
        '(' => Some(end_of_group(&rest[1..])? + 2),
        _ => Some(first.len_utf8()),
    }
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
