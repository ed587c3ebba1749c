//! Extracts the most specific line of a failing output.
//!
//! The position varies: a traceback ends with it, a compiler begins with it, and a task runner only
//! adds that something failed. Each line gets a rank by its form, and the highest rank wins. Among
//! equals the first line wins, except for exceptions, where the last one is the uncaught one.
//!
//! The caller decides whether the output is a failure. A rank says how specific a line is about the error.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex_lite::Regex;

use crate::lessons::vocabulary::WORDS;
use crate::model::text::regex;

/// Maximum length of the returned line, in bytes.
const MAX_LINE: usize = 400;

/// Number of lines that are read from the start, and from the end.
const MAX_LINES: usize = 400;

/// Most specific line of a failing output, without colours and host decoration; `None` for an
/// output without words.
pub fn error_line(text: &str) -> Option<String> {
    let text = plain(text);
    if let Some(message) = message_of_json(&text) {
        return error_line(&message);
    }
    // The host states the error first and may then repeat its input.
    if let Some(message) = text.trim_start().strip_prefix("<tool_use_error>") {
        let first = message.lines().map(unframed).find(|line| !line.is_empty());
        return first.map(|line| cut(line).to_owned());
    }
    let ranked = ranked(&text);
    let best = ranked.iter().reduce(|best, line| {
        let is_uncaught = line.rank == Rank::Exception && is_traceback(&text);
        let is_better = line.rank > best.rank || line.rank == best.rank && is_uncaught;
        if is_better { line } else { best }
    })?;
    if best.rank == Rank::Summary
        && let Some(above) = above_runner(&ranked)
    {
        return Some(above.message.clone());
    }
    let is_chain = text.contains("above exception");
    let cause = ranked.iter().find(|line| line.is_cause_of(best, is_chain));
    Some(cause.unwrap_or(best).message.clone())
}

/// Line above the last one in which a runner only says that its program failed: that of the program. The runner may
/// print the command, which is no message.
fn above_runner(ranked: &[Line]) -> Option<&Line> {
    let runner = ranked.iter().rposition(|line| line.rank == Rank::Summary)?;
    let mut above = ranked[..runner].iter().rev();
    let line = above.find(|line| !matches!(line.rank, Rank::Summary | Rank::Aside))?;
    let is_message = line.message.contains(": ") || line.message.ends_with(['.', '!', '?']);
    is_message.then_some(line)
}

/// Maximum distance of a verdict from the line that names what is missing.
const NEAR_VERDICT: usize = 3;

/// Line with words.
#[derive(Debug)]
struct Line {
    rank: Rank,
    /// Number in the output.
    at: usize,
    message: String,
}

impl Line {
    /// Returns `true` if this line names what is missing, and the other one beside it, or raised because of it,
    /// does not: `Could not resolve dependencies`, and below it `Could not find artifact a:b:1`.
    fn is_cause_of(&self, verdict: &Self, is_chain: bool) -> bool {
        let is_beside = self.at.abs_diff(verdict.at) <= NEAR_VERDICT;
        let is_chained =
            is_chain && self.rank == Rank::Exception && verdict.rank == Rank::Exception
                || self.message.to_ascii_lowercase().starts_with("caused by");
        !matches!(self.rank, Rank::Aside | Rank::Summary)
            && (is_beside && verdict.rank < Rank::Exception || is_chained)
            && !lacks(&verdict.message)
            && lacks(&self.message)
            && names_something(&self.message)
    }
}

/// Returns `true` if an error says that the call lacks something: a variable, a value, a module, a file, a program,
/// memory. Any other may be the answer of a guard, of a checker, or of a service that was away, and a call that avoids
/// it is no recovery.
pub(crate) fn lacks(line: &str) -> bool {
    let lower = without_addresses(&line.to_ascii_lowercase());
    // `No settings file 'shop.toml' found`, `no box was given`.
    let is_not_found = || {
        let rest = lower.split_once("no ").map_or("", |(_, rest)| rest);
        let (named, _) = rest.split_once(" found").unwrap_or_default();
        let mut words = rest.split(|c: char| !c.is_alphanumeric()).take(5);
        let is_asked =
            words.any(|word| matches!(word, "given" | "specified" | "provided" | "selected"));
        is_asked || named.contains(['\'', '"', '`', '.']) && named.split_whitespace().count() <= 4
    };
    WORDS.lacks.occur_in(&lower) || is_not_found()
}

/// Returns `true` if a line names a variable, a file, a package or an option, or quotes a name.
fn names_something(line: &str) -> bool {
    let is_name = |word: &str| {
        let bare = word.trim_end_matches(['.', ',', ';', ':', ')']);
        let is_big = bare.len() > 2 && bare.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
        let is_version = bare.len() > 1 && bare.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        is_big
            || is_version
            || bare.contains(['_', '/', '.', '\'', '"', '`'])
            || bare.starts_with("--")
    };
    line.split_whitespace().any(is_name)
}

fn is_traceback(text: &str) -> bool {
    text.lines()
        .any(|line| line.starts_with("Traceback (most recent call last)"))
}

/// Lines with words near the start or the end of an output, with their ranks.
fn ranked(text: &str) -> Vec<Line> {
    let is_traceback = is_traceback(text);
    let all: Vec<&str> = text.lines().collect();
    let is_near_an_end = |at: usize| at < MAX_LINES || at + MAX_LINES >= all.len();
    let mut found = Vec::new();
    for (at, line) in all.iter().enumerate().filter(|(at, _)| is_near_an_end(*at)) {
        let line = unframed(line);
        if line.contains(char::is_alphabetic) {
            let (rank, message) = match panic(line, all.get(at + 1).copied()) {
                Some(message) => (Rank::Exception, message),
                None => (rank(line, is_traceback), continued(line, &all[at + 1..])),
            };
            let message = cut(&message).to_owned();
            found.push(Line { rank, at, message });
        }
    }
    found
}

/// Maximum number of lines that [`error_lines`] returns.
const MOST_LINES: usize = 24;

/// Lines of a failing output that may say the error, most specific first: the one of
/// [`error_line`], then the others in their order.
pub fn error_lines(text: &str) -> Vec<String> {
    let Some(first) = error_line(text) else {
        return Vec::new();
    };
    let mut ranked = ranked(&plain(text));
    ranked.sort_by_key(|line| std::cmp::Reverse(line.rank));
    let mut lines = vec![first];
    for Line { message, .. } in ranked {
        if lines.len() < MOST_LINES && !lines.contains(&message) {
            lines.push(message);
        }
    }
    lines
}

/// Message of a JSON reply, under its usual names.
fn message_of_json(text: &str) -> Option<String> {
    let text = text.trim();
    if !text.starts_with('{') || text.len() > 100_000 {
        return None;
    }
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    let mut value = &value;
    // `{"error": {"message": "…"}}` and `{"errors": [{"detail": "…"}]}` are the deepest in use.
    for _ in 0..4 {
        if let Some(list) = value.as_array() {
            value = list.first()?;
        }
        if let Some(message) = value.as_str() {
            return (!message.trim().is_empty()).then(|| message.to_owned());
        }
        value = [
            "error", "errors", "message", "msg", "detail", "reason", "stderr",
        ]
        .iter()
        .find_map(|name| value.get(name).filter(|v| !v.is_null()))?;
    }
    None
}

/// Message of a panic: on the same line in old Rust and in Go, on the next line in new Rust.
fn panic(line: &str, next: Option<&str>) -> Option<String> {
    let (_, place) = line.split_once("panicked at ")?;
    let next = next.map(str::trim).filter(|next| !next.is_empty());
    let message = next.filter(|_| place.trim_end().ends_with(':'));
    Some(format!("panicked: {}", message.unwrap_or(place)))
}

/// Line with the one after it, if it ends before it says anything.
fn continued(line: &str, after: &[&str]) -> String {
    let says_nothing = line.strip_suffix(':');
    // A place, or the heading of a list of names.
    let is_place = says_nothing.is_none_or(|line| {
        line.ends_with(|c: char| c.is_ascii_digit()) || line.contains("following")
    });
    if is_place {
        return line.to_owned();
    }
    let next = after
        .iter()
        .map(|line| unframed(line))
        .find(|line| !line.is_empty());
    match next {
        Some(next) if line.len() < 240 => format!("{line} {next}"),
        _ => line.to_owned(),
    }
}

fn cut(line: &str) -> &str {
    line[..line.floor_char_boundary(MAX_LINE)].trim()
}

/// Removes terminal escapes, and control characters except line breaks.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    static ESCAPE: LazyLock<Regex> =
        LazyLock::new(|| regex("\x1b(?:\\[[^@-~]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|.)?"));
    let is_odd = |c: char| c.is_control() && c != '\n';
    if !text.contains(is_odd) {
        return Cow::Borrowed(text);
    }
    let text = text.replace("\r\n", "\n");
    let text = if text.contains('\u{1b}') {
        ESCAPE.replace_all(&text, "")
    } else {
        Cow::Owned(text)
    };
    let chars = text.chars().filter_map(|c| match c {
        // Progress bars use carriage returns to overwrite lines.
        '\r' => Some('\n'),
        '\t' => Some(' '),
        c => Some(c).filter(|c| !is_odd(*c)),
    });
    Cow::Owned(chars.collect())
}

/// Line without the prefixes of hosts and test runners; empty if nothing else is left.
pub(crate) fn unframed(line: &str) -> &str {
    let mut line = line.trim();
    for tag in [
        "<tool_use_error>", "<error>", "<stderr>", "<untrusted_context>", "Output: ",
    ] {
        line = line.strip_prefix(tag).unwrap_or(line).trim_start();
    }
    for tag in ["</tool_use_error>", "</error>", "</stderr>"] {
        line = line.strip_suffix(tag).unwrap_or(line).trim_end();
    }
    if WORDS.frames.begin(line) {
        return "";
    }
    // pytest prefix for lines of an assertion, and that of a cause.
    line = line.strip_prefix("E   ").unwrap_or(line).trim_start();
    line = line.strip_prefix("> ").unwrap_or(line).trim_start();
    for mark in [
        "npm ERR! ", "npm error ", "[ERROR] ", "[error] ", "✖ ", "✗ ", "× ",
    ] {
        line = line.strip_prefix(mark).unwrap_or(line).trim_start();
    }
    if ["npm error", "npm ERR!", "[ERROR]", "[error]"].contains(&line) {
        return "";
    }
    line
}

/// Specificity of a line, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Advice and decoration.
    Aside,
    /// Any other line.
    Any,
    /// Reports a failure without its cause: `make: *** [all] Error 2`.
    Summary,
    /// Contains `failed`, `cannot`, `not found` or the like.
    Words,
    /// Linter finding: `path:12:3: message`.
    Finding,
    /// Explicit error: `error[E0308]: …`, `fatal: …`, `bash: x: command not found`.
    Stated,
    /// Exception or panic: `ValueError: …` after a traceback, `panicked at …`.
    Exception,
}

fn rank(line: &str, traceback: bool) -> Rank {
    let lower = line.to_ascii_lowercase();
    let bare = lower.strip_prefix("error: ").unwrap_or(&lower);
    let is_tag = |word: &str| word.starts_with('[') && word.ends_with(']');
    if WORDS.asides.begin(bare) || line.contains("____") || line.split_whitespace().all(is_tag) {
        return Rank::Aside;
    }
    if is_summary(&lower) {
        return Rank::Summary;
    }
    if is_exception(line) {
        return if traceback {
            Rank::Exception
        } else {
            Rank::Stated
        };
    }
    if WORDS.stated.begin(&lower) || WORDS.stated_within.occur_in(&lower) {
        return Rank::Stated;
    }
    let finding = location(line).is_some_and(|end| {
        let rest = line[end..].trim_start_matches([':', ' ']);
        rest.starts_with(|c: char| c.is_alphanumeric() || "'\"`".contains(c))
    });
    if finding {
        return Rank::Finding;
    }
    let negated = lower.starts_with("no ") || lower.starts_with("not ");
    let words = without_addresses(&lower);
    if negated || WORDS.failure_words.occur_in(&words) {
        Rank::Words
    } else {
        Rank::Any
    }
}

/// Words of a line without addresses: `[Help 1] https://…/MissingProjectException` says nothing itself.
fn without_addresses(line: &str) -> String {
    let words = line.split_whitespace();
    let words = words.filter(|word| !word.contains("://"));
    words.flat_map(|word| [word, " "]).collect()
}

/// Returns `true` for a line that states an error itself.
pub(crate) fn is_stated(line: &str) -> bool {
    rank(line, false) == Rank::Stated
}

/// Lines that only report an earlier failure.
fn is_summary(lower: &str) -> bool {
    WORDS.summaries.begin(lower)
        || WORDS.whole_summaries.contains(lower.trim_end())
        || lower.contains("could not compile")
        || lower.contains("exit status")
        || lower.contains("task failed")
        || lower.contains("short test summary")
        || (lower.starts_with("found ") && lower.contains(" error"))
}

/// `json.decoder.JSONDecodeError: …`, `java.lang.IllegalStateException`, `TypeError: …`.
fn is_exception(line: &str) -> bool {
    let name = line.split([':', ' ']).next().unwrap_or_default();
    let named = name
        .chars()
        .all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '$'));
    let class = name.rsplit('.').next().unwrap_or_default();
    let ends = [
        "Error", "Exception", "Interrupt", "Fault", "Exit", "Iteration",
    ];
    named
        && class.starts_with(char::is_uppercase)
        && ends
            .iter()
            .any(|end| class.len() > end.len() && class.ends_with(end))
        && (name.len() == line.len() || line[name.len()..].starts_with(':'))
}

/// End of `path:12:` or `path:12:3:` at the start of a line. A path has a dot or a slash.
pub(crate) fn location(line: &str) -> Option<usize> {
    static PLACE: LazyLock<Regex> =
        LazyLock::new(|| regex(r"^(?:[^\s:]:)?[^\s:]*[./][^\s:]*:[0-9]+(?::[0-9]+)*:?"));
    PLACE.find(line).map(|place| place.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_says_it_is_found() {
        let check = |text: &str, expected: &str| {
            assert_eq!(error_line(text).as_deref(), Some(expected), "{text}");
        };
        check(
            "Exit code 128\nfatal: not a git repository",
            "fatal: not a git repository",
        );
        check(
            "No POM in this directory -> [Help 1]\n[Help 1] https://example.com/MissingProjectException",
            "No POM in this directory -> [Help 1]",
        );
        check(
            "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'\n\nDuring handling \
             of the above exception, another exception occurred:\n\nValueError: bad error\n",
            "ValueError: bad error",
        );
        check(
            "   Compiling a v0.1.0\nerror[E0308]: mismatched types\n --> src/a.rs:1:2\nerror[E0425]: x\n\
             error: could not compile `a` due to 2 previous errors",
            "error[E0308]: mismatched types",
        );
        check(
            "thread 'main' panicked at src/a.rs:3:5:\nindex out of bounds: the len is 3\nnote: run with",
            "panicked: index out of bounds: the len is 3",
        );
        check(
            "\u{1b}[31mError:\u{1b}[0m no such module\n",
            "Error: no such module",
        );
        check(
            "[lint] $ x\n[lint] ERROR task failed\n\na/b.go:95:24: string `user` has 5 occurrences (goconst)",
            "a/b.go:95:24: string `user` has 5 occurrences (goconst)",
        );
        check(
            "cc -c a.c\na.c:1:1: error: unknown type name 'x'\nmake: *** [Makefile:2: a.o] Error 1",
            "a.c:1:1: error: unknown type name 'x'",
        );
        check(
            "<tool_use_error>File does not exist.</tool_use_error>",
            "File does not exist.",
        );
        check(
            r#"{"ok": false, "error": {"message": "card declined"}}"#,
            "card declined",
        );
        check(
            "E   AssertionError: assert 3 == 4",
            "AssertionError: assert 3 == 4",
        );
        check("make: *** [all] Error 2", "make: *** [all] Error 2");
        // The message of the program, and not that it has failed; the printed command is no message.
        let ends = [
            "make[1]: *** [Makefile:2: pack] Error 2\nmake: *** [all] Error 2",
            "ninja: build stopped: subcommand failed.",
            "error: Recipe `pack` failed on line 3 with exit code 2",
            "npm error code ELIFECYCLE",
        ];
        for end in ends {
            let said = "pack: give SEASON=dry";
            check(&format!("tools/pack red\n{said}\n{end}"), said);
            if !end.starts_with("npm") {
                check(
                    &format!("tools/pack red\n{end}"),
                    end.lines().next().unwrap(),
                );
            }
        }
        check("payment refused", "payment refused");
        check(
            "The following paths are ignored:\n.x\nhint: use -f\n",
            "The following paths are ignored:",
        );
        check(
            "<tool_use_error>Found 2 matches.\nString: Errorf</tool_use_error>",
            "Found 2 matches.",
        );
    }

    #[test]
    fn line_that_names_what_is_missing_beats_a_verdict_beside_it() {
        let check = |text: &str, expected: &str| {
            assert_eq!(error_line(text).as_deref(), Some(expected), "{text}");
        };
        check(
            "Could not configure the box ':cart'.\n> Paint not found: set PAINT_HOME",
            "Paint not found: set PAINT_HOME",
        );
        check(
            "Failed to pack the box: could not resolve its parts\npart: a.b\nCould not find part a.b:c:2",
            "Could not find part a.b:c:2",
        );
        check(
            "Traceback (most recent call last):\nModuleNotFoundError: No module named 'cart'\n\nThe above exception was the cause:\nTraceback (most \
             recent call last):\nImportError: the shop is closed",
            "ModuleNotFoundError: No module named 'cart'",
        );
        check(
            "> Task :pack FAILED\n\nPAINT_HOME is not set",
            "PAINT_HOME is not set",
        );
        // Far from the verdict, it may be any other message.
        check(
            "paint.ini not found\na\nb\nc\nd\nerror: the lid is too small",
            "error: the lid is too small",
        );
    }

    #[test]
    fn only_a_call_that_lacks_something_is_cured_by_another_form() {
        for line in [
            "make: no target: give TARGET=web",
            "ModuleNotFoundError: No module named 'shop'",
            "bash: shop: command not found",
            "psql: error: connection to port 5432 failed: Connection refused",
            "ERROR: syntax error at or near \";\"",
            "FATAL ERROR: heap limit: JavaScript heap out of memory",
            "error: SHOP_KEY must be set",
            "shop.rb:3: cannot load such file -- cart (LoadError)",
            "Several phones match; specify one with --phone",
            "FAILED: No settings file 'shop.toml' found",
        ] {
            assert!(lacks(line), "{line}");
        }
        for line in [
            "error: patch failed: src/a.c:118",
            "Error: Instance cannot be destroyed",
            "ERROR: Coverage for lines (71 %) does not meet the threshold",
            "curl: (22) The requested URL returned error: 503",
            "Error: Backend configuration changed",
            "No faults found in 7 files",
        ] {
            assert!(!lacks(line), "{line}");
        }
    }

    #[test]
    fn an_output_without_words_has_none() {
        for text in [
            "", "\n\n", "Exit code 1", "Exit code 1\n---\n", "\u{1b}[0m", "{}",
        ] {
            assert_eq!(error_line(text), None, "{text:?}");
        }
    }
}
