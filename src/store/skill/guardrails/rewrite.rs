//! Removes or rewords the section of a correction, if it is exactly as [`super::append`] wrote it.
//!
//! All other bytes stay. A section that a person has edited or extended is left alone and reported.

use super::{Guardrail, SOURCE, one_line, sections, uses_crlf};

/// Text after a removal or a rewording.
#[derive(Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// New text; `None` if nothing changed.
    pub text: Option<String>,
    /// `true` if an edited section of the correction stays.
    pub is_left: bool,
}

/// Removes the sections that `old` has in the text, or replaces them by `new` under their number.
pub fn rewrite(text: &str, old: &Guardrail<'_>, new: Option<&Guardrail<'_>>) -> Rewritten {
    let source = one_line(old.correction_id, "unknown");
    let line_end = if uses_crlf(text) { "\r\n" } else { "\n" };
    let mut out = String::with_capacity(text.len());
    let (mut from, mut found) = (0, 0);
    for section in sections(text) {
        if section.source.trim_end() != source || !is_closed(&text[section.end..]) {
            continue;
        }
        let Some(number) = number(section.text) else {
            continue;
        };
        let written = |guardrail: &Guardrail<'_>| {
            let section = format!("---\n\n{}", guardrail.section(number));
            section.replace('\n', line_end)
        };
        if text[section.start..section.end] != written(old) {
            continue;
        }
        found += 1;
        let (start, end) = match new {
            Some(_) => (section.start, section.end),
            None => with_gap(text, from, section.start, section.end),
        };
        out.push_str(&text[from..start]);
        out.extend(new.map(written));
        from = end;
    }
    out.push_str(&text[from..]);
    let is_new = out != text;
    let holds = |line: &&str| line.strip_prefix(SOURCE).map(str::trim_end) == Some(&source);
    // Rules without a correction share their source line.
    let is_left = !old.correction_id.is_empty() && text.lines().filter(holds).count() > found;
    Rewritten {
        text: is_new.then_some(out),
        is_left,
    }
}

/// Returns `true` if nothing was added below the source line: the next text is a line `---`, a
/// heading, or the end.
fn is_closed(rest: &str) -> bool {
    let next = rest.lines().map(str::trim_end).find(|l| !l.is_empty());
    next.is_none_or(|line| line == "---" || line.starts_with("# ") || line.starts_with("## "))
}

/// Number in the heading of a section, as written by this program.
fn number(section: &str) -> Option<u64> {
    let (number, _) = section.strip_prefix("## GRD-")?.split_once(':')?;
    number.parse().ok()
}

/// Range of a section with the blank line that came with it: the one below, or at the end of the
/// text the one above.
fn with_gap(text: &str, from: usize, start: usize, end: usize) -> (usize, usize) {
    let rest = &text[end..];
    for blank in ["\r\n", "\n"] {
        if rest.starts_with(blank) {
            return (start, end + blank.len());
        }
    }
    for blank in ["\r\n", "\n"] {
        let above = text[from..start].strip_suffix(blank);
        if rest.is_empty() && above.is_some_and(|above| above.is_empty() || above.ends_with(blank))
        {
            return (start - blank.len(), end);
        }
    }
    (start, end)
}
