//! The demonstration shows what it says, and its picture shows what it prints.

use std::path::Path;
use std::process::Command;

use crate::workspace::Ran;

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn printed() -> String {
    let script = repository().join("tests/demo.sh");
    let mut shell = Command::new("sh");
    shell.arg(script).arg(env!("CARGO_BIN_EXE_memctl"));
    let ran = Ran::of(shell.output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.stdout
}

#[test]
fn the_lesson_of_one_input_decides_about_another() {
    let printed = printed();
    let heading = |line: &&str| line.starts_with("# ") || line.starts_with("$ ");
    let after = |command: &str| -> Vec<String> {
        let answers = printed.split(command).skip(1);
        answers
            .map(|rest| rest.lines().skip(1).take_while(|line| !heading(line)))
            .map(|lines| lines.collect::<Vec<_>>().join("\n"))
            .collect()
    };
    let marco = after("--input fixtures/demo/candidate.json");
    assert_eq!(marco.len(), 2, "{printed}");
    assert!(marco[0].contains("\"overall_score\": 77"), "{printed}");
    assert!(marco[0].contains("rules:        none"), "{printed}");
    assert!(marco[1].contains("\"overall_score\": 51"), "{printed}");
    assert!(marco[1].contains("rules:        REFL-004"), "{printed}");
    let hint = after("memctl hook claude-code");
    assert!(
        hint[0].contains("CORRECT:\n      git -c user.name=dev"),
        "{printed}"
    );
    let wide: Vec<&str> = printed
        .lines()
        .filter(|line| line.chars().count() > 100)
        .collect();
    assert_eq!(wide, Vec::<&str>::new());
}

/// Leaves out what differs between two runs: times, marks and durations.
fn masked(line: &str) -> String {
    let words = line.split(' ').map(|word| {
        let is_mark = word.contains("memctl-data-");
        let is_changing = word.contains("EXEC-") || word.parse::<u64>().is_ok();
        if is_mark || is_changing { "…" } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_picture_shows_what_is_printed() {
    let picture = std::fs::read_to_string(repository().join("docs/images/demo.svg")).unwrap();
    let texts = picture
        .lines()
        .filter_map(|line| line.strip_prefix("<text ")?.split_once('>'));
    let shown: Vec<String> = texts
        .map(|(_, text)| text.trim_end_matches("</text>"))
        .map(|text| text.replace("&lt;", "<").replace("&gt;", ">"))
        .map(|text| text.replace("&quot;", "\"").replace("&#x27;", "'"))
        .map(|text| masked(&text.replace("&amp;", "&")))
        .collect();
    let printed = printed();
    let lines = printed.lines().skip_while(|line| line.is_empty());
    let printed: Vec<String> = lines.map(masked).collect();
    assert_eq!(shown, printed, "renew it: docs/images/record.py says how");
}
