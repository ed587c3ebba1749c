use std::cell::Cell;
use std::fs;

use chrono::Utc;

use super::*;
use crate::model::{Memory, Scope};
use crate::store::{SeenEntries, Selection};

const ODD: &str = "{\"entries\": [\n{\"id\": \"MEM-001\",  \"x\": NaN},{\"id\":\"MEM-002\",\"n\": 1062.0}], \"format\": 1}";

fn store(text: &str) -> (tempfile::TempDir, Scoped) {
    let dir = tempfile::tempdir().unwrap();
    named::replace(&dir.path().join(Kind::Memory.file()), text.as_bytes()).unwrap();
    let store = Scoped::new(dir.path(), Scope::All);
    (dir, store)
}

fn entries(store: &Scoped) -> Vec<RawEntry> {
    let mut found = Vec::new();
    let all = Selection::default();
    let each = &mut |entry: Entry| {
        found.push(RawEntry {
            id: entry.id,
            text: String::from_utf8(entry.text).unwrap(),
        });
    };
    store.each_entry(Kind::Memory, &all, each).unwrap();
    found
}

#[test]
fn entries_come_back_byte_for_byte() {
    let (_dir, from) = store(ODD);
    let carried = entries(&from);
    let dir = tempfile::tempdir().unwrap();
    let to = Scoped::new(dir.path(), Scope::All);
    let mut writer = to.write(&mut || "r".to_owned()).unwrap();
    writer.restore(Kind::Memory, &carried).unwrap();
    assert_eq!(entries(&to), carried);
    let more = [RawEntry {
        id: "MEM-003".to_owned(),
        text: "{\"id\": \"MEM-003\"}".to_owned(),
    }];
    writer.restore(Kind::Memory, &more).unwrap();
    drop(writer);
    assert_eq!(entries(&to), [carried, more.to_vec()].concat());
}

#[test]
fn visible_records_are_removed_and_the_rest_keeps_its_bytes() {
    let rule = |id: &str, skill: &str| {
        format!("{{\"reflexion_id\": \"{id}\", \"skill\": \"{skill}\",  \"n\": 1.0}}")
    };
    let (a, b, c) = (
        rule("REFL-001", "hr/x"),
        rule("REFL-002", "dev/y"),
        rule("REFL-003", "hr/z"),
    );
    let dir = tempfile::tempdir().unwrap();
    let text = format!("{{\"entries\": [{a}, {b},\n{c} ]}}");
    named::replace(&dir.path().join(Kind::Reflexion.file()), text.as_bytes()).unwrap();
    let hr = Scoped::new(dir.path(), Scope::parse("hr"));
    let mut writer = hr.write(&mut || "r".to_owned()).unwrap();
    let removed = writer.remove_visible(Kind::Reflexion, "t").unwrap();
    assert_eq!(removed, ["REFL-001", "REFL-003"]);
    drop(writer);
    let text = fs::read_to_string(dir.path().join(Kind::Reflexion.file())).unwrap();
    assert!(
        text.contains(&b) && !text.contains("REFL-001") && !text.contains("REFL-003"),
        "{text}"
    );
    serde_json::from_str::<serde_json::Value>(&text).unwrap();
    let all = Scoped::new(dir.path(), Scope::All);
    assert_eq!(all.count(Kind::Reflexion).unwrap(), 1);
    let mut writer = all.write(&mut || "r".to_owned()).unwrap();
    writer.remove_visible(Kind::Reflexion, "t").unwrap();
    drop(writer);
    assert_eq!(all.count(Kind::Reflexion).unwrap(), 0);
    assert_eq!(all.inspect(Kind::Reflexion, &mut |_| {}).unwrap(), []);
}

#[test]
fn only_what_came_since_is_read_unless_the_file_was_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let store = Scoped::new(dir.path(), Scope::All);
    let path = dir.path().join(Kind::Memory.file());
    let entries = |numbers: std::ops::Range<u64>| {
        let entry = |n| format!(r#"    {{"id": "MEM-{n:03}", "content": "{n:01000}"}}"#);
        let entries: Vec<String> = numbers.map(entry).collect();
        format!("{{\n  \"entries\": [\n{}\n  ]\n}}\n", entries.join(",\n"))
    };
    let seen = SeenEntries::default();
    let read = Cell::new(0);
    let holds = |digest| {
        read.set(0);
        let digest_of = |entry: &[u8]| {
            read.set(read.get() + 1);
            let content = json::string_field(entry, "content")?;
            content.parse().ok()
        };
        let (is_likely, _) = seen
            .may_hold(&store, Kind::Memory, digest, &digest_of)
            .unwrap();
        (is_likely, read.get())
    };
    assert_eq!(holds(7), (false, 0));
    // Files of this size have a table of offsets, which knows that one only grew.
    fs::write(&path, entries(0..100)).unwrap();
    assert_eq!(holds(7), (true, 100));
    assert_eq!(holds(100), (false, 0));
    let add = |content: &str| {
        let json = format!(
            r#"{{"id": "", "memory_type": "task_memory", "content": "{content}",
                "metadata": {{}}, "created_at": "", "updated_at": ""}}"#
        );
        let memory: Memory = serde_json::from_str(&json).unwrap();
        let random = &mut || "0123456789abcdef".to_owned();
        let mut writer = store.write(random).unwrap();
        writer.append(memory, Utc::now()).unwrap();
    };
    // The first writer makes the file private, which changes its state.
    add("100");
    assert!(holds(100).0);
    add("101");
    assert_eq!(holds(101), (true, 1));
    fs::write(&path, entries(50..120)).unwrap();
    assert_eq!(holds(7), (false, 70));
    assert_eq!(holds(119), (true, 0));
}
