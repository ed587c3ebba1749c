//! Changes and values that may be told unasked: the error leads to them, and they do no harm.
//!
//! A reader of the failure has to find where a value comes from: the error has it, or it is a place here: a file of
//! the project, an installed program, this machine. Whatever else it is may narrow what is checked, reset it, lead to
//! another machine, act as somebody else, or hold only this once.

use std::path::Path;

use super::difference::split_option;
use super::difference::{Change, ChangeKind};
use super::outcome::{hides_its_code, reports_failure};
use crate::lessons::call::{Run, Simple, without_value};
use crate::lessons::failure::error_line::lacks;
use crate::lessons::vocabulary::{WORDS, has_file_ending};
use crate::model::Pattern;
use crate::model::text::WordList;
use memctl_shell::{basename, is_assignment};

/// Returns `true` if the change of a stored pattern may be told: the same conditions as those of a new one, by the
/// line that it has of the error. Another program, or an earlier version, may have stored it.
pub(crate) fn may_be_told(pattern: &Pattern, change: &Change) -> bool {
    let line = pattern.line();
    says_cure(change, line)
        && are_accepted(change, line)
        && !is_hazard(&change.added, &pattern.failing_code, line)
        && !hides_its_code(&pattern.working_code)
        && !reports_failure(&pattern.success_output)
}

/// Returns `true` if the error leads to the change: a text was not understood, the call lacks something, the error names
/// what was added, or the words are the same but for a sign.
pub(super) fn says_cure(change: &Change, line: &str) -> bool {
    let is_named = |word: &String| {
        let name = without_value(word);
        let is_name = name.starts_with("--") && name.len() > 2 || is_assignment(word);
        let mut words = line.split(|c: char| !c.is_alphanumeric() && !"-_".contains(c));
        is_name && words.any(|word| word == name)
    };
    let is_sign = |word: &String| word == "--" || word == "-";
    // Which of two things is meant is content.
    change.is_of_text() && !line.contains("ambiguous")
        || lacks(line)
        || change.added.iter().any(is_named)
        || !change.added.is_empty() && change.added.iter().all(is_sign)
}

/// Returns `true` for a change that is never told unasked: the error is that of a guard, or what is added
/// switches a safeguard off, hides a failure, acts on what others use, or acts as somebody else. Nor is any
/// change of a `call` that destroys something.
pub(super) fn is_hazard(added: &[String], call: &str, error: &str) -> bool {
    let error = error.to_ascii_lowercase();
    let plain = |word: &str| word.to_ascii_lowercase().replace('_', "-");
    let takes_away = |word: &String| {
        let is_named = error.contains(&without_value(word).to_ascii_lowercase());
        let word = plain(word).replace("/root/", "/");
        let is_name = word.starts_with('-') || word.contains('=');
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (format!("{name}="), value),
            None if is_name => (word.clone(), ""),
            None => (String::new(), word.as_str()),
        };
        let mut parts = word.split(|c: char| !c.is_ascii_alphanumeric());
        let mut words = value.split(|c: char| !c.is_ascii_alphanumeric());
        WORDS.removes.occur_in(&name)
            || name.contains("no-") && WORDS.checks.occur_in(&name)
            || !is_named && WORDS.identities.has_word_of(&name)
            || WORDS.off.contains(value)
            || words.any(|part| part.len() > 1 && WORDS.off.contains(part))
            || WORDS.removes.has_word_of(value)
            || parts.any(|part| {
                WORDS.removing_words.contains(part) || part != "rm" && WORDS.destroys.contains(part)
            })
    };
    let lower = call.to_ascii_lowercase();
    // `docker run --rm` removes what it made itself.
    let mut words = lower.split_whitespace().filter(|word| *word != "--rm");
    words.any(|word| WORDS.destroys.has_word_of(word))
        || WORDS.guards.occur_in(&error)
        || added.iter().any(takes_away)
}

/// Directories of installed programs.
const INSTALLED: [&str; 7] = [
    "/opt", "/usr", "/lib", "/nix", "/snap", "/Library", "/Applications",
];

/// Returns `true` if every option and variable that a change adds has a value that may be told. `line` is the
/// deciding line of the error.
pub(super) fn are_accepted(change: &Change, line: &str) -> bool {
    let is_setting = matches!(change.kind, ChangeKind::Option | ChangeKind::Environment);
    let place = Place::of(change, line);
    !is_setting
        || settings(&change.added)
            .iter()
            .all(|(written, value)| place.accepts(written, value.trim()))
}

/// Options and variables of added words, each as it is written (`--region`, `-p`, `SHOP_HOME`), with its value.
fn settings(added: &[String]) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut words = added.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        if word == "--" || word == "-" {
            continue;
        }
        if let Some(setting) = split_option(word) {
            found.push(setting);
        } else if let Some(value) = words.next_if(|next| !next.starts_with('-')) {
            // `--set image.pull=never`, `-e TARGET=web`.
            let is_part = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
            let inner = value.split_once('=');
            let inner = inner.filter(|(name, _)| name.chars().all(is_part));
            found.push(inner.unwrap_or((word, value)));
        }
    }
    found
}

/// Failing command, and what its error says.
struct Place<'a> {
    line: &'a str,
    failing: &'a Simple,
    /// Runs tests: a bare word chooses some of them.
    is_test: bool,
    /// Acts where others see it, or checks the code: another value may be another place, or another check.
    is_guarded: bool,
}

impl<'a> Place<'a> {
    fn of(change: &'a Change, line: &'a str) -> Self {
        let failing = &change.failing;
        let name = Run::of(failing).name.to_ascii_lowercase();
        let is_plain = |word: &&String| !word.starts_with('-') && !word.contains(['/', '.']);
        let bare = failing.words.iter().skip(1).take_while(is_plain).take(2);
        let is_any = |list: &WordList| {
            list.has_word_of(&name) || bare.clone().any(|word| list.has_word_of(word))
        };
        Self {
            line,
            failing,
            is_test: is_any(&WORDS.verdict_programs),
            is_guarded: is_any(&WORDS.reaches_others) || is_any(&WORDS.checkers),
        }
    }

    fn accepts(&self, written: &str, value: &str) -> bool {
        let name = written.trim_start_matches('-').to_ascii_lowercase();
        let lower = value.to_ascii_lowercase();
        if WORDS.narrowing_names.has_word_of(&name) {
            return false;
        }
        if self.has_with_name(written, value) {
            return true;
        }
        if self.is_guarded
            || WORDS.whole_values.contains(&lower)
            || WORDS.loose_words.has_word_of(&lower)
        {
            return false;
        }
        let last = name.rsplit(|c: char| !c.is_ascii_alphanumeric()).next();
        let last = last.unwrap_or_default();
        let asks_for_path = WORDS.path_names.contains(last)
            || last.ends_with("path")
            || !self.is_test && ["-C", "-I", "-L"].contains(&written);
        let is_path = |path: &str| is_of_project(path, asks_for_path) || is_installed(path);
        value.split(':').all(is_path) && !self.is_another(value)
            || is_this_machine(value)
            || self.offers(value)
    }

    /// Returns `true` for a file that takes the place of another one which the error misses, and for a part of what is
    /// tested. That a file is there does not say that it does the same.
    fn is_another(&self, path: &str) -> bool {
        let is_word = |c: char| c.is_alphanumeric() || "-_./".contains(c);
        let words = self.line.split(|c: char| !is_word(c));
        let mut words = words.map(|word| word.trim_end_matches('.'));
        let is_missed = |word: &str| {
            let is_of_call = self.failing.words.iter().any(|own| own.contains(word));
            has_file_ending(word) && !is_of_call && basename(word) != basename(path)
        };
        let error = self.line.to_ascii_lowercase();
        let misses = WORDS.missing_things.occur_in(&error) || error.contains("no rule to make");
        has_file_ending(path) && misses && words.any(is_missed)
            || self.is_test && WORDS.parts_of_tests.has_word_of(&path.to_ascii_lowercase())
    }

    /// Returns `true` if the error has the value with its name: `give BOX=red or BOX=blue`. A mere yes is consent.
    fn has_with_name(&self, written: &str, value: &str) -> bool {
        let is_yes = ["1", "true", "yes", "on"].contains(&value.to_ascii_lowercase().as_str());
        let with_name = [format!("{written}={value}"), format!("{written} {value}")];
        let is_with_name = |text: &String| {
            let mut rest = self.line.match_indices(text.as_str());
            rest.any(|(at, _)| {
                let next = self.line[at + text.len()..].chars().next();
                !next.is_some_and(|c| c.is_alphanumeric() || "-_/".contains(c))
            })
        };
        !is_yes && with_name.iter().any(is_with_name)
    }

    /// Returns `true` if the error has the value among those to choose from. Alone, it may be what is missing.
    fn offers(&self, value: &str) -> bool {
        let is_word = |c: char| c.is_alphanumeric() || "-_./".contains(c);
        let mut words = self.line.split(|c: char| !is_word(c));
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
        let is_bare = value.starts_with(|c: char| c.is_ascii_alphabetic())
            && value.chars().all(is_part)
            && value.len() > 1;
        is_bare
            && !self.is_test
            && WORDS.offers.occur_in(&self.line.to_ascii_lowercase())
            && words.any(|word| word.trim_end_matches('.') == value)
    }
}

/// Returns `true` for a path below the directory of the call. `is_known` says that the name asks for a path.
fn is_of_project(value: &str, is_known: bool) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "-_./@+[]".contains(c);
    let parts: Vec<&str> = value.split('/').collect();
    let first = parts[0];
    // `db.acme.example/shop` is a host.
    let is_host = parts.len() > 1 && first.trim_start_matches('.').contains('.');
    let is_file = has_file_ending(value) || first.starts_with('.') && first.len() > 1;
    value.starts_with(|c: char| c.is_alphabetic() || "._[".contains(c))
        && !parts.contains(&"..")
        && value.chars().all(is_part)
        && !is_host
        && (value == "." || is_known || is_file || parts.len() > 1)
}

/// Returns `true` for the path of an installed program.
fn is_installed(value: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "-_./+@ ".contains(c);
    INSTALLED
        .iter()
        .any(|root| Path::new(value).starts_with(root))
        && !value.split('/').any(|part| part == "..")
        && value.chars().all(is_part)
}

/// Returns `true` for this machine, alone or in an address.
fn is_this_machine(value: &str) -> bool {
    let address = value.split_once("://").map_or(value, |(_, rest)| rest);
    let address = address.split(['/', '?']).next().unwrap_or_default();
    let host = address.rsplit_once('@').map_or(address, |(_, host)| host);
    let is_port = |port: &str| port.bytes().all(|b| b.is_ascii_digit());
    let port = host.rsplit_once(':').filter(|(_, port)| is_port(port));
    let host = port.map_or(host, |(host, _)| host);
    ["localhost", "127.0.0.1", "0.0.0.0", "[::1]", "::1"].contains(&host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_safeguard_is_not_taken_away_unasked() {
        let check = |added: &[&str], error: &str, expected: bool| {
            let own: Vec<String> = added.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(
                is_hazard(&own, "shop run", error),
                expected,
                "{added:?} {error}"
            );
        };
        check(&["--no-verify"], "", true);
        check(&["--ssl-mode", "DISABLED"], "", true);
        check(&["telemetry=off"], "", true);
        check(&["--target", "*"], "", true);
        check(&["--env=production"], "", true);
        check(&["DB_USER=admin"], "", true);
        check(&["-X", "theirs"], "", true);
        check(&["GONOSUMDB=example.org"], "", true);
        check(&["--git-hooks=none"], "", true);
        check(&["--cov_fail_under=40"], "", true);
        check(&["--no-typecheck"], "", true);
        check(&["max-retries=9"], "", true);
        check(&["--legacy-peer-deps"], "", false);
        check(&["/root/tools/bin/shop"], "", false);
        check(&["--colours=8", "--offset=10"], "", false);
        check(&["--fields=total,updated", "skipped,id"], "", false);
        check(&["--policy", "skip"], "", true);
        check(&[".venv/bin/pytest"], "", false);
        check(&["NODE_TLS_REJECT_UNAUTHORIZED=0"], "", true);
        check(&["--fix"], "", true);
        check(&["--fix-dry-run"], "", true);
        check(&["--reset=hard"], "", true);
        check(&["-DCMAKE_TLS_VERIFY=0"], "", true);
        check(&["--prefix=/opt"], "", false);
        check(&["--suffix", "--shard=1"], "", false);
        check(&["--no-cache"], "", false);
        check(&["-i"], "", false);
        check(&["uv", "run"], "", false);
        check(&["POSTHOG_API_KEY=x"], "POSTHOG_API_KEY is not set", false);
        check(&["--as=ci"], "no rights are known", true);
        check(&["SHOP_TOKEN=$OTHER"], "not found", true);
        check(&["SHOP_TOKEN=$OWN"], "SHOP_TOKEN is not set", false);
        check(&["-p", "5433"], "checksum mismatch", true);
        check(&["--rule", "size: off"], "", true);
        check(
            &["DATABASE_URL=postgres://db.live.internal/a"],
            "DATABASE_URL is not set",
            true,
        );
        check(&["CI=true"], "CI is not set", true);
        check(&["SHOP_KEY=dummy"], "SHOP_KEY is not set", true);
        check(&["--config=ci/settings.xml"], "", false);
        let host = ["-h".to_owned(), "db2".to_owned()];
        assert!(is_hazard(&host, "psql -c 'drop table carts'", ""));
    }
}

#[cfg(test)]
mod tests_of_values {
    use super::*;
    use crate::lessons::call::Call;
    use crate::lessons::recovery::difference::difference;

    fn is_accepted(failing: &str, working: &str, line: &str) -> bool {
        let call = |code: &str| Call::of(code, Some("Bash")).unwrap();
        let change = difference(&call(failing), &call(working), line).unwrap();
        are_accepted(&change, line)
    }

    #[test]
    fn value_of_the_project_of_this_machine_or_of_the_error_is_accepted() {
        let check = |failing: &str, working: &str, line: &str| {
            assert!(is_accepted(failing, working, line), "{working} | {line}");
        };
        let none = "shop: a setting is missing";
        check("shop a", "SHOP_CONFIG=conf/a.toml shop a", none);
        check("shop a", "SHOP_HOME=lib shop a", none);
        check("shop a", "LIB_PATH=lib:/usr/lib/shop shop a", none);
        check("shop a", "shop -C web a", none);
        check("shop a", "JDK_HOME=/usr/lib/jvm/21 shop a", none);
        check("shop a", "shop a -h localhost", none);
        check("shop a", "SHOP_URL=http://127.0.0.1:8080/api shop a", none);
        check("shop a", "shop a -c web", "name a container: web or db");
        check("make a", "make a BOX=red", "give BOX=red or BOX=blue");
        check("make test", "make test BOX=all", "give BOX=red or BOX=all");
    }

    #[test]
    fn any_other_value_is_not() {
        let check = |failing: &str, working: &str, line: &str| {
            assert!(!is_accepted(failing, working, line), "{working} | {line}");
        };
        let none = "shop: a setting is missing";
        for working in [
            "shop a --mode rewrite",
            "shop a --profile boxes",
            "shop a --project boxes",
            "shop a --boxes every",
            "shop a --branch main",
            "shop a --head main",
            "shop a --limit 5",
            "shop a --since 2026-03-04",
            "shop a --older-than 0d",
            "shop a --rules /dev/null",
            "shop a --conf ../other/a.toml",
            "shop a --conf ~/a.toml",
            "shop a --baseline new.json",
            "shop a -p 5434",
            "shop a --region north-2",
            "RT_OPTIONS=--max-heap-size=4096 shop a",
            "shop -C .. a",
            "shop a -h 10.1.2.3",
            "SHOP_URL=https://shop.example shop a",
            "SHOP_PATH=/home/ann/other/src shop a",
            "SHOP_KEY=$(cat ~/.key) shop a",
            "SHOP_BOX=db.shop.example/boxes shop a",
            "RT_OPTIONS=--no-checks shop a",
            "ROUND=88172635 shop a",
            "MFA_CODE=493021 shop a",
            "shop a --set image.tag=sha-91aa0c1",
            "shop a --state /tmp/x/state.json",
            "DONE=1 shop a",
        ] {
            check("shop a", working, none);
        }
        check("shop a", "MODE=wipe shop a", "MODE is not set");
        check("shop a", "DONE=true shop a", "DONE is not set");
        check("shop a", "DONE=1 shop a", "set DONE=1 to go on");
        check("shop a", "SHOP_KEY=$OTHER shop a", "SHOP_KEY is not set");
        check("shop a", "SHOP_ENV=test shop a", none);
        check("ctest", "ctest -E imgtest", "no program imgtest");
        check("mocha", "mocha --fgrep cart", "cart is missing");
        check(
            "shop lint",
            "shop lint --config a.toml",
            "config is missing",
        );
        check("rspec", "rspec --tag img", "img is missing");
        check("make a", "make -o cart a", "no rule to make cart");
    }
}
