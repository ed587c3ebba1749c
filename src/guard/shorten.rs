//! Shortens what a model is to read, and leaves no fence open.
//!
//! A fence that is cut by the character limit of a host loses its closing line, and the data in it is
//! instruction again, together with everything that the host puts behind it. So a text is shortened
//! here before a host does it: what stands in a fence is cut inside, and the fence is closed.
//!
//! Lengths are those of UTF-16, which hosts written in JavaScript count; a count of characters or of
//! code points is never more.

use std::borrow::Cow;

use super::fence::{Piece, framed, pieces};

/// What stands where something was left out.
const MARK: &str = "…";
/// A fence with less room than this inside says nothing, and is left out.
const LEAST: usize = 40;

/// The length of a text as hosts count it: in UTF-16.
pub fn length(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.chars().map(char::len_utf16).sum()
    }
}

/// The beginning of a text, at most so long, whole characters only, and with a mark where something was
/// left out.
pub fn beginning(text: &str, limit: usize) -> Cow<'_, str> {
    if length(text) <= limit {
        return Cow::Borrowed(text);
    }
    let Some(room) = limit.checked_sub(length(MARK)) else {
        return Cow::Borrowed("");
    };
    Cow::Owned(format!("{}{MARK}", &text[..end(text, room)]))
}

/// The byte at which the first `room` of a text end.
fn end(text: &str, room: usize) -> usize {
    let mut used = 0;
    let over = text.char_indices().find(|(_, c)| {
        used += c.len_utf16();
        used > room
    });
    over.map_or(text.len(), |(at, _)| at)
}

/// The text in at most `limit`, with every fence in it closed. Where a fence was cut, nothing follows it.
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

/// A fence with the beginning of what stood in it; `None` where there is no room for any.
fn cut_fence(nonce: &str, inside: &str, room: usize) -> Option<String> {
    let frame = length(&framed(nonce, "\n"));
    let room = room.checked_sub(frame).filter(|room| *room >= LEAST)?;
    Some(framed(nonce, &lines(&beginning(inside, room))))
}

/// Whole lines: the closing line of a fence begins one of its own.
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
        // A picture outside the basic plane counts twice.
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
            // What was data is nowhere else than in the fence.
            let left = strip_fenced(&short).into_owned();
            let whole = format!("{before}{after}");
            prop_assert!(whole.starts_with(left.trim_end_matches('…')) || left == whole);
        }
    }
}
