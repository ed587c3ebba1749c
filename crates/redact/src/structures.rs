//! Secrets recognised by their structure instead of a key prefix: blocks, tokens in three parts,
//! addresses with a password, headers, passwords beside a user name.
//!
//! Each function is called at its anchor and returns the byte range to redact. The range never
//! splits a character.

use std::ops::Range;

use memchr::{memchr, memrchr};

use super::bytes::{SPACE, Set, can_begin, holds, near, skip};
use super::extent::{Name, judge, read};
use super::keys::{Part, cut_run, end_of};
use super::lines;
use super::values::{self, Class, ValuePosition};
use super::views;

/// Quotes around a name or a value, also escaped.
const QUOTES: &[u8] = b"\"'\\ ";

/// `<private>` to its closing tag, or to the end of the text. Tags can nest.
pub(super) fn private(text: &[u8], at: usize, _: usize) -> Option<Range<usize>> {
    let behind_tag = |at: usize| {
        let rest = near(text, at, 200);
        let is_tag = rest.get(..7)?.eq_ignore_ascii_case(b"private");
        match rest.get(7)? {
            b'>' => Some(at + 8),
            b' ' | b'\t' | b'\n' => memchr(b'>', rest).map(|n| at + n + 1),
            _ => None,
        }
        .filter(|_| is_tag)
    };
    let mut end = behind_tag(at + 1)?;
    // A tag in Markdown backticks only mentions it.
    if at > 0 && text[at - 1] == b'`' && text.get(end) == Some(&b'`') {
        return None;
    }
    let mut depth = 1;
    while depth > 0 {
        let Some(next) = memchr(b'<', &text[end..]) else {
            return Some(at..text.len());
        };
        end += next + 1;
        if let Some(behind) = behind_tag(end) {
            (end, depth) = (behind, depth + 1);
        } else if text.get(end) == Some(&b'/')
            && let Some(behind) = behind_tag(end + 1)
        {
            (end, depth) = (behind, depth - 1);
        }
    }
    Some(at..end)
}

/// JSON Web Token: two or three parts, the first a JSON object. Also the remainder of a truncated token.
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
        let token = &text[at..at + run];
        let is_cut = run >= 20
            && views::decode(&token[..run.min(24)]).starts_with(b"{\"")
            && lines::is_cut(text, at + run)
            && names_a_method(token);
        return is_cut.then_some(at..at + run);
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
    let mut names = ["alg", "typ", "kid", "enc", "jku", "cty"].iter();
    names.any(|name| holds(&plain, format!("\"{name}\"").as_bytes()))
}

/// Value of a secret JSON Web Key member. `at` is the last letter of its name.
pub(super) fn key_member(text: &[u8], at: usize, end: usize) -> Option<Range<usize>> {
    const NEAR: usize = 6000;
    let quote = memrchr(b'"', &text[at.saturating_sub(2)..at])?;
    let name = &text[at.saturating_sub(2) + quote + 1..=at];
    if !matches!(name, b"d" | b"p" | b"q" | b"k" | b"dp" | b"dq") {
        return None;
    }
    let from = skip(text, end, b" \\\"");
    let length = Set::WORD.run(text, from, text.len());
    let around = &text[at.saturating_sub(NEAR)..text.len().min(end + NEAR)];
    (length >= 20 && holds(around, b"kty") && values::is_random(&text[from..from + length]))
        .then_some(from..from + length)
}

/// Value of a secret member of an RSA key in XML. `end` is the position after its tag.
pub(super) fn xml_member(text: &[u8], at: usize, end: usize) -> Option<Range<usize>> {
    const NEAR: usize = 6000;
    let length = Set::BASE64.run(text, end, text.len());
    let before = &text[at.saturating_sub(NEAR)..at];
    (length >= 20 && holds(before, b"<RSAKeyValue>")).then_some(end..end + length)
}

/// Forty characters after an AWS access key, beside it or in the next column.
pub(super) fn behind_key(text: &[u8], at: usize, _: usize) -> Option<Range<usize>> {
    const NEAR: usize = 160;
    const LENGTH: usize = 40;
    let mut start = end_of(text, at + 4, &[Part::Run(Set::UPPER, 16, 16)])?;
    let mut values = near(text, start, NEAR).split(|b| !Set::BODY.holds(*b));
    values.find_map(|value| {
        let at = start..start + value.len();
        start = at.end + 1;
        let has = |test: fn(&u8) -> bool| value.iter().any(test);
        let mixed =
            has(u8::is_ascii_digit) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
        let fits = value.len() == LENGTH || at.len() >= 12 && lines::is_cut(text, at.end);
        (fits && at.len() <= LENGTH && mixed && !values::is_documented(value)).then_some(at)
    })
}

/// Password of an address, or the key alone before its `@`. `at` is the colon of `://`.
pub(super) fn address(text: &[u8], at: usize, _: usize) -> Option<Range<usize>> {
    let start = at + 3;
    let ends = |b: &u8| b.is_ascii_whitespace() || b"\"<>`|".contains(b);
    let rest = near(text, start, 1024);
    let authority = &rest[..rest.iter().position(ends).unwrap_or(rest.len())];
    // A password may contain an unescaped slash. An `@` after the first slash is the separator only
    // if a colon precedes that slash.
    let first_slash = memchr(b'/', authority).unwrap_or(authority.len());
    if let Some(cut) = cut_address(text, start, authority) {
        return Some(cut);
    }
    let host_at = memrchr(b'@', &authority[..first_slash]).or_else(|| {
        let colon = memchr(b':', &authority[..first_slash])?;
        let mut port = authority[colon + 1..first_slash].iter();
        let found = memrchr(b'@', authority)?;
        (!port.all(u8::is_ascii_digit) && found > colon && !authority[..found].contains(&b'?'))
            .then_some(found)
    })?;
    let user = &authority[..host_at];
    let Some(colon) = memchr(b':', user) else {
        return (values::is_random(user) && user.len() >= 16).then_some(start..start + host_at);
    };
    let (name, password) = (&user[..colon], &user[colon + 1..]);
    let is_plain = password == name || values::is_placeholder(password);
    if password.is_empty() || is_plain {
        // `https://<token>:x-oauth-basic@github.com`
        return values::is_random(name).then_some(start..start + colon);
    }
    Some(start + colon + 1..start + host_at)
}

/// Remainder of a password that was cut off before its `@`.
fn cut_address(text: &[u8], start: usize, authority: &[u8]) -> Option<Range<usize>> {
    let end = start + authority.len();
    if !lines::is_cut(text, end) || authority.contains(&b'@') {
        return None;
    }
    let colon = memchr(b':', authority)?;
    let password = &authority[colon + 1..];
    let host = authority[..colon].iter().any(|b| b"./".contains(b));
    let port = Set::DIGITS.run(password, 0, password.len());
    let behind = password.get(port);
    let is_port = (1..=5).contains(&port) && behind.is_none_or(|b| b"/.,)?".contains(b));
    let secret =
        password.len() >= 4 && !password.contains(&b'/') && !values::is_placeholder(password);
    (secret && !host && !is_port).then_some(start + colon + 1..end)
}

/// Value after `Bearer` and similar schemes. `at` is the position after the word.
pub(super) fn credentials(text: &[u8], _: usize, at: usize) -> Option<Range<usize>> {
    let start = behind_scheme(text, at)?;
    let end = end_of(text, start, &[Part::Run(Set::HEADER, 12, Part::ANY)])
        .or_else(|| cut_run(text, start, false))?;
    let value = text[start..end].iter().copied();
    let joined: Vec<u8> = value.filter(|b| Set::HEADER.holds(*b)).collect();
    (values::is_random(&joined) && !values::is_placeholder(&joined)).then_some(start..end)
}

/// Position after one to four spaces.
fn behind_scheme(text: &[u8], at: usize) -> Option<usize> {
    let start = skip(text, at, b" ");
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
    let rest = near(text, at, 8192);
    // In JSON, a quote closes the name of the header.
    let colon = skip(rest, 0, b"\"'\\");
    if rest.get(colon) != Some(&b':') {
        return None;
    }
    let start = skip(rest, colon + 1, b" \"'\\[");
    let ends = |b: &u8| b"\n\r\"'\\<".contains(b);
    let value = rest[start..].split(ends).next()?;
    let equals = memchr(b'=', value)?;
    let first = value[equals + 1..].split(|b| b"; ".contains(b)).next()?;
    let is_pair = equals > 0 && Set::DOTTED.run(value, 0, equals) == equals;
    let worth = first.len() >= 6 && !values::is_placeholder(first);
    (is_pair && worth).then_some(at + start..at + start + value.len())
}

/// Value of `"auth"`: base64 of name and password. `at..end` is the word.
pub(super) fn auth(text: &[u8], at: usize, end: usize) -> Option<Range<usize>> {
    if !can_begin(text, at) {
        return None;
    }
    let behind = skip(text, end, QUOTES);
    let behind = behind + usize::from(text.get(behind) == Some(&b':'));
    let from = skip(text, behind, QUOTES);
    let value = from..from + Set::BASE64.run(text, from, 4096);
    views::is_login(&text[value.clone()]).then_some(value)
}

/// Second of two quoted arguments. `at` is the position after the bracket.
pub(super) fn second_argument(text: &[u8], _: usize, at: usize) -> Option<Range<usize>> {
    let name = Name::password(at);
    let argument = |at| read(text, skip(text, at, SPACE), ValuePosition::Loose, &name);
    let (first, how) = argument(at)?;
    let behind = first.end + usize::from(how == ValuePosition::Quoted);
    let comma = skip(text, behind, b" \\");
    let (second, how) = argument(comma + 1).filter(|_| text.get(comma) == Some(&b','))?;
    (how == ValuePosition::Quoted && judge(text, &second, &name, how)).then_some(second)
}

/// `IDENTIFIED BY '…'`, `IDENTIFIED WITH method BY '…'`. `at` is the position after the words.
pub(super) fn sql(text: &[u8], _: usize, at: usize) -> Option<Range<usize>> {
    let mut from = skip(text, at, SPACE);
    if !text[at.saturating_sub(2)..at].eq_ignore_ascii_case(b"by") {
        let method = near(text, from, (at + 80).saturating_sub(from));
        let by = memchr::memmem::find(&method.to_ascii_uppercase(), b" BY ")?;
        from = skip(text, from + by + 4, SPACE);
    }
    let (range, how) = read(text, from, ValuePosition::Tight, &Name::password(at))?;
    let value = &text[range.clone()];
    let quoted = how == ValuePosition::Quoted && matches!(text[range.start - 1], b'\'' | b'"');
    let firm = quoted || value.iter().any(u8::is_ascii_digit);
    (firm && values::is_given(value)).then_some(range)
}

/// Last of five fields: `host:port:database:user:password`. `at` is the first colon.
pub(super) fn pgpass(text: &[u8], at: usize, _: usize) -> Option<Range<usize>> {
    let end = lines::line_at(text, at).end.max(at + 1);
    // An anchor of stars begins with the host.
    let before = if text[at] == b'*' { 4 } else { 3 };
    let mut fields = text[at + 1..end].splitn(before + 1, |b| *b == b':');
    let others: Vec<&[u8]> = fields.by_ref().take(before).collect();
    let password = fields.next()?;
    let start = end - password.len();
    let password = password.trim_ascii_end();
    let of_field = |b: &u8| b.is_ascii_graphic() && !b"/\"'".contains(b);
    let plain = |field: &&[u8]| !field.is_empty() && field.iter().all(of_field);
    let is_number = |user: &&[u8]| user.iter().all(u8::is_ascii_digit);
    let fits = others.iter().all(plain) && !others.last().is_some_and(is_number);
    let given = values::is_given(password)
        && values::is_secret(password, Class::Password, ValuePosition::Loose);
    (fits && given).then_some(start..start + password.len())
}

/// Answer that an `expect` script sends to a password prompt. `end` is the position after the
/// quote.
pub(super) fn expect(text: &[u8], at: usize, end: usize) -> Option<Range<usize>> {
    let before = &text[at.saturating_sub(160)..at];
    let rest = near(text, end, 200);
    let length = rest.iter().position(|b| b"\\\"\n".contains(b))?;
    let is_prompt = holds(before, b"assword") || holds(before, b"assphrase");
    (is_prompt && values::is_given(&rest[..length])).then_some(end..end + length)
}
