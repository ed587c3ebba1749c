//! Classification of names and values as secret.
//!
//! `password` in prose, `password: string` in a schema and `token = os.environ["X"]` in code are
//! not secrets; `<your-token>`, `xxxx` and `${{ secrets.X }}` are placeholders. In doubt, the value
//! of a password name is redacted, while a value beside `token` has to look random.

use std::sync::LazyLock;

use super::assignments::{Class, ValuePosition};
use super::keys::Set;
use super::randomness::{self, changes, count};
use super::rules::{self, list};

/// Stems of all secret names, for a quick rejection.
const STEMS: &[&[u8]] = &[
    b"pass", b"pwd", b"secret", b"token", b"key", b"cred", b"auth", b"mnemonic", b"phrase",
    b"salt", b"connect", b"kennwort", b"motdep", b"contras", b"_pw", b"masterauth", b"contribsys",
];

/// Kind and class of a name: `DB_PASSWORD`, `x-api-key`, `clientSecret`.
pub(super) fn named(name: &str) -> Option<(&'static str, Class)> {
    // Last part of a parameter path.
    let name = name.rsplit('/').next().unwrap_or(name);
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b' ' | b'$');
    if name.len() > 80 || !name.bytes().all(fits) {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    let may_begin = |at: &usize| b"pstkcam_".contains(&lower.as_bytes()[*at]);
    let may_be_own = (0..lower.len()).filter(may_begin).any(|at| {
        let rest = &lower.as_bytes()[at..];
        STEMS.iter().any(|stem| rest.starts_with(stem))
    });
    if !may_be_own {
        return None;
    }
    let own = WORDS.iter().find(|(word, _, class)| {
        let found = lower.rfind(word);
        let whole = *class != Class::Provider;
        whole && found.is_some_and(|at| is_own(&name[..at], &name[at + word.len()..], *class))
    });
    let bare =
        matches!(lower.as_str(), "pass" | "pw" | "psk").then_some(("password", Class::Password));
    own.map(|(_, kind, class)| (*kind, *class)).or(bare)
}

/// Words in names, with their kind and class.
static WORDS: LazyLock<Vec<(&str, &str, Class)>> = LazyLock::new(|| {
    // Bare `pass` and `psk` are left out here: in a longer name they have other meanings.
    rules::names()
        .filter(|(word, ..)| !matches!(*word, "pass" | "psk"))
        .collect()
});

/// Returns true if the name still names a secret, given its parts before and after the word.
pub(super) fn is_own(before: &str, after: &str, class: Class) -> bool {
    let letters = |text: &str| -> String {
        let kept = text.chars().filter(char::is_ascii_alphabetic);
        kept.collect::<String>().to_ascii_lowercase()
    };
    let first = before
        .split(|c: char| !c.is_ascii_alphanumeric())
        .rfind(|part| !part.is_empty())
        .unwrap_or_default();
    let after = letters(after);
    if class == Class::Provider {
        return after.is_empty() || list("vendor suffixes").contains(&after.as_str());
    }
    let finds = class == Class::Key && list("lookup names").iter().any(|word| ends_in(first, word));
    !finds
        && !list("harmless names")
            .iter()
            .any(|word| ends_in(first, word))
        && (after.is_empty() || list("suffixes").contains(&after.as_str()))
}

/// Returns true if a part of a name equals this word or ends in it at a capital: `nextPage`.
fn ends_in(part: &str, word: &str) -> bool {
    let Some(at) = part.len().checked_sub(word.len()) else {
        return false;
    };
    part.is_char_boundary(at)
        && part[at..].eq_ignore_ascii_case(word)
        && (at == 0 || part.as_bytes()[at].is_ascii_uppercase())
}

/// Returns true if a value of this class, in this position, is a secret.
pub(super) fn is_secret(value: &[u8], class: Class, stands: ValuePosition) -> bool {
    if randomness::is_placeholder(value) || is_code(value, stands) {
        return false;
    }
    match class {
        Class::Password => is_password(value, stands),
        Class::Token => is_token(value, stands),
        Class::Key | Class::Provider => is_key(value, class, stands),
        Class::Phrase => is_phrase(value),
    }
}

fn is_password(value: &[u8], stands: ValuePosition) -> bool {
    if value.len() < 4 || value.len() > 256 || value.iter().any(u8::is_ascii_whitespace) {
        return stands == ValuePosition::Quoted && is_sentence_of_signs(value);
    }
    if is_number(value) {
        return false;
    }
    let has = |test: fn(&u8) -> bool| value.iter().any(test);
    let digits = has(u8::is_ascii_digit);
    let letters = has(u8::is_ascii_alphabetic);
    let symbol =
        |b: &u8| b.is_ascii_punctuation() && !matches!(b, b'_' | b'-' | b'.' | b'/' | b',');
    let symbols = value[..value.len() - 1].iter().any(symbol);
    match stands {
        ValuePosition::Prose => {
            value.len() >= 6
                && letters
                && digits
                && !list("algorithms").iter().any(|a| same(value, a))
        }
        _ if !letters => digits && value.len() >= 6 && stands != ValuePosition::Loose,
        _ if digits || symbols => !list("algorithms").iter().any(|a| same(value, a)),
        ValuePosition::Loose => changes(value) >= 4 && value.len() >= 8,
        // Word such as `letmein` in a configuration, but neither a label nor an identifier.
        ValuePosition::Quoted | ValuePosition::Tight => {
            let capitals = count(value, u8::is_ascii_uppercase);
            let plain = value.iter().all(u8::is_ascii_alphabetic);
            let parts = value.split(|b| matches!(b, b'-' | b'_' | b'.')).count();
            let is_label = value[0].is_ascii_uppercase() && capitals == 1;
            value.len() >= 6 && !is_label && capitals < value.len() && (plain || parts >= 4)
        }
    }
}

/// Number in source code: `16384u32`, `0x1f`, `2_000_000`, `30s`.
fn is_number(value: &[u8]) -> bool {
    if let [b'0', b'x' | b'X', hex @ ..] = value {
        return hex.len() <= 16 && hex.iter().all(|b| b.is_ascii_hexdigit() || *b == b'_');
    }
    let in_number = |b: &&u8| b.is_ascii_digit() || matches!(b, b'_' | b'.');
    let digits = value.iter().take_while(in_number).count();
    let unit = value[digits..].to_ascii_lowercase();
    let dotted = unit.is_empty() && value.contains(&b'.');
    let mut units = list("units").iter();
    let mut is_unit = || units.any(|known| known.as_bytes() == unit);
    value.first().is_some_and(u8::is_ascii_digit) && (dotted || is_unit())
}

/// Quoted password with spaces, but with digits and signs that labels lack.
fn is_sentence_of_signs(value: &[u8]) -> bool {
    let signs = count(value, |b| {
        matches!(b, b'!' | b'@' | b'#' | b'$' | b'^' | b'&' | b'*' | b'+')
    });
    let digits = count(value, u8::is_ascii_digit);
    (8..=64).contains(&value.len())
        && signs >= 1
        && digits >= 1
        && !value.contains(&b'{')
        && !value.contains(&b'(')
}

/// One long run that looks random and is neither a path nor an id.
fn is_key(value: &[u8], class: Class, stands: ValuePosition) -> bool {
    let least = if class == Class::Provider { 15 } else { 20 };
    let firm = stands != ValuePosition::Prose
        && (class == Class::Key || stands != ValuePosition::Loose || value.len() >= 24);
    let fits = |b: &u8| {
        b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'_' | b'-' | b':' | b'.')
    };
    let parts = value.split(|b| matches!(b, b'/' | b'.' | b':')).count();
    firm && (least..=512).contains(&value.len())
        && value.iter().all(fits)
        && (parts == 1 || value.len() >= 40 * parts || is_base64_key(value))
        && !(is_uuid(value) && class == Class::Key)
        && randomness::is_random(value)
        && randomness::entropy(value) >= 3.0
}

/// Base64 contains slashes of its own.
fn is_base64_key(value: &[u8]) -> bool {
    let capitals = count(value, u8::is_ascii_uppercase);
    let digits = count(value, u8::is_ascii_digit);
    value.iter().all(|b| Set::BASE64.holds(*b)) && value.len() >= 40 && capitals >= 5 && digits >= 3
}

fn is_uuid(value: &[u8]) -> bool {
    let fits = |(i, b): (usize, &u8)| match i {
        8 | 13 | 18 | 23 => *b == b'-',
        _ => b.is_ascii_hexdigit(),
    };
    value.len() == 36 && value.iter().enumerate().all(fits)
}

/// Seed phrase: 12 to 24 short lower-case words, and nothing else.
fn is_phrase(value: &[u8]) -> bool {
    let words = value
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let short =
        |word: &[u8]| (3..=8).contains(&word.len()) && word.iter().all(u8::is_ascii_lowercase);
    let count = words.clone().count();
    (12..=24).contains(&count) && count % 3 == 0 && words.clone().all(short)
}

fn is_token(value: &[u8], stands: ValuePosition) -> bool {
    if value.len() < 8 || value.len() > 4096 {
        return false;
    }
    let fits =
        |b: &u8| b.is_ascii_graphic() && !matches!(b, b'(' | b')' | b'<' | b'>' | b'{' | b'}');
    if !value.iter().all(fits) {
        // Salt generators use all printable characters.
        let signs = count(value, u8::is_ascii_punctuation);
        let graphic = value.iter().all(u8::is_ascii_graphic);
        return stands == ValuePosition::Quoted
            && value.len() >= 32
            && graphic
            && signs >= 4
            && randomness::entropy(value) >= 4.0;
    }
    if value.starts_with(b"/") || value.starts_with(b"./") || value.starts_with(b"~/") {
        let capitals = count(value, u8::is_ascii_uppercase);
        return value.len() >= 32
            && randomness::is_random(value)
            && (capitals >= 5 || !value[1..].contains(&b'/'));
    }
    if memchr::memmem::find(value, b"://").is_some() {
        return false;
    }
    let firm = matches!(stands, ValuePosition::Quoted | ValuePosition::Tight);
    randomness::is_random(value) || (firm && (has_symbols(value) || is_made_up(value)))
}

/// Letters and digits mixed by hand, as in test tokens that were never replaced.
fn is_made_up(value: &[u8]) -> bool {
    let digits = count(value, u8::is_ascii_digit);
    let letters = count(value, u8::is_ascii_alphabetic);
    value.len() >= 12
        && digits >= 4
        && letters >= 4
        && randomness::entropy(value) >= 3.0
        && !randomness::is_words(value)
}

fn has_symbols(value: &[u8]) -> bool {
    let symbols = count(value, |b| {
        matches!(
            b,
            b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'&' | b'*' | b'?'
        )
    });
    symbols >= 1
        && value.iter().any(u8::is_ascii_digit)
        && value.iter().any(u8::is_ascii_alphabetic)
}

fn same(value: &[u8], word: &str) -> bool {
    let value = value.strip_suffix(b".").unwrap_or(value);
    value.eq_ignore_ascii_case(word.as_bytes())
}

/// Returns true if a value in a password position is a password: no reference, option, path or word
/// of a sentence.
pub(super) fn is_given(value: &[u8]) -> bool {
    let whole = value.len() >= 4
        && !value.starts_with(b"-")
        && value.iter().all(|b| !b.is_ascii_whitespace());
    let reference = matches!(value.first(), Some(b'$' | b'<' | b'{' | b'%' | b'[' | b'`'))
        && !(value.first() == Some(&b'%') && value.last() != Some(&b'%'));
    let address = memchr::memmem::find(value, b"://").is_some();
    let path = value.starts_with(b"/") || value.starts_with(b"./") || value.starts_with(b"~/");
    let word = list("prose").iter().any(|word| same(value, word));
    whole && !reference && !address && !path && !word && !randomness::is_placeholder(value)
}

/// Returns true if an unquoted value is source code.
fn is_code(value: &[u8], stands: ValuePosition) -> bool {
    if stands == ValuePosition::Quoted {
        return value.starts_with(b"process.env") || value.starts_with(b"os.environ");
    }
    let Ok(text) = std::str::from_utf8(value) else {
        return false;
    };
    let in_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let identifier = |part: &str| {
        !part.starts_with(|c: char| c.is_ascii_digit())
            && !part.is_empty()
            && part.chars().all(in_word)
    };
    let parts: Vec<&str> = text
        .split(['.', ':'])
        .filter(|part| !part.is_empty())
        .collect();
    let path = parts.len() > 1
        && parts.iter().all(|part| identifier(part) && part.len() > 1)
        && !randomness::is_random(value);
    let loud = |part: &&str| part.len() > 2 && part.bytes().all(|b| b.is_ascii_uppercase());
    let constant =
        !text.bytes().any(|b| b.is_ascii_lowercase()) && text.split('_').filter(loud).count() >= 2;
    let small = text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    let snake = text.contains('_') && identifier(text) && (small || constant);
    // Base64 can also begin with a slash.
    let base64 = value.len() >= 32
        && value.iter().all(|b| Set::BASE64.holds(*b))
        && randomness::is_random(value)
        && count(value, u8::is_ascii_uppercase) >= 5;
    // YAML tag: `!vault |`.
    let is_tag = |tag: &str| !tag.is_empty() && tag.bytes().all(|b| b.is_ascii_alphabetic());
    path || snake
        || !base64 && text.starts_with(['&', '*', '/', '.', '-', '\\', '{'])
        || text.strip_prefix('!').is_some_and(is_tag)
        || text.starts_with("__")
}
