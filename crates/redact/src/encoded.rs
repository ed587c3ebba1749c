//! Texts in base64, decoded and searched like any other text.
//!
//! A run is redacted as a whole if its content holds a secret. Most long runs are hashes, paths and
//! names, whose content is not text; the first bytes tell.
//!
//! Deliberately absent: compressed content, and a password alone, which has no form when decoded.

use std::ops::Range;

use super::base64::decode;
use super::body::{can_begin, end_of};
use super::shapes::{Part, Set};

/// Length of the shortest run: 18 bytes.
const LEAST: usize = 24;
/// Number of characters of a run that are decoded.
const NEAR: usize = 64 << 10;
/// Number of bytes that tell text from others.
const HEAD: usize = 12;

/// Run of base64 and its content.
pub(super) struct Encoded {
    pub(super) at: Range<usize>,
    pub(super) text: String,
}

/// Returns the runs whose content is text, in order.
pub(super) fn texts(text: &str) -> Vec<Encoded> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut from = 0;
    // Every run covers one of these positions.
    while let Some(window) = bytes.get(from..from + LEAST) {
        let covered = window.iter().rev().take_while(|b| is_body(**b)).count();
        if covered < LEAST {
            from += LEAST - covered;
            continue;
        }
        let start = from;
        from += bytes[from..].iter().take_while(|b| is_body(**b)).count();
        if let Some(encoded) = decoded(bytes, start) {
            from = from.max(encoded.at.end);
            found.push(encoded);
        }
    }
    found
}

fn is_body(byte: u8) -> bool {
    BODY[usize::from(byte)]
}

/// Characters of base64 without padding: a lookup is faster than comparisons.
const BODY: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128_u8 {
        table[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
        byte += 1;
    }
    table
};

/// Decodes the run at a position, across line breaks; `None` if its content is no text.
fn decoded(bytes: &[u8], at: usize) -> Option<Encoded> {
    let head = decode(&bytes[at..at + LEAST]);
    let wide = head.iter().skip(1).step_by(2).all(|byte| *byte == 0);
    if !(wide || is_text(&head)) || !can_begin(bytes, at) {
        return None;
    }
    let mut end = end_of(bytes, at, &[Part::Run(Set::Base64, LEAST, 1 << 20)])?;
    // Padding ends a run, regardless of the next line.
    if let Some(padding) = memchr::memchr(b'=', &bytes[at..end]) {
        let padding = at + padding;
        end = padding
            + bytes[padding..end]
                .iter()
                .take_while(|b| **b == b'=')
                .count();
    }
    let run = bytes[at..end]
        .iter()
        .copied()
        .filter(|b| Set::Base64.holds(*b));
    let mut plain = decode(&run.take(NEAR).collect::<Vec<u8>>());
    if wide {
        // PowerShell encodes its commands as UTF-16.
        plain = plain.into_iter().step_by(2).collect();
    }
    Some(Encoded {
        at: at..end,
        text: String::from_utf8_lossy(&plain).into_owned(),
    })
}

/// Returns `true` if the first bytes are readable text, of which the last character may be cut.
fn is_text(head: &[u8]) -> bool {
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text.len(),
        Err(error) => error.valid_up_to(),
    };
    let is_readable = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r' | 0x80..);
    valid >= HEAD && head[..HEAD].iter().all(is_readable)
}

#[cfg(test)]
mod tests {
    use super::super::redact;
    use super::super::templates::base64;
    use super::*;

    #[test]
    fn runs_of_text_are_decoded() {
        let check = |text: &str, expected: &[&str]| {
            let found = texts(text);
            let found: Vec<&str> = found.iter().map(|encoded| encoded.text.as_str()).collect();
            assert_eq!(found, expected, "{text}");
        };
        let plain = "the quick brown fox jumps";
        let encoded = base64(plain.as_bytes());
        check(&encoded, &[plain]);
        check(&format!("echo {encoded} | base64 -d"), &[plain]);
        check(&format!("A={encoded}\nB={encoded}"), &[plain, plain]);
        check(&format!("x{encoded}"), &[]);
        check("getElementsByClassNameOfTheParent", &[]);
        check("0123456789abcdef0123456789abcdef01234567", &[]);
        check("/usr/local/lib/python/site/packages/memory", &[]);
        check(&encoded[..20], &[]);
        let wide: Vec<u8> = plain.bytes().flat_map(|byte| [byte, 0]).collect();
        check(&format!("powershell -enc {}", base64(&wide)), &[plain]);
        let six = plain.repeat(6);
        let long = base64(six.as_bytes());
        let folded = format!("{}\n{}\n{}", &long[..76], &long[76..152], &long[152..]);
        check(&folded, &[&six]);
    }

    #[test]
    fn a_run_that_holds_a_secret_goes_as_a_whole() {
        let token = format!("gh{}_{}", "p", "a1B2c3D4e5".repeat(4));
        for inside in [
            token.clone(),
            format!("machine github.com login jane password {token}\n"),
            base64(token.as_bytes()),
        ] {
            let encoded = base64(inside.as_bytes());
            let text = format!("echo {encoded} | base64 -d");
            let expected = "echo [REDACTED:encoded-secret] | base64 -d";
            assert_eq!(redact(&text).text, expected, "{inside}");
        }
        let open = format!(
            "echo {} | base64 -d",
            base64(b"nothing of worth is in here")
        );
        assert_eq!(redact(&open).text, open);
    }
}
