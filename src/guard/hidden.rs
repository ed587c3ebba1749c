//! Characters that nobody sees: they hide orders from the person who reads and not from the model.
//!
//! Some of them have an honest use: joiners in emoji, Persian and Indic scripts, direction marks
//! beside Hebrew and Arabic, one variation selector behind an emoji. Those pass where they are at
//! home and count as hidden elsewhere.

use std::borrow::Cow;

/// Whether a character has no form of its own, wherever it stands.
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

/// The lines of a text, wherever a reader may see one begin: what indents each of them lets none pass for
/// a line of its own.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    let breaks = ['\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
    text.lines().flat_map(move |line| line.split(breaks))
}

/// The text without characters that nobody sees; those at home where they stand are kept.
pub fn visible(text: &str) -> Cow<'_, str> {
    if text.is_ascii() && !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let chars: Vec<char> = text.chars().collect();
    let kept = |i: &usize| !is_hidden(chars[*i]) || is_at_home(&chars, *i);
    if (0..chars.len()).all(|i| kept(&i)) {
        return Cow::Borrowed(text);
    }
    Cow::Owned((0..chars.len()).filter(kept).map(|i| chars[i]).collect())
}

/// Whether a text hides something: a hidden character that is not at home. Colours of a terminal
/// and the mark at the beginning of a file hide nothing.
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
    let pictures = |c: Option<char>| c.is_some_and(|c| !c.is_ascii());
    match u32::from(chars[i]) {
        // Between two letters of a script that joins, or two pictures.
        0x200C | 0x200D => pictures(before) && foreign(after),
        // Beside letters that run from right to left.
        0x200E | 0x200F | 0x061C => {
            let near = &chars[i.saturating_sub(3)..(i + 4).min(chars.len())];
            near.iter().any(|c| {
                let is_of_script =
                    matches!(u32::from(*c), 0x0590..=0x08FF | 0xFB1D..=0xFDFF | 0xFE70..=0xFEFE);
                // A mark among the letters of the script is no company for itself.
                is_of_script && !is_hidden(*c)
            })
        }
        // One behind a picture, a digit of a key cap or a Chinese character, and no second one.
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
        // The flags of England, Scotland and Wales are spelt with tags behind a black flag.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
