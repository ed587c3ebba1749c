//! In-memory fixes for a replay. They are searched by the same terms and merged by the same measure
//! as the fixes of a store, and some are visible to one session only.

use std::collections::HashMap;

use crate::hints::fixes::terms_of;
use crate::hints::lookup::Fixes;
use crate::learn::distil::Lesson;
use crate::learning::lessons::{count_up, fix_of, is_same};
use crate::model::{Fix, Origin};

/// Fixes in memory.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    held: Vec<KnownFix>,
    by_term: HashMap<u64, Vec<u32>>,
    by_key: HashMap<String, Vec<u32>>,
    /// Number of fixes visible to every session.
    shared: u64,
    /// Number of fixes visible to one session only.
    alone: HashMap<usize, u64>,
}

#[derive(Debug)]
struct KnownFix {
    fix: Fix,
    seen: Visibility,
}

#[derive(Debug, PartialEq, Eq)]
enum Visibility {
    All,
    One(usize),
    Nobody,
}

/// Fixes visible to one session.
#[derive(Debug)]
pub(crate) struct View<'a> {
    memory: &'a Memory,
    session: usize,
}

impl Memory {
    pub(crate) fn seen_by(&self, session: usize) -> View<'_> {
        View {
            memory: self,
            session,
        }
    }

    /// Learns a fix that only its own session sees.
    pub(crate) fn learn_alone(&mut self, session: usize, lesson: &Lesson) {
        if self.seen_by(session).same(lesson).is_none() {
            self.hold(lesson, Origin::default(), Visibility::One(session));
            *self.alone.entry(session).or_default() += 1;
        }
    }

    /// Hides the fixes that only this session sees.
    pub(crate) fn forget_alone(&mut self, session: usize) {
        if self.alone.remove(&session).is_some() {
            for held in &mut self.held {
                if held.seen == Visibility::One(session) {
                    held.seen = Visibility::Nobody;
                }
            }
        }
    }

    /// Learns a fix for every session, or counts one more occurrence of a known fix.
    pub(crate) fn learn(&mut self, lesson: &Lesson, origin: Origin) {
        // No session has this number, so only the shared fixes are compared.
        if let Some(number) = self.seen_by(usize::MAX).same(lesson) {
            count_up(&mut self.held[number as usize].fix, origin);
        } else {
            self.hold(lesson, origin, Visibility::All);
            self.shared += 1;
        }
    }

    fn hold(&mut self, lesson: &Lesson, origin: Origin, seen: Visibility) {
        let Ok(number) = u32::try_from(self.held.len()) else {
            return;
        };
        let mut fix = fix_of(&lesson.recovery, origin, "");
        fix.fix_id = format!("FIX-{:03}", number + 1);
        let mut terms = terms_of(&fix);
        terms.sort_unstable();
        terms.dedup();
        for term in terms {
            self.by_term.entry(term).or_default().push(number);
        }
        let same_key = self.by_key.entry(fix.error_key.clone()).or_default();
        same_key.push(number);
        self.held.push(KnownFix { fix, seen });
    }
}

impl View<'_> {
    fn sees(&self, number: u32) -> bool {
        match self.memory.held[number as usize].seen {
            Visibility::All => true,
            Visibility::One(session) => session == self.session,
            Visibility::Nobody => false,
        }
    }

    /// Returns true if a visible fix has this error key.
    pub(crate) fn has(&self, key: &str) -> bool {
        let same = self.memory.by_key.get(key);
        same.is_some_and(|numbers| numbers.iter().any(|n| self.sees(*n)))
    }

    fn same(&self, lesson: &Lesson) -> Option<u32> {
        let same = self.memory.by_key.get(&lesson.recovery.error_key)?;
        let is_same = |n: &u32| is_same(&self.memory.held[*n as usize].fix, lesson);
        same.iter().copied().find(|n| self.sees(*n) && is_same(n))
    }
}

impl Fixes for View<'_> {
    fn entries(&self) -> u64 {
        let alone = self.memory.alone.get(&self.session);
        self.memory.shared + alone.copied().unwrap_or_default()
    }

    fn holding(&self, term: u64, limit: usize) -> (Vec<u32>, u64) {
        let all = self
            .memory
            .by_term
            .get(&term)
            .map_or(&[][..], Vec::as_slice);
        let mut seen: Vec<u32> = all.iter().copied().filter(|n| self.sees(*n)).collect();
        let count = seen.len();
        seen.drain(..count.saturating_sub(limit));
        (seen, count as u64)
    }

    fn fix(&self, number: u32) -> Option<Fix> {
        let held = self.memory.held.get(number as usize)?;
        self.sees(number).then(|| held.fix.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::distil::{FixText, ProcedureData, Recovery};

    fn lesson(key: &str, working: &str) -> Lesson {
        let empty = String::new;
        Lesson {
            recovery: Recovery {
                error_key: key.to_owned(),
                error_line: String::new(),
                subject: Vec::new(),
                is_local: false,
                tool: "make".to_owned(),
                fix: FixText {
                    failing_code: "make".to_owned(),
                    working_code: working.to_owned(),
                    success_output: empty(),
                },
            },
            procedure: ProcedureData {
                procedure_name: empty(),
                semantic_description: empty(),
                initial_failure_summary: empty(),
                identified_root_cause: empty(),
                successful_intervention: empty(),
                learned_procedure_steps: Vec::new(),
                critical_contextual_cues: Vec::new(),
                example_scenario_abstract: empty(),
            },
        }
    }

    #[test]
    fn a_session_sees_its_own_at_once_and_others_see_it_later() {
        let mut memory = Memory::default();
        let fix = lesson("error: no rule for the target", "make -f other.mk");
        memory.learn_alone(0, &fix);
        memory.learn_alone(0, &fix);
        let sees = |memory: &Memory, session| {
            let view = memory.seen_by(session);
            let term = terms_of(&fix_of(&fix.recovery, Origin::default(), ""))[0];
            assert_eq!(view.holding(term, 9).1, view.entries(), "{session}");
            (view.has(&fix.recovery.error_key), view.entries())
        };
        assert_eq!(sees(&memory, 0), (true, 1));
        assert_eq!(sees(&memory, 1), (false, 0));
        memory.forget_alone(0);
        assert_eq!(sees(&memory, 0), (false, 0));
        let origin = |step| Origin {
            step,
            ..Origin::default()
        };
        memory.learn(&fix, origin(1));
        memory.learn(&fix, origin(2));
        assert_eq!(sees(&memory, 1), (true, 1));
        let view = memory.seen_by(1);
        let number = view.same(&fix).unwrap();
        assert_eq!(view.fix(number).unwrap().occurrences, Some(2.0));
    }
}
