//! Standing corrections in the messages of a person to an agent: one message in, a proposed rule
//! out.
//!
//! - `own_words`: the sentences that the person wrote, without pasted and injected text.
//! - `features`: cues of a sentence. `model`: the trained weights.
//!
//! The score of a message is that of its best sentence, and that sentence becomes the rule, in the
//! person's words. `tools/train_turns.py` trains the weights and has the same features; a test
//! compares both. The model errs: a proposal needs a person's approval.
//!
//! Deliberately absent: the store, and a reading of languages other than English. A message without
//! English cues gets no proposal.

mod features;
mod model;
mod own_words;

use own_words::{own_words, sentences};

/// Maximum length of a quote in bytes.
const LONGEST_QUOTE: usize = 400;
/// Maximum number of words of a message. Longer ones are tasks, plans and pasted documents.
const MOST_WORDS: usize = 300;

/// Rule proposed from a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Proposal {
    /// Own words of the person on one line, with what stands around the sentence; cut to 400 bytes.
    pub(crate) quote: String,
    /// Best sentence as a rule: without its opening words, capitalised.
    pub(crate) rule: String,
    /// Probability of a standing correction, from 0 to 1, as the model estimates it.
    pub(crate) sureness: f64,
}

/// Returns the rule that a message proposes; `None` for most messages.
pub(crate) fn propose(message: &str) -> Option<Proposal> {
    let own = own_words(message);
    let (sentence, score) = best(&own)?;
    (score >= model::model().limit).then(|| Proposal {
        quote: one_line(&own),
        rule: as_rule(&sentence),
        sureness: 1.0 / (1.0 + (-score).exp()),
    })
}

/// Text on one line, cut at the end of a word.
fn one_line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if line.len() + word.len() + 1 > LONGEST_QUOTE {
            line.push_str(" …");
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Returns the best sentence of a person's own words with its score. `None` if there is nothing to
/// examine.
fn best(own: &str) -> Option<(String, f64)> {
    let words = own.split_whitespace().count();
    if words > MOST_WORDS || !is_english(own) {
        return None;
    }
    let sentences = sentences(own);
    let last = sentences.len().checked_sub(1)?;
    let scored = sentences.into_iter().enumerate().map(|(at, sentence)| {
        let place = features::Place {
            is_first: at == 0,
            is_last: at == last,
            words,
        };
        let score = model::model().score(&features::of(&sentence, &place));
        (sentence, score)
    });
    scored.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Returns `true` if at most a fifth of the characters are outside of ASCII.
fn is_english(text: &str) -> bool {
    let foreign = text.chars().filter(|c| !c.is_ascii()).count();
    foreign * 5 <= text.chars().count()
}

/// Words that open a message and say nothing about the rule.
const OPENINGS: &[&str] = &[
    "no", "nope", "yes", "ok", "okay", "please", "and", "but", "so", "well", "hey", "stop", "wait",
];

/// Sentence without its opening words and list mark, capitalised.
fn as_rule(sentence: &str) -> String {
    let mut rest = sentence.trim();
    while let Some((word, after)) = opening(rest) {
        let is_opening = OPENINGS
            .iter()
            .any(|known| known.eq_ignore_ascii_case(word));
        if !is_opening {
            break;
        }
        rest = after;
    }
    let mut letters = rest.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => sentence.trim().to_owned(),
    }
}

/// Splits off the first word. An opening word other than `please` and a conjunction ends with a
/// mark: `no, use x` opens with `no`, and `no emojis` does not.
fn opening(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_alphabetic())?;
    let (word, after) = text.split_at(end);
    let needs_mark = !["please", "and", "but", "so"]
        .iter()
        .any(|bare| bare.eq_ignore_ascii_case(word));
    if needs_mark && !after.starts_with([',', '.', '!', ':', ';']) {
        return None;
    }
    let after = after.trim_start_matches([',', '.', '!', ':', ';', ' ', '-']);
    (!after.is_empty()).then_some((word, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Case {
        text: String,
        score: f64,
    }

    /// The script gives this score to a message without a sentence.
    const NOTHING: f64 = -99.0;

    #[test]
    fn features_agree_with_the_training_script() {
        let cases: Vec<Case> = serde_json::from_str(include_str!("agreement.json")).unwrap();
        assert!(cases.len() > 60);
        for case in cases {
            let score = best(&own_words(&case.text)).map_or(NOTHING, |(_, score)| score);
            assert!(
                (score - case.score).abs() < 0.001,
                "{:?}: {score} here, {} there",
                case.text,
                case.score
            );
        }
    }

    #[test]
    fn standing_corrections_are_proposed() {
        let check = |message: &str, rule: &str| {
            let proposal = propose(message);
            let found = proposal.as_ref().map(|proposal| proposal.rule.as_str());
            assert_eq!(found, Some(rule), "{message:?}");
        };
        check(
            "no, always use pnpm in this repo",
            "Always use pnpm in this repo",
        );
        check(
            "please never push to main without asking me",
            "Never push to main without asking me",
        );
        check("I'll run the tests myself", "I'll run the tests myself");
    }

    #[test]
    fn a_quote_has_what_stands_around_the_sentence() {
        let said = "That works.\nPlease never push to main without asking me.\n```\nnpm i\n```";
        let proposal = propose(said).unwrap();
        assert_eq!(proposal.rule, "Never push to main without asking me.");
        assert_eq!(
            proposal.quote,
            "That works. Please never push to main without asking me."
        );
        let long = one_line(&"word ".repeat(200));
        assert!(
            long.ends_with(" …") && long.len() < LONGEST_QUOTE + 5,
            "{long}"
        );
    }

    #[test]
    fn other_messages_are_not() {
        let check = |message: &str| assert_eq!(propose(message), None, "{message:?}");
        check("");
        check("add a login page");
        check("why does the test fail?");
        check("hmm not really what I wanted, make it better");
        check("the total is 5660, you wrote 5606");
        check("the tooltip should never cover the legend");
        check("Das ist falsch.");
        check("Bitte benutze immer pnpm statt npm, auch in Zukunft.");
        check("这个不对。以后总是使用 pnpm。");
        check("Toujours utiliser pnpm, jamais npm.");
        check("```\nnever commit to main, always ask first\n```\nwhat does this mean?");
        check("<system-reminder>Never commit, always ask first.</system-reminder>");
        check("> never commit, always ask first\nwho wrote that?");
        check(&"never commit, always ask first. ".repeat(80));
    }

    #[test]
    fn a_rule_is_the_sentence_without_its_opening() {
        let check = |said: &str, rule: &str| assert_eq!(as_rule(said), rule);
        check("no, use pnpm here", "Use pnpm here");
        check("No! Please don't commit `x`.", "Don't commit `x`.");
        check("no emojis", "No emojis");
        check("stop adding comments", "Stop adding comments");
        check("please", "Please");
        check("élan", "Élan");
        check("no,", "No,");
    }
}
