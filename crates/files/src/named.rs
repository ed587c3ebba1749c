//! Files that a user names, or that belong to other programs: transcripts, `--output`, settings of
//! agent hosts, keys, the user's own settings. They are opened by path, and links are followed,
//! because the user chose the path.
//!
//! Files below `.agentura` or `skills` never pass through here.
#![expect(
    clippy::disallowed_methods,
    reason = "files that a user names are opened by their path"
)]

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::directory::Directory;
use super::file::{FileState, Reason, Refused};
use super::system::files as sys;
use super::{decoded, file};

/// Opens a file of any kind for reading.
pub fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Reads a regular file of at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = open_plain(path)?;
    file::read(file, path, limit)
}

/// Opens a regular file; fails at once on a pipe or a device.
pub fn open_plain(path: &Path) -> io::Result<File> {
    let file = sys::without_waiting(OpenOptions::new().read(true)).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(Refused::error(path, Reason::NotAFile))
    }
}

/// Reads UTF-8 text of at most `limit` bytes from a regular file.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    let bytes = read(path, limit)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads the text of a file of a person, which may be in UTF-16.
pub fn read_decoded(path: &Path, limit: u64) -> io::Result<String> {
    let text = decoded::text(read(path, limit)?);
    text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads UTF-8 text from a file of any kind.
pub fn read_any_text(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

/// Returns the metadata of a path, following links.
pub fn metadata(path: &Path) -> io::Result<Metadata> {
    fs::metadata(path)
}

/// Returns the state of the file at a path, following links.
pub fn state(path: &Path) -> io::Result<FileState> {
    sys::state_of_path(path)
}

/// Returns the metadata of a link itself.
pub fn link_metadata(path: &Path) -> io::Result<Metadata> {
    fs::symlink_metadata(path)
}

/// Returns `true` if anything is there, at the end of its links.
pub fn exists(path: &Path) -> bool {
    path.exists()
}

/// Returns `true` for a file, at the end of its links.
pub fn is_file(path: &Path) -> bool {
    path.is_file()
}

/// Returns `true` for a directory, at the end of its links.
pub fn is_dir(path: &Path) -> bool {
    path.is_dir()
}

/// Returns the entries of a directory, sorted by name.
pub fn list(path: &Path) -> io::Result<Vec<fs::DirEntry>> {
    let mut entries = fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    Ok(entries)
}

/// Creates a directory and its missing parents, private to the user.
pub fn create_dir(path: &Path) -> io::Result<()> {
    sys::make_directories(path)
}

/// Replaces a regular file and keeps its mode, or creates a private one. Fails on a device or a
/// pipe.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    refuse_special(path)?;
    let (directory, name) = place(path);
    directory.replace_and_keep_mode(name, bytes)
}

/// Writes a text over the text of an existing private file, in place and without waiting for the disk: for
/// notes that may be lost, at a quarter of the time of a replacement. The rest of a longer text becomes
/// spaces. Creates the file if it is missing.
pub fn overwrite_note(path: &Path, text: &[u8]) -> io::Result<()> {
    refuse_special(path)?;
    let mut file = sys::private(OpenOptions::new().create(true).write(true)).open(path)?;
    let old = usize::try_from(file.metadata()?.len()).unwrap_or_default();
    let mut bytes = text.to_vec();
    bytes.resize(old.max(text.len()), b' ');
    file.write_all(&bytes)
}

/// Fails if a path, after all links, leads to something other than a regular file.
pub fn refuse_special(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(Refused::error(path, Reason::Special)),
        _ => Ok(()),
    }
}

/// Creates a file with these bytes, or keeps the existing one. The first of several concurrent
/// callers wins, and no reader sees a partial file.
pub fn create_once(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (directory, name) = place(path);
    let made = directory.replace_unchanged(name, None, |file| file.write_all(bytes));
    made.map(drop)
}

/// Appends bytes to a private file and syncs them to disk.
pub fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (directory, name) = place(path);
    directory.append(name, bytes, true)
}

/// Removes a file, or a link itself; `false` if it did not exist.
pub fn remove(path: &Path) -> io::Result<bool> {
    directory(above(path)).remove(path.file_name().unwrap_or_default())
}

/// Returns the directory that a user names, with links in its path resolved. Names below it are
/// opened without following links.
pub fn directory(path: &Path) -> Directory {
    Directory::at(resolved(path))
}

/// Resolves all links of a path.
pub fn real(path: &Path) -> io::Result<PathBuf> {
    sys::real(path)
}

/// Resolves all links of a path whose last names need not exist.
pub fn real_or_new(path: &Path) -> PathBuf {
    for above in path.ancestors() {
        if let (Ok(mut real), Ok(rest)) = (real(above), path.strip_prefix(above)) {
            real.extend(rest.components());
            return real;
        }
    }
    path.to_owned()
}

/// Resolves all links of a path; returns the path itself if that fails.
pub fn resolved(path: &Path) -> PathBuf {
    real(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns a path relative to a directory, with `/` between its names on every system, as records
/// and reports hold it; the path itself if it is elsewhere.
pub fn relative(path: &Path, directory: &Path) -> PathBuf {
    let Ok(below) = path.strip_prefix(directory) else {
        return path.to_owned();
    };
    let mut slashed = OsString::new();
    for name in below.components() {
        if !slashed.is_empty() {
            slashed.push("/");
        }
        slashed.push(name);
    }
    slashed.into()
}

/// Removes an empty directory.
pub(crate) fn remove_empty_dir(path: &Path) -> io::Result<()> {
    fs::remove_dir(path)
}

/// Returns the directory of a path with its links resolved, and the name in it.
fn place(path: &Path) -> (Directory, OsString) {
    let path = real_or_new(path);
    let name = path.file_name().unwrap_or_default().to_owned();
    (Directory::at(above(&path)), name)
}

/// Directory that a path is in.
pub(crate) fn above(path: &Path) -> &Path {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    above.unwrap_or(Path::new("."))
}
