//! Output of a tool without terminal escapes and without the prefixes of hosts and test runners.

use std::borrow::Cow;

/// Removes terminal escapes, and control characters except line breaks.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    let odd = |c: char| c.is_control() && c != '\n';
    if !text.contains(odd) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.next() {
                Some('[') => {
                    for c in chars.by_ref() {
                        if ('@'..='~').contains(&c) {
                            break;
                        }
                    }
                }
                Some(']') => {
                    while let Some(c) = chars.next() {
                        if c == '\u{7}' || (c == '\u{1b}' && chars.next_if_eq(&'\\').is_some()) {
                            break;
                        }
                    }
                }
                _ => {}
            },
            '\r' if chars.peek() == Some(&'\n') => {}
            // Progress bars use carriage returns to overwrite lines.
            '\r' => out.push('\n'),
            '\t' => out.push(' '),
            c if odd(c) => {}
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Line without the prefixes of hosts and test runners; empty if nothing else is left.
pub(crate) fn unframed(line: &str) -> &str {
    let mut line = line.trim();
    for tag in [
        "<tool_use_error>", "<error>", "<stderr>", "<untrusted_context>", "Output: ",
    ] {
        line = line.strip_prefix(tag).unwrap_or(line).trim_start();
    }
    for tag in ["</tool_use_error>", "</error>", "</stderr>"] {
        line = line.strip_suffix(tag).unwrap_or(line).trim_end();
    }
    // pytest prefix for lines of an assertion.
    line = line.strip_prefix("E   ").unwrap_or(line).trim_start();
    for mark in [
        "npm ERR! ", "npm error ", "[ERROR] ", "[error] ", "✖ ", "✗ ", "× ",
    ] {
        line = line.strip_prefix(mark).unwrap_or(line).trim_start();
    }
    if ["npm error", "npm ERR!", "[ERROR]", "[error]"].contains(&line) {
        return "";
    }
    let frames = [
        "Exit code",
        "Exit Code:",
        "Process exited with code",
        "Chunk ID:",
        "Wall time:",
        "Original token count:",
        "Total output lines:",
        "Process Group PGID:",
        "exit status",
        "returncode",
        "[exited with",
        "Command:",
        "Directory:",
    ];
    if frames.iter().any(|frame| line.starts_with(frame)) {
        return "";
    }
    line
}
