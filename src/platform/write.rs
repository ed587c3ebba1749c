//! Writing below a directory: whole files by a private temporary one and a rename, lines at the end,
//! bytes in place.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::directory::{Directory, FoundKind, Place};
use super::refused::{Reason, Refused};
use super::sys::{self, Access};
use super::temporary;

/// A write of so many bytes costs more than a look for what killed writers have left.
const LARGE: u64 = 64 << 10;

impl Directory {
    /// Replaces a file by what `write` writes, or leaves it as it was. It is on the disk when this
    /// returns, and readable by its owner alone.
    pub fn replace_file_with(
        &self,
        name: impl AsRef<Path>,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        replace(&self.place(name.as_ref())?, true, write)
    }

    /// Replaces a file by these bytes, or leaves it as it was.
    pub fn replace_file(&self, name: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
        self.replace_file_with(name, |file| file.write_all(bytes))
    }

    /// Replaces a file that can be made again at any time, without waiting for the disk.
    pub fn replace_derived(&self, name: impl AsRef<Path>, parts: &[&[u8]]) -> io::Result<()> {
        replace(&self.place(name.as_ref())?, false, |file| {
            parts.iter().try_for_each(|part| file.write_all(part))
        })
    }

    /// Adds bytes at the end of a file, in one write; makes it where it is missing.
    pub fn append(&self, name: impl AsRef<Path>, bytes: &[u8], sync: bool) -> io::Result<()> {
        let mut file = self.open_as(name.as_ref(), Access::Append)?;
        file.write_all(bytes)?;
        if sync { file.sync_data() } else { Ok(()) }
    }

    /// Opens a file for reading and writing in place; `None` where there is none.
    pub fn open_for_update(&self, name: impl AsRef<Path>) -> io::Result<Option<File>> {
        match self.open_as(name.as_ref(), Access::Update) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a file for reading and writing in place, or for locks; an empty one is made where there
    /// is none.
    pub fn open_or_create(&self, name: impl AsRef<Path>) -> io::Result<File> {
        self.open_as(name.as_ref(), Access::UpdateOrCreate)
    }
}

fn replace(
    place: &Place,
    is_durable: bool,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let parent = place.parent.as_fd();
    // A rename would replace the link itself; whoever put it there is to be told.
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
        // The first error is the one that matters; a later writer sweeps what stays.
        drop(sys::unlink(parent, &temporary));
        return written;
    }
    if let Ok(metadata) = file.metadata()
        && (is_durable || metadata.len() >= LARGE)
    {
        temporary::sweep(parent, metadata.mtime());
    }
    Ok(())
}
