//! Regular expressions of rules: checked before they are stored, compiled, and matched.
//!
//! `regex_lite` matches in linear time. It has no look-around, which models write all the same
//! (`^npm\s+i(?!.*--dry-run)`): such an expression is tried for at most [`STEPS`] steps, and matches
//! nothing if they do not suffice. So a bad pattern loses a note, and never the time of an agent.
//!
//! In a command `^` is the beginning of a simple command or of the line; in content, the beginning of
//! any line.

use crate::model::{CallPart, CallPattern};

/// Maximum length of an expression, in bytes.
const LONGEST: usize = 2_000;
/// Maximum number of patterns of a rule.
const MOST: usize = 24;
/// Maximum size of a compiled expression, in bytes.
const LARGEST: usize = 1 << 18;
/// Maximum size of a part without look-around, in an expression with it.
const LARGEST_DELEGATE: usize = 1 << 20;
/// Maximum number of steps of a match that looks around: some milliseconds, and more than the
/// characters of the longest text.
const STEPS: usize = 250_000;
/// Beginnings of look-around.
const LOOKS: [&str; 4] = ["(?=", "(?!", "(?<=", "(?<!"];

/// Texts of many kinds: an expression that matches all of them says nothing.
const ANYTHING: [&str; 8] = [
    "ls", "cat notes.txt", "echo hello world", "README.md", "src/main.rs", "/home/me/a/b.py",
    "let total = 1;", "make test 2>&1 | tail",
];

/// Reason to refuse a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPattern {
    /// It is not a valid regular expression.
    #[error("`{pattern}` is not a valid regular expression: {reason}")]
    Syntax {
        /// The expression.
        pattern: String,
        /// Message of the parser.
        reason: String,
    },
    /// It is too long.
    #[error("a pattern has at most {LONGEST} bytes")]
    Long,
    /// There are too many of them.
    #[error("a rule has at most {MOST} patterns")]
    Many,
    /// A place of something else than new text.
    #[error("only new text has a place")]
    Place,
    /// It matches every call.
    #[error("`{pattern}` matches every call")]
    Everything {
        /// The expression.
        pattern: String,
    },
}

impl BadPattern {
    /// Returns the way out.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Syntax { .. } => "write it as for ripgrep: `^npm\\b`",
            Self::Long | Self::Many => {
                "chains, wrappers, assignments and quotes are taken off first: `^npm\\b` is enough"
            }
            Self::Place => "give `within` beside `content`",
            Self::Everything { .. } => "begin with the program, as in `^npm\\b`",
        }
    }
}

/// Checks the patterns of a rule.
pub fn checked(patterns: &[CallPattern]) -> Result<(), BadPattern> {
    if patterns.len() > MOST {
        return Err(BadPattern::Many);
    }
    for pattern in patterns {
        let own = checked_one(pattern.on, &pattern.matches)?;
        if is_everything(&own) {
            return Err(BadPattern::Everything {
                pattern: pattern.matches.clone(),
            });
        }
        if !pattern.within.is_empty() && pattern.on != CallPart::Content {
            return Err(BadPattern::Place);
        }
        if pattern.within.len() > MOST {
            return Err(BadPattern::Many);
        }
        for place in &pattern.within {
            checked_one(CallPart::Path, place)?;
        }
        for other in [&pattern.unless, &pattern.after] {
            if !other.is_empty() {
                let other_one = checked_one(pattern.on, other)?;
                // It would rule out every match.
                if is_everything(&other_one) {
                    return Err(BadPattern::Everything {
                        pattern: other.clone(),
                    });
                }
            }
        }
    }
    Ok(())
}

fn checked_one(on: CallPart, pattern: &str) -> Result<Expression, BadPattern> {
    if pattern.len() > LONGEST {
        return Err(BadPattern::Long);
    }
    Expression::of(on, pattern).map_err(|reason| BadPattern::Syntax {
        pattern: pattern.to_owned(),
        reason,
    })
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
    pub(crate) after: Option<Expression>,
    /// Places of new text; empty: everywhere.
    pub(crate) within: Vec<Expression>,
}

impl Compiled {
    /// Compiles a pattern; `None` if it cannot be: such a pattern never matches.
    pub(crate) fn of(pattern: &CallPattern) -> Option<Self> {
        checked(std::slice::from_ref(pattern)).ok()?;
        let optional = |text: &str, on| match text {
            "" => Some(None),
            text => Expression::of(on, text).ok().map(Some),
        };
        Some(Self {
            on: pattern.on,
            matches: Expression::of(pattern.on, &pattern.matches).ok()?,
            unless: optional(&pattern.unless, pattern.on)?,
            after: optional(&pattern.after, CallPart::Command)?,
            within: {
                let places = pattern.within.iter();
                let places = places.map(|place| Expression::of(CallPart::Path, place).ok());
                places.collect::<Option<_>>()?
            },
        })
    }
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
        assert_eq!(placed(CallPart::Command, r"\.ts$"), Err(BadPattern::Place));
        assert!(placed(CallPart::Content, "(").is_err());
        let many = vec![pattern(CallPart::Command, "^npm", ""); MOST + 1];
        assert_eq!(checked(&many), Err(BadPattern::Many));
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
