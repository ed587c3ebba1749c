//! Demands on the values and the presence of fields.

use serde_json::{Value, json};

use super::super::clause::{Sentence, Token, number};
use super::super::{Check, JsonType, Path};
use super::{FILLERS, Found, NEGATIONS, Reader, is_identifier, is_word, negated};

/// Words that are unlikely to be field values.
const NO_VALUES: &[&str] = &[
    "lower", "higher", "better", "worse", "shorter", "longer", "more", "less", "different",
    "consistent", "clear", "correct", "right", "accurate", "brief", "concise", "specific",
    "precise", "it", "this", "that", "there", "included", "present", "given", "empty", "null",
    "mentioned", "used", "based", "a", "an", "the", "string", "number", "integer", "boolean",
    "list", "array", "object", "checked", "explained", "changed", "removed", "added", "fixed",
    "weighted", "lowered", "raised", "shown", "listed", "set", "calculated", "one", "polite",
    "written", "kept", "numeric", "unique", "valid", "required", "optional", "sorted",
];

impl Reader<'_> {
    /// "`status` must be approved or rejected", "the score must be an integer".
    pub(super) fn values(&self, sentence: &Sentence) -> Vec<Found> {
        let tokens = &sentence.tokens;
        let mut found = Vec::new();
        for at in 1..tokens.len() {
            let Some(behind) = copula(tokens, at) else {
                continue;
            };
            if negated(tokens, behind) || tokens[behind - 1].pauses {
                continue;
            }
            if let Some(is) = json_type(&tokens[behind..]) {
                if let Some(field) = self.compared(tokens, at, |_| true) {
                    let path = field.path.clone();
                    found.push(Found {
                        check: Check::Type { path, is },
                        needs_witness: false,
                    });
                }
                continue;
            }
            let Some(field) = self.compared(tokens, at, Value::is_string) else {
                continue;
            };
            let Some(values) = choices(&tokens[behind..], field.value.as_str().unwrap_or_default())
            else {
                continue;
            };
            let path = field.path.clone();
            found.push(match values.as_slice() {
                [value] => Found {
                    check: Check::Equals {
                        path,
                        value: json!(value),
                    },
                    needs_witness: true,
                },
                _ => Found {
                    check: Check::OneOf {
                        path,
                        values: values.iter().map(|value| json!(value)).collect(),
                    },
                    needs_witness: false,
                },
            });
        }
        found
    }

    /// "always include a `reason` field".
    pub(super) fn required(&self, sentence: &Sentence) -> Vec<Found> {
        const VERBS: &[&str] = &[
            "include", "includes", "add", "have", "has", "contain", "contains", "provide",
            "provides", "return", "returns", "output", "missing", "lacks", "needs", "need",
            "require", "requires", "with", "set",
        ];
        const NOUNS: &[&str] = &["field", "key", "property", "attribute", "fields", "keys"];
        let tokens = &sentence.tokens;
        if !self.output.is_object()
            || !sentence.has(VERBS)
            || sentence.has(NEGATIONS)
            || sentence.has(&["avoid", "remove", "drop", "omit"])
        {
            return Vec::new();
        }
        let Some(at) = tokens
            .iter()
            .position(|t| !t.quoted && NOUNS.contains(&t.lower.as_str()))
        else {
            return Vec::new();
        };
        let called = tokens
            .get(at + 1)
            .is_some_and(|t| ["called", "named"].contains(&t.lower.as_str()));
        let behind = tokens.get(at + 1 + usize::from(called));
        let name = at
            .checked_sub(1)
            .and_then(|before| tokens.get(before))
            .filter(|t| {
                is_identifier(t) && (t.quoted || !FILLERS.contains(&t.lower.as_str())) && !called
            })
            .or_else(|| behind.filter(|t| is_identifier(t) && (t.quoted || called)));
        let Some(name) = name else {
            return Vec::new();
        };
        if !name.quoted
            && [
                "new", "required", "following", "missing", "extra", "separate", "each", "every",
                "this", "that", "all", "date",
            ]
            .contains(&name.lower.as_str())
        {
            return Vec::new();
        }
        let each = tokens.windows(2).find(|pair| {
            ["each", "every"].contains(&pair[0].lower.as_str())
                && !NOUNS.contains(&pair[1].lower.as_str())
        });
        let parent = match each {
            Some(pair) => match self.list(&pair[1..]) {
                Some(path) => path.each(),
                None => return Vec::new(),
            },
            None => Path::root(),
        };
        vec![Found {
            check: Check::Required {
                path: parent.field(&name.text),
            },
            needs_witness: false,
        }]
    }
}

/// Index of the value if "must be" or a similar phrase begins at `at`.
fn copula(tokens: &[Token], at: usize) -> Option<usize> {
    let word = |offset: usize| {
        tokens
            .get(at + offset)
            .filter(|t| !t.quoted)
            .map_or("", |t| t.lower.as_str())
    };
    let mut behind = match (word(0), word(1), word(2)) {
        ("must" | "should" | "shall", "be", _) => at + 2,
        ("must" | "should", "always", "be")
        | ("should", "have", "been")
        | ("has" | "have" | "needs" | "need", "to", "be")
        | ("can" | "may", "only", "be") => at + 3,
        _ => return None,
    };
    while tokens.get(behind).is_some_and(|t| {
        !t.quoted && ["either", "set", "to", "always", "exactly"].contains(&t.lower.as_str())
    }) {
        behind += 1;
    }
    if tokens.get(behind).is_some_and(|t| is_word(t, "one"))
        && tokens.get(behind + 1).is_some_and(|t| is_word(t, "of"))
    {
        behind += 2;
    }
    (behind < tokens.len()).then_some(behind)
}

fn json_type(tokens: &[Token]) -> Option<JsonType> {
    let article = ["a", "an"].contains(&tokens.first()?.lower.as_str());
    let word = tokens.get(usize::from(article)).filter(|t| !t.quoted)?;
    // "a number between", "a list of names" demand more than a type, but the type holds.
    let is = match word.lower.as_str() {
        "integer" => JsonType::Integer,
        "number" => JsonType::Number,
        "string" => JsonType::String,
        "boolean" | "bool" => JsonType::Boolean,
        "array" | "list" => JsonType::Array,
        "object" => JsonType::Object,
        _ => return None,
    };
    article.then_some(is)
}

/// Allowed values of a field: `a`, `a or b`, `a, b or c`, up to the end of the sentence or a "not".
/// `now` is the current value, whose case unquoted values take over.
fn choices(tokens: &[Token], now: &str) -> Option<Vec<String>> {
    let mut values: Vec<String> = Vec::new();
    let mut expect = true;
    for token in tokens {
        let word = token.lower.as_str();
        if !token.quoted
            && [
                "not", "instead", "rather", "when", "if", "for", "whenever", "because", "since",
                "here",
            ]
            .contains(&word)
        {
            break;
        }
        if !token.quoted && ["or", "and"].contains(&word) {
            // "approved and rejected" is not a choice.
            if word == "and" && !values.is_empty() && values.len() < 2 {
                return None;
            }
            expect = true;
            continue;
        }
        if !expect {
            return None;
        }
        let plain = token
            .text
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
            && !NO_VALUES.contains(&word)
            && number(token).is_none()
            && !word.ends_with("ly")
            && !now.contains(' ')
            && !now.is_empty();
        if !token.quoted && !plain {
            return None;
        }
        values.push(if token.quoted {
            token.text.clone()
        } else {
            in_the_manner_of(now, &token.text)?
        });
        expect = token.pauses;
    }
    // The sentence must end after the last value: "hold on to" is not a value.
    (!values.is_empty()).then_some(values)
}

/// Value in the case of the current one. `None` for a proper name where a lower-case label is: a
/// field with `en` does not take "German".
fn in_the_manner_of(now: &str, value: &str) -> Option<String> {
    let is =
        |text: &str, fits: fn(char) -> bool| text.chars().filter(|c| c.is_alphabetic()).all(fits);
    if is(now, char::is_uppercase) {
        Some(value.to_uppercase())
    } else if is(now, char::is_lowercase) {
        is(value, char::is_lowercase).then(|| value.to_owned())
    } else {
        Some(value.to_owned())
    }
}
