//! Assesses a correction: whether it states something lasting, and with what confidence.
//!
//! Uses English word lists. Text in another language counts as a demand.

use super::wording;

pub(crate) const VAGUE: &str = "the correction does not say what should be different; say what the output \
     should have been, and when that holds";
const ONE_OFF: &str = "the correction is about this one time; if it should hold from now on, say \
     it as a rule: \"always …\" or \"when …, …\"";
const QUESTION: &str = "the correction is a question; if something should be different from now \
     on, say what";

/// Reason why a correction states nothing lasting, with advice; `None` if it does.
pub(crate) fn not_lasting(said: &str) -> Option<&'static str> {
    if is_vague(said) {
        Some(VAGUE)
    } else if is_question(said) {
        Some(QUESTION)
    } else if is_one_off(said) {
        Some(ONE_OFF)
    } else {
        None
    }
}

/// Words of complaint that do not say what is wrong.
const COMPLAINT: &[&str] = &[
    "thats", "wrong", "incorrect", "bad", "terrible", "awful", "horrible", "useless", "garbage",
    "broken", "mistake", "error", "no", "not", "nope", "right", "correct", "good", "great", "this",
    "that", "it", "its", "is", "was", "isnt", "wasnt", "are", "the", "a", "an", "output", "answer",
    "result", "response", "again", "still", "please", "just", "so", "too", "very", "totally",
    "completely", "fix", "redo", "retry", "try", "better", "do", "does", "doesnt", "didnt", "work",
    "works", "you", "i", "me", "to", "be", "ugh", "wtf", "come", "on", "seriously", "why", "what",
    "all", "at", "really", "hate", "like", "dont", "need", "needs", "should", "could", "must",
    "much", "more", "improve", "improved", "change", "changed", "different", "and", "or", "keep",
    "keeps", "happening", "made",
];

fn is_vague(said: &str) -> bool {
    let telling = said
        .split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’')
        .map(|word| word.replace(['\'', '’'], "").to_lowercase())
        .filter(|word| !word.is_empty() && !COMPLAINT.contains(&word.as_str()))
        .count();
    // "Too high" does not say what is right; "use `snake_case`" does.
    let specific = demands(said)
        || names_something(said)
        || said.contains(|c: char| c.is_ascii_digit() || !c.is_ascii());
    telling == 0 || (telling == 1 && !specific)
}

fn demands(said: &str) -> bool {
    let rule = wording::as_rule(said);
    rule.contains("ALWAYS") || rule.contains("NEVER")
}

/// Returns true for a plain question. `Are these really needed?` is a demand.
fn is_question(said: &str) -> bool {
    const ASKS: &[&str] = &[
        "why", "what", "how", "who", "where", "which", "is", "are", "did", "does", "do",
    ];
    const DOUBTS: &[&str] = &["really", "necessary", "needed", "supposed to"];
    let lower = said.to_lowercase();
    let first = lower.split(' ').next().unwrap_or_default();
    let doubts = matches!(first, "is" | "are" | "does" | "do")
        && DOUBTS.iter().any(|word| lower.contains(word));
    said.ends_with('?') && ASKS.contains(&first) && !doubts
}

/// Words that make a demand lasting.
const LASTING: &[&str] = &[
    "always", "never", "every", "each", "any", "all", "whenever", "when", "if", "must",
    "from now on", "in general", "generally",
];

/// Returns true for a request that only concerns the present task.
fn is_one_off(said: &str) -> bool {
    const NOW: &[&str] = &[
        "this time", "just this once", "only this once", "for now", "right now", "this one only",
        "only for this one", "for this run only", "this instance only",
    ];
    const OPENINGS: &[&str] = &[
        "wait", "wait,", "hold on", "pause", "stop here", "let's", "lets", "go ahead", "continue",
        "proceed", "do it", "never mind", "nevermind", "not now", "not yet", "try again",
        "one more",
    ];
    // Phrases that continue the current task.
    const GOES_ON: &[&str] = &[
        "and", "also", "now", "next", "then", "ok now", "okay now", "we don't need the",
        "we don't need this", "we don't need that", "i don't need the", "i don't need this",
        "you can", "can you now",
    ];
    // Work on one object that both know.
    const TASKS: &[&str] = &[
        "commit", "push", "rebase", "merge", "revert", "undo", "rerun", "re-run", "run", "restart",
        "rename", "move", "delete", "remove", "skip", "leave", "forget", "show", "open", "close",
        "check", "look at", "fix", "change", "put", "copy",
    ];
    const THIS: &[&str] = &["this", "that", "it", "them", "these", "those"];
    let lower = said.to_lowercase();
    let opens = |words: &&str| wording::begins_with(&lower, words);
    let on_this = |task: &&str| {
        wording::after(&lower, task)
            .is_some_and(|rest| THIS.iter().any(|this| wording::begins_with(rest, this)))
    };
    let lasts = LASTING.iter().any(|word| wording::has_words(&lower, word));
    NOW.iter().any(|words| lower.contains(words))
        || OPENINGS.iter().any(opens)
        || (!lasts && (GOES_ON.iter().any(opens) || TASKS.iter().any(on_this)))
}

/// Confidence in a correction, from 0 to 1. Bare dissatisfaction gives 0.5; a demand, a condition,
/// numbers, names and an explanation each add to it.
pub(crate) fn confidence(said: &str) -> f64 {
    if is_vague(said) {
        let words = said.split(' ').count();
        return if words > 4 { 0.55 } else { 0.5 };
    }
    let lower = format!(" {} ", said.to_lowercase());
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let words = said.split(' ').count();
    let points: [(bool, f64); 6] = [
        (
            demands(said) || has(&[" avoid ", " prefer ", " only "]),
            0.10,
        ),
        (
            has(&[
                " when ", " if ", " for ", " unless ", " whenever ", " without ", " before ",
                " after ",
            ]),
            0.08,
        ),
        (said.contains(|c: char| c.is_ascii_digit()), 0.06),
        (names_something(said), 0.05),
        (words >= 8, 0.04),
        (words >= 18, 0.03),
    ];
    let sum: f64 = points
        .iter()
        .filter(|(holds, _)| *holds)
        .map(|(_, worth)| worth)
        .sum();
    ((0.60 + sum) * 100.0).round() / 100.0
}

/// Returns true if a text contains a quotation, a name or an identifier.
fn names_something(said: &str) -> bool {
    let quoted = said.contains(['`', '"', '“']);
    let named = said.split(' ').skip(1).any(|word| {
        let inner = word.trim_matches(|c: char| !c.is_alphanumeric());
        let mut chars = inner.chars();
        let capital = chars.next().is_some_and(char::is_uppercase) && inner != "I";
        capital || inner.contains('_') || chars.any(char::is_uppercase)
    });
    quoted || named
}
