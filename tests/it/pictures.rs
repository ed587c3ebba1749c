//! The page of `stats` in `docs/images` is what the program writes.

use std::path::Path;

use crate::workspace::Workspace;

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
