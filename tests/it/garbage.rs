//! Any content of a file that a person may write: no panic, no signal, no undocumented exit code,
//! and no change to a file that cannot be read.

use std::fs;

use proptest::prelude::*;

use crate::support::correction;
use crate::workspace::{Ran, Workspace};

const SKILL: &str = "hr/resume-screen";
/// Few, for each is several processes; the readers themselves are tried harder beside their code.
const CASES: u32 = 32;

/// Bytes that are often almost right: pieces of the formats, and anything.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let pieces = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "\\u",
        "\\ud83d",
        "null",
        "true",
        "NaN",
        "-1e999",
        "0",
        "\n",
        "\n  ]\n}\n",
        "{\"corrections\": [",
        "{\"entries\": [",
        "\"correction_id\": \"CORR-001\"",
        "{\"correction_id\": \"CORR-999999999999999999999\"}",
        "\"format\": 2,",
        "\"skill\": \"hr/resume-screen\"",
        "\u{feff}",
        "é",
        "model = \"exec:x\"\n",
        "[llm]\n",
        "retries = -1\n",
        "prompt.rules_tokens = 99999999999999999999\n",
        "= = =",
    ];
    let piece = prop_oneof![
        8 => prop::sample::select(pieces.to_vec()).prop_map(|s| s.as_bytes().to_vec()),
        2 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// The call must have ended in a way that is documented.
fn ended_well(ran: &Ran, codes: &[i32]) -> Result<(), TestCaseError> {
    prop_assert!(codes.contains(&ran.code), "{ran:?}");
    prop_assert!(!ran.stderr.contains("panicked"), "{ran:?}");
    prop_assert!(!ran.stderr.contains("RUST_BACKTRACE"), "{ran:?}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(CASES) })]

    #[test]
    fn any_bytes_as_a_data_file(bytes in bytes()) {
        let workspace = Workspace::sample();
        let path = workspace.write(".agentura/corrections.json", &bytes);
        for (arguments, codes) in [
            (&["memory", "status"][..], &[0][..]),
            (&["memory", "list", "corrections"], &[0]),
            (&["memory", "search", "CORR"], &[0]),
            (&["doctor"], &[0, 1]),
        ] {
            ended_well(&workspace.run(arguments), codes)?;
        }
        prop_assert_eq!(&fs::read(&path).unwrap(), &bytes);
        let run = ["run", SKILL, "--input", "fixtures/sample_input.json"];
        ended_well(&workspace.run(&run), &[0])?;
        let correct = correction("Always greet.");
        let corrected = workspace.run(&correct);
        ended_well(&corrected, &[0, 3])?;
        if corrected.code == 3 {
            // Refused; no file changes until a repair is requested.
            prop_assert_eq!(&fs::read(&path).unwrap(), &bytes);
            // A file of a newer format is left alone by the repair too.
            ended_well(&workspace.run(&["doctor", "--repair"]), &[0, 1, 3])?;
        }
    }

    #[test]
    fn any_bytes_as_an_input(bytes in bytes()) {
        let workspace = Workspace::sample();
        workspace.write("input.json", &bytes);
        let run = ["run", SKILL, "--input", "input.json"];
        let ran = workspace.run(&run);
        ended_well(&ran, &[0, 2, 4])?;
        let text = std::str::from_utf8(&bytes).ok().map(|t| t.trim_start_matches('\u{feff}'));
        // Every reader has to take it: a number beyond a float, or half of a character, is refused.
        let is_json = text.is_some_and(|t| serde_json::from_str::<serde_json::Value>(t).is_ok());
        prop_assert_eq!(ran.code != 2, is_json, "{:?}", ran);
        ended_well(&workspace.run(&["memory", "prompt", SKILL, "--input", "input.json"]), &[0, 2])?;
    }

    #[test]
    fn any_bytes_as_settings(bytes in bytes()) {
        let workspace = Workspace::sample();
        let path = workspace.write(".agentura/config.toml", &bytes);
        for arguments in [&["config", "show"][..], &["memory", "status"], &["memory", "prompt", SKILL]] {
            ended_well(&workspace.run(arguments), &[0, 2])?;
        }
        prop_assert_eq!(&fs::read(&path).unwrap(), &bytes);
    }
}

#[test]
fn json_that_is_nested_without_end_is_refused_or_carried() {
    let workspace = Workspace::sample();
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    workspace.write("input.json", &deep);
    let run = ["run", SKILL, "--input", "input.json"];
    workspace
        .run(&run)
        .fails(2, "more than 100 brackets within each other");
    let entry = format!(
        "{{\"correction_id\": \"CORR-001\", \"skill\": \"{SKILL}\", \"original_output\": {deep}}}"
    );
    let file = format!("{{\"corrections\": [{entry}, {{\"correction_id\": \"CORR-002\"}}]}}");
    workspace.write(".agentura/corrections.json", &file);
    let status = workspace.json(&["memory", "status"]);
    assert_eq!(status["corrections"], 2);
    let listed = workspace.json(&["memory", "list", "corrections"]);
    assert_eq!(listed["records"].as_array().unwrap().len(), 2);
    let doctor = workspace.run(&["doctor"]);
    assert!([0, 1].contains(&doctor.code), "{}", doctor.stderr);
    assert_eq!(workspace.read(".agentura/corrections.json"), file);
}
