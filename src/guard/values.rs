//! What is worth hiding: whether a name is that of a secret, and whether a value is one.
//!
//! `password` in prose, `password: string` in a schema and `token = os.environ["X"]` in code are no
//! secrets; `<your-token>`, `xxxx` and `${{ secrets.X }}` are placeholders. When in doubt, what a
//! person named a password goes, and what is merely near the word `token` has to look random.

use super::body::changes;

/// How strictly a value is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// People choose them: short words with a digit are enough.
    Password,
    /// Programs make them: they look random.
    Token,
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

/// The words that make a name the name of a secret, what is written in the place of its value, and
/// how strictly that is looked at. Longer words come before shorter ones that they begin with.
pub(super) const NAMES: &[(&str, &str, Class)] = &[
    ("passphrase", "password", Class::Password),
    ("password", "password", Class::Password),
    ("passwort", "password", Class::Password),
    ("passwd", "password", Class::Password),
    ("_pass", "password", Class::Password),
    ("-pass", "password", Class::Password),
    ("dbpass", "password", Class::Password),
    ("pwd", "password", Class::Password),
    ("secret", "secret", Class::Token),
    ("token", "token", Class::Token),
    ("api_key", "api-key", Class::Token),
    ("api-key", "api-key", Class::Token),
    ("api key", "api-key", Class::Token),
    ("apikey", "api-key", Class::Token),
    ("access_key", "secret", Class::Token),
    ("access-key", "secret", Class::Token),
    ("accesskey", "secret", Class::Token),
    ("account_key", "secret", Class::Token),
    ("accountkey", "secret", Class::Token),
    ("auth_key", "secret", Class::Token),
    ("auth-key", "secret", Class::Token),
    ("authkey", "secret", Class::Token),
    ("private_key", "secret", Class::Token),
    ("private-key", "secret", Class::Token),
    ("privatekey", "secret", Class::Token),
    ("signing_key", "secret", Class::Token),
    ("signing-key", "secret", Class::Token),
    ("signingkey", "secret", Class::Token),
    ("encryption_key", "secret", Class::Token),
    ("encryption-key", "secret", Class::Token),
    ("encryptionkey", "secret", Class::Token),
    ("master_key", "secret", Class::Token),
    ("service_key", "secret", Class::Token),
    ("service_role_key", "secret", Class::Token),
    ("subscription_key", "secret", Class::Token),
    ("subscription-key", "secret", Class::Token),
    ("consumer_key", "secret", Class::Token),
    ("deploy_key", "secret", Class::Token),
    ("admin_key", "secret", Class::Token),
    ("app_key", "secret", Class::Token),
    ("appkey", "secret", Class::Token),
    ("credential", "secret", Class::Token),
    ("_auth", "secret", Class::Token),
    ("authorization", "authorization", Class::Token),
];

/// What may follow such a word in a name that still names the secret itself.
const SUFFIXES: &[&str] = &[
    "", "key", "accesskey", "token", "value", "val", "base", "string", "str", "text", "plain",
    "raw", "prod", "production", "dev", "live", "test", "staging", "env", "new", "old", "current",
    "s", "for", "header",
];

/// Names that hold such a word and are not secret.
const HARMLESS: &[&str] = &[
    "next", "page", "continuation", "pagination", "idempotency", "sync", "cursor", "public", "max",
    "min", "num", "total", "count", "cache", "primary", "foreign", "sort", "partition",
];

/// What every name of a secret holds one of: most names are told quickly by having none.
const STEMS: &[&[u8]] = &[
    b"pass", b"pwd", b"secret", b"token", b"key", b"cred", b"auth",
];

/// The kind and class of what a name names: `DB_PASSWORD`, `x-api-key`, `clientSecret`.
pub(super) fn named(name: &str) -> Option<(&'static str, Class)> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b' ' | b'$');
    if name.len() > 80 || !name.bytes().all(fits) {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    let may = (0..lower.len()).any(|at| {
        matches!(
            lower.as_bytes()[at],
            b'p' | b's' | b't' | b'k' | b'c' | b'a'
        ) && STEMS
            .iter()
            .any(|stem| lower.as_bytes()[at..].starts_with(stem))
    });
    if !may {
        return None;
    }
    let own = NAMES.iter().find(|(word, ..)| {
        let found = lower.rfind(word);
        found.is_some_and(|at| is_own(&lower[..at], &lower[at + word.len()..]))
    });
    let bare = (lower == "pass").then_some(("password", Class::Password));
    own.map(|(_, kind, class)| (*kind, *class)).or(bare)
}

/// Whether the rest of a name around the word leaves it the name of the secret.
pub(super) fn is_own(before: &str, after: &str) -> bool {
    let letters = |text: &str| -> String {
        let kept = text.chars().filter(char::is_ascii_alphabetic);
        kept.collect::<String>().to_ascii_lowercase()
    };
    let first = before
        .split(|c: char| !c.is_ascii_alphanumeric())
        .rfind(|part| !part.is_empty())
        .unwrap_or_default()
        .to_ascii_lowercase();
    let harmless = HARMLESS.iter().any(|word| first == *word);
    !harmless && SUFFIXES.contains(&letters(after).as_str())
}

/// Whether a value of this class, standing like this, is a secret.
pub(super) fn is_secret(value: &[u8], class: Class, stands: Stands) -> bool {
    if is_placeholder(value) || is_code(value, stands) {
        return false;
    }
    match class {
        Class::Password => is_password(value, stands),
        Class::Token => is_token(value, stands),
    }
}

fn is_password(value: &[u8], stands: Stands) -> bool {
    if value.len() < 4 || value.len() > 256 || value.iter().any(u8::is_ascii_whitespace) {
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

fn is_token(value: &[u8], stands: Stands) -> bool {
    if value.len() < 8 || value.len() > 4096 {
        return false;
    }
    let fits =
        |b: &u8| b.is_ascii_graphic() && !matches!(b, b'(' | b')' | b'<' | b'>' | b'{' | b'}');
    if !value.iter().all(fits) {
        return false;
    }
    if value.starts_with(b"/") || value.starts_with(b"./") || value.starts_with(b"~/") {
        return value.len() >= 32 && is_random(value) && !value[1..].contains(&b'/');
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
        one_case && rest.len() <= 4 && rest.iter().all(u8::is_ascii_digit) && letters <= 20
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
        || reference
        || inside
        || parts
        || is_filler(value)
        || STANDINS.contains(&lower.as_str())
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
        && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    path || snake || text.starts_with(['&', '*', '/', '.', '-', '\\']) || text.starts_with("__")
}
