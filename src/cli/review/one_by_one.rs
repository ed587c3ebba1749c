//! `review` on a terminal: one entry after the other, each with the keys that decide about it.
//!
//! Like `git add -p`: the record is printed, a letter and Enter decide, and the next record follows.
//! Each decision is stored at once, by the verb of its command, as a change of its own in the undo
//! journal. An answer that is no key changes nothing.
//!
//! Deliberately absent: a screen of its own, since what was printed stays above and the terminal scrolls it; a
//! filter (`--skills`); what agents get now (`memory prompt`).

use std::collections::VecDeque;
use std::io::BufRead as _;

use crate::cli::context::Context;
use crate::cli::memory::edit::in_editor;
use crate::cli::output::{Page, Style, end};
use crate::cli::review::queue;
use crate::cli::review::record::record;
use crate::cli::review::undo::revert;
use crate::model::error::UserError;
use crate::model::{CallAction, Kind, SkillPath};
use crate::review::queue::{Waiting, WaitingKind};
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

/// What follows an answer.
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
        for warning in &queue.warnings {
            self.context.printer.warn(warning);
        }
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
        let is_key = keys.iter().chain(&COMMON).any(|(known, _)| *known == key);
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
            self.context
                .printer
                .warn("nothing was decided in this review; `memctl undo` reverts earlier changes");
            return Ok(Next::Ask);
        };
        let done = revert(&self.context.for_next_change(), Some(change), false)?;
        self.changes.pop();
        self.say("undone", &done.warnings);
        self.read()?;
        Ok(Next::Show)
    }

    fn say(&self, did: &str, warnings: &[String]) {
        let mut page = self.context.printer.page();
        page.good(did, "");
        self.context.printer.line(&page.into_text());
        for warning in warnings {
            self.context.printer.warn(warning);
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
        let mut gone = None;
        let (did, warnings) = match key {
            'a' | 'A' | 'D' => {
                let action = match key {
                    'A' => CallAction::Ask,
                    'D' => CallAction::Deny,
                    _ => CallAction::Note,
                };
                let action = (!waiting.patterns.is_empty()).then_some(action);
                let done = review::approve(&workspace, std::slice::from_ref(id), action)?;
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
                gone = Some(newer.clone());
                (format!("forgot {newer}"), done.warnings)
            }
            'm' => {
                let Some((keep, other)) = which_stays(&context, words, waiting)? else {
                    return Ok(false);
                };
                let done = rules::merge(&workspace, &keep, &other)?;
                let did = format!("merged {other} into {keep}");
                gone = Some(other);
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
        self.open
            .retain(|one| !is_same(one, waiting) && !gone.as_ref().is_some_and(|id| one.names(id)));
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
        (is_pair || waiting.near.is_some(), 'm', "merge"),
        (is_pair, 'b', "keep both"),
        (waiting.kind == Of::Doubtful && is_rule, 'b', "keep"),
        (true, 'e', "edit"),
        (waits && waiting.kind != Of::Memory, 'x', "reject"),
        (true, 'f', "forget"),
    ];
    let keys = keys.into_iter().filter(|(has, _, _)| *has);
    keys.map(|(_, key, name)| (key, name)).collect()
}

fn heading(page: &mut Page, waiting: &Waiting, left: usize) {
    let ids = super::ids(waiting);
    page.line("");
    page.styled(&[
        (Style::Strong, &format!("{}  {ids}", waiting.kind.name())),
        (Style::Dim, &format!("  {left} waiting")),
    ]);
}

fn key_line(page: &mut Page, keys: &[(char, &str)]) {
    let common = [('s', "skip"), ('?', "help"), ('q', "quit")];
    let all = keys.iter().chain(&common);
    let pieces: Vec<[String; 2]> = all
        .map(|(key, name)| [key.to_string(), format!(" {name}  ")])
        .collect();
    let (mut line, mut used) = (Vec::new(), 0);
    for [key, name] in &pieces {
        let width = key.len() + name.trim_end().len();
        if used + width > page.width() {
            page.styled(&std::mem::take(&mut line));
            used = 0;
        }
        used += key.len() + name.len();
        line.extend([(Style::Strong, key.as_str()), (Style::Plain, name.as_str())]);
    }
    page.styled(&line);
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
        "" => answer(context, question)?.unwrap_or_default(),
        words => words.to_owned(),
    };
    Ok((!words.is_empty()).then_some(words))
}

/// Asks which of two rules stays. Returns that one, and the other.
fn which_stays(
    context: &Context,
    words: &str,
    waiting: &Waiting,
) -> Result<Option<(String, String)>, UserError> {
    let near = waiting.near.as_ref();
    let text = |name: &str| waiting.text(name).unwrap_or_default();
    let first = (
        &waiting.id,
        [text("rule"), text("older")]
            .into_iter()
            .find(|t| !t.is_empty()),
    );
    let second = match (&waiting.other, near) {
        (Some(other), _) => (other, Some(text("newer"))),
        (None, Some(near)) => (&near.id, Some(near.rule.as_str())),
        (None, None) => return Ok(None),
    };
    if words.is_empty() {
        let mut page = context.printer.page();
        for (number, (id, text)) in ["1", "2"].into_iter().zip([first, second]) {
            let text = end(text.unwrap_or_default(), STAYS);
            page.line(format!("{number}  {id}  {text}"));
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
