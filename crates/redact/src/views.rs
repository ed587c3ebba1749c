//! Texts inside a text: escaped in a line as JSON, shells, URLs and HTML do, and encoded in base64.
//!
//! The inner text is searched like any other. Findings in an unescaped line are mapped back; only lines with
//! escaped line ends, quotes or signs around values are treated so, down to `DEPTH` levels. A run of base64 is
//! redacted as a whole if its content holds a secret; most long runs are hashes, paths and names, whose first
//! bytes tell that they are no text.
//!
//! Deliberately absent: compressed content, and a password alone in base64, which has no form when decoded.

use std::ops::Range;

use super::bytes::{Set, can_begin, skip};
use super::keys::{Part, end_of};

/// Maximum nesting of escaped texts.
pub(super) const DEPTH: usize = 3;

/// Unescaped text and the origin of its pieces.
pub(super) struct View {
    pub(super) text: String,
    /// Start of each piece in the inner and in the outer text.
    pieces: Vec<(usize, usize)>,
    end: usize,
}

impl View {
    /// Removes one level of escapes between two positions.
    pub(super) fn of(outer: &str, at: Range<usize>) -> Self {
        let line = &outer[at.clone()];
        let mut view = Self {
            text: String::with_capacity(line.len()),
            pieces: vec![(0, at.start)],
            end: at.end,
        };
        let (mut copied, mut from) = (0, 0);
        while let Some(found) = next_mark(line.as_bytes(), from) {
            from = found + 1;
            let Some((start, plain, end)) = escape(line, found).filter(|of| of.0 >= copied) else {
                continue;
            };
            view.text.push_str(&line[copied..start]);
            view.pieces.push((view.text.len(), at.start + start));
            view.text.push(plain);
            view.pieces.push((view.text.len(), at.start + end));
            (copied, from) = (end, end);
        }
        view.text.push_str(&line[copied..]);
        view
    }

    /// Maps a range of the inner text to the outer text.
    pub(super) fn outer(&self, at: &Range<usize>) -> Range<usize> {
        self.place(at.start)..self.place(at.end).min(self.end)
    }

    fn place(&self, at: usize) -> usize {
        let index = self.pieces.partition_point(|(inner, _)| *inner <= at);
        let piece = self.pieces.get(index.saturating_sub(1));
        piece.map_or(0, |(inner, outer)| outer + (at - inner))
    }
}

/// Next byte that may begin an escape.
pub(super) fn next_mark(text: &[u8], from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    memchr::memchr3(b'\\', b'%', b'&', rest).map(|at| from + at)
}

/// Entities of HTML for the signs around a value.
const ENTITIES: [(&str, char); 9] = [
    ("&quot;", '"'),
    ("&#34;", '"'),
    ("&#x22;", '"'),
    ("&apos;", '\''),
    ("&#39;", '\''),
    ("&#x27;", '\''),
    ("&amp;", '&'),
    ("&lt;", '<'),
    ("&gt;", '>'),
];
/// A single quote within a shell's single-quoted text.
const QUOTE: &str = r"'\''";

/// Returns the character that an escape stands for, with the start and the end of the escape, given its mark.
fn escape(line: &str, mark: usize) -> Option<(usize, char, usize)> {
    let rest = &line.as_bytes()[mark..];
    match *rest {
        [b'\\', ..] if line.get(mark.saturating_sub(1)..mark + 3) == Some(QUOTE) => {
            Some((mark - 1, '\'', mark + 3))
        }
        [b'\\', c, ..] => {
            let plain = match c {
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                b'"' | b'\\' | b'/' => char::from(c),
                _ => return None,
            };
            Some((mark, plain, mark + 2))
        }
        [b'%', high, low, ..] => {
            let digit = |c: u8| char::from(c).to_digit(16);
            let plain = char::from_u32(digit(high)? * 16 + digit(low)?);
            let plain = plain.filter(|c| c.is_ascii_graphic() || c.is_ascii_whitespace())?;
            Some((mark, plain, mark + 3))
        }
        [b'&', ..] => {
            let is_it = |(name, _): &&(&str, char)| rest.starts_with(name.as_bytes());
            let (name, plain) = ENTITIES.iter().find(is_it)?;
            Some((mark, *plain, mark + name.len()))
        }
        _ => None,
    }
}

/// Returns `true` if an escape tells that its line is escaped: it stands for a sign around values, or a line end.
pub(super) fn tells(text: &str, mark: usize) -> bool {
    let plain = escape(text, mark).map(|(_, plain, _)| plain);
    match text.as_bytes()[mark] {
        b'\\' => matches!(plain, Some('\n' | '"' | '\\' | '\'')),
        _ => plain.is_some_and(|c| "\n\"'=:@&".contains(c)),
    }
}

/// Length of the shortest run: 18 bytes.
const LEAST: usize = 24;
/// Number of characters of a run that are decoded.
const NEAR: usize = 64 << 10;
/// Number of bytes that tell text from others.
const HEAD: usize = 12;

/// Runs of base64 whose content is text, and that text, in order.
pub(super) fn texts(text: &str) -> Vec<(Range<usize>, String)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut from = 0;
    // Every run covers one of these positions.
    while let Some(window) = bytes.get(from..from + LEAST) {
        let covered = Set::BODY.run_before(window, LEAST, LEAST);
        if covered < LEAST {
            from += LEAST - covered;
            continue;
        }
        let start = from;
        from += Set::BODY.run(bytes, from, bytes.len());
        if let Some((at, text)) = decoded(bytes, start) {
            from = from.max(at.end);
            found.push((at, text));
        }
    }
    found
}

/// Decodes the run at a position, across line breaks; `None` if its content is no text.
fn decoded(bytes: &[u8], at: usize) -> Option<(Range<usize>, String)> {
    let head = decode(&bytes[at..at + LEAST]);
    let wide = head.iter().skip(1).step_by(2).all(|byte| *byte == 0);
    if !(wide || is_text(&head)) || !can_begin(bytes, at) {
        return None;
    }
    let mut end = end_of(bytes, at, &[Part::Run(Set::BASE64, LEAST, 1 << 20)])?;
    // Padding ends a run, regardless of the next line.
    if let Some(padding) = memchr::memchr(b'=', &bytes[at..end]) {
        end = skip(&bytes[..end], at + padding, b"=");
    }
    let mut plain = decode(&run_of(&bytes[at..end], NEAR));
    if wide {
        // PowerShell encodes its commands as UTF-16.
        plain = plain.into_iter().step_by(2).collect();
    }
    Some((at..end, String::from_utf8_lossy(&plain).into_owned()))
}

/// Returns `true` if the first bytes are readable text, of which the last character may be cut.
fn is_text(head: &[u8]) -> bool {
    let valid = std::str::from_utf8(head).map_or_else(|error| error.valid_up_to(), str::len);
    let is_readable = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r' | 0x80..);
    valid >= HEAD && head[..HEAD].iter().all(is_readable)
}

/// Characters of base64 in a text that breaks may divide, at most `most`.
fn run_of(text: &[u8], most: usize) -> Vec<u8> {
    let run = text.iter().copied().filter(|b| Set::BASE64.holds(*b));
    run.take(most).collect()
}

/// Decodes base64 and skips other characters.
pub(super) fn decode(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let (mut bits, mut count) = (0_u32, 0);
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
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count).to_le_bytes()[0]);
        }
    }
    out
}

/// Returns true if a value is base64 of a name, a colon and a password.
pub(super) fn is_login(value: &[u8]) -> bool {
    let plain = decode(value);
    let is_readable = plain.iter().all(|b| !b.is_ascii_control());
    value.len() >= 8 && is_readable && plain.contains(&b':') && Set::BASE64.holds_all(value)
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
            let found: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
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
