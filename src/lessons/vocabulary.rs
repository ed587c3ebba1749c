//! Word lists that classify calls and their outputs: programs by purpose, options, and the forms in which
//! tools and hosts report a failure.
//!
//! They are data (`vocabulary.json`); the words are compared, not understood. A new language or tool extends
//! its list there.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::model::text::{WordList, word_lists};

/// The lists of the file.
pub(crate) static WORDS: LazyLock<Vocabulary> =
    LazyLock::new(|| word_lists(include_str!("vocabulary.json")));

/// Returns `true` for a name with an extension that makes it a file.
pub(crate) fn has_file_ending(name: &str) -> bool {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| WORDS.file_endings.contains(ending))
}

/// Lists of words and phrases.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vocabulary {
    /// Wrappers that do not change what a command does.
    pub(crate) plain_wrappers: WordList,
    /// Programs with subcommands.
    pub(crate) layered: WordList,
    /// Subcommands with subcommands of their own.
    pub(crate) deeper: WordList,
    /// Programs that only read or search.
    pub(crate) looks: WordList,
    /// Programs that print existing content: lines of files, messages.
    pub(crate) prints_content: WordList,
    /// Programs for setup or messages, which are never the goal of a line.
    pub(crate) around: WordList,
    /// Interpreters that run a file.
    pub(crate) interpreters: WordList,
    /// Runners that run a program by name.
    pub(crate) runners: WordList,
    /// Programs that run a program by name with `run`.
    pub(crate) managers: WordList,
    /// Programs whose exit code 1 means "no", not a failure.
    pub(crate) probes: WordList,
    /// Programs and subcommands that only tell something.
    pub(crate) observations: WordList,
    /// Programs and subcommands that make, run, set or end something, or let time pass.
    pub(crate) acts: WordList,
    /// Beginnings of a statement that asks a database, and changes nothing.
    pub(crate) reading_statements: WordList,
    /// Words that no prefix begins with.
    pub(crate) no_prefix: WordList,
    /// Options that only change how much is printed.
    pub(crate) verbosity: WordList,
    /// Options that choose a part of the goal.
    pub(crate) selectors: WordList,
    /// Parts of an option, a value or a variable that take a safeguard away, or destroy something.
    pub(crate) removes: WordList,
    /// Words of a call that destroys something: another form of it may do so elsewhere.
    pub(crate) destroys: WordList,
    /// Words of them that do so, but not as a part of another word: `--prefix`.
    pub(crate) removing_words: WordList,
    /// Values that switch something off, or mean everything.
    pub(crate) off: WordList,
    /// Parts of an option that is a check, which `no-` switches off.
    pub(crate) checks: WordList,
    /// Messages that a call lacks something, or is not understood.
    pub(crate) lacks: WordList,
    /// Messages of guards, of services that are away, and of what is found or compared.
    pub(crate) guards: WordList,
    /// Words of an option or a variable by which a call acts as somebody else.
    pub(crate) identities: WordList,
    /// Last words of names that ask for a file or a directory.
    pub(crate) path_names: WordList,
    /// Words of names that choose a part, give consent, or hold for one case.
    pub(crate) narrowing_names: WordList,
    /// Messages that offer values to choose from.
    pub(crate) offers: WordList,
    /// Values that mean everything, nothing, or what others use.
    pub(crate) whole_values: WordList,
    /// Words of values that loosen a check, or hold a secret.
    pub(crate) loose_words: WordList,
    /// Words of a call that acts where others see it.
    pub(crate) reaches_others: WordList,
    /// Further words of commands whose effect others see.
    pub(crate) seen_by_others: WordList,
    /// Words of paths that are a part of what is tested.
    pub(crate) parts_of_tests: WordList,
    /// Words of the names of checkers of code.
    pub(crate) checkers: WordList,
    /// Options whose value is prose.
    pub(crate) prose_options: WordList,
    /// Beginnings of lines in which a test runner or a checker says what it found.
    pub(crate) verdicts: WordList,
    /// Parts of such lines.
    pub(crate) verdicts_within: WordList,
    /// Marks at the beginning of a line that report a failure.
    pub(crate) failure_marks: WordList,
    /// Names of counts of failures.
    pub(crate) failure_counts: WordList,
    /// Messages that nothing was tested or done.
    pub(crate) nothing_ran: WordList,
    /// Messages of a run that changes nothing on purpose.
    pub(crate) rehearsals: WordList,
    /// Words of the names of test runners and checkers.
    pub(crate) verdict_programs: WordList,
    /// Words of the names of tools whose command is a shell line.
    pub(crate) shell_words: WordList,
    /// Names of further such tools.
    pub(crate) shell_tools: WordList,
    /// Parts of the names of tools that read, search or change files.
    pub(crate) file_tools: WordList,
    /// Phrases of hosts for a call that was not executed, or whose end is not known.
    pub(crate) void: WordList,
    /// Words before an exit code that some hosts append.
    pub(crate) exit_marks: WordList,
    /// Beginnings of lines near the end of a failing output.
    pub(crate) failed_lines: WordList,
    /// Error messages of shells and small programs.
    pub(crate) complaints: WordList,
    /// Names of shells before their messages.
    pub(crate) shells: WordList,
    /// Error messages of agents' edit tools.
    pub(crate) refused_edits: WordList,
    /// Beginnings of a short text that refuses a call.
    pub(crate) refusals: WordList,
    /// Messages about a thing that is not there.
    pub(crate) missing_things: WordList,
    /// Messages about a program or a subcommand that is not there.
    pub(crate) missing_programs: WordList,
    /// Messages about a module or a program that a call needs.
    pub(crate) missing_surroundings: WordList,
    /// Beginnings of advice and decoration.
    pub(crate) asides: WordList,
    /// Beginnings of an explicit error.
    pub(crate) stated: WordList,
    /// Parts of an explicit error.
    pub(crate) stated_within: WordList,
    /// Words of any failure.
    pub(crate) failure_words: WordList,
    /// Beginnings of lines that only report an earlier failure.
    pub(crate) summaries: WordList,
    /// Lines that say nothing but that something failed.
    pub(crate) whole_summaries: WordList,
    /// Beginnings of lines that hosts add around an output.
    pub(crate) frames: WordList,
    /// Extensions that make a bare name a file.
    pub(crate) file_endings: WordList,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_every_list() {
        assert!(WORDS.looks.contains("git log") && WORDS.failed_lines.begin("FAIL\tx"));
    }
}
