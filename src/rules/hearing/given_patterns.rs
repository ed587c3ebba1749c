//! Patterns as an agent gives them, checked: what can act is stored, and the rest is named.

use super::exceptions::with_conditions;
use super::heard::{PatternArg, SeeArg, refused};
use crate::model::{CallPart, CallPattern};
use crate::rules::acting::patterns::MOST;
use crate::rules::checked;
use crate::store::workspace::Error;

/// Checks the patterns that an agent gave. Returns those that can act, and the reasons why others are left out:
/// what a person said is not lost over a pattern that cannot act.
///
/// `paths` beside `content`, or beside `see` over content, say where the text may not stand: the two are one
/// condition, and neither acts alone. Other patterns of `see` stand for themselves.
pub(super) fn patterns(
    commands: Vec<PatternArg>,
    paths: Vec<PatternArg>,
    content: Vec<PatternArg>,
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
        if places.iter().any(has_exception) {
            return Err(refused(
                "paths",
                "has an exception beside `content`",
                "give it with the content: its `unless` is tried with the path, too",
            ));
        }
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
        let patterns = with_conditions(see).into_iter().map(|see| CallPattern {
            on: see.part,
            matches: see.matches,
            unless: see.unless,
            after: see.after,
            within: Vec::new(),
        });
        let patterns: Vec<CallPattern> = patterns.collect();
        match checked(&patterns) {
            Ok(()) => acting.extend(patterns),
            Err(bad) => left_out.push(format!(
                "a pattern of `{field}` is left out: {bad}; {}",
                bad.hint
            )),
        }
    }
    Ok(acting)
}

/// Patterns of a field over one part of a call, in their full form.
fn of_part(patterns: Vec<PatternArg>, part: CallPart) -> Vec<SeeArg> {
    let full = patterns.into_iter().map(|one| match one {
        PatternArg::Plain(matches) => SeeArg {
            part,
            matches,
            ..SeeArg::default()
        },
        PatternArg::Full(see) => SeeArg { part, ..see },
    });
    full.collect()
}

fn has_exception(pattern: &CallPattern) -> bool {
    !pattern.unless.is_empty() || !pattern.after.is_empty()
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
            r#"{"rule": "r", "quote": "q", "commands": ["^npm\\b", {"match": "^a", "after": "^b"}, "^a"],
                "see": [{"in": "content", "match": "y", "unless": "z"}]}"#,
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
                (CallPart::Command, "^a", "", "^b"),
                (CallPart::Content, "y", "z", ""),
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
            r#""commands": ["^a"], "paths": ["p", "q"], "content": ["x", {"match": "y", "unless": "z"}],
               "see": [{"in": "path", "match": "s"}]"#,
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
        let error = read(
            r#"{"rule": "r", "quote": "q", "paths": [{"match": "p", "unless": "u"}], "content": ["x"]}"#,
        );
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("`paths` has an exception"), "{error}");
    }
}
