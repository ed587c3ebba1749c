//! Cheap tests of a person's message: may it state a lasting rule, or say something about the call just made?
//!
//! Made for recall: the first test passes about nine in ten such messages, and one in eight of the others. The
//! agent understands the message and decides, so a needless pass costs one line. A long text, a document with
//! headings or a pasted one counts as a task, and never passes.
//!
//! English is recognised by its most common words. A text in another language is compared with the forms of
//! all other languages. A text in a script without forms passes if it is a short statement.
//!
//! A statement such as "vendor/ comes from composer and is wiped on install" has no form of a demand. It
//! passes if it names a thing of the call before it, asks nothing and begins no task. The words are compared,
//! not understood.

use std::collections::BTreeSet;

use super::forms::{Languages, Sentence};
use super::own_words::{
    own_words, sentences, without_errors, without_quotations, without_said, words,
};
use crate::model::text::one_line;
use crate::rules::vocabulary::WORDS;

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
    let own = without_errors(&own_words(message));
    let own = without_quotations(&own);
    let all = words(&own.to_lowercase());
    if all.is_empty() || own.split_whitespace().count() > MOST_WORDS || own.len() > MOST_BYTES {
        return None;
    }
    let common = all.iter().filter(|word| WORDS.english.contains(word));
    #[expect(clippy::cast_precision_loss, reason = "a message has few words")]
    let english = common.count() as f64 / all.len() as f64;
    let languages = Languages {
        // A short text may have no common word.
        english: english >= SOME_ENGLISH || (own.is_ascii() && all.len() <= SHORT),
        others: english < PURE_ENGLISH,
    };
    let sentences = sentences(&own);
    let demands = |text: &str| Sentence::of(&without_said(text)).demands(languages);
    let mut found: Vec<bool> = sentences.iter().map(|one| demands(one)).collect();
    // A colon introduces what a demand is about: "remember: prices are in cents".
    for (at, pair) in sentences.windows(2).enumerate() {
        if pair[0].ends_with(':') && (found[at] || demands(&pair.join(" "))) {
            found[at..at + 2].fill(true);
        }
    }
    let found: Vec<String> = sentences
        .into_iter()
        .zip(found)
        .filter_map(|(sentence, is_found)| is_found.then_some(sentence))
        .collect();
    if !found.is_empty() {
        return Some(found.join(" "));
    }
    let is_foreign = languages.others && is_foreign_statement(&own, all.len());
    is_foreign.then(|| one_line(&own))
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
    // A request in Japanese that names no topic is a task.
    let end = own.trim_end_matches(|c: char| c.is_whitespace() || "。！!…".contains(c));
    let is_request = ["ください", "下さい", "お願いします"]
        .iter()
        .any(|asked| end.ends_with(asked))
        && !own.contains('は');
    !is_request && foreign >= 3 && STATEMENT.contains(&length) && !end.ends_with(['?', '？'])
}

/// Maximum number of words of a statement.
const STATEMENT_WORDS: usize = 45;
/// Minimum length of a word that both have, in characters.
const SHORTEST: usize = 3;

/// Returns `true` if a message of a person states something about one of the calls just made.
pub(crate) fn states_of(message: &str, calls: &[String]) -> bool {
    let lower = message.trim().to_lowercase();
    let all = words(&lower);
    let is_statement = !all.is_empty()
        && all.len() <= STATEMENT_WORDS
        && !lower.contains("\n\n")
        && !lower.starts_with(['[', '<', '/', '@'])
        && !lower.contains(['?', '？']);
    let first = all.iter().find(|word| !WORDS.fillers.contains(word));
    let is_task = first.is_none_or(|word| WORDS.tasks.contains(word));
    if !is_statement || is_task {
        return false;
    }
    let of_calls: BTreeSet<String> = calls.iter().flat_map(|call| things(call)).collect();
    things(&lower).iter().any(|word| of_calls.contains(word))
}

/// Words of a text and their parts: `crawl.py`, `crawl`, `py`.
fn things(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    let all = words(&lower);
    let parts = all.iter().flat_map(|word| word.split(['.', '-', '_']));
    let found = parts.chain(all.iter().map(String::as_str)).filter(|word| {
        word.chars().count() >= SHORTEST
            && word.contains(char::is_alphabetic)
            && !WORDS.common.contains(word)
    });
    let versions = all
        .iter()
        .filter(|word| word.matches('.').count() > 1 && !word.contains(char::is_alphabetic));
    found.map(str::to_owned).chain(versions.cloned()).collect()
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
            "don't begin with the migration yet! I have not agreed",
            "i'll start the emulator myself",
            "no wildcard routes in this service please, list them",
            "no tables in the replies pls",
            "semicolons not commas in the csv files",
            "docstrings in French",
            "I want a changelog line in each pull request",
            "Tags are made by hand. No exceptions.",
            "merging is our call",
            "raw SQL is strictly forbidden in the views",
            "Da bitte nix mehr löschen",
            "Jamais de print dans le code livré",
            "コミットメッセージは英語で書いてください",
            "stick to the async client",
            "deploys only via the pipeline",
            "keep the handlers below 30 lines",
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
    fn demand_to_remember_passes_with_the_text_after_its_colon() {
        for message in [
            "remember: prices are in cents",
            "Also remember: prices are in cents.",
            "From now on: pnpm.",
            "Merke: Preise stehen in Cent.",
            "Retiens : les prix sont en centimes.",
            "Recuerda: los precios van en céntimos.",
            "Ricorda: i prezzi sono in centesimi.",
            "Запомни: цены в центах.",
            "记住：价格以分为单位。",
            "覚えておいて：価格はセント単位です。",
        ] {
            assert_eq!(demands(message).as_deref(), Some(message));
        }
        check("I don't remember: was it cents?", false);
        check("remember now: it was cents", false);
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
            "errors in the console",
            "what does the retry flag do",
            "the worker never stops, have a look",
            "never seen that before",
            "only run the parser tests for now",
            "please don't merge it yet, I am still reading",
            "could the title be red instead of blue? only on this slide",
            "add a check that the queue never grows beyond ten",
            "Write a poem about always being late",
            "the wiki says 'never restart the worker by hand', why?",
            "it prints `never call this from a signal handler` at the start",
            "I get `OSError: no space left, use another disk` at the start",
            "ça ne fonctionne jamais chez moi",
            "一覧ページに検索を追加してください。",
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

    #[test]
    fn a_statement_about_the_call_before_it_passes() {
        let check = |message: &str, call: &str, expected: bool| {
            assert_eq!(
                states_of(message, &[call.to_owned()]),
                expected,
                "{message}"
            );
        };
        check("no sed please, it breaks on macs", "sed -i s/a/b/ x", true);
        check(
            "gen/ is written by protoc and thrown away each time",
            "{\"file_path\":\"gen/a.rs\"}",
            true,
        );
        check(
            "Tags heißen hier rel-2026.03.01, nie 1.4.0",
            "git tag 1.4.0",
            true,
        );
        check(
            "stdout belongs to the protocol. Logger only",
            "print to stdout",
            true,
        );
        // A task, a question, a report, an answer.
        check(
            "update gen/a.rs as well",
            "{\"file_path\":\"gen/a.rs\"}",
            false,
        );
        check("is gen/ generated?", "{\"file_path\":\"gen/a.rs\"}", false);
        check("I get an error from protoc", "protoc a.proto", false);
        check("yes", "protoc a.proto", false);
        // Nothing of the call.
        check("the header is too dark", "protoc a.proto", false);
        check("the header is too dark", "", false);
    }
}
