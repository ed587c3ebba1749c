//! Replacement of files that other programs edit without a lock: only the version read is replaced.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::Path;

use super::directory::{Directory, Place};
use super::state::FileState;
use super::system::files::Handle;
use super::system::{Access, files as sys};
use super::{file, temporary};

impl Directory {
    /// Returns the state of a regular file; `None` if it does not exist.
    pub fn state(&self, name: impl AsRef<Path>) -> io::Result<Option<FileState>> {
        look(&self.place(name.as_ref())?)
    }

    /// Replaces the file by the output of `write` if it is unchanged since `read`, where `None`
    /// means that it did not exist. Returns `false` if another program has changed it; that version
    /// stays.
    ///
    /// The new and the old file swap names in one step, and the old one is checked before its
    /// removal. A version saved just before the swap comes back. One gap remains: an editor that
    /// opened the old file without truncating it and writes after this call loses its bytes. On a
    /// file system without an atomic swap, a check followed by a rename leaves a short race.
    pub fn replace_unchanged(
        &self,
        name: impl AsRef<Path>,
        read: Option<&FileState>,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<bool> {
        let place = self.place(name.as_ref())?;
        let parent = &*place.parent;
        let temporary = temporary::name(&place.name);
        let mut file = sys::open_file(parent, &temporary, Access::Create)?;
        let placed = (|| {
            write(&mut file)?;
            file.sync_all()?;
            let own = FileState::of(&file)?;
            let placed = match read {
                Some(read) => exchange(&place, &temporary, read, &own)?,
                None => move_to_free(parent, &temporary, &place.name)?,
            };
            sys::sync(parent)?;
            Ok::<_, io::Error>((placed, own))
        })();
        drop(sys::unlink(parent, &temporary));
        let (placed, own) = placed?;
        temporary::sweep(parent, own.modified[0]);
        Ok(placed && look(&place)?.is_some_and(|there| there.is_same_file(&own)))
    }
}

/// Swaps in the new file for the one that was read; `false` leaves it under its temporary name.
fn exchange(
    place: &Place,
    temporary: &OsStr,
    read: &FileState,
    own: &FileState,
) -> io::Result<bool> {
    let is_as_read = look(place)?.is_some_and(|there| there == *read);
    if is_as_read {
        exchange_now(place, temporary, read, own)
    } else {
        Ok(false)
    }
}

/// Swaps the files, and swaps back if the old file turns out to be another version.
fn exchange_now(
    place: &Place,
    temporary: &OsStr,
    read: &FileState,
    own: &FileState,
) -> io::Result<bool> {
    let parent = &*place.parent;
    let swap = || sys::exchange(parent, temporary, &place.name);
    match swap() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) if sys::is_unsupported(&error) => {
            sys::rename(parent, temporary, parent, &place.name)?;
            return Ok(true);
        }
        done => done?,
    }
    // The first check detects an editor that has already truncated the file; the one after the sync
    // detects an editor that saves meanwhile.
    let is_kept = || {
        let old = look_at(parent, temporary, &place.shown)?;
        Ok::<bool, io::Error>(old.is_some_and(|old| old.is_unwritten(read)))
    };
    if is_kept()? {
        sys::sync(parent)?;
        if is_kept()? {
            return Ok(true);
        }
    }
    match swap() {
        // The new file has been removed meanwhile, so the other version gets the free name.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return move_to_free(parent, temporary, &place.name).map(|_| false);
        }
        done => done?,
    }
    let back = look_at(parent, temporary, &place.shown)?;
    if !back.is_some_and(|there| there.is_same_file(own)) {
        // A third version replaced the new file, and is newer than the one that came back.
        swap()?;
    }
    Ok(false)
}

/// Renames a file to a name that must be free; `false` if it is not.
fn move_to_free(parent: &Handle, from: &OsStr, to: &OsStr) -> io::Result<bool> {
    match sys::rename_to_free(parent, from, to) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) if sys::is_unsupported(&error) => match sys::link(parent, from, to) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            done => done.map(|()| true),
        },
        Err(error) => Err(error),
    }
}

fn look(place: &Place) -> io::Result<Option<FileState>> {
    look_at(&place.parent, &place.name, &place.shown)
}

/// Returns the state of a regular file; `None` if it does not exist.
fn look_at(at: &Handle, name: &OsStr, shown: &Path) -> io::Result<Option<FileState>> {
    match file::open(at, name, shown, Access::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => FileState::of(&opened?).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use super::*;

    #[test]
    #[cfg_attr(windows, ignore = "Windows cannot swap two names")]
    fn a_version_that_came_right_before_the_exchange_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let directory = Directory::at(dir.path());
        let place = directory.place(Path::new("a.json")).unwrap();
        let own_name = OsStr::new("own");
        let at = |name: &str| dir.path().join(name);
        let put = |name: &str, text: &[u8]| directory.replace_file(name, text).unwrap();
        let state = |name: &str| directory.state(name).unwrap().unwrap();
        let exchange =
            |read: &FileState, own: &FileState| exchange_now(&place, own_name, read, own).unwrap();
        put("a.json", b"read");
        put("own", b"own");
        let (read, own) = (state("a.json"), state("own"));
        // Renamed over.
        put("a.json", b"theirs");
        assert!(!exchange(&read, &own));
        assert_eq!(fs::read(at("a.json")).unwrap(), b"theirs");
        assert_eq!(fs::read(at("own")).unwrap(), b"own");
        // Written in place.
        let read = state("a.json");
        directory.append("a.json", b" more", false).unwrap();
        assert!(!exchange(&read, &own));
        assert_eq!(fs::read(at("a.json")).unwrap(), b"theirs more");
        // Removed.
        let read = state("a.json");
        fs::remove_file(at("a.json")).unwrap();
        assert!(!exchange(&read, &own));
        assert!(!at("a.json").exists());
        // As it was read.
        put("a.json", b"theirs");
        let read = state("a.json");
        assert!(exchange(&read, &own));
        assert_eq!(fs::read(at("a.json")).unwrap(), b"own");
    }

    #[test]
    fn a_file_that_was_not_there_is_not_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let directory = Directory::at(dir.path());
        let write = |text: &'static [u8]| move |file: &mut File| file.write_all(text);
        assert!(
            directory
                .replace_unchanged("a.json", None, write(b"own"))
                .unwrap()
        );
        assert!(
            !directory
                .replace_unchanged("a.json", None, write(b"other"))
                .unwrap()
        );
        assert_eq!(fs::read(dir.path().join("a.json")).unwrap(), b"own");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    #[cfg_attr(windows, ignore = "Wine makes no symbolic links")]
    fn a_link_in_the_place_is_neither_followed_nor_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::NamedTempFile::new().unwrap();
        let directory = Directory::at(dir.path());
        let state = FileState::of(outside.as_file()).unwrap();
        crate::make_link(outside.path(), dir.path().join("a.json")).unwrap();
        let write = |file: &mut File| file.write_all(b"own");
        assert!(
            directory
                .replace_unchanged("a.json", Some(&state), write)
                .is_err()
        );
        assert!(
            !directory
                .replace_unchanged("a.json", None, write)
                .unwrap_or(false)
        );
        assert_eq!(fs::read(outside.path()).unwrap(), b"");
    }
}
