//! Rank of a line of a failing output: how specific it is about the error, by its form.

use crate::lessons::vocabulary::WORDS;

/// Specificity of a line, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
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

pub(crate) fn rank(line: &str, traceback: bool) -> Rank {
    let lower = line.to_ascii_lowercase();
    let bare = lower.strip_prefix("error: ").unwrap_or(&lower);
    if WORDS.asides.begin(bare) || line.contains("____") {
        return Rank::Aside;
    }
    if line
        .split_whitespace()
        .all(|word| word.starts_with('[') && word.ends_with(']'))
    {
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
        let said = line[end..].trim_start_matches([':', ' ']);
        said.starts_with(|c: char| c.is_alphanumeric() || "'\"`".contains(c))
    });
    if finding {
        return Rank::Finding;
    }
    let negated = lower.starts_with("no ") || lower.starts_with("not ");
    // `[Help 1] https://…/MissingProjectException` says nothing itself.
    let said: String = lower
        .split_whitespace()
        .filter(|word| !word.contains("://"))
        .flat_map(|word| [word, " "])
        .collect();
    if negated || WORDS.failure_words.occur_in(&said) {
        Rank::Words
    } else {
        Rank::Any
    }
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

/// End of `path:12:` or `path:12:3:` at the start of a line.
pub(crate) fn location(line: &str) -> Option<usize> {
    let mut at = line.find(':')?;
    // Windows drive.
    if at == 1 {
        at += 1 + line[2..].find(':')?;
    }
    let path = &line[..at];
    if path.is_empty() || path.contains(char::is_whitespace) || !path.contains(['.', '/']) {
        return None;
    }
    let mut end = at + 1;
    let mut numbers = 0;
    loop {
        let digits = line[end..].bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            break;
        }
        numbers += 1;
        end += digits;
        if !line[end..].starts_with(':') {
            break;
        }
        end += 1;
    }
    (numbers > 0).then_some(end)
}
