//! Cheap test of a person's message: may it state something that is to hold from now on?
//!
//! Made for recall: it passes about nine of ten such messages, and one of eight others. An agent
//! that understands the message decides, so a needless pass costs one line. A long text, a document
//! with headings, or a pasted one is a task, and passes nothing.
//!
//! English is told by its most common words. A text in another language is compared with the forms
//! of all other languages; one in a script that has no forms passes if it is a short statement.

use super::cues::{Languages, Sentence, words};
use super::own_words::{own_words, sentences, without_quotations};

/// Maximum number of words of a message; scripts without spaces have a limit in bytes.
const MOST_WORDS: usize = 120;
const MOST_BYTES: usize = 1_200;
/// Length of a statement in a language without forms, in words.
const STATEMENT: std::ops::RangeInclusive<usize> = 5..=40;
/// Number of words of a short text.
const SHORT: usize = 6;
/// Share of common English words above which a text is English, and at most English with others.
const SOME_ENGLISH: f64 = 0.08;
const PURE_ENGLISH: f64 = 0.35;

const ENGLISH: &[&str] = &[
    "the", "a", "an", "is", "are", "was", "to", "of", "and", "in", "on", "for", "with", "you",
    "it", "this", "that", "i", "we", "be", "not", "do", "don't", "can", "have", "has", "what",
    "how", "please", "from", "my", "your", "if", "as", "at", "all", "me", "no", "yes", "so", "but",
    "why", "when", "use", "run", "should",
];

/// Returns `true` if a message may state something lasting.
pub(crate) fn may_be_lasting(message: &str) -> bool {
    demands(message).is_some()
}

/// Returns what a message may state for good, in the person's words: its sentences with a demand, or the
/// whole text in a script without forms.
pub(crate) fn demands(message: &str) -> Option<String> {
    if is_document(message) {
        return None;
    }
    let own = without_quotations(&own_words(message));
    let all = words(&own.to_lowercase());
    if all.is_empty() || own.split_whitespace().count() > MOST_WORDS || own.len() > MOST_BYTES {
        return None;
    }
    let common = all.iter().filter(|word| ENGLISH.contains(&word.as_str()));
    #[expect(clippy::cast_precision_loss, reason = "a message has few words")]
    let english = common.count() as f64 / all.len() as f64;
    let languages = Languages {
        // A short text may have no common word.
        english: english >= SOME_ENGLISH || (own.is_ascii() && all.len() <= SHORT),
        others: english < PURE_ENGLISH,
    };
    let mut found = sentences(&own);
    found.retain(|sentence| Sentence::of(sentence).demands(languages));
    if !found.is_empty() {
        return Some(found.join(" "));
    }
    let is_foreign = languages.others && is_foreign_statement(&own, all.len());
    is_foreign.then(|| own.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Returns `true` for a text with Markdown headings: a plan, a template or the body of a command.
fn is_document(message: &str) -> bool {
    message.lines().any(|line| {
        let text = line.trim_start_matches('#');
        (1..=4).contains(&(line.len() - text.len())) && text.starts_with(' ')
    })
}

/// Returns `true` for a short statement with letters outside of ASCII.
fn is_foreign_statement(own: &str, words: usize) -> bool {
    let foreign = own.chars().filter(|c| c.is_alphabetic() && !c.is_ascii());
    let foreign = foreign.count();
    let length = words.max(foreign / 2);
    foreign >= 3 && STATEMENT.contains(&length) && !own.trim_end().ends_with(['?', '？'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(message: &str, expected: bool) {
        assert_eq!(may_be_lasting(message), expected, "{message:?}");
    }

    #[test]
    fn demands_of_many_languages_pass() {
        for message in [
            "No, cargo nextest. I never want to see plain cargo test here.",
            "why on earth did you bump the major version",
            "we keep fixtures in spec/data, not next to the code",
            "i'll start the emulator myself",
            "Bitte nicht einfach mergen, das mache ich.",
            "N'installe plus rien avec pip, on a poetry pour ça.",
            "No subas nada a main sin preguntar.",
            "Não apague a pasta build sem avisar.",
            "Non usare più var, qui si scrive const.",
            "Gebruik voortaan just in plaats van make.",
            "Nigdy nie rób rebase na develop.",
            "Bundan sonra testleri docker içinde çalıştır.",
            "Больше не трогай миграции без спроса.",
            "以后提交前先跑一遍测试。",
            "コミットする前に必ず確認してください。",
            "앞으로 커밋 메시지는 영어로 써 줘.",
            "لا تستخدم الجذر لهذا، اسأل أولا من فضلك",
            "מעכשיו תריץ את הבדיקות לפני כל קומיט בבקשה",
        ] {
            check(message, true);
        }
    }

    #[test]
    fn tasks_questions_and_reports_do_not() {
        for message in [
            "",
            "continue",
            "yes, looks good",
            "Add a column for the tax rate to the invoice table and show it in the list.",
            "Is it always this slow?",
            "the tests are red: 3 failed in parser.rs",
            "what does the retry flag do",
            "Kannst du mir den Fehler erklären?",
            "# Plan\n\nNever touch the database. Always ask.",
        ] {
            check(message, false);
        }
    }

    #[test]
    fn words_of_others_are_not_the_persons() {
        for message in [
            "what is this?\n```\nerror: do not use this option, use --new instead\n```",
            "> never squash, we always rebase\nshall I answer?",
            "<command-message>review</command-message>\n<body>Always ask before a merge.</body>",
            "The linter says \"do not use var here, always use const\" - fix it",
            "npm WARN deprecated request@1: do not use it",
        ] {
            check(message, false);
        }
    }

    #[test]
    fn long_texts_are_tasks() {
        check(&"Always write the word. ".repeat(40), false);
        check("不要".repeat(500).as_str(), false);
    }
}
