//! Limits of a briefing, and its lines.

/// Maximum number of newest records to examine.
pub(crate) const LOOKED_AT: usize = 500;
/// Maximum number of lessons, and of observed rules, in a briefing.
pub(crate) const TOLD: usize = 5;
/// Maximum length of a line, in characters.
pub(crate) const LINE: usize = 240;

/// Text on one line: redacted, without fence markers, and cut to `room` characters.
pub(crate) fn line(text: &str, room: usize) -> String {
    let text = memctl_redact::unfenced(&memctl_redact::redact(text).text);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(room) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
