//! The hint log, `hints.jsonl`: one line for each error with known hints, written when its outcome
//! is known.

use serde_json::value::RawValue;

use crate::model::Trial;
use crate::store::files::directory::HINTS as FILE;
use crate::store::files::log;
use crate::store::{Error, Scoped, Writer};

impl Writer {
    /// Appends a line to the hint log.
    pub fn append_trial(&mut self, trial: &Trial) -> Result<(), Error> {
        if !self.store().scope().allows(None) {
            let what = FILE.to_owned();
            return Err(Error::OutOfScope { what });
        }
        let text: Box<RawValue> = serde_json::from_str(&self.redacted(trial)?.0)?;
        log::append(self.lock(), FILE, &text)
    }
}

impl Scoped {
    /// Returns the outcomes of errors with known hints, oldest first. They belong to no domain, so a
    /// limited scope sees none.
    pub fn trials(&self) -> Result<Vec<Trial>, Error> {
        if !self.scope().allows(None) {
            return Ok(Vec::new());
        }
        let lines = log::lines(self.directory(), FILE)?;
        let trials = lines.iter().map(|line| serde_json::from_slice(line));
        Ok(trials.filter_map(Result::ok).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;

    #[test]
    fn lines_come_back_and_a_narrow_scope_sees_and_writes_none() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        let trial = Trial {
            session: "s".to_owned(),
            repeats: 2,
            ..Trial::default()
        };
        let random = &mut || "key".to_owned();
        store.write(random).unwrap().append_trial(&trial).unwrap();
        assert_eq!(store.trials().unwrap(), std::slice::from_ref(&trial));
        let narrow = Scoped::new(dir.path(), Scope::parse("hr"));
        assert_eq!(narrow.trials().unwrap(), []);
        let refused = narrow.write(random).unwrap().append_trial(&trial);
        assert!(matches!(refused, Err(Error::OutOfScope { .. })));
    }
}
