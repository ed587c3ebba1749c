//! A failing call to find hints for: its error lines and keys, and its command.

pub mod error_key;
pub mod error_line;

use std::sync::LazyLock;

use regex_lite::Regex;

use crate::lessons::failure::error_key::normalised;
use crate::lessons::failure::error_line::error_lines;

/// Failure to look up.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failure<'a> {
    /// Lines that may say the error, most specific first. The first one gives the key.
    pub(crate) lines: Vec<ErrorLine>,
    /// Whole output: redacted, without hints of this program.
    pub(crate) output: String,
    /// Tool of the agent host, if known.
    pub(crate) tool: Option<&'a str>,
    /// Failing command or code, if known.
    pub(crate) code: Option<&'a str>,
}

/// Line of an error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ErrorLine {
    /// Error key of the line.
    pub(crate) key: String,
    /// The line with its names and numbers.
    pub(crate) text: String,
}

impl<'a> Failure<'a> {
    /// Reads the output of a failing call, whose secrets are redacted already. Hints of this program
    /// in it are ignored. `None` if the output has no error.
    pub(crate) fn of_redacted(
        error: &str,
        tool: Option<&'a str>,
        code: Option<&'a str>,
    ) -> Option<Self> {
        let error = memctl_redact::strip_fenced(error);
        let lines: Vec<ErrorLine> = error_lines(&error)
            .into_iter()
            .map(|text| without_people(&text))
            .map(|text| ErrorLine {
                key: normalised(&text),
                text,
            })
            .filter(|line| !line.key.is_empty())
            .collect();
        (!lines.is_empty()).then_some(Self {
            lines,
            output: error.into_owned(),
            tool,
            code: code.filter(|code| !code.trim().is_empty()),
        })
    }

    /// Error key: that of the most specific line.
    pub(crate) fn key(&self) -> &str {
        self.lines.first().map_or("", |line| &line.key)
    }
}

/// Text without the names of home directories, and without addresses that are given as a value.
pub(crate) fn without_people(text: &str) -> String {
    without_addresses(&without_home(text))
}

/// Text without the names of home directories, which name a person.
pub(crate) fn without_home(text: &str) -> String {
    static HOME: LazyLock<Regex> = LazyLock::new(|| {
        #[expect(clippy::unwrap_used, reason = "the pattern is constant")]
        Regex::new(r"(?:/home/|/Users/|[A-Za-z]:\\Users\\)[^/\\\s'\x22:]+").unwrap()
    });
    HOME.replace_all(text, "~").into_owned()
}

/// Text without email addresses that are given as a value. The address of a login or a remote,
/// as in `ssh a@b.com`, belongs to the command.
fn without_addresses(text: &str) -> String {
    static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
        #[expect(clippy::unwrap_used, reason = "the pattern is constant")]
        Regex::new(r#"(?<before>[='"<(])[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}"#).unwrap()
    });
    ADDRESS.replace_all(text, "$before<email>").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_do_not_get_into_a_fix() {
        let check = |command: &str, expected: &str| {
            assert_eq!(without_people(command), expected);
        };
        check("ls /home/anna/x /Users/bob", "ls ~/x ~");
        check(
            "git -c user.email=anna.b@acme.example.com commit",
            "git -c user.email=<email> commit",
        );
        check("ssh anna@acme.example", "ssh anna@acme.example");
        check(
            "git clone git@github.com:a/b.git",
            "git clone git@github.com:a/b.git",
        );
    }
}
