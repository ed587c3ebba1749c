//! The hint log, `hints.jsonl`: one line for each error with known hints, written when its outcome
//! is known. Also the random draw that decides which hints an experiment withholds.
//!
//! The draw is a hash under the key of the workspace. It cannot be chosen, is reproducible, and
//! needs no storage.

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::value::RawValue;
use sha2::Sha256;

use crate::model::Trial;
use crate::store::access::scoped::Scoped;
use crate::store::error::Error;
use crate::store::files::file_names::HINTS as FILE;
use crate::store::files::log;
use crate::store::writer::Writer;

impl Scoped {
    /// Returns a number from 0 up to 1, fixed for these two texts in this workspace; `None` if
    /// the workspace has no identity yet.
    pub fn lot(&self, what: &str, unit: &str) -> Option<f64> {
        let identity = self.identity()?;
        let mut mac = Hmac::<Sha256>::new_from_slice(identity.tombstone_key.as_bytes()).ok()?;
        for text in ["lot", what, unit] {
            mac.update(&(text.len() as u64).to_le_bytes());
            mac.update(text.as_bytes());
        }
        let mut first = [0; 4];
        first.copy_from_slice(&mac.finalize().into_bytes()[..4]);
        Some(f64::from(u32::from_le_bytes(first)) / 4_294_967_296.0)
    }
}

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

#[cfg(test)]
mod tests {
    use super::super::hint_log::*;
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
        assert_eq!(store.trials_of_all().unwrap(), std::slice::from_ref(&trial));
        let narrow = Scoped::new(dir.path(), Scope::parse("hr"));
        assert_eq!(narrow.trials_of_all().unwrap(), []);
        let refused = narrow.write(random).unwrap().append_trial(&trial);
        assert!(matches!(refused, Err(Error::OutOfScope { .. })));
    }

    #[test]
    fn lots_are_drawn_once_and_evenly() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        assert_eq!(store.lot("a", "b"), None);
        drop(store.write(&mut || "key".to_owned()).unwrap());
        assert_eq!(store.lot("a", "b"), store.lot("a", "b"));
        assert_ne!(store.lot("ab", ""), store.lot("a", "b"));
        let lots = (0..2_000).filter_map(|n| store.lot("a", &n.to_string()));
        let low = lots.filter(|lot| *lot < 0.25).count();
        assert!((430..570).contains(&low), "{low}");
    }
}
