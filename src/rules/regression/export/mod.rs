//! Exports regression cases to `DeepEval` and Promptfoo.
//!
//! Text of a correction is data: it is a literal that the language's parser reads back, and where
//! the tool renders templates, it contains nothing that looks like one. Both formats get the output
//! from `memctl run` and check assertions like [`super::assertion`], with a helper file that all
//! skills share.
//!
//! The second line of a generated file is a hash of the other lines. A mismatch means that the file
//! was edited by hand, and it is not overwritten.

mod deepeval;
mod promptfoo;

use super::case::hash;

pub use deepeval::render as deepeval;
pub use promptfoo::render as promptfoo;

/// Names and texts of the helper files.
pub fn helpers() -> [(&'static str, String); 2] {
    [
        (
            "memctl_checks.py",
            sealed(include_str!("memctl_checks.py"), "#"),
        ),
        (
            "memctl_promptfoo.cjs",
            sealed(include_str!("memctl_promptfoo.cjs"), "//"),
        ),
    ]
}

/// Name of the Promptfoo file with all cases of a skill.
pub const PROMPTFOO: &str = "test_promptfoo.yaml";

const SEAL: &str = " seal: ";

/// Inserts a hash of the text as a comment after its first line.
fn sealed(text: &str, comment: &str) -> String {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    format!("{first}\n{comment}{SEAL}{}\n{rest}", hash(text))
}

/// Returns true if the hash of a generated text matches its content.
pub fn is_untouched(text: &str) -> bool {
    let Some((first, rest)) = text.split_once('\n') else {
        return false;
    };
    let Some((line, rest)) = rest.split_once('\n') else {
        return false;
    };
    let seal = line.split_once(SEAL).map(|(_, seal)| seal);
    seal == Some(&hash(&format!("{first}\n{rest}")))
}

/// JSON text with characters escaped that are not seen or that begin the syntax of a template: a `{`
/// before `{`, `%` or `#`. Python reads it as well.
fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut chars = json.chars().peekable();
    while let Some(c) = chars.next() {
        let opens = c == '{' && matches!(chars.peek(), Some('{' | '%' | '#'));
        let unseen = matches!(u32::from(c), 0x7F..=0x9F | 0x200B..=0x200F | 0x2028..=0x202E | 0x2060..=0x2069 | 0xFDD0..=0xFDEF | 0xFEFF | 0xFFFE | 0xFFFF);
        if opens || unseen {
            out.extend(["\\u", &format!("{:04x}", u32::from(c))]);
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn an_edited_file_is_told_from_an_untouched_one() {
        let text = sealed("# first\nrest\n", "#");
        assert!(is_untouched(&text), "{text}");
        for edited in [
            text.replace("rest", "other"),
            text.replace("first", "1st"),
            text + "more\n",
            String::new(),
        ] {
            assert!(!is_untouched(&edited), "{edited}");
        }
    }

    #[test]
    fn no_template_is_left() {
        let value = json!({"a": "{{x}} {{{ {% if %} {# c #} {", "b": {"c": {}}});
        let line = escaped(&value.to_string());
        assert!(
            ["{{", "{%", "{#"].iter().all(|open| !line.contains(open)),
            "{line}"
        );
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), value);
    }
}
