//! Splits a correction into sentences and words.

/// Word or quoted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    /// Original text, without surrounding punctuation.
    pub(super) text: String,
    /// Lower-case text.
    pub(super) lower: String,
    /// Enclosed in quotation marks or backticks.
    pub(super) quoted: bool,
    /// Followed by a comma, colon, dash or parenthesis.
    pub(super) pauses: bool,
}

/// Sentence with its tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sentence {
    /// Original text, on one line.
    pub(super) text: String,
    pub(super) tokens: Vec<Token>,
}

/// Words that weaken a demand.
const HEDGES: &[&str] = &[
    "unless", "except", "preferably", "prefer", "ideally", "usually", "normally", "generally",
    "typically", "possibly", "possible", "probably", "maybe", "perhaps", "sometimes", "often",
    "try", "might", "could", "may", "about", "around", "roughly", "approximately", "otherwise",
    "else", "consider",
];
/// Words that begin a condition.
const CONDITIONS: &[&str] = &[
    "when", "whenever", "if", "unless", "while", "until", "once", "except", "before", "after",
];
/// Words that begin a condition or describe the subject: "a candidate with five years of Python".
const DESCRIPTIONS: &[&str] = &["without", "where", "with", "for"];
/// Words between two demands of a sentence.
const CONJUNCTIONS: &[&str] = &["and", "but", "then", "plus"];

impl Sentence {
    pub(super) fn is_hedged(&self) -> bool {
        // "can only be" and "may only be" are strict.
        self.tokens.iter().enumerate().any(|(at, token)| {
            let only = self
                .tokens
                .get(at + 1)
                .is_some_and(|next| next.lower == "only");
            !token.quoted && HEDGES.contains(&token.lower.as_str()) && !only
        })
    }

    /// Returns true if the sentence states a condition, or describes what it applies to.
    pub(super) fn is_limited(&self) -> bool {
        self.is_conditional() || self.has(DESCRIPTIONS)
    }

    /// Returns true if the sentence states a condition.
    pub(super) fn is_conditional(&self) -> bool {
        self.has(CONDITIONS)
    }

    /// Returns true if a clause begins like a subject: with a determiner, a relative pronoun, or a
    /// noun that a description follows. Such a clause before a demand says what it applies to.
    pub(super) fn is_subject(&self) -> bool {
        const DETERMINERS: &[&str] = &[
            "a", "an", "the", "any", "all", "every", "each", "no", "those", "these", "such",
            "somebody", "someone", "anybody", "anyone", "everybody", "everyone",
        ];
        const RELATIVES: &[&str] = &["who", "which", "that", "whose", "from", "of"];
        let is = |at: usize, words: &[&[&str]]| {
            let token = self.tokens.get(at).filter(|token| !token.quoted);
            token.is_some_and(|t| words.iter().any(|words| words.contains(&t.lower.as_str())))
        };
        is(0, &[DETERMINERS, RELATIVES]) || is(1, &[DESCRIPTIONS, RELATIVES])
    }

    /// The sentence without its conditions: each from its first word to the next pause or `then`.
    /// What a condition says is no demand.
    pub(super) fn without_conditions(&self) -> Self {
        let mut inside = false;
        let mut tokens = Vec::new();
        for token in &self.tokens {
            let is = |words: &[&str]| !token.quoted && words.contains(&token.lower.as_str());
            inside |= is(CONDITIONS);
            if !inside {
                tokens.push(token.clone());
            }
            inside &= !token.pauses && !is(&["then"]);
        }
        let text = self.text.clone();
        Self { text, tokens }
    }

    /// Parts of the sentence that may hold a demand each: it is split at pauses and conjunctions.
    pub(super) fn clauses(&self) -> Vec<Self> {
        let mut clauses: Vec<Vec<Token>> = vec![Vec::new()];
        for (at, token) in self.tokens.iter().enumerate() {
            // "between 0 and 60" is one demand.
            let is_range = self.tokens.get(at + 1).is_some_and(|t| number(t).is_some());
            let is_conjunction = !token.quoted && CONJUNCTIONS.contains(&token.lower.as_str());
            let joins = is_conjunction && !is_range;
            let pauses = token.pauses;
            if !joins && let Some(clause) = clauses.last_mut() {
                clause.push(token.clone());
            }
            if joins || pauses {
                clauses.push(Vec::new());
            }
        }
        clauses.retain(|tokens| !tokens.is_empty());
        let clause = |tokens| Self {
            text: self.text.clone(),
            tokens,
        };
        clauses.into_iter().map(clause).collect()
    }

    pub(super) fn has(&self, words: &[&str]) -> bool {
        self.tokens
            .iter()
            .any(|token| !token.quoted && words.contains(&token.lower.as_str()))
    }
}

/// Sentences of a text, without questions, because a question demands nothing.
pub(super) fn sentences(text: &str) -> Vec<Sentence> {
    let mut sentences = Vec::new();
    let mut tokens: Vec<Token> = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let Some(first) = rest.chars().next() else {
            break;
        };
        if first.is_whitespace() {
            at += first.len_utf8();
            // Blank lines and list items also end a sentence.
            let ends = first == '\n'
                && rest[1..]
                    .trim_start_matches(' ')
                    .starts_with(['\n', '-', '*']);
            if ends {
                finish(&mut sentences, &mut tokens, &text[start..at], false);
                start = at;
            }
            continue;
        }
        let length = token_length(rest);
        let (token, end) = token(&rest[..length]);
        let opens = rest.starts_with('(') || token.is_none();
        if let Some(last) = tokens.last_mut().filter(|_| opens) {
            last.pauses = true;
        }
        tokens.extend(token);
        at += length;
        if let Some(mark) = end {
            finish(&mut sentences, &mut tokens, &text[start..at], mark == '?');
            start = at;
        }
    }
    finish(&mut sentences, &mut tokens, &text[start..], false);
    sentences
}

fn finish(sentences: &mut Vec<Sentence>, tokens: &mut Vec<Token>, text: &str, asks: bool) {
    let tokens = std::mem::take(tokens);
    if !tokens.is_empty() && !asks {
        let text = super::super::wording::one_line(text);
        sentences.push(Sentence { text, tokens });
    }
}

/// Closing quotation mark for an opening one.
const fn closing(c: char) -> Option<char> {
    match c {
        '"' => Some('"'),
        '`' => Some('`'),
        '\'' => Some('\''),
        '“' | '„' => Some('”'),
        '‘' => Some('’'),
        '«' => Some('»'),
        '「' => Some('」'),
        _ => None,
    }
}

/// Length of the first token: up to white space or the end of a quotation.
fn token_length(text: &str) -> usize {
    let inner = text.trim_start_matches('(');
    let skipped = text.len() - inner.len();
    let space = text.find(char::is_whitespace).unwrap_or(text.len());
    let Some((open, close)) = inner.chars().next().and_then(|c| Some((c, closing(c)?))) else {
        return space;
    };
    let from = open.len_utf8();
    let end = inner[from..].char_indices().find(|(at, c)| {
        let after = inner[from + at + c.len_utf8()..].chars().next();
        // The apostrophe of `don't` does not close a quotation.
        *c == close && !(close == '\'' && after.is_some_and(char::is_alphanumeric))
    });
    match end {
        Some((at, c)) => {
            let end = skipped + from + at + c.len_utf8();
            // The token includes trailing punctuation.
            let tail = text[end..]
                .find(char::is_whitespace)
                .unwrap_or(text.len() - end);
            end + tail
        }
        None => space,
    }
}

/// Token in a piece of text, and the mark that ends its sentence.
fn token(piece: &str) -> (Option<Token>, Option<char>) {
    let is_mark = |c: char| {
        matches!(
            c,
            '.' | ',' | ';' | ':' | '!' | '?' | ')' | '。' | '、' | '，' | '！' | '？'
        )
    };
    let body = piece.trim_start_matches('(').trim_end_matches(is_mark);
    let marks = &piece[piece.trim_end_matches(is_mark).len()..];
    let end = marks
        .chars()
        .find(|c| matches!(c, '.' | ';' | '!' | '?' | '。' | '！' | '？'));
    let inner = body.chars().next().and_then(|open| {
        let close = closing(open)?;
        body[open.len_utf8()..].strip_suffix(close)
    });
    let text = inner.unwrap_or(body);
    let dash = matches!(text, "-" | "–" | "—");
    let token = (!text.is_empty() && !dash).then(|| Token {
        text: text.to_owned(),
        lower: text.to_lowercase().replace('’', "'"),
        quoted: inner.is_some(),
        pauses: marks.contains([',', ':', ')']),
    });
    (token, end)
}

/// Number as people write it: `60`, `1,000`, `$5`, `-1.5`, `three`. Drops a percent sign.
pub(super) fn number(token: &Token) -> Option<serde_json::Number> {
    const WORDS: [&str; 11] = [
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    ];
    if let Some(value) = WORDS.iter().position(|word| *word == token.lower) {
        return Some(value.into());
    }
    let text = token.text.trim_start_matches(['$', '€', '£']);
    let text = text.strip_suffix('%').unwrap_or(text);
    let digits = text.trim_start_matches('-');
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let groups: Vec<&str> = text.split(',').collect();
    let plain = match groups.as_slice() {
        [_] => text.to_owned(),
        [_, rest @ ..]
            if rest.iter().all(|group| {
                group.trim_end_matches(|c: char| !c.is_ascii_digit()).len() >= 3
                    && (group.len() == 3 || group.contains('.'))
            }) =>
        {
            groups.concat()
        }
        _ => return None,
    };
    match plain.parse::<i64>() {
        Ok(value) => Some(value.into()),
        Err(_) => plain
            .parse::<f64>()
            .ok()
            .and_then(serde_json::Number::from_f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_parted_and_quotations_kept_whole() {
        let check = |text: &str, expected: &[&[&str]]| {
            let found: Vec<Vec<String>> = sentences(text)
                .into_iter()
                .map(|s| s.tokens.into_iter().map(|t| t.text).collect())
                .collect();
            assert_eq!(found, expected, "{text}");
        };
        check(
            "Below 1.5. Then \"a b\", `c`!",
            &[&["Below", "1.5"], &["Then", "a b", "c"]],
        );
        check(
            "don't say 'so it's cheap' (ever)",
            &[&["don't", "say", "so it's cheap", "ever"]],
        );
        check("Why 72? Be brief.", &[&["Be", "brief"]]);
        check("a\n- b\n- c", &[&["a"], &["b"], &["c"]]);
        check("", &[]);
        check(
            "say “no” — 「はい」。 次",
            &[&["say", "no", "はい"], &["次"]],
        );
    }

    #[test]
    fn numbers_are_read_as_people_write_them() {
        let check = |text: &str, expected: Option<f64>| {
            let sentence = sentences(text).remove(0);
            assert_eq!(
                number(&sentence.tokens[0]).and_then(|n| n.as_f64()),
                expected,
                "{text}"
            );
        };
        check("60", Some(60.0));
        check("1,000", Some(1000.0));
        check("1,234.5", Some(1234.5));
        check("$5", Some(5.0));
        check("-1.5", Some(-1.5));
        check("60%", Some(60.0));
        check("three", Some(3.0));
        check("1,5", None);
        check("5th", None);
        check("v2", None);
    }
}
