//! Name of this copy of a memory: copies of a workspace share its identity and differ in this name.
//!
//! It stays out of version control, and a purge keeps it.

use crate::store::access::scoped::Scoped;
use crate::store::atomic;
use crate::store::error::Error;
use crate::store::files::directory::{Identity, SMALL_FILE};
use crate::store::files::file_names::REPLICA;
use crate::store::files::origin_directory::is_origin;

impl Scoped {
    /// Returns the name of this copy, if it has one.
    pub fn replica(&self) -> Option<String> {
        let text = self.directory().read_text(REPLICA, SMALL_FILE).ok()??;
        let name = text.trim();
        is_origin(name).then(|| name.to_owned())
    }

    /// Returns the identity of the workspace and the name of this copy; creates missing ones.
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
    use super::super::replica::*;
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
