//! Redaction of texts and JSON, and the only functions that cut a redacted text. For a text that others will
//! read, also the removal of names of the person at this machine.
//!
//! A secret becomes `[REDACTED:kind]`, a private passage `[PRIVATE]`. Neither marker is matched
//! again, so redaction is idempotent. Text without secrets is returned unchanged.
//!
//! A secret that is cut before redaction loses the parts that identify it: its end, its prefix, its
//! name. Cutting for a file, a prompt or a terminal therefore requires a [`Clean`], and only redaction
//! creates one.

use std::borrow::Cow;
use std::ops::Range;

use super::bytes::Set;
use super::scan::{Finding, PRIVATE, findings, kind_of_field};

/// Redacted text and the kinds of secrets in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted<'a> {
    /// Redacted text; borrowed if nothing was found.
    pub text: Cow<'a, str>,
    /// Kinds of the secrets, unique, in alphabetical order.
    pub found: Vec<&'static str>,
}

impl<'a> Redacted<'a> {
    fn new(text: Cow<'a, str>, mut found: Vec<&'static str>) -> Self {
        found.sort_unstable();
        found.dedup();
        Self { text, found }
    }
}

/// Maximum number of passes: a replacement can expose a neighbouring secret.
const ROUNDS: usize = 8;

/// Redacts a text.
pub fn redact(text: &str) -> Redacted<'_> {
    let mut text = Cow::Borrowed(text);
    let mut kinds = Vec::new();
    for _ in 0..ROUNDS {
        let found = findings(&text);
        if found.is_empty() {
            break;
        }
        kinds.extend(found.iter().map(|finding| finding.kind));
        let edits = found
            .into_iter()
            .map(|Finding { kind, at }| (at, marker(kind)));
        text = Cow::Owned(spliced(&text, edits));
    }
    Redacted::new(text, kinds)
}

/// Text with other texts at these ranges.
fn spliced(text: &str, edits: impl Iterator<Item = (Range<usize>, String)>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (at, new) in edits {
        out.extend([&text[from..at.start], &new]);
        from = at.end;
    }
    out + &text[from..]
}

/// Marker for a kind of secret.
fn marker(kind: &str) -> String {
    match kind {
        PRIVATE => "[PRIVATE]".to_owned(),
        kind => format!("[REDACTED:{kind}]"),
    }
}

/// Returns true if a text consists only of redaction markers and punctuation.
pub fn says_nothing(text: &str) -> bool {
    let mut rest = text.replace("[PRIVATE]", "");
    while let Some(at) = rest.find("[REDACTED:") {
        let end = rest[at..].find(']').map_or(rest.len(), |end| at + end + 1);
        rest.replace_range(at..end, "");
    }
    !rest.chars().any(char::is_alphanumeric)
}

/// Longest redaction marker, in bytes.
const MARKER: usize = 60;

/// Text without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clean<'a>(Cow<'a, str>);

impl<'a> Clean<'a> {
    /// Redacts a text.
    pub fn of(text: &'a str) -> Self {
        Self(redact(text).text)
    }

    /// Redacts an owned text, without a copy if it contains no secret.
    pub fn of_owned(text: String) -> Clean<'static> {
        match redact(&text).text {
            Cow::Borrowed(_) => Clean(Cow::Owned(text)),
            Cow::Owned(clean) => Clean(Cow::Owned(clean)),
        }
    }

    /// Redacts a JSON document.
    pub fn of_json(json: &'a str) -> Self {
        Self(redact_json(json).text)
    }

    /// Redacted text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Redacted text as an owned string.
    pub fn into_string(self) -> String {
        self.0.into_owned()
    }

    /// First `most` bytes at most; never splits a character or a marker.
    pub fn head(&self, most: usize) -> &str {
        let end = self.0.floor_char_boundary(most);
        let end = self.marker_over(end).map_or(end, |(start, _)| start);
        &self.0[..end]
    }

    /// Last `most` bytes at most; never splits a character or a marker.
    pub fn tail(&self, most: usize) -> &str {
        let start = self.0.len().saturating_sub(most);
        let start = self.0.ceil_char_boundary(start);
        let start = self.marker_over(start).map_or(start, |(_, end)| end);
        &self.0[start..]
    }

    /// First and last bytes with `…` between them, or the whole text if it fits.
    pub fn ends(&self, head: usize, tail: usize) -> String {
        if self.0.len() <= head + tail {
            return self.0.clone().into_owned();
        }
        format!("{}\n…\n{}", self.head(head), self.tail(tail))
    }

    /// First `most` bytes at most, followed by ` …` if the text is longer.
    pub fn cut(&self, most: usize) -> String {
        if self.0.len() <= most {
            return self.0.clone().into_owned();
        }
        format!("{} …", self.head(most).trim_end())
    }

    /// Range of the marker around a position.
    fn marker_over(&self, at: usize) -> Option<(usize, usize)> {
        let bytes = self.0.as_bytes();
        let from = at.saturating_sub(MARKER);
        let start = from + memchr::memrchr(b'[', &bytes[from..at])?;
        let rest = &self.0[start..];
        if !rest.starts_with("[REDACTED:") && !rest.starts_with("[PRIVATE]") {
            return None;
        }
        let end = start + rest.find(']')? + 1;
        (at < end).then_some((start, end))
    }
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
///
/// The document is scanned as text: brackets, numbers and white space are copied, and only strings with
/// secrets are replaced. `1062.0`, `NaN` and the order of keys survive, and valid JSON stays valid. Each
/// string is decoded and checked together with its field name, so `{"password": "…"}` needs no pattern of
/// its own. Nothing recurses, so deep nesting (10⁵ levels) cannot overflow the stack.
pub fn redact_json(json: &str) -> Redacted<'_> {
    let bytes = json.as_bytes();
    let is_mark = |b: &u8| b"\"{[}]".contains(b);
    let (mut edits, mut kinds) = (Vec::new(), Vec::new());
    let mut levels = vec![Level::default()];
    let mut at = 0;
    while let Some(next) = bytes[at..].iter().position(is_mark) {
        at += next;
        match bytes[at] {
            b'"' => {
                let end = string_end(bytes, at);
                let is_key = levels.last().is_some_and(|level| level.is_object)
                    && bytes[end..].iter().find(|b| !b.is_ascii_whitespace()) == Some(&b':');
                if let Some(level) = levels.last_mut()
                    && let Some((text, found)) = json
                        .get(at..end)
                        .and_then(|quoted| string(quoted, is_key, level))
                {
                    edits.push((at..end, text));
                    kinds.extend(found);
                }
                at = end;
                continue;
            }
            // The outermost level stays, even if a damaged text has extra brackets.
            b'}' | b']' if levels.len() == 1 => {}
            b'}' | b']' => drop(levels.pop()),
            bracket => {
                // `"password": ["…"]`: a name applies to everything nested below it.
                let before = levels.last_mut().and_then(|level| level.key.take());
                levels.push(Level {
                    is_object: bracket == b'{',
                    before,
                    ..Level::default()
                });
            }
        }
        at += 1;
    }
    let text = if edits.is_empty() {
        Cow::Borrowed(json)
    } else {
        Cow::Owned(spliced(json, edits.into_iter()))
    };
    Redacted::new(text, kinds)
}

/// Redacts a parsed JSON value.
pub fn redact_value(value: &mut serde_json::Value) {
    // Numbers, booleans and null hold no secret.
    if !(value.is_string() || value.is_array() || value.is_object()) {
        return;
    }
    if let Cow::Owned(text) = redact_json(&value.to_string()).text
        && let Ok(clean) = serde_json::from_str(&text)
    {
        *value = clean;
    }
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

/// Redacted form of a string with its quotes, and the kinds of its secrets; `None` without any.
fn string(quoted: &str, is_key: bool, level: &mut Level) -> Option<(String, Vec<&'static str>)> {
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
            redacted = Redacted::new(Cow::Owned(marker(kind)), vec![kind]);
        }
        let key = level.key.take();
        let mut words = ["name", "key", "field", "variable", "env"].iter();
        if key.is_some_and(|key| words.any(|word| key.eq_ignore_ascii_case(word))) {
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
    Some((text, redacted.found))
}

/// Kind of a value that is secret because of its position, unless redaction already found one.
fn of_value(level: &mut Level, value: &str, redacted: &Redacted<'_>) -> Option<&'static str> {
    /// Characters of a key block and of its headers.
    const LINE: Set = Set::of(b"09AZaz++//==--::,,  ");
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
            if begins || LINE.holds_all(line.as_bytes()) {
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
        (None, _, Some(before)) if !level.is_object => before,
        _ => return None,
    };
    kind_of_field(name, value)
}

/// The person at this machine, whose data is in no lesson.
#[derive(Debug, Clone, Default)]
pub struct Person {
    /// Home directory.
    pub home: String,
    /// Login.
    pub login: String,
}

impl Person {
    /// Returns the part of a text that names the person: a home directory, a mail address, the login
    /// beside a path.
    pub fn named_in(&self, text: &str) -> Option<String> {
        if self.home.len() > 2 && text.contains(&self.home) {
            return Some(self.home.clone());
        }
        for root in ["/home/", "/Users/", "\\Users\\"] {
            let Some(at) = text.find(root) else { continue };
            let name: String = text[at + root.len()..]
                .chars()
                .take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
                .collect();
            if !name.is_empty() {
                return Some(format!("{root}{name}"));
            }
        }
        let words = text.split(|c: char| c.is_whitespace() || "<>()\"'`,;".contains(c));
        for word in words {
            let word = word.trim_matches(['.', ':']);
            // `git@host.example:…` and `test@host.example` are accounts of no person.
            let is_of_nobody = ["git@", "test@"].iter().any(|name| word.starts_with(name));
            if is_mail(word) && !is_of_nobody {
                return Some(word.to_owned());
            }
        }
        let login = &self.login;
        let beside = |sign: char| {
            text.contains(&format!("{sign}{login}")) || text.contains(&format!("{login}{sign}"))
        };
        let mut words = text.split(|c: char| !(c.is_alphanumeric() || "_-.".contains(c)));
        let is_named = login.len() > 2
            && words.any(|word| word == login)
            && ['\\', '@', '~'].into_iter().any(beside);
        is_named.then(|| login.clone())
    }
}

fn is_mail(word: &str) -> bool {
    let Some((name, host)) = word.split_once('@') else {
        return false;
    };
    let is_name = |c: char| c.is_alphanumeric() || "._+-".contains(c);
    let is_host = |c: char| c.is_alphanumeric() || ".-".contains(c);
    let end = host.rsplit_once('.').map_or("", |(_, end)| end);
    !name.is_empty()
        && name.chars().all(is_name)
        && host.chars().all(is_host)
        && end.len() > 1
        && end.chars().all(|c| c.is_ascii_alphabetic())
}

#[cfg(test)]
#[path = "tests/redact.rs"]
mod tests;

#[cfg(test)]
mod tests_of_person {
    use super::*;

    #[test]
    fn homes_addresses_and_logins_are_found() {
        let person = Person {
            home: "/srv/people/mara".to_owned(),
            login: "mara".to_owned(),
        };
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(person.named_in(text).as_deref(), expected, "{text}");
        };
        check("Read /srv/people/mara/x.", Some("/srv/people/mara"));
        check("Read /home/somebody/x.", Some("/home/somebody"));
        check("Open C:\\Users\\Mara\\x.", Some("\\Users\\Mara"));
        check("Ask mara.b@example.com.", Some("mara.b@example.com"));
        check("ssh mara@host", Some("mara"));
        check("git clone git@example.com:a/b.git", None);
        check("Log in as test@example.com.", None);
        check("Use the package @scope/name@1.2.3.", None);
        check("The fixture maralee is in /home/<user>/x.", None);
        check("Use decorators such as @pytest.fixture.", None);
    }
}
