//! How much room an answer has, and how texts share it.

use std::borrow::Cow;

use serde::Serialize;

use crate::guard;
use crate::prompt::tokens;

use super::Report;

/// Tokens of an answer where nobody says how many.
const USUAL: usize = 1_500;
/// With less, nothing can be said.
const LEAST: usize = 200;
/// With more, somebody has mistyped.
const MOST: usize = 50_000;

/// The tokens that an answer may have.
pub(super) fn of(asked: Option<u32>) -> usize {
    let asked = asked.map_or(USUAL, |asked| usize::try_from(asked).unwrap_or(MOST));
    asked.clamp(LEAST, MOST)
}

/// Whether both forms of a report fit.
pub(super) fn fits<R: Report>(report: &R, room: usize) -> bool {
    size(report) <= room && tokens(&report.text("0123456789abcdef")) <= room
}

/// The tokens of a value as JSON.
pub(super) fn size<T: Serialize + ?Sized>(value: &T) -> usize {
    serde_json::to_string(value).map_or(usize::MAX, |json| tokens(&json))
}

/// The largest size up to which all may have theirs, so that together they fit: who needs less leaves
/// more to the others.
pub(super) fn level(sizes: &[usize], room: usize) -> usize {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    let (mut room, mut left) = (room, sizes.len());
    for size in sizes {
        let share = room / left;
        if size > share {
            return share;
        }
        room -= size;
        left -= 1;
    }
    usize::MAX
}

/// The beginning of a text, of so many characters.
pub(super) fn beginning(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text[..at].trim_end()).into(),
        None => text.into(),
    }
}

/// A text of the memory on its way out: without secrets that older or other programs have left in the
/// files, and unable to play a trick on who reads it.
pub(super) fn outward(text: &str) -> String {
    guard::defuse(&guard::redact(text).text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_needs_less_leaves_more() {
        let check = |sizes: &[usize], room, expected| {
            assert_eq!(level(sizes, room), expected, "{sizes:?} in {room}");
        };
        check(&[], 10, usize::MAX);
        check(&[3, 3], 10, usize::MAX);
        check(&[10, 2], 10, 8);
        check(&[10, 10], 10, 5);
        check(&[1, 50, 50], 21, 10);
        check(&[5], 0, 0);
    }

    #[test]
    fn texts_lose_what_is_no_reader_s_on_their_way_out() {
        let check = |text: &str, expected: &str| assert_eq!(outward(text), expected);
        check("calm\nvoice", "calm\nvoice");
        check("a\u{200b}b <|im_start|>", "ab < |im_start| >");
        let token = format!("gh{}_{}", "p", "a1B2c3D4e5".repeat(4));
        check(&format!("use {token}"), "use [REDACTED:github-token]");
    }
}
