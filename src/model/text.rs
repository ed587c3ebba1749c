//! Text without understanding: words, lines, and quoted names.

/// Type names, which describe the kind of error.
pub(crate) const TYPES: &[&str] = &[
    "int", "str", "float", "bool", "bytes", "list", "dict", "tuple", "set", "NoneType", "None",
    "object", "function", "method", "module", "type", "coroutine", "generator", "undefined",
    "null", "string", "number", "boolean", "any", "never", "unknown", "void", "String", "&str",
    "()", "nil", "u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize", "f32",
    "f64", "char",
];

/// Returns the words in lower case. Apostrophes stay: `don't` is one word.
pub(crate) fn plain_words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '\'');
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Collapses each run of white space to one space.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Quoted names in an error line, in order.
pub(crate) fn quoted_names(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut rest, mut before) = (line, None);
    while let Some(first) = rest.chars().next() {
        if let Some((inside, after)) = quoted(rest, before) {
            if !inside.is_empty() && !TYPES.contains(&inside) {
                found.push(inside);
            }
            rest = after;
            before = Some('\'');
        } else {
            rest = &rest[first.len_utf8()..];
            before = Some(first);
        }
    }
    found
}

/// Quoted text at the start of `rest`, and the text after it. An apostrophe inside a word is not a
/// quote.
pub(crate) fn quoted(rest: &str, before: Option<char>) -> Option<(&str, &str)> {
    let open = rest.chars().next()?;
    let close: &[char] = match open {
        '"' => &['"'],
        '\'' => &['\''],
        // Older programs quote like `name'.
        '`' => &['`', '\''],
        '‘' => &['’'],
        '“' => &['”'],
        '«' => &['»'],
        _ => return None,
    };
    if before.is_some_and(char::is_alphanumeric) {
        return None;
    }
    let inside = &rest[open.len_utf8()..];
    if open == '"' && inside.starts_with('"') {
        return Some(("", &inside[1..]));
    }
    let (at, mark) = inside.char_indices().find(|(at, c)| {
        let after = inside[at + c.len_utf8()..].chars().next();
        close.contains(c) && !(*c == '\'' && after.is_some_and(char::is_alphanumeric))
    })?;
    (at > 0).then(|| (&inside[..at], &inside[at + mark.len_utf8()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_marks_make_no_difference() {
        let check = |a: &str, b: &str, same: bool| {
            assert_eq!(plain_words(a) == plain_words(b), same, "{a} / {b}");
        };
        check("Use **pnpm**, never npm!", "use pnpm never `npm`", true);
        check("don't", "dont", false);
        check("use pnpm", "pnpm use", false);
        check("…", "", true);
    }
}
