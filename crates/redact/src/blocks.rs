//! Private key blocks, whole or cut, also with a prefix before each line.
//!
//! A block is read line by line from its label. If only white space precedes its lines, the block
//! is one finding. Otherwise each line is a finding, and the prefixes stay. Escaped line ends are the task
//! of `views`.

use std::ops::Range;

use super::bytes::{Set, holds, near, over_breaks, over_colour};
use super::lines;
use super::values;

/// Longest label, in bytes.
const LABEL: usize = 80;

/// Longest block, in bytes: a 16,384-bit key, each line with a long prefix.
const LONGEST: usize = 64 << 10;

/// Unrelated lines allowed inside a block, because container logs interleave.
const MIXED: usize = 8;

/// `-----BEGIN … PRIVATE KEY-----` to the end of the block, or of the text that looks like one.
pub(super) fn key_block(text: &[u8], at: usize, _: usize) -> Vec<Range<usize>> {
    let Some(label_end) = key_label(text, at) else {
        return Vec::new();
    };
    let limit = text.len().min(label_end + LONGEST);
    let closes = find_end(&text[..limit], label_end);
    let (inside, end) = closes.unwrap_or((limit, limit));
    let is_closed = closes.is_some();
    if is_closed && is_one_line(&text[label_end..inside]) {
        return std::iter::once(at..end).collect();
    }
    let front = lines::line_at(text, at).start..at;
    let mut found: Vec<Range<usize>> = Vec::new();
    let (mut mixed, mut material) = (0, 0);
    let mut line = label_end..lines::line_at(text, label_end).end.clamp(label_end, inside);
    loop {
        let content = &text[line.clone()];
        if let Some(body) = body_of(text, &line, &front) {
            let key = &text[body.clone()];
            let whole = is_material(key, 20);
            let short = is_closed
                || lines::is_cut(text, body.end)
                    && (material == 0 || !key.iter().all(u8::is_ascii_lowercase))
                || key.ends_with(b"=")
                || material > 0 && is_before_blank(text, line.end);
            // A word after a block without an end label is not part of it.
            if !whole && !short {
                break;
            }
            material += if whole || is_closed { body.len() } else { 0 };
            found.push(body);
        } else {
            let rest = &text[line.start..end_of_content(text, &line)];
            let blank = !rest.iter().any(u8::is_ascii_alphanumeric);
            let harmless = blank || is_header(content);
            mixed += usize::from(!harmless);
            let interleaved = text[front.clone()].contains(&b'|') && mixed <= MIXED;
            let ends = rest.trim_ascii().is_empty() && line.start > label_end && material > 0;
            if !is_closed && (ends || !harmless && !interleaved) {
                break;
            }
        }
        match lines::next(text, line.end).filter(|next| next.start < inside) {
            Some(next) => line = next.start..next.end.min(inside),
            None => break,
        }
    }
    // A label alone only mentions a key.
    let mut bodies = found.iter();
    let is_key = bodies.any(|body| is_material(&text[body.clone()], 16));
    let is_cut = |body: &Range<usize>| body.len() >= 8 && lines::is_cut(text, body.end);
    if !is_key && (is_closed || material > 0 || !found.iter().any(is_cut)) {
        return Vec::new();
    }
    found.insert(0, at..label_end);
    if is_closed {
        found.push(inside..end);
    }
    joined(text, found)
}

/// Returns the whole if only white space lies between its lines, and the lines otherwise.
fn joined(text: &[u8], mut found: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let (Some(first), Some(last)) = (found.first(), found.last()) else {
        return found;
    };
    let whole = first.start..last.end;
    let is_plain = |pair: &[Range<usize>]| {
        let between = text.get(pair[0].end..pair[1].start).unwrap_or_default();
        between.iter().all(u8::is_ascii_whitespace)
    };
    if found.windows(2).all(is_plain) {
        return vec![whole];
    }
    // The first line may directly follow its label.
    found.dedup_by(|next, last| {
        let joins = next.start <= last.end;
        if joins {
            last.end = last.end.max(next.end);
        }
        joins
    });
    found
}

/// Returns true if a block has lost its line ends, or has spaces or escapes in their place.
fn is_one_line(inside: &[u8]) -> bool {
    let mut runs = inside.split(|b| !Set::BASE64.holds(*b));
    !inside.contains(&b'\n') && runs.any(|run| run.len() >= 16 && values::is_random(run))
}

/// Start and end of the label that ends the block; `None` if another block begins first.
fn find_end(text: &[u8], from: usize) -> Option<(usize, usize)> {
    let rest = &text[from..];
    let mut begins = ["---BEGIN", "--- BEGIN"].iter();
    let next = begins.find_map(|next| memchr::memmem::find(rest, next.as_bytes()));
    let rest = &rest[..next.unwrap_or(rest.len())];
    let ends = ["-----END", "---- END"].into_iter();
    let ends = ends.flat_map(|end| memchr::memmem::find_iter(rest, end));
    let labels = ends.filter_map(|end| Some((from + end, key_label(text, from + end)?)));
    labels.min()
}

/// Tail of a block whose beginning was cut off: the base64 lines above its end label.
pub(super) fn key_block_tail(text: &[u8], at: usize, _: usize) -> Vec<Range<usize>> {
    let Some(end) = key_label(text, at) else {
        return Vec::new();
    };
    let own = lines::line_at(text, at).start;
    let mut found: Vec<Range<usize>> = std::iter::once(at..end).collect();
    // On the label's own line: a block with spaces for line ends, or without any.
    let before = body_of(text, &(own..at), &(own..own));
    found.extend(before.filter(|body| body.end + 2 >= at && is_random(&text[body.clone()])));
    for line in lines::above(text, own).take_while(|line| at - line.start <= LONGEST) {
        let above = lines::previous(text, line.start);
        let is_first = above
            .clone()
            .is_none_or(|above| lines::is_cut(&text[above], 0));
        let body = body_of(text, &line, &(own..at))
            .or_else(|| cut_body(text, &line, at - own).filter(|_| is_first));
        let Some(body) = body else {
            break;
        };
        let key = &text[body.clone()];
        let top = is_first || above.is_some_and(|above| above.is_empty());
        // The last line is short, and so is a cut line.
        let last = found.len() == 1 && key.len() >= 4;
        if !(is_random(key) || last || top && found.len() > 1) {
            break;
        }
        found.push(body);
    }
    found.reverse();
    if found.len() < 2 {
        return Vec::new();
    }
    joined(text, found)
}

/// Base64 lines below the line of `at`: the private half of a `PuTTY` key, a minisign key.
pub(super) fn lines_below(text: &[u8], at: usize, _: usize) -> Vec<Range<usize>> {
    let own = lines::line_at(text, at);
    let front = own.start..own.start + lines::prefix(&text[own.clone()]).min(at - own.start);
    let mut found: Vec<Range<usize>> = Vec::new();
    for line in lines::below(text, own.end).take_while(|line| line.start < at + LONGEST) {
        let Some(body) = body_of(text, &line, &front) else {
            if found.is_empty() && text[line.clone()].trim_ascii().is_empty() {
                continue;
            }
            break;
        };
        let key = &text[body.clone()];
        let rest = !found.is_empty() || lines::is_cut(text, body.end);
        if !is_random(key) && !rest {
            break;
        }
        found.push(body);
    }
    joined(text, found)
}

/// Position after the private key label that starts at `at`.
fn key_label(text: &[u8], at: usize) -> Option<usize> {
    const NAMES: [&[u8]; 4] = [
        b"PRIVATE KEY", b"ENCRYPTED KEY", b"Static key", b"PRIVATE SUBKEY",
    ];
    let mut label = Vec::with_capacity(LABEL);
    let mut next = at;
    while label.len() < LABEL && !(label.len() > 16 && label.ends_with(b"----")) {
        next = over_breaks(text, next);
        label.push(*text.get(next)?);
        next += 1;
    }
    let is_named = NAMES.iter().any(|name| holds(&label, name));
    let more = text[next..].iter().take_while(|b| **b == b'-').count();
    (is_named && label.ends_with(b"----")).then_some(next + more)
}

/// Key part of a line whose beginning was cut off inside its prefix, of this length.
fn cut_body(text: &[u8], line: &Range<usize>, front: usize) -> Option<Range<usize>> {
    let end = end_of_content(text, line);
    let start = end - Set::BASE64.run_before(text, end, end - line.start);
    (start - line.start <= front && is_random(&text[start..end])).then_some(start..end)
}

/// Key part of a line, without prefix, closing quotes and table frame. The prefix must match the
/// one before the label, `front`.
fn body_of(text: &[u8], line: &Range<usize>, front: &Range<usize>) -> Option<Range<usize>> {
    let end = end_of_content(text, line);
    let mut start = end - Set::BASE64.run_before(text, end, end - line.start);
    let first = text.get(start);
    // A leading diff mark could also be a base64 character.
    if start == line.start && first == Some(&b'+') && text[front.clone()].first() == first {
        start += 1;
    }
    // The last letter of a colour code does not belong to the key.
    start = over_colour(text, start);
    let before = &text[line.start..start];
    // After the tool prefix, only punctuation may precede the key: quotes, a list mark.
    let own = &before[lines::prefix(&text[line.start..end]).min(before.len())..];
    let fits = !own.iter().any(u8::is_ascii_alphanumeric) && own.len() <= 24
        || lines::is_alike(before.trim_ascii(), text[front.clone()].trim_ascii());
    (fits && start < end).then_some(start..end)
}

/// End of a line without closing quotes, table frames, escapes, and what a host cut.
fn end_of_content(text: &[u8], line: &Range<usize>) -> usize {
    const ENDS: [&[u8]; 26] = [
        b"|", b"\"", b"'", b",", b";", b"`", b")", b"]", b"}", b" +", b"\"+", b"'+", b"\\n",
        b"\\r", b"\\", b"\x1b[0m", b"\x1b[0", b"\x1b[", b"\x1b", b"...", b" ", b"\t", b"\r",
        b"\xE2\x94\x82", b"\xE2\x80\xA6", b"\xE2\x95\x91",
    ];
    line.start + lines::without_ends(&text[line.clone()], &ENDS).len()
}

fn is_random(key: &[u8]) -> bool {
    key.len() >= 20 && values::is_random(key)
}

fn is_material(key: &[u8], least: usize) -> bool {
    let hex = key.len() >= 32
        && key.iter().all(u8::is_ascii_hexdigit)
        && key.iter().any(u8::is_ascii_digit);
    key.len() >= least && values::is_random(key) || hex
}

fn is_header(line: &[u8]) -> bool {
    const HEADERS: [&str; 8] = [
        "Proc-Type", "DEK-Info", "Version:", "Comment:", "Hash:", "Subject:", "Charset:", "X-",
    ];
    let line = near(line, 0, 120);
    HEADERS.iter().any(|name| holds(line, name.as_bytes()))
}

fn is_before_blank(text: &[u8], end: usize) -> bool {
    let rest = &text[end..];
    let rest = rest.strip_prefix(b"\r").unwrap_or(rest);
    matches!(rest, [b'\n'] | [b'\n', b'\n' | b'\r', ..])
}
