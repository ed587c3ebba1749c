//! Search terms: hashes by which the fixes for an error are found.
//!
//! Writers and readers of the table of fixes compute the same terms. A collision only costs one
//! comparison.

use super::likeness::key_words;

/// Version of the search terms. A change invalidates saved tables.
pub(crate) const SCHEME: u64 = 6;

/// Search terms of an error key: the term of the whole key, then those of its words.
pub(crate) fn terms(key: &str) -> Vec<u64> {
    let mut terms = vec![exact_term(key)];
    terms.extend(key_words(key).iter().map(|word| word_term(word)));
    terms
}

/// Term of entries with exactly this key.
pub(crate) fn exact_term(key: &str) -> u64 {
    hash(b"=", key)
}

/// Term of approved entries with exactly this key, so that they are found among any number of
/// others.
pub(crate) fn approved_term(key: &str) -> u64 {
    hash(b"!", key)
}

/// Term of entries whose key contains a word.
pub(crate) fn word_term(word: &str) -> u64 {
    hash(b"~", word)
}

/// Term of entries with this key that are about a subject, so that a missing module is found among
/// any number of other missing modules.
pub(crate) fn subject_term(key: &str, subject: &str) -> u64 {
    hash(b"@", &format!("{key}\n{}", subject.to_lowercase()))
}

/// Term of entries whose error line is this one without the words of the failing call.
pub(crate) fn abstract_term(line: &str) -> u64 {
    hash(b"#", line)
}

/// Term of entries whose failing call is exactly this one.
pub(crate) fn call_term(call: &str) -> u64 {
    hash(b"$", call.trim())
}

/// FNV-1a hash.
fn hash(space: &[u8], text: &str) -> u64 {
    space
        .iter()
        .chain(text.as_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |sum, b| {
            (sum ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_tell_keys_from_words() {
        assert_eq!(terms("disk")[0], exact_term("disk"));
        assert!(terms("disk full").contains(&word_term("disk")));
        assert_ne!(exact_term("disk"), word_term("disk"));
    }
}
