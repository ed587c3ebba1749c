//! The view by key sequences, and its screens.

use super::draw::{Theme, frame};
use super::state::{Action, Decision, Mode, State};
use crate::review::queue::Waiting;
use crossterm::event::KeyCode;

use crate::model::{CallAction, Kind};
use crate::review::queue::WaitingKind;

fn entries() -> Vec<Waiting> {
    let entry = |kind, record, id: &str, parts: &[(&'static str, &str)]| {
        let mut one = Waiting::about(kind, record, id, String::new());
        parts[0].1.clone_into(&mut one.title);
        for (name, text) in parts {
            one.part(name, text);
        }
        one
    };
    let mut pair = entry(
        WaitingKind::Contradiction,
        Kind::Reflexion,
        "REFL-001",
        &[
            ("older", "ALWAYS name the range."),
            ("newer", "NEVER name the range."),
        ],
    );
    pair.other = Some("REFL-002".to_owned());
    let candidate = entry(
        WaitingKind::Candidate,
        Kind::Reflexion,
        "REFL-003",
        &[
            ("rule", "Use pnpm\u{1b}[2J here"),
            ("quote", "no, use pnpm"),
        ],
    );
    let learned = entry(
        WaitingKind::Procedure,
        Kind::Procedure,
        "PROC-001",
        &[
            ("error", "unknown command"),
            ("failed", "npm i x"),
            ("worked", "pnpm i x"),
        ],
    );
    vec![pair, candidate, learned]
}

fn typed(state: &mut State, keys: &str) -> Action {
    keys.chars()
        .map(|key| match key {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            key => KeyCode::Char(key),
        })
        .fold(Action::Nothing, |_, key| state.update(key))
}

fn selected(state: &State) -> &str {
    state.selected().map_or("", |one| &one.id)
}

/// Text of a screen, and whether it has colours.
fn screen(state: &State, columns: usize, rows: usize, has_colour: bool) -> (String, bool) {
    let now = "2026-02-04T00:00:00Z".parse().unwrap();
    let theme = Theme { has_colour, now };
    let lines = frame(state, theme, columns, rows);
    assert!(lines.len() <= rows);
    let mut text = String::new();
    for line in &lines {
        assert!(console::measure_text_width(line) <= columns, "{line}");
        text += console::strip_ansi_codes(line).trim_end();
        text += "\n";
    }
    (text, lines.iter().any(|line| line.contains("\u{1b}[3")))
}

#[test]
fn keys_move_and_decide_only_as_the_entry_allows() {
    let mut state = State::new(entries());
    assert_eq!(typed(&mut state, "a"), Action::Nothing);
    assert_eq!(typed(&mut state, "b"), Action::Decide(Decision::KeepBoth));
    assert_eq!(typed(&mut state, "m"), Action::Nothing);
    let merge = Decision::Merge {
        keep: "REFL-002".to_owned(),
        other: "REFL-001".to_owned(),
    };
    assert_eq!(typed(&mut state, "2"), Action::Decide(merge));
    assert_eq!(
        typed(&mut state, "ja"),
        Action::Decide(Decision::Approve(CallAction::Note))
    );
    assert_eq!(selected(&state), "REFL-003");
    // A rejection needs a reason, and letters of the reason decide nothing.
    assert_eq!(typed(&mut state, "x\n"), Action::Nothing);
    let reason = "quaf".to_owned();
    assert_eq!(
        typed(&mut state, "quaf\n"),
        Action::Decide(Decision::Reject { reason })
    );
    assert_eq!(typed(&mut state, "xq\u{1b}q"), Action::Quit);
}

#[test]
fn the_filter_finds_words_of_every_text() {
    let mut state = State::new(entries());
    typed(&mut state, "/PNPM npm\n");
    assert_eq!((state.counts(), selected(&state)), ((3, 2), "REFL-003"));
    typed(&mut state, "/ unknown\n");
    assert_eq!((state.counts(), selected(&state)), ((3, 1), "PROC-001"));
    typed(&mut state, "/ nowhere\n");
    assert_eq!((state.counts(), selected(&state)), ((3, 0), ""));
    assert_eq!(typed(&mut state, "a"), Action::Nothing);
    typed(&mut state, "\u{1b}");
    assert_eq!((state.counts(), &state.mode), ((3, 3), &Mode::List));
}

#[test]
fn undo_puts_entries_back_where_they_were() {
    let mut state = State::new(entries());
    assert_eq!(typed(&mut state, "u"), Action::Nothing);
    assert!(state.status.1.contains("nothing to undo"));
    state.decided("c1".to_owned(), |one| one.id == "REFL-003");
    state.decided("c2".to_owned(), |one| one.id == "REFL-001");
    assert_eq!((state.counts().0, selected(&state)), (1, "PROC-001"));
    for (change, left) in [("c2", "REFL-001"), ("c1", "REFL-003")] {
        assert_eq!(typed(&mut state, "u"), Action::Undo(change.to_owned()));
        assert!(state.undone());
        assert_eq!(selected(&state), left);
    }
    let ids: Vec<&str> = state.from(0).map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["REFL-001", "REFL-003", "PROC-001"]);
    // An edit takes nothing out: the queue is read again.
    state.decided("c3".to_owned(), |_| false);
    assert!(!state.undone());
}

#[test]
fn small_screen_shows_the_text_that_is_approved_and_which_rule_stays() {
    let mut state = State::new(entries());
    let rule = "When a price is shown, ALWAYS name its currency and never round it before the tax is \
        added, because the sum of rounded prices differs from the invoice.";
    let mut near = entries()[1].clone();
    near.parts[0].text = rule.to_owned();
    near.near = Some(crate::review::queue::NearRule {
        id: "REFL-009".to_owned(),
        rule: "Round prices at the end".to_owned(),
        score: 0.8,
    });
    state.replace(vec![near]);
    let (text, _) = screen(&state, 80, 24, true);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&text).contains(&words(rule)), "{text}");
    typed(&mut state, "m");
    let (text, _) = screen(&state, 80, 24, true);
    let question =
        "which stays?  1 REFL-003 \"When a price \u{2026}\"  2 REFL-009 \"Round prices \u{2026}\"";
    assert!(text.contains(question), "{text}");
    let merge = Decision::Merge {
        keep: "REFL-003".to_owned(),
        other: "REFL-009".to_owned(),
    };
    assert_eq!(typed(&mut state, "1"), Action::Decide(merge));
}

#[test]
fn screens_fit_without_colour_and_without_escapes_of_records() {
    let mut state = State::new(entries());
    typed(&mut state, "jj");
    for (columns, rows) in [(80, 24), (200, 50)] {
        let (text, is_coloured) = screen(&state, columns, rows, true);
        assert!(is_coloured);
        insta::assert_snapshot!(format!("{columns}x{rows}"), text);
        let (plain, is_coloured) = screen(&state, columns, rows, false);
        assert!(!is_coloured);
        assert_eq!(plain, text);
    }
    typed(&mut state, "k");
    let (text, _) = screen(&state, 80, 24, true);
    assert!(
        text.contains("Use pnpm") && !text.contains('\u{1b}'),
        "{text}"
    );
    typed(&mut state, "?");
    insta::assert_snapshot!("help", screen(&state, 80, 24, true).0);
    for size in [(1, 1), (10, 3), (20, 5)] {
        screen(&state, size.0, size.1, true);
    }
}
