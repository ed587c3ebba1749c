//! Redacts JSON and changes nothing else in it.
//!
//! The document is scanned as text: brackets, numbers and white space are copied, and only strings
//! with secrets are replaced. `1062.0`, `NaN` and the order of keys survive, and valid JSON stays
//! valid. Each string is decoded and checked together with its field name, so `{"password": "…"}`
//! needs no pattern of its own.
//!
//! Nothing recurses, so deep nesting (10⁵ levels) cannot overflow the stack.

use std::borrow::Cow;
use std::ops::Range;

use super::assignments;
use super::randomness;
use super::redact::{Redacted, marker, redact};
use super::values;

/// Replacement for one string of the document.
struct Edit {
    at: Range<usize>,
    text: String,
    kinds: Vec<&'static str>,
}

/// State of one open bracket.
#[derive(Default)]
struct Level {
    is_object: bool,
    /// Key whose value comes next.
    key: Option<String>,
    /// Value of a field `name` or `key`, which names the `value` beside it.
    name: Option<String>,
    /// Preceding string, for flags in argument lists.
    before: Option<String>,
    /// Set inside a key block that is stored as a list of lines.
    in_block: bool,
}

/// Redacts a JSON document. Also redacts the strings of invalid JSON.
pub fn redact_json(json: &str) -> Redacted<'_> {
    let edits = edits(json);
    if edits.is_empty() {
        return Redacted {
            text: Cow::Borrowed(json),
            found: Vec::new(),
        };
    }
    let mut out = String::with_capacity(json.len());
    let mut found = Vec::new();
    let mut from = 0;
    for edit in edits {
        out.extend([&json[from..edit.at.start], &edit.text]);
        from = edit.at.end;
        found.extend(edit.kinds);
    }
    out.push_str(&json[from..]);
    found.sort_unstable();
    found.dedup();
    Redacted {
        text: Cow::Owned(out),
        found,
    }
}

/// Redacts a parsed JSON value.
pub fn redact_value(value: &mut serde_json::Value) {
    // Numbers, booleans and null hold no secret.
    if value.is_number() || value.is_boolean() || value.is_null() {
        return;
    }
    let json = value.to_string();
    let redacted = redact_json(&json);
    if let Cow::Owned(text) = &redacted.text
        && let Ok(clean) = serde_json::from_str(text)
    {
        *value = clean;
    }
}

/// Ranges and kinds of the strings that contain secrets.
pub fn findings_in_json(json: &str) -> Vec<super::Finding> {
    let of_edit = |Edit { at, kinds, .. }: Edit| {
        kinds.into_iter().map(move |kind| super::Finding {
            kind,
            at: at.clone(),
        })
    };
    edits(json).into_iter().flat_map(of_edit).collect()
}

fn edits(json: &str) -> Vec<Edit> {
    let bytes = json.as_bytes();
    let mut edits = Vec::new();
    let mut levels = vec![Level::default()];
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => {
                // `"password": ["…"]`: a name applies to everything nested below it.
                let before = levels.last_mut().and_then(|level| level.key.take());
                levels.push(Level {
                    is_object: byte == b'{',
                    before,
                    ..Level::default()
                });
            }
            b'}' | b']' => {
                // The outermost level stays, even if a damaged text has extra brackets.
                if levels.len() > 1 {
                    levels.pop();
                }
            }
            b'"' => {
                let end = string_end(bytes, at);
                let is_key = levels.last().is_some_and(|level| level.is_object)
                    && bytes[end..].iter().find(|b| !b.is_ascii_whitespace()) == Some(&b':');
                if let Some(level) = levels.last_mut() {
                    edits.extend(string(json, at..end, is_key, level));
                }
                at = end;
                continue;
            }
            _ => {
                // Skips to the next quote or bracket.
                let ends = |b: &u8| b"\"{[}]".contains(b);
                let rest = &bytes[at + 1..];
                at += 1 + rest.iter().position(ends).unwrap_or(rest.len());
                continue;
            }
        }
        at += 1;
    }
    edits
}

/// Position after the string that begins at `at`, or the end of the text.
fn string_end(text: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', text.get(at..).unwrap_or_default()) {
        at += found;
        if text[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    text.len()
}

fn string(json: &str, at: Range<usize>, is_key: bool, level: &mut Level) -> Option<Edit> {
    // A range that ends inside a character comes from invalid JSON.
    let quoted = json.get(at.clone())?;
    let closed = quoted.len() >= 2 && quoted.ends_with('"');
    let inner = quoted
        .get(1..quoted.len() - usize::from(closed))
        .unwrap_or_default();
    let decoded = if inner.contains('\\') {
        serde_json::from_str::<String>(quoted).map_or(Cow::Borrowed(inner), Cow::Owned)
    } else {
        Cow::Borrowed(inner)
    };
    let is_escaped = matches!(decoded, Cow::Owned(_)) || !inner.contains('\\');
    let mut redacted = redact(&decoded);
    if is_key {
        level.key = Some(decoded.clone().into_owned());
    } else {
        let kind = of_value(level, &decoded, &redacted);
        if let Some(kind) = kind {
            redacted = Redacted {
                text: Cow::Owned(marker(kind)),
                found: vec![kind],
            };
        }
        let key = level.key.take();
        let of_name = ["name", "key", "field", "variable", "env"];
        let is_name = |key: &String| of_name.iter().any(|word| key.eq_ignore_ascii_case(word));
        let names = key.as_ref().is_some_and(is_name);
        if names {
            level.name = Some(decoded.clone().into_owned());
        }
        level.before = (!level.is_object).then(|| decoded.clone().into_owned());
    }
    if redacted.found.is_empty() {
        return None;
    }
    let text = if is_escaped && closed {
        serde_json::to_string(redacted.text.as_ref()).ok()?
    } else {
        let end = if closed { "\"" } else { "" };
        format!("\"{}{end}", redacted.text)
    };
    Some(Edit {
        at,
        text,
        kinds: redacted.found,
    })
}

/// Kind of a value that is secret because of its position, unless redaction already found one.
fn of_value(level: &mut Level, value: &str, redacted: &Redacted<'_>) -> Option<&'static str> {
    if !level.is_object {
        // Line with only the label of a block.
        let line = value.trim();
        let begins = line.starts_with("-----BEGIN")
            && line.ends_with("-----")
            && line.contains("PRIVATE KEY")
            && line.len() < 60;
        let ends = value.contains("-----END");
        if level.in_block || begins {
            level.in_block = !ends;
            let fits = value
                .trim()
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"+/=-:, ".contains(&b));
            if fits || begins {
                return Some("private-key");
            }
            level.in_block = false;
        }
    }
    if !redacted.found.is_empty() {
        return None;
    }
    let name = match (&level.key, &level.name, &level.before) {
        (Some(key), Some(name), _) if key.eq_ignore_ascii_case("value") => name,
        (Some(key), ..) => key,
        (None, _, Some(before)) if !level.is_object => {
            let is_flag = before.starts_with('-') || values::named(before).is_some();
            if !is_flag {
                return None;
            }
            before
        }
        _ => return None,
    };
    if matches!(name.to_ascii_lowercase().as_str(), "cookie" | "set-cookie") {
        let pair = value.split(';').next()?.split_once('=')?;
        let worth = pair.1.len() >= 6 && !randomness::is_placeholder(pair.1.as_bytes());
        return worth.then_some("cookie");
    }
    assignments::of_field(name, value)
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn fields_with_the_name_of_a_secret_lose_their_value() {
        let check = |json: &str, expected: &str| {
            assert_eq!(redact_json(json).text, expected);
        };
        check(
            r#"{"password" : "letmein2", "n": 1062.0, "x": NaN}"#,
            r#"{"password" : "[REDACTED:password]", "n": 1062.0, "x": NaN}"#,
        );
        check(
            r#"["run", "--password", "k1ngk0ng", "-v"]"#,
            r#"["run", "--password", "[REDACTED:password]", "-v"]"#,
        );
        check(
            r#"{"name": "DB_PASSWORD", "value": "k1ngk0ng"}"#,
            r#"{"name": "DB_PASSWORD", "value": "[REDACTED:password]"}"#,
        );
        check(
            r#"{"headers": {"Cookie": "a=b1c2d3e4", "authorization": ["Bearer a1B2c3D4e5F6g7H8"]}}"#,
            r#"{"headers": {"Cookie": "[REDACTED:cookie]", "authorization": ["Bearer [REDACTED:bearer-token]"]}}"#,
        );
        for same in [
            r#"{"password": {"type": "string"}, "token": "string", "secret": null}"#,
            r#"{"user": "Password", "label": "Token", "password": "Password"}"#,
            r#"{"token": 12345678901234567890, "sha": "4272f13c9b1de0a7f1f8a0b2c3d4e5f60718293a"}"#,
            r#"["\ud800 lone", 1e400]"#,
            "not json at all \"open",
            "}}]] {",
        ] {
            check(same, same);
        }
    }

    #[test]
    fn secrets_are_found_in_decoded_strings() {
        for (kind, key) in samples::keys() {
            let hidden: Vec<String> = key.bytes().map(|b| format!("\\u{b:04x}")).collect();
            let hidden = hidden.concat();
            for json in [
                format!("{{\"a\": [\"{key}\"]}}"),
                format!("{{\"{key}\": 1}}"),
                format!("{{\"a\": \"{hidden}\"}}"),
                format!(
                    "{{\"a\": \"x\\n{}\\n{}\"}}",
                    &key[..key.len() / 2],
                    &key[key.len() / 2..]
                ),
                format!("{{\"a\": \"\\ud800 {key}\"}}"),
            ] {
                let redacted = redact_json(&json);
                assert!(
                    redacted.found.contains(&kind),
                    "{kind}: {redacted:?} from {json}"
                );
                assert!(!redacted.text.contains(&key[key.len() / 2..]), "{json}");
            }
        }
    }

    #[test]
    fn a_key_block_in_a_list_of_lines_goes_line_by_line() {
        let block = samples::key_block("RSA ", 4);
        let lines: Vec<&str> = block.lines().collect();
        let json = serde_json::json!({ "lines": lines, "after": ["kept"] }).to_string();
        let redacted = redact_json(&json);
        assert!(lines[1..5].iter().all(|line| !redacted.text.contains(line)));
        assert!(redacted.text.ends_with(r#""after":["kept"]}"#));
    }

    #[test]
    fn depth_is_no_danger() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(redact_json(&deep).text, deep);
    }
}
