//! Values that an added option or variable may be told with.
//!
//! A reader of the failure has to find where a value comes from: the error has it, or it is a place here, which the
//! name asks for: a file of the project, an installed program, this machine; or the kind of a name, such as a region.
//! Whatever else it is may narrow what is checked, reset it, lead to another machine, act as somebody else, or hold
//! only this once.

use super::change::{Change, ChangeKind};
use super::difference::split_option;
use crate::lessons::call::{Run, Simple};
use crate::lessons::vocabulary::WORDS;
use crate::model::text::WordList;
use memctl_shell::basename;

/// Maximum distance of a port from one that the error names.
const PORTS: u32 = 10;
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
            .all(|setting| place.accepts(setting))
}

/// Option or variable with its value.
#[derive(Debug)]
struct Setting<'a> {
    /// As it is written: `--region`, `-p`, `SHOP_HOME`.
    written: &'a str,
    value: &'a str,
}

impl Setting<'_> {
    /// Words of the name, in lower case.
    fn words(&self) -> Vec<String> {
        let name = self.written.trim_start_matches('-').to_ascii_lowercase();
        let words = name.split(|c: char| !c.is_ascii_alphanumeric());
        words
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    }
}

/// Options and variables of added words.
fn settings(added: &[String]) -> Vec<Setting<'_>> {
    let mut found = Vec::new();
    let mut words = added.iter().peekable();
    while let Some(word) = words.next() {
        if word == "--" || word == "-" {
            continue;
        }
        if let Some((written, value)) = split_option(word) {
            found.push(Setting { written, value });
        } else if let Some(value) = words.next_if(|next| !next.starts_with('-')) {
            // `--set image.pull=never`, `-e TARGET=web`.
            let inner = value.split_once('=').filter(|(name, _)| {
                let is_name = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
                !name.is_empty() && name.chars().all(is_name)
            });
            let is_single = inner.is_some_and(|(_, value)| !value.contains(['=', ',']));
            match inner.filter(|_| is_single) {
                Some((written, value)) => found.push(Setting { written, value }),
                None => found.push(Setting {
                    written: word,
                    value,
                }),
            }
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
    /// Acts where others see it: another file may be another place.
    reaches_others: bool,
    /// Checks the code: another configuration is another check.
    is_checker: bool,
}

impl<'a> Place<'a> {
    fn of(change: &'a Change, line: &'a str) -> Self {
        let failing = &change.failing;
        let name = Run::of(failing).name.to_ascii_lowercase();
        let is_plain = |word: &&String| !word.starts_with('-') && !word.contains(['/', '.']);
        let bare = failing.words.iter().skip(1).take_while(is_plain).take(2);
        let named = |list: &WordList, text: &str| {
            let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
            words.any(|word| list.contains(word))
        };
        let is_any = |list| named(list, &name) || bare.clone().any(|word| named(list, word));
        Self {
            line,
            failing,
            reaches_others: is_any(&WORDS.reaches_others),
            is_test: is_any(&WORDS.verdict_programs),
            is_checker: is_any(&WORDS.checkers),
        }
    }

    fn accepts(&self, setting: &Setting<'_>) -> bool {
        let Setting { written, value } = setting;
        let value = value.trim();
        let words = setting.words();
        let last = words.last().map_or("", String::as_str);
        let lower = value.to_ascii_lowercase();
        let mut parts = lower.split(|c: char| !c.is_ascii_alphanumeric());
        // Options of an interpreter: `NODE_OPTIONS=--max-old-space-size=4096`.
        if value.starts_with('-') {
            return self.are_options(value);
        }
        let is_any = |list: &WordList| words.iter().any(|word| list.contains(word));
        if self.has_with_name(written, value) {
            return !is_any(&WORDS.narrowing_names);
        }
        if value.is_empty()
            || WORDS.whole_values.contains(&lower)
            || parts.any(|part| WORDS.loose_words.contains(part))
            || self.is_checker && is_any(&WORDS.rule_names)
            || is_any(&WORDS.narrowing_names) && *written != "-tags"
        {
            return false;
        }
        let is_path_name = WORDS.path_names.contains(last)
            || last.ends_with("path")
            || !self.is_test && ["-C", "-I", "-L"].contains(written);
        let is_paths = last.ends_with("path") || last == "cp";
        let is_path = |path: &str| is_of_project(path, is_path_name) || is_installed(path);
        is_path(value) && !self.is_another(value)
            || is_paths
                && value
                    .split(':')
                    .all(|path| is_of_project(path, true) || is_installed(path))
            || is_local(value)
            || self.is_near_port(last, value)
            || *written == "PORT" && value.parse().is_ok_and(is_usual)
            || *written == "-C" && value.split('/').all(|part| part == "..")
            || self.has(written, value)
            || is_bare(value) && WORDS.plain_names.contains(last)
            || self.asks_for_memory() && is_size(value)
            || self.names(written) && is_list_of_names(value)
    }

    /// Returns `true` for a file that takes the place of another one which the error misses, for a part of what is
    /// checked, and for the settings of a call that others see. That a file is there does not say that it does the same.
    fn is_another(&self, path: &str) -> bool {
        let ending = |path: &str| path.rsplit_once('.').map(|(_, ending)| ending.to_owned());
        let is_file =
            |path: &str| ending(path).is_some_and(|ending| WORDS.file_endings.contains(&ending));
        let is_word = |c: char| c.is_alphanumeric() || "-_./".contains(c);
        let mut words = self
            .line
            .split(|c: char| !is_word(c))
            .map(|word| word.trim_end_matches('.'));
        let is_missed = |word: &str| {
            let is_of_call = self.failing.words.iter().any(|own| own.contains(word));
            is_file(word) && !is_of_call && basename(word) != basename(path)
        };
        let error = self.line.to_ascii_lowercase();
        let misses = WORDS.missing_things.occur_in(&error) || error.contains("no rule to make");
        let lower = path.to_ascii_lowercase();
        let mut parts = lower.split(|c: char| !c.is_ascii_alphanumeric());
        is_file(path) && (self.reaches_others || misses && words.any(is_missed))
            || self.is_test && parts.any(|part| WORDS.parts_of_tests.contains(part))
    }

    /// Returns `true` if each option in a value has a value that may be told, or is in the error.
    fn are_options(&self, value: &str) -> bool {
        value.split_whitespace().all(|option| {
            if let Some((written, value)) = option.split_once('=') {
                return !value.starts_with('-') && self.accepts(&Setting { written, value });
            }
            let is_heap = option
                .strip_prefix("-Xmx")
                .is_some_and(|size| self.asks_for_memory() && is_size(size));
            is_heap || self.line.split_whitespace().any(|word| word == option)
        })
    }

    /// Returns `true` if the error names an option or a variable.
    fn names(&self, written: &str) -> bool {
        let is_part = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        let bare = written.trim_start_matches('-');
        let mut words = self.line.split(|c: char| !is_part(c));
        words.any(|word| word == written || bare.len() > 3 && word.trim_end_matches('.') == bare)
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
    fn has(&self, written: &str, value: &str) -> bool {
        let is_word = |c: char| c.is_alphanumeric() || "-_./".contains(c);
        let mut words = self.line.split(|c: char| !is_word(c));
        let is_tag = written == "-tags" || written == "--features";
        is_bare(value)
            && value.len() > 1
            && !self.is_test
            && WORDS.offers.occur_in(&self.line.to_ascii_lowercase())
            && words.any(|word| word.trim_end_matches('.') == value)
            || is_tag
                && value
                    .split(['_', ','])
                    .any(|part| part.len() > 2 && self.names(part))
    }

    /// Returns `true` for a port beside one that the error names: this machine's second server.
    fn is_near_port(&self, last: &str, value: &str) -> bool {
        let is_port = ["p", "port"].contains(&last) || last.ends_with("port");
        let Some(port) = value.parse::<u32>().ok().filter(|_| is_port) else {
            return false;
        };
        let numbers = self.line.split(|c: char| !c.is_ascii_digit());
        let mut numbers = numbers.filter_map(|number| number.parse::<u32>().ok());
        numbers.any(|named| named >= 80 && named.abs_diff(port) <= PORTS)
    }

    fn asks_for_memory(&self) -> bool {
        let lower = self.line.to_ascii_lowercase();
        lower.contains("memory") || lower.contains("heap")
    }
}

/// Returns `true` for a word without anything that a shell or a program would read as more.
fn is_bare(value: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    value.starts_with(|c: char| c.is_ascii_alphabetic()) && value.chars().all(is_part)
}

/// Returns `true` for a path below the directory of the call. `is_known` says that the name asks for a path.
fn is_of_project(value: &str, is_known: bool) -> bool {
    let value = ["$PWD", "${PWD}", "$(pwd)"]
        .iter()
        .find_map(|here| value.strip_prefix(here))
        .map_or(value, |below| {
            if below.is_empty() {
                "."
            } else {
                below.trim_start_matches('/')
            }
        });
    let is_part = |c: char| c.is_alphanumeric() || "-_./@+[]".contains(c);
    let parts: Vec<&str> = value.split('/').collect();
    let first = parts[0];
    // `db.acme.example/shop` is a host.
    let is_host = parts.len() > 1 && first.trim_start_matches('.').contains('.');
    let ending = value.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_file = WORDS.file_endings.contains(ending) || first.starts_with('.') && first.len() > 1;
    !value.is_empty()
        && value.starts_with(|c: char| c.is_alphabetic() || "._[".contains(c))
        && !parts.contains(&"..")
        && value.chars().all(is_part)
        && !is_host
        && (value == "." || is_known || is_file || parts.len() > 1)
}

/// Returns `true` for the path of an installed program.
fn is_installed(value: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "-_./+@ ".contains(c);
    let is_below = |root: &&str| {
        let rest = value.strip_prefix(*root);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    INSTALLED.iter().any(is_below)
        && !value.split('/').any(|part| part == "..")
        && value.chars().all(is_part)
}

/// Returns `true` for this machine, alone or in an address, at a usual port.
fn is_local(value: &str) -> bool {
    let rest = match value.split_once("://") {
        Some((_, rest)) => rest,
        None => value,
    };
    if let Some(path) = value.strip_prefix("sqlite:") {
        return is_of_project(path.trim_start_matches("//"), true);
    }
    let (address, _) = rest.split_once(['/', '?']).unwrap_or((rest, ""));
    let host = address.rsplit_once('@').map_or(address, |(_, host)| host);
    let (host, port) = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (name, port),
        _ => (host, ""),
    };
    let is_here = ["localhost", "127.0.0.1", "0.0.0.0", "[::1]", "::1"].contains(&host);
    is_here && (port.is_empty() || port.parse().is_ok_and(is_usual))
}

/// Returns `true` for a port that servers use. A rare one may be a tunnel.
fn is_usual(port: u32) -> bool {
    matches!(port, 80 | 443 | 1025..=5999 | 6379..=6389 | 7000..=9999 | 11211 | 27017..=27019)
}

/// Returns `true` for a size of memory: `2048`, `4g`, `512MB`.
fn is_size(value: &str) -> bool {
    let unit = value.trim_start_matches(|c: char| c.is_ascii_digit());
    let units = ["", "k", "m", "g", "kb", "mb", "gb", "ki", "mi", "gi"];
    unit.len() < value.len() && units.contains(&unit.to_ascii_lowercase().as_str())
}

/// Returns `true` for names with values: `platform=iOS Simulator,name=iPhone 15`.
fn is_list_of_names(value: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || " ._-".contains(c);
    value.split(',').all(|one| {
        let (name, value) = one.split_once('=').unwrap_or_default();
        let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphabetic());
        is_name && !value.is_empty() && value.chars().all(is_part)
    })
}

#[cfg(test)]
mod tests {
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
        check("shop a", "shop a --settings $PWD/a.toml", none);
        check("shop a", "LIB_PATH=lib:/usr/lib/shop shop a", none);
        check("shop a", "shop -C web a", none);
        check("shop a", "JDK_HOME=/usr/lib/jvm/21 shop a", none);
        check("shop a", "shop a -h localhost", none);
        check("shop a", "SHOP_URL=http://127.0.0.1:8080/api shop a", none);
        check("shop a", "DB_URL=sqlite:cart.db shop a", none);
        check("shop a", "shop a -p 5434", "refused at port 5432");
        check("shop a", "shop a --region north-2", none);
        check("shop a", "shop a -c web", "name a container: web or db");
        check("make a", "make a BOX=red", "give BOX=red or BOX=blue");
        check("make test", "make test BOX=all", "give BOX=red or BOX=all");
        check(
            "shop a",
            "shop a --phone 'model=X 5,size=7'",
            "give --phone",
        );
        check(
            "shop a",
            "RT_OPTIONS=--max-heap-size=4096 shop a",
            "out of memory",
        );
        check(
            "go test ./a",
            "go test -tags with_zlib ./a",
            "no module: zlib",
        );
        check("shop a", "PORT=3001 shop a", "PORT is not set");
        check("shop a", "shop -C .. a", none);
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
            "shop a -p 6000",
            "shop a -h 10.1.2.3",
            "SHOP_URL=https://shop.example shop a",
            "SHOP_URL=http://localhost:16000 shop a",
            "SHOP_PATH=/home/ann/other/src shop a",
            "SHOP_KEY=$(cat ~/.key) shop a",
            "SHOP_BOX=db.shop.example/boxes shop a",
            "RT_OPTIONS=--no-checks shop a",
            "ROUND=88172635 shop a",
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
