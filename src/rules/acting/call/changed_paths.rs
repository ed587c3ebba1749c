//! Files that a command changes, by its program and operands: targets of redirections, of copies, moves and
//! removals, of editors in place, of formatters, of git, of downloads and archives. And the forms of a path that
//! patterns are tried on: one for each directory that it is below, and the absolute one at the end.

use memctl_shell::{basename, takes_value};

use super::scripts::files_of_editor;

/// Returns the files that a command changes, as it names them, without those that it moves away: moving a file away
/// obeys a rule about its place.
pub(super) fn changed(words: &[String], targets: &[String]) -> Vec<String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut all = match words.as_slice() {
        [program, rest @ ..] if basename(program) == "git" => changed_by_git(rest),
        [program, rest @ ..] => changed_by(basename(program), rest),
        [] => Vec::new(),
    };
    all.splice(0..0, targets.iter().cloned());
    all.retain(|path| !path.is_empty() && path != "/dev/null");
    all
}

fn owned(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

/// Words that are no options.
fn operands<'w>(words: &[&'w str]) -> Vec<&'w str> {
    operands_beside(words, &[])
}

/// Words that are no options, and no values of these options.
fn operands_beside<'w>(words: &[&'w str], options: &[&str]) -> Vec<&'w str> {
    let mut is_value = false;
    let mut all = words.to_vec();
    all.retain(|word| {
        let was_value = std::mem::replace(&mut is_value, options.contains(word));
        !was_value && !word.starts_with('-')
    });
    all
}

/// Returns the value of the first of these options, in the next word or behind `=`. A letter may stand at the
/// end of others: `-qO`.
fn value<'w>(words: &[&'w str], options: &[&str]) -> Option<&'w str> {
    let is_letter = |word: &str, option: &str| {
        let letters = word
            .strip_prefix('-')
            .filter(|letters| !letters.starts_with('-'));
        option.len() == 2 && letters.is_some_and(|letters| letters.ends_with(&option[1..]))
    };
    let is_one = |word: &str| {
        let mut options = options.iter();
        options.any(|option| *option == word || is_letter(word, option))
    };
    let mut found = words.iter().enumerate().filter_map(|(at, word)| {
        let (name, value) = word
            .split_once('=')
            .map_or((*word, None), |(name, value)| (name, Some(value)));
        is_one(name).then(|| value.or(words.get(at + 1).copied()))
    });
    found.next().flatten()
}

fn in_directory(directory: &str, path: &str) -> String {
    // Of `host:a.txt` the name is `a.txt`.
    let name = basename(path).rsplit(':').next().unwrap_or(path);
    format!("{}/{name}", directory.trim_end_matches('/'))
}

fn changed_by_git(mut rest: &[&str]) -> Vec<String> {
    let mut directory = String::new();
    while let [option, behind @ ..] = rest
        && option.starts_with('-')
    {
        let value = behind.first().copied().unwrap_or_default();
        if *option == "-C" {
            directory = below(&directory, value);
        }
        let count = usize::from(takes_value("git", option, value));
        rest = behind.get(count..).unwrap_or_default();
    }
    let Some((command, rest)) = rest.split_first() else {
        return Vec::new();
    };
    let paths = changed_in_work_tree(command, rest);
    paths.iter().map(|path| below(&directory, path)).collect()
}

/// A path as it is seen from outside of a directory.
fn below(directory: &str, path: &str) -> String {
    if directory.is_empty() || path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{directory}/{path}")
    }
}

fn changed_in_work_tree(command: &str, rest: &[&str]) -> Vec<String> {
    let behind = rest.iter().position(|word| *word == "--");
    let behind = behind.map(|at| owned(&rest[at + 1..]));
    match command {
        "rm" => owned(&operands(rest)),
        "mv" => copied(operands(rest), rest),
        // A branch is one operand; paths stand behind it.
        "checkout" => behind.unwrap_or_else(|| {
            let makes_branch = rest
                .iter()
                .any(|word| matches!(*word, "-b" | "-B" | "--orphan"));
            let mut paths = operands(rest);
            paths.drain(..1.min(paths.len()));
            paths.retain(|_| !makes_branch);
            owned(&paths)
        }),
        "apply" | "am" => directory(rest, &["--directory"]),
        "restore" if rest.iter().any(|word| matches!(*word, "--staged" | "-S")) => Vec::new(),
        "restore" => behind.unwrap_or_else(|| owned(&operands_beside(rest, &["-s", "--source"]))),
        _ => Vec::new(),
    }
}

/// Subcommands that copy: `docker cp`, `aws s3 sync`.
const COPIES: [&str; 4] = ["copy", "cp", "mv", "sync"];

/// Words behind a subcommand that copies one operand to another.
fn behind_copy<'r, 'w>(
    program: &str,
    rest: &'r [&'w str],
) -> Option<(Vec<&'w str>, &'r [&'w str])> {
    let mut is_value = false;
    let mut places = rest.iter().enumerate().filter(|(at, word)| {
        let next = rest.get(at + 1).copied().unwrap_or_default();
        let takes = word.starts_with('-') && takes_value(program, word, next);
        !std::mem::replace(&mut is_value, takes) && !word.starts_with('-')
    });
    let at = places
        .by_ref()
        .take(2)
        .find(|(_, word)| COPIES.contains(word))?
        .0;
    let operands: Vec<&str> = places.map(|(_, word)| *word).collect();
    (operands.len() > 1).then(|| (operands, &rest[at + 1..]))
}

/// Targets of a program that copies: its last operand, or its operands in a directory. None on another machine.
fn copied(mut operands: Vec<&str>, rest: &[&str]) -> Vec<String> {
    let directory = value(rest, &["-t", "--target-directory"]);
    let within = |directory: &str, from: &[&str]| -> Vec<String> {
        let from = from.iter().filter(|path| **path != directory);
        from.map(|path| in_directory(directory, path)).collect()
    };
    let is_directory = |path: &str| path.ends_with('/') || matches!(basename(path), "." | "..");
    let is_remote = |path: &str| {
        let host = path.split_once(':').map(|(host, _)| host);
        host.is_some_and(|host| host.len() > 1 && !host.contains('/'))
    };
    match (directory, operands.pop()) {
        (Some(directory), last) => {
            operands.extend(last);
            within(directory, &operands)
        }
        (None, Some(to)) if is_remote(to) => Vec::new(),
        (None, Some(to)) if is_directory(to) && !operands.is_empty() || operands.len() > 1 => {
            within(to, &operands)
        }
        (None, Some(to)) => owned(&[to]),
        (None, None) => Vec::new(),
    }
}

fn changed_by(program: &str, rest: &[&str]) -> Vec<String> {
    let short = |letter: char| {
        let mut flags = rest.iter().filter(|flag| !flag.starts_with("--"));
        flags.any(|flag| flag.starts_with('-') && flag.contains(letter))
    };
    match program {
        "find" => found(rest),
        "rm" | "rmdir" | "unlink" | "shred" | "touch" | "truncate" | "mkdir" | "tee" => {
            owned(&operands(rest))
        }
        "mv" | "cp" | "ln" => copied(operands(rest), rest),
        "install" => copied(operands_beside(rest, &["-m", "-o", "-g"]), rest),
        "rsync" => {
            let valued = ["-e", "--rsh", "-f", "--filter", "--exclude", "--include"];
            copied(operands_beside(rest, &valued), rest)
        }
        "scp" => {
            let valued = ["-c", "-D", "-F", "-i", "-J", "-l", "-o", "-P", "-S", "-X"];
            copied(operands_beside(rest, &valued), rest)
        }
        "sed" | "perl" | "ruby" | "yq" | "awk" | "gawk" | "sd" => edited(program, rest, short('i')),
        "patch" => {
            let directory = value(rest, &["-d", "--directory"]);
            let output = value(rest, &["-o", "--output"]);
            let valued = ["-d", "--directory", "-i", "--input", "-o", "--output"];
            let mut files = operands_beside(rest, &valued);
            files.truncate(1);
            files.extend(output.or(directory));
            owned(&files)
        }
        "sort" | "pandoc" | "shuf" => value(rest, &["-o", "--output"])
            .map(str::to_owned)
            .into_iter()
            .collect(),
        "sponge" | "dos2unix" | "unix2dos" | "gunzip" | "chmod" | "chown" => {
            let modes = usize::from(program.starts_with("ch"));
            owned(&operands(rest)[modes.min(operands(rest).len())..])
        }
        "curl" | "wget" => fetched(program, rest).into_iter().collect(),
        // Nobody knows the names within.
        "tar" if short('x') || rest.first().is_some_and(|word| word.contains('x')) => {
            let members = members(rest);
            if members.is_empty() {
                directory(rest, &["-C", "--directory"])
            } else {
                members
            }
        }
        "unzip" => directory(rest, &["-d"]),
        "dd" => {
            let to = rest.iter().filter_map(|word| word.strip_prefix("of="));
            to.map(str::to_owned).collect()
        }
        _ => match behind_copy(program, rest) {
            Some((operands, rest)) => copied(operands, rest),
            None => rewritten(program, rest, short('w') || short('i')),
        },
    }
}

/// Files that an editor of streams changes in place.
fn edited(program: &str, rest: &[&str], is_short: bool) -> Vec<String> {
    let is_long = |word: &&str| word.starts_with("--in-place") || word.starts_with("--inplace");
    let is_in_place = match program {
        "sd" => true,
        "awk" | "gawk" => value(rest, &["-i", "--include"]) == Some("inplace"),
        _ => is_short || rest.iter().any(is_long),
    };
    let mut files = files_of_editor(program, rest);
    files.retain(|_| is_in_place);
    owned(&files)
}

/// Files that a formatter or a linter writes: many only with an option, others unless they only look.
fn rewritten(program: &str, rest: &[&str], is_short: bool) -> Vec<String> {
    let is_set = |options: &[&str]| rest.iter().any(|flag| options.contains(flag));
    let mut files = operands(rest);
    let has_subcommand = matches!(files.first(), Some(&("fmt" | "format")));
    if has_subcommand || matches!(program, "black" | "isort" | "rustfmt") {
        let only_looks = is_set(&["--check", "-check", "--diff", "--dry-run", "-c"]);
        files.retain(|_| !only_looks);
        // Such an operand is a place.
        files.drain(..usize::from(has_subcommand).min(files.len()));
        return owned(&files);
    }
    let mut names = ["fmt", "format", "prettier", "imports", "sops"].iter();
    let has_name = names.any(|part| program.contains(part));
    let writes = has_name && is_short || is_set(&["--write", "--fix", "--in-place", "--inplace"]);
    files.retain(|path| writes && path.contains(['.', '/']));
    owned(&files)
}

/// Returns the file that a download is written to.
fn fetched(program: &str, rest: &[&str]) -> Option<String> {
    let is_curl = program == "curl";
    let named = [
        "--output",
        "--output-document",
        if is_curl { "-o" } else { "-O" },
    ];
    let directory = value(rest, &["--output-dir", "-P", "--directory-prefix"]);
    if let Some(path) = value(rest, &named) {
        let path = Some(path).filter(|path| !path.starts_with('-'))?;
        return Some(match directory.filter(|_| is_curl) {
            Some(directory) => in_directory(directory, path),
            None => path.to_owned(),
        });
    }
    let is_saved = |flag: &&str| {
        let is_short = flag.starts_with('-') && !flag.starts_with("--");
        is_short && flag.contains('O') || matches!(*flag, "--remote-name" | "--remote-name-all")
    };
    if is_curl && !rest.iter().any(is_saved) {
        return None;
    }
    let mut urls = rest.iter().filter_map(|word| word.split_once("://"));
    let (_, url) = urls.next()?;
    let path = url.split(['?', '#']).next().unwrap_or(url);
    path.contains('/')
        .then(|| in_directory(directory.unwrap_or("."), path))
}

/// Returns the directories in which `find` deletes. What it executes is another command.
fn found(rest: &[&str]) -> Vec<String> {
    let is_place = |word: &&&str| !word.starts_with(['-', '(', '!', '\\']);
    let places: Vec<&str> = rest.iter().take_while(is_place).copied().collect();
    let is_deleted = rest.contains(&"-delete");
    owned(if is_deleted { &places } else { &[] })
}

/// Returns the files of an archive that a call of `tar` names.
fn members(rest: &[&str]) -> Vec<String> {
    let directory = value(rest, &["-C", "--directory"]);
    let mut named = operands(rest);
    named.retain(|path| directory != Some(*path));
    // `tar xzf a.tgz README.md`: letters, the archive, its files.
    let letters = usize::from(rest.first().is_some_and(|word| !word.starts_with('-')));
    let named = named.into_iter().skip(letters + 1);
    named
        .map(|path| in_directory(directory.unwrap_or("."), path))
        .collect()
}

/// Directory that one of these options names.
fn directory(rest: &[&str], options: &[&str]) -> Vec<String> {
    let named = value(rest, options).map(|path| format!("{}/", path.trim_end_matches('/')));
    named.into_iter().collect()
}

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
    use memctl_shell::commands;

    use super::*;
    use crate::rules::Call;

    #[test]
    fn the_files_that_a_command_changes_are_found() {
        let check = |line: &str, expected: &[&str]| {
            let simple = &commands(line)[0];
            assert_eq!(
                changed(&simple.executed, &simple.targets),
                expected,
                "{line}"
            );
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
        check("cp notes/a.md .", &["./a.md"]);
        check("mv a/b ..", &["../b"]);
        check("cp -t docs a x/b", &["docs/a", "docs/b"]);
        check("curl -fsSLO https://x.example/a/b.tgz?c=1", &["./b.tgz"]);
        check("curl --output=lib/x https://y.example/x", &["lib/x"]);
        check("curl https://x.example/a", &[]);
        check("wget -P lib https://x.example/a/b.js", &["lib/b.js"]);
        check("wget https://x.example/b.js", &["./b.js"]);
        check("tar -xzf lib-1.tar.gz -C third", &["third/"]);
        check("tar -czf a.tgz -C third b", &[]);
        check("unzip -q x.zip -d third", &["third/"]);
        check("git checkout HEAD -- a b", &["a", "b"]);
        check("git checkout main", &[]);
        check("git restore -s HEAD~1 a", &["a"]);
        check("git restore --staged a", &[]);
        check("shfmt -w run.sh", &["run.sh"]);
        check("npx neat --write src/a.ts", &["src/a.ts"]);
        check("poetry run black a.py", &["a.py"]);
        check("git -C web --no-pager -c a.b=c restore a.js", &["web/a.js"]);
        check("git -C /w rm a.js", &["/w/a.js"]);
        check("/usr/bin/git -C", &[]);
        check("yq -i '.a = 2' a.yml", &["a.yml"]);
        check("yq eval -i '.a = 2' a.yml", &["a.yml"]);
        check("yq .a a.yml", &[]);
        check("awk -i inplace '{ print }' a.txt", &["a.txt"]);
        check("awk -f a.awk a.txt", &[]);
        check("ruby -pi -e 'gsub(1, 2)' a.rb", &["a.rb"]);
        check("sed -i -e s/a/b/ -e s/c/d/ a", &["a"]);
        check("sed -i '' s/a/b/ a", &["a"]);
        check("sd old new a.txt", &["a.txt"]);
        check("sops -e -i a.yml", &["a.yml"]);
        check("scp -P 22 far:a.txt lib/", &["lib/a.txt"]);
        check("scp lib/a.txt far:", &[]);
        check("rsync -a --exclude b far:lib/ lib", &["lib"]);
        check("install -m 644 a lib/a", &["lib/a"]);
        check("docker cp web:/a.txt lib/a.txt", &["lib/a.txt"]);
        check("kubectl -n far cp web-0:/a.txt lib/a.txt", &["lib/a.txt"]);
        check("aws --profile far s3 cp s3://b/a lib/a --quiet", &["lib/a"]);
        check("aws s3 sync lib s3://b", &[]);
        check("uv sync", &[]);
        check("fold -w 80 a.txt", &[]);
        check("black a.py b", &["a.py", "b"]);
        check("black --check a.py", &[]);
        check("ruff format a.py", &["a.py"]);
        check("ruff check a.py", &[]);
        check("terraform fmt net/a.tf", &["net/a.tf"]);
        check("prettier -w a.js", &["a.js"]);
        check("prettier a.js", &[]);
        check("patch -p1 a.js a.diff", &["a.js"]);
        check("patch -d lib -p1 -i a.diff", &["lib"]);
        check("sort -u -o a.txt b.txt", &["a.txt"]);
        check("sort b.txt", &[]);
        check("git checkout HEAD~1 a.js", &["a.js"]);
        check("find src/gen -name '*.ts' -delete", &["src/gen"]);
        check("find a -name x", &[]);
        check("tar -xzf l.tgz -C web Cargo.lock", &["web/Cargo.lock"]);
        check("tar xf l.tar a.txt b.txt", &["./a.txt", "./b.txt"]);
        check("git checkout -b a origin/b", &[]);
        check("git apply --directory=lib a.diff", &["lib/"]);
    }

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
