//! Sanitizing and shortening of text for a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

use chrono::{DateTime, Utc};

/// Removes everything that a terminal would interpret or a reader would not see: escape sequences,
/// control characters, bidirectional marks, hidden characters. Keeps line breaks and tabs.
pub(crate) fn clean(text: &str) -> String {
    let stripped = console::strip_ansi_codes(text);
    memctl_redact::visible(&stripped)
        .chars()
        .filter(|c| {
            let hidden = matches!(u32::from(*c), 0x061C | 0x200B..=0x200C | 0x200E..=0x200F | 0x2028..=0x2029);
            (!c.is_control() || matches!(c, '\n' | '\t')) && !hidden
        })
        .collect()
}

/// Escapes what a terminal would interpret or a reader would not see, in a JSON document: U+007F to
/// U+009F, bidirectional marks, hidden characters. The document means the same as before.
pub(crate) fn escape_json(json: String) -> String {
    let is_open = |c: char| c != '\u{7f}' && (c.is_ascii() || !is_unsafe(c));
    if json.chars().all(is_open) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if is_open(c) {
            escaped.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _written = write!(escaped, "\\u{unit:04x}");
        }
    }
    escaped
}

fn is_unsafe(c: char) -> bool {
    memctl_redact::is_hidden(c) || matches!(u32::from(c), 0x2028 | 0x2029)
}

/// Returns text that is used as it is, such as a prompt. Sanitizes it only if it contains control
/// characters.
pub(crate) fn product(text: &str) -> Cow<'_, str> {
    let is_calm = |c: char| !c.is_control() || matches!(c, '\n' | '\t' | '\r');
    if text.chars().all(is_calm) && !text.replace("\r\n", "").contains('\r') {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(clean(text))
    }
}

/// Redacts text before it is shortened and joined into one line, which would hide secrets from the
/// redactor.
fn shown(text: &str) -> Cow<'_, str> {
    memctl_redact::redact(text).text
}

/// Returns the text on one line of at most `width` columns. Shortens it in the middle, because ids
/// and paths differ at their ends.
pub(crate) fn middle(text: &str, width: usize) -> String {
    let flat = clean(&shown(text))
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    if console::measure_text_width(&flat) <= width {
        return flat;
    }
    let room = width.saturating_sub(1);
    let head = console::truncate_str(&flat, room.div_ceil(2), "").into_owned();
    let mut tail: Vec<char> = Vec::new();
    let mut used = console::measure_text_width(&head);
    for c in flat.chars().rev() {
        used += console::measure_text_width(c.encode_utf8(&mut [0; 4]));
        if used > room {
            break;
        }
        tail.push(c);
    }
    let tail: String = tail.into_iter().rev().collect();
    format!("{head}…{tail}")
}

/// Returns the text on one line of at most `width` columns, shortened at the end.
pub(crate) fn end(text: &str, width: usize) -> String {
    let flat = clean(&shown(text))
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    console::truncate_str(&flat, width, "…").into_owned()
}

/// Returns the age of a record, or the text itself if it is no timestamp.
pub(crate) fn when(created: &str, now: DateTime<Utc>) -> String {
    let Ok(at) = DateTime::parse_from_rfc3339(created) else {
        return middle(created, 19);
    };
    let seconds = (now - at.to_utc()).num_seconds();
    match seconds {
        ..0 => "now".to_owned(),
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        86_400..2_592_000 => format!("{}d", seconds / 86_400),
        _ => at.format("%Y-%m-%d").to_string(),
    }
}

/// Returns a count with its noun: `1 rule`, `3 rules`.
pub(crate) fn plural(count: u64, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_that_was_stored() {
        assert_eq!(
            clean("a\u{1b}[31mred\u{1b}[0m\u{1b}]0;title\u{7}b\u{202e}c\r\n\td"),
            "aredbc\n\td"
        );
        assert!(!clean("\u{1b}\u{9b}2J\u{8}x").contains(['\u{1b}', '\u{9b}', '\u{8}']));
        assert_eq!(
            clean("a\u{2060}b\u{e0069}c\u{61c}d\u{ad}e\u{2028}f"),
            "abcdef"
        );
        assert_eq!(clean("👩\u{200d}👧"), "👩\u{200d}👧");
    }

    #[test]
    fn product_stays_as_it_is_unless_a_terminal_would_obey_it() {
        assert_eq!(product("a\r\n\tb"), "a\r\n\tb");
        assert_eq!(product("a\u{1b}[2Jb"), "ab");
        assert_eq!(product("over\rwritten"), "overwritten");
    }

    #[test]
    fn long_text_loses_its_middle() {
        let check = |text: &str, width, expected: &str| assert_eq!(middle(text, width), expected);
        check("EXEC-20260220124341", 19, "EXEC-20260220124341");
        check("EXEC-20260220124341", 11, "EXEC-…24341");
        check("日本語日本語", 7, "日…本語");
        check("a\n  b", 10, "a b");
        check("abc", 1, "…");
        check("abc", 0, "…");
    }

    #[test]
    fn ages_are_short() {
        let now = DateTime::parse_from_rfc3339("2026-02-20T12:00:00Z")
            .unwrap()
            .to_utc();
        let check = |at: &str, expected: &str| assert_eq!(when(at, now), expected, "{at}");
        check("2026-02-20T11:59:30Z", "30s");
        check("2026-02-20T11:00:00+00:00", "1h");
        check("2026-02-18T11:59:00.123456+00:00", "2d");
        check("2025-02-18T12:00:00Z", "2025-02-18");
        check("2026-02-20T12:00:05Z", "now");
        check("yesterday", "yesterday");
    }
}
