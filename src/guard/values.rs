//! What is worth hiding: whether a name is that of a secret, and whether a value is one.
//!
//! `password` in prose, `password: string` in a schema and `token = os.environ["X"]` in code are no
//! secrets; `<your-token>`, `xxxx` and `${{ secrets.X }}` are placeholders. When in doubt, what a
//! person named a password goes, and what is merely near the word `token` has to look random.

use std::sync::LazyLock;

use super::body::changes;
use super::patterns::{How, patterns};
use super::shapes::Set;

/// How strictly a value is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// People choose them: short words with a digit are enough.
    Password,
    /// Programs make them: they look random.
    Token,
    /// Keys of all kinds have such names, secret or not: long, of one piece, and random.
    Key,
    /// A vendor's name and nothing else: as above.
    Provider,
    /// Words of a seed phrase.
    Phrase,
}

/// How a value stands in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stands {
    /// In quotes.
    Quoted,
    /// Straight behind `=`, as in an environment or a query.
    Tight,
    /// Behind a separator and a space.
    Loose,
    /// In a sentence: "the password is …".
    Prose,
}

/// What may follow such a word in a name that still names the secret itself.
const SUFFIXES: &[&str] = &[
    "", "key", "accesskey", "token", "value", "val", "base", "string", "str", "text", "plain",
    "raw", "prod", "production", "dev", "live", "test", "staging", "env", "new", "old", "current",
    "s", "for", "header", "b", "encoded", "hex", "confirm", "confirmation", "again", "repeat",
    "default", "admin", "root", "main", "master", "primary", "secondary", "user", "read", "write",
    "one", "two",
];

/// What may follow the name of a vendor in a name of a secret.
const OF_VENDOR: &[&str] = &[
    "", "key", "token", "secret", "apikey", "api", "auth", "pass", "password", "license",
    "licensekey", "adminkey", "admin", "writekey", "pat", "bearer", "accesskey", "clientsecret",
    "apisecret", "apitoken", "live", "prod", "production", "test", "sdkkey", "searchkey", "access",
    "secretkey", "signingkey",
];

/// Names that hold such a word and are not secret.
const HARMLESS: &[&str] = &[
    "next", "page", "continuation", "pagination", "idempotency", "sync", "cursor", "public", "max",
    "min", "num", "total", "count", "cache", "primary", "foreign", "sort", "partition", "without",
    "no", "forgot", "reset", "start", "end", "stop", "special", "pad", "unexpected", "invalid",
];

/// More of them, in front of `key`: keys that find something, and open nothing.
const FINDING: &[&str] = &[
    "row", "object", "routing", "range", "lookup", "translation", "locale", "dedup", "group",
    "message", "json", "column", "unique", "composite", "natural", "sequence", "schema", "bucket",
    "redis", "event", "item", "record", "entity", "file", "image", "artifact", "pub", "host",
    "known", "restore", "hash", "map", "index", "lock", "mutex", "query", "document", "doc",
    "node", "cell", "job", "build", "checkpoint", "search",
];

/// What every name of a secret holds one of: most names are told quickly by having none.
const STEMS: &[&[u8]] = &[
    b"pass", b"pwd", b"secret", b"token", b"key", b"cred", b"auth", b"mnemonic", b"phrase",
    b"salt", b"connect", b"kennwort", b"motdep", b"contras", b"_pw", b"masterauth", b"contribsys",
];

/// The kind and class of what a name names: `DB_PASSWORD`, `x-api-key`, `clientSecret`.
pub(super) fn named(name: &str) -> Option<(&'static str, Class)> {
    // The last part of the path of a parameter.
    let name = name.rsplit('/').next().unwrap_or(name);
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b' ' | b'$');
    if name.len() > 80 || !name.bytes().all(fits) {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    let may = (0..lower.len()).any(|at| {
        matches!(
            lower.as_bytes()[at],
            b'p' | b's' | b't' | b'k' | b'c' | b'a' | b'm'
        ) && STEMS
            .iter()
            .any(|stem| lower.as_bytes()[at..].starts_with(stem))
    });
    if !may {
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

/// The words of names, each with what is written in its place and how its value is looked at.
static WORDS: LazyLock<Vec<(&str, &str, Class)>> = LazyLock::new(|| {
    patterns()
        .filter_map(|pattern| match pattern.how {
            How::Name(class) => Some((pattern, class)),
            _ => None,
        })
        .flat_map(|(pattern, class)| {
            let words = pattern.anchors.iter();
            // A bare `pass` is told below: in a longer name it is a verb.
            let own = words.filter(|word| !matches!(**word, "pass" | "psk"));
            own.map(move |word| (*word, pattern.kind, class))
        })
        .collect()
});

/// Whether the rest of a name around the word leaves it the name of the secret.
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
        return OF_VENDOR.contains(&after.as_str());
    }
    let finds = class == Class::Key && FINDING.iter().any(|word| ends_in(first, word));
    !finds
        && !HARMLESS.iter().any(|word| ends_in(first, word))
        && SUFFIXES.contains(&after.as_str())
}

/// Whether a part of a name is this word, or ends in it where a new word begins: `nextPage`.
fn ends_in(part: &str, word: &str) -> bool {
    let Some(at) = part.len().checked_sub(word.len()) else {
        return false;
    };
    part.is_char_boundary(at)
        && part[at..].eq_ignore_ascii_case(word)
        && (at == 0 || part.as_bytes()[at].is_ascii_uppercase())
}

/// Whether a value of this class, standing like this, is a secret.
pub(super) fn is_secret(value: &[u8], class: Class, stands: Stands) -> bool {
    if is_placeholder(value) || is_code(value, stands) {
        return false;
    }
    match class {
        Class::Password => is_password(value, stands),
        Class::Token => is_token(value, stands),
        Class::Key | Class::Provider => is_key(value, class, stands),
        Class::Phrase => is_phrase(value),
    }
}

fn is_password(value: &[u8], stands: Stands) -> bool {
    if value.len() < 4 || value.len() > 256 || value.iter().any(u8::is_ascii_whitespace) {
        return stands == Stands::Quoted && is_sentence_of_signs(value);
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
        Stands::Prose => {
            value.len() >= 6 && letters && digits && !ALGORITHMS.iter().any(|a| same(value, a))
        }
        _ if !letters => digits && value.len() >= 6 && stands != Stands::Loose,
        _ if digits || symbols => !ALGORITHMS.iter().any(|a| same(value, a)),
        Stands::Loose => changes(value) >= 4 && value.len() >= 8,
        // A word: `letmein` in a configuration, but not a label and not a name of something.
        Stands::Quoted | Stands::Tight => {
            let capitals = value.iter().filter(|b| b.is_ascii_uppercase()).count();
            let plain = value.iter().all(u8::is_ascii_alphabetic);
            let parts = value.split(|b| matches!(b, b'-' | b'_' | b'.')).count();
            let is_label = value[0].is_ascii_uppercase() && capitals == 1;
            value.len() >= 6 && !is_label && capitals < value.len() && (plain || parts >= 4)
        }
    }
}

/// A number of a program: `16384u32`, `0x1f`, `2_000_000`, `30s`.
fn is_number(value: &[u8]) -> bool {
    const UNITS: &[&[u8]] = &[
        b"u8", b"u16", b"u32", b"u64", b"usize", b"i8", b"i16", b"i32", b"i64", b"isize", b"f32",
        b"f64", b"ul", b"ull", b"ms", b"s", b"sec", b"min", b"m", b"h", b"d", b"days", b"px",
        b"em", b"rem", b"kb", b"mb", b"gb", b"kib", b"mib", b"gib", b"l", b"f", b"th", b"st",
        b"nd",
    ];
    if let Some(hex) = value
        .strip_prefix(b"0x")
        .or_else(|| value.strip_prefix(b"0X"))
    {
        return hex.len() <= 16 && hex.iter().all(|b| b.is_ascii_hexdigit() || *b == b'_');
    }
    let digits = value
        .iter()
        .take_while(|b| b.is_ascii_digit() || matches!(b, b'_' | b'.'))
        .count();
    let unit = value[digits..].to_ascii_lowercase();
    let dotted = unit.is_empty() && value.contains(&b'.');
    digits > 0 && value[0].is_ascii_digit() && (dotted || UNITS.contains(&unit.as_slice()))
}

/// A quoted password with spaces in it: few words, with digits and signs that no label has.
fn is_sentence_of_signs(value: &[u8]) -> bool {
    let signs = value
        .iter()
        .filter(|b| matches!(b, b'!' | b'@' | b'#' | b'$' | b'^' | b'&' | b'*' | b'+'))
        .count();
    let digits = value.iter().filter(|b| b.is_ascii_digit()).count();
    (8..=64).contains(&value.len())
        && signs >= 1
        && digits >= 1
        && !value.contains(&b'{')
        && !value.contains(&b'(')
}

/// One long run that looks random, with nothing in it that a path or an id has.
fn is_key(value: &[u8], class: Class, stands: Stands) -> bool {
    let least = if class == Class::Provider { 15 } else { 20 };
    let firm = stands != Stands::Prose
        && (class == Class::Key || stands != Stands::Loose || value.len() >= 24);
    let fits = |b: &u8| {
        b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'_' | b'-' | b':' | b'.')
    };
    let parts = value.split(|b| matches!(b, b'/' | b'.' | b':')).count();
    firm && (least..=512).contains(&value.len())
        && value.iter().all(fits)
        && (parts == 1 || value.len() >= 40 * parts || is_base64_key(value))
        && !(is_uuid(value) && class == Class::Key)
        && is_random(value)
        && entropy(value) >= 3.0
}

/// Base64 has slashes of its own.
fn is_base64_key(value: &[u8]) -> bool {
    let capitals = value.iter().filter(|b| b.is_ascii_uppercase()).count();
    let digits = value.iter().filter(|b| b.is_ascii_digit()).count();
    value.iter().all(|b| Set::Base64.holds(*b)) && value.len() >= 40 && capitals >= 5 && digits >= 3
}

fn is_uuid(value: &[u8]) -> bool {
    let fits = |(i, b): (usize, &u8)| match i {
        8 | 13 | 18 | 23 => *b == b'-',
        _ => b.is_ascii_hexdigit(),
    };
    value.len() == 36 && value.iter().enumerate().all(fits)
}

/// Twelve words or more, and nothing else.
fn is_phrase(value: &[u8]) -> bool {
    let words = value
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let short =
        |word: &[u8]| (3..=8).contains(&word.len()) && word.iter().all(u8::is_ascii_lowercase);
    let count = words.clone().count();
    (12..=24).contains(&count) && count % 3 == 0 && words.clone().all(short)
}

fn is_token(value: &[u8], stands: Stands) -> bool {
    if value.len() < 8 || value.len() > 4096 {
        return false;
    }
    let fits =
        |b: &u8| b.is_ascii_graphic() && !matches!(b, b'(' | b')' | b'<' | b'>' | b'{' | b'}');
    if !value.iter().all(fits) {
        // A generator of salts uses all characters.
        let signs = value.iter().filter(|b| b.is_ascii_punctuation()).count();
        let graphic = value.iter().all(u8::is_ascii_graphic);
        return stands == Stands::Quoted
            && value.len() >= 32
            && graphic
            && signs >= 4
            && entropy(value) >= 4.0;
    }
    if value.starts_with(b"/") || value.starts_with(b"./") || value.starts_with(b"~/") {
        let capitals = value.iter().filter(|b| b.is_ascii_uppercase()).count();
        return value.len() >= 32
            && is_random(value)
            && (capitals >= 5 || !value[1..].contains(&b'/'));
    }
    if memchr::memmem::find(value, b"://").is_some() {
        return false;
    }
    let firm = matches!(stands, Stands::Quoted | Stands::Tight);
    is_random(value) || (firm && (has_symbols(value) || is_made_up(value)))
}

/// Letters and then digits, as people make them up for tests and forget to replace them.
fn is_made_up(value: &[u8]) -> bool {
    let digits = value.iter().filter(|b| b.is_ascii_digit()).count();
    let letters = value.iter().filter(|b| b.is_ascii_alphabetic()).count();
    value.len() >= 12 && digits >= 4 && letters >= 4 && entropy(value) >= 3.0 && !is_words(value)
}

fn has_symbols(value: &[u8]) -> bool {
    let symbols = value
        .iter()
        .filter(|b| {
            matches!(
                b,
                b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'&' | b'*' | b'?'
            )
        })
        .count();
    symbols >= 1
        && value.iter().any(u8::is_ascii_digit)
        && value.iter().any(u8::is_ascii_alphabetic)
}

/// Whether a value looks as if a program had made it by chance.
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

/// Words and small numbers with dashes, dots or slashes between them: a name, not a key.
fn is_words(value: &[u8]) -> bool {
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

/// `camelCaseOfWords`: each capital begins a word of three letters or more on average.
fn is_camel(word: &[u8]) -> bool {
    let capitals = word.iter().filter(|b| b.is_ascii_uppercase()).count();
    word.len() >= capitals * 4
}

/// Bits a character, as Shannon counts them.
#[expect(clippy::cast_precision_loss, reason = "lengths of keys")]
fn entropy(value: &[u8]) -> f64 {
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

fn same(value: &[u8], word: &str) -> bool {
    let value = value.strip_suffix(b".").unwrap_or(value);
    value.eq_ignore_ascii_case(word.as_bytes())
}

/// Names of methods, which look like passwords and are none.
const ALGORITHMS: &[&str] = &[
    "base64", "base32", "base64url", "sha1", "sha256", "sha512", "sha-256", "sha-512", "md5",
    "bcrypt", "argon2", "argon2i", "argon2id", "pbkdf2", "scrypt", "utf8", "utf-8", "oauth2",
    "aes256", "aes-256", "hs256", "rs256", "es256", "ed25519", "x509", "ntlmv2", "md5crypt",
    "plaintext", "scram-sha-256", "mysql_native_password", "caching_sha2_password",
];

/// Words that stand where a value would.
const STANDINS: &[&str] = &[
    "none", "null", "nil", "true", "false", "undefined", "string", "str", "text", "number", "bool",
    "boolean", "integer", "object", "optional", "required", "missing", "invalid", "empty",
    "secret", "secrets", "token", "tokens", "password", "passwords", "passwd", "passphrase",
    "pass", "pwd", "value", "values", "test", "tests", "testing", "example", "sample", "demo",
    "dummy", "fake", "foo", "foobar", "bar", "baz", "changeme", "changeit", "change-me",
    "change_me", "todo", "tbd", "fixme", "placeholder", "redacted", "hidden", "masked", "censored",
    "removed", "omitted", "unset", "not-set", "notset", "default", "input", "hash", "hashed",
    "encrypted", "plain", "field", "user", "username", "admin", "root", "guest", "postgres",
    "mysql", "bearer", "basic", "file", "env", "prompt", "stdin", "keychain", "vault", "auto",
    "generated", "random", "any", "apikey", "api-key", "api_key", "self", "this", "args", "kwargs",
    "params", "config", "settings", "credentials", "credential", "abc", "abcd", "asdf", "qwertz",
    "mypassword", "yourpassword", "mysecret", "yoursecret", "mytoken", "yourtoken", "somepassword",
    "passwordhere",
];

/// Parts that only placeholders have.
const STANDIN_PARTS: &[&str] = &[
    "your_", "your-", "your ", "<", "my_", "my-", "_here", "-here", "placeholder", "changeme",
    "change-me", "change_me", "replace", "redacted", "insert_", "insert-", "...", "…", "****",
    "xxxx", "todo", "dummy", "example", "enter_", "enter-",
];

/// Whether a value stands for one that is not told.
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
    let inside = ["${", "{{", "$(", "%(", "[REDACTED:", "[PRIVATE]"]
        .iter()
        .any(|mark| text.contains(mark));
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    // `EXAMPLE` in the middle of a key makes it no less of one.
    let worded = digits < 4 && (is_words(text.as_bytes()) || !is_random(text.as_bytes()));
    let parts = worded && STANDIN_PARTS.iter().any(|part| lower.contains(part));
    lower.is_empty()
        || is_documented(text.as_bytes())
        || reference
        || inside
        || parts
        || is_filler(value)
        || STANDINS.contains(&lower.trim_matches(['[', ']', '(', ')', '<', '>']))
}

/// The keys that a vendor's documentation shows end so.
pub(super) fn is_documented(value: &[u8]) -> bool {
    value.ends_with(b"EXAMPLE") || value.ends_with(b"EXAMPLEKEY")
}

/// Whether a run could be base64: capitals and small letters, or digits between letters.
pub(super) fn may_be_base64(value: &[u8]) -> bool {
    let has = |test: fn(&u8) -> bool| value.iter().any(test);
    let upper = has(u8::is_ascii_uppercase);
    value.ends_with(b"=") || (upper || has(u8::is_ascii_digit)) && changes(value) >= 2
}

/// What base64 stands for; what is not of its alphabet is passed over.
pub(super) fn base64(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let (mut bits, mut held) = (0_u32, 0);
    for b in text {
        let value = match b {
            b'A'..=b'Z' => b - b'A',
            b'a'..=b'z' => b - b'a' + 26,
            b'0'..=b'9' => b - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => continue,
        };
        bits = (bits << 6) | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held).to_le_bytes()[0]);
        }
    }
    out
}

/// Whether this is base64 of a name, a colon and a password.
pub(super) fn is_login(value: &[u8]) -> bool {
    let plain = base64(value);
    let readable = plain.iter().all(|b| *b >= 0x20 && *b != 0x7F);
    value.len() >= 8
        && readable
        && plain.contains(&b':')
        && value.iter().all(|b| Set::Base64.holds(*b))
}

/// Whether somebody has given this as a password, where nothing but one can stand: no reference, no
/// option, no word of a sentence.
pub(super) fn is_given(value: &[u8]) -> bool {
    const PROSE: &[&str] = &[
        "with", "the", "your", "option", "flag", "and", "instead", "command", "argument",
        "parameter", "from", "switch", "when", "this", "that", "because", "should", "will", "must",
        "means", "into", "then",
    ];
    let whole = value.len() >= 4
        && !value.starts_with(b"-")
        && value.iter().all(|b| !b.is_ascii_whitespace());
    let reference = matches!(value.first(), Some(b'$' | b'<' | b'{' | b'%' | b'[' | b'`'))
        && !(value.first() == Some(&b'%') && value.last() != Some(&b'%'));
    let address = memchr::memmem::find(value, b"://").is_some();
    let path = value.starts_with(b"/") || value.starts_with(b"./") || value.starts_with(b"~/");
    let word = PROSE.iter().any(|word| same(value, word));
    whole && !reference && !address && !path && !word && !is_placeholder(value)
}

/// `xxxx`, `****`, `0000`, also with a little around them.
pub(super) fn is_filler(value: &[u8]) -> bool {
    let filler = |b: &&u8| {
        matches!(
            b,
            b'x' | b'X' | b'*' | b'.' | b'0' | b'_' | b'-' | b'#' | b'?'
        )
    };
    let count = value.iter().filter(filler).count();
    count == value.len() || (value.len() >= 8 && count * 10 >= value.len() * 6)
}

/// Whether a value that is not quoted is a piece of a program.
fn is_code(value: &[u8], stands: Stands) -> bool {
    if stands == Stands::Quoted {
        return value.starts_with(b"process.env") || value.starts_with(b"os.environ");
    }
    let Ok(text) = std::str::from_utf8(value) else {
        return false;
    };
    let identifier = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let parts: Vec<&str> = text
        .split(['.', ':'])
        .filter(|part| !part.is_empty())
        .collect();
    let path = parts.len() > 1
        && parts.iter().all(|part| identifier(part))
        && !is_random(value)
        && parts.iter().all(|part| part.len() > 1);
    let snake = text.contains('_')
        && identifier(text)
        && (text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
            || text
                .bytes()
                .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
                && text
                    .split('_')
                    .filter(|part| part.len() > 2 && part.bytes().all(|b| b.is_ascii_uppercase()))
                    .count()
                    >= 2);
    // Base64 may begin with a slash too.
    let base64 = value.len() >= 32
        && value.iter().all(|b| Set::Base64.holds(*b))
        && is_random(value)
        && value.iter().filter(|b| b.is_ascii_uppercase()).count() >= 5;
    path || snake
        || (!base64 && text.starts_with(['&', '*', '/', '.', '-', '\\', '{']))
        // A tag of YAML: `!vault |`.
        || text.strip_prefix('!').is_some_and(|tag| !tag.is_empty() && tag.bytes().all(|b| b.is_ascii_alphabetic()))
        || text.starts_with("__")
}
