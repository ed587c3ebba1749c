//! Features of a text for the linear model: hashed words and pairs of words, and its form.
//!
//! The training program uses this code, so that it sees what the program sees. Words are hashed, so
//! the weights contain no text.

use crate::learn::wording;

/// Number of buckets of the hash.
pub(super) const BUCKETS: usize = 8_192;
/// Number of cues.
pub(super) const CUES: usize = 11;

/// Features of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    /// Buckets of the words and the pairs of neighbouring words, sorted, each once. The beginning
    /// of the text counts as a word.
    pub buckets: Vec<usize>,
    /// Form of the text: its length, marks and demand.
    pub cues: [f32; CUES],
}

impl Features {
    /// Features of a text.
    pub fn of(text: &str) -> Self {
        let lower = text.to_lowercase();
        let mut tokens = vec!["^"];
        tokens.extend(words(&lower));
        let mut buckets: Vec<usize> = tokens.iter().map(|token| bucket(&[token])).collect();
        buckets.extend(tokens.windows(2).map(bucket));
        buckets.sort_unstable();
        buckets.dedup();
        Self {
            buckets,
            cues: cues(text, &lower, tokens.len() - 1),
        }
    }
}

fn cues(text: &str, lower: &str, length: usize) -> [f32; CUES] {
    let text = text.trim();
    let flag = |holds: bool| f32::from(u8::from(holds));
    let has = |words: &[&str]| flag(words.iter().any(|word| wording::has_words(lower, word)));
    let rule = wording::as_rule(text);
    [
        ratio(length, 20).min(10.0),
        ratio(length, 1).ln_1p(),
        flag(text.ends_with('?')),
        flag(text.contains('?')),
        flag(text.contains('!')),
        flag(text.starts_with(char::is_uppercase)),
        flag(text.ends_with('.')),
        flag(text.contains('`')),
        flag(rule.contains("ALWAYS") || rule.contains("NEVER")),
        has(&["this", "that", "it", "these", "those"]),
        ratio(
            text.chars().filter(char::is_ascii_digit).count(),
            text.chars().count().max(1),
        ),
    ]
}

#[expect(
    clippy::cast_precision_loss,
    reason = "texts have far fewer than 2^23 words"
)]
fn ratio(part: usize, whole: usize) -> f32 {
    part as f32 / whole as f32
}

/// Words, numbers and marks. An apostrophe belongs to its word.
fn words(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_part = |c: char| {
            c.is_alphabetic() && first.is_alphabetic()
                || c.is_ascii_digit() && first.is_ascii_digit()
        };
        let mut end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        if first.is_alphabetic() && rest[end..].starts_with(['\'', '’']) {
            let mark = rest[end..].chars().next().map_or(0, char::len_utf8);
            let tail = &rest[end + mark..];
            let more = tail
                .find(|c: char| !c.is_alphabetic())
                .unwrap_or(tail.len());
            if more > 0 {
                end += mark + more;
            }
        }
        let (word, after) = rest.split_at(end.max(first.len_utf8()));
        found.push(word);
        rest = after.trim_start();
    }
    found
}

/// FNV-1a hash of neighbouring words, as the number of a bucket.
fn bucket(words: &[&str]) -> usize {
    let bytes = words.iter().flat_map(|word| word.bytes().chain([b' ']));
    let hash = bytes.fold(0x811c_9dc5_u32, |sum, byte| {
        (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    hash as usize % BUCKETS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_falls_into_words_and_marks() {
        let check = |text: &str, expected: &[&str]| assert_eq!(words(text), expected, "{text}");
        check(
            "don't use `x`, ok?",
            &["don't", "use", "`", "x", "`", ",", "ok", "?"],
        );
        check("  80% of 3rd ", &["80", "%", "of", "3", "rd"]);
        check("it’s 这个", &["it’s", "这个"]);
        check("the teams' '", &["the", "teams", "'", "'"]);
        check("", &[]);
    }

    #[test]
    fn a_pair_is_another_feature_than_its_words() {
        let of = |text: &str| Features::of(text).buckets.len();
        // "^", "use", "tabs", and the two pairs.
        assert_eq!(of("Use tabs"), 5);
        assert_eq!(of("use use use"), 4);
        assert_eq!(
            Features::of("Use tabs").buckets,
            Features::of("use  tabs").buckets
        );
    }
}
