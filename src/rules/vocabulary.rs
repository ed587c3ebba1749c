//! Word lists that classify messages and corrections of people, as data (`vocabulary.json`). Words are
//! compared, not understood. The forms of a standing demand are in `hearing/cues.txt`.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::model::text::{WordList, word_lists};

/// The lists of the file.
pub(crate) static WORDS: LazyLock<Vocabulary> =
    LazyLock::new(|| word_lists(include_str!("vocabulary.json")));

/// Lists of words and phrases.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vocabulary {
    /// Most common words of English.
    pub(crate) english: WordList,
    /// Words that say little although a call and a message share them.
    pub(crate) common: WordList,
    /// First words of tasks, reports and answers.
    pub(crate) tasks: WordList,
    /// Words before the first one that counts.
    pub(crate) fillers: WordList,
    /// Starts of lines that quote, or show what a program printed.
    pub(crate) foreign: WordList,
    /// Words of a log line, as its first or second one.
    pub(crate) log: WordList,
    /// Phrases of a demand that is for this once.
    pub(crate) once: WordList,
    /// First words of a demand to write something, whose content is no demand.
    pub(crate) makes: WordList,
    /// Words that make a correction hold for more than one output.
    pub(crate) general: WordList,
    /// Words of a bare verdict, which says nothing that a rule could hold.
    pub(crate) verdict: WordList,
    /// Ways to say that this output was wrong.
    pub(crate) past: WordList,
    /// Words that tell how the output was.
    pub(crate) was: WordList,
    /// Verbs in the past whose form does not say so.
    pub(crate) did: WordList,
    /// Words that point at the output.
    pub(crate) this: WordList,
    /// Pieces of words that say what was left out.
    pub(crate) omitted: WordList,
    /// Words of a demand beside what was wrong.
    pub(crate) standing: WordList,
    /// Pieces of words of rules about messages and other text for people.
    pub(crate) messages: WordList,
    /// Pieces of words that say in which environment a program is to be started.
    pub(crate) environments: WordList,
    /// Programs that run nothing from their operands.
    pub(crate) readers: WordList,
    /// Field names of numbers that are judgements.
    pub(crate) judgements: WordList,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_every_list() {
        assert!(WORDS.english.contains("the") && WORDS.past.occur_in("it should have been 5"));
    }
}
