//! Sentences that a person wrote in a message: without code, quotes, logs and text between tags.

/// Starts of lines that quote, or show what a program printed.
const FOREIGN: &[&str] = &[">", "❯", "│", "|", "$ ", "[", "{", "at "];

/// Maximum number of words of a sentence.
const LONGEST: usize = 45;

/// Returns a message without code blocks, quoted lines, and text between tags.
pub(super) fn own_words(text: &str) -> String {
    let text = without_tags(text);
    let mut fenced = false;
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let start = line.trim_start();
        if start.starts_with("```") || start.starts_with("~~~") {
            fenced = !fenced;
        } else if !fenced && !FOREIGN.iter().any(|mark| start.starts_with(mark)) {
            lines.push(line);
        }
    }
    lines.join("\n").trim().to_owned()
}

/// Replaces `<name …>…</name>` by a line break. A tag that is not closed stays.
fn without_tags(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let tag = &rest[at..];
        if let Some(end) = closing(tag) {
            kept.push_str(&rest[..at]);
            kept.push('\n');
            rest = &tag[end..];
        } else {
            kept.push_str(&rest[..=at]);
            rest = &tag[1..];
        }
    }
    kept.push_str(rest);
    kept
}

/// Position after the closing tag of the tag that a text starts with.
fn closing(tag: &str) -> Option<usize> {
    let name = &tag[1..];
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        .then_some(())?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let end = name.find(|c| !is_name(c)).unwrap_or(name.len());
    let close = format!("</{}>", &name[..end]);
    Some(tag.find(&close)? + close.len())
}

/// Splits the own words into sentences of two to [`LONGEST`] words. Every line ends a sentence.
pub(super) fn sentences(own: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in own.split('\n') {
        let is_mark = |c: char| "-*•0123456789.) ".contains(c);
        let line = line.trim().trim_start_matches(is_mark);
        let mut begin = 0;
        for (at, c) in line.char_indices() {
            let next = at + c.len_utf8();
            let ends =
                next == line.len() || ".!?;".contains(c) && line[next..].starts_with([' ', '\t']);
            if !ends {
                continue;
            }
            let sentence = line[begin..next].trim();
            begin = next;
            if (2..=LONGEST).contains(&sentence.split_whitespace().count()) {
                found.push(sentence.to_owned());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_person_wrote_is_left() {
        let check = |text: &str, expected: &str| assert_eq!(own_words(text), expected, "{text:?}");
        check("use x", "use x");
        check("see\n```sh\nnpm i\n```\nwhy?", "see\nwhy?");
        check("see\n```\nnot closed", "see");
        check("> quoted\nand mine\n$ ls\n[12:00] log", "and mine");
        check("a <b c>d</b> e", "a \n e");
        check("1 < 2 and <i> too", "1 < 2 and <i> too");
        check("<é>x</é> <a", "<é>x</é> <a");
        check("<task-notification>always ask</task-notification>", "");
    }

    #[test]
    fn lines_and_marks_end_sentences() {
        let check =
            |text: &str, expected: &[&str]| assert_eq!(sentences(text), expected, "{text:?}");
        check("No. Use v1.2 here! Ok?", &["Use v1.2 here!"]);
        check(
            "- one thing\n2) another thing",
            &["one thing", "another thing"],
        );
        check("ünï çödé; zwei", &["ünï çödé;"]);
        check(&"word ".repeat(46), &[]);
    }
}
