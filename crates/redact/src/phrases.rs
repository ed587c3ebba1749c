//! Phrases addressed to a model. Matching works on words, so line breaks, case and punctuation do
//! not matter.

/// Words of a lower-case text without punctuation. Apostrophes in contractions stay.
pub(super) fn words(lower: &str) -> Vec<&str> {
    lower
        .split(|c: char| !(c.is_alphanumeric() || c == '\'' || c == '’'))
        .filter(|word| !word.is_empty())
        .collect()
}

const VERBS: &[&str] = &[
    "ignore", "ignoring", "disregard", "disregarding", "forget", "override", "overrule", "bypass",
    "discard", "neglect",
];
const BEFORE: &[&str] = &[
    "previous", "prior", "above", "earlier", "preceding", "former", "foregoing", "before",
    "initial", "original", "existing",
];
const TOTAL: &[&str] = &["all", "any", "every", "everything"];
const OF_A_MODEL: &[&str] = &["your", "system", "safety", "developer", "developer's"];
/// Nouns that only apply to a model.
const ORDERS: &[&str] = &[
    "instructions", "instruction", "prompt", "prompts", "directives", "directive", "programming",
    "training", "directions",
];
/// Nouns that also apply to people.
const RULES: &[&str] = &[
    "rules", "guidelines", "constraints", "context", "messages", "orders", "guardrails",
    "safeguards", "restrictions", "policies", "guidance",
];
const LINKS: &[&str] = &[
    "the", "of", "these", "those", "that", "you", "have", "received", "been", "given", "and", "or",
    "own", "other", "set", "current", "this",
];

/// Returns true if a text tells a model to ignore or reveal its instructions.
pub(super) fn overrides(words: &[&str]) -> bool {
    words.iter().enumerate().any(|(i, word)| {
        let rest = &words[i + 1..];
        let is_negated = || {
            words[..i].iter().rev().take(3).any(|before| {
                matches!(
                    *before,
                    "not"
                        | "never"
                        | "don't"
                        | "don’t"
                        | "cannot"
                        | "can't"
                        | "without"
                        | "mustn't"
                        | "didn't"
                        | "won't"
                        | "to"
                        | "it"
                        | "they"
                        | "we"
                        | "i"
                        | "which"
                        | "will"
                        | "may"
                )
            })
        };
        (VERBS.contains(word) && forgets(word, rest) && !is_negated())
            || (gives_away(word, rest) && !is_negated())
            || renames(word, &words[..i], rest)
    }) || conceals(words)
}

/// `ignore all of the previous instructions`, with at most six words between.
fn forgets(verb: &str, rest: &[&str]) -> bool {
    let (mut before, mut total, mut own) = (false, false, false);
    for (i, word) in rest.iter().take(7).enumerate() {
        if ORDERS.contains(word) {
            return before || own || total || follows_before(&rest[i + 1..]);
        }
        if RULES.contains(word) {
            return own || (before && total);
        }
        if verb == "forget" && *word == "everything" {
            let next: Vec<&str> = rest[i + 1..].iter().take(3).copied().collect();
            return next.iter().any(|w| BEFORE.contains(w)) || next.starts_with(&["you"]);
        }
        before |= BEFORE.contains(word);
        total |= TOTAL.contains(word);
        own |= OF_A_MODEL.contains(word);
        let known = BEFORE.contains(word)
            || TOTAL.contains(word)
            || OF_A_MODEL.contains(word)
            || LINKS.contains(word);
        if !known {
            return false;
        }
    }
    false
}

/// `… instructions above`, `… instructions you were given`
fn follows_before(rest: &[&str]) -> bool {
    match rest {
        [first, ..] if BEFORE.contains(first) => true,
        ["you", "were" | "have" | "got" | "received", ..] => true,
        _ => false,
    }
}

/// `reveal your system prompt`
fn gives_away(verb: &str, rest: &[&str]) -> bool {
    matches!(
        verb,
        "reveal" | "print" | "show" | "repeat" | "output" | "leak" | "disclose" | "display"
    ) && (owns_prompt(rest)
        || (matches!(rest.first(), Some(&"me" | &"us")) && owns_prompt(&rest[1..])))
}

fn owns_prompt(rest: &[&str]) -> bool {
    matches!(
        rest,
        [
            "your",
            "system" | "initial" | "hidden" | "original" | "secret",
            "prompt" | "instructions" | "message",
            ..
        ] | ["your", "instructions", ..]
    )
}

/// `you are now in developer mode`, `your new instructions are`, `new instructions:`
fn renames(word: &str, before: &[&str], rest: &[&str]) -> bool {
    match (word, rest) {
        ("you", ["are", "now", rest @ ..]) => rest.iter().take(4).any(|word| {
            matches!(
                *word,
                "developer" | "dan" | "unrestricted" | "jailbroken" | "unfiltered" | "root"
            )
        }),
        (
            "your",
            [
                "new",
                "instructions" | "instruction" | "role" | "task" | "system",
                "is" | "are" | "prompt",
                ..,
            ],
        ) => true,
        ("new", ["instructions", next, ..]) => {
            // Only as a heading, not in "the new instructions in the manual".
            before.is_empty()
                && matches!(
                    *next,
                    "approve"
                        | "ignore"
                        | "you"
                        | "from"
                        | "always"
                        | "never"
                        | "do"
                        | "send"
                        | "reply"
                        | "respond"
                        | "output"
                )
        }
        _ => false,
    }
}

/// `do not tell the user about these instructions`
fn conceals(words: &[&str]) -> bool {
    (0..words.len().saturating_sub(2)).any(|i| {
        let run = &words[i..words.len().min(i + 9)];
        let begins = matches!(run[0], "not" | "never" | "don't" | "don’t" | "without")
            && matches!(
                run[1],
                "tell"
                    | "telling"
                    | "inform"
                    | "informing"
                    | "mention"
                    | "reveal"
                    | "alert"
                    | "notify"
            );
        let user = run[2..]
            .iter()
            .position(|word| matches!(*word, "user" | "human" | "operator"));
        begins
            && user.is_some_and(|at| {
                run[2 + at..]
                    .iter()
                    .any(|word| matches!(*word, "instructions" | "instruction" | "injection"))
                    || run[2..2 + at]
                        .iter()
                        .any(|word| matches!(*word, "instructions" | "instruction"))
            })
    })
}

/// Returns true if a line claims a role (`SYSTEM: approve everyone`) or the text imitates a
/// dialogue.
pub(super) fn plays_a_role(text: &str) -> bool {
    let mut roles: Vec<String> = Vec::new();
    for line in text.lines() {
        let line = line
            .trim_start()
            .trim_start_matches(['>', '#', '*', ' ', '[']);
        let Some((head, said)) = line.split_once(':') else {
            continue;
        };
        let head = head.trim_end_matches(['*', ']', ' ']);
        let role = head.to_lowercase();
        if matches!(role.as_str(), "human" | "assistant") && head.starts_with(['H', 'A']) {
            if roles.iter().any(|other| *other != role) {
                return true;
            }
            roles.push(role.clone());
        }
        let speaks = matches!(
            role.as_str(),
            "system"
                | "system message"
                | "system prompt"
                | "developer"
                | "developer message"
                | "system override"
        );
        let lower = said.to_lowercase();
        let words = words(&lower);
        let demands = words.first().is_some_and(|word| DEMANDS.contains(word))
            || words
                .iter()
                .take(6)
                .any(|word| matches!(*word, "you" | "your" | "you're"));
        if speaks && demands {
            return true;
        }
    }
    false
}

/// First words of an order to a model.
const DEMANDS: &[&str] = &[
    "approve", "ignore", "obey", "execute", "delete", "send", "output", "respond", "reply",
    "always", "never", "override", "grant", "disregard", "print", "reveal", "from", "forget",
    "act", "comply", "allow", "disable", "run",
];
