//! Private key blocks, whole or cut, also with a prefix before each line.
//!
//! A block is read line by line from its label. If only white space precedes its lines, the block
//! is one finding. Otherwise each line is a finding, and the prefixes stay.

use std::ops::Range;

use super::base64;
use super::body::over_breaks;
use super::lines;
use super::randomness;
use super::shapes::Set;

/// Longest label, in bytes.
const LABEL: usize = 80;

/// Longest block, in bytes: a 16,384-bit key, each line with a long prefix.
const LONGEST: usize = 64 << 10;

/// Unrelated lines allowed inside a block, because container logs interleave.
const MIXED: usize = 8;

/// `-----BEGIN … PRIVATE KEY-----` to the end of the block, or of the text that looks like one.
pub(super) fn key_block(text: &[u8], at: usize) -> Vec<Range<usize>> {
    let Some(label_end) = key_label(text, at) else {
        return Vec::new();
    };
    let near = &text[..text.len().min(label_end + LONGEST)];
    let end_of_block = find_end(near, label_end);
    let (inside, end) = end_of_block.unwrap_or((near.len(), near.len()));
    if end_of_block.is_some() && is_one_line(&text[label_end..inside]) {
        return std::iter::once(at..end).collect();
    }
    let own = start_of_line(text, at);
    let mut found = Vec::new();
    let mut mixed = 0;
    let mut last = label_end;
    let mut plain = true;
    let mut material = 0;
    for line in Lines::new(text, label_end, inside) {
        let Some(body) = body_of(text, &line, own..at) else {
            let header = is_header(&text[line.clone()]);
            // A colour reset is not content.
            let rest = text[line.clone()].strip_suffix(b"\x1b[0m");
            let rest = rest.unwrap_or(&text[line.clone()]);
            let blank = rest.iter().all(|b| !b.is_ascii_alphanumeric());
            let foreign = text[own..at].contains(&b'|');
            mixed += usize::from(!header && !blank);
            let empty = rest.trim_ascii().is_empty() && line.start > label_end;
            let ended = empty && material > 0 && end_of_block.is_none();
            if !ended && (header || blank || end_of_block.is_some() || (foreign && mixed <= MIXED))
            {
                continue;
            }
            break;
        };
        let whole = body.len() >= 20
            && (randomness::is_random(&text[body.clone()]) || is_hex(&text[body.clone()]));
        let short = end_of_block.is_some()
            || (lines::is_cut(text, body.end)
                && (material == 0 || !text[body.clone()].iter().all(u8::is_ascii_lowercase)))
            || text[body.clone()].ends_with(b"=")
            || (material > 0 && is_before_blank(text, line.end));
        // A word after a block without an end label is not part of it.
        if !whole && !short {
            break;
        }
        material += if whole || end_of_block.is_some() {
            body.len()
        } else {
            0
        };
        plain &= text[line.start..body.start]
            .iter()
            .all(|b| matches!(b, b' ' | b'\t' | b'\\' | b'n' | b'r'));
        last = body.end;
        found.push(body);
    }
    // A label alone only mentions a key.
    let is_key = found.iter().any(|body| {
        let body = &text[body.clone()];
        body.len() >= 16 && (randomness::is_random(body) || is_hex(body))
    });
    let is_cut_key = end_of_block.is_none()
        && material == 0
        && found
            .iter()
            .any(|b| b.len() >= 8 && lines::is_cut(text, b.end));
    if !is_key && !is_cut_key {
        return Vec::new();
    }
    if plain {
        let end = if end_of_block.is_some() { end } else { last };
        return std::iter::once(at..end).collect();
    }
    found.insert(0, at..label_end);
    if end_of_block.is_some() {
        found.push(inside..end);
    }
    // The first line may directly follow its label.
    found.dedup_by(|next, kept| {
        let joins = next.start <= kept.end;
        if joins {
            kept.end = kept.end.max(next.end);
        }
        joins
    });
    found
}

/// Returns true if a block has lost its line ends or has spaces in their place.
fn is_one_line(inside: &[u8]) -> bool {
    let whole = !inside.contains(&b'\n') && !inside.contains(&b'\\');
    whole
        && inside.split(|b| *b == b' ').any(|run| {
            run.len() >= 16
                && run.iter().all(|b| Set::Base64.holds(*b))
                && randomness::is_random(run)
        })
}

/// Start and end of the label that ends the block; `None` if another block begins first.
fn find_end(text: &[u8], from: usize) -> Option<(usize, usize)> {
    let rest = &text[from..];
    let next = memchr::memmem::find(rest, b"---BEGIN")
        .or_else(|| memchr::memmem::find(rest, b"--- BEGIN"));
    let rest = &rest[..next.unwrap_or(rest.len())];
    [&b"-----END"[..], b"---- END"]
        .iter()
        .flat_map(|end| memchr::memmem::find_iter(rest, *end))
        .filter_map(|found| Some((from + found, key_label(text, from + found)?)))
        .min()
}

/// Tail of a block whose beginning was cut off: the base64 lines above its end label.
pub(super) fn key_block_tail(text: &[u8], at: usize) -> Vec<Range<usize>> {
    let Some(end) = key_label(text, at) else {
        return Vec::new();
    };
    let own = start_of_line(text, at);
    let mut found = Vec::new();
    let mut plain = true;
    let mut from = own;
    // On the label's own line: a block with spaces for line ends, or without any.
    if let Some(body) = body_of(text, &(own..at), own..own)
        && body.end + 2 >= at
        && body.len() >= 20
        && randomness::is_random(&text[body.clone()])
    {
        from = body.start;
        found.push(body);
    }
    let mut start = own;
    while let Some(line) = line_above(text, start) {
        if at - line.start > LONGEST {
            break;
        }
        let found_body = body_of(text, &line, own..at);
        let Some(body) = found_body.or_else(|| cut_body(text, &line, at - own)) else {
            break;
        };
        let whole = body.len() >= 20 && randomness::is_random(&text[body.clone()]);
        let top = line_above(text, line.start).is_none_or(|above| {
            let above = &text[above];
            lines::is_cut(above, 0) || above.is_empty()
        });
        // The last line is short, and so is a cut line.
        if !whole && !found.is_empty() && !top {
            break;
        }
        if !whole
            && found.is_empty()
            && !(text[body.clone()].ends_with(b"=")
                || body.len() >= 4 && base64::may_be(&text[body.clone()]))
        {
            break;
        }
        plain &= text[line.start..body.start]
            .iter()
            .all(|b| matches!(b, b' ' | b'\t'));
        from = body.start;
        start = line.start;
        found.push(body);
    }
    if found.is_empty() {
        return found;
    }
    if plain {
        return std::iter::once(from..end).collect();
    }
    found.reverse();
    found.push(at..end);
    found
}

/// Base64 lines below the line of `at`: the private half of a `PuTTY` key, a minisign key.
pub(super) fn lines_below(text: &[u8], at: usize) -> Vec<Range<usize>> {
    let own = lines::line_at(text, at);
    let first = own.start..own.start + lines::prefix(&text[own.clone()]).min(at - own.start);
    let mut found = Vec::new();
    for line in Lines::new(text, own.end, text.len().min(at + LONGEST)) {
        let Some(body) = body_of(text, &line, first.clone()) else {
            if text[line].trim_ascii().is_empty() && found.is_empty() {
                continue;
            }
            break;
        };
        let whole = body.len() >= 20 && randomness::is_random(&text[body.clone()]);
        if !whole
            && (found.is_empty() || !base64::may_be(&text[body.clone()]))
            && !lines::is_cut(text, body.end)
        {
            break;
        }
        found.push(body);
    }
    let plain = found.windows(2).all(|pair| {
        text[pair[0].end..pair[1].start]
            .iter()
            .all(u8::is_ascii_whitespace)
    });
    match (plain, found.first(), found.last()) {
        (true, Some(first), Some(last)) => std::iter::once(first.start..last.end).collect(),
        _ => found,
    }
}

/// Position after the private key label that starts at `at`.
fn key_label(text: &[u8], at: usize) -> Option<usize> {
    let mut label = Vec::with_capacity(LABEL);
    let mut next = at;
    while label.len() < LABEL {
        next = over_breaks(text, next);
        label.push(*text.get(next)?);
        next += 1;
        let closes = label.len() > 16 && label.ends_with(b"----");
        if closes {
            let has = |words: &[u8]| memchr::memmem::find(&label, words).is_some();
            let more = text[next..].iter().take_while(|b| **b == b'-').count();
            let names = [
                &b"PRIVATE KEY"[..],
                b"ENCRYPTED KEY",
                b"Static key",
                b"PRIVATE SUBKEY",
            ];
            return names.iter().any(|name| has(name)).then_some(next + more);
        }
    }
    None
}

/// Start of the line that contains `at`; escaped line ends count.
fn start_of_line(text: &[u8], at: usize) -> usize {
    let from = at.saturating_sub(300);
    let head = &text[from..at];
    let real = memchr::memrchr(b'\n', head).map_or(0, |n| n + 1);
    let escaped = memchr::memmem::rfind(head, b"\\n").map_or(0, |n| n + 2);
    from + real.max(escaped)
}

/// Lines between two positions, with real or escaped line ends. The first item is the rest of its
/// line.
struct Lines<'a> {
    text: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Lines<'a> {
    const fn new(text: &'a [u8], at: usize, end: usize) -> Self {
        Self { text, at, end }
    }
}

impl Iterator for Lines<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at > self.end {
            return None;
        }
        let rest = &self.text[self.at..self.end];
        let mut from = 0;
        let (length, skip) = loop {
            let Some(found) = memchr::memchr2(b'\n', b'\\', &rest[from..]) else {
                break (rest.len(), 1);
            };
            let found = from + found;
            let slashes = rest[found..].iter().take_while(|b| **b == b'\\').count();
            match rest.get(found + slashes) {
                Some(b'\n') => break (found, slashes + 1),
                Some(b'r') if slashes > 0 && rest[found + slashes + 1..].starts_with(b"\\") => {
                    let more = rest[found + slashes + 1..]
                        .iter()
                        .take_while(|b| **b == b'\\')
                        .count();
                    if rest.get(found + slashes + 1 + more) == Some(&b'n') {
                        break (found, slashes + more + 2);
                    }
                }
                Some(b'n') if slashes > 0 => break (found, slashes + 1),
                _ => {}
            }
            from = found + slashes.max(1);
        };
        let line = self.at..self.at + length;
        self.at += length + skip;
        Some(line)
    }
}

/// Line above the one that begins at `start`, with real or escaped line ends.
fn line_above(text: &[u8], start: usize) -> Option<Range<usize>> {
    let above = &text[..start];
    let above = above
        .strip_suffix(b"\\r\\n")
        .or_else(|| above.strip_suffix(b"\\\\n"))
        .or_else(|| above.strip_suffix(b"\\n"))
        .or_else(|| above.strip_suffix(b"\r\n"))
        .or_else(|| above.strip_suffix(b"\n"))?;
    Some(start_of_line(text, above.len())..above.len())
}

/// Key part of a line whose beginning was cut off inside its prefix.
fn cut_body(text: &[u8], line: &Range<usize>, front: usize) -> Option<Range<usize>> {
    let is_first = line_above(text, line.start).is_none_or(|above| lines::is_cut(&text[above], 0));
    let whole = &text[line.clone()];
    let whole = whole.strip_suffix(b"\x1b[0m").unwrap_or(whole);
    let whole = whole.strip_suffix("│".as_bytes()).unwrap_or(whole);
    let whole = whole.trim_ascii_end();
    let length = whole
        .iter()
        .rev()
        .take_while(|b| Set::Base64.holds(**b))
        .count();
    let end = line.start + whole.len();
    let body = end - length..end;
    let short = body.start - line.start <= front;
    (is_first && short && length >= 20 && randomness::is_random(&text[body.clone()]))
        .then_some(body)
}

/// Key part of a line, without prefix, closing quotes and table frame. The prefix must match the
/// one before the label.
fn body_of(text: &[u8], line: &Range<usize>, label: Range<usize>) -> Option<Range<usize>> {
    let mut end = line.end;
    loop {
        let rest = &text[line.start..end];
        let before = end;
        match rest {
            [
                ..,
                b'|' | b'"' | b'\'' | b',' | b';' | b'`' | b'\\' | b')' | b']' | b'}',
            ] => end -= 1,
            [.., last] if last.is_ascii_whitespace() => end -= 1,
            // A string that goes on, and a colour reset that is cut.
            [.., b' ' | b'"' | b'\'', b'+'] | [.., 0x1B] => end -= 1,
            // Frames of tables, the ellipsis of a host that truncates, a colour reset that is cut.
            [.., 0xE2, 0x94 | 0x95, _]
            | [.., 0xE2, 0x80, 0xA6]
            | [.., b'.', b'.', b'.']
            | [.., 0x1B, b'[', b'0'] => end -= 3,
            [.., 0x1B, b'[', b'0', b'm'] => end -= 4,
            [.., 0x1B, b'['] => end -= 2,
            _ => {}
        }
        if end == before {
            break;
        }
    }
    let length = text[line.start..end]
        .iter()
        .rev()
        .take_while(|b| Set::Base64.holds(**b))
        .count();
    let mut start = end - length;
    // A leading diff mark could also be a base64 character.
    if start == line.start
        && matches!(text.get(start), Some(b'+' | b'-'))
        && text[label.clone()].first() == text.get(start)
    {
        start += 1;
    }
    // The last letter of an escape or a colour code does not belong to the key.
    let front = &text[line.start..start];
    let escape = match front {
        [.., b'\\'] => 1,
        [.., b'['] | [.., b'[', b';'] => {
            let colour = text[start..end]
                .iter()
                .take_while(|b| b.is_ascii_digit())
                .count();
            usize::from(text.get(start + colour) == Some(&b'm')) * (colour + 1)
        }
        _ => 0,
    };
    start += escape;
    let front = &text[line.start..start];
    // After the tool prefix, only punctuation may precede the key: quotes, a list mark.
    let own = &front[lines::prefix(&text[line.start..end]).min(front.len())..];
    let fits = !own.iter().any(u8::is_ascii_alphanumeric) && own.len() <= 24
        || lines::is_alike(front.trim_ascii(), text[label].trim_ascii());
    (fits && start < end).then_some(start..end)
}

fn is_header(line: &[u8]) -> bool {
    const HEADERS: &[&[u8]] = &[
        b"Proc-Type", b"DEK-Info", b"Version:", b"Comment:", b"Hash:", b"Subject:", b"Charset:",
        b"X-",
    ];
    HEADERS
        .iter()
        .any(|name| memchr::memmem::find(&line[..line.len().min(120)], name).is_some())
}

fn is_before_blank(text: &[u8], end: usize) -> bool {
    match &text[end..] {
        [b'\n', rest @ ..] | [b'\r', b'\n', rest @ ..] => {
            rest.first().is_none_or(|b| matches!(b, b'\n' | b'\r'))
        }
        _ => false,
    }
}

fn is_hex(text: &[u8]) -> bool {
    text.len() >= 32
        && text.iter().all(u8::is_ascii_hexdigit)
        && text.iter().any(u8::is_ascii_digit)
}
