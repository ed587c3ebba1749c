//! Pictures of full screens in `docs/images` are what the program shows.
//!
//! They are drawn in a terminal of tmux; without tmux or Python the tests say *skipped*.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::path::Path;
use std::process::Command;

use crate::workspace::{Ran, Workspace};

/// Leaves out what differs between two runs: times, ages and the widths that follow from them.
fn masked(picture: &str) -> Vec<String> {
    let is_changing = |word: &str| {
        let digits = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let has_unit = digits.len() < word.len() && ["ms", "s"].contains(&digits);
        has_unit || word.starts_with("EXEC-")
    };
    let text = |line: &str| {
        let (_, text) = line.strip_prefix("<text ")?.split_once('>')?;
        let text = text.trim_end_matches("</text>");
        let words = text.split_whitespace();
        let words = words.map(|word| if is_changing(word) { "…" } else { word });
        Some(words.collect::<Vec<_>>().join(" "))
    };
    picture.lines().filter_map(text).collect()
}

fn compare(screen: &str) {
    let has = |program: &str| Command::new(program).arg("-V").output().is_ok();
    if !has("tmux") || !has("python3") {
        println!("skipped: no tmux or no python3");
        return;
    }
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images");
    let mut script = Command::new(images.join("screens.sh"));
    script.arg(screen).arg(env!("CARGO_BIN_EXE_memctl"));
    let ran = Ran::of(script.output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    let kept = std::fs::read_to_string(images.join(format!("{screen}.svg"))).unwrap();
    let (kept, drawn) = (masked(&kept), masked(&ran.stdout));
    assert!(drawn.len() > 10, "{drawn:?}");
    assert_eq!(
        kept, drawn,
        "renew it: docs/images/screens.sh {screen} target/release/memctl > docs/images/{screen}.svg"
    );
}

#[test]
fn picture_of_review_is_its_screen() {
    compare("review");
}

#[test]
fn picture_of_watch_is_its_screen() {
    compare("watch");
}

#[test]
fn page_of_stats_is_that_of_the_sample_store() {
    let workspace = Workspace::over("reference").trusted();
    workspace.run(&["learn", "fixtures/sessions"]).succeeds();
    workspace.run(&["stats", "--html", "stats.html"]).succeeds();
    let page = std::fs::read_to_string(workspace.root().join("stats.html")).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images/stats.html");
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == page, "renew it: make reference");
}
