//! What `SECURITY.md` promises is tested: each test that it names exists, is run, and is not ignored.

use std::fs;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The rows of the tables below `## Promises`: a promise and its test.
fn promises(page: &str) -> Vec<(String, String)> {
    let (_, promises) = page.split_once("\n## Promises\n").unwrap();
    let promises = promises.split("\n## ").next().unwrap();
    let rows = promises.lines().filter(|line| line.starts_with("| "));
    let cells = rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [promise, test] = cells[..] else {
            panic!("not two cells: {row}");
        };
        (promise.to_owned(), test.to_owned())
    });
    cells.filter(|(promise, _)| promise != "Promise").collect()
}

/// Why a name such as `` `tests/it/guard.rs::name` `` is no test that is run.
fn missing(repository: &Path, test: &str) -> Option<String> {
    let name = test.strip_prefix('`').and_then(|t| t.strip_suffix('`'));
    let Some((file, name)) = name.and_then(|name| name.split_once("::")) else {
        return Some(format!("{test} names no test"));
    };
    let Ok(source) = fs::read_to_string(repository.join(file)) else {
        return Some(format!("{file} is not there"));
    };
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let function = format!("fn {name}(");
    let Some(at) = lines.iter().position(|line| line.starts_with(&function)) else {
        return Some(format!("{file} has no {name}"));
    };
    let above = lines[..at]
        .iter()
        .rev()
        .take_while(|line| line.starts_with('#'));
    let attributes: Vec<&&str> = above.collect();
    // In a property test the attribute stands there too.
    if !attributes.iter().any(|line| line.starts_with("#[test]")) {
        return Some(format!("{name} is no test"));
    }
    if attributes.iter().any(|line| line.starts_with("#[ignore")) {
        return Some(format!("{name} is ignored"));
    }
    // A file that no module declares is not compiled.
    let file = Path::new(file);
    let stem = file.file_stem()?.to_str()?;
    let parent = file.parent()?;
    let doors = ["mod.rs", "main.rs", "lib.rs"].map(|door| repository.join(parent).join(door));
    let beside = repository.join(parent).with_extension("rs");
    let declares = |door: &PathBuf| {
        let modules = fs::read_to_string(door).unwrap_or_default();
        modules
            .lines()
            .any(|line| line.trim().ends_with(&format!("mod {stem};")))
    };
    let is_compiled = doors.iter().chain([&beside]).any(declares);
    (!is_compiled).then(|| format!("{} is in no module", file.display()))
}

#[test]
fn every_promise_names_a_test_that_is_run() {
    let repository = repository();
    let promises = promises(&read(&repository.join("SECURITY.md")));
    assert!(promises.len() >= 40, "{} promises", promises.len());
    let broken: Vec<String> = promises
        .iter()
        .filter_map(|(promise, test)| Some(format!("{promise}: {}", missing(&repository, test)?)))
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn promise_without_its_test_is_seen() {
    let page = "\n## Promises\n\n| Promise | Test |\n|---|---|\n| a | `tests/it/none.rs::b` |\n\n## Limits\n| x |\n";
    let [(promise, test)] = &promises(page)[..] else {
        panic!("one promise was given");
    };
    assert_eq!(
        (promise.as_str(), test.as_str()),
        ("a", "`tests/it/none.rs::b`")
    );
    let check = |test: &str, expected: &str| {
        let found = missing(&repository(), test);
        assert_eq!(found.as_deref(), Some(expected), "{test}");
    };
    check(test, "tests/it/none.rs is not there");
    check("untested", "untested names no test");
    check("`tests/it/guard.rs::gone`", "tests/it/guard.rs has no gone");
    check("`tests/it/hosts.rs::hook`", "tests/it/hosts.rs has no hook");
    check("`tests/it/hostile/promises.rs::read`", "read is no test");
    check(
        "`tests/it/exports.rs::deepeval_runs_the_tests_as_they_are`",
        "deepeval_runs_the_tests_as_they_are is ignored",
    );
    check("`tests/demo.sh::x`", "tests/demo.sh has no x");
}

#[test]
fn dependencies_are_checked_in_ci() {
    let repository = repository();
    assert!(
        read(&repository.join(".ci/run"))
            .lines()
            .any(|line| line == "make test-dependencies")
    );
    let rules = read(&repository.join(".cargo/deny.toml"));
    let rules: toml::Table = rules.parse().unwrap();
    let said = |table: &str, name: &str| rules[table][name].as_str().unwrap().to_owned();
    assert_eq!(said("sources", "unknown-registry"), "deny");
    assert_eq!(said("sources", "unknown-git"), "deny");
    assert_eq!(said("licenses", "unused-allowed-license"), "deny");
    let lock: toml::Table = read(&repository.join("Cargo.lock")).parse().unwrap();
    let packages = lock["package"].as_array().unwrap();
    let sources = packages.iter().filter_map(|package| package.get("source"));
    let crates_io = "registry+https://github.com/rust-lang/crates.io-index";
    let others: Vec<&str> = sources
        .filter_map(toml::Value::as_str)
        .filter(|source| *source != crates_io)
        .collect();
    assert_eq!(others, [""; 0]);
}
