//! A change on one line: the failing call, an arrow, and the call that worked.
//!
//! If the two do not fit, the words that they share at their beginning and their end are left out.
//! So the difference stays in sight, however long the calls are.

use super::text::{clean, end};

/// Arrow between two calls.
const ARROW: &str = " → ";

/// Returns a change in at most `width` columns.
pub(crate) fn change(failing: &str, working: &str, width: usize) -> String {
    let (failing, working) = (flat(failing), flat(working));
    let whole = [failing.as_str(), working.as_str()].join(ARROW);
    if console::measure_text_width(&whole) <= width {
        return whole;
    }
    // The changes before the same call matter, not the call.
    let again = working.strip_suffix(failing.as_str());
    if let Some(changes) = again.and_then(|changes| changes.strip_suffix("; ")) {
        return end(&format!("first: {changes}"), width);
    }
    let old: Vec<&str> = failing.split(' ').collect();
    let new: Vec<&str> = working.split(' ').collect();
    let begin = same(old.iter().zip(&new));
    let rest = old.len().min(new.len()) - begin;
    let tail = same(old.iter().rev().zip(new.iter().rev()).take(rest));
    // A call that only lacks words is recognised by its beginning.
    let short = |words: &[&str], whole: String| {
        if begin + tail == words.len() {
            whole
        } else {
            shortened(words, begin, tail)
        }
    };
    let (old, new) = (short(&old, failing.clone()), short(&new, working.clone()));
    let used = console::measure_text_width(&new) + ARROW.chars().count();
    // The working call matters more, and gets most of the width if both are long.
    let room = width.saturating_sub(used).max(width * 2 / 5);
    end(&[end(&old, room), new].join(ARROW), width)
}

/// Text on one line, redacted before the lines are joined, which would hide a secret.
fn flat(text: &str) -> String {
    let text = clean(&memctl_redact::redact(text).text);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let joined = lines.collect::<Vec<_>>().join("; ");
    joined.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn same<'a>(pairs: impl Iterator<Item = (&'a &'a str, &'a &'a str)>) -> usize {
    pairs.take_while(|(a, b)| a == b).count()
}

/// Words of a call without those that it shares with the other: of the first ones only the program
/// is left.
fn shortened(words: &[&str], begin: usize, tail: usize) -> String {
    let mut parts: Vec<&str> = words.iter().take(begin.min(1)).copied().collect();
    if begin > 1 {
        parts.push("…");
    }
    parts.extend(&words[begin..words.len() - tail]);
    if tail > 0 && parts.last() != Some(&"…") {
        parts.push("…");
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fix_is_shown_by_its_difference() {
        let check = |failing: &str, working: &str, width: usize, expected: &str| {
            let line = change(failing, working, width);
            assert_eq!(line, expected);
            assert!(console::measure_text_width(&line) <= width, "{line}");
        };
        check("npm i", "pnpm i", 40, "npm i → pnpm i");
        check(
            "./go.sh",
            "chmod +x go.sh\n./go.sh",
            60,
            "./go.sh → chmod +x go.sh; ./go.sh",
        );
        check(
            "docker compose -f deploy/compose.yaml up --detach web",
            "docker compose -f deploy/compose.yaml up --detach --wait web",
            50,
            "docker compose -f deploy/comp… → docker … --wait …",
        );
        check(
            "cd /srv/shop && make clean && make deploy",
            "make clean && make deploy",
            44,
            "cd /srv/shop && … → make clean && make depl…",
        );
        check(
            "cargo build --release --locked",
            "Edit Cargo.toml\n- a = 1\n+ a = 2\ncargo build --release --locked",
            50,
            "first: Edit Cargo.toml; - a = 1; + a = 2",
        );
        check(
            "cargo test --all-features --workspace",
            "cargo nextest run --all-features --workspace",
            44,
            "cargo test … → cargo nextest run …",
        );
        let long = "x ".repeat(200);
        check(&long, "y z", 20, &format!("{}x… → y z", "x ".repeat(6)));
    }

    #[test]
    fn a_secret_over_two_lines_stays_out() {
        let secret = format!("gh{}{}", "p_", "a1B2c3D4e5".repeat(4));
        let line = change("a", &format!("export T={secret}\na"), 200);
        assert!(!line.contains(&secret[6..20]), "{line}");
    }
}
