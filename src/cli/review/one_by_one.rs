//! `review` on a terminal: one entry after the other, each with the keys that decide about it.
//!
//! Like `git add -p`: the record is printed with its text, the reason why it waits, its source and its
//! evidence. A letter and Enter decide, and the next record follows. Each decision is stored at once, by
//! the operation of its command, as a change of its own in the undo journal. Any other answer changes
//! nothing.
//!
//! Deliberately absent: a screen of its own, since the terminal scrolls what was printed; a filter
//! (`--skills`); the current texts for agents (`memory prompt`).

use std::collections::VecDeque;
use std::io::BufRead as _;

use crate::cli::context::Context;
use crate::cli::memory::change::in_editor;
use crate::cli::output::{Page, Style, end, plural};
use crate::cli::review::history::revert;
use crate::cli::review::queue;
use crate::model::error::UserError;
use crate::model::{self, CallAction, Kind, SkillPath};
use crate::review::queue::{Part, Waiting, WaitingKind};
use crate::store::shown_project;
use crate::{review, rules, upkeep};

/// Width of a rule in the question which one stays.
const STAYS: usize = 60;

/// Keys of every entry, each with its effect.
const COMMON: [(char, &str); 4] = [
    ('s', "skip"),
    (
        'u',
        "undo the last decision of this review, then the one before",
    ),
    ('?', "help"),
    ('q', "quit"),
];

/// Way through the queue.
struct Walk<'a> {
    context: &'a Context,
    skill: Option<&'a SkillPath>,
    /// Entries that are neither decided about nor skipped.
    open: VecDeque<Waiting>,
    skipped: Vec<Waiting>,
    /// Names of the changes of this review, for undo.
    changes: Vec<String>,
}

/// Goes through the queue until its end, or until the user ends it.
pub(crate) fn one_by_one(context: &Context, skill: Option<&SkillPath>) -> Result<u8, UserError> {
    let mut walk = Walk {
        context,
        skill,
        open: VecDeque::new(),
        skipped: Vec::new(),
        changes: Vec::new(),
    };
    walk.read()?;
    while let Some(mut waiting) = walk.open.front().cloned() {
        waiting.screen();
        let keys = keys_of(&waiting);
        let mut page = context.printer.page();
        heading(&mut page, &waiting, walk.open.len());
        record(&mut page, &waiting);
        key_line(&mut page, &keys);
        if !context.printer.line(&page.into_text()) {
            return Ok(0);
        }
        loop {
            let Some(answer) = answer(context, "> ")? else {
                return Ok(0);
            };
            match walk.take(&waiting, &keys, &answer) {
                Ok(Next::Ask) => {}
                Ok(Next::Show) => break,
                Ok(Next::Quit) => return Ok(0),
                // Nothing has changed.
                Err(error) => context.printer.error(&error),
            }
        }
    }
    context.printer.line(&match walk.skipped.len() {
        0 => "Nothing waits for a decision.\n".to_owned(),
        1 => "1 entry is left.\n".to_owned(),
        left => format!("{left} entries are left.\n"),
    });
    Ok(0)
}

/// Next step after an answer.
enum Next {
    /// Ask about the same entry.
    Ask,
    /// Show the entry that is the first now.
    Show,
    Quit,
}

impl Walk<'_> {
    /// Reads the queue, without the entries that were skipped.
    fn read(&mut self) -> Result<(), UserError> {
        let queue = queue(self.context, self.skill)?;
        let printer = &self.context.printer;
        queue
            .warnings
            .iter()
            .for_each(|warning| printer.warn(warning));
        let is_open = |one: &Waiting| !self.skipped.iter().any(|skipped| is_same(skipped, one));
        self.open = queue.waiting.into_iter().filter(is_open).collect();
        Ok(())
    }

    /// Acts on an answer about an entry. `keys` are those that decide about it.
    fn take(
        &mut self,
        waiting: &Waiting,
        keys: &[(char, &str)],
        answer: &str,
    ) -> Result<Next, UserError> {
        let mut letters = answer.chars();
        let Some(key) = letters.next() else {
            return Ok(Next::Ask);
        };
        let words = letters.as_str();
        let takes_words = matches!(key, 'x' | 'm') && words.starts_with(' ');
        let is_key = keys.iter().chain(&COMMON).any(|(own, _)| *own == key);
        if !is_key || !(words.is_empty() || takes_words) {
            let unknown = format!("`{}` is no key here; ? explains the keys", end(answer, 20));
            self.context.printer.warn(&unknown);
            return Ok(Next::Ask);
        }
        match key {
            'q' => return Ok(Next::Quit),
            's' => self.skipped.extend(self.open.pop_front()),
            'u' => return self.undo(),
            '?' => {
                let mut page = self.context.printer.page();
                for (key, effect) in keys.iter().chain(&COMMON) {
                    page.styled(&[(Style::Strong, &format!("{key}  ")), (Style::Plain, effect)]);
                }
                self.context.printer.line(&page.into_text());
                return Ok(Next::Ask);
            }
            key if self.decide(key, words.trim(), waiting)? => {}
            _ => return Ok(Next::Ask),
        }
        Ok(Next::Show)
    }

    fn undo(&mut self) -> Result<Next, UserError> {
        let Some(change) = self.changes.last() else {
            let nothing =
                "nothing was decided in this review; `memctl undo` reverts earlier changes";
            self.context.printer.warn(nothing);
            return Ok(Next::Ask);
        };
        let done = revert(&self.context.for_next_change(), Some(change), false)?;
        self.changes.pop();
        self.say("undone", &done.warnings);
        self.read()?;
        Ok(Next::Show)
    }

    fn say(&self, did: &str, warnings: &[String]) {
        let printer = &self.context.printer;
        let mut page = printer.page();
        page.good(did, "");
        printer.line(&page.into_text());
        for warning in warnings {
            printer.warn(warning);
        }
    }

    /// Decides about an entry by one of its keys. Returns `false` if the user gave up.
    fn decide(&mut self, key: char, words: &str, waiting: &Waiting) -> Result<bool, UserError> {
        let context = self.context.for_next_change();
        let workspace = context.workspace(None)?;
        let change = workspace.store.audit_context().change.clone();
        let id = &waiting.id;
        // Of a pair, the newer rule.
        let newer = waiting.other.as_ref().unwrap_or(id);
        let mut removed = None;
        let (did, warnings) = match key {
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
                let done = in_editor(&context, &workspace, &draft)?;
                if done.changed.is_empty() {
                    return Ok(false);
                }
                self.changes.push(change);
                self.say(&format!("edited {newer}"), &done.warnings);
                self.read()?;
                return Ok(true);
            }
            'x' => {
                let Some(reason) = given(&context, words, "reason: ")? else {
                    return Ok(false);
                };
                let done = review::reject(&workspace, id, &reason)?;
                (format!("rejected {}", done.id), done.warnings)
            }
            'f' => {
                let done = upkeep::forget(&workspace, newer, false)?;
                removed = Some(newer.clone());
                (format!("forgot {newer}"), done.warnings)
            }
            'm' => {
                let Some((keep, other)) = which_stays(&context, words, waiting)? else {
                    return Ok(false);
                };
                let done = rules::merge(&workspace, &keep, &other)?;
                let did = format!("merged {other} into {keep}");
                removed = Some(other);
                (did, done.warnings)
            }
            'b' if waiting.kind == WaitingKind::Doubtful => {
                let done = rules::pin(&workspace, id, true)?;
                (format!("pinned {id}"), done.warnings)
            }
            _ => {
                rules::keep_both(&workspace, id, newer)?;
                (format!("kept {id} and {newer}"), Vec::new())
            }
        };
        self.changes.push(change);
        self.open.retain(|one| {
            !is_same(one, waiting) && !removed.as_ref().is_some_and(|id| one.names(id))
        });
        self.say(&did, &warnings);
        Ok(true)
    }
}

fn is_same(a: &Waiting, b: &Waiting) -> bool {
    a.kind == b.kind && a.id == b.id && a.other == b.other
}

/// Keys that decide about an entry, each with its name.
fn keys_of(waiting: &Waiting) -> Vec<(char, &'static str)> {
    use WaitingKind as Of;
    let waits = waiting.waits_for_approval();
    let may_act = !waiting.patterns.is_empty() && (waits || waiting.kind == Of::Doubtful);
    let is_pair = matches!(waiting.kind, Of::Contradiction | Of::Similar);
    let is_rule = waiting.record == Kind::Reflexion;
    let keys = [
        (waits, 'a', "approve"),
        (may_act, 'A', "approve, ask me"),
        (may_act, 'D', "approve, refuse"),
        (is_pair, 'm', "merge"),
        (is_pair, 'b', "keep both"),
        (waiting.kind == Of::Doubtful && is_rule, 'b', "keep"),
        (true, 'e', "edit"),
        (waiting.may_be_rejected(), 'x', "reject"),
        (true, 'f', "forget"),
    ];
    let keys = keys.into_iter().filter(|(has, _, _)| *has);
    keys.map(|(_, key, name)| (key, name)).collect()
}

fn heading(page: &mut Page, waiting: &Waiting, left: usize) {
    let ids = super::ids(waiting);
    page.line("");
    page.styled(&[
        (
            Style::Strong,
            &format!("{}  {ids}", super::word(waiting.kind)),
        ),
        (Style::Dim, &format!("  {left} waiting")),
    ]);
}

fn key_line(page: &mut Page, keys: &[(char, &str)]) {
    let common = [('s', "skip"), ('?', "help"), ('q', "quit")];
    let all = keys
        .iter()
        .chain(&common)
        .map(|(key, name)| format!("{key} {name}"));
    page.sentence(Style::Strong, "", &all.collect::<Vec<_>>().join(" · "));
}

/// Asks, and returns the line that was typed; `None` at the end of the input.
fn answer(context: &Context, question: &str) -> Result<Option<String>, UserError> {
    context.printer.line(question);
    let mut line = Vec::new();
    std::io::stdin().lock().read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(&line).trim().to_owned()))
}

/// Returns the words behind the key, or asks for them. `None` if the user gives none.
fn given(context: &Context, words: &str, question: &str) -> Result<Option<String>, UserError> {
    let words = match words {
        "" => answer(context, question)?,
        words => Some(words.to_owned()),
    };
    Ok(words.filter(|words| !words.is_empty()))
}

/// Asks which of two rules stays. Returns that one, and the other.
fn which_stays(
    context: &Context,
    words: &str,
    waiting: &Waiting,
) -> Result<Option<(String, String)>, UserError> {
    let text = |name: &str| waiting.text(name).unwrap_or_default();
    let first = (&waiting.id, [text("rule"), text("older")].concat());
    let second = match (&waiting.other, &waiting.near) {
        (Some(other), _) => (other, text("newer").to_owned()),
        (None, Some(near)) => (&near.id, near.rule.clone()),
        (None, None) => return Ok(None),
    };
    if words.is_empty() {
        let mut page = context.printer.page();
        for (number, (id, text)) in (1..).zip([&first, &second]) {
            page.line(format!("{number}  {id}  {}", end(text, STAYS)));
        }
        context.printer.line(&page.into_text());
    }
    let (first, second) = (first.0.clone(), second.0.clone());
    match given(context, words, "which stays (Enter: neither)? ")?.as_deref() {
        Some("1") => Ok(Some((first, second))),
        Some("2") => Ok(Some((second, first))),
        _ => Ok(None),
    }
}

/// Maximum number of lines of one text.
const LONGEST: usize = 200;

/// Pairs of texts of which the first is replaced by the second.
const REPLACED: [(&str, &str); 2] = [("failed", "worked"), ("older", "newer")];

/// Parts that are sentences. Any other may be code, and keeps its lines so that it can be copied.
const SENTENCES: [&str; 6] = ["rule", "lesson", "quote", "mistake", "older", "newer"];

/// Adds the record of an entry to a page.
pub(crate) fn record(page: &mut Page, waiting: &Waiting) {
    let of_decision = |part: &&Part| {
        let is_replaced = |(old, new): &(&str, &str)| *old == part.name && has(waiting, new);
        ["rule", "lesson", "memory"].contains(&part.name) && !REPLACED.iter().any(is_replaced)
    };
    let first = waiting.parts.iter().find(of_decision);
    if let Some(part) = first {
        lines(page, part, "", Style::Strong);
    }
    let fields = [
        ("why", waiting.reason.clone()),
        ("careful", waiting.suspicious.clone().unwrap_or_default()),
        ("from", origin(waiting, page)),
        ("seen", evidence(waiting)),
    ];
    // Redacted before it is wrapped, so that no secret is cut in two.
    page.fields(
        fields.map(|(label, text)| (label, memctl_redact::redact(&text).text.into_owned())),
    );
    // A rule that a person typed is its own quote.
    let is_said = |part: &Part| first.is_some_and(|first| first.text == part.text);
    for part in waiting.parts.iter().filter(|part| !is_said(part)) {
        let is_old = |(old, new): &(&str, &str)| *old == part.name && has(waiting, new);
        let is_new = |(old, new): &(&str, &str)| *new == part.name && has(waiting, old);
        let (mark, style) = match part.name {
            _ if REPLACED.iter().any(is_old) => ("- ", Style::Bad),
            _ if REPLACED.iter().any(is_new) => ("+ ", Style::Good),
            "error" => ("  ", Style::Bad),
            "quote" => ("“ ", Style::Strong),
            _ => ("  ", Style::Plain),
        };
        page.dim(part.name);
        lines(page, part, mark, style);
    }
}

fn has(waiting: &Waiting, name: &str) -> bool {
    waiting.text(name).is_some()
}

/// Adds a text behind a mark. The terminal wraps the lines of code.
fn lines(page: &mut Page, part: &Part, mark: &str, style: Style) {
    let text = memctl_redact::redact(&part.text).text;
    for line in text.lines().take(LONGEST) {
        if SENTENCES.contains(&part.name) {
            page.sentence(style, mark, line);
        } else {
            page.styled(&[(style, &[mark, line].concat())]);
        }
    }
    let more = text.lines().count().saturating_sub(LONGEST);
    if more > 0 {
        page.dim(format!("… and {}", plural(more as u64, "more line")));
    }
}

fn origin(waiting: &Waiting, page: &Page) -> String {
    let of = &waiting.origin;
    let age = match page.age(&of.at) {
        age if of.at.is_empty() || age.contains('-') || age == "now" => age,
        age => age + " ago",
    };
    let words = [
        ("skill ", waiting.skill.as_deref().unwrap_or_default()),
        ("project ", shown_project(&of.project)),
        ("session ", &of.session),
        ("tool ", &of.tool),
        ("source ", &of.source),
        ("", &age),
    ];
    let given = words.iter().filter(|(_, text)| !text.is_empty());
    let given: Vec<String> = given.map(|(name, text)| [*name, text].concat()).collect();
    given.join(", ")
}

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
    use crate::rules::SimilarRule;

    fn text(
        kind: WaitingKind,
        parts: &[(&'static str, &str)],
        near: Option<SimilarRule>,
    ) -> String {
        let mut one = Waiting::about(kind, Kind::Reflexion, "REFL-003", String::new());
        for (name, text) in parts {
            one.part(name, text);
        }
        one.near = near;
        let mut page = Page::new(80, false, "2026-02-04T00:00:00Z".parse().unwrap());
        record(&mut page, &one);
        page.into_text()
    }

    #[test]
    fn the_text_that_is_decided_about_comes_first_and_no_escape_of_a_record_is_obeyed() {
        let near = SimilarRule {
            id: "REFL-009".to_owned(),
            rule: "Use yarn".to_owned(),
            score: 0.8,
        };
        let parts = [
            ("quote", "no, use pnpm"),
            ("rule", "Use pnpm\u{1b}[2J here"),
        ];
        assert_eq!(
            text(WaitingKind::Candidate, &parts, Some(near)),
            "Use pnpm here\nsimilar:      REFL-009 (0.80): Use yarn\nquote\n“ no, use pnpm\n"
        );
    }

    #[test]
    fn a_long_rule_breaks_between_words_and_is_not_shown_twice() {
        let rule = format!("Use pnpm {}here", "and not npm ".repeat(8));
        let parts = [("rule", rule.as_str()), ("quote", &rule)];
        let shown = text(WaitingKind::Candidate, &parts, None);
        assert_eq!(shown.lines().count(), 2, "{shown}");
        assert!(shown.lines().all(|line| line.len() <= 80), "{shown}");
        assert_eq!(shown.replace('\n', " ").trim(), rule);
    }

    #[test]
    fn replacement_is_printed_below_the_old_text() {
        let pair = [("older", "ALWAYS name it."), ("newer", "NEVER name it.")];
        assert_eq!(
            text(WaitingKind::Contradiction, &pair, None),
            "older\n- ALWAYS name it.\nnewer\n+ NEVER name it.\n"
        );
    }

    #[test]
    fn a_text_that_is_cut_says_so_and_shows_no_secret() {
        let secret = format!("gh{}{}", "p_", "a1B2c3D4e5".repeat(4));
        let long = format!("{secret}\n{}", "line\n".repeat(300));
        let shown = text(WaitingKind::Memory, &[("memory", &long)], None);
        assert!(!shown.contains(&secret[6..20]), "{shown}");
        assert!(shown.ends_with("line\n… and 101 more lines\n"), "{shown}");
    }
}
