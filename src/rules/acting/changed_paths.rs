//! Paths that a command changes, and paths without `.` and `..`.

use memctl_shell::basename;

/// Returns the files that a command changes, as it names them. What is moved away is not among them: a
/// rule about places is obeyed by it.
pub(crate) fn changed(words: &[String], targets: &[String]) -> Vec<String> {
    let mut all: Vec<String> = targets.to_vec();
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    if words.first() == Some(&"git") {
        words.remove(0);
        if !matches!(words.first(), Some(&("rm" | "mv" | "restore"))) {
            words.clear();
        }
    }
    let Some((program, arguments)) = words.split_first() else {
        return all;
    };
    let operands: Vec<&str> = arguments
        .iter()
        .copied()
        .filter(|word| !word.starts_with('-'))
        .collect();
    let name = basename(program);
    match name {
        "rm" | "rmdir" | "unlink" | "shred" | "touch" | "truncate" | "mkdir" | "tee"
        | "restore" => {
            all.extend(operands.iter().map(|path| (*path).to_owned()));
        }
        "mv" | "cp" | "install" | "ln" | "rsync" => {
            if let Some((to, from)) = operands.split_last() {
                match from {
                    [_, ..] if to.ends_with('/') || from.len() > 1 => {
                        let to = to.trim_end_matches('/');
                        all.extend(from.iter().map(|path| format!("{to}/{}", basename(path))));
                    }
                    _ => all.push((*to).to_owned()),
                }
            }
        }
        "sed" | "perl" => {
            let in_place = |flag: &&&str| {
                let is_short = flag.starts_with('-') && !flag.starts_with("--");
                is_short && flag.contains('i') || flag.starts_with("--in-place")
            };
            let has_script = arguments.iter().any(|flag| matches!(*flag, "-e" | "-f"));
            if arguments.iter().any(|flag| in_place(&flag)) {
                let scripts = usize::from(!has_script);
                all.extend(operands.iter().skip(scripts).map(|path| (*path).to_owned()));
            }
        }
        "curl" | "wget" => {
            let at = arguments
                .iter()
                .position(|flag| matches!(*flag, "-o" | "-O" | "--output"));
            let path = at.and_then(|at| arguments.get(at + 1));
            all.extend(
                path.filter(|path| !path.starts_with('-'))
                    .map(|path| (*path).to_owned()),
            );
        }
        "dd" => {
            let to = arguments.iter().filter_map(|word| word.strip_prefix("of="));
            all.extend(to.map(str::to_owned));
        }
        _ => {}
    }
    all.retain(|path| !path.is_empty() && path != "/dev/null");
    all
}

/// Returns a path below a directory without `.` and `..`, with `/` between its names also on
/// Windows.
pub(crate) fn cleaned(path: &str, cwd: &str) -> String {
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
    use super::*;

    #[test]
    fn the_files_that_a_command_changes_are_found() {
        let check = |line: &str, expected: &[&str]| {
            let simple = &memctl_shell::commands(line)[0];
            assert_eq!(changed(&simple.words, &simple.targets), expected, "{line}");
        };
        check("echo a > b.txt", &["b.txt"]);
        check("make >> log 2>&1", &["log"]);
        check("make 2> /dev/null", &[]);
        check("cat a b", &[]);
        check("rm -rf a b", &["a", "b"]);
        check("git rm a", &["a"]);
        check("git add a", &[]);
        check("mv a b", &["b"]);
        check("cp a b docs/", &["docs/a", "docs/b"]);
        check("cp a b", &["b"]);
        check("sed -i s/a/b/ c d", &["c", "d"]);
        check("sed -n 1p c", &[]);
        check("tee -a x", &["x"]);
        check("curl -o x http://y", &["x"]);
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
