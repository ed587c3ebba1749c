//! Keeps people out of what is learned: names of home directories, and email addresses.

use std::sync::LazyLock;

use regex_lite::Regex;

/// Text without the names of home directories, and without addresses that are given as a value.
pub(crate) fn without_people(text: &str) -> String {
    without_addresses(&without_home(text))
}

/// Text without the names of home directories, which name a person.
fn without_home(text: &str) -> String {
    static HOME: LazyLock<Regex> = LazyLock::new(|| {
        #[expect(clippy::unwrap_used, reason = "the pattern is constant")]
        Regex::new(r"(?:/home/|/Users/|[A-Za-z]:\\Users\\)[^/\\\s'\x22:]+").unwrap()
    });
    HOME.replace_all(text, "~").into_owned()
}

/// Text without email addresses that are given as a value. The address of a login or a remote,
/// as in `ssh a@b.com`, belongs to the command.
fn without_addresses(text: &str) -> String {
    static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
        #[expect(clippy::unwrap_used, reason = "the pattern is constant")]
        Regex::new(r#"(?<before>[='"<(])[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}"#).unwrap()
    });
    ADDRESS.replace_all(text, "$before<email>").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_do_not_get_into_a_fix() {
        let check = |command: &str, expected: &str| {
            assert_eq!(without_people(command), expected);
        };
        check("ls /home/anna/x /Users/bob", "ls ~/x ~");
        check(
            "git -c user.email=anna.b@acme.example.com commit",
            "git -c user.email=<email> commit",
        );
        check("ssh anna@acme.example", "ssh anna@acme.example");
        check(
            "git clone git@github.com:a/b.git",
            "git clone git@github.com:a/b.git",
        );
    }
}
