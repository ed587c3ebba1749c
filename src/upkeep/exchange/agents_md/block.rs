//! Marked block in a Markdown file of the user: the part that this program writes.
//!
//! ```text
//! <!-- memctl:begin sha256=0123456789abcdef -->
//! …
//! <!-- memctl:end -->
//! ```
//!
//! The digest covers the lines between the markers, without their line ends, so that a conversion of
//! line ends is no edit. It detects edits by hand; it grants no trust.
//!
//! Invariants: every byte outside of the markers stays as it is, and a block that is written twice
//! changes nothing.

use crate::model::text::told_line;
use memctl_files::hex;
use sha2::{Digest as _, Sha256};

const BEGIN: &str = "<!-- memctl:begin";
pub(crate) const END: &str = "<!-- memctl:end";
const MARK: char = '\u{feff}';

/// Block of a file, as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block<'t> {
    /// Text before the first marker.
    pub(crate) before: &'t str,
    /// Both markers with the lines between them, without the last line end.
    pub(crate) whole: &'t str,
    /// Lines between the markers.
    body: &'t str,
    /// Text behind the last marker.
    pub(crate) after: &'t str,
    /// Line of the first marker, from 1.
    pub(crate) line: usize,
}

/// Markers that do not form one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Misplaced {
    /// Line of the marker, from 1.
    pub(crate) line: usize,
    pub(crate) reason: &'static str,
}

/// Returns `true` for the line of a first marker.
pub(crate) fn begins(line: &str) -> bool {
    line.trim_start().starts_with(BEGIN)
}

impl<'t> Block<'t> {
    /// Finds the block of a text; `None` if there is none.
    pub(crate) fn find(text: &'t str) -> Result<Option<Self>, Misplaced> {
        // Start, end and number of each line with a marker, and whether it is a first one.
        let mut marks = Vec::new();
        let mut at = 0;
        for (number, whole) in (1..).zip(text.split_inclusive('\n')) {
            let start = at + if number == 1 { mark(whole) } else { 0 };
            at += whole.len();
            let line = text[start..at].trim_end_matches(['\n', '\r']);
            if begins(line) || line.trim_start().starts_with(END) {
                marks.push((start, at, number, begins(line)));
            }
        }
        let misplaced = |line, reason| Err(Misplaced { line, reason });
        match *marks {
            [] => Ok(None),
            [(_, _, line, false), ..] => misplaced(line, "a `memctl:end` without `memctl:begin`"),
            [(_, _, line, true)] => misplaced(line, "`memctl:begin` without `memctl:end`"),
            [_, (_, _, line, true), ..] | [_, _, (_, _, line, true), ..] => {
                misplaced(line, "a second `memctl:begin`")
            }
            [_, _, (_, _, line, false), ..] => misplaced(line, "a second `memctl:end`"),
            [(start, body, line, true), (body_end, end, _, false)] => {
                let end = body_end + text[body_end..end].trim_end_matches(['\n', '\r']).len();
                Ok(Some(Self {
                    before: &text[..start],
                    whole: &text[start..end],
                    body: &text[body..body_end],
                    after: &text[end..],
                    line,
                }))
            }
        }
    }

    /// Returns `true` if somebody else changed the lines or their digest.
    pub(crate) fn is_edited(&self) -> bool {
        let marker = self.whole.lines().next().unwrap_or_default();
        let given = marker
            .split_whitespace()
            .find_map(|word| word.strip_prefix("sha256="));
        given != Some(digest(self.body).as_str())
    }
}

/// Returns a text with these lines in its block. A text without a block gets one at its end.
pub(crate) fn with_lines(text: &str, lines: &[String]) -> Result<String, Misplaced> {
    let old = Block::find(text)?;
    let line_end = if uses_crlf(old.map_or(text, |block| block.whole)) {
        "\r\n"
    } else {
        "\n"
    };
    let mut body = lines.join(line_end);
    if !body.is_empty() {
        body.push_str(line_end);
    }
    let digest = digest(&body);
    let block = format!("{BEGIN} sha256={digest} -->{line_end}{body}{END} -->");
    Ok(match old {
        Some(old) => [old.before, &block, old.after].concat(),
        None => [text, &gap(text, line_end), &block, line_end].concat(),
    })
}

/// Line breaks between a text and a block behind it: one empty line.
fn gap(text: &str, line_end: &str) -> String {
    let text = &text[mark(text)..];
    let mut lines = text.rsplit('\n').map(str::trim_end);
    let (last, above) = (lines.next(), lines.next());
    match (last, above) {
        (Some(""), None | Some("")) => String::new(),
        (Some(""), _) => line_end.to_owned(),
        _ => line_end.repeat(2),
    }
}

/// Length of a byte order mark at the beginning, in bytes.
fn mark(text: &str) -> usize {
    if text.starts_with(MARK) {
        MARK.len_utf8()
    } else {
        0
    }
}

fn uses_crlf(text: &str) -> bool {
    text.find('\n').is_some_and(|at| text[..at].ends_with('\r'))
}

/// First 16 hexadecimal digits of the SHA-256 digest.
fn digest(body: &str) -> String {
    let lines: Vec<&str> = body.lines().collect();
    let digest = Sha256::digest(lines.join("\n"));
    hex(&digest[..8])
}

/// Returns a rule as a list item; `None` if nothing of it is left.
pub(crate) fn item(skill: &str, rule: &str) -> Option<String> {
    let text = told_line(rule, usize::MAX);
    if text.is_empty() {
        return None;
    }
    let text = match told_line(skill, usize::MAX).as_str() {
        "" => text,
        skill => format!("{skill}: {text}"),
    };
    Some(format!("- {}", without_imports(&without_structure(&text))))
}

/// Escapes comments anywhere, and at the beginning everything that begins a block of Markdown.
fn without_structure(text: &str) -> String {
    let text = text.replace("<!--", "<\\!--");
    let mut chars = text.chars();
    let (first, second) = (chars.next().unwrap_or_default(), chars.next());
    let begins_word = second.is_some_and(char::is_alphanumeric);
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let is_block = match first {
        '#' | '>' | '<' | '|' | '=' | '+' | '~' => true,
        '-' => !begins_word && !text.starts_with("--") || text.starts_with("---"),
        '*' | '_' => !begins_word && second != Some(first) || text.starts_with("***"),
        '[' => text.contains("]:"),
        '`' => text.starts_with("```"),
        _ => false,
    };
    if is_block {
        return format!("\\{text}");
    }
    if digits > 0 && text[digits..].starts_with(['.', ')']) {
        return format!("{}\\{}", &text[..digits], &text[digits..]);
    }
    text
}

/// Escapes each `@` that begins a word outside of code, where Claude Code loads a file.
fn without_imports(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut ticks = 0;
    for (at, c) in text.char_indices() {
        let begins = out.is_empty() || out.ends_with(char::is_whitespace);
        let is_code = ticks % 2 == 1 && text[at..].contains('`');
        if c == '@' && begins && !is_code {
            out.push('\\');
        }
        ticks += usize::from(c == '`');
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rules(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| format!("- {text}")).collect()
    }

    #[test]
    fn text_around_the_block_keeps_every_byte() {
        let check = |text: &str, gap: &str, line_end: &str| {
            let once = with_lines(text, &rules(&["a", "b"])).unwrap();
            let begins = [text, gap, "<!-- memctl:begin sha256="].concat();
            assert!(once.starts_with(&begins), "{once:?}");
            let ends =
                format!(" -->{line_end}- a{line_end}- b{line_end}<!-- memctl:end -->{line_end}");
            assert!(once.ends_with(&ends), "{once:?}");
            assert_eq!(with_lines(&once, &rules(&["a", "b"])).unwrap(), once);
            let later = once.clone() + "more" + line_end;
            let next = with_lines(&later, &rules(&["c"])).unwrap();
            assert!(
                next.starts_with(&begins)
                    && next.ends_with(&format!(" -->{line_end}more{line_end}"))
            );
        };
        check("", "", "\n");
        check("\u{feff}", "", "\n");
        check("# Notes", "\n\n", "\n");
        check("# Notes\n", "\n", "\n");
        check("# Notes\n\n", "", "\n");
        check("\u{feff}# Notes\r\n", "\r\n", "\r\n");
        check("# Notes\r\n\r\n", "", "\r\n");
        check("\n", "", "\n");
    }

    #[test]
    fn markers_that_form_no_block_are_named_by_their_line() {
        let check = |text: &str, line: usize| {
            assert_eq!(Block::find(text).unwrap_err().line, line, "{text}");
        };
        let (begin, end) = ("<!-- memctl:begin -->", "<!-- memctl:end -->");
        check(&format!("a\n{begin}\nb\n{begin}\n{end}\n"), 4);
        check(&format!("a\n{begin}\nb\n"), 2);
        check(&format!("a\n\n{end}\n{begin}\n"), 3);
        check(&format!("{begin}\n{end}\nx\n{end}"), 4);
        assert_eq!(Block::find("text <!-- memctl:begin -->\n"), Ok(None));
    }

    #[test]
    fn edit_by_hand_is_noticed_and_other_line_ends_are_none() {
        let text = with_lines("x\n", &rules(&["use pnpm"])).unwrap();
        let is_edited = |text: &str| Block::find(text).unwrap().unwrap().is_edited();
        assert!(!is_edited(&text));
        assert!(!is_edited(&text.replace('\n', "\r\n")));
        assert!(is_edited(&text.replace("pnpm", "npm")));
        assert!(is_edited(&text.replace("sha256=", "sha256=0")));
        assert!(is_edited("<!-- memctl:begin -->\n- a\n<!-- memctl:end -->"));
    }

    proptest! {
        #[test]
        fn any_text_gets_one_block_that_stays(
            text in "(\u{feff})?([a#✓ ]{0,3}(\r?\n)){0,4}[a✓]{0,3}",
            lines in proptest::collection::vec("- [a-z✓ ]{0,8}", 0..4),
        ) {
            let once = with_lines(&text, &lines).unwrap();
            prop_assert!(once.starts_with(&text));
            prop_assert_eq!(with_lines(&once, &lines).unwrap(), once.clone());
            prop_assert!(!Block::find(&once).unwrap().unwrap().is_edited());
        }
    }

    #[test]
    fn rule_is_one_line_and_starts_nothing() {
        let check = |rule: &str, expected: &str| {
            assert_eq!(item("", rule).unwrap(), expected, "{rule}");
        };
        check("Use pnpm.", "- Use pnpm.");
        check(
            "a\n# Heading\n<!-- memctl:end -->",
            "- a # Heading <\\!-- memctl:end -->",
        );
        check("# Obey", "- \\# Obey");
        check("> quote", "- \\> quote");
        check("- nested", "- \\- nested");
        check("--all stays", "- --all stays");
        check("-x stays", "- -x stays");
        check("---", "- \\---");
        check("**Never** force", "- **Never** force");
        check("* item", "- \\* item");
        check("1. first", "- 1\\. first");
        check("```sh rm", "- \\```sh rm");
        check("`npm ci` first", "- `npm ci` first");
        check("<script>x", "- \\<script>x");
        check("[a]: http://x", "- \\[a]: http://x");
        check("hid\u{200b}den\u{202e}\u{1b}[31m", "- hidden[31m");
        check("read @~/.ssh/id_rsa", "- read \\@~/.ssh/id_rsa");
        check("add `npm i @types/node`", "- add `npm i @types/node`");
        check("a ` @x", "- a ` \\@x");
        check("mail a@b.example", "- mail a@b.example");
        assert_eq!(item("hr/x", "# A").unwrap(), "- hr/x: # A");
        assert_eq!(item("", " \n\u{200b}"), None);
        let token = format!("gh{}_{}", "p", "a1B2c3D4e5".repeat(4));
        check(&format!("use {token}"), "- use [REDACTED:github-token]");
    }

    proptest! {
        #[test]
        fn no_rule_ends_the_block(rule in "(<!--|-->| memctl:(begin|end) |#|\n|\r|\u{2028}|a| ){0,12}") {
            if let Some(line) = item("", &rule) {
                prop_assert!(!line.contains("<!--") && line.lines().count() == 1);
                let text = with_lines("", &[line]).unwrap();
                prop_assert!(Block::find(&text).unwrap().is_some());
            }
        }
    }
}
