//! Any bytes as a data file: reading and writing neither panic nor lose an entry that was there.

use std::fs;

use memctl::model::{Correction, Kind, Scope};
use memctl::store::{DataFile, Scoped, Selection};

pub(crate) fn run(bytes: &[u8]) {
    let Ok(dir) = tempfile::tempdir() else { return };
    let path = dir.path().join(Kind::Correction.file());
    fs::write(&path, bytes).unwrap();
    let store = Scoped::new(dir.path(), Scope::All);
    let texts = || {
        let mut texts = Vec::new();
        store
            .each_entry(Kind::Correction, &Selection::default(), &mut |e| {
                texts.push(e.text)
            })
            .unwrap();
        texts
    };
    let before = texts();
    store.list::<Correction>(&Selection::default()).unwrap();
    store.inspect(Kind::Correction, &mut |_| {}).unwrap();
    assert_eq!(
        fs::read(&path).unwrap(),
        bytes,
        "reading has changed the file"
    );
    let record: Correction = serde_json::from_str(r#"{"user_correction": "x"}"#).unwrap();
    let mut random = || "random".to_owned();
    let appended = store
        .write(&mut random)
        .unwrap()
        .append(record, chrono::DateTime::UNIX_EPOCH);
    let after = texts();
    match appended {
        Ok(_) => {
            assert_eq!(after.len(), before.len() + 1);
            assert_eq!(after[..before.len()], before[..]);
        }
        Err(_) => assert_eq!(after, before),
    }
    store
        .repair(
            DataFile::shared(Kind::Correction),
            chrono::DateTime::UNIX_EPOCH,
        )
        .unwrap_or_default();
    let repaired = texts();
    assert!(
        after.iter().all(|text| repaired.contains(text)),
        "the repair has lost an entry"
    );
}
