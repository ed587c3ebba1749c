//! Splits a command line into words, without a shell.
//!
//! Quotes and backslashes work as in a POSIX shell. Variables, globs, pipes and redirections are
//! ordinary characters, so a configuration can start a program but cannot run a script.

use super::Error;

/// Splits a command line into words.
///
/// # Errors
///
/// [`Error::ExecCommand`] for an unclosed quote, a trailing backslash, or an empty line.
pub fn words(line: &str) -> Result<Vec<String>, Error> {
    let invalid = |reason| Error::ExecCommand {
        line: line.to_owned(),
        reason,
    };
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('\'') => break,
                        Some(c) => word.push(c),
                        None => return Err(invalid("a quote is not closed")),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('"') => break,
                        Some('\\') => match chars.next() {
                            Some(c @ ('"' | '\\' | '$' | '`')) => word.push(c),
                            Some(c) => word.extend(['\\', c]),
                            None => return Err(invalid("a quote is not closed")),
                        },
                        Some(c) => word.push(c),
                        None => return Err(invalid("a quote is not closed")),
                    }
                }
            }
            '\\' => match chars.next() {
                Some(c) => word.get_or_insert_default().push(c),
                None => return Err(invalid("a backslash ends it")),
            },
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if words.is_empty() {
        return Err(invalid("it is empty"));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_splits_them() {
        let check = |line, expected: &[&str]| assert_eq!(words(line).unwrap(), expected, "{line}");
        check("claude -p", &["claude", "-p"]);
        check("  a\t b\n", &["a", "b"]);
        check(r#"a "b c" 'd "e'"#, &["a", "b c", "d \"e"]);
        check(r#"a\ b "c\"d\e" ''"#, &["a b", r#"c"d\e"#, ""]);
        check("x--y='1 2'", &["x--y=1 2"]);
        check("a | b > $C *", &["a", "|", "b", ">", "$C", "*"]);
    }

    #[test]
    fn a_line_that_is_not_complete_is_refused() {
        for line in ["", "  ", "a 'b", "a \"b", "a \"b\\", "a\\"] {
            assert!(words(line).is_err(), "{line}");
        }
    }
}
