//! Secrets recognised by their structure instead of a key prefix: blocks, tokens in three parts,
//! addresses with a password, headers.
//!
//! Each function is called at its anchor and returns the byte range to redact. The range never
//! splits a character.

use std::ops::Range;

use super::base64;
use super::body::{can_begin, end_of, over_breaks};
use super::lines;
use super::placeholders;
use super::randomness;
use super::shapes::{Part, Set};

/// `<private>` to its closing tag, or to the end of the text. Tags can nest.
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
    // A tag in Markdown backticks only mentions it.
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

/// JSON Web Token: two or three parts, the first a JSON object. Also the first part alone if it
/// contains a key, and the remainder of a truncated token.
pub(super) fn web_token(text: &[u8], at: usize) -> Option<Range<usize>> {
    if !can_begin(text, at) {
        return None;
    }
    let long = |least| Part::Run(Set::Word, least, 1 << 16);
    let dot = Part::Is(b'.');
    let two = [long(12), dot, long(10), dot, long(4)];
    // The signature can be missing: cut off, or never there.
    let Some(mut end) = end_of(text, at, &two).or_else(|| end_of(text, at, &two[..3])) else {
        let run = run_length(text, at, Set::Dotted);
        let is_header = base64::decode(&text[at..at + run.min(24)]).starts_with(b"{\"");
        let cut = run >= 20
            && is_header
            && lines::is_cut(text, at + run)
            && names_a_method(&text[at..at + run]);
        return cut.then_some(at..at + run).or_else(|| encoded(text, at));
    };
    // An encrypted token has two more parts.
    while let Some(next) = end_of(text, end, &two[3..]) {
        end = next;
    }
    // `pk.eyJ…` is public; the prefix `sk.` belongs to a secret token.
    let start = at - if text[..at].ends_with(b"sk.") { 3 } else { 0 };
    Some(start..end)
}

/// Returns true if base64 decodes to the header of a JSON Web Token.
fn names_a_method(text: &[u8]) -> bool {
    let plain = base64::decode(&text[..text.len().min(48)]);
    [
        &b"\"alg\""[..],
        b"\"typ\"",
        b"\"kid\"",
        b"\"enc\"",
        b"\"jku\"",
        b"\"cty\"",
    ]
    .iter()
    .any(|name| memchr::memmem::find(&plain, name).is_some())
}

fn run_length(text: &[u8], at: usize, set: Set) -> usize {
    text[at..].iter().take_while(|b| set.holds(**b)).count()
}

/// Base64 of a text that contains a private key, a token or a login.
pub(super) fn encoded(text: &[u8], at: usize) -> Option<Range<usize>> {
    /// Length that is decoded, in bytes. Names of secrets come early, except in account files.
    const NEAR: usize = 4096;
    let before = text[..at].last();
    if !can_begin(text, at)
        || matches!(before, Some(b'+' | b'/' | b'.'))
        || text[..at].ends_with(b"base64,")
    {
        return None;
    }
    let end = end_of(text, at, &[Part::Run(Set::Base64, 24, 1 << 20)])?;
    let run: Vec<u8> = text[at..end]
        .iter()
        .copied()
        .take(NEAR)
        .filter(|b| Set::Base64.holds(*b))
        .collect();
    let plain = base64::decode(&run);
    let has = |words: &[u8]| memchr::memmem::find(&plain, words).is_some();
    let armour = plain.starts_with(b"-----BEGIN") && (has(b"PRIVATE KEY") || has(b"ENCRYPTED KEY"));
    let token = plain.starts_with(b"eyJ") && names_a_method(&plain);
    let names: &[&[u8]] = &[
        b"\"auth", b"\"private_key", b"\"password", b"\"secret", b"\"token", b"\"k\":\"",
        b"\"s\":\"", b"\"apiKey", b"\"api_key", b"\"access",
    ];
    let object =
        plain.first() == Some(&b'{') && run.len() >= 40 && names.iter().any(|name| has(name));
    let short = run.len() >= 80
        && [&b"{\"a\":\""[..], b"{\"k\":\""]
            .iter()
            .any(|head| plain.starts_with(head));
    (armour || token || object || short).then_some(at..end)
}

/// Value of a secret JSON Web Key member. `at` is the last letter of its name.
pub(super) fn key_member(text: &[u8], at: usize, end: usize) -> Option<Range<usize>> {
    const NEAR: usize = 6000;
    let start = at
        - text[..at]
            .iter()
            .rev()
            .take(2)
            .take_while(|b| b.is_ascii_lowercase())
            .count();
    let named = matches!(&text[start..=at], b"d" | b"p" | b"q" | b"k" | b"dp" | b"dq");
    if !named || start.checked_sub(1).is_none_or(|i| text[i] != b'"') {
        return None;
    }
    let from = end
        + text[end..]
            .iter()
            .take(4)
            .take_while(|b| matches!(b, b' ' | b'\\' | b'"'))
            .count();
    let length = run_length(text, from, Set::Word);
    let near = &text[at.saturating_sub(NEAR)..text.len().min(end + NEAR)];
    let is_key = memchr::memmem::find(near, b"kty").is_some();
    (length >= 20 && is_key && randomness::is_random(&text[from..from + length]))
        .then_some(from..from + length)
}

/// `s.` followed by 24 letters and digits.
pub(super) fn vault_legacy(text: &[u8], at: usize) -> Option<Range<usize>> {
    let body = text.get(at + 2..at + 26)?;
    let digits = body.iter().filter(|b| b.is_ascii_digit()).count();
    let capitals = body.iter().filter(|b| b.is_ascii_uppercase()).count();
    let small = body.iter().filter(|b| b.is_ascii_lowercase()).count();
    let whole = body.iter().all(u8::is_ascii_alphanumeric)
        && text
            .get(at + 26)
            .is_none_or(|b| !b.is_ascii_alphanumeric() && !matches!(b, b'_' | b'('));
    (whole
        && digits >= 1
        && capitals >= 2
        && small >= 2
        && can_begin(text, at)
        && !text[..at].ends_with(b".")
        && !text[..at].ends_with(b"_"))
    .then_some(at..at + 26)
}

/// Forty characters after an AWS access key, beside it or in the next column.
pub(super) fn behind_key(text: &[u8], at: usize) -> Option<Range<usize>> {
    const NEAR: usize = 160;
    const LENGTH: usize = 40;
    let end = end_of(text, at + 4, &[Part::Run(Set::Upper, 16, 16)])?;
    let near = &text[end..text.len().min(end + NEAR)];
    let secret = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    let mut from = 0;
    while from < near.len() {
        let run = near[from..].iter().take_while(|b| secret(b)).count();
        let value = &near[from..from + run];
        let mixed = value.iter().any(u8::is_ascii_digit)
            && value.iter().any(u8::is_ascii_uppercase)
            && value.iter().any(u8::is_ascii_lowercase);
        let cut = (12..LENGTH).contains(&run) && lines::is_cut(text, end + from + run);
        if (run == LENGTH || cut) && mixed && !placeholders::is_documented(value) {
            return Some(end + from..end + from + run);
        }
        from += run + 1;
    }
    None
}

/// Run of a set, the anchor `at..end`, and these parts.
pub(super) fn around(
    text: &[u8],
    at: usize,
    end: usize,
    (set, least, most): (Set, usize, usize),
    parts: &[Part],
) -> Option<Range<usize>> {
    let (start, _) = runs_before(text, at, set, most)
        .into_iter()
        .find(|(start, count)| *count >= least && can_begin(text, *start))?;
    let end = if parts.is_empty() {
        end
    } else {
        end_of(text, end, parts)?
    };
    let open = text.get(end).is_some_and(u8::is_ascii_alphanumeric);
    (!open && randomness::is_random(&text[start..end])).then_some(start..end)
}

/// Password of an address, or the key alone before its `@`. `at` is the colon of `://`.
pub(super) fn address(text: &[u8], at: usize) -> Option<Range<usize>> {
    let start = at + 3;
    let ends = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'"' | b'<' | b'>' | b'`' | b'|');
    let rest = text.get(start..)?;
    let rest = &rest[..rest.len().min(1024)];
    let authority = &rest[..rest.iter().position(ends).unwrap_or(rest.len())];
    // A password may contain an unescaped slash. An `@` after the first slash is the separator only
    // if a colon precedes that slash.
    let first_slash = memchr::memchr(b'/', authority).unwrap_or(authority.len());
    if let Some(cut) = cut_address(text, start, authority) {
        return Some(cut);
    }
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
        let known = password == name || placeholders::is_placeholder(password);
        if password.is_empty() || known || starts_reference(password) {
            // `https://<token>:x-oauth-basic@github.com`
            return (randomness::is_random(name) && !starts_reference(name))
                .then_some(start..start + colon);
        }
        return Some(start + colon + 1..start + host_at);
    }
    (randomness::is_random(user) && user.len() >= 16).then_some(start..start + host_at)
}

/// Remainder of a password that was cut off before its `@`.
fn cut_address(text: &[u8], start: usize, authority: &[u8]) -> Option<Range<usize>> {
    let end = start + authority.len();
    if !lines::is_cut(text, end) || authority.contains(&b'@') {
        return None;
    }
    let colon = memchr::memchr(b':', authority)?;
    let password = &authority[colon + 1..];
    let host = authority[..colon].contains(&b'.') || authority[..colon].contains(&b'/');
    let port = password.iter().take_while(|b| b.is_ascii_digit()).count();
    let behind = password.get(port);
    let is_port =
        port > 0 && port <= 5 && matches!(behind, None | Some(b'/' | b'.' | b',' | b')' | b'?'));
    let secret = password.len() >= 4
        && !password.contains(&b'/')
        && !starts_reference(password)
        && !placeholders::is_placeholder(password);
    (secret && !host && !is_port).then_some(start + colon + 1..end)
}

fn starts_reference(text: &[u8]) -> bool {
    matches!(text.first(), Some(b'$' | b'{' | b'<' | b'%' | b'*' | b'[')) && {
        // `%40` is an escaped character, `%PASSWORD%` a reference.
        text.first() != Some(&b'%') || text.last() == Some(&b'%')
    }
}

/// Value after `Bearer` and similar schemes. `at` is the position after the word.
pub(super) fn credentials(text: &[u8], at: usize) -> Option<Range<usize>> {
    let spaces = text[at..].iter().take_while(|b| **b == b' ').count();
    if spaces == 0 || spaces > 4 {
        return None;
    }
    let start = at + spaces;
    let end = end_of(text, start, &[Part::Run(Set::Header, 12, 1 << 16)])
        .or_else(|| cut_run(text, start))?;
    let value = &text[start..end];
    let joined: Vec<u8> = value
        .iter()
        .copied()
        .filter(|b| Set::Header.holds(*b))
        .collect();
    (randomness::is_random(&joined) && !placeholders::is_placeholder(&joined)).then_some(start..end)
}

/// Value after `Basic`: base64 of a name, a colon and a password.
pub(super) fn basic(text: &[u8], at: usize) -> Option<Range<usize>> {
    let spaces = text[at..].iter().take_while(|b| **b == b' ').count();
    let start = at + spaces;
    if spaces == 0 || spaces > 4 {
        return None;
    }
    let end = end_of(text, start, &[Part::Run(Set::Base64, 8, 4096)])?;
    base64::is_login(&text[start..end]).then_some(start..end)
}

/// Value of a `Cookie:` or `Set-Cookie:` header. `at` is the position after the word.
pub(super) fn cookie(text: &[u8], at: usize) -> Option<Range<usize>> {
    let rest = &text[at..text.len().min(at + 8192)];
    // In JSON, a quote closes the name of the header.
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
    let worth =
        first.len() >= 6 && !placeholders::is_placeholder(first) && !starts_reference(first);
    (is_pair && worth).then_some(at + start..at + start + value.len())
}

/// `123456789:AA…`: `at` is the colon.
pub(super) fn telegram(text: &[u8], at: usize) -> Option<Range<usize>> {
    let (start, _) = runs_before(text, at, Set::Digits, 12)
        .into_iter()
        .find(|(start, digits)| (8..=11).contains(digits) && can_begin_after_bot(text, *start))?;
    let end =
        end_of(text, at + 2, &[Part::Run(Set::Word, 32, 37)]).or_else(|| cut_run(text, at + 1))?;
    randomness::is_random(&text[at + 2..end]).then_some(start..end)
}

/// Returns true if a bot id can begin here, also in `…/bot123456789:AA…`.
fn can_begin_after_bot(text: &[u8], at: usize) -> bool {
    can_begin(text, at) || text[..at].ends_with(b"bot")
}

/// Bot token: id in base64, time, signature.
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
    let id = base64::decode(&id.take(23).collect::<Vec<_>>());
    id.iter().all(u8::is_ascii_digit).then_some(at..end)
}

/// Azure client secret: three characters, a digit, `Q~`, 30 to 40 characters. `at` is the `Q`.
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

/// Start and length of the run that ends at `at`: across line breaks, then on its own line. A key
/// may be split over lines, and the line before a whole key may end in the same characters.
fn runs_before(text: &[u8], at: usize, set: Set, most: usize) -> [(usize, usize); 2] {
    let own_line = text[..at]
        .iter()
        .rev()
        .take(most)
        .take_while(|b| set.holds(**b))
        .count();
    [
        run_across_breaks(text, at, set, most),
        (at - own_line, own_line),
    ]
}

/// Start and length of the run that ends at `at`. Breaks do not count.
fn run_across_breaks(text: &[u8], at: usize, set: Set, most: usize) -> (usize, usize) {
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
        // Longest break that ends here.
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

/// End of a truncated run that is long enough to recognise.
pub(super) fn cut_run(text: &[u8], at: usize) -> Option<usize> {
    let run = text[at..]
        .iter()
        .take_while(|b| Set::Header.holds(**b) || **b == b'$')
        .count();
    let body = &text[at..at + run];
    (run >= 8
        && lines::is_cut(text, at + run)
        && randomness::is_random(body)
        && !placeholders::is_placeholder(body))
    .then_some(at + run)
}
