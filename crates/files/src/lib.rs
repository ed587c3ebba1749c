//! File access below a directory with untrusted content, without following links.
//!
//! A workspace comes from a clone or an archive. Each name in it may be a link to a user's file, an
//! endless device, a pipe without a writer, or a second name of a foreign file. A [`Directory`]
//! opens paths step by step, follows no link, accepts regular files only, and never blocks on
//! opening. New files are private. Temporary names are random, so that nothing can be planted under
//! them.
//!
//! Files that a user names on the command line, and the user's files of other programs, are opened
//! by path, only in `named`. The lint `disallowed_methods` keeps other modules from both.
//!
//! The operating system is asked here alone; each of these modules says what it promises on which
//! system:
//!
//! | module | what it promises |
//! |---|---|
//! | `directory`, `file` | no link is followed; a file has one name and is private before it is written; reads and writes at an offset |
//! | `write` | a file is replaced as a whole or not at all, and durable on return; if wanted, only the version that was read |
//! | `named` | files that a user names, opened by their path; files of a project that other programs use too: no link is followed |
//! | `process` | a started program ends with all that it has started; git runs nothing of a repository, and is not waited for without end; interrupts, local sockets, directories of the user |
//!
//! Locks are those of the standard library (`File::try_lock`): one holder of a file at a time, free
//! when its process ends in any way.
//!
//! On Windows, names are opened by their path while their directories are held open, which keeps
//! those from being renamed; private files have the permissions of the user's directory; and
//! renaming is as durable as the file system makes it, since directories cannot be synced.
//!
//! Beside them: `text` reads text in the encodings of people's tools and finds what git could not merge, and `yaml`
//! reads YAML as JSON values. `json` finds and changes values in JSON text byte for byte. `parallel` spreads work over the processors.
//!
//! Deliberately absent: any idea of the content of files; the environment and the clock, which callers pass;
//! and a defence against a process of the same user that swaps directories. Such a process could write to the
//! files itself.
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "unit tests make and read the files that the code must cope with"
    )
)]

mod directory;
mod file;
pub mod json;
pub mod named;
pub mod parallel;
pub mod process;
pub mod text;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;
mod write;
pub mod yaml;

// Both systems have the same functions, and the modules above write down what each promises. No other
// file asks which system it is compiled for.
#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

pub use directory::{Directory, Found};
pub use file::{FileState, FoundKind, Reason, Refused, owned};
pub use named::SharedFile;
pub use process::{git, user_directories};
/// Reads and writes at an offset. They do not wait for each other, and threads may share the file. The position
/// of the file's cursor is unspecified afterwards: seek before using it.
pub use system::files::PositionedFile;
pub use write::is_temporary;

/// Makes a symbolic link. The program makes none: its tests do.
pub fn make_link(
    target: impl AsRef<std::path::Path>,
    link: impl AsRef<std::path::Path>,
) -> std::io::Result<()> {
    system::files::make_link(target.as_ref(), link.as_ref())
}

/// Formats bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |n: u8| char::from_digit(n.into(), 16).unwrap_or('0');
    let pairs = bytes.iter().map(|byte| [byte >> 4, byte & 15]);
    pairs.flatten().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io;
    use std::path::Path;

    use super::{Directory, FoundKind, Reason, Refused, hex, make_link, named};

    fn reason<T>(result: io::Result<T>) -> Option<Reason> {
        let error = result.err()?;
        Refused::in_error(&error).map(|refused| refused.reason)
    }

    /// Creates a directory `own` next to a directory `outside` that contains a file.
    fn tree() -> (tempfile::TempDir, Directory) {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir_all(top.path().join("outside/below")).unwrap();
        fs::write(top.path().join("outside/file"), "theirs").unwrap();
        let own = Directory::at(top.path().join("own"));
        assert!(own.create().unwrap());
        assert!(!own.create().unwrap());
        (top, own)
    }

    #[test]
    #[cfg_attr(windows, ignore = "Wine makes no symbolic links")]
    fn a_link_is_met_at_every_step() {
        let (top, own) = tree();
        make_link("../outside", own.join("directory")).unwrap();
        make_link("../outside/file", own.join("file")).unwrap();
        make_link("nowhere", own.join("dangling")).unwrap();
        for name in ["file", "dangling", "directory/file", "directory/below/new"] {
            for directory in [own.clone(), own.hold().unwrap()] {
                let link = Some(Reason::Link);
                assert_eq!(reason(directory.open(name)), link, "{name}");
                assert_eq!(reason(directory.replace_file(name, b"x")), link, "{name}");
                assert_eq!(reason(directory.append(name, b"x", false)), link, "{name}");
                assert_eq!(reason(directory.open_for_update(name)), link, "{name}");
                assert_eq!(reason(directory.open_or_create(name)), link, "{name}");
            }
        }
        assert_eq!(reason(own.below("directory").list()), Some(Reason::Link));
        assert_eq!(
            reason(own.below("directory/new").create()),
            Some(Reason::Link)
        );
        make_link("own", top.path().join("alias")).unwrap();
        for path in ["alias", "alias/"] {
            let alias = Directory::at(top.path().join(path));
            assert_eq!(reason(alias.check()), Some(Reason::Link), "{path}");
            assert_eq!(reason(alias.create()), Some(Reason::Link), "{path}");
        }
        // Links in a path given by the user are resolved once.
        assert!(named::directory(&top.path().join("alias")).is_there());
        assert_eq!(
            fs::read(top.path().join("outside/file")).unwrap(),
            b"theirs"
        );
        assert!(!own.join("nowhere").exists());
    }

    #[test]
    fn a_path_stays_in_its_directory() {
        let (top, own) = tree();
        let outside = top.path().join("outside/file");
        for name in [
            Path::new("../outside/file"),
            Path::new("a/../../outside/file"),
            Path::new(""),
            &outside,
            &own.join("../outside/file"),
        ] {
            assert_eq!(
                reason(own.open(name)),
                Some(Reason::Outside),
                "{}",
                name.display()
            );
        }
        own.replace_file("a", b"1").unwrap();
        assert_eq!(own.read(own.join("a"), 1).unwrap().unwrap(), b"1");
        let below = own.below("b");
        assert_eq!(reason(below.open(own.join("a"))), Some(Reason::Outside));
    }

    #[test]
    fn other_kinds_are_refused_at_once() {
        let (_top, own) = tree();
        fs::create_dir(own.join("directory")).unwrap();
        let mut names = vec!["directory"];
        // No name of a file system is a pipe on Windows.
        if cfg!(unix) {
            let mut mkfifo = std::process::Command::new("mkfifo");
            let made = mkfifo.arg(own.join("pipe")).status();
            assert!(made.unwrap().success());
            names.push("pipe");
        }
        for name in names {
            assert_eq!(reason(own.open(name)), Some(Reason::NotAFile), "{name}");
            assert_eq!(reason(own.replace_file(name, b"x")), Some(Reason::NotAFile));
            assert_eq!(reason(own.append(name, b"x", true)), Some(Reason::NotAFile));
        }
        own.replace_file("file", b"four").unwrap();
        assert_eq!(own.read("file", 4).unwrap().unwrap(), b"four");
        assert_eq!(
            reason(own.read("file", 3)),
            Some(Reason::TooLarge { limit: 3 })
        );
        assert_eq!(reason(own.open("file/x")), Some(Reason::NotADirectory));
        assert!(own.open("missing").unwrap().is_none());
        assert!(own.open("missing/too").unwrap().is_none());
    }

    #[test]
    fn a_second_name_is_read_and_not_written() {
        let (top, own) = tree();
        fs::hard_link(top.path().join("outside/file"), own.join("file")).unwrap();
        assert_eq!(own.read("file", 10).unwrap().unwrap(), b"theirs");
        assert_eq!(
            reason(own.append("file", b"x", false)),
            Some(Reason::HardLink)
        );
        assert_eq!(own.irregular(true)[0].reason, Reason::HardLink);
        assert_eq!(own.irregular(false), []);
        own.replace_file("file", b"ours").unwrap();
        assert_eq!(
            fs::read(top.path().join("outside/file")).unwrap(),
            b"theirs"
        );
    }

    #[test]
    fn a_failed_replacement_leaves_the_file_as_it_was() {
        let (_top, own) = tree();
        own.replace_file("a", b"old").unwrap();
        let failed = own.replace_file_with("a", |file| {
            io::Write::write_all(file, b"half")?;
            Err(io::Error::other("no space"))
        });
        assert!(failed.is_err());
        assert_eq!(own.read("a", 9).unwrap().unwrap(), b"old");
        assert_eq!(own.list().unwrap().len(), 1);
    }

    #[test]
    #[cfg_attr(windows, ignore = "Wine makes no symbolic links")]
    fn a_tree_goes_without_what_its_links_lead_to() {
        let (top, own) = tree();
        fs::create_dir_all(own.join("a/b")).unwrap();
        fs::write(own.join("a/b/file"), "x").unwrap();
        make_link(top.path().join("outside"), own.join("a/link")).unwrap();
        let kinds: Vec<FoundKind> = own
            .below("a")
            .list()
            .unwrap()
            .iter()
            .map(|f| f.kind)
            .collect();
        assert_eq!(kinds, [FoundKind::Directory, FoundKind::Link]);
        own.remove_tree("a").unwrap();
        own.remove_tree("a").unwrap();
        assert_eq!(own.list().unwrap(), []);
        assert!(top.path().join("outside/below").is_dir());
    }

    #[test]
    #[cfg_attr(windows, ignore = "Wine makes no symbolic links")]
    fn named_path_is_replaced_only_if_it_is_a_file() {
        let (top, _own) = tree();
        let file = top.path().join("outside/file");
        named::replace(&file, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        let directory = top.path().join("outside/below");
        assert_eq!(
            reason(named::replace(&directory, b"x")),
            Some(Reason::Special)
        );
        make_link("/dev/null", top.path().join("device")).unwrap();
        let device = top.path().join("device");
        assert_eq!(reason(named::replace(&device, b"x")), Some(Reason::Special));
        assert_eq!(reason(named::open_plain(&device)), Some(Reason::NotAFile));
    }

    #[test]
    fn read_only_directory_refuses_every_change() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("f"), "text").unwrap();
        let read_only = Directory::at(dir.path()).read_only();
        let below = read_only.below("sub");
        let refused = |done: io::Result<()>| {
            assert_eq!(done.unwrap_err().kind(), io::ErrorKind::ReadOnlyFilesystem);
        };
        refused(read_only.replace_file("f", b"x"));
        refused(read_only.replace_derived("f", &[b"x"]));
        refused(read_only.append("f", b"x", false));
        refused(read_only.open_for_update("f").map(drop));
        refused(read_only.open_or_create("g").map(drop));
        refused(read_only.remove("f").map(drop));
        refused(read_only.remove_tree("f"));
        refused(read_only.rename("f", "g").map(drop));
        refused(below.create().map(drop));
        assert_eq!(
            read_only.read_text("f", 9).unwrap().as_deref(),
            Some("text")
        );
        let names = fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(names, 1);
    }

    #[test]
    fn each_byte_has_two_digits() {
        assert_eq!(hex(&[0, 10, 255]), "000aff");
    }

    /// Only root can give files away.
    #[test]
    #[cfg(unix)]
    fn file_that_root_creates_by_path_belongs_to_the_owner_of_its_directory() {
        use std::os::unix::fs::{MetadataExt as _, chown};
        let top = tempfile::tempdir().unwrap();
        if chown(top.path(), Some(65534), Some(65534)).is_err() {
            return;
        }
        let owner = |path: &Path| fs::metadata(path).unwrap().uid();
        let made = top.path().join("a/b");
        named::create_dir(&made).unwrap();
        named::replace(&made.join("new"), b"x").unwrap();
        named::append(&made.join("log"), b"x").unwrap();
        named::create_once(&made.join("key"), b"x").unwrap();
        for path in ["a", "a/b", "a/b/new", "a/b/log", "a/b/key"] {
            assert_eq!(owner(&top.path().join(path)), 65534, "{path}");
        }
    }
}
