//! `review` and its neighbours in the help: `approve`, `why`, `undo`, `stats`, `watch`.
//!
//! `review` shows everything that waits for a person, in one queue. Through a pipe, one line for each entry with the
//! command that decides about it. On a terminal, like `git add -p`, one entry after the other: the record is printed
//! with its texts, the reason why it waits, its source and its evidence. A letter and Enter decide, and the next record
//! follows. Each decision is stored at once, by the operation of its command, as a change of its own that `memctl undo`
//! reverts. Any other answer changes nothing.
//!
//! Deliberately absent: a screen of its own, since the terminal scrolls what was printed; a filter
//! (`--skills`); the current texts for agents (`memory prompt`).

use std::collections::VecDeque;
use std::io::IsTerminal as _;
use std::time::Duration;

use clap::Args;

use crate::cli::ask::{answer, choice, in_editor};
use crate::cli::context::Context;
use crate::cli::learn::sessions::host_sessions;
use crate::cli::output::{Page, Report, Style, change, end, plural};
use crate::model::error::UserError;
use crate::model::{self, CallAction, Kind, SkillPath};
use crate::review::PastSessions;
use crate::review::queue::{Part, Queue, Waiting, WaitingKind};
use crate::{review, rules, upkeep};

pub(crate) mod decisions;
pub(crate) mod stats;
pub(crate) mod watch;

/// Maximum time of a replay: a person waits.
const REPLAY: Duration = Duration::from_secs(3);
/// Width of a title on a line.
const TITLE: usize = 60;
/// Maximum width of the line with a change.
const CHANGE: usize = 100;

/// Review what was learned: approve, edit, reject, merge
///
/// Lists candidate rules, and lessons from sessions, contradictions and similar rules, and rules with
/// evidence against them. On a terminal, shows one entry after the other, and asks: a letter and Enter
/// decide. Through a pipe, one line for each entry with the command that decides about it.
///
/// ```console
/// $ memctl review
/// $ memctl review --skills hr/resume-screen
/// $ memctl review --json | jq '.waiting[] | {kind, id, title}'
/// ```
#[derive(Debug, Args)]
pub(crate) struct ReviewArgs {
    /// Review only the rules and lessons of this skill, as `domain/skill`
    #[arg(long = "skills", alias = "skill", value_name = "SKILL")]
    skill: Option<String>,
}

pub(crate) fn review(context: &Context, args: &ReviewArgs) -> Result<u8, UserError> {
    let skill: Option<SkillPath> = args.skill.as_deref().map(str::parse).transpose()?;
    if context.is_interactive() && std::io::stdout().is_terminal() {
        return one_by_one(context, skill.as_ref());
    }
    let mut queue = queue(context, skill.as_ref())?;
    queue.waiting.iter_mut().for_each(Waiting::screen);
    context.printer.show(&queue)
}

/// Reads everything that waits, and tries the rules that wait on past calls.
pub(crate) fn queue(context: &Context, skill: Option<&SkillPath>) -> Result<Queue, UserError> {
    let workspace = context.workspace(None)?;
    let past = past_sessions(context);
    let read = || Queue::read(&workspace, skill, &past);
    Ok(context.printer.during("reading past calls", read)?)
}

/// Returns the user's own sessions of this project, which rules are tried on and in which they said something. No
/// file of a project is one.
pub(crate) fn past_sessions(context: &Context) -> PastSessions {
    let mut paths = host_sessions(context);
    paths.retain(|path| !context.environment.is_of_project(path));
    PastSessions {
        paths,
        project: context.project().display().to_string(),
        now: context.environment.now,
        limit: REPLAY,
    }
}

/// Word of an entry for people.
fn word(kind: WaitingKind) -> &'static str {
    match kind {
        WaitingKind::Procedure => Kind::Procedure.noun(),
        WaitingKind::Memory => Kind::Memory.noun(),
        kind => kind.name(),
    }
}

/// Maximum number of lines of one text.
const LONGEST: usize = 200;

/// Adds the texts of a record. A rule that a person typed is its own quote, and is shown once.
fn parts(page: &mut Page, parts: &[Part]) {
    for (at, part) in (1..).zip(parts) {
        if parts[at..].iter().any(|other| other.text == part.text) {
            continue;
        }
        // At the beginning of a line, `error:` is that of a command.
        let label = match part.name {
            "error" => "at the error",
            name => name,
        };
        // Redacted before it is wrapped, so that no secret is cut in two.
        let text = memctl_redact::redact(&part.text).text;
        let lines: Vec<&str> = text.lines().take(LONGEST).collect();
        page.field(label, &lines.join("\n"));
        let more = text.lines().count() - lines.len();
        if more > 0 {
            page.dim(format!("… and {}", plural(more as u64, "more line")));
        }
    }
}

/// Ids of an entry: one, or two with a comma.
fn ids(waiting: &Waiting) -> String {
    match &waiting.other {
        Some(other) => format!("{},{other}", waiting.id),
        None => waiting.id.clone(),
    }
}

impl Report for Queue {
    fn page(&self, page: &mut Page) {
        if self.waiting.is_empty() {
            return page.line("Nothing waits for a decision.");
        }
        let all: Vec<String> = self.waiting.iter().map(ids).collect();
        let kinds = self.waiting.iter().map(|one| word(one.kind).len());
        let widths = (
            kinds.max().unwrap_or_default(),
            all.iter().map(String::len).max().unwrap_or_default(),
        );
        for (waiting, ids) in self.waiting.iter().zip(&all) {
            page.line(format!(
                "{:<2$}  {ids:<3$}  {}  → {4}",
                word(waiting.kind),
                end(&waiting.title, TITLE),
                widths.0,
                widths.1,
                waiting.command
            ));
            if let (Some(failing), Some(working)) = (waiting.text("failed"), waiting.text("worked"))
            {
                let indent = widths.0 + widths.1 + 4;
                page.line(format!(
                    "{:indent$}{}",
                    "",
                    change(failing, working, CHANGE)
                ));
            }
        }
    }
}

/// Goes through the queue until its end, or until the user ends it.
fn one_by_one(context: &Context, skill: Option<&SkillPath>) -> Result<u8, UserError> {
    let mut skipped: Vec<Waiting> = Vec::new();
    let mut open = read(context, skill, &skipped)?;
    while let Some(mut waiting) = open.pop_front() {
        waiting.screen();
        let keys = keys_of(&waiting);
        let mut page = context.printer.page();
        entry(&mut page, &waiting, open.len() + 1);
        if !context.printer.line(&page.into_text()) {
            return Ok(0);
        }
        loop {
            let (key, words) = choice(context, &keys)?;
            let done = match key {
                'q' => return Ok(0),
                's' => {
                    skipped.push(waiting);
                    break;
                }
                key => decide(&context.for_next_change(), key, &words, &waiting),
            };
            match done {
                Ok(Some((did, warnings))) => {
                    context.printer.line(&format!("{did}\n"));
                    for warning in &warnings {
                        context.printer.warn(warning);
                    }
                    let removed = match key {
                        'f' | '1' => newer(&waiting),
                        _ => &waiting.id,
                    };
                    match key {
                        // The new text waits, too.
                        'e' => open = read(context, skill, &skipped)?,
                        'f' | '1' | '2' => open.retain(|one| !one.names(removed)),
                        _ => {}
                    }
                    break;
                }
                Ok(None) => {}
                // Nothing has changed.
                Err(error) => context.printer.error(&error),
            }
        }
    }
    context.printer.line(&match skipped.len() {
        0 => "Nothing waits for a decision.\n".to_owned(),
        1 => "1 entry is left.\n".to_owned(),
        left => format!("{left} entries are left.\n"),
    });
    Ok(0)
}

/// Reads the queue, without the entries that were skipped.
fn read(
    context: &Context,
    skill: Option<&SkillPath>,
    skipped: &[Waiting],
) -> Result<VecDeque<Waiting>, UserError> {
    let queue = queue(context, skill)?;
    let warnings = queue.warnings.iter();
    warnings.for_each(|warning| context.printer.warn(warning));
    let is_same = |a: &Waiting, b: &Waiting| (a.kind, &a.id, &a.other) == (b.kind, &b.id, &b.other);
    let is_open = |one: &Waiting| !skipped.iter().any(|skipped| is_same(skipped, one));
    Ok(queue.waiting.into_iter().filter(is_open).collect())
}

/// The record of an entry; of a pair, the newer rule.
fn newer(waiting: &Waiting) -> &String {
    waiting.other.as_ref().unwrap_or(&waiting.id)
}

/// Decides about an entry by one of its keys. Returns what was done, with warnings; `None` if the user gave up.
fn decide(
    context: &Context,
    key: char,
    words: &str,
    waiting: &Waiting,
) -> Result<Option<(String, Vec<String>)>, UserError> {
    let workspace = context.workspace(None)?;
    let (id, newer) = (&waiting.id, newer(waiting));
    Ok(Some(match key {
        'a' | 'A' | 'D' => {
            let action = match key {
                'A' => CallAction::Ask,
                'D' => CallAction::Deny,
                _ => CallAction::Note,
            };
            let action = (!waiting.patterns.is_empty()).then_some(action);
            let project = context.git_project();
            let here = context.here(project.as_ref());
            let ids = std::slice::from_ref(id);
            let done = review::approve(&workspace, ids, action, Some(&here))?;
            let warnings = done.into_iter().flat_map(|one| one.warnings).collect();
            (format!("approved {id}"), warnings)
        }
        'e' => {
            let draft = review::draft(&workspace, newer)?;
            let done = in_editor(context, &workspace, &draft)?;
            if done.changed.is_empty() {
                return Ok(None);
            }
            (format!("edited {newer}"), done.warnings)
        }
        'x' => {
            let reason = match words {
                "" => answer("reason: ")?.unwrap_or_default(),
                words => words.to_owned(),
            };
            if reason.is_empty() {
                return Ok(None);
            }
            let done = review::reject(&workspace, id, &reason)?;
            (format!("rejected {}", done.id), done.warnings)
        }
        'f' => {
            let done = upkeep::forget(&workspace, newer, false)?;
            (format!("forgot {newer}"), done.warnings)
        }
        '1' | '2' => {
            let (keep, other) = if key == '1' { (id, newer) } else { (newer, id) };
            let done = rules::merge(&workspace, keep, other)?;
            (format!("merged {other} into {keep}"), done.warnings)
        }
        _ => {
            rules::keep_both(&workspace, id, newer)?;
            (format!("kept {id} and {newer}"), Vec::new())
        }
    }))
}

/// Keys of an entry, each with its name.
fn keys_of(waiting: &Waiting) -> Vec<(char, &'static str)> {
    use WaitingKind as Of;
    let waits = waiting.waits_for_approval();
    let may_act = !waiting.patterns.is_empty() && (waits || waiting.kind == Of::Doubtful);
    let is_pair = matches!(waiting.kind, Of::Contradiction | Of::Similar);
    let keys = [
        (waits, 'a', "approve"),
        (may_act, 'A', "approve, ask me"),
        (may_act, 'D', "approve, refuse"),
        (is_pair, '1', "merge into the older"),
        (is_pair, '2', "merge into the newer"),
        (is_pair, 'b', "keep both"),
        (true, 'e', "edit"),
        (waiting.may_be_rejected(), 'x', "reject"),
        (true, 'f', "forget"),
        (true, 's', "skip"),
        (true, 'q', "quit"),
    ];
    let keys = keys.into_iter().filter(|(has, _, _)| *has);
    keys.map(|(_, key, name)| (key, name)).collect()
}

/// Adds an entry to a page.
fn entry(page: &mut Page, waiting: &Waiting, left: usize) {
    let head = format!("{}  {}", word(waiting.kind), ids(waiting));
    let left = format!("  {left} waiting");
    page.line("");
    page.styled(&[(Style::Strong, &head), (Style::Dim, &left)]);
    parts(page, &waiting.parts);
    let fields = [
        ("why", waiting.reason.clone()),
        ("careful", waiting.suspicious.clone().unwrap_or_default()),
        ("skill", waiting.skill.clone().unwrap_or_default()),
        ("seen", evidence(waiting)),
    ];
    // Redacted before it is wrapped, so that no secret is cut in two.
    page.fields(
        fields.map(|(label, text)| (label, memctl_redact::redact(&text).text.into_owned())),
    );
    page.document(&waiting.origin, &[]);
}

/// Returns how often a record was seen and used, in words.
fn evidence(waiting: &Waiting) -> String {
    let of = &waiting.evidence;
    let mut words = Vec::new();
    let (times, sessions) = (plural(of.times, "time"), plural(of.sessions, "session"));
    match (of.times, of.sessions) {
        (0, 0) => {}
        (_, 0) => words.push(times),
        _ => words.push(format!("{times} in {sessions}")),
    }
    if of.uses != model::Evidence::default() {
        let (shown, helped, harmed) = (of.uses.shown, of.uses.helped, of.uses.harmed);
        words.push(format!("shown {shown}, helped {helped}, harmed {harmed}"));
    }
    if let Some(confidence) = of.confidence {
        words.push(format!("confidence {confidence:.2}"));
    }
    words.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(kind: WaitingKind, parts: &[(&'static str, &str)]) -> String {
        let mut one = Waiting::about(kind, Kind::Reflexion, "REFL-003", String::new());
        for (name, text) in parts {
            one.part(name, text);
        }
        let mut page = Page::new(80, false, "2026-02-04T00:00:00Z".parse().unwrap());
        entry(&mut page, &one, 2);
        page.into_text()
    }

    #[test]
    fn an_entry_has_its_texts_and_no_escape_of_a_record_is_obeyed() {
        let parts = [
            ("quote", "no, use pnpm"),
            ("rule", "Use pnpm\u{1b}[2J here"),
        ];
        assert_eq!(
            text(WaitingKind::Candidate, &parts),
            "\ncandidate  REFL-003  2 waiting\nquote:        no, use pnpm\nrule:         Use pnpm here\n"
        );
    }

    #[test]
    fn a_long_rule_breaks_between_words_and_is_not_shown_twice() {
        let rule = format!("Use pnpm {}here", "and not npm ".repeat(8));
        let parts = [("rule", rule.as_str()), ("quote", &rule)];
        let shown = text(WaitingKind::Candidate, &parts);
        assert_eq!(shown.lines().count(), 4, "{shown}");
        assert!(shown.lines().all(|line| line.len() <= 80), "{shown}");
    }

    #[test]
    fn a_text_that_is_cut_says_so_and_shows_no_secret() {
        let secret = format!("gh{}{}", "p_", "a1B2c3D4e5".repeat(4));
        let long = format!("{secret}\n{}", "line\n".repeat(300));
        let shown = text(WaitingKind::Memory, &[("memory", &long)]);
        assert!(!shown.contains(&secret[6..20]), "{shown}");
        assert!(shown.ends_with("line\n… and 101 more lines\n"), "{shown}");
    }
}
