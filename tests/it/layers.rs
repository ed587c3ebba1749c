//! The layers of the table in `src/lib.rs`: every mention of a module outside the permitted ones is
//! an error.
//!
//! Only code counts: comments, string literals and test items are skipped, since tests may create
//! files and read clocks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Restricted words: the words, the permitted modules, and the reason.
const RESERVED: &[(&[&str], May, &str)] = &[
    (
        &[
            "println!", "print!", "eprintln!", "eprint!", "dbg!", "io::stdout", "io::stderr",
            "io::stdin", "stdout()", "stderr()", "stdin()", "process::exit", "process::abort",
            "std::env", "env::var", "env::args", "env::temp_dir", "env::current_dir", "Utc::now",
            "Local::now", "SystemTime",
        ],
        May::FromLayer(4),
        "only the edge prints, exits, reads the environment and asks for the time",
    ),
    (
        &[
            "async", "await", "tokio", "std::fs", "fs", "File", "OpenOptions",
        ],
        May::Outside(&[
            "model/",
            "rules/reflect/",
            "rules/regression/assertion.rs",
            "rules/regression/case.rs",
            "lessons/failure/",
            "lessons/call/",
            "lessons/recovery/",
            "skills/prompt/",
        ]),
        "it is pure: neither files nor waiting",
    ),
    (&["anyhow"], May::Within(&[]), "errors are typed inside"),
    (
        &["process::Command", "Command::new"],
        May::Within(&[]),
        "only `memctl_files::git` and `memctl_llm` start programs",
    ),
    (
        &[
            "reqwest", "rustls", "std::net", "tokio::net", "TcpStream", "TcpListener", "UdpSocket",
            "UnixStream", "UnixListener",
        ],
        May::Within(&["remote/", "serve/"]),
        "only `memctl_llm`, `remote` and `serve` open sockets",
    ),
    (
        &[
            "cfg(unix", "cfg(not(unix", "cfg(windows", "cfg(not(windows", "cfg!(", "target_os",
            "target_family", "std::os", "rustix", "winapi_util", "signal_hook",
            "tokio::signal::unix",
        ],
        // The driver of the database has another type of host on each.
        May::Within(&["remote/address.rs"]),
        "only `memctl_files` asks for the operating system",
    ),
    (
        &[
            "fs::rename", "fs::write", "fs::copy", "fs::hard_link", "symlink", "File::create",
            "File::create_new", "File::options", "OpenOptions", "DirBuilder", "fs::create_dir",
            "fs::create_dir_all", "rustix::fs",
        ],
        May::Within(&[]),
        "only `memctl_files` makes and renames files",
    ),
    (
        &[
            "atomic::replace", "replace_file", "replace_file_with", "replace_derived",
            "named::replace", "named::append", "named::create_once",
        ],
        // The settings of a host are the user's, and keep every byte.
        May::Within(&["store/", "host/settings", "serve/token/keys.rs"]),
        "files that are no records are written by `redacting_writer`",
    ),
];

/// Rooms of one layer that never import each other.
const APART: &[[&str; 2]] = &[["rules", "lessons"]];

/// Permitted modules.
enum May {
    /// Modules of this layer and those above.
    FromLayer(u8),
    /// Every file except those whose path begins like this.
    Outside(&'static [&'static str]),
    /// Files whose path begins like this.
    Within(&'static [&'static str]),
}

impl May {
    fn allows(&self, file: &str, layer: u8) -> bool {
        match self {
            Self::FromLayer(lowest) => layer >= *lowest,
            Self::Outside(begins) => !begins.iter().any(|path| file.starts_with(path)),
            Self::Within(begins) => begins.iter().any(|path| file.starts_with(path)),
        }
    }
}

/// Module to layer, as the rows `| 1 | [`store`], … |` of a documentation comment have it.
fn table(docs: &str) -> BTreeMap<String, u8> {
    let mut layers = BTreeMap::new();
    for line in docs.lines() {
        let Some(row) = line.strip_prefix("//! | ") else {
            continue;
        };
        let mut cells = row.split(" | ");
        let Some(Ok(layer)) = cells.next().map(str::parse) else {
            continue;
        };
        for name in cells.next().unwrap_or_default().split(", ") {
            let name = name.trim_matches(['[', ']', '`']).to_owned();
            assert_eq!(layers.insert(name.clone(), layer), None, "`{name}` twice");
        }
    }
    layers
}

/// The text without comments, without the insides of strings and characters, and without items
/// that are compiled for tests only.
fn code(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let mut out = String::new();
    let mut i = 0;
    while i < chars.len() {
        let word_before = i > 0 && is_word(at(i - 1));
        let hashes = chars[i + 1..].iter().take_while(|c| **c == '#').count();
        match at(i) {
            '/' if at(i + 1) == '/' => {
                while i < chars.len() && at(i) != '\n' {
                    i += 1;
                }
            }
            '/' if at(i + 1) == '*' => {
                let mut depth = 0;
                loop {
                    match (at(i), at(i + 1)) {
                        ('/', '*') => depth += 1,
                        ('*', '/') => depth -= 1,
                        _ if i >= chars.len() => break,
                        _ => {
                            i += 1;
                            continue;
                        }
                    }
                    i += 2;
                    if depth == 0 {
                        break;
                    }
                }
            }
            'r' if !word_before && at(i + 1 + hashes) == '"' => {
                i += hashes + 2;
                let closes = |i: usize| at(i) == '"' && (1..=hashes).all(|n| at(i + n) == '#');
                while i < chars.len() && !closes(i) {
                    i += 1;
                }
                i += hashes + 1;
                out.push_str("\"\"");
            }
            quote @ ('"' | '\'') => {
                // A quote that nothing closes at once begins a lifetime.
                if quote == '\'' && at(i + 1) != '\\' && at(i + 2) != '\'' {
                    out.push(quote);
                    i += 1;
                    continue;
                }
                i += 1;
                while i < chars.len() && at(i) != quote {
                    i += if at(i) == '\\' { 2 } else { 1 };
                }
                i += 1;
                out.extend([quote, quote]);
            }
            c => {
                out.push(c);
                i += 1;
            }
        }
    }
    without_tests(&out)
}

fn without_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut out = String::new();
    let mut rest = code;
    while let Some((before, item)) = rest.split_once(MARK) {
        out.push_str(before);
        let mut depth = 0_usize;
        let end = item.char_indices().find(|(_, c)| {
            match c {
                '{' | '(' | '[' => depth += 1,
                '}' | ')' | ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && matches!(c, '}' | ';')
        });
        rest = end.map_or("", |(at, _)| &item[at + 1..]);
    }
    out + rest
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns `true` if the code contains these words, not as a part of other words.
fn mentions(code: &str, words: &str) -> bool {
    code.match_indices(words).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + words.len()..].chars().next();
        let open = |c: Option<char>| c.is_none_or(|c| !is_word(c));
        open(before) && (!words.ends_with(is_word) || open(after))
    })
}

/// The modules of the crate that the code of a file names, by `crate::` or by enough `super::`.
fn named(file: &str, code: &str) -> BTreeSet<String> {
    // `super` of `store/mod.rs` is the crate, and so is that of `prompt.rs`.
    let up = file.trim_end_matches("/mod.rs").split('/').count();
    let packed: String = code.split_whitespace().collect::<Vec<_>>().join(" ");
    let packed = packed.replace(" ::", "::").replace(":: ", "::");
    let mut names = BTreeSet::new();
    for root in ["crate::".to_owned(), "super::".repeat(up)] {
        for (at, _) in packed.match_indices(&root) {
            if packed[..at].ends_with(is_word) || packed[..at].ends_with(':') {
                continue;
            }
            let path = &packed[at + root.len()..];
            match path.strip_prefix('{') {
                Some(list) => names.extend(first_names(list)),
                None => names.extend(path.split(|c| !is_word(c)).next().map(str::to_owned)),
            }
        }
    }
    names.retain(|name| name.starts_with(char::is_lowercase) && name != "super");
    names
}

/// The first name of each part of `a, b::{c, d}, e}`.
fn first_names(list: &str) -> Vec<String> {
    let mut depth = 1;
    let mut top = String::new();
    for c in list.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            c if depth == 1 => top.push(c),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    top.split(',')
        .map(|part| {
            part.trim()
                .split(|c| !is_word(c))
                .next()
                .unwrap_or_default()
                .to_owned()
        })
        .filter(|name| !name.is_empty())
        .collect()
}

/// Violations of a file's layer. `file` is relative to `src/`.
fn breaches(layers: &BTreeMap<String, u8>, file: &str, text: &str) -> Vec<String> {
    let module = file.split(['/', '.']).next().unwrap_or_default();
    let Some(&layer) = layers.get(module) else {
        return vec![format!(
            "{file}: `{module}` has no row in the table of layers"
        )];
    };
    let code = code(text);
    let mut found = Vec::new();
    for name in named(file, &code) {
        if name == module {
            continue;
        }
        match layers.get(&name) {
            None => found.push(format!("{file}: `{name}` has no row in the table")),
            _ if APART
                .iter()
                .any(|pair| pair.contains(&module) && pair.contains(&&*name)) =>
            {
                found.push(format!(
                    "{file}: `{module}` knows `{name}`, and they stay apart"
                ));
            }
            // Neighbours may import each other; circles are looked for below.
            Some(&other) if other <= layer => {}
            Some(other) => found.push(format!(
                "{file}: `{module}` of layer {layer} knows `{name}` of layer {other}"
            )),
        }
    }
    for (words, may, why) in RESERVED {
        if may.allows(file, layer) {
            continue;
        }
        let said = words.iter().filter(|words| mentions(&code, words));
        found.extend(said.map(|words| format!("{file}: mentions `{words}`: {why}")));
    }
    found
}

/// Modules that import each other in a circle.
fn circle(imports: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn walk<'a>(
        imports: &'a BTreeMap<String, BTreeSet<String>>,
        module: &'a str,
        way: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) -> Option<Vec<String>> {
        if let Some(at) = way.iter().position(|on_way| *on_way == module) {
            return Some(way[at..].iter().map(|&name| name.to_owned()).collect());
        }
        if done.contains(module) {
            return None;
        }
        way.push(module);
        for other in imports.get(module).into_iter().flatten() {
            if let Some(found) = walk(imports, other, way, done) {
                return Some(found);
            }
        }
        way.pop();
        done.insert(module);
        None
    }
    let mut done = BTreeSet::new();
    imports
        .keys()
        .find_map(|module| walk(imports, module, &mut Vec::new(), &mut done))
}

/// Every source file below a directory, as its path relative to it and its text.
fn sources(dir: &Path, below: &str, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            sources(&path, &format!("{below}{name}/"), found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push((format!("{below}{name}"), fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn every_module_knows_only_what_its_layer_may() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let layers = table(&fs::read_to_string(src.join("lib.rs")).unwrap());
    assert_eq!(layers.get("model"), Some(&0));
    assert_eq!(layers.get("cli"), Some(&4));
    let mut files = Vec::new();
    sources(&src, "", &mut files);
    assert!(files.len() > 50, "{} files", files.len());
    let mut found = Vec::new();
    let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, text) in &files {
        // A file of this name is declared under `cfg(test)`, as part of the module above it.
        if file != "lib.rs" && file != "main.rs" && !file.ends_with("/tests.rs") {
            found.extend(breaches(&layers, file, text));
            let module = file.split(['/', '.']).next().unwrap().to_owned();
            if layers.contains_key(&module) {
                let mut others = named(file, &code(text));
                others.retain(|other| *other != module);
                imports.entry(module).or_default().extend(others);
            }
        }
    }
    if let Some(circle) = circle(&imports) {
        found.push(format!("a circle of modules: {}", circle.join(" → ")));
    }
    // The other way round: a row of the table for a module that is gone misleads.
    for module in layers.keys() {
        let begins = |file: &String| file.split(['/', '.']).next() == Some(module);
        if !files.iter().any(|(file, _)| begins(file)) {
            found.push(format!("`{module}` stands in the table and nowhere else"));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_program_itself_is_a_few_lines() {
    let main = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/main.rs");
    assert!(fs::read_to_string(main).unwrap().lines().count() < 20);
}

/// `text`, as this file, must have exactly these violations.
fn check(file: &str, text: &str, expected: &[&str]) {
    let docs = "//! | layer | modules | x |\n//! |---|---|---|\n//! | 0 | [`model`] | x |\n\
        //! | 1 | [`store`] | x |\n//! | 2 | [`rules`], [`lessons`], [`skills`] | x |\n\
        //! | 3 | [`review`], [`remote`] | x |\n//! | 4 | [`serve`], [`cli`] | x |\n";
    let found = breaches(&table(docs), file, text);
    assert_eq!(found.len(), expected.len(), "{file}: {text}: {found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.contains(expected), "{file}: {text}: {found}");
    }
}

#[test]
fn upward_and_sideways_imports_are_seen() {
    let knows_store = &["knows `store`"][..];
    check("model/id.rs", "use crate::model::Kind;", &[]);
    check("model/id.rs", "use crate::store::Scoped;", knows_store);
    check("store/scan.rs", "use crate::model::{Kind, Record};", &[]);
    check("store/scan.rs", "use crate::rules::place;", &["of layer 2"]);
    check("store/scan.rs", "use super::error::Error;", &[]);
    check("store/scan.rs", "use super::super::rules::X;", &["`rules`"]);
    check("store/mod.rs", "use super::skills::Skill;", &["`skills`"]);
    check("rules/a.rs", "use crate::{model, lessons::X};", &["apart"]);
    check("lessons/a.rs", "use crate::rules::X;", &["stay apart"]);
    let lists = "use crate::{\n    model::{a, rules},\n};";
    check("lessons/a.rs", lists, &[]);
    check("rules/a.rs", "fn f() -> crate::review::X {}", &["`review`"]);
    check("skills/a.rs", "use crate::rules::reflect;", &[]);
    check("skills.rs", "use super::review::X;", &["`review`"]);
    check("skills.rs", "use super::model::Kind;", &[]);
    check("serve/mod.rs", "use crate::cli::Printer;", &[]);
    check("review/a.rs", "use crate::serve::X;", &["`serve`"]);
    check("review/a.rs", "use crate::other::X;", &["no row"]);
    check("other/mod.rs", "", &["`other` has no row"]);
}

#[test]
fn reserved_call_is_detected_in_other_modules() {
    check("rules/a.rs", "println!(\"x\");", &["println!"]);
    let edge = "println!(\"x\"); std::env::args();";
    check("cli/skills/run.rs", edge, &[]);
    check("rules/a.rs", "Utc::now ;", &["mentions `Utc::now`"]);
    check("rules/a.rs", "std::process::exit(1)", &["process::exit"]);
    check("rules/a.rs", "use std::process::ExitStatus;", &[]);
    let pure = "rules/reflect/a.rs";
    check(pure, "async fn f() {}", &["mentions `async`: it is pure"]);
    check("skills/prompt/a.rs", "f().await", &["`await`"]);
    check("model/a.rs", "use std::fs;", &["`std::fs`", "`fs`"]);
    check("model/a.rs", "use std::{fs, io};", &["`fs`"]);
    check("model/a.rs", "let refs = offs; Profile::new()", &[]);
    check(
        "rules/a.rs",
        "fn f() -> anyhow::Result<()> {}",
        &["`anyhow`"],
    );
    check("rules/a.rs", "reqwest::get(url)", &["`reqwest`"]);
    check("remote/a.rs", "reqwest::get(url)", &[]);
    check("store/a.rs", "fs::rename(a, b)", &["mentions `fs::rename`"]);
    check(
        "cli/a.rs",
        "File::create(path)",
        &["mentions `File::create`"],
    );
}

#[test]
fn no_file_is_written_past_the_redactor() {
    let check_in = |file: &str, text: &str, breaches| {
        let expected = vec!["are written by `redacting_writer`"; breaches];
        check(file, text, &expected);
    };
    let command = "cli/skills/run.rs";
    check_in(command, "atomic::replace(&path, bytes)", 1);
    check_in(command, "directory.replace_file(name, bytes)", 1);
    check_in(command, "named::replace(&path, bytes)", 1);
    check_in("store/repair.rs", "atomic::replace(&path, bytes)", 0);
}

#[test]
fn comments_strings_and_tests_do_not_count() {
    check("model/a.rs", "// use crate::llm; println!()\n", &[]);
    check(
        "model/a.rs",
        "/* a /* std::fs */ std::fs */ let x = 1;",
        &[],
    );
    check("model/a.rs", "let s = \"\\\"std::fs\";", &[]);
    check("model/a.rs", "let s = r#\"a \" std::fs\"#;", &[]);
    check("model/a.rs", "let s = br\"std::fs\";", &[]);
    check(
        "model/a.rs",
        "let c = ['\"', '\\'']; std::fs",
        &["std::fs", "`fs`"],
    );
    check(
        "model/a.rs",
        "fn f<'a>(x: &'a str) { std::fs }",
        &["std::fs", "`fs`"],
    );
    check(
        "model/a.rs",
        "#[cfg(test)]\nmod tests { fn f() { std::fs } }",
        &[],
    );
    check(
        "model/a.rs",
        "#[cfg(test)] use std::fs; println!()",
        &["println!"],
    );
    check(
        "model/a.rs",
        "#[cfg(test)]\nfn f(x: [u8; 2]) {} println!()",
        &["println!"],
    );
}

#[test]
fn circles_of_modules_are_found() {
    let check = |edges: &[(&str, &str)], expected: Option<&[&str]>| {
        let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (from, to) in edges {
            let others = imports.entry((*from).to_owned()).or_default();
            others.insert((*to).to_owned());
        }
        let expected = expected.map(|names| names.iter().map(|&name| name.to_owned()).collect());
        assert_eq!(circle(&imports), expected);
    };
    check(&[("a", "b"), ("b", "c"), ("a", "c")], None);
    check(&[("a", "b"), ("b", "c"), ("c", "b")], Some(&["b", "c"]));
}
