//! Forms of speech that a demand has, of many languages: "never", "from now on", "not X but Y" (`cues.txt`).
//!
//! A line of the file is a form: words in their order. `..` is for some words between, `_` for any one, `a|b` for
//! either, and `-a` for any but this. `^` and `$` are the ends of the sentence, and `~` stands for a piece of a word.
//! English is compared with its own forms alone.
//!
//! Deliberately absent: grammar. A form says that a sentence may be a demand, never of what.

use std::sync::LazyLock;

use super::own_words::words;
use crate::rules::vocabulary::WORDS;

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

    /// Returns `true` if the sentence has a form of these languages. What it says for now, or wants written, is not
    /// meant for good.
    pub(super) fn demands(&self, languages: Languages) -> bool {
        !self.is_once()
            && FORMS.iter().any(|form| {
                let is_spoken = if form.is_english {
                    languages.english
                } else {
                    languages.others
                };
                is_spoken && self.has(form)
            })
    }

    /// Returns `true` for a demand about this once, and for the content of a text to write: "add a test that never …".
    fn is_once(&self) -> bool {
        let has = |word: &str| self.words.iter().any(|one| one == word);
        let is_made = match self.words.as_slice() {
            [verb, article, ..] => {
                WORDS.makes.contains(verb) && ["a", "an", "the"].contains(&article.as_str())
            }
            _ => false,
        };
        WORDS.once.occur_in(&self.text)
            // With an exclamation mark it is about what the agent did, and not only about now.
            || has("yet") && !has("never") && !self.text.ends_with('!')
            || is_made && (has("that") || has("which") || has("about"))
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
