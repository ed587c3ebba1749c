//! Writes below a directory: replacement by a temporary file and a rename, appends, and in-place
//! updates.
//!
//! A file that other programs edit without a lock is replaced only if it is still the version that was read.
//!
//! Names of temporary files are random, so that nothing can be planted under them, and of one pattern, so
//! that a later writer recognizes those of killed processes.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use super::directory::{Directory, Place, absent};
use super::file::{self, Access, FileState, FoundKind, Reason, Refused};
use super::system::files as sys;
use super::system::files::Handle;

/// Size in bytes from which a write costs more than a sweep for abandoned temporary files.
const LARGE: u64 = 64 << 10;

impl Directory {
    /// Replaces a file by the output of `write`, or leaves it unchanged. On return the file is on
    /// disk and readable by its owner alone.
    pub fn replace_file_with(
        &self,
        name: impl AsRef<Path>,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        self.writable()?;
        replace(&self.place(name.as_ref())?, true, write)
    }

    /// Replaces a file by these bytes, or leaves it unchanged.
    pub fn replace_file(&self, name: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
        self.replace_file_with(name, |file| file.write_all(bytes))
    }

    /// Replaces a file by these bytes and keeps its permissions, or creates a private one.
    pub(super) fn replace_and_keep_mode(
        &self,
        name: impl AsRef<Path>,
        bytes: &[u8],
    ) -> io::Result<()> {
        let old = self.open(&name)?.map(|old| old.metadata()).transpose()?;
        self.replace_file_with(name, |file| {
            if let Some(old) = old {
                file.set_permissions(old.permissions())?;
            }
            file.write_all(bytes)
        })
    }

    /// Replaces a derived file, without syncing it to disk.
    pub fn replace_derived(&self, name: impl AsRef<Path>, parts: &[&[u8]]) -> io::Result<()> {
        self.writable()?;
        replace(&self.place(name.as_ref())?, false, |file| {
            parts.iter().try_for_each(|part| file.write_all(part))
        })
    }

    /// Appends bytes to a file in one write; creates it if missing.
    pub fn append(&self, name: impl AsRef<Path>, bytes: &[u8], sync: bool) -> io::Result<()> {
        self.writable()?;
        let mut file = self.open_as(name.as_ref(), Access::Append)?;
        file.write_all(bytes)?;
        if sync { file.sync_data() } else { Ok(()) }
    }

    /// Opens a file for reading and writing in place; `None` if it does not exist.
    pub fn open_for_update(&self, name: impl AsRef<Path>) -> io::Result<Option<File>> {
        self.writable()?;
        absent(self.open_as(name.as_ref(), Access::Update))
    }

    /// Opens a file for reading and writing in place, or for locking; creates an empty one if
    /// missing.
    pub fn open_or_create(&self, name: impl AsRef<Path>) -> io::Result<File> {
        self.writable()?;
        self.open_as(name.as_ref(), Access::UpdateOrCreate)
    }
}

/// Replaces a file whatever it is.
fn replace(
    place: &Place,
    is_durable: bool,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let parent = &*place.parent;
    // A rename would replace a link; an error informs the user instead.
    match sys::kind(parent, &place.name)? {
        None | Some(FoundKind::File) => {}
        Some(FoundKind::Link) => return Err(Refused::error(&place.shown, Reason::Link)),
        Some(_) => return Err(Refused::error(&place.shown, Reason::NotAFile)),
    }
    written(place, is_durable, write, |temporary, _| {
        sys::rename(parent, temporary, parent, &place.name)
    })
}

/// Writes a file under a temporary name, which `put` may give the right one, and lets nothing be left under the
/// temporary one.
fn written<T>(
    place: &Place,
    is_durable: bool,
    write: impl FnOnce(&mut File) -> io::Result<()>,
    put: impl FnOnce(&OsStr, &File) -> io::Result<T>,
) -> io::Result<T> {
    let parent = &*place.parent;
    let temporary = temporary_name(&place.name);
    let mut file = sys::open_file(parent, &temporary, Access::Create)?;
    let done = (|| {
        write(&mut file)?;
        if is_durable {
            file.sync_all()?;
        }
        let done = put(&temporary, &file)?;
        if is_durable {
            sys::sync(parent)?;
        }
        Ok(done)
    })();
    // The first error is the relevant one; a later writer sweeps the remaining file.
    drop(sys::unlink(parent, &temporary));
    if let Ok(state) = FileState::of(&file)
        && (is_durable || state.size >= LARGE)
    {
        sweep(parent, state.modified[0]);
    }
    done
}

impl Directory {
    /// Returns the state of a regular file; `None` if it does not exist.
    pub fn state(&self, name: impl AsRef<Path>) -> io::Result<Option<FileState>> {
        look(&self.place(name.as_ref())?)
    }

    /// Replaces the file by the output of `write` if it is unchanged since `read`, where `None`
    /// means that it did not exist. Returns the state of the new file; `None` if another program has
    /// changed it: that version stays.
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
    ) -> io::Result<Option<FileState>> {
        self.writable()?;
        let place = self.place(name.as_ref())?;
        let parent = &*place.parent;
        let own = written(&place, true, write, |temporary, file| {
            let own = FileState::of(file)?;
            let is_placed = match read {
                Some(read) if look(&place)? == Some(*read) => {
                    exchange(&place, temporary, read, &own)?
                }
                Some(_) => false,
                None => move_to_free(parent, temporary, &place.name)?,
            };
            Ok(is_placed.then_some(own))
        })?;
        let Some(own) = own else {
            return Ok(None);
        };
        let there = look(&place)?.filter(|there| there.is_same_file(&own));
        // Of a file that another program has written to since, no reader finds the state.
        Ok(there.map(|there| if there.is_unwritten(&own) { there } else { own }))
    }
}

/// Swaps in the new file for the one that was read, and swaps back if that turns out to be another version. `false`
/// leaves the new file under its temporary name.
fn exchange(
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
    let opened = absent(file::open(at, name, shown, Access::Read))?;
    opened.map(|file| FileState::of(&file)).transpose()
}

/// Age in seconds after which a temporary file counts as abandoned.
const STALE_SECONDS: i64 = 10 * 60;
/// Maximum length of the target's name in a temporary name, in bytes; file names end at 255.
const LONGEST: usize = 128;
const SUFFIX: &str = ".tmp";
const DIGITS: usize = 32;

/// Returns a fresh name: `.<target>.<32 hexadecimal digits>.tmp`.
pub(super) fn temporary_name(target: &OsStr) -> OsString {
    let target = target.to_string_lossy();
    let target: String = target
        .char_indices()
        .take_while(|(at, c)| at + c.len_utf8() <= LONGEST)
        .map(|(_, c)| c)
        .collect();
    let random = uuid::Uuid::new_v4().simple();
    format!(".{target}.{random}{SUFFIX}").into()
}

/// Returns the target of a temporary name; `None` for any other name.
pub fn is_temporary(name: &str) -> Option<&str> {
    let (target, random) = name
        .strip_prefix('.')?
        .strip_suffix(SUFFIX)?
        .rsplit_once('.')?;
    let is_digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    (random.len() == DIGITS && random.bytes().all(is_digit)).then_some(target)
}

/// Removes abandoned temporary files from a directory. `now` is the modification time of a file
/// just written, in seconds since 1970.
fn sweep(directory: &Handle, now: i64) {
    for (name, kind) in sys::list(directory).unwrap_or_default() {
        let is_ours = kind == FoundKind::File
            && name
                .to_str()
                .is_some_and(|name| is_temporary(name).is_some());
        if is_ours && is_stale(directory, &name, now) {
            drop(sys::unlink(directory, &name));
        }
    }
}

fn is_stale(directory: &Handle, name: &OsStr, now: i64) -> bool {
    let written = sys::open_file(directory, name, Access::Read)
        .and_then(|file| Ok((file.metadata()?, FileState::of(&file)?)))
        .ok()
        .filter(|(metadata, _)| metadata.is_file())
        .map(|(_, state)| state.modified[0]);
    written.is_some_and(|written| now.saturating_sub(written) > STALE_SECONDS)
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
            |read: &FileState, own: &FileState| exchange(&place, own_name, read, own).unwrap();
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
    fn a_version_that_came_before_the_rename_stays() {
        let dir = tempfile::tempdir().unwrap();
        let directory = Directory::at(dir.path());
        let put = |text: &[u8]| directory.replace_file("a.json", text).unwrap();
        let state = || directory.state("a.json").unwrap().unwrap();
        let replace = |read: &FileState, meanwhile: &dyn Fn()| {
            let write = |file: &mut File| {
                meanwhile();
                file.write_all(b"own")
            };
            directory
                .replace_unchanged("a.json", Some(read), write)
                .unwrap()
        };
        let text = || directory.read("a.json", 99).unwrap();
        put(b"read");
        // Renamed over.
        assert_eq!(replace(&state(), &|| put(b"theirs")), None);
        assert_eq!(text().as_deref(), Some(&b"theirs"[..]));
        // Written in place.
        let more = || directory.append("a.json", b" more", false).unwrap();
        assert_eq!(replace(&state(), &more), None);
        assert_eq!(text().as_deref(), Some(&b"theirs more"[..]));
        // As it was read.
        assert_eq!(replace(&state(), &|| ()), Some(state()));
        assert_eq!(text().as_deref(), Some(&b"own"[..]));
        // Removed.
        let remove = || assert!(directory.remove("a.json").unwrap());
        assert_eq!(replace(&state(), &remove), None);
        assert_eq!(text(), None);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
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
                .is_some()
        );
        assert!(
            directory
                .replace_unchanged("a.json", None, write(b"other"))
                .unwrap()
                .is_none()
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
            directory
                .replace_unchanged("a.json", None, write)
                .map_or(true, |state| state.is_none())
        );
        assert_eq!(fs::read(outside.path()).unwrap(), b"");
    }
}

#[cfg(test)]
mod tests_of_temporary {
    use super::*;

    #[test]
    fn temporary_names_are_known_again() {
        let check = |target: &str, expected: &str| {
            let made = temporary_name(OsStr::new(target));
            let made = made.to_str().unwrap();
            assert!(made.len() <= 255, "{made}");
            assert_eq!(is_temporary(made), Some(expected));
        };
        check("procedural_memory.json", "procedural_memory.json");
        check("", "");
        check(&"x".repeat(255), &"x".repeat(128));
        check(&"é".repeat(100), &"é".repeat(64));
        for other in [
            ".procedural_memory.json.tmp",
            "procedural_memory.json",
            ".tmp",
            "",
            ".a.0g.tmp",
        ] {
            assert_eq!(is_temporary(other), None, "{other}");
        }
        assert_ne!(
            temporary_name(OsStr::new("a")),
            temporary_name(OsStr::new("a"))
        );
    }
}
