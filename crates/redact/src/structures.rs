//! Secrets recognised by their structure instead of a key prefix: blocks, tokens in three parts,
//! addresses with a password, headers, passwords beside a user name.
//!
//! Each function is called at its anchor and returns the byte range to redact. The range never
//! splits a character.

use std::ops::Range;

use super::assignments::{Class, Name, ValuePosition, judge, skip};
use super::extent::read;
use super::keys::{Part, Set, can_begin, cut_run, end_of};
use super::lines;
use super::randomness;
use super::values;
use super::views;

/// `<private>` to its closing tag, or to the end of the text. Tags can nest.
pub(super) fn private(text: &[u8], at: usize, _: usize) -> Option<Range<usize>> {
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
pub(super) fn web_token(text: &[u8], at: usize, _: usize) -> Option<Range<usize>> {
    if !can_begin(text, at) {
        return None;
    }
    let long = |least| Part::Run(Set::WORD, least, Part::ANY);
    let dot = Part::Is(b'.');
    let two = [long(12), dot, long(10), dot, long(4)];
    // The signature can be missing: cut off, or never there.
    let Some(mut end) = end_of(text, at, &two).or_else(|| end_of(text, at, &two[..3])) else {
        let run = Set::DOTTED.run(text, at, text.len());
        let is_header = views::decode(&text[at..at + run.min(24)]).starts_with(b"{\"");
        let cut = run >= 20
            && is_header
            && lines::is_cut(text, at + run)
            && names_a_method(&text[at..at + run]);
        return cut
            .then_some(at..at + run)
            .or_else(|| encoded(text, at, at));
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
    let plain = views::decode(&text[..text.len().min(48)]);
    let mut names = [
        "\"alg\"", "\"typ\"", "\"kid\"", "\"enc\"", "\"jku\"", "\"cty\"",
    ]
    .iter();
    names.any(|name| memchr::memmem::find(&plain, name.as_bytes()).is_some())
}

/// Base64 of a text that contains a private key, a token or a login.
pub(super) fn encoded(text: &[u8], at: usize, _: usize) -> Option<Range<usize>> {
    /// Length that is decoded, in bytes. Names of secrets come early, except in account files.
    const NEAR: usize = 4096;
    let before = text[..at].last();
    if !can_begin(text, at)
        || matches!(before, Some(b'+' | b'/' | b'.'))
        || text[..at].ends_with(b"base64,")
    {
        return None;
    }
    let end = end_of(text, at, &[Part::Run(Set::BASE64, 24, 1 << 20)])?;
    let near = text[at..end].iter().copied().take(NEAR);
    let run: Vec<u8> = near.filter(|b| Set::BASE64.holds(*b)).collect();
    let plain = views::decode(&run);
    let has = |words: &[u8]| memchr::memmem::find(&plain, words).is_some();
    let armour = plain.starts_with(b"-----BEGIN") && (has(b"PRIVATE KEY") || has(b"ENCRYPTED KEY"));
    let token = plain.starts_with(b"eyJ") && names_a_method(&plain);
    let names: &[&[u8]] = &[
        b"\"auth", b"\"private_key", b"\"password", b"\"secret", b"\"token", b"\"k\":\"",
        b"\"s\":\"", b"\"apiKey", b"\"api_key", b"\"access",
    ];
    let object =
        plain.first() == Some(&b'{') && run.len() >= 40 && names.iter().any(|name| has(name));
    let heads = [&b"{\"a\":\""[..], b"{\"k\":\""];
    let short = run.len() >= 80 && heads.iter().any(|head| plain.starts_with(head));
    (armour || token || object || short).then_some(at..end)
}

/// Value of a secret JSON Web Key member. `at` is the last letter of its name.
pub(super) fn key_member(text: &[u8], at: usize, end: usize) -> Option<Range<usize>> {
    const NEAR: usize = 6000;
    let letters = text[..at].iter().rev().take(2);
    let start = at - letters.take_while(|b| b.is_ascii_lowercase()).count();
    let named = matches!(&text[start..=at], b"d" | b"p" | b"q" | b"k" | b"dp" | b"dq");
    if !named || start.checked_sub(1).is_none_or(|i| text[i] != b'"') {
        return None;
    }
    let from = skip(text, end, |b| matches!(b, b' ' | b'\\' | b'"'));
    let length = Set::WORD.run(text, from, text.len());
    let near = &text[at.saturating_sub(NEAR)..text.len().min(end + NEAR)];
    let is_key = memchr::memmem::find(near, b"kty").is_some();
    (length >= 20 && is_key && randomness::is_random(&text[from..from + length]))
        .then_some(from..from + length)
}

/// Forty characters after an AWS access key, beside it or in the next column.
pub(super) fn behind_key(text: &[u8], at: usize, _: usize) -> Vec<Range<usize>> {
    const NEAR: usize = 160;
    const LENGTH: usize = 40;
    let Some(mut start) = end_of(text, at + 4, &[Part::Run(Set::UPPER, 16, 16)]) else {
        return Vec::new();
    };
    let near = &text[start..text.len().min(start + NEAR)];
    let is_of_key = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    let found = near.split(|b| !is_of_key(b)).find_map(|value| {
        let at = start..start + value.len();
        start = at.end + 1;
        let mixed = value.iter().any(u8::is_ascii_digit)
            && value.iter().any(u8::is_ascii_uppercase)
            && value.iter().any(u8::is_ascii_lowercase);
        let fits = value.len() == LENGTH || at.len() >= 12 && lines::is_cut(text, at.end);
        (fits && at.len() <= LENGTH && mixed && !randomness::is_documented(value)).then_some(at)
    });
    found.into_iter().collect()
}

/// Password of an address, or the key alone before its `@`. `at` is the colon of `://`.
pub(super) fn address(text: &[u8], at: usize, _: usize) -> Option<Range<usize>> {
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
        let known = password == name || randomness::is_placeholder(password);
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
        && !randomness::is_placeholder(password);
    (secret && !host && !is_port).then_some(start + colon + 1..end)
}

fn starts_reference(text: &[u8]) -> bool {
    matches!(text.first(), Some(b'$' | b'{' | b'<' | b'%' | b'*' | b'[')) && {
        // `%40` is an escaped character, `%PASSWORD%` a reference.
        text.first() != Some(&b'%') || text.last() == Some(&b'%')
    }
}

/// Value after `Bearer` and similar schemes. `at` is the position after the word.
pub(super) fn credentials(text: &[u8], _: usize, at: usize) -> Option<Range<usize>> {
    let start = behind_scheme(text, at)?;
    let end = end_of(text, start, &[Part::Run(Set::HEADER, 12, Part::ANY)])
        .or_else(|| cut_run(text, start, false))?;
    let value = &text[start..end];
    let joined = value.iter().copied().filter(|b| Set::HEADER.holds(*b));
    let joined: Vec<u8> = joined.collect();
    (randomness::is_random(&joined) && !randomness::is_placeholder(&joined)).then_some(start..end)
}

/// Position after one to four spaces.
fn behind_scheme(text: &[u8], at: usize) -> Option<usize> {
    let start = skip(text, at, |b| *b == b' ');
    (1..=4).contains(&(start - at)).then_some(start)
}

/// Value after `Basic`: base64 of a name, a colon and a password.
pub(super) fn basic(text: &[u8], _: usize, at: usize) -> Option<Range<usize>> {
    let start = behind_scheme(text, at)?;
    let end = end_of(text, start, &[Part::Run(Set::BASE64, 8, 4096)])?;
    views::is_login(&text[start..end]).then_some(start..end)
}

/// Value of a `Cookie:` or `Set-Cookie:` header. `at` is the position after the word.
pub(super) fn cookie(text: &[u8], _: usize, at: usize) -> Option<Range<usize>> {
    let rest = &text[at..text.len().min(at + 8192)];
    // In JSON, a quote closes the name of the header.
    let skipped = skip(rest, 0, |b| matches!(b, b'"' | b'\'' | b'\\'));
    if rest.get(skipped) != Some(&b':') {
        return None;
    }
    let start = skip(rest, skipped + 1, |b| {
        matches!(b, b' ' | b'"' | b'\'' | b'\\' | b'[')
    });
    let ends = |b: &u8| matches!(b, b'\n' | b'\r' | b'"' | b'\'' | b'\\' | b'<');
    let length = rest[start..].iter().position(ends);
    let value = &rest[start..length.map_or(rest.len(), |n| start + n)];
    let equals = memchr::memchr(b'=', value)?;
    let name = &value[..equals];
    let first = value[equals + 1..].split(|b| b"; ".contains(b)).next()?;
    let is_pair = !name.is_empty() && name.iter().all(|b| Set::DOTTED.holds(*b));
    let worth = first.len() >= 6 && !randomness::is_placeholder(first) && !starts_reference(first);
    (is_pair && worth).then_some(at + start..at + start + value.len())
}

/// Value of `"auth"`: base64 of name and password. `at..end` is the word.
pub(super) fn auth(text: &[u8], at: usize, end: usize) -> Option<Range<usize>> {
    let before = at.checked_sub(1).map(|i| text[i]);
    if before.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')) {
        return None;
    }
    let behind = skip(text, end, |b| matches!(b, b'"' | b'\'' | b'\\' | b' '));
    let behind = behind + usize::from(text.get(behind) == Some(&b':'));
    let from = skip(text, behind, |b| matches!(b, b'"' | b'\'' | b'\\' | b' '));
    let length = Set::BASE64.run(text, from, 4096);
    let value = &text[from..from + length];
    views::is_login(value).then_some(from..from + length)
}

/// Second of two quoted arguments. `at` is the position after the bracket.
pub(super) fn second_argument(text: &[u8], _: usize, at: usize) -> Option<Range<usize>> {
    let name = Name::password(at);
    let from = skip(text, at, u8::is_ascii_whitespace);
    let (first, how) = read(text, from, ValuePosition::Loose, &name)?;
    let behind = first.end + usize::from(how == ValuePosition::Quoted);
    let comma = skip(text, behind, |b| matches!(b, b' ' | b'\\'));
    if text.get(comma) != Some(&b',') {
        return None;
    }
    let from = skip(text, comma + 1, u8::is_ascii_whitespace);
    let (second, how) = read(text, from, ValuePosition::Loose, &name)?;
    (how == ValuePosition::Quoted && judge(text, &second, &name, how)).then_some(second)
}

/// `IDENTIFIED BY '…'`, `IDENTIFIED WITH method BY '…'`. `at` is the position after the words.
pub(super) fn sql(text: &[u8], _: usize, at: usize) -> Option<Range<usize>> {
    let near = &text[..text.len().min(at + 80)];
    let mut from = skip(near, at, u8::is_ascii_whitespace);
    let by = text[at.saturating_sub(2)..at].eq_ignore_ascii_case(b"by");
    if !by {
        let found = memchr::memmem::find(&near[from..], b" BY ")
            .or_else(|| memchr::memmem::find(&near[from..], b" by "))?;
        from = skip(text, from + found + 4, u8::is_ascii_whitespace);
    }
    let name = Name::password(at);
    let (range, how) = read(text, from, ValuePosition::Tight, &name)?;
    let value = &text[range.clone()];
    let quoted = how == ValuePosition::Quoted && matches!(text[range.start - 1], b'\'' | b'"');
    let firm = quoted || value.iter().any(u8::is_ascii_digit);
    (firm && values::is_given(value)).then_some(range)
}

/// Last of five fields: `host:port:database:user:password`. `at` is the first colon.
pub(super) fn pgpass(text: &[u8], at: usize, _: usize) -> Option<Range<usize>> {
    let line = lines::line_at(text, at);
    let rest = &text[at + 1..line.end.max(at + 1)];
    let star = text[at] == b'*';
    let skip = if star { 4 } else { 3 };
    let fields: Vec<&[u8]> = rest.splitn(skip + 1, |b| *b == b':').collect();
    let &[.., user, password] = fields.as_slice() else {
        return None;
    };
    let password = password.trim_ascii_end();
    if fields.len() != skip + 1 {
        return None;
    }
    let of_field = |b: &u8| b.is_ascii_graphic() && !b"/\"'".contains(b);
    let plain = |field: &&[u8]| !field.is_empty() && field.iter().all(of_field);
    let fits = fields[..skip].iter().all(plain) && !user.iter().all(u8::is_ascii_digit);
    let start = line.end.max(at + 1) - fields[skip].len();
    let given = values::is_given(password)
        && values::is_secret(password, Class::Password, ValuePosition::Loose);
    (fits && given).then_some(start..start + password.len())
}

/// Answer that an `expect` script sends to a password prompt. `end` is the position after the
/// quote.
pub(super) fn expect(text: &[u8], at: usize, end: usize) -> Option<Range<usize>> {
    let before = &text[at.saturating_sub(160)..at];
    memchr::memmem::rfind(before, b"assword")
        .or_else(|| memchr::memmem::rfind(before, b"assphrase"))?;
    let rest = &text[end..text.len().min(end + 200)];
    let length = rest
        .iter()
        .position(|b| matches!(b, b'\\' | b'"' | b'\n'))?;
    let value = end..end + length;
    values::is_given(&text[value.clone()]).then_some(value)
}
