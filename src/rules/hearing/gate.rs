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
use std::sync::LazyLock;

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
    let own = without_quotations(&own_words(message));
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
    let demands = |text: &str| Sentence::of(text).demands(languages);
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
    foreign >= 3 && STATEMENT.contains(&length) && !own.trim_end().ends_with(['?', '？'])
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

/// Ends of the names of errors.
const ERRORS: [&str; 3] = ["Error", "Exception", "Warning"];
/// Length of a quotation that repeats someone, in words and in bytes.
const QUOTED_WORDS: usize = 3;
const QUOTED_BYTES: usize = 13;
/// Maximum number of words of a sentence.
const LONGEST: usize = 80;

/// Returns what the person typed, without code blocks, quoted lines, log lines, and text between
/// tags.
pub(super) fn own_words(text: &str) -> String {
    let text = without_tags(&memctl_sessions::own_words(text));
    let mut fenced = false;
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let start = line.trim_start();
        if start.starts_with("```") || start.starts_with("~~~") {
            fenced = !fenced;
        } else if !fenced && !is_foreign(start) {
            lines.push(line);
        }
    }
    lines.join("\n").trim().to_owned()
}

fn is_foreign(line: &str) -> bool {
    let mut words = line.split(' ');
    let is_error = |word: &str| {
        let name = word.strip_suffix(':').unwrap_or_default();
        let is_name = name
            .chars()
            .all(|c| c.is_alphanumeric() || "._".contains(c));
        is_name && ERRORS.iter().any(|end| name.ends_with(end))
    };
    let is_log = |word: &str| WORDS.log.contains(word) || is_error(word);
    WORDS.foreign.begin(line)
        || words.next().is_some_and(is_log)
        || words.next().is_some_and(|word| WORDS.log.contains(word))
}

/// Replaces quotations of several words by `…`. A quoted name stays.
pub(super) fn without_quotations(text: &str) -> String {
    const OPEN: [char; 7] = ['"', '“', '„', '«', '「', '『', '”'];
    const CLOSE: [char; 7] = ['"', '”', '“', '»', '」', '』', '«'];
    let mut own = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(OPEN) {
        let (before, quoted) = rest.split_at(at);
        own.push_str(before);
        let inside = quoted.chars().next().map_or(0, char::len_utf8);
        let line = quoted.split('\n').next().unwrap_or_default();
        let end = line.get(inside..).and_then(|line| line.find(CLOSE));
        let Some(end) = end.map(|end| end + inside) else {
            own.push_str(&quoted[..inside]);
            rest = &quoted[inside..];
            continue;
        };
        let close = quoted[end..].chars().next().map_or(0, char::len_utf8);
        let words = quoted[inside..end].split_whitespace().count();
        if words >= QUOTED_WORDS || end - inside >= QUOTED_BYTES {
            own.push_str(" … ");
        } else {
            own.push_str(&quoted[..end + close]);
        }
        rest = &quoted[end + close..];
    }
    own.push_str(rest);
    own
}

/// Replaces `<name …>…</name>` by a line break. A tag that is not closed stays.
fn without_tags(text: &str) -> String {
    let mut own = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let tag = &rest[at..];
        if let Some(end) = closing(tag) {
            own.push_str(&rest[..at]);
            own.push('\n');
            rest = &tag[end..];
        } else {
            own.push_str(&rest[..=at]);
            rest = &tag[1..];
        }
    }
    own.push_str(rest);
    own
}

/// Position after the closing tag of the tag that a text starts with.
fn closing(tag: &str) -> Option<usize> {
    let name = &tag[1..];
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        .then_some(())?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let end = name.find(|c| !is_name(c)).unwrap_or(name.len());
    let close = format!("</{}>", &name[..end]);
    Some(tag.find(&close)? + close.len())
}

/// Splits the own words into sentences. Every line ends a sentence.
pub(super) fn sentences(own: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in own.split('\n') {
        let is_mark = |c: char| "-*•0123456789.)( ".contains(c);
        let line = line.trim().trim_start_matches(is_mark);
        let mut begin = 0;
        for (at, c) in line.char_indices() {
            let next = at + c.len_utf8();
            let ends = next == line.len()
                || ("。！？；".contains(c))
                || (".!?;:–—-".contains(c) && line[next..].starts_with([' ', '\t']));
            if !ends {
                continue;
            }
            let sentence = line[begin..next].trim();
            begin = next;
            if (1..=LONGEST).contains(&sentence.split_whitespace().count()) {
                found.push(sentence.to_owned());
            }
        }
    }
    found
}

static FORMS: LazyLock<Vec<Form>> = LazyLock::new(|| parse(include_str!("cues.txt")));

/// Maximum number of words that `..` stands for.
const GAP: usize = 3;

/// Sentence, taken apart for a comparison.
#[derive(Debug)]
pub(super) struct Sentence {
    text: String,
    words: Vec<String>,
    pub(super) is_question: bool,
}

/// Languages whose forms are compared with a sentence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Languages {
    pub(super) english: bool,
    pub(super) others: bool,
}

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "columns of a table")]
struct Form {
    is_english: bool,
    /// Asks for the reason of what the agent did: the only form that a question may have.
    is_why: bool,
    is_question: bool,
    at_start: bool,
    parts: Parts,
}

#[derive(Debug)]
enum Parts {
    /// Text anywhere in a sentence.
    Piece(&'static str),
    Words(Vec<Part>),
}

#[derive(Debug)]
enum Part {
    Any,
    Gap,
    End,
    OneOf(Vec<&'static str>),
    NoneOf(Vec<&'static str>),
}

impl Sentence {
    /// Takes a sentence apart.
    pub(super) fn of(text: &str) -> Self {
        let text = text
            .to_lowercase()
            .replace('’', "'")
            .replace(['`', '*'], "");
        Self {
            words: words(&text),
            is_question: text.trim_end().ends_with(['?', '？']),
            text,
        }
    }

    /// Returns `true` if the sentence has a form of these languages.
    pub(super) fn demands(&self, languages: Languages) -> bool {
        FORMS.iter().any(|form| {
            let is_spoken = if form.is_english {
                languages.english
            } else {
                languages.others
            };
            is_spoken && self.has(form)
        })
    }

    fn has(&self, form: &Form) -> bool {
        let is_asked = self.is_question == form.is_question || self.is_question && form.is_why;
        let is_there = || match &form.parts {
            Parts::Piece(piece) => self.text.contains(piece),
            Parts::Words(parts) => {
                let last = if form.at_start { 1 } else { self.words.len() };
                (0..last).any(|at| fits(parts, &self.words, at))
            }
        };
        is_asked && is_there()
    }
}

fn fits(parts: &[Part], words: &[String], at: usize) -> bool {
    let Some((part, rest)) = parts.split_first() else {
        return true;
    };
    let is_word = match part {
        Part::End => return at == words.len() && fits(rest, words, at),
        Part::Gap => {
            let end = (at + GAP).min(words.len());
            return (at..=end).any(|next| fits(rest, words, next));
        }
        Part::Any => at < words.len(),
        Part::OneOf(all) => words.get(at).is_some_and(|word| is_one_of(all, word)),
        Part::NoneOf(all) => words.get(at).is_some_and(|word| !is_one_of(all, word)),
    };
    is_word && fits(rest, words, at + 1)
}

fn is_one_of(all: &[&str], word: &str) -> bool {
    all.iter()
        .any(|one| match (one.strip_prefix('*'), one.strip_suffix('*')) {
            (Some(end), _) => word.len() > end.len() && word.ends_with(end),
            (None, Some(start)) => word.starts_with(start),
            (None, None) => *one == "_" || *one == word,
        })
}

/// Words of a lower-case text. Dots, apostrophes and hyphens inside a word are part of it.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in text.chars() {
        if c.is_alphanumeric() || ".'-_".contains(c) {
            if let Some(word) = words.last_mut() {
                word.push(c);
            }
        } else {
            words.push(String::new());
        }
    }
    let trimmed = words
        .iter()
        .map(|word| word.trim_matches(['.', '\'', '-', '_']));
    let found = trimmed.filter(|word| !word.is_empty());
    found.map(str::to_owned).collect()
}

fn parse(file: &'static str) -> Vec<Form> {
    let mut is_english = false;
    let mut forms = Vec::new();
    for line in file
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
    {
        if let Some(language) = line.strip_prefix('[') {
            is_english = language == "en]";
            continue;
        }
        let words = line.strip_prefix("^ ");
        forms.push(Form {
            is_english,
            is_why: words.unwrap_or(line).starts_with("why"),
            is_question: line.ends_with("$?"),
            at_start: words.is_some(),
            parts: match line.strip_prefix('~') {
                Some(piece) => Parts::Piece(piece),
                None => Parts::Words(words.unwrap_or(line).split(' ').map(part).collect()),
            },
        });
    }
    forms
}

fn part(word: &'static str) -> Part {
    match word {
        "_" => Part::Any,
        ".." => Part::Gap,
        "$" | "$?" => Part::End,
        word => match word.strip_prefix('-') {
            Some(others) => Part::NoneOf(others.split('|').collect()),
            None => Part::OneOf(word.split('|').collect()),
        },
    }
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
            "no wildcard routes in this service please, list them",
            "no tables in the replies pls",
            "semicolons not commas in the csv files",
            "docstrings in French",
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

#[cfg(test)]
mod tests_of_statements {
    use super::*;

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

#[cfg(test)]
mod tests_of_own_words {
    use super::*;

    #[test]
    fn only_what_the_person_wrote_is_left() {
        let check = |text: &str, expected: &str| assert_eq!(own_words(text), expected, "{text:?}");
        check("use x", "use x");
        check("see\n```sh\nnpm i\n```\nwhy?", "see\nwhy?");
        check("see\n```\nnot closed", "see");
        check("> quoted\nand mine\n$ ls\n[12:00] log", "and mine");
        check("mine\nnpm WARN old\nValueError: x\nwarning: y", "mine");
        check("a <b c>d</b> e", "a \n e");
        check("1 < 2 and <i> too", "1 < 2 and <i> too");
        check("<é>x</é> <a", "");
        check("<task-notification>always ask</task-notification>", "");
    }

    #[test]
    fn quotations_of_several_words_are_left_out() {
        let check = |text: &str, expected: &str| {
            assert_eq!(without_quotations(text), expected, "{text:?}");
        };
        check("Sam said \"never do this\" again", "Sam said  …  again");
        check("write \"Dear all\" first", "write \"Dear all\" first");
        check("pone «no uses eso, usa otro» ahí", "pone  …  ahí");
        check("„kein Docker mehr hier“ steht da", " …  steht da");
        check("5\" wide\nand 6\" high", "5\" wide\nand 6\" high");
        check("\"", "\"");
    }

    #[test]
    fn lines_and_marks_end_sentences() {
        let check =
            |text: &str, expected: &[&str]| assert_eq!(sentences(text), expected, "{text:?}");
        check("Use v1.2 here! Ok?", &["Use v1.2 here!", "Ok?"]);
        check(
            "- one thing\n2) another thing",
            &["one thing", "another thing"],
        );
        check("ünï çödé; zwei", &["ünï çödé;", "zwei"]);
        check("不要。先问", &["不要。", "先问"]);
        check(&"word ".repeat(81), &[]);
    }
}

#[cfg(test)]
mod tests_of_forms {
    use super::*;

    #[test]
    fn words_of_a_form_stand_in_order() {
        let check = |form: &'static str, text: &str, expected: bool| {
            let form = &parse(form)[0];
            assert_eq!(Sentence::of(text).has(form), expected, "{text:?}");
        };
        check("from now on", "From now on, ask.", true);
        check("from now on", "on now from", false);
        check("stop *ing|it", "Please stop guessing", true);
        check("stop *ing|it", "the bus stop is here", false);
        check("don't -know|think", "I don't know", false);
        check("don't -know|think", "don’t commit", true);
        check("don't -know|think", "I don't", false);
        check("not _ but", "not npm but pnpm", true);
        check("please .. ask", "please do always ask", true);
        check("please .. ask", "please do this one thing, ask", false);
        check("^ use", "just use it", false);
        check("only $", "pnpm only.", true);
        check("only $", "only pnpm", false);
        check("okay $?", "the root stays clean, okay?", true);
        check("always", "is it always so?", false);
        check("why did you", "why did you push?", true);
        check("~不要", "不要用", true);
    }

    #[test]
    fn every_language_has_forms() {
        let (english, others): (Vec<&Form>, Vec<&Form>) =
            FORMS.iter().partition(|form| form.is_english);
        assert!(english.len() > 80 && others.len() > 80);
    }
}
