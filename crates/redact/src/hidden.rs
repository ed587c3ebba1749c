//! Invisible characters, which hide instructions from a person but not from a model.
//!
//! Some have legitimate uses: joiners in emoji, Persian and Indic scripts, direction marks beside
//! Hebrew and Arabic, one variation selector after an emoji. They pass in those contexts and count
//! as hidden elsewhere.

use std::borrow::Cow;
use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfc_quick};

/// Returns true if a character is invisible, regardless of context.
pub fn is_hidden(c: char) -> bool {
    let ordinary_control = matches!(c, '\t' | '\n' | '\r');
    (c.is_control() && !ordinary_control)
        || matches!(
            u32::from(c),
            0x00AD | 0x034F | 0x061C | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180F
            | 0x200B..=0x200F | 0x202A..=0x202E | 0x2060..=0x206F | 0x3164 | 0xFE00..=0xFE0F
            | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFFB | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF
        )
}

/// Lines of a text, split at every character that some reader treats as a line break. Indenting
/// each of them prevents forged lines.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    let breaks = ['\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
    text.lines().flat_map(move |line| line.split(breaks))
}

/// Returns true if a text is ASCII without invisible characters, as most texts are.
pub(super) fn is_visible_ascii(text: &str) -> bool {
    let is_visible = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r');
    text.as_bytes().iter().all(is_visible)
}

/// Removes invisible characters, except in their legitimate contexts, and composes the others.
pub fn visible(text: &str) -> Cow<'_, str> {
    if is_visible_ascii(text) {
        return Cow::Borrowed(text);
    }
    // A hidden character keeps marks apart that are put in order as soon as it is gone, and one that was
    // in its place among others may stand alone then.
    let mut text = Cow::Borrowed(text);
    loop {
        let next = composed(&without_hidden(&text)).into_owned();
        if next == *text {
            return text;
        }
        text = Cow::Owned(next);
    }
}

fn without_hidden(text: &str) -> Cow<'_, str> {
    let chars: Vec<char> = text.chars().collect();
    let kept = |i: &usize| !is_hidden(chars[*i]) || is_at_home(&chars, *i);
    if (0..chars.len()).all(|i| kept(&i)) {
        return Cow::Borrowed(text);
    }
    Cow::Owned((0..chars.len()).filter(kept).map(|i| chars[i]).collect())
}

/// Returns true if a text contains an invisible character outside its legitimate context. Terminal
/// colours and a leading byte order mark do not count.
pub(super) fn hides(text: &str) -> bool {
    if text.is_ascii() {
        return false;
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let chars: Vec<char> = text.chars().collect();
    (0..chars.len()).any(|i| {
        let c = chars[i];
        let harmless = c.is_control() || c == '\u{ad}';
        is_hidden(c) && !harmless && !is_at_home(&chars, i)
    })
}

fn is_at_home(chars: &[char], i: usize) -> bool {
    let before = i.checked_sub(1).and_then(|i| chars.get(i)).copied();
    let after = chars.get(i + 1).copied();
    let foreign = |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !is_hidden(c));
    match u32::from(chars[i]) {
        // Between two characters of a joining script, or two emoji. The first may end in a
        // variation selector; a character that is removed itself joins nothing.
        0x200C | 0x200D => {
            let joins =
                foreign(before) || (before.is_some_and(is_hidden) && is_at_home(chars, i - 1));
            joins && foreign(after)
        }
        // Beside letters of a right-to-left script.
        0x200E | 0x200F | 0x061C => {
            let near = &chars[i.saturating_sub(3)..(i + 4).min(chars.len())];
            near.iter().any(|c| {
                let is_of_script =
                    matches!(u32::from(*c), 0x0590..=0x08FF | 0xFB1D..=0xFDFF | 0xFE70..=0xFEFE);
                // The script range also contains hidden marks, which do not count.
                is_of_script && !is_hidden(*c)
            })
        }
        // One selector after an emoji, a keycap base or a CJK character; never two.
        0xFE00..=0xFE0F | 0xE0100..=0xE01EF => {
            let selects = |c: char| matches!(u32::from(c), 0xFE00..=0xFE0F | 0xE0100..=0xE01EF);
            let supplement = u32::from(chars[i]) >= 0xE0100;
            let ideograph = before.is_some_and(
                |c| matches!(u32::from(c), 0x3400..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF),
            );
            let base = if supplement {
                ideograph
            } else {
                foreign(before) || before.is_some_and(|c| matches!(c, '0'..='9' | '#' | '*'))
            };
            base && !after.is_some_and(selects)
        }
        // Flags of England, Scotland and Wales: tags after a black flag.
        0xE0020..=0xE007F => {
            let flag = chars[..i]
                .iter()
                .rev()
                .take(8)
                .find(|c| !matches!(u32::from(**c), 0xE0020..=0xE007E));
            flag == Some(&'\u{1F3F4}')
        }
        _ => false,
    }
}

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
    use proptest::prelude::*;

    #[test]
    fn nothing_is_left_for_a_second_look() {
        // Without the control character between them the marks change places.
        let text = "\u{301}\u{2}\u{321}";
        assert_eq!(visible(text), "\u{321}\u{301}");
        assert_eq!(visible(&visible(text)), visible(text));
    }

    #[test]
    fn what_is_at_home_is_not_hidden() {
        for text in [
            "plain",
            "👨‍👩‍👧 ❤️ 1️⃣ 🏴\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
            "می‌خواهم",
            "שלום\u{200f}!",
            "\u{feff}begins with a mark",
            "soft\u{ad}hyphen and \u{1b}[32mgreen\u{1b}[0m",
            "葛\u{E0100}飾",
        ] {
            assert!(!hides(text), "{text:?}");
        }
    }

    #[test]
    fn what_is_smuggled_is_seen() {
        for text in [
            "ap\u{200b}prove",
            "\u{202e}evil",
            "a\u{2066}b\u{2069}",
            "x\u{E0069}\u{E0067}\u{E006E}",
            "a\u{FE0F}",
            "😀\u{E0101}\u{E0102}\u{E0103}",
            "😀\u{FE00}\u{FE01}",
            "a\u{200d}b",
            "in\u{feff}side",
            "lonely \u{61c} mark",
        ] {
            assert!(hides(text), "{text:?}");
            assert!(visible(text).chars().count() < text.chars().count());
        }
    }
    proptest! {
        #[test]
        fn what_is_visible_stays_so(text in "[aé1¥😀葛ש🏴❤\u{200b}\u{200c}\u{200d}\u{200f}\u{ad}\u{fe0f}\u{fe00}\u{e0067}\u{e007f}\u{e0100}]{0,12}") {
            let once = visible(&text).into_owned();
            let twice = visible(&once);
            prop_assert_eq!(twice.as_ref(), once.as_str());
        }
    }

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
