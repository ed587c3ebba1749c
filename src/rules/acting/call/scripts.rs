//! Files that a script in another language writes: `python - <<E … open("a.txt", "w") … E`, `node -e '…'`. And those
//! that editors of streams, such as `sed`, are given, with the text that they put in.
//!
//! No language is read. A statement writes the file that it names before a mode of `open`, or that is the receiver or
//! the first argument of a function with `write` in its name. A name is a text, or a variable that a statement sets.

use memctl_shell::{Simple, basename, is_shell, takes_text};

/// Part of a statement.
#[derive(Clone, Copy, PartialEq)]
enum Token<'s> {
    Text(&'s str),
    Name(&'s str),
    Sign(char),
}

/// Returns the files that the code of a command writes: the value of an option such as `-c`, or its input.
pub(super) fn written(simple: &Simple) -> Vec<String> {
    let words = &simple.executed;
    let program = words.first().map_or("", |program| basename(program));
    if program.is_empty() || takes_text(program) || is_shell(program) {
        return Vec::new();
    }
    let is_code = |two: &&[String]| two[0].starts_with('-') && two[0].ends_with(['c', 'e', 'l']);
    let options = words.windows(2).filter(is_code);
    let codes = options.map(|two| two[1].as_str());
    codes
        .chain(std::iter::once(simple.body.as_str()))
        .flat_map(files_of)
        .collect()
}

fn files_of(code: &str) -> Vec<String> {
    let statements: Vec<Vec<Token<'_>>> = code.split(['\n', ';']).map(tokens).collect();
    let set = |statement: &Vec<_>| match statement.split(|token| *token == Token::Sign('=')).next()
    {
        Some([.., Token::Name(name)]) => Some((*name, first(&statement[..], &[])?)),
        _ => None,
    };
    let variables: Vec<(&str, &str)> = statements.iter().filter_map(set).collect();
    let target = |statement: &Vec<_>| target(statement, &variables).map(str::to_owned);
    statements.iter().filter_map(target).collect()
}

fn tokens(statement: &str) -> Vec<Token<'_>> {
    let mut all = Vec::new();
    let mut rest = statement;
    while let Some(c) = rest.chars().next() {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let behind = &rest[c.len_utf8()..];
        if let ('\'' | '"' | '`', Some(end)) = (c, behind.find(c)) {
            all.push(Token::Text(&behind[..end]));
            rest = &behind[end + 1..];
        } else if is_name(c) {
            let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            all.push(Token::Name(&rest[..end]));
            rest = &rest[end..];
        } else {
            all.extend((!c.is_whitespace()).then_some(Token::Sign(c)));
            rest = behind;
        }
    }
    all
}

/// Returns the file that a statement writes.
fn target<'s>(statement: &[Token<'s>], variables: &[(&str, &'s str)]) -> Option<&'s str> {
    let names = |tokens: &[Token<'_>], part: &str| {
        let is_one = |token: &Token<'_>| matches!(token, Token::Name(name) if name.contains(part));
        tokens.iter().position(is_one)
    };
    let is_mode = |token: &Token<'_>| match token {
        Token::Text(mode) => {
            let is_one = mode.len() < 4 && mode.chars().all(|c| "rwaxbt+".contains(c));
            is_one && mode.contains(['w', 'a', 'x', '+'])
        }
        _ => false,
    };
    if let Some(at) = statement.iter().rposition(is_mode)
        && names(&statement[..at], "open").is_some()
    {
        let mut before = statement[..at].iter().rev();
        return before.find_map(|token| file(*token, variables));
    }
    let at = names(statement, "write")?;
    let (before, call) = statement.split_at(at);
    let receiver = match before {
        [.., Token::Name(name), Token::Sign('.')] => name.chars().next(),
        _ => None,
    };
    // `file.write(text)` writes to an open file, `File.write(path, text)` and `fs.writeFile(path, text)` to a path.
    let is_of_path = names(call, "File") == Some(0) || receiver.is_none_or(char::is_uppercase);
    first(before, variables).or_else(|| first(call, variables).filter(|_| is_of_path))
}

fn first<'s>(tokens: &[Token<'s>], variables: &[(&str, &'s str)]) -> Option<&'s str> {
    tokens.iter().find_map(|token| file(*token, variables))
}

/// Returns the file that a part of a statement stands for.
fn file<'s>(token: Token<'s>, variables: &[(&str, &'s str)]) -> Option<&'s str> {
    let is_path = |text: &&str| {
        let is_part = |c: char| c.is_alphanumeric() || "./_-@~+{}$".contains(c);
        text.contains(['.', '/'])
            && text.chars().all(is_part)
            && text.contains(char::is_alphanumeric)
    };
    match token {
        Token::Text(text) => Some(text).filter(is_path),
        Token::Name(name) => {
            let set = variables.iter().find(|(variable, _)| *variable == name);
            set.map(|(_, path)| *path)
        }
        Token::Sign(_) => None,
    }
}

/// Scripts and files of an editor of streams. A script is the value of an option that ends with `e`, or else the
/// first operand.
fn scripts_and_files<'w>(rest: &[&'w str]) -> (Vec<&'w str>, Vec<&'w str>) {
    let is_script =
        |word: &str| word == "--expression" || !word.starts_with("--") && word.ends_with('e');
    let (mut scripts, mut files) = (Vec::new(), Vec::new());
    let mut has_file = false;
    let mut all = rest.iter().copied().filter(|word| !word.is_empty());
    while let Some(word) = all.next() {
        if !word.starts_with('-') {
            files.push(word);
        } else if is_script(word) {
            scripts.extend(all.next());
        } else if matches!(word, "-f" | "--file" | "--from-file") {
            has_file = all.next().is_some();
        }
    }
    if scripts.is_empty() && !has_file {
        scripts.extend(files.drain(..1.min(files.len())));
    }
    (scripts, files)
}

/// Returns what an editor of streams puts in the place of what: by `s/…/…/`, and `i`, `a` and `c` of `sed`.
pub(super) fn substituted(words: &[String]) -> Vec<(String, String)> {
    let Some((program, rest)) = words.split_first() else {
        return Vec::new();
    };
    let program = basename(program);
    if !["sed", "perl", "ruby"].contains(&program) {
        return Vec::new();
    }
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let (scripts, _) = scripts_and_files(&rest);
    let of = |script: &&str| {
        let script = behind_address(script);
        let is_text = program == "sed" && script.starts_with(['i', 'a', 'c']);
        if is_text {
            let text = script[1..]
                .trim_start()
                .trim_start_matches('\\')
                .trim_start();
            return Some((String::new(), text.to_owned()));
        }
        exchanged(script)
    };
    scripts.iter().filter_map(of).collect()
}

/// A command of `sed` without the lines that it is for: `1,$`, `/a/`.
fn behind_address(script: &str) -> &str {
    let rest = script.trim_start_matches(|c: char| c.is_ascii_digit() || " ,$+~!{".contains(c));
    let end = rest.strip_prefix('/').and_then(|inside| inside.find('/'));
    match end {
        Some(end) => behind_address(&rest[end + 2..]),
        None => rest,
    }
}

/// Returns the two parts of `s/…/…/`.
fn exchanged(script: &str) -> Option<(String, String)> {
    let marks = script.strip_prefix('s')?;
    let mark = marks
        .chars()
        .next()
        .filter(|mark| !mark.is_alphanumeric())?;
    let mut parts = vec![String::new()];
    let mut is_escaped = false;
    for c in marks[mark.len_utf8()..].chars() {
        if c == mark && !is_escaped {
            parts.push(String::new());
        } else if let Some(last) = parts.last_mut() {
            last.push(c);
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    let [old, new, ..] = parts.as_slice() else {
        return None;
    };
    Some((old.clone(), new.clone()))
}

/// Files that a call of an editor of streams names.
pub(super) fn files_of_editor<'w>(program: &str, rest: &[&'w str]) -> Vec<&'w str> {
    let (_, mut files) = scripts_and_files(rest);
    // The text that is sought and its replacement; the library and the script; the command and the expression.
    let is_second = match program {
        "yq" => rest
            .iter()
            .any(|word| matches!(*word, "e" | "eval" | "ea" | "eval-all")),
        _ => program.ends_with("awk") || program == "sd",
    };
    files.drain(..usize::from(is_second).min(files.len()));
    files
}

#[cfg(test)]
mod tests {
    use memctl_shell::commands;

    use super::*;

    #[test]
    fn a_script_writes_the_file_that_it_names() {
        let check = |line: &str, expected: &[&str]| {
            let found: Vec<String> = commands(line).iter().flat_map(written).collect();
            assert_eq!(found, expected, "{line}");
        };
        check(
            "python3 -c \"open('db/1.sql', 'w').write('a/b')\"",
            &["db/1.sql"],
        );
        check(
            "python3 - <<'E'\np = 'db/1.sql'\ns = open(p).read()\ns = s.replace('a.b', 'c.d')\nopen(p, 'w').write(s)\nE",
            &["db/1.sql"],
        );
        check(
            "python <<E\nfrom pathlib import Path\nq = Path('db/1.sql')\nq.write_text(q.read_text() + 'x/y')\nE",
            &["db/1.sql"],
        );
        check(
            "python -c 'import json\nwith open(\"out.json\", mode=\"w\") as f:\n  f.write(\"db/1.sql\")'",
            &["out.json"],
        );
        check(
            "node -e 'fs.writeFileSync(`db/1.sql`, \"a/b\")'",
            &["db/1.sql"],
        );
        check(
            "ruby -e 'File.write(\"db/1.sql\", File.read(\"a.sql\"))'",
            &["db/1.sql"],
        );
        for line in [
            "python -c \"print(open('db/1.sql').read())\"",
            "node -e 'process.stdout.write(\"db/1.sql\")'",
            "git commit -F - <<'E'\nopen('db/1.sql', 'w')\nE",
            "grep -e \"open('db/1.sql', 'w')\" a.py",
            "psql <<'E'\nselect 'a/b';\nE",
            "docker exec web python -c \"open('db/1.sql', 'w')\"",
        ] {
            check(line, &[]);
        }
    }
}
