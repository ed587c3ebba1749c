//! Editors of streams, such as `sed`: the files that they change in place, and the text that they put in.

use memctl_shell::basename;

use super::changed_paths::{owned, value};

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

/// Files that an editor of streams changes in place.
pub(super) fn edited(program: &str, rest: &[&str], is_short: bool) -> Vec<String> {
    let is_long = |word: &&str| word.starts_with("--in-place") || word.starts_with("--inplace");
    let is_awk = program.ends_with("awk");
    let is_in_place = match program {
        "sd" => true,
        _ if is_awk => value(rest, &["-i", "--include"]) == Some("inplace"),
        _ => is_short || rest.iter().any(is_long),
    };
    if !is_in_place {
        return Vec::new();
    }
    let (_, mut files) = scripts_and_files(rest);
    // The text that is sought and its replacement; the library and the script; the command and the expression.
    let is_second = match program {
        "yq" => rest
            .iter()
            .any(|word| matches!(*word, "e" | "eval" | "ea" | "eval-all")),
        _ => is_awk || program == "sd",
    };
    files.drain(..usize::from(is_second).min(files.len()));
    owned(&files)
}
