//! Any bytes as the journal of changes: reading it changes nothing, and what a line takes back is text.

use std::fs;

use memctl::model::Scope;
use memctl::store::{Scoped, Step};

const NOW: &str = "# Guardrails\n\n## No rivals\n\n**Source**: CORR-001\n";

pub(crate) fn run(bytes: &[u8]) {
    let Ok(dir) = tempfile::tempdir() else { return };
    let path = dir.path().join("changes.jsonl");
    fs::write(&path, bytes).unwrap();
    let store = Scoped::new(dir.path(), Scope::All);
    let Ok(lines) = store.changes() else { return };
    for line in lines {
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(
            serde_json::from_str::<memctl::store::ChangeLine>(&text).unwrap(),
            line
        );
        if let Step::File { splice, .. } = line.step {
            drop(splice.revert(NOW));
        }
    }
    assert_eq!(
        fs::read(&path).unwrap(),
        bytes,
        "reading has changed the journal"
    );
}
