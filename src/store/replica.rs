//! The name of this copy of a memory: a workspace that was copied has the same identity in both places,
//! and another copy's name.
//!
//! It stays out of version control, and a purge leaves it.

use super::atomic;
use super::directory::{Identity, SMALL_FILE};
use super::error::Error;
use super::pulled::is_origin;
use super::scoped::Scoped;

pub(super) const REPLICA: &str = "replica";

impl Scoped {
    /// The name of this copy, if it has one.
    pub fn replica(&self) -> Option<String> {
        let text = self.directory().read_text(REPLICA, SMALL_FILE).ok()??;
        let name = text.trim();
        is_origin(name).then(|| name.to_owned())
    }

    /// Who the workspace is, and the name of this copy; made now where there is none.
    pub fn name_itself(
        &self,
        random: &mut dyn FnMut() -> String,
    ) -> Result<(Identity, String), Error> {
        let writer = self.write(random)?;
        let identity = writer.identity().clone();
        if let Some(name) = self.replica() {
            return Ok((identity, name));
        }
        let name = random();
        let text = format!("{name}\n");
        atomic::replace(self.directory(), REPLICA, text.as_bytes())?;
        Ok((identity, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;

    #[test]
    fn a_copy_is_named_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        assert_eq!(store.replica(), None);
        let mut n = 0;
        let mut random = || {
            n += 1;
            format!("name-{n}")
        };
        let first = store.name_itself(&mut random).unwrap();
        assert_ne!(first.0.origin, first.1);
        assert_eq!(store.name_itself(&mut random).unwrap(), first);
        assert_eq!(store.replica(), Some(first.1));
    }
}
