//! Replacing a file that other programs edit without a lock: only the version that was read goes.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::directory::{Directory, Place};
use super::sys::{self, Access};
use super::{file, temporary};

impl Directory {
    /// State of a plain file; `None` where there is none.
    pub fn metadata(&self, name: impl AsRef<Path>) -> io::Result<Option<Metadata>> {
        look(&self.place(name.as_ref())?)
    }

    /// Replaces the whole file by what `write` writes, if it still is what `read` says: a file in this state,
    /// or none. `false` where another program has changed it, whose version then stays.
    ///
    /// The two files change places in one step, and the old one is looked at before it goes: a version that
    /// came in the moment before comes back. What stays open is an editor that has opened the old file
    /// without emptying it and writes only after this has returned: its bytes go with that file. A file
    /// system that cannot exchange leaves the moment between a look and a rename.
    pub fn replace_unchanged(
        &self,
        name: impl AsRef<Path>,
        read: Option<&Metadata>,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<bool> {
        let place = self.place(name.as_ref())?;
        let parent = place.parent.as_fd();
        let temporary = temporary::name(&place.name);
        let mut file = sys::open_file(parent, &temporary, Access::Create)?;
        let placed = (|| {
            write(&mut file)?;
            file.sync_all()?;
            let own = file.metadata()?;
            let placed = match read {
                Some(read) => exchange(&place, &temporary, read, &own)?,
                None => move_to_free(parent, &temporary, &place.name)?,
            };
            sys::sync(parent)?;
            Ok::<_, io::Error>((placed, own))
        })();
        drop(sys::unlink(parent, &temporary));
        let (placed, own) = placed?;
        temporary::sweep(parent, own.mtime());
        Ok(placed && look(&place)?.is_some_and(|there| is_same_file(&there, &own)))
    }
}

/// Puts a file in the place of the one that was read; `false` leaves it under its temporary name.
fn exchange(place: &Place, temporary: &OsStr, read: &Metadata, own: &Metadata) -> io::Result<bool> {
    let is_as_read = look(place)?.is_some_and(|there| {
        is_unchanged(&there, read)
            && (there.ctime(), there.ctime_nsec()) == (read.ctime(), read.ctime_nsec())
    });
    if is_as_read {
        exchange_now(place, temporary, read, own)
    } else {
        Ok(false)
    }
}

/// The exchange, and its way back where the file that was there turns out to be another version.
fn exchange_now(
    place: &Place,
    temporary: &OsStr,
    read: &Metadata,
    own: &Metadata,
) -> io::Result<bool> {
    let parent = place.parent.as_fd();
    let swap = || sys::exchange(parent, temporary, &place.name);
    match swap() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) if sys::is_unsupported(&error) => {
            sys::rename(parent, temporary, parent, &place.name)?;
            return Ok(true);
        }
        done => done?,
    }
    // An editor that had emptied the file already is seen at once, one that saves just now after the wait
    // for the disk.
    let is_kept = || {
        let old = look_at(parent, temporary, &place.shown)?;
        Ok::<bool, io::Error>(old.is_some_and(|old| is_unchanged(&old, read)))
    };
    if is_kept()? {
        sys::sync(parent)?;
        if is_kept()? {
            return Ok(true);
        }
    }
    match swap() {
        // Somebody has removed what was written here: the other version takes the free place.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return move_to_free(parent, temporary, &place.name).map(|_| false);
        }
        done => done?,
    }
    let back = look_at(parent, temporary, &place.shown)?;
    if !back.is_some_and(|there| is_same_file(&there, own)) {
        // A third version came over this one, and is newer than the one that came back.
        swap()?;
    }
    Ok(false)
}

/// Gives a file a name that must be free; `false` where it is not.
fn move_to_free(parent: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> io::Result<bool> {
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

fn look(place: &Place) -> io::Result<Option<Metadata>> {
    look_at(place.parent.as_fd(), &place.name, &place.shown)
}

/// State of a plain file, if it is there.
fn look_at(at: BorrowedFd<'_>, name: &OsStr, shown: &Path) -> io::Result<Option<Metadata>> {
    match file::open(at, name, shown, Access::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened?.metadata().map(Some),
    }
}

fn is_same_file(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Whether nobody has written to a file since; a rename does not count.
fn is_unchanged(now: &Metadata, then: &Metadata) -> bool {
    is_same_file(now, then)
        && now.len() == then.len()
        && (now.mtime(), now.mtime_nsec()) == (then.mtime(), then.mtime_nsec())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_version_that_came_right_before_the_exchange_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let directory = Directory::at(dir.path());
        let place = directory.place(Path::new("a.json")).unwrap();
        let own_name = OsStr::new("own");
        let at = |name: &str| dir.path().join(name);
        let put = |name: &str, text: &[u8]| directory.replace_file(name, text).unwrap();
        let state = |name: &str| directory.metadata(name).unwrap().unwrap();
        let exchange =
            |read: &Metadata, own: &Metadata| exchange_now(&place, own_name, read, own).unwrap();
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
    fn a_link_in_the_place_is_neither_followed_nor_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::NamedTempFile::new().unwrap();
        let directory = Directory::at(dir.path());
        let state = outside.as_file().metadata().unwrap();
        std::os::unix::fs::symlink(outside.path(), dir.path().join("a.json")).unwrap();
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
