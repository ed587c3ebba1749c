//! Any text behind a fence, shortened to any length: the fence is closed, and holds what it held.

use memctl_redact::{beginning, fence, length, shorten, strip_fenced, unfenced};

const NONCE: &str = "3f2a9c1b-0000-4000-8000-000000000000";

pub(crate) fn run(text: &str) {
    let limit = text.bytes().take(2).fold(0, |n, b| n * 7 + usize::from(b));
    // What stands outside is a renderer's, and forges no fence.
    let (outside, inside) = text.split_once('\0').unwrap_or(("", text));
    let outside = unfenced(outside);
    assert_eq!(unfenced(&outside), outside);
    let whole = format!("{outside}\n{}{outside}\n", fence(&[inside], NONCE));
    let short = shorten(&whole, limit);
    assert!(length(&short) <= limit);
    assert_eq!(shorten(&short, limit), short);
    let opens = short.matches("<memctl-data-").count();
    let closes = short
        .matches(&format!("\n</memctl-data-{NONCE}>\n"))
        .count();
    assert!(opens <= 1 && opens == closes, "{short}");
    let plain = format!("{outside}\n{outside}\n");
    let left = strip_fenced(&short);
    assert!(plain.starts_with(left.trim_end_matches('…')));
    assert!(length(&beginning(text, limit)) <= limit);
}
