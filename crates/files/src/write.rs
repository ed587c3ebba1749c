//! Writes below a directory: replacement by a temporary file and a rename, appends, and in-place
//! updates.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use super::directory::{Directory, Place};
use super::kind::FoundKind;
use super::refused::{Reason, Refused};
use super::state::FileState;
use super::system::{Access, files as sys};
use super::temporary;

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
        match self.open_as(name.as_ref(), Access::Update) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a file for reading and writing in place, or for locking; creates an empty one if
    /// missing.
    pub fn open_or_create(&self, name: impl AsRef<Path>) -> io::Result<File> {
        self.writable()?;
        self.open_as(name.as_ref(), Access::UpdateOrCreate)
    }
}

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
    let temporary = temporary::name(&place.name);
    let mut file = sys::open_file(parent, &temporary, Access::Create)?;
    let written = (|| {
        write(&mut file)?;
        if is_durable {
            file.sync_all()?;
        }
        sys::rename(parent, &temporary, parent, &place.name)?;
        if is_durable {
            sys::sync(parent)
        } else {
            Ok(())
        }
    })();
    if written.is_err() {
        // The first error is the relevant one; a later writer sweeps the remaining file.
        drop(sys::unlink(parent, &temporary));
        return written;
    }
    if let Ok(state) = FileState::of(&file)
        && (is_durable || state.size >= LARGE)
    {
        temporary::sweep(parent, state.modified[0]);
    }
    Ok(())
}
