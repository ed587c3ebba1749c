//! Tables of `rules/`: their rows, and lists of words.

use std::sync::LazyLock;

/// Names that make the value beside them secret.
pub(super) const NAMES: &str = include_str!("rules/names.tsv");

/// Row of a table of secrets.
pub(super) struct Row {
    /// Kind in the marker `[REDACTED:kind]`.
    pub(super) kind: &'static str,
    /// Texts of two bytes or more, separated by `|`; every such secret contains one of them.
    pub(super) anchors: &'static str,
    /// How the secret is found; the head of the table says what stands here.
    pub(super) how: &'static str,
    /// The row, for its samples.
    #[cfg(test)]
    pub(super) line: &'static str,
}

/// Lines of a table, without its comments.
fn lines(table: &'static str) -> impl Iterator<Item = &'static str> {
    split(table, b'\n').filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Rows of a table of secrets; a test rules out that one is malformed.
pub(super) fn rows(table: &'static str) -> impl Iterator<Item = Row> {
    lines(table).filter_map(|line| {
        let mut columns = split(line, b'\t');
        Some(Row {
            kind: columns.next()?,
            anchors: columns.nth(1)?,
            how: columns.next()?,
            #[cfg(test)]
            line,
        })
    })
}

/// Words of `rules/words.tsv` under this name; none if there is no such name.
pub(super) fn list(name: &str) -> &'static [&'static str] {
    static LISTS: LazyLock<Vec<(&str, Vec<&str>)>> = LazyLock::new(|| {
        let list = |line: &'static str| {
            let (name, words) = line.split_once('\t')?;
            Some((name, split(words, b'\t').collect()))
        };
        lines(include_str!("rules/words.tsv"))
            .filter_map(list)
            .collect()
    });
    let list = LISTS.iter().find(|(known, _)| *known == name);
    list.map_or(&[], |(_, words)| words)
}

/// Splits at a byte. A process that lives for a few milliseconds notices the splits of `str`.
pub(super) fn split(text: &'static str, at: u8) -> impl Iterator<Item = &'static str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = memchr::memchr(at, text.as_bytes());
        rest = end.map(|end| &text[end + 1..]);
        Some(&text[..end.unwrap_or(text.len())])
    })
}
