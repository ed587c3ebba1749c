//! Decides if a call adopts a hint: it contains the difference that the hint advises.
//!
//! The rest of the call may be worded in any way: another file, another order, more flags. Names of
//! the case that the fix was learned from (paths, numbers, the error's own names) do not count.

use crate::learn::fix::INSTALLS;
use crate::learn::fix::difference::{Difference, tokens, words};

use super::shown::Shown;

/// Share of the essential words that a call must have.
const SHARE: f64 = 0.5;

/// Returns `true` if a call does what the shown fix says, and the failing call did not.
pub(crate) fn adopts(call: &str, shown: &Shown) -> bool {
    is_adopted(call, &shown.working_code, &shown.failing_code, &shown.call)
}

/// Returns `true` if `done` has what `working` adds to `failing`. `before` is the call that failed
/// in this session; empty if unknown.
pub(crate) fn is_adopted(done: &str, working: &str, failing: &str, before: &str) -> bool {
    let difference = Difference::between(failing, working);
    let own = Difference::between(if before.is_empty() { failing } else { before }, done);
    if own.is_empty() {
        return false;
    }
    if difference.added.is_empty() {
        // Words are to be left out, or quoted.
        let drops = !difference.dropped.is_empty()
            && difference
                .dropped
                .iter()
                .any(|word| own.dropped.contains(word))
            && own.added.len() <= own.dropped.len();
        return drops || difference.requoted && own.requoted;
    }
    let drops = difference
        .dropped
        .iter()
        .any(|word| own.dropped.contains(word));
    if drops
        && difference.dropped.iter().all(|word| word.starts_with('-'))
        && own.added.len() <= difference.added.len()
    {
        return true;
    }
    let known: Vec<String> = [words(failing), words(before)].concat();
    let installs = installed(working);
    let mut essential: Vec<&String> = difference
        .added
        .iter()
        .filter(|word| !known.contains(word) && (!is_incidental(word) || installs.contains(word)))
        .filter(|word| {
            installs.is_empty() || !word.starts_with('-') && !is_installer(word, working)
        })
        .collect();
    if essential.is_empty() {
        essential = difference
            .added
            .iter()
            .filter(|word| !known.contains(word))
            .collect();
    }
    let has = words(done);
    let parts: Vec<String> = has.iter().flat_map(|word| parts(word)).collect();
    let matched: f64 = essential.iter().map(|word| share(word, &has, &parts)).sum();
    let total = f64::from(u32::try_from(essential.len().max(1)).unwrap_or(u32::MAX));
    matched > 0.0 && matched / total >= SHARE
}

/// Share of a word that a call has, from 0 to 1.
fn share(word: &str, has: &[String], parts_of_call: &[String]) -> f64 {
    let name = word.split('=').next().unwrap_or(word);
    let same_option = |other: &String| {
        let other = other.split('=').next().unwrap_or(other);
        // `-w` is short for `--write`.
        let short = |short: &str, long: &str| {
            let (short, long) = (short.strip_prefix('-'), long.strip_prefix("--"));
            short
                .zip(long)
                .is_some_and(|(short, long)| short.len() == 1 && long.starts_with(short))
        };
        other == name || short(other, name) || short(name, other)
    };
    if has
        .iter()
        .any(|other| other == word || word.starts_with('-') && same_option(other))
    {
        return 1.0;
    }
    let own = parts(name);
    if own.is_empty() {
        return 0.0;
    }
    let has = |part: &&String| {
        parts_of_call.iter().any(|other| {
            other == *part
                || part.len() > 2
                    && (other.starts_with(part.as_str())
                        || other.len() > 2 && part.starts_with(other.as_str()))
        })
    };
    let known = own.iter().filter(has).count();
    if known == own.len() {
        1.0
    } else if known * 2 >= own.len() && own.len() > 1 {
        0.5
    } else {
        0.0
    }
}

/// Details of the case that a fix was learned from.
fn is_incidental(word: &str) -> bool {
    let is_file = (word.contains('/') || word.contains('.')) && !word.starts_with(['-', '@']);
    is_file || word.len() < 4 && word.bytes().all(|b| b.is_ascii_digit()) || word.len() < 2
}

/// Names that the installing commands of a line install.
fn installed(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for part in code.split("&&").flat_map(str::lines) {
        let all = words(part);
        if let Some(at) = all
            .iter()
            .position(|word| INSTALLS.contains(&word.as_str()))
        {
            found.extend(
                all[at + 1..]
                    .iter()
                    .filter(|word| !word.starts_with('-'))
                    .cloned(),
            );
        }
    }
    found
}

/// Words that only say which package manager installs: any of them does.
fn is_installer(word: &str, code: &str) -> bool {
    const MANAGERS: &[&str] = &[
        "pip", "pip3", "python", "python3", "-m", "npm", "yarn", "pnpm", "apt-get", "apt", "brew",
        "dnf", "uv", "poetry", "cargo", "go",
    ];
    // The verb of another program is its own: `playwright install`.
    let of_manager = |verb: &str| {
        let all = words(code);
        let at = all.iter().position(|other| other == verb);
        let before = at.and_then(|at| all.get(at.checked_sub(1)?));
        before.is_none_or(|before| MANAGERS.contains(&before.as_str()))
    };
    MANAGERS.contains(&word) || INSTALLS.contains(&word) && of_manager(word)
}

fn parts(word: &str) -> Vec<String> {
    tokens(word)
        .iter()
        .flat_map(|token| token.split(['-', '_', '/', '@', '.']))
        .filter(|part| part.len() > 1)
        .map(str::to_ascii_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_with_the_difference_adopts_the_hint() {
        let check = |done: &str, working: &str, failing: &str, before: &str, expected: bool| {
            assert_eq!(
                is_adopted(done, working, failing, before),
                expected,
                "{done}"
            );
        };
        let up = ("git push -u origin a", "git push");
        check("git push -u origin b/c", up.0, up.1, "git push", true);
        check("git push --quiet", up.0, up.1, "git push", false);
        check("git push", up.0, up.1, "git push", false);
        let types = ("npm i -D @types/lodash && npx tsc", "npx tsc");
        check(
            "npm i --save-dev @types/lodash",
            types.0,
            types.1,
            "npx tsc",
            true,
        );
        check("npx tsc --strict false", types.0, types.1, "npx tsc", false);
        let browsers = (
            "npx playwright install chromium && npx playwright test",
            "npx playwright test",
        );
        check(
            "npx playwright install", browsers.0, browsers.1, "npm run e2e", true,
        );
        check(
            "npx playwright test --headed",
            browsers.0,
            browsers.1,
            "npm run e2e",
            false,
        );
        let tty = ("docker exec -i db psql", "docker exec -it db psql");
        check(
            "docker exec -i api sh", tty.0, tty.1, "docker exec -it api sh", true,
        );
        let quotes = ("pip install '.[dev]'", "pip install .[dev]");
        check(
            "pip install 'x[y]'", quotes.0, quotes.1, "pip install x[y]", true,
        );
        check(
            "pip install x", quotes.0, quotes.1, "pip install x[y]", false,
        );
    }
}
