//! Rules that the user's own text in a file says already, in the same words. Such a rule is left out
//! of the block.
//!
//! Deliberately absent: similar words, which may say the opposite.

use crate::model::text::plain_words;

/// Maximum length of a shown statement, in characters.
const SHOWN: usize = 120;

/// Sentence, list item or paragraph of a file.
#[derive(Default)]
pub(super) struct Statement {
    text: String,
    words: Vec<String>,
}

/// Splits a text at the ends of sentences, before list items and headings, and at empty lines.
pub(super) fn statements(text: &str) -> Vec<Statement> {
    let mut texts = vec![String::new()];
    for line in text.lines().map(str::trim) {
        let item = line.strip_prefix(['-', '*', '+']);
        let item = item.filter(|rest| rest.starts_with(' '));
        if item.is_some() || line.is_empty() || line.starts_with('#') {
            texts.push(String::new());
        }
        let words = item.unwrap_or(line).split_whitespace();
        for word in words.take_while(|_| !line.starts_with('#')) {
            if let Some(text) = texts.last_mut() {
                text.extend([if text.is_empty() { "" } else { " " }, word]);
            }
            let bare = word.trim_end_matches(['*', '_', '`', ')', '"', '\'']);
            if bare.ends_with(['.', '!', '?', ';']) {
                texts.push(String::new());
            }
        }
    }
    let statement = |text: String| Statement {
        words: plain_words(&text),
        text,
    };
    let all = texts.into_iter().map(statement);
    all.filter(|one| !one.words.is_empty()).collect()
}

/// Returns the statements with the same words as a rule: one, or several that follow each other.
pub(super) fn same(statements: &[Statement], rule: &str) -> Option<String> {
    let wanted = plain_words(rule);
    (0..statements.len()).find_map(|from| {
        let mut left = &wanted[..];
        let mut text = String::new();
        for one in &statements[from..] {
            left = left.strip_prefix(&one.words[..])?;
            text.extend([if text.is_empty() { "" } else { " " }, &one.text]);
            if left.is_empty() {
                return Some(text.chars().take(SHOWN).collect());
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_words_are_whole_sentences_or_items() {
        let text = "# House\n\nUse **pnpm**, never\nnpm. Ask before a push.\n\n- Run `make lint`\n  - first item\n";
        let said = statements(text);
        let check = |rule: &str, expected: bool| {
            assert_eq!(same(&said, rule).is_some(), expected, "{rule}");
        };
        check("use pnpm, never npm", true);
        check("Ask before a push!", true);
        check("Use pnpm, never npm. Ask before a push.", true);
        check("run make lint", true);
        check("First item.", true);
        check("use pnpm", false);
        check("never npm", false);
        check("House", false);
        check("Ask before a push. Run make lint", true);
        check("", false);
        check("…", false);
    }
}
