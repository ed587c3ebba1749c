//! Secrets that are told by how a text is built, not by how a key begins: blocks, tokens in three
//! parts, addresses with a password, headers.
//!
//! Each function is called where its anchor stands and answers what has to go, as a range of bytes
//! that begins and ends between characters.

use std::ops::Range;

use super::body::{can_begin, end_of, over_breaks};
use super::shapes::{Part, Set};
use super::values;

/// So far behind the beginning of a key block its label has to be complete.
const LABEL: usize = 80;

/// `<private>` to its end, or to the end of the text; one inside another belongs to it.
pub(super) fn private(text: &[u8], at: usize) -> Option<Range<usize>> {
    let is_tag = |rest: &[u8]| {
        let name = rest.get(..7)?;
        name.eq_ignore_ascii_case(b"private").then_some(())?;
        match rest.get(7)? {
            b'>' => Some(8),
            b' ' | b'\t' | b'\n' => rest
                .iter()
                .take(200)
                .position(|b| *b == b'>')
                .map(|n| n + 1),
            _ => None,
        }
    };
    let mut end = at + 1 + is_tag(text.get(at + 1..)?)?;
    // Talk about the tag, as Markdown writes it, opens nothing.
    if at > 0 && text[at - 1] == b'`' && text.get(end) == Some(&b'`') {
        return None;
    }
    let mut depth = 1;
    while depth > 0 {
        let Some(next) = memchr::memchr(b'<', &text[end..]) else {
            return Some(at..text.len());
        };
        let open = end + next + 1;
        end = open;
        if let Some(length) = text.get(open..).and_then(is_tag) {
            end += length;
            depth += 1;
        } else if text.get(open) == Some(&b'/')
            && let Some(length) = text.get(open + 1..).and_then(is_tag)
        {
            end += 1 + length;
            depth -= 1;
        }
    }
    Some(at..end)
}

/// `-----BEGIN … PRIVATE KEY-----` to the end of the block, or of what looks like one.
pub(super) fn key_block(text: &[u8], at: usize) -> Option<Range<usize>> {
    let label_end = key_label(text, at)?;
    let rest = &text[label_end..];
    let closed = memchr::memmem::find_iter(rest, b"-----END")
        .find_map(|found| Some((label_end + found, key_label(text, label_end + found)?)));
    // Another block that begins before this one ends is not its inside.
    let next = memchr::memmem::find(rest, b"-----BEGIN").map(|found| label_end + found);
    let (inside, end) = closed
        .filter(|(inside, _)| next.is_none_or(|next| *inside < next))
        .unwrap_or_else(|| {
            let end = armour_end(text, label_end);
            (end, end)
        });
    // A label alone is talk about keys.
    let body = text[label_end..inside]
        .iter()
        .filter(|b| Set::Base64.holds(**b))
        .count();
    (body >= 16).then_some(at..end)
}

/// The tail of a key block whose beginning has been cut off: the lines of base64 above its end.
pub(super) fn key_block_tail(text: &[u8], at: usize) -> Option<Range<usize>> {
    let end = key_label(text, at)?;
    let mut start = at;
    loop {
        let above = &text[..start];
        let above = above
            .strip_suffix(b"\\n")
            .or_else(|| above.strip_suffix(b"\r\n"))
            .or_else(|| above.strip_suffix(b"\n"))
            .unwrap_or(above);
        let line = above
            .iter()
            .rev()
            .take_while(|b| Set::Base64.holds(**b))
            .count();
        // The `n` of an escaped line end is no base64, though it looks so.
        let escaped = above[..above.len() - line].last() == Some(&b'\\');
        let line = line.saturating_sub(usize::from(escaped));
        if above.len() == start && start != at || line < 4 {
            break;
        }
        start = above.len() - line;
    }
    (start < at).then_some(start..end)
}

/// The position behind the label of a block of a private key that starts at `at`.
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
            return (has(b"PRIVATE KEY") || has(b"ENCRYPTED KEY")).then_some(next + more);
        }
    }
    None
}

/// Where a block without an end stops: behind the last line that is base64 or a header of a key.
fn armour_end(text: &[u8], mut at: usize) -> usize {
    let mut end = at;
    loop {
        let run = text[at..]
            .iter()
            .take_while(|b| Set::Base64.holds(**b) || matches!(b, b' ' | b':' | b',' | b'-' | b'"'))
            .count();
        let line = &text[at..at + run];
        let is_header = line.starts_with(b"Proc-Type") || line.starts_with(b"DEK-Info");
        let is_armour = line.iter().all(|b| Set::Base64.holds(*b));
        if run > 0 && !is_header && !is_armour {
            // A sentence: at most its first word can still be of the key.
            return end;
        }
        if run > 0 {
            end = at + run;
        }
        let next = over_breaks(text, at + run);
        if next == at + run {
            return end;
        }
        at = next;
    }
}

/// A JSON Web Token: two or three parts, the first of which is a JSON object.
pub(super) fn web_token(text: &[u8], at: usize) -> Option<Range<usize>> {
    if !can_begin(text, at) {
        return None;
    }
    let long = |least| Part::Run(Set::Word, least, 1 << 16);
    let dot = Part::Is(b'.');
    let two = [long(12), dot, long(10), dot, long(4)];
    // A signature is missing where somebody has cut it off, or where there is none.
    let mut end = end_of(text, at, &two).or_else(|| end_of(text, at, &two[..3]))?;
    // Two parts more if it is encrypted.
    while let Some(next) = end_of(text, end, &two[3..]) {
        end = next;
    }
    Some(at..end)
}

/// The password of an address, or the key that stands alone before its `@`. `at` is the colon of
/// `://`.
pub(super) fn address(text: &[u8], at: usize) -> Option<Range<usize>> {
    let start = at + 3;
    let ends = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'"' | b'<' | b'>' | b'`' | b'|');
    let rest = text.get(start..)?;
    let rest = &rest[..rest.len().min(1024)];
    let authority = &rest[..rest.iter().position(ends).unwrap_or(rest.len())];
    // A password may hold a slash that nobody has escaped; an at sign behind the first slash is
    // taken for the separator only where a colon comes first.
    let first_slash = memchr::memchr(b'/', authority).unwrap_or(authority.len());
    let host_at = memchr::memrchr(b'@', &authority[..first_slash]).or_else(|| {
        let colon = memchr::memchr(b':', &authority[..first_slash])?;
        let port = authority[colon + 1..first_slash]
            .iter()
            .all(u8::is_ascii_digit);
        let found = memchr::memrchr(b'@', authority)?;
        (!port && found > colon && !authority[..found].contains(&b'?')).then_some(found)
    })?;
    let user = &authority[..host_at];
    if let Some(colon) = memchr::memchr(b':', user) {
        let password = &user[colon + 1..];
        let name = &user[..colon];
        let known = password == name || values::is_placeholder(password);
        if password.is_empty() || known || starts_reference(password) {
            // `https://<token>:x-oauth-basic@github.com`
            return (values::is_random(name) && !starts_reference(name))
                .then_some(start..start + colon);
        }
        return Some(start + colon + 1..start + host_at);
    }
    (values::is_random(user) && user.len() >= 16).then_some(start..start + host_at)
}

fn starts_reference(text: &[u8]) -> bool {
    matches!(text.first(), Some(b'$' | b'{' | b'<' | b'%' | b'*' | b'[')) && {
        // `%40` is an escaped character, `%PASSWORD%` is a reference.
        text.first() != Some(&b'%') || text.last() == Some(&b'%')
    }
}

/// What follows `Bearer`, `Basic` and their like. `at` is behind the word.
pub(super) fn credentials(text: &[u8], at: usize) -> Option<Range<usize>> {
    let spaces = text[at..].iter().take_while(|b| **b == b' ').count();
    if spaces == 0 || spaces > 4 {
        return None;
    }
    let start = at + spaces;
    let end = end_of(text, start, &[Part::Run(Set::Header, 12, 1 << 16)])?;
    let value = &text[start..end];
    let joined: Vec<u8> = value
        .iter()
        .copied()
        .filter(|b| Set::Header.holds(*b))
        .collect();
    (values::is_random(&joined) && !values::is_placeholder(&joined)).then_some(start..end)
}

/// What follows `Basic`: base64 of a name, a colon and a password.
pub(super) fn basic(text: &[u8], at: usize) -> Option<Range<usize>> {
    let spaces = text[at..].iter().take_while(|b| **b == b' ').count();
    let start = at + spaces;
    if spaces == 0 || spaces > 4 {
        return None;
    }
    let end = end_of(text, start, &[Part::Run(Set::Base64, 8, 4096)])?;
    let plain = base64(&text[start..end]);
    let readable = plain.iter().all(|b| *b >= 0x20 && *b != 0x7F);
    (readable && plain.contains(&b':')).then_some(start..end)
}

fn base64(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let (mut bits, mut held) = (0_u32, 0);
    for b in text {
        let value = match b {
            b'A'..=b'Z' => b - b'A',
            b'a'..=b'z' => b - b'a' + 26,
            b'0'..=b'9' => b - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => continue,
        };
        bits = (bits << 6) | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held).to_le_bytes()[0]);
        }
    }
    out
}

/// The value of a `Cookie:` or `Set-Cookie:` header. `at` is behind the word.
pub(super) fn cookie(text: &[u8], at: usize) -> Option<Range<usize>> {
    let rest = &text[at..text.len().min(at + 8192)];
    // The quote that closes the name of the header where it stands in JSON.
    let skipped = rest
        .iter()
        .take(3)
        .take_while(|b| matches!(b, b'"' | b'\'' | b'\\'))
        .count();
    if rest.get(skipped) != Some(&b':') {
        return None;
    }
    let blank = rest[skipped + 1..]
        .iter()
        .take(6)
        .take_while(|b| matches!(b, b' ' | b'"' | b'\'' | b'\\' | b'['))
        .count();
    let start = skipped + 1 + blank;
    let ends = |b: &u8| matches!(b, b'\n' | b'\r' | b'"' | b'\'' | b'\\' | b'<');
    let length = rest[start..].iter().position(ends);
    let value = &rest[start..length.map_or(rest.len(), |n| start + n)];
    let equals = memchr::memchr(b'=', value)?;
    let name = &value[..equals];
    let first = value[equals + 1..]
        .split(|b| matches!(b, b';' | b' '))
        .next()?;
    let is_pair = !name.is_empty() && name.iter().all(|b| Set::Dotted.holds(*b));
    let worth = first.len() >= 6 && !values::is_placeholder(first) && !starts_reference(first);
    (is_pair && worth).then_some(at + start..at + start + value.len())
}

/// `123456789:AA…`: `at` is the colon.
pub(super) fn telegram(text: &[u8], at: usize) -> Option<Range<usize>> {
    let (start, digits) = run_before(text, at, Set::Digits, 12);
    if !(8..=11).contains(&digits) || !can_begin_after_bot(text, start) {
        return None;
    }
    let end = end_of(text, at + 3, &[Part::Run(Set::Word, 32, 36)])?;
    Some(start..end)
}

/// `…/bot123456789:AA…` is how the address of such a bot reads.
fn can_begin_after_bot(text: &[u8], at: usize) -> bool {
    can_begin(text, at) || text[..at].ends_with(b"bot")
}

/// A bot's token: its id in base64, a time, a signature.
pub(super) fn discord(text: &[u8], at: usize) -> Option<Range<usize>> {
    if !can_begin(text, at) {
        return None;
    }
    let parts = [
        Part::Run(Set::Word, 23, 29),
        Part::Is(b'.'),
        Part::Run(Set::Word, 5, 8),
        Part::Is(b'.'),
        Part::Run(Set::Word, 27, 44),
    ];
    let end = end_of(text, at, &parts)?;
    let id = text[at..].iter().copied().filter(|b| Set::Word.holds(*b));
    let id = base64(&id.take(23).collect::<Vec<_>>());
    id.iter().all(u8::is_ascii_digit).then_some(at..end)
}

/// A client secret of Azure: three characters and a digit, `Q~`, 31 or more. `at` is the `Q`.
pub(super) fn azure_client(text: &[u8], at: usize) -> Option<Range<usize>> {
    let start = at.checked_sub(4)?;
    let head = &text[start..at];
    let fits = head[..3]
        .iter()
        .all(|b| Set::Dotted.holds(*b) || *b == b'~')
        && head[3].is_ascii_digit()
        && can_begin(text, start);
    if !fits {
        return None;
    }
    let end = end_of(text, at + 2, &[Part::Run(Set::Header, 30, 40)])?;
    Some(start..end)
}

/// `….atlasv1.…`: `at` is the first full stop.
pub(super) fn terraform(text: &[u8], at: usize) -> Option<Range<usize>> {
    let (start, head) = run_before(text, at, Set::Alnum, 14);
    let end = end_of(text, at + 9, &[Part::Run(Set::Word, 50, 80)])?;
    (head == 14).then_some(start..end)
}

/// `<32 hexadecimal digits>-us12`: `at` is the dash.
pub(super) fn mailchimp(text: &[u8], at: usize) -> Option<Range<usize>> {
    let (start, head) = run_before(text, at, Set::Hex, 32);
    let end = end_of(text, at + 3, &[Part::Run(Set::Digits, 1, 2)])?;
    (head == 32 && can_begin(text, start)).then_some(start..end)
}

/// Where the run of a set begins that ends at `at`, and how long it is, breaks left out.
fn run_before(text: &[u8], at: usize, set: Set, most: usize) -> (usize, usize) {
    let (mut start, mut count) = (at, 0);
    while count < most {
        let Some(last) = start.checked_sub(1) else {
            break;
        };
        let is_escape = matches!(text[last], b'n' | b'r')
            && last.checked_sub(1).is_some_and(|i| text[i] == b'\\');
        if set.holds(text[last]) && !is_escape {
            start = last;
            count += 1;
            continue;
        }
        // The longest break that ends here, if any does.
        let broken = (start.saturating_sub(24)..start).find(|from| {
            matches!(text[*from], b'\n' | b'\r' | b'\\' | 0xE2) && over_breaks(text, *from) == start
        });
        match broken {
            Some(from) if from > 0 && set.holds(text[from - 1]) => start = from,
            _ => break,
        }
    }
    (start, count)
}

/// `-pPASSWORD` of a database client; `at` is behind the flag.
pub(super) fn glued_flag(text: &[u8], at: usize) -> Option<Range<usize>> {
    let line_start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |n| n + 1);
    let line = &text[line_start.max(at.saturating_sub(400))..at];
    let is_client = [&b"mysql"[..], b"mariadb"]
        .iter()
        .any(|name| memchr::memmem::find(line, name).is_some());
    let ends = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'\\' | b'`' | b';');
    let rest = text.get(at..)?;
    let rest = &rest[..rest.len().min(256)];
    let value = &rest[..rest.iter().position(ends).unwrap_or(rest.len())];
    let worth = values::is_secret(value, values::Class::Password, values::Stands::Tight);
    (is_client && worth && !starts_reference(value)).then_some(at..at + value.len())
}

/// `-u name:password` of a program that fetches; `at` is behind the flag.
pub(super) fn user_flag(text: &[u8], at: usize) -> Option<Range<usize>> {
    let line_start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |n| n + 1);
    let line = &text[line_start.max(at.saturating_sub(400))..at];
    let fetches = [&b"curl"[..], b"wget", b"http"]
        .iter()
        .any(|name| memchr::memmem::find(line, name).is_some());
    let quote = usize::from(matches!(text.get(at), Some(b'"' | b'\'')));
    let start = at + quote;
    let ends = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'\\');
    let rest = text.get(start..)?;
    let rest = &rest[..rest.len().min(512)];
    let value = &rest[..rest.iter().position(ends).unwrap_or(rest.len())];
    let colon = memchr::memchr(b':', value)?;
    let (name, password) = (&value[..colon], &value[colon + 1..]);
    let known = password == name
        || password.len() < 4
        || values::is_placeholder(password)
        || starts_reference(password)
        || password.starts_with(b"//")
        || name.is_empty();
    (fetches && !known).then_some(start + colon + 1..start + value.len())
}
