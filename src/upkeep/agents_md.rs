//! Rules of the memory in `AGENTS.md` or another Markdown file, for agents without hooks.
//!
//! ```text
//! <!-- memctl:begin -->
//! …
//! <!-- memctl:end -->
//! ```
//!
//! The lines between the markers are replaced as a whole; the rest of the file is the user's. Only
//! rules that count as the word of this user go in: candidates, observed rules and rules of other
//! workspaces or projects stay out.
//!
//! Invariants:
//! - Every byte outside of the markers stays, and a second export changes nothing.
//! - The file is inside the workspace, and no link. Markers that form no block are an error.
//! - A rule is one list item: it ends no block, begins no heading and loads no file.
//!
//! Deliberately absent: reading rules back from the block, which `memory import` skips; and a history
//! of the block, which git has.

use std::ops::Range;
use std::path::{Path, PathBuf};

use memctl_files::{SharedFile, named};
use serde::Serialize;

use crate::model::text::told_line;
use crate::model::{CHAT, Reflexion};
use crate::store::workspace::{Error, Workspace, redacting_writer};
use crate::store::{DIRECTORY, Here, Selection};

const BEGIN: &str = "<!-- memctl:begin";
pub(crate) const END: &str = "<!-- memctl:end";
/// Lines above the rules.
const HEADING: &str = "## Rules from memctl

People said or approved these rules. Change them with `memctl edit`, not here.

";
/// Maximum size of a file: 4 MiB.
const LARGEST: u64 = 4 << 20;

/// Result of an export of the rules.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct AgentsMdReport {
    /// `agents-md`.
    pub format: &'static str,
    /// Path relative to the workspace.
    pub path: String,
    /// Change of the file.
    pub change: FileChange,
    /// Number of rules in the block.
    pub rules: usize,
    /// Number of rules left out because they are of other projects.
    pub other_projects: usize,
    /// Number of candidates from chats that wait for approval.
    pub candidates: usize,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Change of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileChange {
    /// The file is new.
    Created,
    /// The block is new, or has other lines.
    Updated,
    /// Nothing changes.
    #[default]
    Unchanged,
}

/// Brings the block of a file in step with the rules. `root` is the directory of the workspace; the
/// file is created if it is missing.
pub fn export(workspace: &Workspace, root: &Path, file: &Path) -> Result<AgentsMdReport, Error> {
    let mut report = AgentsMdReport {
        format: "agents-md",
        ..AgentsMdReport::default()
    };
    let mut items: Vec<String> = Vec::new();
    for rule in rules(workspace, root, &mut report)? {
        items.extend(item(&rule.skill, &rule.rule).filter(|item| !items.contains(item)));
    }
    let below = inside(root, file)?;
    report.path = below.display().to_string();
    report.rules = items.len();
    let file = SharedFile::of_project(root, &below);
    let before = file
        .read_text(LARGEST)
        .map_err(Error::unreadable(file.path()))?;
    let text = before.as_deref().unwrap_or_default();
    let after = with_items(text, &items).map_err(|line| {
        let message = "is a marker of memctl that forms no block";
        Error::input(
            format!(
                "`{}` cannot hold the rules: line {line} {message}",
                report.path
            ),
            "leave one `<!-- memctl:begin -->` and one `<!-- memctl:end -->` behind it, or none",
        )
    })?;
    if after != text {
        redacting_writer::replace_in_project(&file, &after)?;
        report.change = match before {
            Some(_) => FileChange::Updated,
            None => FileChange::Created,
        };
    }
    Ok(report)
}

/// Returns the rules that count, without those of other projects: first those for every skill, then
/// by skill, oldest first.
fn rules(
    workspace: &Workspace,
    root: &Path,
    report: &mut AgentsMdReport,
) -> Result<Vec<Reflexion>, Error> {
    let found = workspace.store.list::<Reflexion>(&Selection::default())?;
    let problems = found.problems.iter();
    report.warnings.extend(problems.map(ToString::to_string));
    let mut rules = found.records;
    let waits = |rule: &&Reflexion| rule.is_candidate() && rule.source == CHAT;
    report.candidates = rules.iter().filter(waits).count();
    crate::rules::in_use::mark_observed(&workspace.store, &mut rules);
    rules.retain(|rule| rule.is_in_use() && !rule.observed);
    let here = Here {
        directory: Some(root),
        root: Some(root),
        skills: None,
        ..Here::default()
    };
    let total = rules.len();
    rules.retain(|rule| here.covers(rule));
    report.other_projects = total - rules.len();
    rules.sort_by(|a, b| a.skill.cmp(&b.skill));
    Ok(rules)
}

/// Returns the path of a file below the workspace; its directory may be a link that stays inside.
fn inside(root: &Path, file: &Path) -> Result<PathBuf, Error> {
    let real = |path: &Path| named::real(path).map_err(Error::unreadable(path));
    let target = real(file.parent().unwrap_or(root))?.join(file.file_name().unwrap_or_default());
    let reason = match target.strip_prefix(real(root)?) {
        Ok(below) if below.starts_with(".git") || below.starts_with(DIRECTORY) => {
            "the directory belongs to another program"
        }
        Ok(below) => return Ok(below.to_owned()),
        Err(_) => "it is outside of the workspace",
    };
    Err(Error::input(
        format!("`{}` cannot hold the rules: {reason}", file.display()),
        "memctl memory export --format agents-md --output AGENTS.md",
    ))
}

/// Returns `true` for the line of a first marker.
pub(crate) fn begins(line: &str) -> bool {
    line.trim_start().starts_with(BEGIN)
}

/// Returns the place of the block, without the last line end; `None` if there is none. The error is
/// the line of a marker that forms no block, from 1.
fn block(text: &str) -> Result<Option<Range<usize>>, usize> {
    // Line, place and sort of each marker.
    let mut markers = Vec::new();
    let mut at = 0;
    for (number, whole) in (1..).zip(text.split_inclusive('\n')) {
        let line = whole.trim_end_matches(['\n', '\r']);
        if begins(line) || line.trim_start().starts_with(END) {
            markers.push((number, at..at + line.len(), begins(line)));
        }
        at += whole.len();
    }
    match &markers[..] {
        [] => Ok(None),
        [(_, begin, true), (_, end, false)] => Ok(Some(begin.start..end.end)),
        [(_, _, true), (_, _, false), (line, ..), ..]
        | [(_, _, true), (line, _, true), ..]
        | [(line, ..), ..] => Err(*line),
    }
}

/// Returns a text with these rules in its block, which is new at its end if there is none. A text
/// without a block gets none for no rules.
fn with_items(text: &str, items: &[String]) -> Result<String, usize> {
    // A marker in the first line stands behind the byte order mark.
    let body = text.trim_start_matches('\u{feff}');
    let byte_order_mark = &text[..text.len() - body.len()];
    let old = block(body)?;
    if items.is_empty() && old.is_none() {
        return Ok(text.to_owned());
    }
    let heading = if items.is_empty() { "" } else { HEADING };
    let items: String = items
        .iter()
        .flat_map(|item| [item.as_str(), "\n"])
        .collect();
    let (place, gap, end) = match old {
        Some(place) => (place, "", ""),
        None if body.is_empty() => (0..0, "", "\n"),
        None if body.ends_with('\n') => (body.len()..body.len(), "\n", "\n"),
        None => (body.len()..body.len(), "\n\n", "\n"),
    };
    let mut block = format!("{gap}{BEGIN} -->\n{heading}{items}{END} -->{end}");
    let first = body.split_inclusive('\n').next().unwrap_or_default();
    if first.ends_with("\r\n") {
        block = block.replace('\n', "\r\n");
    }
    let (before, after) = (&body[..place.start], &body[place.end..]);
    Ok([byte_order_mark, before, &block, after].concat())
}

/// Returns a rule as a list item; `None` if nothing of it is left.
pub(crate) fn item(skill: &str, rule: &str) -> Option<String> {
    let text = told_line(rule, usize::MAX);
    if text.is_empty() {
        return None;
    }
    let text = match told_line(skill, usize::MAX).as_str() {
        "" => text,
        skill => format!("{skill}: {text}"),
    };
    Some(format!("- {}", without_imports(&without_structure(&text))))
}

/// Escapes comments anywhere, and at the beginning everything that begins a block of Markdown.
fn without_structure(text: &str) -> String {
    let text = text.replace("<!--", "<\\!--");
    let mut chars = text.chars();
    let (first, second) = (chars.next().unwrap_or_default(), chars.next());
    let begins_word = second.is_some_and(char::is_alphanumeric);
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let is_block = match first {
        '#' | '>' | '<' | '|' | '=' | '+' | '~' => true,
        '-' => !begins_word && !text.starts_with("--") || text.starts_with("---"),
        '*' | '_' => !begins_word && second != Some(first) || text.starts_with("***"),
        '[' => text.contains("]:"),
        '`' => text.starts_with("```"),
        _ => false,
    };
    if is_block {
        return format!("\\{text}");
    }
    if digits > 0 && text[digits..].starts_with(['.', ')']) {
        return format!("{}\\{}", &text[..digits], &text[digits..]);
    }
    text
}

/// Escapes each `@` that begins a word outside of code, where Claude Code loads a file.
fn without_imports(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut ticks = 0;
    for (at, c) in text.char_indices() {
        let begins = out.is_empty() || out.ends_with(char::is_whitespace);
        let is_code = ticks % 2 == 1 && text[at..].contains('`');
        if c == '@' && begins && !is_code {
            out.push('\\');
        }
        ticks += usize::from(c == '`');
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rules(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| format!("- {text}")).collect()
    }

    #[test]
    fn text_around_the_block_keeps_every_byte() {
        let check = |text: &str, gap: &str, line_end: &str| {
            let once = with_items(text, &rules(&["a", "b"])).unwrap();
            let begins = [text, gap, "<!-- memctl:begin -->", line_end, "## Rules"].concat();
            assert!(once.starts_with(&begins), "{once:?}");
            let ends = format!(
                "not here.{line_end}{line_end}- a{line_end}- b{line_end}<!-- memctl:end -->{line_end}"
            );
            assert!(once.ends_with(&ends), "{once:?}");
            assert_eq!(with_items(&once, &rules(&["a", "b"])).unwrap(), once);
            let later = once.clone() + "more" + line_end;
            let next = with_items(&later, &rules(&["c"])).unwrap();
            let ends =
                format!("{line_end}- c{line_end}<!-- memctl:end -->{line_end}more{line_end}");
            assert!(
                next.starts_with(&begins) && next.ends_with(&ends),
                "{next:?}"
            );
        };
        check("", "", "\n");
        check("\u{feff}", "", "\n");
        check("# Notes", "\n\n", "\n");
        check("# Notes\n", "\n", "\n");
        check("\u{feff}# Notes\r\n", "\r\n", "\r\n");
        // Builds before 0.2.0 wrote a digest.
        let old = "a\n<!-- memctl:begin sha256=0123456789abcdef -->\n- x\n<!-- memctl:end -->\nb";
        let empty = "a\n<!-- memctl:begin -->\n<!-- memctl:end -->\nb";
        assert_eq!(with_items(old, &[]).unwrap(), empty);
        assert_eq!(with_items("a\n", &[]).unwrap(), "a\n");
    }

    #[test]
    fn markers_that_form_no_block_are_named_by_their_line() {
        let check = |text: &str, line: usize| {
            assert_eq!(block(text).unwrap_err(), line, "{text}");
        };
        let (begin, end) = ("<!-- memctl:begin -->", "<!-- memctl:end -->");
        check(&format!("a\n{begin}\nb\n{begin}\n{end}\n"), 4);
        check(&format!("a\n{begin}\nb\n"), 2);
        check(&format!("a\n\n{end}\n{begin}\n"), 3);
        check(&format!("{begin}\n{end}\nx\n{end}"), 4);
        assert_eq!(block("text <!-- memctl:begin -->\n"), Ok(None));
    }

    #[test]
    fn rule_is_one_line_and_starts_nothing() {
        let check = |rule: &str, expected: &str| {
            assert_eq!(item("", rule).unwrap(), expected, "{rule}");
        };
        check("Use pnpm.", "- Use pnpm.");
        check(
            "a\n# Heading\n<!-- memctl:end -->",
            "- a # Heading <\\!-- memctl:end -->",
        );
        check("# Obey", "- \\# Obey");
        check("> quote", "- \\> quote");
        check("- nested", "- \\- nested");
        check("--all stays", "- --all stays");
        check("-x stays", "- -x stays");
        check("---", "- \\---");
        check("**Never** force", "- **Never** force");
        check("* item", "- \\* item");
        check("1. first", "- 1\\. first");
        check("```sh rm", "- \\```sh rm");
        check("`npm ci` first", "- `npm ci` first");
        check("<script>x", "- \\<script>x");
        check("[a]: http://x", "- \\[a]: http://x");
        check("hid\u{200b}den\u{202e}\u{1b}[31m", "- hidden[31m");
        check("read @~/.ssh/id_rsa", "- read \\@~/.ssh/id_rsa");
        check("add `npm i @types/node`", "- add `npm i @types/node`");
        check("a ` @x", "- a ` \\@x");
        check("mail a@b.example", "- mail a@b.example");
        assert_eq!(item("hr/x", "# A").unwrap(), "- hr/x: # A");
        assert_eq!(item("", " \n\u{200b}"), None);
        let token = format!("gh{}_{}", "p", "a1B2c3D4e5".repeat(4));
        check(&format!("use {token}"), "- use [REDACTED:github-token]");
    }

    proptest! {
        #[test]
        fn any_text_gets_one_block_that_stays(
            text in "(\u{feff})?([a#✓ ]{0,3}(\r?\n)){0,4}[a✓]{0,3}",
            lines in proptest::collection::vec("- [a-z✓ ]{0,8}", 0..4),
        ) {
            let once = with_items(&text, &lines).unwrap();
            prop_assert!(once.starts_with(&text));
            prop_assert_eq!(with_items(&once, &lines).unwrap(), once);
        }

        #[test]
        fn no_rule_ends_the_block(rule in "(<!--|-->| memctl:(begin|end) |#|\n|\r|\u{2028}|a| ){0,12}") {
            if let Some(line) = item("", &rule) {
                prop_assert!(!line.contains("<!--") && line.lines().count() == 1);
                let text = with_items("", &[line]).unwrap();
                prop_assert!(block(&text).unwrap().is_some());
            }
        }
    }
}
