//! Escaping of text in HTML and SVG.

use crate::cli::output::clean;

/// Escapes text for HTML, redacted and without hidden characters.
pub(super) fn escape(text: &str) -> String {
    let clean = clean(&memctl_redact::redact(text).text);
    let mut escaped = String::with_capacity(clean.len());
    for c in clean.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}
