//! Regular expressions of rules: checked before they are stored, compiled, and matched.
//!
//! `regex_lite` matches in linear time, and has no look-around. In a command `^` is the beginning of
//! a simple command or of the line; in content, the beginning of any line.

use regex_lite::{Regex, RegexBuilder};

use crate::model::{CallPart, CallPattern};

/// Maximum length of an expression, in bytes.
const LONGEST: usize = 2_000;
/// Maximum number of patterns of a rule.
const MOST: usize = 24;
/// Maximum size of a compiled expression, in bytes.
const LARGEST: usize = 1 << 18;

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
    /// It looks around, which takes more than linear time.
    #[error("`{pattern}` looks around (`(?=`, `(?!`, `(?<`)")]
    LooksAround {
        /// The expression.
        pattern: String,
    },
    /// It is too long.
    #[error("a pattern has at most {LONGEST} bytes")]
    Long,
    /// There are too many of them.
    #[error("a rule has at most {MOST} patterns")]
    Many,
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
            Self::LooksAround { .. } => "write what rules a match out into `unless`",
            Self::Long | Self::Many => {
                "chains, wrappers, assignments and quotes are taken off first: `^npm\\b` is enough"
            }
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

fn checked_one(on: CallPart, pattern: &str) -> Result<Regex, BadPattern> {
    if pattern.len() > LONGEST {
        return Err(BadPattern::Long);
    }
    let looks = ["(?=", "(?!", "(?<=", "(?<!"];
    if looks.iter().any(|look| pattern.contains(look)) {
        return Err(BadPattern::LooksAround {
            pattern: pattern.to_owned(),
        });
    }
    build(on, pattern).map_err(|error| BadPattern::Syntax {
        pattern: pattern.to_owned(),
        reason: error.to_string(),
    })
}

fn is_everything(regex: &Regex) -> bool {
    regex.is_match("") || ANYTHING.iter().all(|text| regex.is_match(text))
}

fn build(on: CallPart, pattern: &str) -> Result<Regex, regex_lite::Error> {
    RegexBuilder::new(pattern)
        .multi_line(on == CallPart::Content)
        .size_limit(LARGEST)
        .build()
}

/// Pattern that is ready to match.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) on: CallPart,
    pub(crate) matches: Regex,
    pub(crate) unless: Option<Regex>,
    pub(crate) after: Option<Regex>,
}

impl Compiled {
    /// Compiles a pattern; `None` if it cannot be: such a pattern never matches.
    pub(crate) fn of(pattern: &CallPattern) -> Option<Self> {
        checked(std::slice::from_ref(pattern)).ok()?;
        let optional = |text: &str, on| match text {
            "" => Some(None),
            text => build(on, text).ok().map(Some),
        };
        Some(Self {
            on: pattern.on,
            matches: build(pattern.on, &pattern.matches).ok()?,
            unless: optional(&pattern.unless, pattern.on)?,
            after: optional(&pattern.after, CallPart::Command)?,
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
            after: String::new(),
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
        check("npm(?! ci)", "", Some("looks around"));
        check(&"a".repeat(LONGEST + 1), "", Some("at most"));
        check(
            "(a{1000}){1000}",
            "",
            Some("not a valid regular expression"),
        );
        let many = vec![pattern(CallPart::Command, "^npm", ""); MOST + 1];
        assert_eq!(checked(&many), Err(BadPattern::Many));
    }
}
