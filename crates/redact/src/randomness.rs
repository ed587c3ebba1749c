//! Tells random bytes, as in keys, from words, and values from what stands for one: placeholders, references,
//! examples of vendors.

use super::data::list;

/// Number of the bytes that fit.
pub(super) fn count(value: &[u8], fits: impl Fn(&u8) -> bool) -> usize {
    value.iter().filter(|b| fits(b)).count()
}

/// Number of changes between character classes in a text.
pub(super) fn changes(text: &[u8]) -> usize {
    let class = |b: &u8| match b {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    };
    let is_change = |pair: &&[u8]| class(&pair[0]) != class(&pair[1]);
    text.windows(2).filter(is_change).count()
}

/// Returns true if a value looks random.
pub(super) fn is_random(value: &[u8]) -> bool {
    let digits = count(value, u8::is_ascii_digit);
    let capitals = count(value, u8::is_ascii_uppercase);
    let small = count(value, u8::is_ascii_lowercase);
    if value.len() < 8 || digits + capitals + small < value.len() / 2 || capitals + small == 0 {
        return false;
    }
    if is_words(value) {
        return false;
    }
    let bits = entropy(value);
    match value.len() {
        ..16 => digits >= 2 && changes(value) >= 3 && bits >= 2.5,
        16..24 => (digits >= 2 || (capitals >= 3 && small >= 3)) && bits >= 2.8,
        _ => (digits >= 2 || (capitals >= 5 && small >= 5 && changes(value) >= 8)) && bits >= 2.8,
    }
}

/// Words and small numbers joined by dashes, dots or slashes: a name, not a key.
pub(super) fn is_words(value: &[u8]) -> bool {
    let is_word = |part: &[u8]| {
        let letters = part.iter().take_while(|b| b.is_ascii_alphabetic()).count();
        let rest = &part[letters..];
        let word = &part[..letters];
        let one_case = word.iter().skip(1).all(u8::is_ascii_lowercase)
            || word.iter().all(u8::is_ascii_uppercase)
            || is_camel(word);
        (one_case && rest.len() <= 4 && rest.iter().all(u8::is_ascii_digit) && letters <= 20)
            || part.len() <= 3
    };
    value.split(|b| b"-_./:@,=".contains(b)).all(is_word)
}

/// `camelCaseOfWords`: at most one capital per four letters.
fn is_camel(word: &[u8]) -> bool {
    word.len() >= count(word, u8::is_ascii_uppercase) * 4
}

/// Shannon entropy in bits per byte.
#[expect(clippy::cast_precision_loss, reason = "lengths of keys")]
pub(super) fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for b in value {
        counts[usize::from(*b)] += 1;
    }
    let length = value.len() as f64;
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| {
            let share = f64::from(*count) / length;
            -share * share.log2()
        })
        .sum()
}

/// Returns true if a value is a placeholder or a reference.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(value) else {
        return false;
    };
    let text = text.trim_matches(|c: char| matches!(c, '"' | '\'' | '`' | ',' | '.'));
    let lower = text.to_lowercase();
    let reference = match text.as_bytes() {
        [b'$', next, ..] => next.is_ascii_alphabetic() || matches!(next, b'{' | b'(' | b'_'),
        [b'<', .., b'>'] | [b'{', .., b'}'] | [b'%', .., b'%'] | [b'#', b'{', ..] => true,
        [b'@', next, ..] => *next == b'{',
        _ => text.starts_with("[REDACTED") || text.starts_with("[PRIVATE"),
    };
    let mut marks = ["${", "{{", "$(", "%(", "[REDACTED:", "[PRIVATE]"].iter();
    let inside = marks.any(|mark| text.contains(mark));
    let digits = count(text.as_bytes(), u8::is_ascii_digit);
    // `EXAMPLE` inside a key does not make it a placeholder.
    let worded = digits < 4 && (is_words(text.as_bytes()) || !is_random(text.as_bytes()));
    let mut stand_ins = list("parts of stand-ins").iter();
    let parts = worded && stand_ins.any(|part| lower.contains(part));
    lower.is_empty()
        || is_documented(text.as_bytes())
        || reference
        || inside
        || parts
        || is_filler(value)
        || list("stand-ins").contains(&lower.trim_matches(['[', ']', '(', ')', '<', '>']))
}

/// Keys in vendor documentation end like this.
pub(super) fn is_documented(value: &[u8]) -> bool {
    value.ends_with(b"EXAMPLE") || value.ends_with(b"EXAMPLEKEY")
}

/// `xxxx`, `****`, `0000`, also with a few other characters.
pub(super) fn is_filler(value: &[u8]) -> bool {
    let fillers = count(value, |b| b"xX*.0_-#?".contains(b));
    fillers == value.len() || (value.len() >= 8 && fillers * 10 >= value.len() * 6)
}
