//! Marks of a session: what became of the question to its agent.

use crate::store::Scoped;

/// Outcome of the question in a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marks {
    /// A call has failed, and the agent was not asked since.
    pub has_failed: bool,
    /// The agent was asked.
    pub was_asked: bool,
    /// The agent was told what was refused.
    pub was_refused: bool,
    /// Number of lessons that the session brought.
    pub lessons: usize,
}

impl Marks {
    /// Reads the marks of a session.
    pub fn of(store: &Scoped, session: &str) -> Self {
        let mut marks = Self::default();
        let bytes = store.session_log(session).marks();
        for line in String::from_utf8_lossy(&bytes).lines() {
            match line.split(' ').next() {
                Some("failed") => marks.has_failed = true,
                Some("asked") => marks.was_asked = true,
                Some("refused") => marks.was_refused = true,
                Some("lesson") => marks.lessons += 1,
                _ => {}
            }
        }
        marks
    }
}
