//! Text for people within a command: messages, titles, printed text, and search texts.
//!
//! A name in such a text is not used, and an option in it has no effect.

use crate::basename;
use crate::scan::Word;

/// Programs that keep versions, and their options whose value is text. `-m` may end other letters: `-am`.
const VERSIONS: &[&str] = &["git", "hg", "jj", "svn"];
const MESSAGES: &[&str] = &["--message", "--grep", "-m", "-S", "-G"];
/// Programs of forges, and their options whose value is text.
const FORGES: &[&str] = &["gh", "glab", "hub", "tea"];
const TITLES: &[&str] = &[
    "--title", "--body", "--notes", "--description", "--message", "--subject", "-t", "-b", "-n",
    "-d", "-m",
];
/// Programs that print their operands.
const PRINTERS: &[&str] = &["echo", "printf", "say", "logger", "notify-send"];
/// Programs whose first operand is what they look for, and their letters with a value.
const SEARCHERS: &[(&str, &str)] = &[
    ("grep", "ABCDdm"),
    ("egrep", "ABCDdm"),
    ("fgrep", "ABCDdm"),
    ("zgrep", "ABCDdm"),
    ("rg", "ABCMTdgjmrt"),
    ("ag", "ABCGm"),
    ("ack", "ABCm"),
    ("jq", ""),
    ("yq", ""),
];
/// Programs whose input is text, unless it is piped on.
const LISTENERS: &[&str] = &["patch", "less", "more", "wc", "mail", "sed", "awk"];

/// Extensions of files with text for people.
pub const EXTENSIONS: [&str; 7] = ["md", "markdown", "mdx", "rst", "txt", "adoc", "asciidoc"];

/// Returns `true` for a file with text for people.
pub fn is_prose(path: &str) -> bool {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|one| {
        EXTENSIONS
            .iter()
            .any(|prose| one.eq_ignore_ascii_case(prose))
    })
}

/// Text for people: the word, and the byte of it where the text begins.
pub(crate) type Prose = (usize, usize);

/// Returns the text for people in a command. Printed text counts if it `is_shown`: it goes to no program, and to
/// no file but one for people.
pub(crate) fn in_command(words: &[Word], is_shown: bool) -> Vec<Prose> {
    let text = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
    let program = basename(text(0));
    if VERSIONS.contains(&program) {
        return match (program, text(1)) {
            ("git", "grep") => searched(words, 2, "ABC"),
            _ => values(words, MESSAGES, true),
        };
    }
    if FORGES.contains(&program) {
        return values(words, TITLES, false);
    }
    if PRINTERS.contains(&program) && is_shown {
        return (1..words.len()).map(|at| (at, 0)).collect();
    }
    let is_set = |option: &str| words.iter().any(|word| word.text == option);
    if program == "sed" && is_set("-n") && !is_set("-i") {
        return searched(words, 1, "");
    }
    let searcher = SEARCHERS.iter().find(|(name, _)| *name == program);
    searcher.map_or_else(Vec::new, |(_, letters)| searched(words, 1, letters))
}

/// Returns `true` if what a command reads is text for people.
pub fn takes_text(program: &str) -> bool {
    let lists = [VERSIONS, FORGES, LISTENERS, PRINTERS];
    lists.iter().any(|list| list.contains(&program))
        || SEARCHERS.iter().any(|(name, _)| *name == program)
}

fn values(words: &[Word], options: &[&str], is_cluster: bool) -> Vec<Prose> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate().skip(1) {
        let text = word.text.as_str();
        let has_value = words
            .get(at + 1)
            .is_some_and(|next| !next.text.starts_with('-'));
        let is_short = text.starts_with('-') && !text.starts_with("--");
        let ends = is_cluster && is_short && text.ends_with('m');
        if options.contains(&text) || ends {
            found.extend(has_value.then_some((at + 1, 0)));
        } else if let Some((name, _)) = text
            .split_once('=')
            .filter(|(name, _)| options.contains(name))
        {
            found.push((at, name.len() + 1));
        } else if is_short
            && text
                .get(..2)
                .is_some_and(|option| options.contains(&option))
        {
            found.push((at, 2));
        }
    }
    found
}

/// Returns what a command looks for: its first operand, or the values of `-e`.
fn searched(words: &[Word], from: usize, letters: &str) -> Vec<Prose> {
    let mut found = Vec::new();
    let mut operand = None;
    let mut at = from;
    while let Some(word) = words.get(at) {
        let text = word.text.as_str();
        if matches!(text, "-e" | "--regexp") {
            at += 1;
            found.extend((at < words.len()).then_some((at, 0)));
        } else if !text.starts_with('-') {
            operand = operand.or(Some((at, 0)));
        } else if text == "--" {
            operand = operand.or(Some((at + 1, 0)));
            break;
        } else if !text.starts_with("--") && text.ends_with(|c| letters.contains(c)) {
            at += 1;
        }
        at += 1;
    }
    if found.is_empty() {
        found.extend(operand.filter(|(at, _)| *at < words.len()));
    }
    found
}

/// Returns a line and the words of a command in it with their text for people replaced. A replacement is as
/// long as what it replaces, in bytes.
pub(crate) fn replaced(
    line: &str,
    words: &[Word],
    prose: &[Prose],
    with: fn(&str) -> String,
) -> (String, Vec<Word>) {
    let (mut line, mut words) = (line.to_owned(), words.to_vec());
    for &(at, from) in prose {
        let word = &mut words[at];
        let place = word.start + from..word.end;
        if let Some(new) = line.get(place.clone()).map(with) {
            line.replace_range(place, &new);
        }
        if let Some(new) = word.text.get(from..).map(with) {
            word.text.replace_range(from.., &new);
        }
    }
    (line, words)
}

/// Spaces in place of a text.
pub(crate) fn silent(text: &str) -> String {
    " ".repeat(text.len())
}

/// A text without the hyphens at the beginning of its words: it has no options.
pub(crate) fn quiet(text: &str) -> String {
    let mut is_start = true;
    let plain = text.chars().map(|c| {
        is_start = c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '(') || is_start && c == '-';
        if is_start && c == '-' { ' ' } else { c }
    });
    plain.collect()
}

#[cfg(test)]
mod tests {
    use crate::commands;

    #[test]
    fn text_for_people_is_told_from_what_is_used() {
        let check = |line: &str, quiet: &str, silent: &str| {
            let simple = &commands(line)[0];
            let last = |reading: &Option<crate::Reading>| {
                let plain = reading.as_ref().map_or("", |one| one.plain.as_str());
                plain.split_whitespace().collect::<Vec<_>>().join(" ")
            };
            assert_eq!(last(&simple.quiet), quiet, "{line}");
            assert_eq!(last(&simple.silent), silent, "{line}");
        };
        check(
            "git commit -s -m 'no --wip'",
            "git commit -s -m no wip",
            "git commit -s -m",
        );
        check("git commit -am x", "git commit -am x", "git commit -am");
        check(
            "git log --grep=old_db -3",
            "git log --grep=old_db -3",
            "git log --grep= -3",
        );
        check(
            "gh pr create -t a --body 'b c'",
            "gh pr create -t a --body b c",
            "gh pr create -t --body",
        );
        check("rg -t py old_db src", "rg -t py old_db src", "rg -t py src");
        check(
            "grep -rn -e old_db old_db.md",
            "grep -rn -e old_db old_db.md",
            "grep -rn -e old_db.md",
        );
        check("git grep -n old_db", "git grep -n old_db", "git grep -n");
        check("echo old_db", "echo old_db", "echo");
        check("echo old_db >> a.md", "echo old_db", "echo");
        check("sed -n /a/p b", "sed -n /a/p b", "sed -n b");
        for line in [
            "echo old_db > a", "echo old_db | psql", "psql old_db", "git branch -m a b", "git push",
        ] {
            let has = commands(line)[0].silent.is_some();
            assert_eq!(has, line.starts_with("git branch"), "{line}");
        }
    }
}
