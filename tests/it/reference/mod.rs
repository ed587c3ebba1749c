//! Reference pages of the book that the program can say itself: kept files, compared with what the
//! program says. `make reference` writes them again.
//!
//! - `commands`: help pages. `documents`: `--json` documents and HTTP endpoints, by their schemas.
//! - Pages about files and variables are written by hand; the tests here look for what they lack.

mod commands;
mod documents;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use memctl::model::error::Kind;
use serde_json::Value;

use crate::workspace::{Ran, Workspace};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference")
}

/// Compares the page with the kept one, or writes it where `UPDATE_REFERENCE` is set.
pub(crate) fn assert_kept(name: &str, page: &str) {
    let path = directory().join(name);
    let mut kept = fs::read_to_string(&path).unwrap_or_default();
    if kept != page && std::env::var_os("UPDATE_REFERENCE").is_some() {
        fs::write(&path, page).unwrap();
        page.clone_into(&mut kept);
    }
    assert!(
        kept == page,
        "docs/reference/{name} is not what the program says: run `make reference`"
    );
}

/// Text in lines of the width of the book.
fn wrapped(text: &str) -> String {
    const WIDTH: usize = 108;
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().unwrap();
        match line.chars().count() {
            0 => line.push_str(word),
            used if used + 1 + word.chars().count() > WIDTH => lines.push(word.to_owned()),
            _ => line.extend([" ", word]),
        }
    }
    lines.join("\n")
}

/// Text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
        .replace('\n', " ")
        .trim()
        .to_owned()
}

/// Description for a cell; without the full stop of a single sentence.
fn phrase(text: &str) -> String {
    let text = cell(text);
    match text.strip_suffix('.') {
        Some(rest) if !rest.contains(". ") => rest.to_owned(),
        _ => text,
    }
}

#[test]
fn settings_are_those_of_the_program() {
    let workspace = Workspace::empty().naming_no_model();
    let mut command = workspace.command();
    command.env_remove("MEMCTL_LOCAL_PROBE");
    let ran = Ran::of(command.args(["config", "show", "--json"]).output().unwrap());
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    let mut page = String::from(
        "# Settings\n\n\
         Later wins: defaults, `config.toml` in your configuration directory, `.agentura/config.toml`, the\n\
         environment, flags. `memctl config show` lists every setting with its value and source. A dot joins\n\
         nested tables: `prompt.rules_tokens` is `rules_tokens` below `[prompt]`.\n\n\
         The settings of a cloned repository cannot name a program, a host or a file, or raise\n\
         `llm.ask_above_usd`, before `memctl trust`. Keys come only from the\n\
         [environment](environment.md).\n\n\
         | Setting | Default | Variable | Meaning |\n|---|---|---|---|\n",
    );
    for setting in shown["settings"].as_array().unwrap() {
        let text = |field: &str| setting[field].as_str().unwrap();
        let name = text("name");
        let variable = name.to_uppercase().replace('.', "_");
        let default = match text("value") {
            "" => "–".to_owned(),
            value => format!("`{value}`"),
        };
        assert_eq!(text("origin"), "default", "{name}");
        page.push_str(&format!(
            "| `{name}` | {default} | `MEMCTL_{variable}` | {} |\n",
            cell(text("about"))
        ));
    }
    assert_kept("settings.md", &page);
}

#[test]
fn exit_codes_and_error_kinds_are_those_of_the_program() {
    let kinds = [
        Kind::Usage,
        Kind::Input,
        Kind::NotFound,
        Kind::Store,
        Kind::Model,
        Kind::Permission,
        Kind::Remote,
        Kind::Internal,
        Kind::Io,
        Kind::Interrupted,
    ];
    // A new kind has to be described here and listed above.
    let meaning = |kind: Kind| match kind {
        Kind::Usage => "unknown command or option, or options that exclude each other",
        Kind::Input => "invalid value, file or setting",
        Kind::NotFound => "no such record, skill or file, or a deleted record",
        Kind::Store => "the data files cannot be read or written",
        Kind::Model => "the model failed, or none is configured",
        Kind::Permission => "not permitted for this `--scope` or `--user`",
        Kind::Remote => "the shared database failed",
        Kind::Internal => "a defect of memctl; the hint says what to report",
        Kind::Io => "the operating system failed outside of the store",
        Kind::Interrupted => "interrupted by the user",
    };
    let mut page = String::from(
        "# Exit codes and error kinds\n\n\
         A failed command prints a message and, where there is one, a hint with the next command. With\n\
         `--json` it prints `{\"error\": {\"kind\", \"message\", \"hint\"}}`; `hint` may be `null`.\n\n\
         | Exit code | `kind` | Meaning |\n|---|---|---|\n\
         | 0 | | done; an empty search result is done |\n\
         | 1 | | a check found something: `doctor`, `test`, `remote check`, `memory audit verify` |\n\
         | 7 | | `test` had no test that could run; `--allow-skipped` makes it 0 |\n",
    );
    for kind in kinds {
        page.push_str(&format!(
            "| {} | `{}` | {} |\n",
            kind.code(),
            kind.name(),
            meaning(kind)
        ));
    }
    assert_kept("exit-codes.md", &page);
}

/// String literals of the sources that look like names of variables.
fn variables_in_sources() -> BTreeSet<String> {
    let prefixes = [
        "MEMCTL", "AGENTURA_", "ANTHROPIC_", "OPENAI_", "OPENROUTER_", "OTEL_", "DATABASE_URL",
        "NO_COLOR", "TRACEPARENT", "EDITOR", "VISUAL", "CODEX_HOME", "CLAUDE_CONFIG_DIR",
        "GEMINI_CONFIG_DIR",
    ];
    let mut found = BTreeSet::new();
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let is_code = path.extension().is_some_and(|ending| ending == "rs");
            if !is_code || path.file_name().unwrap() == "tests.rs" {
                continue;
            }
            let text = fs::read_to_string(path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            let mut before = "";
            for word in code.split('"') {
                // A variable of the build is none of the program.
                let is_of_build = before.ends_with("env!(");
                before = word;
                let is_name = word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
                let is_variable = prefixes.iter().any(|prefix| word.starts_with(prefix));
                if is_name && is_variable && word.len() > 4 && !is_of_build {
                    found.insert(word.to_owned());
                }
            }
        }
    }
    found
}

#[test]
fn environment_page_names_every_variable_of_the_program() {
    let page = fs::read_to_string(directory().join("environment.md")).unwrap();
    let settings = fs::read_to_string(directory().join("settings.md")).unwrap();
    let variables = variables_in_sources();
    assert!(variables.len() > 20, "{variables:?}");
    let missing: Vec<&String> = variables
        .iter()
        .filter(|name| !page.contains(&format!("`{name}")) && !settings.contains(name.as_str()))
        .collect();
    assert_eq!(missing, Vec::<&String>::new());
}

#[test]
fn files_page_names_every_file_that_a_memory_has() {
    let page = fs::read_to_string(directory().join("files.md")).unwrap();
    let workspace = Workspace::sample();
    let run = |words: &[&str]| workspace.run(words).succeeds().stdout.clone();
    run(&["init"]);
    run(&[
        "run",
        "hr/resume-screen",
        "--input",
        "fixtures/sample_input.json",
    ]);
    run(&[
        "correct", "hr/resume-screen", "--execution-id", "latest", "--correction",
        "Always name gaps.",
    ]);
    run(&["learn", "fixtures/sessions"]);
    run(&["memory", "approve", "PROC-001"]);
    run(&[
        "memory", "add", "--type", "brand_memory", "--content", "Voice: calm",
    ]);
    run(&["session", "start"]);
    run(&["memory", "forget", "REFL-001"]);
    run(&["search", "calm voice"]);
    run(&["memory", "disable"]);
    let mut missing = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(workspace.memory("")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        count += 1;
        let is_named = page.contains(&format!("`{name}`")) || page.contains(&format!("`{name}/`"));
        if !is_named {
            missing.push(name);
        }
    }
    assert!(count > 12, "{count}");
    assert_eq!(missing, Vec::<String>::new());
}

/// Value behind the references of a schema.
fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let Some(reference) = schema["$ref"].as_str() else {
        return schema;
    };
    let path = reference.trim_start_matches('#');
    root.pointer(path).unwrap_or(schema)
}
