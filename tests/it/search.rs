//! `memory search` by keywords and meaning.

use std::path::Path;

use crate::support::ids;
use crate::workspace::{Workspace, copy};

/// Project with the records of the repository's sample.
fn workspace() -> Workspace {
    let workspace = Workspace::sample();
    let memory = Path::new(env!("CARGO_MANIFEST_DIR")).join(".agentura");
    copy(&memory, &workspace.root().join(".agentura"));
    workspace
}

#[test]
fn what_is_said_otherwise_is_found_by_its_meaning() {
    let workspace = workspace();
    let query = ["memory", "search", "verify regulatory requirements"];
    let report = workspace.json(&query);
    assert!(ids(&report["results"]).contains(&"REFL-001"), "{report}");
    assert!(report["results"][0]["ranks"]["keyword"].is_null());
    assert_eq!(report["results"][0]["ranks"]["semantic"], 1);
    let report = workspace.json(&[&query[..], &["--keyword"]].concat());
    assert_eq!(ids(&report["results"]), [""; 0]);
}

#[test]
fn what_fits_neither_way_is_left_out() {
    let workspace = workspace();
    for query in [
        "execution_id input_summary output_summary",
        "timestamp user_correction original_output",
        "baking bread",
        "",
    ] {
        let report = workspace.json(&["memory", "search", query]);
        assert_eq!(ids(&report["results"]), [""; 0], "{query}: {report}");
    }
}
