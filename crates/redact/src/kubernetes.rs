//! Values of Kubernetes Secrets in YAML and JSON, before or after the line with their kind.

use std::ops::Range;

use super::documents::{body, front};
use super::lines;
use super::secret_name::skip;
use super::values;

/// Values of the Kubernetes Secret whose kind is at `at`.
pub(super) fn secret_data(text: &[u8], at: usize, end: usize) -> Vec<Range<usize>> {
    const NEAR: usize = 16 << 10;
    let line = lines::line_at(text, at);
    if text[at..end].ends_with(b"\"") && text[at..end].starts_with(b"kind\"") {
        return json_data(text, at, end);
    }
    let behind = text[end..line.end.max(end)].trim_ascii();
    if !(behind.is_empty() || behind == b"\"" || behind == b"\x1b[0m" || behind == "│".as_bytes())
    {
        return Vec::new();
    }
    let column = |line: &Range<usize>| {
        let body = body(text, line, line);
        // `- kind: Secret` in a list.
        let dash = usize::from(text[body.clone()].starts_with(b"- ")) * 2;
        (
            body.start + dash - line.start - front(text, line, line),
            body.start + dash..body.end,
        )
    };
    let (own, _) = column(&line);
    let mut found = Vec::new();
    let mut above = line.clone();
    let mut heads = Vec::new();
    while let Some(previous) = lines::previous(text, above.start) {
        above = previous;
        let (indent, body) = column(&above);
        let words = &text[body];
        if words.starts_with(b"---")
            || at - above.start > NEAR
            || indent == own && words.starts_with(b"kind:")
        {
            break;
        }
        if indent == own && matches!(words, b"data:" | b"stringData:") {
            heads.push(above.clone());
        }
        if indent < own && !words.is_empty() {
            break;
        }
    }
    let mut below = line;
    while let Some(next) = lines::next(text, below.end) {
        below = next;
        let (indent, body) = column(&below);
        let words = &text[body];
        if words.starts_with(b"---")
            || below.start - at > NEAR
            || indent == own && words.starts_with(b"kind:")
        {
            break;
        }
        if indent == own && matches!(words, b"data:" | b"stringData:") {
            heads.push(below.clone());
        }
        if indent < own && !words.is_empty() {
            break;
        }
    }
    for head in heads {
        let mut line = head;
        while let Some(next) = lines::next(text, line.end) {
            line = next;
            let (indent, body) = column(&line);
            if indent <= own || body.is_empty() {
                break;
            }
            let pair = &text[body.clone()];
            let Some(colon) = memchr::memmem::find(pair, b": ") else {
                continue;
            };
            let value = pair[colon + 2..].trim_ascii();
            let value = value.strip_prefix(b"\"").unwrap_or(value);
            let value = value.strip_suffix(b"\"").unwrap_or(value);
            let start = body.start
                + colon
                + 2
                + pair[colon + 2..]
                    .iter()
                    .take_while(|b| matches!(b, b' ' | b'"'))
                    .count();
            if values::is_given(value) && !matches!(value.first(), Some(b'|' | b'>')) {
                found.push(start..start + value.len());
            }
        }
    }
    found
}

fn json_data(text: &[u8], at: usize, end: usize) -> Vec<Range<usize>> {
    const NEAR: usize = 8 << 10;
    let mut found = Vec::new();
    let from = at.saturating_sub(NEAR);
    let behind = &text[end..text.len().min(end + NEAR)];
    let behind = &behind[..memchr::memmem::find(behind, b"\"kind\"").unwrap_or(behind.len())];
    let before = &text[from..at];
    let first = memchr::memmem::rfind(before, b"\"kind\"").map_or(0, |n| n + 6);
    let heads = memchr::memmem::rfind(&before[first..], b"ata\": {")
        .or_else(|| memchr::memmem::rfind(&before[first..], b"ata\":{"))
        .map(|n| from + first + n);
    let later = memchr::memmem::find(behind, b"ata\": {")
        .or_else(|| memchr::memmem::find(behind, b"ata\":{"))
        .map(|n| end + n);
    for head in heads.into_iter().chain(later) {
        // `metadata` contains names, not secrets.
        if text[..head].ends_with(b"metad") {
            continue;
        }
        let limit = text.len().min(head + NEAR);
        let Some(close) = memchr::memchr(b'}', &text[head..limit]) else {
            continue;
        };
        let mut at = head + memchr::memchr(b'{', &text[head..limit]).unwrap_or(0);
        while let Some(colon) = memchr::memchr(b':', &text[at..head + close]) {
            let open = skip(text, at + colon + 1, u8::is_ascii_whitespace);
            if text.get(open) != Some(&b'"') {
                break;
            }
            let Some(length) = memchr::memchr(b'"', &text[open + 1..limit]) else {
                break;
            };
            let value = open + 1..open + 1 + length;
            if values::is_given(&text[value.clone()]) {
                found.push(value.clone());
            }
            at = value.end + 1;
            if at >= head + close {
                break;
            }
        }
    }
    found
}
