//! Splits a rule into clauses, and clauses into words.
//!
//! Code names and quoted words are marked, because `not` in backticks is not a negation. Clauses
//! are interpreted in `reader`.

/// Words that negate a demand.
pub(super) const AGAINST: &[&str] = &[
    "never", "don't", "dont", "not", "no", "avoid", "avoiding", "without", "minimize", "minimise",
    "stop", "refrain", "cannot", "can't", "mustn't", "shouldn't", "isn't", "aren't", "forbid",
    "forbidden", "prohibit", "prohibited", "disallow", "ban", "banned", "sparingly", "doesn't",
    "won't", "nor",
];
/// Words that begin a demand, so that a preceding comma ends the previous one.
const BEGINS: &[&str] = &[
    "use", "prefer", "avoid", "never", "don't", "dont", "not", "no", "always", "ensure", "keep",
    "only", "do", "write", "choose", "without", "define", "include", "add", "put", "place", "must",
];

/// Word of a rule.
#[derive(Debug, Clone)]
pub(super) struct Token {
    /// Lower-case text, without surrounding punctuation.
    pub(super) word: String,
    /// Marked as code or quoted: always a name, never a keyword.
    pub(super) is_name: bool,
    /// Followed by a comma.
    pub(super) comma: bool,
}

/// Words between separators.
#[derive(Debug, Default)]
pub(super) struct Clause {
    pub(super) tokens: Vec<Token>,
    /// Preceded by a dash.
    pub(super) after_dash: bool,
    /// Followed by a colon.
    before_colon: bool,
}

impl Clause {
    pub(super) fn begins_with(&self, word: &str) -> bool {
        self.tokens.first().is_some_and(|token| token.word == word)
    }

    /// Returns true if the clause only names the topic of the next one.
    pub(super) fn is_title(&self) -> bool {
        self.before_colon && !self.tokens.iter().any(Token::is_demand)
    }
}

/// Clauses of a text, separated by full stops, semicolons, colons, dashes and brackets. A bracket
/// counts only if it contains a demand; otherwise it holds examples.
pub(super) fn clauses(text: &str) -> Vec<Clause> {
    let mut out = Vec::new();
    let mut now = Clause::default();
    let mut bracket: Option<Clause> = None;
    let mut quoted: Option<char> = None;
    for raw in text.split_whitespace() {
        if matches!(raw, "-" | "–" | "—" | "--") {
            close(&mut now, &mut out);
            now.after_dash = true;
            continue;
        }
        if raw.starts_with('(') {
            bracket = Some(Clause::default());
        }
        let is_name = in_quotes(raw, &mut quoted);
        let end = raw.trim_end_matches(['`', '"', '”', '*', ')', ']']);
        let into = bracket.as_mut().unwrap_or(&mut now);
        for part in choices(raw) {
            let word = part
                .trim_matches(|c: char| !(c.is_alphanumeric() || (is_name && c == '_')))
                .replace('’', "'")
                .to_lowercase();
            if !word.is_empty() {
                into.tokens.push(Token {
                    word,
                    is_name,
                    comma: end.ends_with(','),
                });
            }
        }
        if raw.contains(')')
            && let Some(inside) = bracket.take()
            && inside.tokens.iter().any(Token::is_demand)
        {
            close(&mut now, &mut out);
            out.push(inside);
        }
        if bracket.is_none() && end.ends_with(['.', '!', '?', ';', ':']) && !is_abbreviation(end) {
            now.before_colon = end.ends_with(':');
            close(&mut now, &mut out);
        }
    }
    now.tokens
        .extend(bracket.into_iter().flat_map(|inside| inside.tokens));
    close(&mut now, &mut out);
    out
}

fn close(now: &mut Clause, out: &mut Vec<Clause>) {
    if !now.tokens.is_empty() {
        out.push(std::mem::take(now));
    }
}

/// Returns true if a word is quoted. `open` tracks the closing mark across words.
fn in_quotes(raw: &str, open: &mut Option<char>) -> bool {
    let inner = raw.trim_start_matches(['(', '*', '[']);
    let mut rest = inner;
    if open.is_none() {
        *open = match inner.chars().next() {
            Some('“') => Some('”'),
            mark => mark.filter(|c| matches!(c, '`' | '"')),
        };
        rest = inner
            .get(inner.chars().next().map_or(0, char::len_utf8)..)
            .unwrap_or_default();
    }
    let Some(mark) = *open else {
        return false;
    };
    if rest.contains(mark) {
        *open = None;
    }
    true
}

/// Splits `pip/conda` into two words, but keeps a path.
fn choices(raw: &str) -> impl Iterator<Item = &str> {
    let is_path =
        raw.starts_with(['/', '`', '.', '~']) || raw.contains("//") || raw.matches('/').count() > 2;
    let separator = if is_path { '\0' } else { '/' };
    raw.split(separator)
}

impl Token {
    /// Returns true if a demand begins with this word.
    pub(super) fn is_demand(&self) -> bool {
        let word = self.word.as_str();
        !self.is_name && (AGAINST.contains(&word) || BEGINS.contains(&word))
    }
}

fn is_abbreviation(word: &str) -> bool {
    let inner = word.trim_end_matches('.');
    matches!(inner, "e.g" | "i.e" | "etc" | "vs")
}
