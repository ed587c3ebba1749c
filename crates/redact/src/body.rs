//! Reads the body of a key across breaks that a terminal, a shell or a JSON writer inserted.

use super::lines;
use super::shapes::{Part, Set};

/// Returns the end of the text that these parts match from `at`, or `None`.
///
/// A break is skipped if the key cannot be complete yet, or if the text after it looks like more of
/// the key.
pub(super) fn end_of(text: &[u8], mut at: usize, parts: &[Part]) -> Option<usize> {
    for (i, part) in parts.iter().enumerate() {
        let next = match parts.get(i + 1) {
            Some(Part::Is(byte)) => Some(*byte),
            _ => None,
        };
        at = match *part {
            Part::Run(set, least, most) => end_of_run(text, at, set, (least, most), next)?,
            Part::Is(byte) => {
                at = over_breaks(text, at);
                if text.get(at) != Some(&byte) {
                    return None;
                }
                at + 1
            }
        };
    }
    // A fixed-length run that continues is something else: a longer word, a hash.
    if let Some(Part::Run(set, least, most)) = parts.last()
        && least == most
        && text
            .get(at)
            .is_some_and(|b| set.holds(*b) && b.is_ascii_alphanumeric())
    {
        return None;
    }
    Some(at)
}

/// Returns the end of a run. `behind` is the byte that must follow it, if any.
fn end_of_run(
    text: &[u8],
    mut at: usize,
    set: Set,
    (least, most): (usize, usize),
    behind: Option<u8>,
) -> Option<usize> {
    let mut count = 0;
    let mut line = memchr::memrchr(b'\n', &text[..at]).map_or(0, |n| n + 1);
    let mut width = 0;
    loop {
        let run = run_length(text, at, set, most - count);
        at += run;
        count += run;
        if count == most {
            break;
        }
        let next = over_breaks(text, at);
        if next == at {
            break;
        }
        let next = lines::over_prefix(text, at, next);
        let more = run_length(text, next, set, most - count);
        if more == 0 {
            break;
        }
        let leads_on = behind.is_some() && text.get(next + more) == behind.as_ref();
        // Where two lines broke at the same column, a short rest belongs to the key as well.
        let wrapped = at - line == width && more <= width && ends_token(text.get(next + more));
        if count >= least && !leads_on && !wrapped && !is_more_of_it(&text[next..next + more]) {
            break;
        }
        width = at - line;
        at = next;
        line = next;
    }
    // Final punctuation of a sentence does not belong to the key.
    while count > least && at > 0 && matches!(text[at - 1], b'.' | b'-') {
        at -= 1;
        count -= 1;
    }
    (count >= least).then_some(at)
}

fn ends_token(byte: Option<&u8>) -> bool {
    byte.is_none_or(|b| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'\\'))
}

fn run_length(text: &[u8], at: usize, set: Set, most: usize) -> usize {
    text[at.min(text.len())..]
        .iter()
        .take(most)
        .take_while(|b| set.holds(**b))
        .count()
}

/// Returns true if the start of a line looks like the rest of a key, not like a word: at least
/// three changes between capitals, small letters, digits and other characters.
fn is_more_of_it(run: &[u8]) -> bool {
    run.len() >= 6 && changes(run) >= 3
}

/// Number of changes between character classes in a text.
pub(super) fn changes(text: &[u8]) -> usize {
    let class = |b: &u8| match b {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    };
    text.windows(2)
        .filter(|pair| class(&pair[0]) != class(&pair[1]))
        .count()
}

/// Position after the break at `at` and the indentation that follows it; `at` itself if there is no
/// break.
///
/// Breaks are line ends, with or without a backslash, JSON-escaped line ends (once or twice), and
/// zero-width characters.
pub(super) fn over_breaks(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let hidden: &[&[u8]] = &[
        "\u{200b}".as_bytes(),
        "\u{200c}".as_bytes(),
        "\u{200d}".as_bytes(),
        "\u{2060}".as_bytes(),
        "\u{feff}".as_bytes(),
        "\u{ad}".as_bytes(),
    ];
    match rest.first() {
        Some(b'\n' | b'\r' | b'\\') => {}
        Some(0xC2 | 0xE2 | 0xEF) => {
            return hidden
                .iter()
                .find(|mark| rest.starts_with(mark))
                .map_or(at, |mark| at + mark.len());
        }
        _ => return at,
    }
    let slashes = rest.iter().take(4).take_while(|b| **b == b'\\').count();
    let behind = &rest[slashes..];
    let length = match behind {
        [b'\r', b'\n', ..] => 2,
        [b'\n' | b'\r', ..] => 1,
        [b'r', b'\\', b'n', ..] if slashes > 0 => 3,
        [b'r', b'\\', b'\\', b'n', ..] if slashes > 1 => 4,
        [b'n' | b'r', ..] if slashes > 0 => 1,
        _ => return at,
    };
    let after = &behind[length..];
    let indentation = after
        .iter()
        .take(64)
        .take_while(|b| matches!(b, b' ' | b'\t'))
        .count();
    at + slashes + length + indentation
}

/// Returns true if a word can begin at `at`: no letter or digit precedes it, except as part of an
/// escape (`\n`, `%3D`, a terminal colour).
pub(super) fn can_begin(text: &[u8], at: usize) -> bool {
    let before = &text[..at.min(text.len())];
    let Some(last) = before.last() else {
        return true;
    };
    if !last.is_ascii_alphanumeric() {
        return true;
    }
    match before {
        [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., b'%', a, b] => a.is_ascii_hexdigit() && b.is_ascii_hexdigit(),
        [.., b'm'] => {
            let digits = before[..before.len() - 1]
                .iter()
                .rev()
                .take(12)
                .take_while(|b| b.is_ascii_digit() || **b == b';')
                .count();
            before[..before.len() - 1 - digits].last() == Some(&b'[')
                && before[..before.len() - 2 - digits]
                    .last()
                    .is_some_and(|b| matches!(b, 0x1B | b'b' | b'3' | b'e'))
        }
        _ => false,
    }
}
