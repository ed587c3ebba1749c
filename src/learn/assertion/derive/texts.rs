//! Demands on the wording and the format of text.

use serde_json::{Value, json};

use super::super::clause::{Sentence, Token};
use super::super::fields::meant;
use super::super::{Check, Path, has_words, text_of};
use super::{Found, MODALS, NEGATIONS, Reader, is_identifier, is_word, negated};

impl Reader<'_> {
    /// Path of the text that a demand is about: the field of "in the summary" behind its object, or
    /// the subject before its verb, else the whole output. `None` if a place is named that is no
    /// field of an output with several texts.
    fn place(&self, tokens: &[Token], verb: usize, object: usize) -> Option<Path> {
        let is_text = |value: &Value| !value.is_number() && !value.is_boolean();
        if let Some(words) = named_place(&tokens[object + 1..]) {
            let named = words
                .iter()
                .rev()
                .find_map(|t| meant(&self.fields, &t.text, is_text));
            let texts = self.fields.iter().filter(|field| field.value.is_string());
            return match named {
                Some(field) => Some(field.path.clone()),
                None if texts.count() < 2 => Some(Path::root()),
                None => None,
            };
        }
        let subject = self.compared(tokens, verb, is_text);
        Some(subject.map_or_else(Path::root, |field| field.path.clone()))
    }

    /// "must mention 'X'", "never say X".
    pub(super) fn said(&self, sentence: &Sentence) -> Vec<Found> {
        const VERBS: &[&str] = &[
            "mention", "mentions", "say", "says", "state", "states", "cite", "cites", "write",
            "use", "include", "includes", "contain", "contains", "using", "saying", "mentioning",
            "writing", "avoid", "call",
        ];
        const INTRODUCTIONS: &[&str] = &[
            "the", "a", "an", "word", "words", "term", "phrase", "string", "text", "literal", "any",
        ];
        let tokens = &sentence.tokens;
        let mut found = Vec::new();
        for (at, verb) in tokens.iter().enumerate() {
            if verb.quoted || verb.pauses || !VERBS.contains(&verb.lower.as_str()) {
                continue;
            }
            let start = at
                + 1
                + tokens[at + 1..]
                    .iter()
                    .take_while(|t| {
                        !t.quoted && !t.pauses && INTRODUCTIONS.contains(&t.lower.as_str())
                    })
                    .count();
            let Some(object) = tokens.get(start) else {
                continue;
            };
            let avoided = verb.lower == "avoid" || (at > 0 && is_word(&tokens[at - 1], "avoid"));
            let forbids = avoided || negated(tokens, at + 1);
            let Some(path) = self.place(tokens, at, start) else {
                continue;
            };
            let behind = &tokens[start + 1..];
            let next = behind.first().filter(|_| !object.pauses);
            if next.is_some_and(|t| {
                [
                    "field", "key", "property", "format", "instead", "type", "function",
                ]
                .contains(&t.lower.as_str())
            }) || object.text.chars().count() < 2
            {
                continue;
            }
            let check = |text: &str| {
                let (path, text) = (path.clone(), text.to_owned());
                if forbids {
                    Check::NotContains { path, text }
                } else {
                    Check::Contains { path, text }
                }
            };
            if forbids {
                // Without quotation marks, the object must end the sentence, but for a place, and
                // occur in the output.
                let ends = behind.is_empty() || (!object.pauses && is_place(behind));
                if object.quoted || ends {
                    found.push(Found {
                        check: check(&object.text),
                        needs_witness: !object.quoted || !(next.is_none() || is_place(behind)),
                    });
                }
                continue;
            }
            let demanded = at == 0
                || MODALS.contains(&tokens[at - 1].lower.as_str())
                || ["always", "to", "please"].contains(&tokens[at - 1].lower.as_str());
            // "Use" of a thing or "include" of a field name does not demand its text.
            let is_name = is_identifier(object) && self.output.is_object();
            let literal = match verb.lower.as_str() {
                "use" | "using" | "call" => start > at + 1 && object.quoted,
                "include" | "includes" | "contain" | "contains" => object.quoted && !is_name,
                _ => object.quoted,
            };
            let confirmed = self
                .expected
                .is_some_and(|expected| has_words(&text_of(expected), &object.text, false));
            let one_of_some = tokens[start + 1..].iter().any(|t| is_word(t, "or"));
            let stands_for_others = object.text.contains(['<', '>', '…']);
            let certain = literal && !one_of_some && !stands_for_others;
            if demanded && (certain || (confirmed && next.is_none())) {
                found.push(Found {
                    check: check(&object.text),
                    needs_witness: false,
                });
            }
        }
        found
    }

    /// "`a` instead of `b`", "say `a`, not `b`": forbids `b` if the output contains it.
    pub(super) fn instead(&self, sentence: &Sentence) -> Vec<Found> {
        let tokens = &sentence.tokens;
        let mut found = Vec::new();
        for (at, object) in tokens.iter().enumerate().skip(2) {
            let instead = is_word(&tokens[at - 1], "of") && is_word(&tokens[at - 2], "instead")
                || is_word(&tokens[at - 1], "than") && is_word(&tokens[at - 2], "rather");
            let not =
                is_word(&tokens[at - 1], "not") && tokens[at - 2].quoted && tokens[at - 2].pauses;
            if object.quoted && (instead || not) && object.text.chars().count() > 1 {
                let Some(path) = self.place(tokens, 0, at) else {
                    continue;
                };
                let text = object.text.clone();
                found.push(Found {
                    check: Check::NotContains { path, text },
                    needs_witness: true,
                });
            }
        }
        found
    }

    /// "use ISO dates".
    pub(super) fn dates(&self, sentence: &Sentence) -> Vec<Found> {
        const ISO: &str = "^[0-9]{4}-[0-9]{2}-[0-9]{2}";
        const MONTHS: &str = "Jan(uary)?|Feb(ruary)?|Mar(ch)?|Apr(il)?|May|June?|July?|Aug(ust)?|Sept?(ember)?|Oct(ober)?|Nov(ember)?|Dec(ember)?";
        let named = sentence.has(&["iso"]) && sentence.has(&["date", "dates", "8601"])
            || sentence.tokens.iter().any(|t| {
                ["iso-8601", "iso8601", "yyyy-mm-dd", "iso-dates"].contains(&t.lower.as_str())
            });
        if !named || sentence.has(NEGATIONS) {
            return Vec::new();
        }
        let digits = r"\b[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{2,4}\b|\b[0-9]{4}[./][0-9]{1,2}[./][0-9]{1,2}\b".to_owned();
        let words = format!(r"\b({MONTHS})\.? [0-9]{{1,2}}\b|\b[0-9]{{1,2}}\.? ({MONTHS})\b");
        let root = || Path::root();
        let wrong = |pattern: &str| Check::NotMatches {
            path: root(),
            pattern: pattern.to_owned(),
        };
        let mut dates = Vec::new();
        for field in &self.fields {
            let whole = |pattern: &str| Check::Matches {
                path: root(),
                pattern: format!("^({pattern})$"),
            };
            let is_date = |text: &str| {
                [&digits, &words]
                    .iter()
                    .any(|p| whole(p).holds(&json!(text)).is_ok())
            };
            if field.value.as_str().is_some_and(is_date) {
                dates.push(field);
            }
        }
        // "Use ISO dates for `due`" leaves the other fields alone.
        let is_meant = |path: &Path| {
            let mut tokens = sentence.tokens.iter();
            tokens.any(|t| {
                let field = meant(&self.fields, &t.text, Value::is_string);
                field.is_some_and(|field| field.path == *path)
            })
        };
        let is_named = dates.iter().any(|field| is_meant(&field.path));
        let mut checks = Vec::new();
        if is_named {
            dates.retain(|field| is_meant(&field.path));
        } else {
            checks = vec![wrong(&digits), wrong(&words)];
        }
        checks.extend(dates.into_iter().map(|field| Check::Matches {
            path: field.path.clone(),
            pattern: ISO.to_owned(),
        }));
        checks
            .into_iter()
            .map(|check| Found {
                check,
                needs_witness: true,
            })
            .collect()
    }
}

/// Words of a place behind an object: "in the summary field" gives "summary field".
fn named_place(behind: &[Token]) -> Option<&[Token]> {
    const PREPOSITIONS: &[&str] = &["in", "inside", "within", "from"];
    const ARTICLES: &[&str] = &[
        "the", "a", "an", "its", "your", "any", "every", "each", "our",
    ];
    let at = behind
        .iter()
        .position(|t| !t.quoted && PREPOSITIONS.contains(&t.lower.as_str()))?;
    let words = &behind[at + 1..];
    let articles = words
        .iter()
        .take_while(|t| !t.quoted && ARTICLES.contains(&t.lower.as_str()))
        .count();
    let words = &words[articles..];
    let length = words
        .iter()
        .position(|t| t.pauses)
        .map_or(words.len(), |at| at + 1);
    (length > 0).then_some(&words[..length.min(2)])
}

/// Returns true if a place, and nothing else, follows an object.
fn is_place(behind: &[Token]) -> bool {
    let begins = behind.first().is_some_and(|t| {
        !t.quoted && ["in", "inside", "within", "from"].contains(&t.lower.as_str())
    });
    begins && behind.len() <= 4 && !behind.iter().any(|t| is_word(t, "and"))
}
