//! Changes of a call that are never told unasked: they take a safeguard away, or destroy something.
//!
//! Errs on the side of silence. Only what a change adds or drops is judged: the failing call was the
//! agent's own idea.

/// Parts of an option, a variable or a word that take a safeguard away.
const REMOVES: &[&str] = &[
    "force", "no-verify", "noverify", "insecure", "skip", "ignore", "disable", "unsafe", "bypass",
    "dangerous", "allow", "no-check", "nocheck", "break-system", "privileged", "trusted-host",
    "prune", "delete", "purge", "destroy", "reject_unauthorized", "rejectunauthorized",
    "no-strict", "no-frozen", "exit-zero", "passwithnotests", "no-gpg", "no-sandbox",
    "update-snapshot", "assume", "verify=", "continue-on", "no-fail", "warn", "no-audit", "chmod",
    "truncate", "clobber", "overwrite",
];
/// Words of an option or a variable that do so, but not as a part of another word: `--prefix`.
const REMOVING_WORDS: &[&str] = &["fix", "yes", "hard", "ssl", "tls", "clean"];
/// Parts of an option that is a check: to drop it hides the failure.
const CHECKS: &[&str] = &[
    "strict", "werror", "deny", "fail", "check", "frozen", "locked", "max-warnings", "cov",
    "verify", "lint", "test",
];
/// Short options that force or silence.
const SHORT: &[&str] = &["-f", "-fd", "-D", "-k", "-y", "-rf", "-u"];

/// Returns `true` for a change that is never told unasked.
pub(crate) fn is_hazard(added: &[String], dropped: &[String]) -> bool {
    let options = |words: &[String]| -> Vec<String> {
        let lower = words.iter().map(|word| word.to_ascii_lowercase());
        let is_option = |word: &String| word.starts_with('-') || word.contains('=');
        lower.filter(is_option).collect()
    };
    let has = |words: &[String], parts: &[&str]| {
        let options = options(words);
        options
            .iter()
            .any(|word| parts.iter().any(|part| word.contains(part)))
    };
    let is_removing = |option: &String| {
        let mut words = option.split(|c: char| !c.is_ascii_alphanumeric());
        words.any(|word| REMOVING_WORDS.contains(&word))
    };
    let is_cluster = |word: &String| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        let is_short = !letters.starts_with('-') && letters.len() <= 4;
        SHORT.contains(&word.as_str()) || is_short && letters.len() > 1 && letters.starts_with('k')
    };
    has(added, REMOVES)
        || options(added).iter().any(is_removing)
        || has(dropped, CHECKS)
        || added.iter().any(is_cluster)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_safeguard_is_not_taken_away_unasked() {
        let check = |added: &[&str], dropped: &[&str], expected: bool| {
            let own = |words: &[&str]| {
                words
                    .iter()
                    .map(|word| (*word).to_owned())
                    .collect::<Vec<_>>()
            };
            assert_eq!(
                is_hazard(&own(added), &own(dropped)),
                expected,
                "{added:?} {dropped:?}"
            );
        };
        check(&["--no-verify"], &[], true);
        check(&["-DskipTests"], &[], true);
        check(&["-ksS"], &["-sS"], true);
        check(&["NODE_TLS_REJECT_UNAUTHORIZED=0"], &[], true);
        check(&[], &["--frozen-lockfile"], true);
        check(&["--fix"], &[], true);
        check(&["--fix-dry-run"], &[], true);
        check(&["--reset=hard"], &[], true);
        check(&["-DCMAKE_TLS_VERIFY=0"], &[], true);
        check(&["--prefix=/opt"], &[], false);
        check(&["--suffix", "--shard=1"], &[], false);
        check(&["--no-cache"], &[], false);
        check(&["-i"], &["-it"], false);
        check(&["uv", "run"], &[], false);
        check(&["POSTHOG_API_KEY=x"], &[], false);
    }
}
