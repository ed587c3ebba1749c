//! Files that a lesson was read from, and whether they have changed since.

use std::path::{Path, PathBuf};

use memctl_files::{hex, named};
use sha2::{Digest as _, Sha256};

use crate::model::LessonFile;

/// Largest file that is compared, in bytes.
const LARGEST: u64 = 4 << 20;

/// Returns the path of a file that a lesson was read from and that has changed since.
pub(crate) fn changed_file(root: &Path, files: &[LessonFile]) -> Option<String> {
    let has_changed = |file: &&LessonFile| {
        !file.hash.is_empty() && file_hash(root, &file.path).as_deref() != Some(&file.hash)
    };
    files.iter().find(has_changed).map(|file| file.path.clone())
}

/// Hash of a file of a project, as a lesson stores it; `None` if it is outside of the project, behind
/// a link, too large or unreadable.
pub(crate) fn file_hash(root: &Path, path: &str) -> Option<String> {
    let path: PathBuf = Path::new(path.trim()).components().collect();
    let path = path.strip_prefix(".").unwrap_or(&path);
    let bytes = named::directory(root).read(path, LARGEST).ok()??;
    Some(hex(&Sha256::digest(&bytes)))
}
