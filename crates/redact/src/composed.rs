//! One form of the characters that Unicode can write in two ways.
//!
//! Some systems write `é` as one character (NFC), others as a letter with a mark (NFD). People see the
//! same text, so words that people give are composed before they are compared.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfc_quick};

/// Returns a text in its composed form (NFC).
pub fn composed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.nfc().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_become_one() {
        let check = |text: &str, expected: &str| assert_eq!(composed(text), expected);
        check("plain", "plain");
        check("caf\u{e9}", "caf\u{e9}");
        check("cafe\u{301}", "caf\u{e9}");
        check("\u{110b}\u{1161}\u{11ab}", "\u{c548}");
        assert!(matches!(composed("caf\u{e9}"), Cow::Borrowed(_)));
    }
}
