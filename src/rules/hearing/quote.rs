//! Comparison of a quote with a message: the same words, in any white space and quotes.
//!
//! An ellipsis leaves words out; each part then has to be in the message, in order.

/// Minimum length of a quote, in characters without white space.
const SHORTEST: usize = 4;

/// Returns `true` if a message contains a quote.
pub(super) fn stands_in(quote: &str, message: &str) -> bool {
    let message = plain(message);
    let quote = plain(quote);
    let mut rest = message.as_str();
    let parts = quote
        .split('…')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let mut length = 0;
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        length += part.chars().filter(|c| !c.is_whitespace()).count();
        rest = &rest[at + part.len()..];
    }
    length >= SHORTEST
}

/// Lower-case words with single spaces, and one form of quotes, dashes and ellipses.
fn plain(text: &str) -> String {
    let text = text.to_lowercase().replace("...", "…");
    let text: String = text
        .chars()
        .map(|c| match c {
            '’' | '‘' | '`' => '\'',
            '“' | '”' | '„' | '«' | '»' => '"',
            '–' | '—' => '-',
            c => c,
        })
        .collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_has_the_words_of_the_message() {
        let message = "No!  Don’t run `make all`,\nit takes an hour. Use “make one” instead.";
        let check = |quote: &str, expected: bool| {
            assert_eq!(stands_in(quote, message), expected, "{quote:?}");
        };
        check(message, true);
        check("don't run 'make all', it takes an hour", true);
        check("Don’t run … Use \"make one\"", true);
        check("Use \"make one\" ... Don't run", false);
        check("never run make all", false);
        check("…", false);
        check("it", false);
        check("", false);
    }
}
