//! Regular expressions of rules: checked before they are stored, and compiled.
//!
//! `regex_lite` matches in linear time and has no look-around. Models write look-around all the same
//! (`^npm\s+i(?!.*--dry-run)`). Such an expression gets at most [`STEPS`] steps, and counts as no match
//! beyond them. A bad pattern therefore loses a note, and never delays an agent.
//!
//! In a command, `^` is the beginning of a simple command or of the line. In content, it is the beginning of
//! any line.

use crate::model::{CallPart, CallPattern};

/// Maximum length of an expression, in bytes.
const LONGEST: usize = 2_000;
/// Maximum number of patterns of a rule.
pub(crate) const MOST: usize = 24;
/// Maximum size of a compiled expression, in bytes.
const LARGEST: usize = 1 << 18;
/// Maximum size of a part without look-around, in an expression with it.
const LARGEST_DELEGATE: usize = 1 << 20;
/// Maximum number of steps of a match that looks around: some milliseconds, and more than the
/// characters of the longest text.
const STEPS: usize = 250_000;
/// Beginnings of look-around.
const LOOKS: [&str; 4] = ["(?=", LOOK_AHEAD, "(?<=", "(?<!"];
/// Beginning of a look-ahead for what is absent.
const LOOK_AHEAD: &str = "(?!";

/// Texts of many kinds: an expression that matches all of them says nothing.
const ANYTHING: [&str; 8] = [
    "ls", "cat notes.txt", "echo hello world", "README.md", "src/main.rs", "/home/me/a/b.py",
    "let total = 1;", "make test 2>&1 | tail",
];

/// Reason to refuse a pattern, with the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct BadPattern {
    reason: String,
    /// Form to give instead.
    pub hint: &'static str,
}

impl BadPattern {
    fn new(reason: String, hint: &'static str) -> Self {
        Self { reason, hint }
    }

    fn too_large(reason: String) -> Self {
        let hint =
            "chains, wrappers, assignments and quotes are taken off first: `^npm\\b` is enough";
        Self::new(reason, hint)
    }

    fn too_many() -> Self {
        Self::too_large(format!("a rule has at most {MOST} patterns"))
    }
}

/// Checks the patterns of a rule.
pub fn checked(patterns: &[CallPattern]) -> Result<(), BadPattern> {
    if patterns.len() > MOST {
        return Err(BadPattern::too_many());
    }
    patterns
        .iter()
        .try_for_each(|pattern| Compiled::of(pattern).map(drop))
}

fn is_everything(regex: &Expression) -> bool {
    regex.is_match("") || ANYTHING.iter().all(|text| regex.is_match(text))
}

/// Expression that is ready to match.
#[derive(Debug)]
pub(crate) enum Expression {
    /// Matches in linear time.
    Linear(regex_lite::Regex),
    /// Looks around; matches in a bounded number of steps.
    LooksAround(fancy_regex::Regex),
}

impl Expression {
    /// Compiles an expression; the error is the message of the parser.
    fn of(on: CallPart, pattern: &str) -> Result<Self, String> {
        let multi_line = on == CallPart::Content;
        if LOOKS.iter().any(|look| pattern.contains(look)) {
            let mut builder = fancy_regex::RegexBuilder::new(pattern);
            builder.multi_line(multi_line).backtrack_limit(STEPS);
            let built = builder.delegate_size_limit(LARGEST_DELEGATE).build();
            return built
                .map(Self::LooksAround)
                .map_err(|error| error.to_string());
        }
        let mut builder = regex_lite::RegexBuilder::new(pattern);
        let built = builder.multi_line(multi_line).size_limit(LARGEST).build();
        built.map(Self::Linear).map_err(|error| error.to_string())
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        match self {
            Self::Linear(regex) => regex.is_match(text),
            Self::LooksAround(regex) => regex.is_match(text).unwrap_or(false),
        }
    }

    /// Returns the number of matches, up to the one that takes too many steps.
    pub(crate) fn count(&self, text: &str) -> usize {
        match self {
            Self::Linear(regex) => regex.find_iter(text).count(),
            Self::LooksAround(regex) => regex.find_iter(text).map_while(Result::ok).count(),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Linear(regex) => regex.as_str(),
            Self::LooksAround(regex) => regex.as_str(),
        }
    }
}

/// Pattern that is ready to match.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) on: CallPart,
    pub(crate) matches: Expression,
    pub(crate) unless: Option<Expression>,
    /// Expression that no command may begin with.
    pub(super) not_ahead: Option<Expression>,
    /// It looks for what is absent, beyond the end of a word.
    pub(super) wants_absent: bool,
    pub(crate) after: Option<Expression>,
    /// Places of new text; empty: everywhere.
    pub(crate) within: Vec<Expression>,
}

impl Compiled {
    /// Checks and compiles a pattern. One that cannot be compiled never matches.
    pub(super) fn of(pattern: &CallPattern) -> Result<Self, BadPattern> {
        let compiled = |on, text: &String| {
            if text.len() > LONGEST {
                let reason = format!("a pattern has at most {LONGEST} bytes");
                return Err(BadPattern::too_large(reason));
            }
            Expression::of(on, text).map_err(|reason| {
                let reason = format!("`{text}` is not a valid regular expression: {reason}");
                BadPattern::new(reason, "write it as for ripgrep: `^npm\\b`")
            })
        };
        let telling = |on, text: &String| {
            let expression = compiled(on, text)?;
            if is_everything(&expression) {
                let reason = format!("`{text}` matches every call");
                let hint = "begin with the program, as in `^npm\\b`";
                return Err(BadPattern::new(reason, hint));
            }
            Ok(expression)
        };
        // An exception that matches everything would rule out every match.
        let optional =
            |on, text: &String| (!text.is_empty()).then(|| telling(on, text)).transpose();
        let (on, within) = (pattern.on, &pattern.within);
        let matches = telling(on, &pattern.matches)?;
        if !within.is_empty() && on != CallPart::Content {
            let reason = "only new text has a place".to_owned();
            return Err(BadPattern::new(reason, "give `within` beside `content`"));
        }
        if within.len() > MOST {
            return Err(BadPattern::too_many());
        }
        let within = within.iter().map(|place| compiled(CallPart::Path, place));
        let not_ahead = leading_look_ahead(&pattern.matches);
        let not_ahead =
            not_ahead.and_then(|(absent, _)| Expression::of(on, &format!("^(?:{absent})")).ok());
        Ok(Self {
            on,
            matches,
            unless: optional(on, &pattern.unless)?,
            not_ahead,
            wants_absent: wants_absent(&pattern.matches),
            after: optional(CallPart::Command, &pattern.after)?,
            within: within.collect::<Result<_, _>>()?,
        })
    }
}

/// Returns the part of an expression that may not stand at its beginning (`^(?!part)rest`), and the
/// expression without it.
pub(crate) fn leading_look_ahead(pattern: &str) -> Option<(&str, String)> {
    let start = pattern.strip_prefix('^').unwrap_or(pattern);
    let begin = &pattern[..pattern.len() - start.len()];
    let inside = start.strip_prefix(LOOK_AHEAD)?;
    let end = end_of_group(inside)?;
    Some((&inside[..end], format!("{begin}{}", &inside[end + 1..])))
}

/// Returns the place of the parenthesis that closes a group, given the text behind its beginning.
pub(crate) fn end_of_group(inside: &str) -> Option<usize> {
    let (mut depth, mut in_class, mut is_escaped) = (1_usize, false, false);
    for (at, c) in inside.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' if !in_class => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => depth += 1,
            ')' if !in_class => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns `true` if an expression looks for what is absent. `git(?![\w-])` only ends a word.
fn wants_absent(pattern: &str) -> bool {
    let mut looks = pattern.split(LOOK_AHEAD).skip(1);
    looks.any(|inside| {
        let inside = &inside[..end_of_group(inside).unwrap_or(inside.len())];
        let is_class = inside.starts_with('[') && inside.find(']') == Some(inside.len() - 1);
        !is_class && inside.len() > 2
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(on: CallPart, matches: &str, unless: &str) -> CallPattern {
        CallPattern {
            on,
            matches: matches.to_owned(),
            unless: unless.to_owned(),
            ..CallPattern::default()
        }
    }

    #[test]
    fn patterns_without_sense_are_refused() {
        let check = |matches: &str, unless: &str, expected: Option<&str>| {
            let found = checked(&[pattern(CallPart::Command, matches, unless)]);
            let found = found.err().map(|error| error.to_string());
            let is_right = match (&found, expected) {
                (None, None) => true,
                (Some(found), Some(expected)) => found.contains(expected),
                _ => false,
            };
            assert!(is_right, "{matches} {unless}: {found:?}");
        };
        check(r"^npm\b", "", None);
        check(r"^git push\b", "--dry-run", None);
        check(r"\n", "", None);
        check("", "", Some("matches every call"));
        check(".*", "", Some("matches every call"));
        check("a?", "", Some("matches every call"));
        check(r"\S", "", Some("matches every call"));
        check(r"^npm\b", ".*", Some("matches every call"));
        check("(npm", "", Some("not a valid regular expression"));
        check("npm(?! ci)", "(?<!a)b(?=c)", None);
        check("(?=.*)", "", Some("matches every call"));
        check("npm(?! ci", "", Some("not a valid regular expression"));
        check(&"a".repeat(LONGEST + 1), "", Some("at most"));
        check(
            "(a{1000}){1000}",
            "",
            Some("not a valid regular expression"),
        );
        let placed = |on: CallPart, place: &str| {
            checked(&[CallPattern {
                within: vec![place.to_owned()],
                ..pattern(on, "x", "")
            }])
        };
        assert_eq!(placed(CallPart::Content, r"\.ts$"), Ok(()));
        assert!(placed(CallPart::Command, r"\.ts$").is_err());
        assert!(placed(CallPart::Content, "(").is_err());
        let many = vec![pattern(CallPart::Command, "^npm", ""); MOST + 1];
        assert_eq!(checked(&many), Err(BadPattern::too_many()));
    }

    #[test]
    fn look_around_is_matched_in_bounded_time() {
        let regex = |pattern: &str| Expression::of(CallPart::Content, pattern).unwrap();
        let print = regex(r"(?<![\w.])print\s*\(");
        assert_eq!(print.count("print(a)\nlog.print(b)\n  print (c)"), 2);
        assert!(print.is_match(&("x ".repeat(60_000) + "print(1)")));
        let start = std::time::Instant::now();
        let slow = regex("^(a|a)+(a|aa)+$(?!b)");
        assert!(!slow.is_match(&("a".repeat(5_000) + "c")));
        assert!(start.elapsed().as_secs() < 5);
    }
}
