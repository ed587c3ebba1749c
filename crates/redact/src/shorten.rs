//! Shortens text for a model without leaving a fence open.
//!
//! If a host's character limit cuts a fence, its closing line is lost, and its data and all later
//! text read as instructions. Shortening the text first avoids that: fences are cut inside and
//! closed.
//!
//! Lengths are in UTF-16 code units, which JavaScript hosts count. Counts of characters are never
//! larger.

use std::borrow::Cow;

use super::fence::{Piece, framed, pieces};

/// Mark at a cut.
const MARK: &str = "…";
/// Minimum length left inside a cut fence; a shorter one is omitted.
const LEAST: usize = 40;

/// Length of a text in UTF-16 code units.
pub fn length(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.chars().map(char::len_utf16).sum()
    }
}

/// Beginning of a text with at most `limit` UTF-16 units: whole characters, with a mark if it was
/// cut.
pub fn beginning(text: &str, limit: usize) -> Cow<'_, str> {
    if length(text) <= limit {
        return Cow::Borrowed(text);
    }
    let Some(room) = limit.checked_sub(length(MARK)) else {
        return Cow::Borrowed("");
    };
    Cow::Owned(format!("{}{MARK}", &text[..end(text, room)]))
}

/// Byte offset after the first `room` UTF-16 units.
fn end(text: &str, room: usize) -> usize {
    let mut used = 0;
    let over = text.char_indices().find(|(_, c)| {
        used += c.len_utf16();
        used > room
    });
    over.map_or(text.len(), |(at, _)| at)
}

/// Text with at most `limit` UTF-16 units and every fence closed. Nothing follows a cut fence.
pub fn shorten(text: &str, limit: usize) -> Cow<'_, str> {
    let pieces = pieces(text);
    let is_open = |piece: &Piece<'_>| {
        matches!(
            piece,
            Piece::Fence {
                is_closed: false,
                ..
            }
        )
    };
    if length(text) <= limit && !pieces.iter().any(is_open) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut room = limit;
    for piece in pieces {
        let whole = match piece {
            Piece::Plain(text) => Cow::Borrowed(text),
            Piece::Fence { nonce, inside, .. } => Cow::Owned(framed(nonce, &lines(inside))),
        };
        let size = length(&whole);
        if size <= room {
            out.push_str(&whole);
            room -= size;
            continue;
        }
        match piece {
            Piece::Plain(text) => out.push_str(&beginning(text, room)),
            Piece::Fence { nonce, inside, .. } => {
                if let Some(cut) = cut_fence(nonce, inside, room) {
                    out.push_str(&cut);
                }
            }
        }
        break;
    }
    Cow::Owned(out)
}

/// Fence with the beginning of its content; `None` if too little fits.
fn cut_fence(nonce: &str, inside: &str, room: usize) -> Option<String> {
    let frame = length(&framed(nonce, "\n"));
    let room = room.checked_sub(frame).filter(|room| *room >= LEAST)?;
    Some(framed(nonce, &lines(&beginning(inside, room))))
}

/// Text that ends in a line break, because the closing tag needs its own line.
fn lines(text: &str) -> Cow<'_, str> {
    if text.ends_with('\n') || text.is_empty() {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{text}\n"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{fence, strip_fenced};
    use super::*;

    #[test]
    fn cut_fence_is_closed_and_says_that_it_is_cut() {
        let inside = "0123456789\n".repeat(30);
        let text = format!("before\n{}after\n", fence(&[&inside], "n0nce"));
        let short = shorten(&text, 300);
        assert!(length(&short) <= 300);
        assert!(short.starts_with("before\n"), "{short}");
        assert!(short.ends_with("…\n</memctl-data-n0nce>\n"), "{short}");
        assert_eq!(strip_fenced(&short), "before\n");
        assert_eq!(shorten(&text, 10_000), text);
    }

    #[test]
    fn fence_without_room_is_left_out_with_its_words() {
        let text = format!("before\n{}", fence(&["x".repeat(100)], "n0nce"));
        assert_eq!(shorten(&text, 120), "before\n");
        assert_eq!(shorten(&text, 3), "be…");
        assert_eq!(shorten(&text, 0), "");
    }

    #[test]
    fn fence_that_was_left_open_is_closed() {
        let open = "a\n<memctl-data-n0nce>\nnever closed";
        assert_eq!(strip_fenced(&shorten(open, 10_000)), "a\n");
        assert!(shorten(open, 10_000).ends_with("never closed\n</memctl-data-n0nce>\n"));
    }

    #[test]
    fn beginning_keeps_characters_whole() {
        let check = |text: &str, limit, expected: &str| {
            assert_eq!(beginning(text, limit), expected, "{text} {limit}");
        };
        check("abc", 3, "abc");
        check("abcd", 3, "ab…");
        // A character outside the basic multilingual plane counts as two.
        check("😀😀", 4, "😀😀");
        check("😀😀", 3, "😀…");
        check("😀😀", 2, "…");
        check("ab", 0, "");
    }

    proptest! {
        #[test]
        fn shortened_text_keeps_its_fences_balanced(
            before in "(?s).{0,60}",
            inside in proptest::collection::vec("(?s).{0,120}|(</?memctl-data-[a-z0-9]{0,3}>?|😀){0,9}", 0..4),
            after in "(?s).{0,60}",
            limit in 0_usize..900,
        ) {
            let nonce = "3f2a9c1b-0000-4000-8000-000000000000";
            let text = format!("{before}{}{after}", fence(&inside, nonce));
            let short = shorten(&text, limit);
            prop_assert!(length(&short) <= limit);
            let opens = short.matches(&format!("<memctl-data-{nonce}>")).count();
            let closes = short.matches(&format!("</memctl-data-{nonce}>\n")).count();
            prop_assert_eq!(opens, closes);
            prop_assert_eq!(short.matches(nonce).count(), 2 * opens);
            // Data occurs only inside the fence.
            let left = strip_fenced(&short).into_owned();
            let whole = format!("{before}{after}");
            prop_assert!(whole.starts_with(left.trim_end_matches('…')) || left == whole);
        }
    }
}
