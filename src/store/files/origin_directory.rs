//! Directory names of origins below `remote/`.
//!
//! Other workspaces choose their origin names. A name may equal one of our file names, or differ
//! from another only in case, which some file systems ignore. Directory names are therefore
//! escaped: lower-case letters, digits, `-` and `_` stay, and every other byte becomes `%` and two
//! digits. The names that workspaces give themselves (UUIDs) stay unchanged.
//!
//! Invariants: two origins never share a directory, on any file system. No directory name contains
//! a dot, so none equals a file name here, `.` or `..`.

/// Origin of rows that other programs have written to a shared database: its schema. No workspace can
/// have this name.
pub const OTHER_PROGRAMS: &str = "postgres:public";

/// Returns `true` if a name is valid for the origin of pulled records.
pub(crate) fn is_pulled_origin(name: &str) -> bool {
    is_origin(name) || name == OTHER_PROGRAMS
}

/// Returns `true` if a name is valid for a workspace.
pub fn is_origin(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    name.len() <= 64
        && name
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphanumeric())
        && name.bytes().all(plain)
}

/// Returns the directory name of an origin.
pub(crate) fn directory_name(origin: &str) -> String {
    let mut name = String::with_capacity(origin.len());
    for byte in origin.bytes() {
        if is_plain(byte) {
            name.push(char::from(byte));
        } else {
            name.push('%');
            name.extend([byte >> 4, byte & 15].map(hex));
        }
    }
    name
}

/// Returns the origin of a directory; `None` if the directory is not ours.
pub(crate) fn origin_of(name: &str) -> Option<String> {
    let mut origin = Vec::with_capacity(name.len());
    let mut bytes = name.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits = [bytes.next()?, bytes.next()?];
            let digits = std::str::from_utf8(&digits).ok()?;
            origin.push(u8::from_str_radix(digits, 16).ok()?);
        } else {
            origin.push(byte);
        }
    }
    let origin = String::from_utf8(origin).ok()?;
    // One directory per origin: other names that decode to it are invalid.
    (is_pulled_origin(&origin) && directory_name(&origin) == name).then_some(origin)
}

/// Returns the hexadecimal digit of four bits.
fn hex(bits: u8) -> char {
    char::from_digit(u32::from(bits), 16).unwrap_or('0')
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
}

#[cfg(test)]
mod tests {
    use super::super::origin_directory::*;

    #[test]
    fn every_origin_has_a_directory_of_its_own() {
        let check = |origin: &str, expected: &str| {
            assert_eq!(directory_name(origin), expected);
            assert_eq!(origin_of(expected).as_deref(), Some(origin));
        };
        check("3f2a9c1b-0000-4000", "3f2a9c1b-0000-4000");
        check("state.json", "state%2ejson");
        check("workspace.json", "workspace%2ejson");
        check("support", "support");
        check("Support", "%53upport");
        check("a_b", "a_b");
        check(OTHER_PROGRAMS, "postgres%3apublic");
        let longest = "A".repeat(64);
        assert_eq!(origin_of(&directory_name(&longest)), Some(longest));
    }

    #[test]
    fn other_directories_belong_to_nobody() {
        for name in [
            "", ".", "..", ".index", ".lock", "%2e%2e", "%2Ex", "%61", "a%", "a%2", "a%zz", "%+1",
            "%00", "a%2fb", "état", "postgres%3aother",
        ] {
            assert_eq!(origin_of(name), None, "{name}");
        }
    }
}
