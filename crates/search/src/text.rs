//! Word analysis, the same for documents and queries.
//!
//! English words are stemmed, and stop words are removed. Tokens that carry meaning in code are
//! kept: numbers, two-letter words, identifiers whole and in parts (`parseJSONFile`, `snake_case`),
//! error codes, flags and paths. Scripts without spaces (Chinese, Japanese, Thai) are split into
//! pairs of characters.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;

use rust_stemmers::{Algorithm, Stemmer};

use memctl_redact::composed;

/// Stop words, sorted.
const STOP: &[&str] = &[
    "a", "about", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "being",
    "but", "by", "can", "could", "did", "do", "does", "doing", "for", "from", "had", "has", "have",
    "he", "her", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "may",
    "me", "might", "must", "my", "no", "not", "of", "on", "only", "or", "our", "she", "should",
    "so", "some", "such", "than", "that", "the", "their", "them", "then", "there", "these", "they",
    "this", "those", "to", "too", "us", "very", "was", "we", "were", "what", "when", "where",
    "which", "who", "whom", "why", "will", "with", "would", "you", "your",
];

/// Words of a text in order, with repetitions.
pub fn words(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    each_word(text, |word| out.push(word.to_owned()));
    out
}

/// Visits the words of a text in order, with repetitions. `visit` must not ask for words itself.
pub fn each_word(text: &str, visit: impl FnMut(&str)) {
    STEMS.with_borrow_mut(|stems| each_word_with(text, stems, visit));
}

fn each_word_with(text: &str, stems: &mut Stems, mut visit: impl FnMut(&str)) {
    let text = &*composed(text);
    for token in text.split(|c: char| c.is_whitespace() || is_separator(c)) {
        let token = token.trim_matches(|c: char| !c.is_alphanumeric() && c != '-' && c != '_');
        let whole = token.trim_end_matches(['-', '_']);
        if is_one_part(whole) {
            visit_word(whole, stems, &mut visit);
            continue;
        }
        let parts = parts(whole);
        // A compound is indexed whole and in parts.
        if parts.len() > 1 || whole.starts_with('-') {
            visit(&whole.to_lowercase());
        }
        for part in parts {
            visit_word(part, stems, &mut visit);
        }
    }
}

/// Returns true for ASCII letters and digits without a capital after the first, as most tokens are: [`parts`]
/// would return them whole.
fn is_one_part(token: &str) -> bool {
    let bytes = token.as_bytes();
    let is_small = |c: &u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    bytes
        .split_first()
        .is_some_and(|(first, rest)| first.is_ascii_alphanumeric() && rest.iter().all(is_small))
}

/// Returns true for characters that never belong to a word, an identifier, a flag or a path.
fn is_separator(c: char) -> bool {
    matches!(c, '!'..='"' | '\''..='*' | ',' | ';'..='?' | '[' | ']' | '`' | '{'..='}')
        || matches!(c, '‘' | '’' | '“' | '”' | '、' | '。' | '！' | '，' | '？')
}

/// Splits at punctuation and case changes: `HTTPServer2` is `HTTP`, `Server2`.
fn parts(token: &str) -> Vec<&str> {
    let mut out = Vec::new();
    for piece in token.split(|c: char| !c.is_alphanumeric()) {
        let mut rest = piece;
        let mut chars = piece.char_indices().peekable();
        let mut before = chars.next().map(|(_, c)| c);
        while let Some((at, c)) = chars.next() {
            let last = before.replace(c).unwrap_or(c);
            let camel = c.is_uppercase() && last.is_lowercase();
            let acronym_end = c.is_uppercase()
                && last.is_uppercase()
                && chars.peek().is_some_and(|(_, next)| next.is_lowercase());
            let script = is_unspaced(c) != is_unspaced(last);
            if (camel || acronym_end || script)
                && let Some((part, others)) = rest.split_at_checked(at + rest.len() - piece.len())
            {
                out.push(part);
                rest = others;
            }
        }
        if !rest.is_empty() {
            out.push(rest);
        }
    }
    out
}

fn visit_word(part: &str, stems: &mut Stems, visit: &mut impl FnMut(&str)) {
    if part.chars().next().is_some_and(is_unspaced) {
        let starts: Vec<usize> = part.char_indices().map(|(at, _)| at).collect();
        if starts.len() == 1 {
            return visit(part);
        }
        let ends = starts.iter().skip(2).copied().chain([part.len()]);
        for (start, end) in starts.iter().zip(ends) {
            visit(&part[*start..end]);
        }
        return;
    }
    let is_small = part.bytes().all(|c| c.is_ascii_lowercase());
    let lower = if is_small {
        Cow::Borrowed(part)
    } else {
        Cow::Owned(part.to_lowercase())
    };
    if is_small || lower.bytes().all(|c| c.is_ascii_lowercase()) {
        stems.visit_stem(&lower, visit);
    } else {
        visit(&lower);
    }
}

/// English stemmer that remembers: the words of a text repeat, and looking one up takes a tenth of the time.
struct Stems {
    stemmer: Stemmer,
    /// Stem of each word; `None` for stop words.
    cache: HashMap<String, Option<String>>,
}

impl Stems {
    /// Maximum number of words to remember.
    const MOST: usize = 4_096;

    fn new() -> Self {
        Self {
            stemmer: Stemmer::create(Algorithm::English),
            cache: HashMap::new(),
        }
    }

    /// Visits the stem of a word in lower case, unless it is a stop word.
    fn visit_stem(&mut self, word: &str, visit: &mut impl FnMut(&str)) {
        if let Some(cache) = self.cache.get(word) {
            if let Some(stem) = cache {
                visit(stem);
            }
            return;
        }
        if self.cache.len() >= Self::MOST {
            self.cache.clear();
        }
        let is_stop = STOP.binary_search(&word).is_ok();
        let stem = (!is_stop).then(|| self.stemmer.stem(word).into_owned());
        if let Some(stem) = &stem {
            visit(stem);
        }
        self.cache.insert(word.to_owned(), stem);
    }
}

thread_local! {
    static STEMS: RefCell<Stems> = RefCell::new(Stems::new());
}

/// Returns true if words of this script are written without spaces.
fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3040..=0x30FF | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x2FA1F)
}

/// Passage with the most query words, on one line and at most `width` characters long.
pub fn snippet(text: &str, query: &[String], width: usize) -> String {
    let tokens: Vec<&str> = text.split_whitespace().collect();
    let measure = |token: &&str| {
        let words = words(token);
        let hits = words.iter().filter(|word| query.contains(word)).count();
        (token.chars().count() + 1, hits)
    };
    let measures: Vec<(usize, usize)> = tokens.iter().map(measure).collect();
    // The most query words in a window of this width, and its first token.
    let mut best = (0, 0);
    let (mut start, mut length, mut score) = (0, 0, 0);
    for (i, (size, hits)) in measures.iter().enumerate() {
        length += size;
        score += hits;
        while length > width && start < i {
            length -= measures[start].0;
            score -= measures[start].1;
            start += 1;
        }
        if score > best.0 {
            best = (score, start);
        }
    }
    let before = if best.1 > 0 { "…" } else { "" };
    let passage: Vec<&str> = tokens.into_iter().skip(best.1).take(width).collect();
    let passage = passage.join(" ");
    let Some((most, _)) = passage.char_indices().nth(width.saturating_sub(2)) else {
        return format!("{before}{passage}");
    };
    // Whole words, unless the first one is too long.
    let rest = &passage[most..];
    let end = if rest.starts_with(' ') {
        most
    } else {
        passage[..most].rfind(' ').unwrap_or(most)
    };
    format!("{before}{}…", &passage[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_prose_and_of_code() {
        let check = |text: &str, expected: &[&str]| assert_eq!(words(text), expected, "{text}");
        check(
            "The compliance checks, checked!",
            &["complianc", "check", "check"],
        );
        check("HR in the UK: 72", &["hr", "uk", "72"]);
        check("naïve 日本語", &["naïve", "日本", "本語"]);
        check("parseJSONFile", &["parsejsonfile", "pars", "json", "file"]);
        check("error[E0308]: mismatched", &["error", "e0308", "mismatch"]);
        check(
            "cargo build --no-cache",
            &["cargo", "build", "--no-cache", "cach"],
        );
        check(
            "src/store/mod.rs",
            &["src/store/mod.rs", "src", "store", "mod", "rs"],
        );
        check(
            "overall_score<60",
            &["overall_score", "overal", "score", "60"],
        );
        check("…—!", &[]);
    }

    #[test]
    fn stop_words_are_in_the_order_of_the_search_for_them() {
        assert!(STOP.is_sorted());
    }

    #[test]
    fn a_stem_is_the_same_from_memory() {
        let letter = |n: usize| char::from(b'a' + u8::try_from(n % 26).unwrap());
        let word = |n: usize| format!("{}{}{}ing", letter(n), letter(n / 26), letter(n / 676));
        let text = (0..Stems::MOST + 9).map(word).collect::<Vec<_>>().join(" ");
        let mut stems = Stems::new();
        let words_with = |stems: &mut Stems| {
            let mut out = Vec::new();
            each_word_with(&text, stems, |word| out.push(word.to_owned()));
            out
        };
        let first = words_with(&mut stems);
        assert_eq!(words_with(&mut stems), first);
        assert!(stems.cache.len() <= Stems::MOST);
        let stemmer = Stemmer::create(Algorithm::English);
        for (word, stem) in text.split_whitespace().zip(&first) {
            assert_eq!(stemmer.stem(word), *stem);
        }
    }

    #[test]
    fn a_snippet_shows_where_the_words_stand() {
        let text = format!(
            "{} the compliance check fails {}",
            "x ".repeat(100),
            "y ".repeat(100)
        );
        let found = snippet(&text, &words("compliance check"), 40);
        assert!(found.contains("compliance check"), "{found}");
        assert!(found.chars().count() <= 40, "{found}");
        assert_eq!(snippet("short", &[], 40), "short");
        assert_eq!(snippet("", &[], 40), "");
        assert_eq!(snippet(&"z".repeat(99), &[], 10).chars().count(), 9);
    }
}
