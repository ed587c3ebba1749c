//! Words of a rule, with the marks that end a phrase.

/// Word of a rule.
#[derive(Debug)]
pub(super) struct Token<'r> {
    pub(super) text: &'r str,
    /// Text with the marks behind it.
    pub(super) said: &'r str,
    /// The text was in backticks.
    pub(super) is_code: bool,
    /// A mark that ends a phrase follows.
    pub(super) ends: bool,
}

/// Splits a rule into words. Text in backticks is one word.
pub(super) fn tokens(rule: &str) -> Vec<Token<'_>> {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    for (n, part) in rule.split('`').enumerate() {
        if n % 2 == 1 {
            tokens.push(Token {
                text: part.trim(),
                said: part.trim(),
                is_code: true,
                ends: false,
            });
            continue;
        }
        for word in part.split_whitespace() {
            let opened = word.trim_start_matches(['(', '"', '\'', '“', '‘', '[']);
            let text = opened.trim_end_matches([
                '.', ',', ';', ':', '!', '?', ')', '"', '\'', '”', '’', ']', '–', '—',
            ]);
            // `migrations/.` is the end of a sentence; `.` alone is a mark.
            let ends = text.len() < opened.len();
            if text.is_empty() {
                if let Some(last) = tokens.last_mut() {
                    last.ends = true;
                }
                continue;
            }
            tokens.push(Token {
                text,
                said: opened,
                is_code: false,
                ends,
            });
        }
    }
    tokens.retain(|token| !token.text.is_empty());
    tokens
}
