//! Base64 in texts: a quick test, a lenient decoder, and logins.

use super::body::changes;
use super::shapes::Set;

/// Returns true if a run can be base64: it ends in `=`, or mixes character classes.
pub(super) fn may_be(value: &[u8]) -> bool {
    let has = |test: fn(&u8) -> bool| value.iter().any(test);
    let upper = has(u8::is_ascii_uppercase);
    value.ends_with(b"=") || (upper || has(u8::is_ascii_digit)) && changes(value) >= 2
}

/// Decodes base64 and skips other characters.
pub(super) fn decode(text: &[u8]) -> Vec<u8> {
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

/// Returns true if a value is base64 of a name, a colon and a password.
pub(super) fn is_login(value: &[u8]) -> bool {
    let plain = decode(value);
    let readable = plain.iter().all(|b| *b >= 0x20 && *b != 0x7F);
    value.len() >= 8
        && readable
        && plain.contains(&b':')
        && value.iter().all(|b| Set::Base64.holds(*b))
}
