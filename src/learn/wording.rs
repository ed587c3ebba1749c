//! Splits a correction into conversation, condition and demand.
//!
//! It uses English word lists, not a model. The person's words stay, and only conversation around
//! the demand is removed. Other languages pass through unchanged.

/// Opening words before the point. They are removed only before punctuation, since `no types` is a
/// demand and `no, types` is not.
const INTERJECTIONS: &[&str] = &[
    "no", "nope", "yes", "hmm", "ugh", "ok", "okay", "actually", "please", "sorry", "again",
    "well", "hey", "look", "wait", "alright", "right", "fyi", "btw", "note", "also", "and", "but",
    "wrong", "incorrect", "not quite", "this is wrong", "that is wrong", "that's wrong",
    "this is incorrect",
];

/// Phrases that begin a demand, with the kind of demand.
const DEMANDS: &[(&str, Demand)] = &[
    ("please do not", Demand::Never),
    ("please don't", Demand::Never),
    ("please never", Demand::Never),
    ("please always", Demand::Always),
    ("please", Demand::Always),
    ("do not ever", Demand::Never),
    ("do not", Demand::Never),
    ("don't ever", Demand::Never),
    ("don't", Demand::Never),
    ("dont", Demand::Never),
    ("never", Demand::Never),
    ("always", Demand::Always),
    ("you should never", Demand::Never),
    ("you should not", Demand::Never),
    ("you shouldn't", Demand::Never),
    ("you must never", Demand::Never),
    ("you must not", Demand::Never),
    ("you mustn't", Demand::Never),
    ("you should always", Demand::Always),
    ("you must always", Demand::Always),
    ("you should", Demand::Always),
    ("you must", Demand::Always),
    ("you need to", Demand::Always),
    ("you have to", Demand::Always),
    ("we should never", Demand::Never),
    ("we should not", Demand::Never),
    ("we shouldn't", Demand::Never),
    ("we should always", Demand::Always),
    ("we should be", Demand::Keep),
    ("we should", Demand::Always),
    ("we need to", Demand::Always),
    ("i want you to", Demand::Always),
    ("i need you to", Demand::Always),
    ("can you please", Demand::Always),
    ("could you please", Demand::Always),
    ("can you", Demand::Always),
    ("could you", Demand::Always),
    ("remember to", Demand::Always),
    ("make sure to", Demand::Always),
    ("make sure you", Demand::Always),
    ("be sure to", Demand::Always),
];

/// Verbs that begin a demand.
const IMPERATIVES: &[&str] = &[
    "add", "ask", "assign", "attach", "avoid", "break", "calculate", "call", "cap", "capitalise",
    "capitalize", "check", "cite", "classify", "compare", "compute", "confirm", "convert", "count",
    "create", "deduct", "default", "describe", "drop", "emit", "ensure", "escalate", "exclude",
    "explain", "express", "extract", "filter", "flag", "follow", "format", "give", "group",
    "handle", "highlight", "ignore", "include", "keep", "label", "limit", "link", "list", "lower",
    "mark", "mention", "name", "normalise", "normalize", "omit", "order", "output", "place",
    "prefer", "prioritise", "prioritize", "provide", "put", "quote", "raise", "rank", "recommend",
    "reduce", "refer", "reject", "remove", "rename", "replace", "report", "require", "respond",
    "return", "round", "route", "run", "say", "score", "separate", "set", "show", "skip", "sort",
    "specify", "split", "start", "state", "stop", "strip", "summarise", "summarize", "tag",
    "treat", "trim", "use", "validate", "verify", "weigh", "weight", "wrap", "write",
];

/// Modal verbs inside a sentence, with their form in a rule. Longer ones first.
const MODALS: &[(&str, &str)] = &[
    ("should never", "should NEVER"),
    ("should not", "should NEVER"),
    ("shouldn't", "should NEVER"),
    ("must never", "must NEVER"),
    ("must not", "must NEVER"),
    ("mustn't", "must NEVER"),
    ("should always", "should ALWAYS"),
    ("must always", "must ALWAYS"),
    ("should", "should ALWAYS"),
    ("must", "must ALWAYS"),
];

/// Words that begin a condition.
const CONDITIONS: &[&str] = &[
    "when", "whenever", "if", "for", "in", "before", "after", "while", "unless", "once", "during",
    "where", "on", "with", "without",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Demand {
    Always,
    Never,
    /// The following words contain the demand.
    Keep,
}

/// Text on one line, with single spaces.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// First sentence, and the rest. A point inside `1.5` or `e.g.` does not end a sentence.
pub(super) fn first_sentence(text: &str) -> (&str, &str) {
    for (at, c) in text.char_indices() {
        let next = at + c.len_utf8();
        let ends = matches!(c, '.' | '!' | '?' | ';')
            && text[next..].starts_with(' ')
            && text[next..]
                .trim_start()
                .starts_with(|c: char| !c.is_lowercase())
            && !text[..next].ends_with("e.g.")
            && !text[..next].ends_with("i.e.");
        if ends || matches!(c, '。' | '！' | '？') {
            return (&text[..next], text[next..].trim_start());
        }
    }
    (text, "")
}

/// Condition at the start of a sentence, without its comma, and the rest.
///
/// A condition can contain a list. It ends at the first comma before a clause with a demand,
/// otherwise at the first comma.
pub(super) fn condition(sentence: &str) -> Option<(&str, &str)> {
    let word = sentence.split(' ').next()?.to_lowercase();
    if !CONDITIONS.contains(&word.as_str()) {
        return None;
    }
    let splits = || {
        sentence
            .match_indices(", ")
            .map(|(at, _)| (&sentence[..at], &sentence[at + 2..]))
    };
    let (condition, rest) = splits()
        .find(|(_, rest)| demands_something(rest.split(", ").next().unwrap_or(rest)))
        .or_else(|| splits().next())?;
    // `In short, …` is not a condition: it needs at least three words.
    (condition.split(' ').count() >= 3 && !rest.is_empty()).then_some((condition, rest))
}

/// Words that begin a condition behind a demand. `for` and `in` more often say what is demanded:
/// `write it in German`.
const TRAILING: &[&str] = &[
    "when", "whenever", "if", "unless", "before", "after", "while", "during", "until", "once",
    "except",
];

/// Condition that a sentence states, before its demand or behind it; `None` if there is none.
pub(super) fn said_condition(sentence: &str) -> Option<&str> {
    if let Some((condition, _)) = condition(sentence) {
        return Some(condition);
    }
    let at = TRAILING
        .iter()
        .filter_map(|word| find_words(sentence, word))
        .filter(|at| *at > 0)
        .min()?;
    let condition = sentence[at..].trim_end_matches(['.', '!', '?', ';', ',']);
    // `… before.` alone states nothing.
    (condition.split(' ').count() >= 2).then_some(condition)
}

/// Returns true if a clause has its own demand. A clause that begins with `should` does not,
/// because its subject precedes it.
fn demands_something(clause: &str) -> bool {
    let cut_off = MODALS
        .iter()
        .any(|(modal, _)| strip_words(clause, modal).is_some());
    !cut_off && demand(clause) != clause
}

/// Rule from a correction: removes conversation and marks the demand of the first sentence with
/// ALWAYS or NEVER. All other words stay.
pub(super) fn as_rule(correction: &str) -> String {
    let flat = one_line(correction);
    let text = without_interjections(&flat);
    let (sentence, rest) = first_sentence(text);
    let mut rule = match condition(sentence) {
        Some((condition, main)) => format!("{}, {}", capitalised(condition), demand(main)),
        None => capitalised(&demand(sentence)),
    };
    if !rest.is_empty() {
        rule.push(' ');
        rule.push_str(rest);
    }
    if !rule.ends_with(['.', '!', '?', ':', '。', '！', '？', '`', '"', ')']) {
        rule.push('.');
    }
    rule
}

/// Text without words at its start that demand nothing: "No, …".
pub(super) fn without_interjections(mut text: &str) -> &str {
    'again: loop {
        for word in INTERJECTIONS {
            if let Some(rest) = strip_words(text, word)
                && let Some(rest) = rest.strip_prefix([',', '.', '!', ':', '-', '–', '—', ';'])
            {
                let rest = rest.trim_start_matches([',', '.', '!', ':', '-', '–', '—', ';', ' ']);
                if !rest.is_empty() {
                    text = rest;
                    continue 'again;
                }
            }
        }
        return text;
    }
}

fn demand(sentence: &str) -> String {
    for (words, demand) in DEMANDS {
        let Some(rest) = strip_words(sentence, words).map(str::trim_start) else {
            continue;
        };
        if rest.is_empty() {
            break;
        }
        return match demand {
            Demand::Always => format!("ALWAYS {}", rest.trim_start_matches(',').trim_start()),
            Demand::Never => format!("NEVER {rest}"),
            Demand::Keep => format!("ALWAYS be {rest}"),
        };
    }
    let first = sentence
        .split(' ')
        .next()
        .unwrap_or_default()
        .to_lowercase();
    if IMPERATIVES.contains(&first.as_str()) {
        return format!("ALWAYS {}", lower_first(sentence));
    }
    for (modal, marked) in MODALS {
        if let Some(at) = find_words(sentence, modal) {
            let (before, after) = (&sentence[..at], &sentence[at + modal.len()..]);
            return format!("{before}{marked}{after}");
        }
    }
    sentence.to_owned()
}

/// Returns true if a text contains these words as separate words.
pub(super) fn has_words(text: &str, words: &str) -> bool {
    find_words(text, words).is_some()
}

/// Text after these words, ignoring case; `None` if it does not begin with them.
fn strip_words<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let head = text.get(..words.len())?;
    let rest = &text[words.len()..];
    let ends = !rest.starts_with(|c: char| c.is_alphanumeric() || c == '\'' || c == '_');
    (head.eq_ignore_ascii_case(words) && ends).then_some(rest)
}

/// Position of these words as separate words.
fn find_words(text: &str, words: &str) -> Option<usize> {
    text.char_indices()
        .map(|(at, _)| at)
        .filter(|at| *at == 0 || text[..*at].ends_with(' '))
        .find(|at| strip_words(&text[*at..], words).is_some())
}

pub(super) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    let plain = text.split(' ').next().is_some_and(|word| {
        // `iOS`, `snake_case` and `path/to` are names, which keep their case.
        word.chars()
            .all(|c| c.is_lowercase() || c == ',' || c == '\'')
    });
    match chars.next() {
        Some(first) if plain => first.to_uppercase().chain(chars).collect(),
        _ => text.to_owned(),
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(chars).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_the_correction_with_its_demand_marked() {
        let check = |said: &str, rule: &str| assert_eq!(as_rule(said), rule);
        check(
            "When screening for senior backend roles, system design experience should be weighted separately from coding skills. A candidate with 5 years Python but no distributed systems should score below 60.",
            "When screening for senior backend roles, system design experience should ALWAYS be weighted separately from coding skills. A candidate with 5 years Python but no distributed systems should score below 60.",
        );
        check("use ISO dates", "ALWAYS use ISO dates.");
        check("Use `uv`, not pip", "ALWAYS use `uv`, not pip.");
        check(
            "no, don't return more than 3 items!",
            "NEVER return more than 3 items!",
        );
        check(
            "No `any` types unless absolutely necessary",
            "No `any` types unless absolutely necessary.",
        );
        check("never log names", "NEVER log names.");
        check(
            "You should mention the licence",
            "ALWAYS mention the licence.",
        );
        check(
            "Actually, the total must not exceed 1.5 million",
            "The total must NEVER exceed 1.5 million.",
        );
        check(
            "If the role is remote, please include the time zone",
            "If the role is remote, ALWAYS include the time zone.",
        );
        check(
            "we should be using strong types",
            "ALWAYS be using strong types.",
        );
        check("the score\n  is   too high", "The score is too high.");
        check("snake_case everywhere", "snake_case everywhere.");
        check("日付はISO形式で。", "日付はISO形式で。");
        check("please", "Please.");
    }

    #[test]
    fn a_condition_has_something_that_it_is_about() {
        assert_eq!(
            condition("When it rains, stay in"),
            Some(("When it rains", "stay in"))
        );
        assert_eq!(condition("In short, stay in"), None);
        assert_eq!(
            condition("If it rains, snows or hails, always stay in, and close the window"),
            Some((
                "If it rains, snows or hails",
                "always stay in, and close the window"
            ))
        );
        assert_eq!(
            condition("For senior roles, design, which is hard, should count"),
            Some(("For senior roles", "design, which is hard, should count"))
        );
        assert_eq!(condition("Stay in, when it rains"), None);
    }

    #[test]
    fn numbers_and_abbreviations_end_no_sentence() {
        assert_eq!(
            first_sentence("Round to 1.5 always. Then go."),
            ("Round to 1.5 always.", "Then go.")
        );
        assert_eq!(
            first_sentence("Add units, e.g. Kelvin."),
            ("Add units, e.g. Kelvin.", "")
        );
    }
}
