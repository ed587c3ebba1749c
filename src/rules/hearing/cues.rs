//! Forms of speech of a standing demand, and their match with a sentence.
//!
//! The forms are data (`cues.txt`), in the most common languages. A match costs one comparison of
//! words for each form; nothing is compiled.

use std::sync::LazyLock;

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
struct Form {
    is_english: bool,
    /// Asks for the reason of what the agent did: the only form that a question may have.
    is_why: bool,
    shape: Shape,
}

#[derive(Debug)]
enum Shape {
    Piece(&'static str),
    Words {
        at_start: bool,
        parts: Vec<Part>,
        of_question: bool,
    },
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
        let spoken = |form: &&Form| {
            if form.is_english {
                languages.english
            } else {
                languages.others
            }
        };
        FORMS.iter().filter(spoken).any(|form| self.has(form))
    }

    fn has(&self, form: &Form) -> bool {
        match &form.shape {
            Shape::Piece(piece) => !self.is_question && self.text.contains(piece),
            Shape::Words {
                at_start,
                parts,
                of_question,
            } => {
                if self.is_question != *of_question && !(self.is_question && form.is_why) {
                    return false;
                }
                let last = if *at_start { 1 } else { self.words.len() };
                (0..last).any(|at| fits(parts, &self.words, at))
            }
        }
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
    for line in file.lines().filter(|line| !line.starts_with('#')) {
        if let Some(language) = line.strip_prefix('[') {
            is_english = language == "en]";
        } else if !line.is_empty() {
            forms.push(Form {
                is_english,
                is_why: line.trim_start_matches("^ ").starts_with("why"),
                shape: shape(line),
            });
        }
    }
    forms
}

fn shape(line: &'static str) -> Shape {
    if let Some(piece) = line.strip_prefix('~') {
        return Shape::Piece(piece);
    }
    let mut words = line.split(' ').peekable();
    let at_start = words.next_if_eq(&"^").is_some();
    let parts = words.map(|word| match word {
        "_" => Part::Any,
        ".." => Part::Gap,
        "$" | "$?" => Part::End,
        word => match word.strip_prefix('-') {
            Some(others) => Part::NoneOf(others.split('|').collect()),
            None => Part::OneOf(word.split('|').collect()),
        },
    });
    Shape::Words {
        at_start,
        parts: parts.collect(),
        of_question: line.ends_with("$?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_form_stand_in_order() {
        let check = |form: &'static str, text: &str, expected: bool| {
            let form = Form {
                is_english: true,
                is_why: form.starts_with("why"),
                shape: shape(form),
            };
            assert_eq!(Sentence::of(text).has(&form), expected, "{text:?}");
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
