//! Changes that may be told unasked: the error leads to them, and they do no harm.

use memctl_shell::is_assignment;

use super::change::Change;
use super::success::{hides_its_code, reports_failure};
use super::value::are_accepted;
use crate::lessons::failure::error_line::lacks;
use crate::lessons::vocabulary::WORDS;
use crate::model::Pattern;

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
        let name = word.split('=').next().unwrap_or(word);
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
        let is_named = error.contains(
            word.split('=')
                .next()
                .unwrap_or(word)
                .to_ascii_lowercase()
                .as_str(),
        );
        let word = plain(word).replace("/root/", "/");
        let is_name = word.starts_with('-') || word.contains('=');
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (format!("{name}="), value),
            None if is_name => (word.clone(), ""),
            None => (String::new(), word.as_str()),
        };
        let mut parts = word.split(|c: char| !c.is_ascii_alphanumeric());
        let mut words = value.split(|c: char| !c.is_ascii_alphanumeric());
        let is_identity = |word: &str| WORDS.identities.contains(word);
        WORDS.removes.occur_in(&name)
            || name.contains("no-") && WORDS.checks.occur_in(&name)
            || !is_named
                && name
                    .split(|c: char| !c.is_ascii_alphanumeric())
                    .any(is_identity)
            || WORDS.off.contains(value)
            || words
                .clone()
                .any(|part| part.len() > 1 && WORDS.off.contains(part))
            || words.any(|part| WORDS.removes.contains(part))
            || parts.any(|part| {
                WORDS.removing_words.contains(part) || part != "rm" && WORDS.destroys.contains(part)
            })
    };
    let lower = call.to_ascii_lowercase();
    // `docker run --rm` removes what it made itself.
    let words = lower.split_whitespace().filter(|word| *word != "--rm");
    let mut words = words.flat_map(|word| word.split(|c: char| !c.is_ascii_alphanumeric()));
    words.any(|word| WORDS.destroys.contains(word))
        || WORDS.guards.occur_in(&error)
        || added.iter().any(takes_away)
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
