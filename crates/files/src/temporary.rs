//! Temporary file names: random, so that nothing can be planted under them, and of one pattern, so
//! that a later writer recognizes those of killed processes.

use std::ffi::{OsStr, OsString};

use super::file;
use super::kind::FoundKind;
use super::state::FileState;
use super::system::files::Handle;
use super::system::{Access, files as sys};

/// Age in seconds after which a temporary file counts as abandoned.
const STALE_SECONDS: i64 = 10 * 60;
/// Maximum length of the target's name in a temporary name, in bytes; file names end at 255.
const LONGEST: usize = 128;
const SUFFIX: &str = ".tmp";
const DIGITS: usize = 32;

/// Returns a fresh name: `.<target>.<32 hexadecimal digits>.tmp`.
pub(super) fn name(target: &OsStr) -> OsString {
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
pub(super) fn sweep(directory: &Handle, now: i64) {
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
        .filter(|(metadata, _)| file::is_plain(metadata))
        .map(|(_, state)| state.modified[0]);
    written.is_some_and(|written| now.saturating_sub(written) > STALE_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_names_are_known_again() {
        let check = |target: &str, known: &str| {
            let made = name(OsStr::new(target));
            let made = made.to_str().unwrap();
            assert!(made.len() <= 255, "{made}");
            assert_eq!(is_temporary(made), Some(known));
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
        assert_ne!(name(OsStr::new("a")), name(OsStr::new("a")));
    }
}
