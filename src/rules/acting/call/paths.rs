//! Forms of a path that patterns are tried on.
//!
//! A path has a form for each directory that it is below, and is absolute in the last one.

use memctl_shell::basename;

/// A path relative to each of the directories that it is below, and absolute as the last.
pub(super) fn forms(path: &str, cwd: &str, roots: &[&str]) -> Vec<String> {
    let whole = cleaned(path, cwd);
    let mut forms: Vec<String> = Vec::new();
    for root in roots {
        let root = cleaned(root, "");
        let below = whole.strip_prefix(root.trim_end_matches('/'));
        if let Some(below) = below.and_then(|rest| rest.strip_prefix('/'))
            && !forms.iter().any(|form| form == below)
        {
            forms.push(below.to_owned());
        }
    }
    forms.push(whole);
    forms
}

/// The forms of a path without an extension, also as a directory: `vendor/`.
pub(super) fn with_directories(mut forms: Vec<String>) -> Vec<String> {
    let is_directory = |path: &&String| !basename(path).contains('.') && !path.ends_with('/');
    let directories = forms.iter().filter(is_directory);
    let mut directories: Vec<String> = directories.map(|path| format!("{path}/")).collect();
    // The absolute path stays the last.
    directories.append(&mut forms);
    directories
}

/// Returns a path below a directory without `.` and `..`, with `/` between its names also on
/// Windows.
pub(super) fn cleaned(path: &str, cwd: &str) -> String {
    let is_windows = has_drive(path) || has_drive(cwd);
    let plain = |path: &str| match (is_windows, has_drive(path)) {
        (false, _) => path.to_owned(),
        (true, false) => path.replace('\\', "/"),
        (true, true) => format!("/{}", path.replace('\\', "/")),
    };
    let (path, cwd) = (plain(path), plain(cwd));
    let whole = if path.starts_with('/') {
        path
    } else {
        format!("{cwd}/{path}")
    };
    let mut names: Vec<&str> = Vec::new();
    for name in whole.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

/// Returns `true` for an absolute path of Windows with a drive: `C:\a` or `C:/a`.
fn has_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use memctl_sessions::Step;

    use super::*;
    use crate::rules::Call;

    #[test]
    fn a_directory_that_is_changed_is_in_its_place() {
        let call = |tool: &str, input: serde_json::Value| {
            let step = Step {
                tool: tool.to_owned(),
                input,
                ..Step::default()
            };
            Call::of(&step, &["/p"])
        };
        let forms = |line: &str| {
            let call = call("Bash", serde_json::json!({ "command": line }));
            call.path_texts().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(forms("rm -rf lib"), ["lib/", "/p/lib/", "lib", "/p/lib"]);
        assert_eq!(forms("rm a.txt"), ["a.txt", "/p/a.txt"]);
        let edit = serde_json::json!({"path": "a.js", "edits": [{"oldText": "a", "newText": "b"}]});
        let call = call("mcp__files__edit_file", edit);
        assert_eq!(call.path_texts().next(), Some("a.js"));
        assert_eq!(call.contents[0].old, "a");
    }

    #[test]
    fn paths_are_clean() {
        let check = |path: &str, cwd: &str, expected: &str| {
            assert_eq!(cleaned(path, cwd), expected, "{path} in {cwd}");
        };
        check("a/./b/../c", "/p", "/p/a/c");
        check("../x", "/p/q", "/p/x");
        check("/x", "/p", "/x");
        check("../../../x", "/p", "/x");
        check(r"src\main.rs", r"C:\p", "/C:/p/src/main.rs");
        check(r"C:\p\a", r"C:\p", "/C:/p/a");
        check(r"a\b", "/p", r"/p/a\b");
    }
}
