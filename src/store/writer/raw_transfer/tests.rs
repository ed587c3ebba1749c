use super::*;
use crate::model::Scope;

const ODD: &str = "{\"entries\": [\n{\"id\": \"MEM-001\",  \"x\": NaN},{\"id\":\"MEM-002\",\"n\": 1062.0}], \"format\": 1}";

fn store(text: &str) -> (tempfile::TempDir, Scoped) {
    let dir = tempfile::tempdir().unwrap();
    named::replace(&dir.path().join(Kind::Memory.file()), text.as_bytes()).unwrap();
    let store = Scoped::new(dir.path(), Scope::All);
    (dir, store)
}

fn entries(store: &Scoped) -> Vec<RawEntry> {
    let mut found = Vec::new();
    let all = crate::store::Selection::default();
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
fn entries_and_what_stands_around_them_come_back_byte_for_byte() {
    let (_dir, from) = store(ODD);
    let frame = from.frame(Kind::Memory).unwrap().unwrap();
    assert_eq!(
        (frame.head.as_str(), frame.tail.as_str()),
        ("{\"entries\": [\n", "], \"format\": 1}")
    );
    let carried = entries(&from);
    let dir = tempfile::tempdir().unwrap();
    let to = Scoped::new(dir.path(), Scope::All);
    let mut writer = to.write(&mut || "r".to_owned()).unwrap();
    writer
        .restore(Kind::Memory, &carried, Some(&frame))
        .unwrap();
    assert_eq!(entries(&to), carried);
    let more = [RawEntry {
        id: "MEM-003".to_owned(),
        text: "{\"id\": \"MEM-003\"}".to_owned(),
    }];
    writer.restore(Kind::Memory, &more, None).unwrap();
    drop(writer);
    let text = std::fs::read_to_string(dir.path().join(Kind::Memory.file())).unwrap();
    assert!(text.ends_with("], \"format\": 1}"), "{text}");
    assert_eq!(entries(&to), [carried, more.to_vec()].concat());
}

#[test]
fn what_a_scope_sees_goes_and_the_rest_keeps_its_bytes() {
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
    let gone = writer.remove_visible(Kind::Reflexion, "t").unwrap();
    assert_eq!(gone, ["REFL-001", "REFL-003"]);
    drop(writer);
    let text = std::fs::read_to_string(dir.path().join(Kind::Reflexion.file())).unwrap();
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
    assert_eq!(all.inspect(Kind::Reflexion).unwrap(), []);
}
