//! Pattern language of checks.
//!
//! In a word, `*` stands for any characters and `?` for one. A command pattern is a program and
//! words behind it: `npm`, `git push --force`, `* --no-verify`. The program has to be the first;
//! the other words have to occur in this order, with anything between.
//!
//! A path pattern is relative to the project. `*` stays within one name, and `**` crosses
//! directories. Without a slash, it matches a name anywhere: `package-lock.json`, `*.pb.go`. A
//! pattern that matches a directory matches everything below.

/// Reason to refuse a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A command pattern with operators.
    #[error("a command pattern is one command, without `|`, `&`, `;`, `<`, `>` and quotes")]
    Operator,
    /// A pattern that every call would match.
    #[error("the pattern matches every call")]
    Everything,
    /// A pattern that is too long.
    #[error("a pattern has at most 200 characters")]
    Long,
}

/// Maximum length of a pattern, in bytes.
const LONGEST: usize = 200;

/// Returns the reason to refuse a pattern; `None` if it can be stored.
pub fn refused(name: &str, pattern: &str) -> Option<Refused> {
    if pattern.len() > LONGEST {
        return Some(Refused::Long);
    }
    if name == "command" && pattern.contains(['|', '&', ';', '<', '>', '"', '\'', '\n']) {
        return Some(Refused::Operator);
    }
    let is_wild = |c: char| c == '*' || c == '/' || c.is_whitespace() || c == '.';
    (!pattern.is_empty() && pattern.chars().all(is_wild)).then_some(Refused::Everything)
}

/// Returns `true` if a word has wildcards.
pub(super) fn is_open(word: &str) -> bool {
    word.contains(['*', '?'])
}

/// Returns `true` if a word matches a pattern as a whole.
pub(super) fn matches_word(pattern: &str, word: &str) -> bool {
    let (pattern, word): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), word.chars().collect());
    // Place behind the last `*`, and the end of the text that it stands for.
    let mut star: Option<(usize, usize)> = None;
    let (mut p, mut w) = (0, 0);
    while w < word.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p + 1, w));
                p += 1;
            }
            Some(c) if *c == '?' || *c == word[w] => {
                p += 1;
                w += 1;
            }
            _ => match &mut star {
                Some((behind, end)) => {
                    *end += 1;
                    (p, w) = (*behind, *end);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Returns `true` if a tool name matches one of the alternatives of a pattern, ignoring case.
pub(super) fn matches_tool(pattern: &str, tool: &str) -> bool {
    let tool = tool.to_lowercase();
    let mut alternatives = pattern.split('|').map(str::trim);
    alternatives.any(|one| !one.is_empty() && matches_word(&one.to_lowercase(), &tool))
}

/// Returns `true` if a command matches a pattern.
pub(super) fn matches_command(pattern: &str, words: &[String]) -> bool {
    let mut wanted = pattern.split_whitespace();
    let (Some(program), Some(first)) = (wanted.next(), words.first()) else {
        return false;
    };
    let mut rest = words[1..].iter();
    matches_word(program, first) && wanted.all(|wanted| rest.any(|word| matches_word(wanted, word)))
}

/// Returns `true` if a path, or a directory above it, matches a pattern.
pub(super) fn matches_path(pattern: &str, path: &str) -> bool {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    let trimmed = pattern.trim_end_matches('/');
    if !trimmed.contains('/') {
        return !trimmed.is_empty() && names.iter().any(|name| matches_word(trimmed, name));
    }
    if trimmed.starts_with('/') != path.starts_with('/') && !trimmed.starts_with("**/") {
        return false;
    }
    let wanted: Vec<&str> = trimmed.split('/').filter(|name| !name.is_empty()).collect();
    // `open[n]`: the first names match the first `n` parts of the pattern.
    let mut open = vec![false; wanted.len() + 1];
    open[0] = true;
    skip_empty(&wanted, &mut open);
    for name in names {
        let mut next = vec![false; wanted.len() + 1];
        for (n, part) in wanted.iter().enumerate().filter(|(n, _)| open[*n]) {
            if *part == "**" {
                next[n] = true;
                // At the end, it stands for one name at least: a directory is not below itself.
                next[n + 1] |= n + 1 == wanted.len();
            } else if matches_word(part, name) {
                next[n + 1] = true;
            }
        }
        skip_empty(&wanted, &mut next);
        open = next;
        if open[wanted.len()] {
            return true;
        }
    }
    false
}

/// Lets `**` stand for no directory, except at the end.
fn skip_empty(wanted: &[&str], open: &mut [bool]) {
    for n in 0..wanted.len().saturating_sub(1) {
        open[n + 1] |= open[n] && wanted[n] == "**";
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_match_with_wildcards() {
        let check = |pattern: &str, word: &str, expected: bool| {
            assert_eq!(matches_word(pattern, word), expected, "{pattern} {word}");
        };
        check("npm", "npm", true);
        check("npm", "pnpm", false);
        check("npm", "npmx", false);
        check("*", "", true);
        check("*.py", "a.py", true);
        check("a*b*c", "axxbxxbc", true);
        check("a*b*c", "axxbxxb", false);
        check("?pm", "npm", true);
        check("?pm", "pm", false);
        check("", "", true);
        check("", "a", false);
        check("*é?", "aéß", true);
    }

    #[test]
    fn commands_match_by_program_and_later_words() {
        let check = |pattern: &str, command: &str, expected: bool| {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(
                matches_command(pattern, &words),
                expected,
                "{pattern}: {command}"
            );
        };
        check("npm", "npm install x", true);
        check("npm install", "npm --silent install x", true);
        check("npm install", "npm test", false);
        check("git push --force", "git push origin main --force", true);
        check("git push --force", "git push --force-with-lease", false);
        check("git push --force*", "git push --force-with-lease", true);
        check("git --force push", "git push --force", false);
        check("* --no-verify", "git commit --no-verify", true);
        check("npm", "echo npm", false);
        check("", "npm", false);
    }

    #[test]
    fn paths_match_by_name_or_from_the_project() {
        let check = |pattern: &str, path: &str, expected: bool| {
            assert_eq!(matches_path(pattern, path), expected, "{pattern} {path}");
        };
        check("package-lock.json", "package-lock.json", true);
        check("package-lock.json", "web/package-lock.json", true);
        check("*.pb.go", "api/v1/user.pb.go", true);
        check("migrations/", "db/migrations/001.sql", true);
        check("migrations", "migrations.md", false);
        check("db/migrations", "db/migrations/001.sql", true);
        check("db/migrations/", "web/db/migrations/001.sql", false);
        check("db/*.sql", "db/a.sql", true);
        check("db/*.sql", "db/sub/a.sql", false);
        check("db/**/*.sql", "db/sub/more/a.sql", true);
        check("db/**/*.sql", "db/a.sql", true);
        check("**/gen/*.rs", "src/gen/a.rs", true);
        check("**/gen/*.rs", "gen/a.rs", true);
        check("db/**", "db/a.sql", true);
        check("db/**", "db/sub/a.sql", true);
        check("/etc/**", "/etc/hosts", true);
        check("/etc/**", "etc/hosts", false);
        check("./src/a.rs", "src/a.rs", true);
        check("/", "a", false);
    }

    #[test]
    fn patterns_without_meaning_are_refused() {
        let check = |name: &str, pattern: &str, expected: Option<Refused>| {
            assert_eq!(refused(name, pattern), expected, "{name} {pattern}");
        };
        check("command", "npm", None);
        check("command", "npm && x", Some(Refused::Operator));
        check("command", "* *", Some(Refused::Everything));
        check("command", "* --no-verify", None);
        check("path", "**/*", Some(Refused::Everything));
        check("path", "src/**", None);
        check("tool", "*", Some(Refused::Everything));
        check("path", &"a".repeat(201), Some(Refused::Long));
    }

    proptest! {
        #[test]
        fn every_pattern_matches_itself_and_ends(pattern in "[a*?/]{0,60}", text in "[a/b]{0,60}") {
            prop_assert!(matches_word(&pattern, &pattern));
            prop_assert!(!matches_path(&pattern, "") || matches_path(&pattern, &text));
        }

        #[test]
        fn a_text_without_wildcards_matches_only_itself(text in "[a-z]{1,8}", other in "[a-z]{1,8}") {
            prop_assert_eq!(matches_word(&text, &other), text == other);
        }
    }
}
