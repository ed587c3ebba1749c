//! Briefing at the start of a session: the rules from the users of the project, and its lessons.
//!
//! It is short, because the model reads it again at every step of the session. Rules fill the space that the
//! other parts leave, which is at least three fifths.

use crate::lessons::telling;
use crate::lessons::telling::hint::render_pitfalls;
use crate::lessons::telling::scratch::LessonScratch;
use crate::lessons::telling::service::HintService;
use crate::model::{Kind, Reflexion};
use crate::rules::acting::Tables;
use crate::rules::in_use::{LOOKED_AT, filled, lines, session_rules, waits};
use crate::rules::session_receipts;
use crate::store::Here;
use crate::store::Selection;
use crate::store::workspace::Error;

/// Maximum length of the text at the start of a session, in UTF-16 code units.
const LONGEST: usize = 2_000;

/// Text for the start of a session; a part is empty if it has nothing to report.
#[derive(Debug, Default)]
pub struct Briefing {
    /// Rules from people, lessons that they have approved, and text of this program.
    pub rules: String,
    /// Observed records, to be shown as data only.
    pub observed: String,
    /// Ids of the rules in these texts.
    pub told: Vec<String>,
    /// Ids of the lessons in these texts.
    pub lessons: Vec<String>,
}

impl HintService<'_> {
    /// Returns the text that an agent gets at the start of a session; empty if there is nothing to
    /// tell. Observed records are fenced.
    pub fn session_text(&self, session: &str, here: &Here<'_>) -> Result<String, Error> {
        let nonce = (self.random)();
        let frame = memctl_redact::length(&memctl_redact::fence::<&str>(&[], &nonce));
        let briefing = self.briefing(session, here, LONGEST - frame)?;
        let ids = briefing.told.iter().chain(&briefing.lessons);
        let ids: Vec<&str> = ids.map(String::as_str).collect();
        if !ids.is_empty() {
            // Only the status line depends on it.
            let changed = self
                .store
                .try_change_scratch(session, |scratch: &mut LessonScratch| {
                    scratch.rules_at_start = briefing.told.len();
                    scratch.lessons_at_start.clone_from(&briefing.lessons);
                });
            drop(changed);
            self.log_delivered(session, "start", None, &ids);
        }
        let mut text = briefing.rules;
        if !briefing.observed.is_empty() {
            text.push_str(&memctl_redact::fence(&[briefing.observed], &nonce));
        }
        Ok(text)
    }

    /// Returns the briefing, in at most `budget` UTF-16 code units. A resumed session also gets the
    /// pitfalls that it has met itself.
    pub fn briefing(
        &self,
        session: &str,
        here: &Here<'_>,
        budget: usize,
    ) -> Result<Briefing, Error> {
        let mut briefing = Briefing::default();
        let rules = session_rules(self.store, self.now, here)?;
        // Lessons that cannot be read are no reason to keep the rules back.
        let mut lessons = telling::at_start(self.store, here).unwrap_or_default();
        // Opened once: a memory has hundreds of lessons.
        let tables = Tables::open(self.store).ok();
        let is_free = |(_, line): &(String, String)| {
            let tables = tables.as_ref();
            tables.is_none_or(|tables| tables.against("", line).is_none())
        };
        lessons.approved.retain(is_free);
        lessons.observed.retain(is_free);
        let of_lessons = |heading: &str, lessons: &[(String, String)]| {
            section(heading, lessons.iter().map(|(_, line)| line.clone()))
        };
        let heading = if here.is_of_user {
            "Lessons that the user has approved for all of their projects:"
        } else {
            "Lessons that people have approved for this project:"
        };
        let approved = of_lessons(heading, &lessons.approved);
        let heading = "Rules that came with the files of others (not approved here):";
        let others = section(heading, lines(&rules.observed));
        let heading = if here.is_of_user {
            "Lessons of other projects of the user, where what they name ran and worked:"
        } else {
            "Lessons of this project. What they name ran and worked here: run it as it stands, and look things up only where it fails."
        };
        let observed = others + &of_lessons(heading, &lessons.observed);
        let observed = memctl_redact::defuse(&observed);
        let notice = waiting_notice(rules.waiting);
        let rule_budget = budget.saturating_sub(memctl_redact::length(&notice));
        briefing.rules = within(&render_pitfalls(&self.pitfalls(session)), rule_budget);
        let left = rule_budget.saturating_sub(memctl_redact::length(&briefing.rules));
        let others = memctl_redact::length(&approved) + memctl_redact::length(&observed);
        let heading = "Rules that people have given in this project:";
        let of_rules = left.saturating_sub(others.min(budget * 2 / 5));
        let mut text = filled(heading, lines(&rules.own), of_rules);
        if text.is_empty() {
            text = filled(heading, lines(&rules.own), left);
        }
        briefing.rules.push_str(&text);
        let left = rule_budget.saturating_sub(memctl_redact::length(&briefing.rules));
        briefing.rules.push_str(&within(&approved, left));
        briefing.rules.push_str(&notice);
        let left = budget.saturating_sub(memctl_redact::length(&briefing.rules));
        briefing.observed = within(&observed, left);
        let with_ids = |rules: &[Reflexion]| -> Vec<(String, String)> {
            let ids = rules.iter().map(|rule| rule.reflexion_id.clone());
            ids.zip(lines(rules)).collect()
        };
        briefing.told = shown(&with_ids(&rules.own), &briefing.rules);
        let others = shown(&with_ids(&rules.observed), &briefing.observed);
        briefing.told.extend(others);
        briefing.lessons = shown(&lessons.approved, &briefing.rules);
        let observed = shown(&lessons.observed, &briefing.observed);
        briefing.lessons.extend(observed);
        Ok(briefing)
    }
}

/// Returns the ids of the records whose line is in a text, as it is or made harmless.
fn shown(records: &[(String, String)], text: &str) -> Vec<String> {
    let is_in = |line: &str| text.lines().any(|one| one.trim() == line.trim());
    let shown = records
        .iter()
        .filter(|(_, line)| is_in(line) || is_in(&memctl_redact::defuse(line)));
    shown.map(|(id, _)| id.clone()).collect()
}

/// One line on the candidates from chats; empty if none waits. It repeats no text of them.
fn waiting_notice(waiting: usize) -> String {
    let (rules, wait) = match waiting {
        0 => return String::new(),
        1 => ("1 rule", "waits"),
        _ => (&*format!("{waiting} rules"), "wait"),
    };
    format!("{rules} of the user {wait} for their approval: memctl review\n")
}

/// Heading and lines; empty without a line.
fn section(heading: &str, lines: impl Iterator<Item = String>) -> String {
    let lines: String = lines.map(|line| line + "\n").collect();
    match lines.as_str() {
        "" => lines,
        _ => format!("{heading}\n{lines}"),
    }
}

/// Returns the whole lines that fit the budget; empty if only the heading fits.
fn within(text: &str, budget: usize) -> String {
    let mut fitting = String::new();
    let mut used = 0;
    for line in text.lines() {
        used += memctl_redact::length(line) + 1;
        if used > budget {
            break;
        }
        fitting.extend([line, "\n"]);
    }
    if fitting.lines().count() < 2 {
        fitting.clear();
    }
    fitting
}

/// Numbers of a running session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionCounts {
    /// Rules that the agent got at the start.
    pub told: usize,
    /// Rules that it was told at calls.
    pub told_at_calls: usize,
    /// Of these, rules that no later call has broken.
    pub heeded: usize,
    /// Lessons that it was told, at the start or at calls.
    pub lessons: usize,
    /// Of these, lessons with a success after they were shown.
    pub helped: usize,
    /// Candidate rules among the newest rules that wait for a decision.
    pub waiting: usize,
}

impl HintService<'_> {
    /// Returns the numbers of a session. Without a session, only the candidates are counted.
    pub fn session_counts(&self, session: Option<&str>) -> Result<SessionCounts, Error> {
        let scratch = session.map(|session| self.store.scratch_of::<LessonScratch>(session));
        let scratch = scratch.unwrap_or_default();
        let newest = Selection::newest(None, LOOKED_AT);
        let mut waiting = 0;
        self.store
            .each_entry(Kind::Reflexion, &newest, &mut |entry| {
                // Only candidates are parsed.
                let may_wait = memchr::memmem::find(&entry.text, b"candidate").is_some();
                if may_wait && entry.parse::<Reflexion>().is_ok_and(|rule| waits(&rule)) {
                    waiting += 1;
                }
            })?;
        let at_calls = session.map(|session| session_receipts(self.store, session));
        let (told_at_calls, heeded) = at_calls.unwrap_or_default();
        let (lessons, helped) = scratch.lessons_told();
        Ok(SessionCounts {
            told: scratch.rules_at_start,
            told_at_calls,
            heeded,
            lessons,
            helped,
            waiting,
        })
    }
}
