//! Receipts of rules: what a session was told, and what its agents did next.
//!
//! - *told*: a rule spoke at a call, for the first time in the session.
//! - *recurred*: the agent that was told made another call that breaks the rule, whether or not it ran.
//! - *heeded*: a later call with the same beginning obeyed the rule, or the session ended after further
//!   calls of which none broke it. A later break takes that back.
//! - *overridden*: the person was asked about a call, and it ran.
//!
//! A session without a further call counts nothing. The call that a note answers runs before the agent has
//! read the note, so it counts nothing either. Subagents, and an agent after compaction, are told again.
//!
//! Pure: the caller reads and stores the notes.

use serde::{Deserialize, Serialize};

use crate::model::{CallAction, Reflexion};

/// Maximum number of rules that a session tracks, and of fulfilled conditions.
const KEPT: usize = 64;

/// Notes of a session about rules.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RuleNotes {
    /// Rules that were told at calls.
    pub(crate) told: Vec<Told>,
    /// `after` expressions that a successful call has matched.
    pub(crate) done: Vec<String>,
    /// Counts that are not stored yet.
    #[serde(rename = "owed")]
    pub(crate) pending: Vec<Credit>,
    /// Bytes of the session file that were read, on an agent host that has no event after a compaction.
    pub(crate) file_read: Option<u64>,
}

/// Rule that was told in a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Told {
    /// Id of the rule.
    pub(crate) rule: String,
    /// Agents that have it in their context: empty for the main one.
    pub(crate) agents: Vec<String>,
    /// Beginnings of the call that broke it: programs, or the tool.
    pub(crate) begins: Vec<String>,
    pub(crate) outcome: Outcome,
    /// A call followed that did not break it.
    pub(crate) followed: bool,
    /// Hash of the call that the person is asked about; 0 if there is none.
    pub(crate) awaited: u64,
    pub(crate) overridden: bool,
}

/// Outcome of a rule after it was told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    #[default]
    Open,
    Heeded,
    Recurred,
}

/// Addition to the counts of a rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Credit {
    /// Id of the rule.
    pub(crate) id: String,
    pub(crate) told: i64,
    pub(crate) heeded: i64,
    pub(crate) recurred: i64,
    pub(crate) overridden: i64,
}

/// Call as the notes see it.
pub(crate) struct Made<'a> {
    /// Agent that makes it; empty for the main one.
    pub(crate) agent: &'a str,
    /// Programs, or the tool.
    pub(crate) begins: Vec<String>,
    /// Hash, to recognise it in the events after it.
    pub(crate) key: u64,
}

impl RuleNotes {
    /// Records a call before it runs, with the rules that it breaks. Returns those to tell.
    pub(crate) fn called<'r>(
        &mut self,
        made: &Made<'_>,
        broken: &'r [Reflexion],
    ) -> Vec<&'r Reflexion> {
        for at in 0..self.told.len() {
            let told = &self.told[at];
            let is_broken = broken.iter().any(|rule| rule.reflexion_id == told.rule);
            if !is_broken && told.knows(made.agent) && told.outcome == Outcome::Open {
                let is_alike = told.begins.iter().any(|begin| made.begins.contains(begin));
                self.told[at].followed = true;
                if is_alike {
                    self.decide(at, Outcome::Heeded);
                }
            }
        }
        broken
            .iter()
            .filter(|rule| self.breaks(made, rule))
            .collect()
    }

    /// Records a call that breaks a rule. Returns `true` if the rule is to be told.
    fn breaks(&mut self, made: &Made<'_>, rule: &Reflexion) -> bool {
        let id = &rule.reflexion_id;
        let decides = rule.action > CallAction::Note;
        let existing = self.told.iter().position(|told| told.rule == *id);
        let at = existing.unwrap_or_else(|| {
            let surplus = (self.told.len() + 1).saturating_sub(KEPT);
            self.told.drain(..surplus);
            self.told.push(Told {
                rule: id.clone(),
                begins: made.begins.clone(),
                ..Told::default()
            });
            self.change_credit(id, |credit| credit.told += 1);
            self.told.len() - 1
        });
        if decides {
            self.told[at].awaited = made.key;
        }
        if self.told[at].knows(made.agent) {
            self.decide(at, Outcome::Recurred);
            return decides;
        }
        self.told[at].agents.push(made.agent.to_owned());
        true
    }

    /// Records that a call ran.
    pub(crate) fn ran(&mut self, key: u64) {
        for at in 0..self.told.len() {
            let told = &mut self.told[at];
            if told.awaited == key {
                told.awaited = 0;
                if !std::mem::replace(&mut told.overridden, true) {
                    let id = told.rule.clone();
                    self.change_credit(&id, |credit| credit.overridden += 1);
                }
            }
        }
    }

    /// Records that a successful call matched these `after` expressions.
    pub(crate) fn fulfilled(&mut self, patterns: Vec<String>) {
        for pattern in patterns {
            if !self.done.contains(&pattern) && self.done.len() < KEPT {
                self.done.push(pattern);
            }
        }
    }

    /// Forgets who has read what: the context of the session is gone.
    pub(crate) fn compacted(&mut self) {
        for told in &mut self.told {
            told.agents.clear();
        }
    }

    /// Records the end of the session.
    pub(crate) fn ended(&mut self) {
        for at in 0..self.told.len() {
            if self.told[at].outcome == Outcome::Open && self.told[at].followed {
                self.decide(at, Outcome::Heeded);
            }
        }
    }

    /// Number of rules that were told, and of those that no later call has broken.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let is_heeded = |told: &&Told| match told.outcome {
            Outcome::Heeded => true,
            Outcome::Open => told.followed,
            Outcome::Recurred => false,
        };
        (self.told.len(), self.told.iter().filter(is_heeded).count())
    }

    fn decide(&mut self, at: usize, outcome: Outcome) {
        let told = &mut self.told[at];
        let before = std::mem::replace(&mut told.outcome, outcome);
        if before == outcome || before == Outcome::Recurred {
            told.outcome = before;
            return;
        }
        let id = told.rule.clone();
        self.change_credit(&id, |credit| match outcome {
            Outcome::Heeded => credit.heeded += 1,
            Outcome::Recurred => {
                credit.recurred += 1;
                credit.heeded -= i64::from(before == Outcome::Heeded);
            }
            Outcome::Open => {}
        });
    }

    fn change_credit(&mut self, id: &str, add: impl FnOnce(&mut Credit)) {
        let existing = self.pending.iter().position(|credit| credit.id == id);
        let at = existing.unwrap_or_else(|| {
            self.pending.push(Credit {
                id: id.to_owned(),
                ..Credit::default()
            });
            self.pending.len() - 1
        });
        add(&mut self.pending[at]);
    }
}

impl Told {
    /// Returns `true` if the agent has the rule in its context. Subagents do not share the
    /// context of the main agent.
    fn knows(&self, agent: &str) -> bool {
        self.agents.iter().any(|one| one == agent)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(action: &str) -> [Reflexion; 1] {
        let rule = json!({"reflexion_id": "REFL-001", "rule": "r", "action": action});
        [serde_json::from_value(rule).unwrap()]
    }

    fn made(agent: &'static str, begin: &str) -> Made<'static> {
        Made {
            agent,
            begins: vec![begin.to_owned()],
            key: 7,
        }
    }

    fn sum(notes: &mut RuleNotes) -> [i64; 4] {
        let mut sum = [0; 4];
        for credit in std::mem::take(&mut notes.pending) {
            for (n, count) in [
                credit.told, credit.heeded, credit.recurred, credit.overridden,
            ]
            .into_iter()
            .enumerate()
            {
                sum[n] += count;
            }
        }
        sum
    }

    #[test]
    fn outcome_of_a_note_is_counted_once() {
        // The calls of a session: `true` for one that breaks the rule.
        let check = |calls: &[(&str, bool)], expected: [i64; 4], told: usize| {
            let mut notes = RuleNotes::default();
            let (rule, mut spoken) = (rule("note"), 0);
            for (begin, breaks) in calls {
                let broken = if *breaks { &rule[..] } else { &[] };
                spoken += notes.called(&made("", begin), broken).len();
            }
            notes.ended();
            notes.ended();
            assert_eq!((sum(&mut notes), spoken), (expected, told), "{calls:?}");
        };
        check(&[("git", true)], [1, 0, 0, 0], 1);
        check(&[("git", true), ("git", false)], [1, 1, 0, 0], 1);
        check(&[("git", true), ("ls", false)], [1, 1, 0, 0], 1);
        check(&[("git", true), ("git", true)], [1, 0, 1, 0], 1);
        check(
            &[("git", true), ("git", false), ("git", true)],
            [1, 0, 1, 0],
            1,
        );
        check(
            &[("git", true), ("git", true), ("git", false)],
            [1, 0, 1, 0],
            1,
        );
        check(&[("git", false)], [0; 4], 0);
    }

    #[test]
    fn a_subagent_and_a_new_context_are_told_anew() {
        let (rule, mut notes) = (rule("note"), RuleNotes::default());
        let told = |notes: &mut RuleNotes, agent| notes.called(&made(agent, "git"), &rule).len();
        assert_eq!(told(&mut notes, ""), 1);
        assert_eq!(told(&mut notes, "sub"), 1);
        assert_eq!(told(&mut notes, "sub"), 0);
        notes.compacted();
        assert_eq!(told(&mut notes, ""), 1);
        assert_eq!(sum(&mut notes), [1, 0, 1, 0]);
    }

    #[test]
    fn a_question_is_put_at_every_call_and_may_be_overridden() {
        let (rule, mut notes) = (rule("ask"), RuleNotes::default());
        for _ in 0..2 {
            assert_eq!(notes.called(&made("", "git"), &rule).len(), 1);
            notes.ran(7);
        }
        assert_eq!(sum(&mut notes), [1, 0, 1, 1]);
        // A call that was refused does not run.
        let mut notes = RuleNotes::default();
        notes.called(&made("", "git"), &rule);
        notes.ran(8);
        assert_eq!(sum(&mut notes), [1, 0, 0, 0]);
    }
}
