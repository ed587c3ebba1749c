//! Demands on the wording and the format of text.

use serde_json::json;

use super::super::clause::Sentence;
use super::super::{Check, Path, has_words, text_of};
use super::{Found, MODALS, NEGATIONS, Reader, is_identifier, is_word, negated};

impl Reader<'_> {
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
            let next = tokens.get(start + 1).filter(|_| !object.pauses);
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
                let (path, text) = (Path::root(), text.to_owned());
                if forbids {
                    Check::NotContains { path, text }
                } else {
                    Check::Contains { path, text }
                }
            };
            if forbids {
                // Without quotation marks, the object must end the sentence and occur in the
                // output.
                let ends = next.is_none();
                if object.quoted || (ends && start + 1 == tokens.len()) {
                    found.push(Found {
                        check: check(&object.text),
                        needs_witness: !object.quoted || next.is_some(),
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
    #[expect(clippy::unused_self, reason = "one of the readers of a sentence")]
    pub(super) fn instead(&self, sentence: &Sentence) -> Vec<Found> {
        let tokens = &sentence.tokens;
        let mut found = Vec::new();
        for (at, object) in tokens.iter().enumerate().skip(2) {
            let instead = is_word(&tokens[at - 1], "of") && is_word(&tokens[at - 2], "instead")
                || is_word(&tokens[at - 1], "than") && is_word(&tokens[at - 2], "rather");
            let not =
                is_word(&tokens[at - 1], "not") && tokens[at - 2].quoted && tokens[at - 2].pauses;
            if object.quoted && (instead || not) && object.text.chars().count() > 1 {
                let (path, text) = (Path::root(), object.text.clone());
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
        let mut checks = vec![wrong(&digits), wrong(&words)];
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
                checks.push(Check::Matches {
                    path: field.path.clone(),
                    pattern: ISO.to_owned(),
                });
            }
        }
        checks
            .into_iter()
            .map(|check| Found {
                check,
                needs_witness: true,
            })
            .collect()
    }
}
