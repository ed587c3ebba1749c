//! Lessons for a call before it runs. Each is told once in a session.

use crate::lessons::telling::{self, matching};
use crate::store::workspace::Error;

use super::service::HintService;
use super::session_state::SessionNotes;

impl HintService<'_> {
    /// Returns the lessons for a call, as text, and records that they are told. `code` need not be
    /// redacted: it is compared, and not stored.
    pub fn lessons_before(&self, code: &str, session: &str) -> Result<String, Error> {
        if code.trim().is_empty() {
            return Ok(String::new());
        }
        let lessons = matching::before_call(self.store, code, &self.here, &[])?;
        let lessons = self.without_forbidden(lessons);
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
            let call = memctl_redact::redact(code).text;
            self.record(session, |known| {
                known.showed_before(&lessons[..count], &call);
            })?;
            let ids = lessons[..count].iter().map(|lesson| lesson.id.as_str());
            self.store.count_retrievals(ids);
        }
        Ok(text)
    }
}
