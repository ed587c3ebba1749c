//! Calls that change nothing: what may stand between a failure and its cure.

use memctl_sessions::Step;

use super::episodes::writes;
use super::goal::{Goal, GoalKind};
use crate::lessons::call::{Run, Simple, commands};
use crate::lessons::vocabulary::WORDS;

/// Returns `true` for a call that changes nothing: every command of it asks for information.
pub(super) fn only_observes(step: &Step) -> bool {
    if !matches!(Goal::of(step).kind, GoalKind::Shell(_)) || writes(step) {
        return false;
    }
    let is_observation = |word: &str| {
        let listed = |first| ["describe", "get", "list", "show"].contains(&first);
        WORDS.observations.contains(word)
            || word.split_once('-').is_some_and(|(first, _)| listed(first))
    };
    // `-h` before a value is the host of a database.
    let asks = |words: &[String]| {
        let is_long = |word: &String| {
            let lists = ["--list", "--dry-run", "--just-print", "--tasks", "-version"];
            matches!(word.as_str(), "--help" | "--version") || lists.contains(&word.as_str())
        };
        let last = words.last().map_or("", String::as_str);
        words.iter().any(is_long) || matches!(last, "-h" | "-V")
    };
    let asks_database = |words: &[String]| {
        let mut statements = words
            .iter()
            .skip(1)
            .filter(|word| is_statement(word))
            .peekable();
        statements.peek().is_some() && statements.all(|text| reads(text))
    };
    let observes = |simple: &Simple| {
        let run = Run::of(simple);
        let bare = simple.words.iter().skip(1);
        let mut bare = bare.take_while(|word| !word.starts_with('-'));
        // `poetry env info`, `aws configure list-profiles`.
        let first = bare.next().is_some_and(|word| !acts(word));
        let second = bare.next().is_some_and(|word| is_observation(word));
        let last = run.name.rsplit(' ').next().unwrap_or_default();
        run.looks
            || WORDS.around.contains(&run.name) && !acts(&run.name)
            || is_observation(last)
            || is_observation(&run.name)
            || simple.words.get(1).is_some_and(|option| {
                option.starts_with('-') && is_observation(&format!("{} {option}", simple.program()))
            })
            || first && second
            || asks(&simple.words)
            || asks_database(&simple.words)
    };
    let line = step.command().unwrap_or_default();
    let commands = commands(&line);
    !commands.is_empty() && commands.iter().all(observes)
}

/// Returns `true` for a word that makes, runs, sets, ends or destroys something, or lets time pass.
fn acts(word: &str) -> bool {
    WORDS.acts.contains(word) || WORDS.destroys.contains(word)
}

/// Returns `true` for text that asks a database, and changes nothing in it: `select …`, `\d orders`.
fn reads(text: &str) -> bool {
    let mut statements = text.split(';').map(str::trim).filter(|one| !one.is_empty());
    let begins = |one: &str| {
        let first = one.split_whitespace().next().unwrap_or_default();
        WORDS
            .reading_statements
            .contains(&first.to_ascii_lowercase())
    };
    statements.all(begins)
}

/// Returns `true` for text that may be a statement for a database.
fn is_statement(text: &str) -> bool {
    text.contains(char::is_whitespace) || text.starts_with('\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_to_a_database_changes_nothing() {
        let check = |command: &str, expected: bool| {
            let observes = only_observes(&Step::of_call("Bash", command));
            assert_eq!(observes, expected, "{command}");
        };
        check(r"psql -d app -c '\d users'", true);
        check("psql -c 'SELECT count(*) FROM carts; select 1'", true);
        check("mysql shop -e 'show tables'", true);
        check("psql -c 'select 1; delete from carts'", false);
        check("psql -c 'insert into carts values (1)'", false);
        check("psql -f select", false);
        check("psql -h localhost -c 'insert into carts values (1)'", false);
        check("psql -h localhost -c 'select 1'", true);
        check("psql -c 'select 1' -c 'delete from carts'", false);
        check("shop -h", true);
        check("rake -T rows && make -n pack && npm run", true);
        check("npm run seed", false);
    }
}
