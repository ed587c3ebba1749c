//! Tells random bytes, as in keys, from words.

use super::body::changes;

/// Returns true if a value looks random.
pub(super) fn is_random(value: &[u8]) -> bool {
    let digits = value.iter().filter(|b| b.is_ascii_digit()).count();
    let capitals = value.iter().filter(|b| b.is_ascii_uppercase()).count();
    let small = value.iter().filter(|b| b.is_ascii_lowercase()).count();
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
    value
        .split(|b| matches!(b, b'-' | b'_' | b'.' | b'/' | b':' | b'@' | b',' | b'='))
        .all(is_word)
}

/// `camelCaseOfWords`: at most one capital per four letters.
fn is_camel(word: &[u8]) -> bool {
    let capitals = word.iter().filter(|b| b.is_ascii_uppercase()).count();
    word.len() >= capitals * 4
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
