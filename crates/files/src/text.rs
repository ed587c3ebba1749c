//! Text of people and of their tools.
//!
//! - As UTF-8, in any encoding that they wrote it in. A byte order mark is dropped, and UTF-16 is converted, with its
//!   mark or without one. Other bytes pass as they are: what they mean is for the reader to decide. [`decoded()`] reads
//!   a whole text, and [`stream`] a stream of any size.
//! - Conflict markers: the lines with which git shows the two sides of a place that it could not merge.

use std::io::{self, Cursor, Read};

/// Encoding of a text, from its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Utf16Little,
    Utf16Big,
}

impl Encoding {
    /// Returns the encoding, and the length of the byte order mark.
    fn of(start: &[u8]) -> (Self, usize) {
        match start {
            [0xef, 0xbb, 0xbf, ..] => (Self::Utf8, 3),
            [0xff, 0xfe, ..] => (Self::Utf16Little, 2),
            [0xfe, 0xff, ..] => (Self::Utf16Big, 2),
            // A text begins with a character of ASCII, in JSON always.
            [first, 0, second, 0, ..] if *first != 0 && *second != 0 => (Self::Utf16Little, 0),
            [0, first, 0, second, ..] if *first != 0 && *second != 0 => (Self::Utf16Big, 0),
            _ => (Self::Utf8, 0),
        }
    }

    fn unit(self, pair: [u8; 2]) -> u16 {
        match self {
            Self::Utf16Big => u16::from_be_bytes(pair),
            _ => u16::from_le_bytes(pair),
        }
    }
}

/// Returns a whole text; an error if it is neither UTF-8 nor UTF-16.
pub fn decoded(bytes: Vec<u8>) -> Result<String, std::string::FromUtf8Error> {
    let (encoding, mark) = Encoding::of(&bytes);
    if encoding == Encoding::Utf8 {
        let mut text = String::from_utf8(bytes)?;
        text.drain(..mark);
        return Ok(text);
    }
    let units = bytes[mark..].as_chunks().0.iter();
    let units = units.map(|pair| encoding.unit(*pair));
    Ok(char::decode_utf16(units)
        .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect())
}

/// Number of bytes at the start of a stream that are read before anything else.
const START: u64 = 1 << 18;

/// Returns a stream as UTF-8. One in UTF-16, which few programs write, is read as a whole.
pub fn stream<'a>(mut inner: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let mut bytes = Vec::new();
    inner.by_ref().take(START).read_to_end(&mut bytes)?;
    let (encoding, mark) = Encoding::of(&bytes);
    if encoding == Encoding::Utf8 {
        bytes.drain(..mark);
        return Ok(Box::new(Cursor::new(bytes).chain(inner)));
    }
    inner.read_to_end(&mut bytes)?;
    let text = decoded(bytes).map_err(io::Error::other)?;
    Ok(Box::new(Cursor::new(text)))
}

/// Returns the position of the first line that opens a conflict, if another one closes it.
pub fn first_conflict(text: &[u8]) -> Option<usize> {
    let open = line_with(text, b"<<<<<<< ")?;
    line_with(&text[open..], b">>>>>>> ").map(|_| open)
}

fn line_with(text: &[u8], mark: &[u8]) -> Option<usize> {
    let mut found = memchr::memmem::find_iter(text, mark);
    found.find(|at| *at == 0 || text[at - 1] == b'\n')
}

/// Returns the two texts that were merged: without the lines of theirs, and without those of ours.
pub fn conflict_sides(text: &str) -> [String; 2] {
    let mut sides = [String::new(), String::new()];
    // Which sides the next line belongs to; none, for the common version that some settings of git show.
    let mut of: &[usize] = &[0, 1];
    for line in text.split_inclusive('\n') {
        let mark = line.get(..7).unwrap_or_default();
        of = match (mark, of) {
            ("<<<<<<<", [0, 1]) => &[0],
            ("|||||||", [0]) => &[],
            ("=======", [0] | []) => &[1],
            (">>>>>>>", [1]) => &[0, 1],
            _ => {
                for side in of {
                    sides[*side].push_str(line);
                }
                continue;
            }
        };
    }
    sides
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reader that gives few bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(self.0.len()).min(buffer.len());
            let (given, rest) = self.0.split_at(length);
            buffer[..length].copy_from_slice(given);
            self.0 = rest;
            Ok(length)
        }
    }

    fn utf16(text: &str, mark: bool, big: bool) -> Vec<u8> {
        let mark = mark.then_some(0xfeff);
        let units = mark.into_iter().chain(text.encode_utf16());
        let bytes = if big {
            u16::to_be_bytes
        } else {
            u16::to_le_bytes
        };
        let pairs = units.map(bytes);
        pairs.flatten().collect()
    }

    #[test]
    fn every_encoding_of_a_text_is_read() {
        let words = "{\"größe\": \"東京 😀\"}\r\n";
        let mut marked = b"\xef\xbb\xbf".to_vec();
        marked.extend_from_slice(words.as_bytes());
        let all = [
            words.as_bytes().to_vec(),
            marked,
            utf16(words, true, false),
            utf16(words, true, true),
            utf16(words, false, false),
            utf16(words, false, true),
        ];
        for bytes in all {
            assert_eq!(decoded(bytes.clone()).unwrap(), words, "{bytes:?}");
            for step in [1, 3, 1000] {
                let mut read = String::new();
                let mut decoded = stream(Slow(&bytes, step)).unwrap();
                decoded.read_to_string(&mut read).unwrap();
                assert_eq!(read, words, "{step}: {bytes:?}");
            }
        }
        for short in ["", "a", "ab"] {
            let mut read = String::new();
            let mut decoded = stream(short.as_bytes()).unwrap();
            decoded.read_to_string(&mut read).unwrap();
            assert_eq!(read, short);
        }
        assert!(decoded(b"na\xefve".to_vec()).is_err());
    }
}

#[cfg(test)]
mod tests_of_conflicts {
    use super::*;

    #[test]
    fn both_sides_of_a_conflict_are_found_in_each_style_of_git() {
        let check = |text: &str, first_at: Option<usize>, ours: &str, theirs: &str| {
            assert_eq!(first_conflict(text.as_bytes()), first_at, "{text}");
            assert_eq!(conflict_sides(text), [ours, theirs], "{text}");
        };
        check("a\n=======\n", None, "a\n=======\n", "a\n=======\n");
        let plain = "a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> other\nd";
        check(plain, Some(2), "a\nb\nd", "a\nc\nd");
        let diff3 = "<<<<<<< ours\nb\n||||||| base\nx\n=======\n>>>>>>> theirs\n";
        check(diff3, Some(0), "b\n", "");
        assert_eq!(first_conflict(b"<<<<<<< HEAD\nb\n"), None);
        assert_eq!(first_conflict(b"x <<<<<<< HEAD\n>>>>>>> a\n"), None);
    }
}
