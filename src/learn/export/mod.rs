//! Regression cases in the forms of other tools: `DeepEval` and Promptfoo.
//!
//! What a person has said is data in all of them: it stands in literals that the language's own
//! parser reads back, and where the tool renders templates, nothing in it looks like one. Both forms
//! ask `memctl run` for the output, and decide the assertions as [`super::assertion`] does, through a
//! helper file beside them that is the same for every skill.
//!
//! A generated file has a line with a hash of all other lines. Where that no longer fits, a person
//! has edited the file, and it is not written again.

mod deepeval;
mod promptfoo;

use serde_json::Value;

use super::case::hash;

pub use deepeval::render as deepeval;
pub use promptfoo::{
    append as append_to_promptfoo, extend as extend_promptfoo, render as promptfoo,
};

/// The helper files: their names, and their texts.
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

/// The file of all cases of a skill for Promptfoo.
pub const PROMPTFOO: &str = "test_promptfoo.yaml";

const SEAL: &str = " seal: ";

/// The text with a hash of itself in a comment after its first line.
fn sealed(text: &str, comment: &str) -> String {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    format!("{first}\n{comment}{SEAL}{}\n{rest}", hash(text))
}

/// Whether a generated text is as this program wrote it.
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

/// A JSON value on one line, in characters that every parser takes, and without anything that a
/// template engine would act upon: `{` before `{`, `%` or `#` is written as an escape.
fn json_line(value: &Value) -> String {
    let text = value.to_string();
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let opens = c == '{' && matches!(chars.peek(), Some('{' | '%' | '#'));
        let unseen = matches!(u32::from(c), 0x7F..=0x9F | 0x2028 | 0x2029 | 0xFEFF | 0xFFFE | 0xFFFF | 0xFDD0..=0xFDEF)
            || u32::from(c) & 0xFFFE == 0xFFFE;
        if opens || unseen {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.extend(["\\u", &format!("{unit:04x}")]);
            }
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        let line = json_line(&value);
        assert!(
            ["{{", "{%", "{#"].iter().all(|open| !line.contains(open)),
            "{line}"
        );
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), value);
    }
}
