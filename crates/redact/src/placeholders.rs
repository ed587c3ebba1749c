//! Values that stand for a secret and are none: placeholders, references, examples of vendors.

use super::randomness;

/// Words used in place of a value.
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

/// Parts that occur only in placeholders.
const STANDIN_PARTS: &[&str] = &[
    "your_", "your-", "your ", "<", "my_", "my-", "_here", "-here", "placeholder", "changeme",
    "change-me", "change_me", "replace", "redacted", "insert_", "insert-", "...", "…", "****",
    "xxxx", "todo", "dummy", "example", "enter_", "enter-",
];

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
    let inside = ["${", "{{", "$(", "%(", "[REDACTED:", "[PRIVATE]"]
        .iter()
        .any(|mark| text.contains(mark));
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    // `EXAMPLE` inside a key does not make it a placeholder.
    let worded = digits < 4
        && (randomness::is_words(text.as_bytes()) || !randomness::is_random(text.as_bytes()));
    let parts = worded && STANDIN_PARTS.iter().any(|part| lower.contains(part));
    lower.is_empty()
        || is_documented(text.as_bytes())
        || reference
        || inside
        || parts
        || is_filler(value)
        || STANDINS.contains(&lower.trim_matches(['[', ']', '(', ')', '<', '>']))
}

/// Keys in vendor documentation end like this.
pub(super) fn is_documented(value: &[u8]) -> bool {
    value.ends_with(b"EXAMPLE") || value.ends_with(b"EXAMPLEKEY")
}

/// `xxxx`, `****`, `0000`, also with a few other characters.
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
