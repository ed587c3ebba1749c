//! The book below `docs/`: its table of contents, its links, and the commands that it shows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::workspace::Workspace;

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Markdown files below a directory of the repository, relative to the repository.
fn pages(below: &str) -> Vec<PathBuf> {
    files(below, "md")
}

fn files(below: &str, ending: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut open = vec![repository().join(below)];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|found| found == ending) {
                files.push(path.strip_prefix(repository()).unwrap().to_owned());
            }
        }
    }
    files.sort();
    files
}

/// Rust sources below a directory of the repository, relative to the repository.
fn rust_files(below: &str) -> Vec<PathBuf> {
    files(below, "rs")
}

/// Pages of the book, and the pages beside it that a reader finds first.
fn documents() -> Vec<PathBuf> {
    let mut documents = pages("docs");
    let beside = [
        "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md",
    ];
    documents.extend(beside.map(PathBuf::from));
    documents
}

fn text(page: &Path) -> String {
    fs::read_to_string(repository().join(page)).unwrap()
}

/// Lines outside of code blocks.
fn prose(text: &str) -> Vec<&str> {
    let mut is_code = false;
    text.lines()
        .filter(|line| {
            let is_fence = line.trim_start().starts_with("```");
            is_code ^= is_fence;
            !is_code && !is_fence
        })
        .collect()
}

/// Line without its code spans.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("")
}

/// Targets of links and images that lead to this repository.
fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    for line in prose(text) {
        let line = without_code(line);
        for rest in line.split("](").skip(1) {
            let target = rest.split([')', ' ']).next().unwrap();
            if !target.contains("://") && !target.starts_with("mailto:") {
                links.push(target.to_owned());
            }
        }
    }
    links
}

/// Anchors of the headings, as mdBook and GitHub make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in prose(text) {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let mut anchor = String::new();
        for c in heading.trim().to_lowercase().chars() {
            match c {
                ' ' => anchor.push('-'),
                c if c.is_alphanumeric() || c == '-' || c == '_' => anchor.push(c),
                _ => {}
            }
        }
        let count = counts.entry(anchor.clone()).or_default();
        let repeated = (*count > 0).then(|| format!("{anchor}-{count}"));
        *count += 1;
        anchors.insert(repeated.unwrap_or(anchor));
    }
    anchors
}

#[test]
fn summary_names_every_page_once() {
    let summary = text(Path::new("docs/SUMMARY.md"));
    let mut named: Vec<PathBuf> = links(&summary)
        .iter()
        .map(|link| Path::new("docs").join(link))
        .collect();
    named.sort();
    let mut expected = pages("docs");
    expected.retain(|page| page != Path::new("docs/SUMMARY.md"));
    assert_eq!(named, expected);
}

#[test]
fn no_link_and_no_anchor_is_dead() {
    let mut dead = Vec::new();
    let mut count = 0;
    for page in documents() {
        let here = text(&page);
        for link in links(&here) {
            count += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(file),
            };
            let path = repository().join(&target);
            let is_alive = match fs::read_to_string(&path) {
                Ok(text) => anchor.is_empty() || anchors(&text).contains(anchor),
                Err(_) => anchor.is_empty() && path.exists(),
            };
            if !is_alive {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(count > 100, "{count}");
    assert_eq!(dead, Vec::<String>::new());
}

#[test]
fn every_page_that_a_text_names_exists() {
    let mut sources = documents();
    sources.extend(["src", "benches"].into_iter().flat_map(rust_files));
    sources.extend(["Makefile", "Cargo.toml", "build.rs", ".ci/run"].map(PathBuf::from));
    let mut missing = Vec::new();
    for source in sources {
        let code = source.extension().is_some_and(|ending| ending == "rs");
        for line in text(&source).lines() {
            // An example of an import of notes is no page.
            let is_example = line.contains("such as `@");
            if is_example || code && !line.trim_start().starts_with("//") {
                continue;
            }
            for (at, _) in line.match_indices("docs/") {
                let is_name = |c: char| c.is_alphanumeric() || "-_./".contains(c);
                let rest = &line[at..];
                let end = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
                let name = rest[..end].trim_end_matches('.');
                let is_page = Path::new(name)
                    .extension()
                    .is_some_and(|ending| ending == "md");
                if is_page && !repository().join(name).is_file() {
                    missing.push(format!("{}: {name}", source.display()));
                }
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn every_file_that_a_guide_for_developers_names_exists() {
    let tops = ["src/", "crates/", "tests/", "fixtures/"];
    let mut missing = Vec::new();
    let mut count = 0;
    for page in ["docs/architecture.md", "CONTRIBUTING.md"] {
        for line in text(Path::new(page)).lines() {
            for span in line.split('`').skip(1).step_by(2) {
                if !tops.into_iter().any(|top| span.starts_with(top)) {
                    continue;
                }
                count += 1;
                if !repository().join(span).exists() {
                    missing.push(format!("{page}: {span}"));
                }
            }
        }
    }
    assert!(count > 40, "{count}");
    assert_eq!(missing, Vec::<String>::new());
}

/// Words of a line that name a Rust source: `wrappers.rs`, `src/host/event.rs`.
fn sources_named(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| !c.is_alphanumeric() && !"_./-".contains(c));
    let words = words.map(|word| word.trim_end_matches('.').trim_start_matches("../"));
    words
        .filter(|word| word.len() > 3 && Path::new(word).extension().is_some_and(|end| end == "rs"))
}

#[test]
fn every_source_that_a_page_or_a_header_names_exists() {
    let tops = ["src", "crates", "tests", "benches"];
    let sources: Vec<PathBuf> = tops.into_iter().flat_map(rust_files).collect();
    let is_there = |name: &str| sources.iter().any(|path| path.ends_with(name));
    let mut missing = Vec::new();
    let mut count = 0;
    for page in sources.iter().cloned().chain(documents()) {
        let is_code = page.extension().is_some_and(|ending| ending == "rs");
        for line in text(&page).lines() {
            if is_code && !line.starts_with("//!") {
                continue;
            }
            for name in sources_named(line) {
                count += 1;
                if !is_there(name) && name != "build.rs" {
                    missing.push(format!("{}: {name}", page.display()));
                }
            }
            // The header of a folder lists its modules: `//! - `gate`, `heard`: …`.
            let is_folder = page.starts_with("src") && page.ends_with("mod.rs");
            let list = line.strip_prefix("//! - `").filter(|_| is_folder);
            let names = list.and_then(|row| row.split_once("`: ")).into_iter();
            let names = names.flat_map(|(names, _)| names.split("`, `"));
            for module in names.filter(|name| !name.contains('*')) {
                let path = repository().join(&page).with_file_name(module);
                count += 1;
                if !path.with_extension("rs").exists() && !path.is_dir() {
                    missing.push(format!("{}: `{module}`", page.display()));
                }
            }
        }
    }
    assert!(count > 150, "{count}");
    assert_eq!(missing, Vec::<String>::new());
}

/// Commands of `memctl` in the code blocks of a page, one per line; lines that go on are joined.
fn commands_shown(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut language = None;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            language = match language {
                None => Some(info.to_owned()),
                Some(_) => None,
            };
            continue;
        }
        let command = match language.as_deref() {
            Some("console") => line.trim_start().strip_prefix("$ "),
            Some("sh") => Some(line),
            _ => None,
        };
        let Some(command) = command else { continue };
        let mut command = command.to_owned();
        while command.ends_with('\\') {
            command.pop();
            command.push_str(lines.next().unwrap().trim());
        }
        for part in command.split(" && ").flat_map(|part| part.split(" | ")) {
            if let Some(at) = part.find("memctl ")
                && part[..at]
                    .split(' ')
                    .all(|word| word.is_empty() || word.contains('='))
            {
                commands.push(part[at..].to_owned());
            }
        }
    }
    commands
}

#[test]
fn every_command_and_option_in_the_book_exists() {
    let workspace = Workspace::empty();
    let known: BTreeMap<String, String> = crate::help::pages(&workspace).into_iter().collect();
    let mut unknown = Vec::new();
    let mut count = 0;
    for page in documents() {
        for command in commands_shown(&text(&page)) {
            count += 1;
            let command = command.split(" #").next().unwrap().to_owned();
            let words: Vec<&str> = command.split_whitespace().skip(1).collect();
            let name = |long: usize| words[..long].join(" ");
            let long = (1..=words.len().min(3)).rev();
            let found = long.flat_map(|n| [name(n), format!("memory {}", name(n))]);
            let help = found.into_iter().find_map(|name| known.get(&name));
            let Some(help) = help.or_else(|| {
                let is_option = words.first().is_some_and(|word| word.starts_with('-'));
                is_option.then(|| &known[""])
            }) else {
                unknown.push(format!("{}: {command}", page.display()));
                continue;
            };
            for word in &words {
                let option = word.split('=').next().unwrap();
                let is_option = option.starts_with("--") && option.len() > 2;
                let is_word =
                    |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-');
                let is_known = help.split(option).skip(1).any(is_word);
                if is_option && !is_known {
                    unknown.push(format!("{}: {option} in {command}", page.display()));
                }
            }
        }
    }
    assert!(count > 100, "{count}");
    assert_eq!(unknown, Vec::<String>::new());
}

/// Files of tests by their path as modules: `serve::shapes`, `checks`.
fn modules_of_tests() -> BTreeMap<String, String> {
    let root = repository().join("tests/it");
    let mut modules = BTreeMap::new();
    let mut open = vec![root.clone()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let name = path.strip_prefix(&root).unwrap().with_extension("");
                let name = name.to_str().unwrap().replace(['/', '\\'], "::");
                let name = name.strip_suffix("::mod").unwrap_or(&name).to_owned();
                modules.insert(name, fs::read_to_string(path).unwrap());
            }
        }
    }
    modules
}

/// Text of all sources below a directory.
fn sources(directory: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text += &sources(&path);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            text += &fs::read_to_string(path).unwrap();
        }
    }
    text
}

/// Names of tests in a line of a table: `module::test`, `--lib test`, `make test-suite`, and `conformance` with
/// the numbers of its cases.
fn tests_of_row(line: &str) -> Vec<String> {
    let spans = line.split('`').skip(1).step_by(2);
    let mut names: Vec<String> = spans
        .filter(|span| {
            span.starts_with("--lib ") || span.starts_with("make test-") || span.contains("::")
        })
        .map(str::to_owned)
        .collect();
    let cases = line.split("`conformance` case").skip(1);
    for cases in cases.filter_map(|rest| rest.split(['|', '`']).next()) {
        let words: Vec<&str> = cases.split([' ', ',']).collect();
        let number = |word: &str| word.parse::<u32>().ok();
        let mut last = None;
        for (at, word) in words.iter().enumerate() {
            let Some(to) = number(word) else { continue };
            let from = last
                .filter(|_| words[at - 1] == "to")
                .map_or(to, |last| last + 1);
            names.extend((from..=to).map(|case| format!("case {case:02}")));
            last = Some(to);
        }
    }
    names
}

#[test]
fn every_test_that_a_table_names_exists() {
    let modules = modules_of_tests();
    let library = sources(&repository().join("src")) + &sources(&repository().join("crates"));
    let suite = fs::read_to_string(repository().join("tools/suite")).unwrap();
    let mut missing = Vec::new();
    let mut count = 0;
    for page in ["docs/complaints.md", "docs/seeds.md"] {
        for line in text(Path::new(page)).lines() {
            let names = tests_of_row(line);
            let is_row = line.starts_with("| ") && !line.ends_with("Shown by |");
            if page == "docs/seeds.md" && is_row && names.is_empty() {
                missing.push(format!("{page}: no test: {line}"));
            }
            for name in names {
                let is_there = if let Some(name) = name.strip_prefix("--lib ") {
                    library.contains(&format!("fn {name}()"))
                } else if let Some(name) = name.strip_prefix("make test-") {
                    suite.contains(&format!("\n    {name}) # "))
                } else if let Some(case) = name.strip_prefix("case ") {
                    let case = format!("fn case_{case}_");
                    let mut parts = modules
                        .iter()
                        .filter(|(name, _)| name.starts_with("conformance"));
                    parts.any(|(_, text)| text.contains(&case))
                } else if let Some((module, test)) = name.rsplit_once("::") {
                    let has = |text: &String| text.contains(&format!("fn {test}()"));
                    modules.contains_key(&name) || modules.get(module).is_some_and(has)
                } else {
                    false
                };
                count += 1;
                if !is_there {
                    missing.push(format!("{page}: {name}"));
                }
            }
        }
    }
    assert!(count > 50, "{count}");
    assert_eq!(missing, Vec::<String>::new());
}
