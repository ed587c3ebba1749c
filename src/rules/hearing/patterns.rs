//! Patterns as an agent gives them, checked: what can act is stored, and the rest is named.
//!
//! An exception may name an earlier command: "never push without the tests" as
//! `{"match": "^git push", "unless": "make test.*&&.*git push"}`. `unless` is compared with the matched command alone, so
//! such an exception would never apply. The command before it therefore becomes `after`: it must have succeeded in the
//! session, or stand earlier in the line. An exception that begins with another program (`^make test`) counts as such
//! a command, too.

use memctl_shell::{Layer, Word, layer};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::model::{CallPart, CallPattern};
use crate::rules::acting::patterns::{MOST, end_of_group, leading_look_ahead};
use crate::rules::checked;
use crate::store::workspace::Error;

// Pattern with exceptions.
#[expect(missing_docs, reason = "a comment would cost tokens in the schema of the tool")]
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SeeArg {
    /// `command`, `path` or `content`
    #[schemars(with = "String")]
    #[serde(rename = "in", alias = "on")]
    pub part: CallPart,
    #[serde(rename = "match")]
    pub matches: String,
    pub unless: String,
    pub after: String,
}

/// Returns the error for a field that has to be corrected, with the way out.
pub(super) fn refused(
    field: &'static str,
    reason: impl Into<String>,
    hint: impl Into<String>,
) -> Error {
    Error::input(format!("`{field}` {}", reason.into()), hint)
}

/// Checks the patterns that an agent gave. Returns those that can act, and the reasons why others are left out:
/// what a person said is not lost over a pattern that cannot act.
///
/// `paths` beside `content`, or beside `see` over content, say where the text may not stand: the two are one
/// condition, and neither acts alone. Other patterns of `see` stand for themselves.
pub(super) fn patterns(
    commands: Vec<String>,
    paths: Vec<String>,
    content: Vec<String>,
    see: Vec<SeeArg>,
) -> Result<(Vec<CallPattern>, Vec<String>), Error> {
    let mut left_out = Vec::new();
    let is_content = |one: &SeeArg| one.part == CallPart::Content;
    let (see_content, see): (Vec<SeeArg>, Vec<SeeArg>) = see.into_iter().partition(is_content);
    let has_content = !content.is_empty() || !see_content.is_empty();
    let is_placed = has_content && !paths.is_empty();
    let mut acting = |field, all| acting(field, all, &mut left_out);
    let mut all = acting("commands", of_part(commands, CallPart::Command))?;
    let mut places = acting("paths", of_part(paths, CallPart::Path))?;
    let mut content = acting("content", of_part(content, CallPart::Content))?;
    content.extend(acting("see", see_content)?);
    let see = acting("see", see)?;
    if is_placed {
        if places.is_empty() != content.is_empty() {
            // If one of the two cannot act, the other would speak where it should not.
            let reason = "`paths` and `content` say which text in which files: both are left out";
            left_out.push(reason.to_owned());
            content.clear();
        }
        let within: Vec<String> = places.drain(..).map(|place| place.matches).collect();
        for text in &mut content {
            text.within.clone_from(&within);
        }
    }
    all.extend(places.into_iter().chain(content).chain(see));
    // Without its exceptions, the expression would speak at calls that are fine.
    let mut excepted = all.clone();
    excepted.retain(has_exception);
    all.retain(|one| {
        let is_same = |other: &CallPattern| (other.on, &other.matches) == (one.on, &one.matches);
        has_exception(one) || !excepted.iter().any(is_same)
    });
    if all.len() > MOST {
        let hint = "join them with `|`: `^(npm|yarn)\\b`";
        return Err(refused(
            "see",
            format!("has more than {MOST} patterns"),
            hint,
        ));
    }
    Ok((all, left_out))
}

/// Returns the patterns of a field that can act.
fn acting(
    field: &'static str,
    all: Vec<SeeArg>,
    left_out: &mut Vec<String>,
) -> Result<Vec<CallPattern>, Error> {
    let mut acting = Vec::new();
    for see in all {
        if see.matches.trim().is_empty() {
            let hint = "each is a regular expression, such as `^git push\\b`";
            return Err(refused(field, "has an empty pattern", hint));
        }
        let is_secret = |text: &&String| memctl_redact::redact(text).text != **text;
        if [&see.matches, &see.unless, &see.after]
            .iter()
            .any(is_secret)
        {
            let hint = "match what stands before it, such as `TOKEN=`";
            return Err(refused(field, "has a secret in a pattern", hint));
        }
        let see = with_condition(see);
        let pattern = CallPattern {
            on: see.part,
            matches: see.matches,
            unless: see.unless,
            after: see.after,
            within: Vec::new(),
        };
        match checked(std::slice::from_ref(&pattern)) {
            Ok(()) => acting.push(pattern),
            Err(bad) => left_out.push(format!(
                "a pattern of `{field}` is left out: {bad}; {}",
                bad.hint
            )),
        }
    }
    Ok(acting)
}

/// Patterns of a field over one part of a call, in their full form.
fn of_part(patterns: Vec<String>, part: CallPart) -> Vec<SeeArg> {
    let full = patterns.into_iter().map(|matches| SeeArg {
        part,
        matches,
        ..SeeArg::default()
    });
    full.collect()
}

fn has_exception(pattern: &CallPattern) -> bool {
    !pattern.unless.is_empty() || !pattern.after.is_empty()
}

/// Returns a pattern with an exception about an earlier command as its condition.
fn with_condition(see: SeeArg) -> SeeArg {
    if see.part != CallPart::Command || !see.after.is_empty() {
        return see;
    }
    let mut split = see.clone();
    if split.unless.is_empty()
        && let Some((absent, rest)) = leading_look_ahead(&see.matches)
    {
        (split.unless, split.matches) = (absent.to_owned(), rest);
    }
    match condition(&split.unless, &split.matches) {
        Some((unless, after)) => SeeArg {
            unless,
            after,
            ..split
        },
        None => see,
    }
}

/// Returns what is left of an exception, and the command that has to come before; `None` if it speaks of none.
fn condition(exception: &str, matches: &str) -> Option<(String, String)> {
    let flags = exception.len() - exception.trim_start_matches("(?i)").len();
    let (flags, exception) = exception.split_at(flags);
    let own = words(matches);
    let (mut left, mut before) = (Vec::new(), Vec::new());
    for alternative in split(exception, '|', &|_| 0) {
        let command = match split(alternative, '\0', &separator)[..] {
            [part] => Some(part).filter(|part| is_other_program(part, matches)),
            [.., earlier, last] => command_before(earlier, last, &own),
            [] => None,
        };
        match command {
            Some(command) => before.push(command),
            None => left.push(alternative),
        }
    }
    let joined = |texts: &[&str]| format!("{flags}{}", texts.join("|"));
    let unless = (!left.is_empty()).then(|| joined(&left));
    (!before.is_empty()).then(|| (unless.unwrap_or_default(), joined(&before)))
}

/// Returns the command before the last part, if that one is about the command of the pattern and it is not.
fn command_before<'u>(earlier: &'u str, last: &str, own: &[String]) -> Option<&'u str> {
    let last = words(last);
    let is_own = |word: &String| own.contains(word);
    let is_last = last.is_empty() || last.iter().any(is_own);
    let command = Some(trimmed(earlier)).filter(|command| is_last && !command.is_empty());
    command.filter(|command| !words(command).iter().all(is_own))
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
    use crate::rules::hearing::heard::Heard;

    fn read(json: &str) -> Result<Heard, Error> {
        Heard::of(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn a_rule_is_heard_without_the_patterns_that_cannot_act() {
        let heard = read(
            r#"{"rule": "r", "quote": "q", "commands": ["^npm i(?!.*--dry-run)", ".*", "("]}"#,
        );
        let heard = heard.unwrap();
        assert_eq!(heard.seen_by.len(), 1);
        assert_eq!(heard.left_out.len(), 2);
        assert!(
            heard.left_out[0].contains("matches every call"),
            "{heard:?}"
        );
    }

    #[test]
    fn patterns_have_a_short_and_a_full_form() {
        let heard = read(
            r#"{"rule": "r", "quote": "q", "commands": ["^npm\\b", "^a"],
                "see": [{"match": "^a", "after": "^b"}, {"in": "content", "match": "y", "unless": "z"}]}"#,
        );
        let seen: Vec<_> = heard.unwrap().seen_by;
        let found: Vec<_> = seen
            .iter()
            .map(|one| (one.on, &*one.matches, &*one.unless, &*one.after))
            .collect();
        assert_eq!(
            found,
            [
                (CallPart::Command, r"^npm\b", "", ""),
                (CallPart::Content, "y", "z", ""),
                (CallPart::Command, "^a", "", "^b"),
            ]
        );
    }

    #[test]
    fn paths_beside_content_are_its_place() {
        let check = |json: &str, expected: &[(CallPart, &str, &[&str])], left_out: usize| {
            let heard = read(&format!(r#"{{"rule": "r", "quote": "q", {json}}}"#)).unwrap();
            let found: Vec<(CallPart, &str, Vec<&str>)> = heard
                .seen_by
                .iter()
                .map(|one| {
                    let within = one.within.iter().map(String::as_str).collect();
                    (one.on, one.matches.as_str(), within)
                })
                .collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|(on, matches, within)| (*on, *matches, within.to_vec()))
                .collect();
            assert_eq!(found, expected, "{json}");
            assert_eq!(heard.left_out.len(), left_out, "{:?}", heard.left_out);
        };
        let (command, path, content) = (CallPart::Command, CallPart::Path, CallPart::Content);
        check(
            r#""commands": ["^a"], "paths": ["p", "q"], "content": ["x"],
               "see": [{"in": "path", "match": "s"}, {"in": "content", "match": "y", "unless": "z"}]"#,
            &[
                (command, "^a", &[]),
                (content, "x", &["p", "q"]),
                (content, "y", &["p", "q"]),
                (path, "s", &[]),
            ],
            0,
        );
        check(r#""paths": ["p"]"#, &[(path, "p", &[])], 0);
        check(r#""content": ["x"]"#, &[(content, "x", &[])], 0);
        // Of one condition, nothing acts alone.
        check(
            r#""commands": ["^a"], "paths": ["("], "content": ["x"]"#,
            &[(command, "^a", &[])],
            2,
        );
        check(r#""paths": ["p"], "content": ["("]"#, &[], 2);
        check(
            r#""paths": ["p"], "see": [{"in": "content", "match": "x", "unless": "u"}, {"match": "^a"}]"#,
            &[(content, "x", &["p"]), (command, "^a", &[])],
            0,
        );
        check(
            r#""paths": ["(", "p"], "content": ["x"]"#,
            &[(content, "x", &["p"])],
            1,
        );
    }

    fn check_condition(matches: &str, unless: &str, expected: (&str, &str, &str)) {
        let see = SeeArg {
            matches: matches.to_owned(),
            unless: unless.to_owned(),
            ..SeeArg::default()
        };
        let found = with_condition(see);
        let found = (&*found.matches, &*found.unless, &*found.after);
        assert_eq!(found, expected, "{matches} unless {unless}");
    }

    #[test]
    fn an_exception_about_an_earlier_command_is_a_condition() {
        let push = "^git push";
        check_condition(push, "make test.*&&.*git push", (push, "", "make test"));
        check_condition(
            push,
            r"make test\s*[;&]+\s*git\s+push",
            (push, "", "make test"),
        );
        check_condition(
            push,
            r"(make|just) test[\s\S]*git\s+push",
            (push, "", "(make|just) test"),
        );
        check_condition(push, "make test &&", (push, "", "make test"));
        check_condition(push, "(?i)make test.*&&", (push, "", "(?i)make test"));
        check_condition(push, r"^make\s+test\b", (push, "", r"^make\s+test\b"));
        check_condition(
            push,
            "^make test|--dry-run",
            (push, "--dry-run", "^make test"),
        );
        check_condition(
            push,
            "--dry-run|make test && git push",
            (push, "--dry-run", "make test"),
        );
        // Of several commands the last one has to come before.
        check_condition(
            push,
            r"make lint\b.*&&.*make test\b.*&&.*git push",
            (push, "", r"make test\b"),
        );
        // Either the one or the other.
        check_condition(
            push,
            "make test && git push|just test && git push",
            (push, "", "make test|just test"),
        );
        check_condition(
            r"^(?!.*make test.*&&).*git push",
            "",
            (r"^.*git push", "", "make test"),
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
            check_condition(matches, unless, (matches, unless, ""));
        }
    }
}
