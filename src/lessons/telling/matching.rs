//! Lessons and patterns for a failing call, and lessons for a call that is about to run.
//!
//! Order at a failure: lessons whose error phrase is in the output; then the pattern of the same failure in
//! the same project; then records of agents and other programs for such an error. Two patterns of one failure
//! that say different things silence each other.
//!
//! Reads one derived table and the entries that it names, and skips unreadable entries. Text that nobody
//! approved is screened again: an older store may hold text that would be refused today.

use std::collections::{BTreeSet, HashSet};

use crate::lessons::call::commands;
use crate::lessons::failure::normalised;
use crate::lessons::failure::{ErrorLine, Failure};
use crate::lessons::recovery::difference::Change;
use crate::lessons::recovery::hazard::may_be_told;
use crate::lessons::session::call_match::{occurs, quotes_a_glob};
use crate::lessons::storage::advice::{follows, is_heeded};
use crate::lessons::storage::table;
use crate::lessons::storage::words::is_code;
use crate::lessons::telling::hint::Hint;
use crate::lessons::telling::{changed_file, line_before};
use crate::model::text::{
    key_words, one_line, quoted_names, same_program, similarity, telling_words, weight,
};
use crate::model::{Applies, LessonScope, Pattern, Procedure, Record as _, Trust, with_origin};
use crate::store::workspace::Error;
use crate::store::{Here, Pulled, Scoped, Terms};

/// Maximum number of lessons at a failing call.
const LESSONS: usize = 2;
/// Maximum number of entries that one term names: the newest.
const NEWEST: usize = 32;
/// Maximum number of entries that are read.
const READ: usize = 128;
/// Maximum number of words of an output that are looked up.
const MOST_WORDS: usize = 4_000;
/// Maximum number of lines of a failure that are compared: the most specific.
const LINES: usize = 3;
/// Minimum similarity of an error that an agent recorded.
const SIMILAR: f64 = 0.55;
/// Minimum number of specific words of an error that a call of another program may have.
const TELLING: usize = 3;
/// Minimum length of a phrase that decides alone, in characters.
const PHRASE: usize = 12;

/// Returns what is told at a failing call, best first. Reads only.
pub(crate) fn at_failure(
    store: &Scoped,
    failure: &Failure,
    here: &Here<'_>,
    delivered: &[String],
    max_hints: usize,
) -> Result<Vec<Hint>, Error> {
    let mut hints = Vec::new();
    let own = of_store(store, failure, here);
    let is_failed = own.is_err();
    let mut found = own.unwrap_or_default();
    for Pulled { origin, store } in store.others() {
        // A copy that cannot be read is no reason to keep this memory's own lessons back.
        let others = of_store(&store, failure, here).unwrap_or_default();
        found.extend(others.into_iter().map(|one| Found {
            hint: Hint {
                id: with_origin(&one.hint.id, &origin),
                ..one.hint
            },
            ..one
        }));
    }
    if is_failed && found.is_empty() {
        of_store(store, failure, here)?;
    }
    found.retain(|one| !delivered.contains(&one.hint.id));
    found.sort_by(|a, b| {
        let heavier = || weight_of(&b.hint).total_cmp(&weight_of(&a.hint));
        a.rank.cmp(&b.rank).then_with(heavier)
    });
    // An approved pattern is told once, and not as a note of others, too.
    let approved = found.iter().filter(|one| one.hint.trust != Trust::Observed);
    let approved: Vec<Change> = approved.filter_map(|one| one.change.clone()).collect();
    found.retain(|one| {
        let is_repeated = |change: &Change| approved.iter().any(|own| own.repeats(change));
        one.hint.trust != Trust::Observed || !one.change.as_ref().is_some_and(is_repeated)
    });
    let mut lessons = 0;
    let mut seen = HashSet::new();
    for Found { rank, hint, .. } in found {
        lessons += usize::from(rank == Rank::Lesson);
        let is_new = seen.insert((hint.lesson.clone(), hint.working_code.clone()));
        if is_new && (rank != Rank::Lesson || lessons <= LESSONS) && hints.len() < max_hints {
            hints.push(hint);
        }
    }
    Ok(hints)
}

/// Reason to tell a procedure, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Lesson,
    SameFailure,
    Recorded,
    Cue,
}

#[derive(Debug)]
struct Found {
    rank: Rank,
    hint: Hint,
    /// Change that a pattern makes in the failing call.
    change: Option<Change>,
}

/// Weight among procedures of one rank: an approved one first, then the more useful.
fn weight_of(hint: &Hint) -> f64 {
    let approved = f64::from(u8::from(hint.trust != Trust::Observed));
    approved + hint.score / 2.0 + hint.confidence / 4.0
}

fn of_store(store: &Scoped, failure: &Failure, here: &Here<'_>) -> Result<Vec<Found>, Error> {
    let terms = table::open(store)?;
    if terms.is_blank() {
        return Ok(Vec::new());
    }
    let mut found: Vec<Found> = candidates(&terms, failure)
        .into_iter()
        .filter_map(|number| {
            let procedure: Procedure = terms.entry(number)?.parse().ok()?;
            let trust = terms.trust_snapshot().level(&procedure);
            let found = failure.found(&procedure.with_trust(trust), here);
            found.filter(|found| is_admitted(&found.hint))
        })
        .collect();
    silence_conflicts(&mut found);
    Ok(found)
}

/// Numbers of the entries that may be for a failure: those with its line or a phrase first, then
/// those that share words, each newest first.
fn candidates(terms: &Terms, failure: &Failure) -> Vec<u32> {
    let mut exact: Vec<u64> = Vec::new();
    for line in &failure.lines {
        exact.extend([
            table::line_term(&line.text),
            table::line_term(&line.key),
            table::approved_term(&line.key),
        ]);
    }
    let words: BTreeSet<String> = table::words(&failure.output).take(MOST_WORDS).collect();
    exact.extend(words.iter().map(|word| table::phrase_term(word)));
    let lines = failure.lines.iter().take(LINES);
    let words: BTreeSet<String> = lines.flat_map(|line| key_words(&line.key)).collect();
    let similar: Vec<u64> = words.iter().map(|word| table::word_term(word)).collect();
    let mut numbers: Vec<u32> = Vec::new();
    let mut seen = HashSet::new();
    for wanted in [exact, similar] {
        let found = wanted.into_iter();
        let found = found.flat_map(|term| terms.holding(term, NEWEST));
        let found: BTreeSet<u32> = found.collect();
        let found = found.into_iter().rev();
        numbers.extend(found.filter(|number| seen.insert(*number)));
    }
    numbers.truncate(READ);
    numbers
}

impl Failure {
    /// Returns what a procedure has to say about it, and why; `None` if nothing.
    fn found(&self, procedure: &Procedure, here: &Here<'_>) -> Option<Found> {
        if !procedure.is_active() {
            return None;
        }
        let is_here = procedure.is_of(&|name| here.has_project(name));
        let make = |rank, change, score, why: &str, key: &str| {
            Some(Found {
                rank,
                hint: Hint::of(procedure, key, score, why.to_owned()),
                change,
            })
        };
        let key = self.key();
        let is_told = is_here && !procedure.lesson.is_empty();
        let applies = procedure.applies.as_ref().filter(|_| is_told);
        if let Some(applies) = applies.filter(|applies| self.applies(applies)) {
            let why = match applies.scope {
                LessonScope::Everywhere => "its error phrase is in the output",
                LessonScope::Project => "its error phrase, in the same project",
            };
            return make(Rank::Lesson, None, 1.0, why, key);
        }
        let Some(pattern) = &procedure.pattern else {
            let mut lines = self.lines.iter().take(LINES);
            let line = lines.find(|line| table::tells_of(procedure, line))?;
            return make(Rank::Cue, None, 1.0, "it tells of this error", &line.key);
        };
        let is_observed_here = !procedure.origins.is_empty() && is_here && here.is_known();
        let is_trusted = procedure.trust() != Trust::Observed;
        // An older store, or that of somebody else, may hold what would not be learned today.
        let may_act = |change: &Change| is_trusted || may_be_told(pattern, change);
        if is_observed_here && let Some(change) = self.same_failure(pattern).filter(may_act) {
            let why = "same failure in this project";
            return make(
                Rank::SameFailure,
                Some(change),
                1.0,
                why,
                &pattern.error_key,
            );
        }
        if procedure.is_episode() || !(is_trusted || procedure.origins.is_empty()) {
            return None;
        }
        let (score, line) = self.similar(pattern)?;
        let is_same = line.key == normalised(&pattern.error_key);
        // An approved pattern holds for its error, and not for similar ones of other calls.
        if !is_same && !procedure.origins.is_empty() || self.has(&pattern.working_code) {
            return None;
        }
        // Few words are an error of many programs, where the calls are those of a host's tools.
        let is_other = !self.is_own_code
            && !self.code.is_empty()
            && !pattern.failing_code.is_empty()
            && !same_program(&pattern.failing_code, &self.code);
        if is_other && telling_words(&line.key) < TELLING {
            return None;
        }
        let why = ["similar error", "same error"][usize::from(is_same)];
        let change = Change::of(pattern);
        make(Rank::Recorded, change, score, why, &pattern.error_key)
    }

    /// Returns `true` if the conditions of a lesson hold.
    fn applies(&self, applies: &Applies) -> bool {
        let command = self.code.to_lowercase();
        let is_in = |text: &str, phrase: &String| {
            let phrase = one_line(phrase).to_lowercase();
            !phrase.is_empty() && text.contains(&phrase)
        };
        // A short phrase is a word of its own.
        let has = |phrase: &String| {
            let phrase = one_line(phrase).to_lowercase();
            let is_long = phrase.chars().count() >= PHRASE;
            let is_word = |at: usize| {
                let (before, after) = (&self.output[..at], &self.output[at + phrase.len()..]);
                !before.ends_with(char::is_alphanumeric)
                    && !after.starts_with(char::is_alphanumeric)
            };
            let mut places = self.output.match_indices(&phrase);
            !phrase.is_empty() && places.any(|(at, _)| is_long || is_word(at))
        };
        let is_out = |phrase: &String| is_in(&self.output, phrase) || is_in(&command, phrase);
        if applies.not.iter().any(is_out) {
            return false;
        }
        let of_command = || longest_run(&self.code, &applies.commands).is_some();
        // A short phrase decides where it is all that a line says.
        let is_line = |phrase: &str| {
            let is_phrase =
                |line: &ErrorLine| one_line(&line.text).eq_ignore_ascii_case(phrase.trim());
            self.lines.iter().any(is_phrase)
        };
        let decides = |phrase: &&String| {
            phrase.chars().count() >= PHRASE || is_code(phrase) || is_line(phrase)
        };
        applies.errors.iter().filter(decides).any(has)
            || applies.errors.iter().chain(&applies.expected).any(has) && of_command()
    }

    /// Returns the change of a pattern if this is its failure.
    fn same_failure(&self, pattern: &Pattern) -> Option<Change> {
        let line = one_line(pattern.line());
        let is_line = |own: &ErrorLine| one_line(&own.text) == line;
        if line.is_empty() || !self.lines.first().is_some_and(is_line) {
            return None;
        }
        let change = Change::of(pattern)?;
        change.fits(self.call.as_ref()?, &line).then_some(change)
    }

    /// Returns how like the error of a pattern is, and the line that is most like it.
    fn similar(&self, pattern: &Pattern) -> Option<(f64, &ErrorLine)> {
        let key = normalised(&pattern.error_key);
        let own = key_words(&key);
        let lines = self.lines.iter().take(LINES);
        let scored = lines.map(|line| {
            let score = if line.key == key {
                1.0
            } else {
                similarity(&own, &key_words(&line.key), &weight)
            };
            (score, line)
        });
        let (score, line) = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
        if self.is_own_code && line.key == key {
            return Some((score, line));
        }
        // Another name than that of the recorded error is another failure, unless the code has it.
        let is_other =
            |name: &str| !line.text.contains(name) && !pattern.failing_code.contains(name);
        let differs = quoted_names(&pattern.error_line).into_iter().any(is_other);
        (score >= SIMILAR && !differs).then_some((score, line))
    }

    /// Returns `true` if the failing call is already the working one.
    fn has(&self, working: &str) -> bool {
        !self.code.is_empty() && one_line(&self.code) == one_line(working)
    }
}

/// Removes the patterns of one failure that say different things.
fn silence_conflicts(found: &mut Vec<Found>) {
    let same = found.iter().filter(|one| one.rank == Rank::SameFailure);
    let changes: Vec<&Change> = same.filter_map(|one| one.change.as_ref()).collect();
    let is_conflict = changes.iter().any(|a| changes.iter().any(|b| !a.agrees(b)));
    if is_conflict {
        found.retain(|one| one.rank != Rank::SameFailure);
    }
}

/// Returns `true` if a hint may be told: what nobody approved passes the screening. This is the one
/// place that refuses a hint.
fn is_admitted(hint: &Hint) -> bool {
    let texts = [
        &hint.lesson, &hint.error_key, &hint.failing_code, &hint.working_code,
    ];
    hint.trust != Trust::Observed
        || texts
            .iter()
            .all(|text| memctl_redact::admit(text).quarantine.is_none())
}

/// Number of words of the longest of these beginnings that a shell line runs; `None` if it runs none. Behind its fixed words, a
/// beginning may have quoted text and templates.
fn longest_run(code: &str, beginnings: &[String]) -> Option<usize> {
    let prefixes = prefixes(code);
    let run = beginnings.iter().filter(|command| {
        let (fixed, is_whole) = table::fixed(command);
        prefixes.contains(&table::beginning(fixed.into_iter()))
            && (is_whole || occurs(command, code, false))
            && !quotes_a_glob(command, code)
    });
    run.map(|command| command.split_whitespace().count()).max()
}

/// Signs at which a word may be parted: `--only=cart` begins with `--only` and `--only=`.
const PARTS: [char; 4] = ['=', '/', ':', '{'];

/// Beginnings of the simple commands of a shell line, of each length. The last word may be the beginning of one.
fn prefixes(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for simple in commands(code) {
        let words: Vec<&str> = simple.words.iter().map(String::as_str).collect();
        for at in 0..words.len().min(table::COMMAND_WORDS) {
            let (before, last) = (&words[..at], words[at]);
            let is_behind_word = |end: &usize| last[..*end].ends_with(char::is_alphanumeric);
            let signs = last.match_indices(PARTS).map(|(end, _)| end);
            let signs = signs.filter(|end| at > 0 && is_behind_word(end));
            for end in signs.flat_map(|end| [end, end + 1]).chain([last.len()]) {
                let words = before.iter().copied().chain([&last[..end]]);
                found.push(table::beginning(words));
            }
        }
    }
    found
}

/// Returns `true` if a pattern is told before this call, once a person has approved it: the call begins with the
/// failing one, and lacks what made it work.
pub(crate) fn is_told_before(procedure: &Procedure, hint: &Hint, code: &str) -> bool {
    let change = procedure.pattern.as_ref().and_then(Change::of);
    line_before(hint).is_some() && change.is_some_and(|change| change.is_missing_in(code))
}

/// Returns the lessons and the approved patterns for a call that is about to run, best first.
/// `code` need not be redacted: it is compared, and not stored.
pub(crate) fn before_call(store: &Scoped, code: &str, here: &Here<'_>) -> Result<Vec<Hint>, Error> {
    let prefixes = prefixes(code);
    if prefixes.is_empty() {
        return Ok(Vec::new());
    }
    let terms = table::open(store)?;
    if terms.is_blank() {
        return Ok(Vec::new());
    }
    let mut numbers = BTreeSet::new();
    for prefix in &prefixes {
        numbers.extend(terms.holding(table::command_term(prefix), NEWEST));
    }
    let lower = code.to_lowercase();
    let mut found: Vec<(usize, Hint)> = numbers
        .into_iter()
        .rev()
        .filter_map(|number| {
            let procedure: Procedure = terms.entry(number)?.parse().ok()?;
            if !procedure.is_active() || !procedure.is_of(&|name| here.has_project(name)) {
                return None;
            }
            let trust = terms.trust_snapshot().level(&procedure);
            let procedure = procedure.with_trust(trust);
            let hint = Hint::of(&procedure, "", 1.0, "its command".to_owned());
            if procedure.lesson.is_empty() {
                let is_approved = trust != Trust::Observed;
                let is_told = is_approved && is_told_before(&procedure, &hint, code);
                return is_told.then_some((usize::MAX, hint));
            }
            let applies = procedure.applies.as_ref()?;
            let is_out = applies
                .not
                .iter()
                .any(|phrase| !phrase.trim().is_empty() && lower.contains(&phrase.to_lowercase()));
            let length = longest_run(code, &applies.commands).filter(|_| !is_out)?;
            let is_meant = !is_heeded(code, &hint.advice, &applies.commands);
            let hint = Some(hint).filter(|hint| is_meant && is_admitted(hint))?;
            let root = here.root;
            let changed_file = root.and_then(|root| changed_file(root, &procedure.files));
            Some((
                length,
                Hint {
                    changed_file,
                    ..hint
                },
            ))
        })
        .collect();
    // Few lessons fit before a call: the one for more words of it is more to the point.
    found.sort_by(|(a_length, a), (b_length, b)| {
        let heavier = weight_of(b).total_cmp(&weight_of(a));
        heavier.then_with(|| b_length.cmp(a_length))
    });
    let mut hints: Vec<Hint> = Vec::new();
    for (_, hint) in found {
        let is_said = |form: &String| {
            let mut said = hints.iter().flat_map(|hint| &hint.advice);
            said.any(|other| follows(other, form))
        };
        if hint.advice.is_empty() || !hint.advice.iter().all(is_said) {
            hints.push(hint);
        }
    }
    Ok(hints)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginning_with_quoted_text_or_a_template_is_run() {
        let check = |code: &str, beginning: &str, expected: bool| {
            let runs = longest_run(code, &[beginning.to_owned()]).is_some();
            assert_eq!(runs, expected, "{code} | {beginning}");
        };
        check("cd a && rg -n '--all' src", "rg -n \"--", true);
        check("rg -n all src", "rg -n \"--", false);
        check(
            "make report NIGHT=8 2>&1",
            "make report NIGHT=<night>",
            true,
        );
        check("make report", "make report NIGHT=<night>", false);
        check("cd web && echo ===", "echo ===", true);
        check("python3 -c \"\nimport json\"", "python3 -c \" import", true);
        let unquoted = "grep -rn <text> <dir> --include=*.c";
        check("grep -rn main src --include=*.c", unquoted, true);
        check("grep -rn main src", unquoted, false);
        check("grep -rn main src --include='*.c'", unquoted, false);
        check("rg 'a*' && cat src/*.c", "cat src/*.c", true);
        check("cargo test --all", "cargo test", true);
        check("cargo build --features test", "cargo test", false);
        check(
            "go test ./... -v 2>&1 | grep FAIL",
            "go test ./... 2>&1 | grep",
            true,
        );
        check("go test ./...", "go test ./... 2>&1 | grep", false);
        check("hub diff 7 -- a.rs", "hub diff <n> -- <file>", true);
        check("hub diff 7 --names", "hub diff <n> -- <file>", false);
        check("npm test -- --only=cart", "npm test -- --only=…", true);
        check("gofmt -w ./pkg/cart.go", "gofmt -w ./pkg…", true);
        check("gofmt -w ./web", "gofmt -w ./pkg…", false);
        check("gofmt -w ./pkg/cart.go", "gofmt -w ./pkg", true);
        check("gofmt -w ./pkgs", "gofmt -w ./pkg", false);
        check("npm test -- --only=cart", "npm test -- --only=", true);
        check("npm test -- --only=cart", "npm test -- --only", true);
        check("npm test -- --onlyChanged", "npm test -- --only", false);
        check("go build ./cmd", "go build .", false);
        check("ls /tmp", "ls /", false);
        check("echo '=== a'", "echo ===", false);
    }
}
