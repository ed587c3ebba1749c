//! Texts that every match of an expression contains, as numbers of a derived table.
//!
//! A call is compared with them first, so that only the rules that may match are read and compiled.
//! A number holds the part of the call and up to three trigrams of one text. They are hashes: one
//! too few in a number costs a comparison, and never a match. `^` counts as a character.

use crate::model::{CallPart, CallPattern};

/// Stands for the beginning of a text.
const START: u8 = 2;
/// Maximum number of alternatives; with more, the rule is always read.
const ALTERNATIVES: usize = 24;
/// Maximum depth of groups.
const DEEPEST: usize = 12;

/// Place of a pattern that a number is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Part(CallPart),
    /// A successful call, for `after`.
    Success,
}

impl Place {
    const fn code(self) -> u64 {
        match self {
            Self::Part(CallPart::Command) => 0,
            Self::Part(CallPart::Path) => 1,
            Self::Part(CallPart::Content) => 2,
            Self::Success => 3,
        }
    }
}

/// Returns the numbers of a pattern: a call that matches has one of them.
pub(crate) fn numbers(pattern: &CallPattern) -> Vec<u64> {
    let mut all = of_text(Place::Part(pattern.on), &pattern.matches);
    if !pattern.after.is_empty() {
        all.extend(of_text(Place::Success, &pattern.after));
    }
    all
}

fn of_text(place: Place, pattern: &str) -> Vec<u64> {
    let place_bits = place.code() << 62;
    match required(pattern.as_bytes(), place == Place::Part(CallPart::Content)) {
        Some(texts) => texts
            .iter()
            .map(|text| place_bits | trigrams_of(text))
            .collect(),
        None => vec![place_bits],
    }
}

/// Three trigrams of a text: its first, middle and last.
fn trigrams_of(text: &[u8]) -> u64 {
    let last = text.len().saturating_sub(3);
    let at = |n: usize| text.get(n..n + 3).map_or(0, hash);
    at(0) | at(last / 2) << 16 | at(last) << 32
}

/// Hash of a trigram, from 1 to 65,535.
fn hash(trigram: &[u8]) -> u64 {
    let number = trigram.iter().fold(0_u64, |sum, byte| {
        (sum << 8 | u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    (number >> 48).max(1)
}

/// Trigrams of the texts of a call.
pub(crate) struct Trigrams(Vec<u64>);

impl Trigrams {
    pub(crate) fn of<'t>(texts: impl Iterator<Item = &'t str>) -> Self {
        let mut bits = vec![0_u64; 1024];
        let mut add = |trigram: &[u8]| {
            let number = hash(trigram);
            if let Some(word) = bits.get_mut(usize::try_from(number / 64).unwrap_or_default()) {
                *word |= 1 << (number % 64);
            }
        };
        for text in texts {
            let bytes = text.as_bytes();
            if let [first, second, ..] = bytes {
                add(&[START, *first, *second]);
            }
            bytes.windows(3).for_each(&mut add);
        }
        Self(bits)
    }

    /// Returns `true` if a text with these trigrams may match a pattern with this number.
    pub(crate) fn may_match(&self, place: Place, number: u64) -> bool {
        let has = |shift: u32| {
            let one = number >> shift & 0xffff;
            let word = self.0.get(usize::try_from(one / 64).unwrap_or_default());
            one == 0 || word.is_some_and(|word| word >> (one % 64) & 1 == 1)
        };
        number >> 62 == place.code() && has(0) && has(16) && has(32)
    }
}

/// Returns texts of which every match contains one; `None` if there are none.
fn required(pattern: &[u8], multi_line: bool) -> Option<Vec<Vec<u8>>> {
    // A flag may change what characters mean.
    let has_flags = (0..pattern.len()).any(|at| {
        let rest = &pattern[at..];
        let is_known = [&b":"[..], b"i", b"m", b"s", b"=", b"!", b"<=", b"<!"];
        let is_known = |of: &[u8]| is_known.iter().any(|known| of.starts_with(known));
        rest.strip_prefix(b"(?").is_some_and(|rest| !is_known(rest))
    });
    if has_flags {
        return None;
    }
    let mut reader = Reader {
        pattern,
        at: 0,
        multi_line: multi_line || pattern.windows(3).any(|three| three == b"(?m"),
    };
    let texts = reader.alternatives(0)?;
    (reader.at == pattern.len() && !texts.is_empty()).then_some(texts)
}

struct Reader<'p> {
    pattern: &'p [u8],
    at: usize,
    multi_line: bool,
}

/// Part of a sequence.
enum Item {
    Byte(u8),
    /// One of these texts, somewhere in it.
    OneOf(Vec<Vec<u8>>),
    Unknown,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.pattern.get(self.at).copied()
    }

    fn bump(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    /// Reads alternatives up to the end or the end of a group.
    fn alternatives(&mut self, depth: usize) -> Option<Vec<Vec<u8>>> {
        if depth > DEEPEST {
            return None;
        }
        let mut all = Vec::new();
        let mut is_known = true;
        loop {
            match self.sequence(depth) {
                Some(texts) => all.extend(texts),
                None => is_known = false,
            }
            if self.peek() != Some(b'|') {
                break;
            }
            self.at += 1;
        }
        (is_known && all.len() <= ALTERNATIVES).then_some(all)
    }

    /// Reads a sequence; returns the texts of its best item.
    fn sequence(&mut self, depth: usize) -> Option<Vec<Vec<u8>>> {
        let mut best: Option<Vec<Vec<u8>>> = None;
        let mut run: Vec<u8> = Vec::new();
        let weight = |texts: &[Vec<u8>]| texts.iter().map(Vec::len).min().unwrap_or(0);
        let mut offer = |texts: Vec<Vec<u8>>| {
            let least = weight(&texts);
            if least >= 3 && best.as_deref().is_none_or(|best| weight(best) < least) {
                best = Some(texts);
            }
        };
        while let Some(byte) = self.peek() {
            if byte == b'|' || byte == b')' {
                break;
            }
            let item = self.item(depth);
            let (least, most) = self.repetition();
            match item {
                Item::Byte(byte) if least > 0 => {
                    run.push(byte.to_ascii_lowercase());
                    if most > 1 {
                        offer(vec![std::mem::take(&mut run)]);
                    }
                }
                Item::OneOf(texts) if least > 0 => {
                    offer(vec![std::mem::take(&mut run)]);
                    offer(texts);
                }
                Item::Byte(_) | Item::OneOf(_) | Item::Unknown => {
                    offer(vec![std::mem::take(&mut run)]);
                }
            }
        }
        offer(vec![run]);
        best
    }

    fn item(&mut self, depth: usize) -> Item {
        match self.bump() {
            Some(b'\\') => match self.bump() {
                Some(byte) if byte.is_ascii_punctuation() => Item::Byte(byte),
                Some(b'x' | b'u' | b'U' | b'p' | b'P') => {
                    // A number or a name follows.
                    self.at = self.pattern.len() + 1;
                    Item::Unknown
                }
                _ => Item::Unknown,
            },
            Some(b'[') => {
                self.class();
                Item::Unknown
            }
            Some(b'(') => {
                if self.looks_around() {
                    // Text around a match need not be part of it.
                    self.alternatives(depth + 1);
                    if self.bump() != Some(b')') {
                        self.at = self.pattern.len() + 1;
                    }
                    return Item::Unknown;
                }
                if self.peek() == Some(b'?') {
                    let rest = &self.pattern[self.at..];
                    let end = rest.iter().position(|b| matches!(b, b':' | b')'));
                    self.at += end.map_or(rest.len(), |end| end + 1);
                    if end.is_some_and(|end| rest[end] == b')') {
                        return Item::Unknown;
                    }
                }
                let inside = self.alternatives(depth + 1);
                if self.bump() != Some(b')') {
                    self.at = self.pattern.len() + 1;
                }
                inside.map_or(Item::Unknown, Item::OneOf)
            }
            Some(b'^') if !self.multi_line => Item::Byte(START),
            Some(b'^' | b'$' | b'.') | None => Item::Unknown,
            Some(byte) if byte.is_ascii() => Item::Byte(byte),
            // A quantifier is for the whole character, not for its last byte.
            Some(_) => Item::Unknown,
        }
    }

    /// Skips the beginning of look-around, after its bracket.
    fn looks_around(&mut self) -> bool {
        let rest = self.pattern.get(self.at..).unwrap_or_default();
        let begins = [&b"?="[..], b"?!", b"?<=", b"?<!"];
        let found = begins.iter().find(|begin| rest.starts_with(begin));
        self.at += found.map_or(0, |begin| begin.len());
        found.is_some()
    }

    fn class(&mut self) {
        let mut depth = 1;
        if self.peek() == Some(b'^') {
            self.at += 1;
        }
        if self.peek() == Some(b']') {
            self.at += 1;
        }
        while depth > 0 {
            match self.bump() {
                Some(b'\\') => self.at += 1,
                Some(b'[') => depth += 1,
                Some(b']') => depth -= 1,
                Some(_) => {}
                None => return,
            }
        }
    }

    /// Reads a quantifier; returns the least and the greatest number of repetitions.
    fn repetition(&mut self) -> (usize, usize) {
        let (mut least, mut most) = (1, 1);
        while let Some(byte @ (b'*' | b'+' | b'?' | b'{')) = self.peek() {
            self.at += 1;
            if byte != b'+' {
                least = 0;
            }
            if byte != b'?' {
                most = usize::MAX;
            }
            if byte == b'{' {
                while self.bump().is_some_and(|byte| byte != b'}') {}
            }
        }
        (least, most)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_every_match_contains_is_found() {
        let check = |pattern: &str, expected: &[&str]| {
            let found = required(pattern.as_bytes(), false).unwrap_or_default();
            let found: Vec<String> = found
                .into_iter()
                .map(|text| String::from_utf8_lossy(&text).replace('\u{2}', "^"))
                .collect();
            assert_eq!(found, expected, "{pattern}");
        };
        check(r"^npm\b", &["^npm"]);
        check(r"^rm\b", &["^rm"]);
        check(r"^(?:npm|yarn)\s+install", &["install"]);
        check(r"^(npm|yarn)\b", &["npm", "yarn"]);
        check(r"git push.*--force", &["git push"]);
        check(r"colou?r", &["colo"]);
        check(r"(?i)^NPM\b", &["^npm"]);
        check(r"^\S+$", &[]);
        check(r"npm|\d+", &[]);
        check(r"(npm)?", &[]);
        check(r"[npm]+", &[]);
        check(r"\x6epm install", &[]);
        check(r"(?x) n p m", &[]);
        check("über", &["ber"]);
        check(r"(?<![\w.])print\s*\(", &["print"]);
        check(r"^npm i(?!.*(--dry-run|-n))", &["^npm i"]);
        check(r"(?=.*install)^npm\b", &["^npm"]);
        check(r"(?<name>npm)", &[]);
    }

    proptest! {
        /// A text that matches is never ruled out.
        #[test]
        fn no_match_is_lost(pattern in "[\\^]?(npm|git|\\\\b|\\\\s|a|b|c|[(]?:?ab[)]?|[|]|[*+?]|[.]|\\[ab\\]| |[{]2[}]){1,8}",
            text in "(npm|git|a|b|c|ab| |bb){0,8}") {
            if let Ok(regex) = regex_lite::Regex::new(&pattern)
                && regex.is_match(&text)
            {
                let pattern = CallPattern { matches: pattern, ..CallPattern::default() };
                let place = Place::Part(CallPart::Command);
                let trigrams = Trigrams::of(std::iter::once(text.as_str()));
                let numbers = numbers(&pattern);
                prop_assert!(numbers.iter().any(|n| trigrams.may_match(place, *n)));
            }
        }
    }
}
