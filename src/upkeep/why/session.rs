//! Links of a session: the procedures that it taught.
//!
//! A procedure names the session of its host, or the name of the file if the session has none.

use crate::model::{Evidence, Kind, Procedure, Session};
use crate::store::Entry;

use super::Relation;
use super::walk::{Direction, Step, Walk};
use crate::store::workspace::Error;

impl Walk<'_> {
    /// Follows the links of a session that is a record.
    pub(super) fn session(
        &mut self,
        entry: &Entry,
        from: Step<'_>,
    ) -> Result<Option<Evidence>, Error> {
        let native = entry.parse::<Session>().ok().and_then(|s| s.native_id());
        if from.way == Direction::Both
            && let Some(native) = native
        {
            // The record has the name of the host before the id that the session file has.
            let name = native.split_once('/').map_or(native.as_str(), |(_, id)| id);
            self.recoveries(name, from)?;
        }
        Ok(None)
    }

    /// Adds links to the procedures that were seen in a session.
    pub(super) fn recoveries(&mut self, name: &str, from: Step<'_>) -> Result<(), Error> {
        if name.is_empty() {
            return Ok(());
        }
        let of_it = |procedure: &Procedure| {
            let mut origins = procedure.origins.iter();
            origins.any(|origin| origin.session == name)
        };
        for procedure in self.naming(name, of_it)? {
            let id = &procedure.procedure_id;
            self.visit(
                Kind::Procedure,
                id,
                Relation::Taught,
                Some(from),
                Direction::End,
            )?;
        }
        Ok(())
    }
}
