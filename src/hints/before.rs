//! Answer to a call before it runs: rules that act on it, and lessons for it.
//!
//! A host waits for this at every call, so a call without a match reads two derived tables and
//! nothing else. Nothing here permits a call.
//!
//! A note is told once in a session. If a matching call comes again, it counts as overridden once
//! it has run. A rule that asks or refuses answers every matching call, and one that runs all the
//! same counts as overridden. A lesson is told before a call once in a session.

use crate::guard;
use crate::learn::check::Call;
use crate::lessons::{matching, telling};
use crate::model::{CheckAction, Reflexion, Step};
use crate::workspace::Error;

use super::checks;
use super::fired::{CheckCredit, Fired};
use super::service::HintService;
use super::session_state::SessionNotes;

/// Maximum number of rules that a session tracks.
const KEPT: usize = 32;
/// Maximum length of a rule in an answer, in characters.
const RULE: usize = 600;

/// Call that is about to run.
pub struct BeforeCall<'a> {
    /// Tool, arguments and working directory.
    pub step: &'a Step,
    /// Returns the redacted text of the call, as the events after it have it. Called only if a rule
    /// acts: redaction costs more than the rest.
    pub code: &'a dyn Fn() -> String,
    /// Session of the call.
    pub session: &'a str,
    /// Rules to consider.
    pub filter: RuleFilter,
}

/// Rules to consider, by their action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleFilter {
    /// All rules.
    All,
    /// Rules that ask or refuse.
    Decisions,
    /// Rules that note.
    Notes,
}

impl RuleFilter {
    fn has(self, rule: &Reflexion) -> bool {
        let is_note = rule
            .check
            .as_ref()
            .is_some_and(|c| c.action == CheckAction::Note);
        match self {
            Self::All => true,
            Self::Decisions => !is_note,
            Self::Notes => is_note,
        }
    }
}

/// Rules that act on a call.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Warning {
    /// Strictest action among the rules.
    pub action: CheckAction,
    /// Rules with that action, or all notes, one per line; empty if no rule acts.
    pub rules: String,
}

impl HintService<'_> {
    /// Returns the rules that act on a call, and records them in the session.
    pub fn before(&self, call: &BeforeCall<'_>) -> Result<Warning, Error> {
        let mut rules = checks::acting(self.store, &Call::of(call.step, &self.project_dir()))?;
        rules.retain(|rule| call.filter.has(rule));
        if rules.is_empty() {
            return Ok(Warning::default());
        }
        let key = key(&call.step.tool, &(call.code)());
        let mut told = Vec::new();
        let fire = |known: &mut SessionNotes| {
            for rule in &rules {
                let action = rule.check.as_ref().map_or(CheckAction::Note, |c| c.action);
                let is_new = known.fires(&rule.reflexion_id, action, key);
                if is_new || action != CheckAction::Note {
                    told.push((action, rule));
                }
            }
        };
        self.record(call.session, fire)?;
        let action = told.iter().map(|(action, _)| *action).max();
        let Some(action) = action else {
            return Ok(Warning::default());
        };
        let lines = told.iter().filter(|(own, _)| *own == action);
        let lines: Vec<String> = lines.map(|(_, rule)| line(rule)).collect();
        Ok(Warning {
            action,
            rules: lines.join("\n"),
        })
    }

    /// Returns the lessons for a call, as text, and records that they are told. `code` need not be
    /// redacted: it is compared, and not stored. A running experiment gets none: a failure that does
    /// not happen could not be compared.
    pub fn lessons_before(
        &self,
        code: &str,
        session: &str,
        project: Option<&str>,
    ) -> Result<String, Error> {
        if code.trim().is_empty() || self.withhold.get() > 0.0 {
            return Ok(String::new());
        }
        let lessons = matching::before_call(self.store, code, project, &[])?;
        if lessons.is_empty() {
            return Ok(String::new());
        }
        let known = SessionNotes::read(&self.store.read_notes(session));
        let told = known.shown_ids();
        let lessons: Vec<_> = lessons
            .into_iter()
            .filter(|lesson| !told.contains(&lesson.id))
            .collect();
        let (text, count) = telling::before_call(&lessons, &(self.random)());
        if count > 0 {
            let call = guard::redact(code).text;
            self.record(session, |known| {
                known.showed_before(&lessons[..count], &call)
            })?;
            let ids = lessons[..count].iter().map(|lesson| lesson.id.as_str());
            self.store.count_retrievals(ids);
        }
        Ok(text)
    }

    /// Directory of the project: the one that holds the memory.
    fn project_dir(&self) -> String {
        let inside = self.store.directory().join("x");
        let project = inside.ancestors().nth(2);
        project.map_or_else(String::new, |path| path.display().to_string())
    }
}

impl SessionNotes {
    /// Records that a rule acts on a call. Returns `true` if it is the first time.
    fn fires(&mut self, rule: &str, action: CheckAction, key: u64) -> bool {
        let at = self.fired.iter().position(|fired| fired.rule == rule);
        if let Some(at) = at {
            self.fired[at].awaited = key;
            return false;
        }
        self.fired.push(Fired {
            rule: rule.to_owned(),
            // The call behind a note runs before the agent has read it.
            awaited: if action == CheckAction::Note { 0 } else { key },
            ..Fired::default()
        });
        let surplus = self.fired.len().saturating_sub(KEPT);
        self.fired.drain(..surplus);
        self.owed.checks.push(CheckCredit {
            id: rule.to_owned(),
            fired: true,
            ..CheckCredit::default()
        });
        true
    }

    /// Records that a call ran. Returns the counts of the checks that it overrode.
    pub(crate) fn ran(
        &mut self,
        tool: Option<&str>,
        code: &str,
        succeeded: bool,
    ) -> Vec<CheckCredit> {
        let key = key(tool.unwrap_or_default(), code);
        let mut credits = Vec::new();
        for fired in self.fired.iter_mut().filter(|fired| fired.awaited == key) {
            fired.awaited = 0;
            let credit = CheckCredit {
                id: fired.rule.clone(),
                fired: false,
                overridden: !std::mem::replace(&mut fired.overridden, true),
                needless: succeeded && !std::mem::replace(&mut fired.needless, true),
            };
            if credit.overridden || credit.needless {
                credits.push(credit);
            }
        }
        credits
    }

    /// Returns the rules whose firing is not in the action log yet, and marks them.
    pub(crate) fn unlogged(&mut self) -> Vec<String> {
        let open = self.fired.iter_mut().filter(|fired| !fired.logged);
        let ids = open.map(|fired| {
            fired.logged = true;
            fired.rule.clone()
        });
        ids.collect()
    }

    /// Returns `true` if a call that overrides a check may run, or a firing is not stored yet.
    pub(crate) fn watches_checks(&self) -> bool {
        !self.owed.checks.is_empty() || self.fired.iter().any(|fired| fired.awaited != 0)
    }
}

/// Hash of a call, to recognise it in the events after it; never 0.
fn key(tool: &str, code: &str) -> u64 {
    let bytes = tool.bytes().chain([0]).chain(code.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash | 1
}

/// Rule on one line: redacted, without fence markers. Only confirmed rules get here, so it stands
/// outside of a fence.
fn line(rule: &Reflexion) -> String {
    let one_line = |text: &str| {
        let text = guard::unfenced(&guard::redact(text).text);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match text.char_indices().nth(RULE) {
            Some((at, _)) => format!("{}…", &text[..at]),
            None => text,
        }
    };
    let mut text = format!("{} ({})", one_line(&rule.rule), rule.reflexion_id);
    if !rule.applies_when.trim().is_empty() {
        text.extend([" It applies: ", &one_line(&rule.applies_when)]);
    }
    text
}
