use super::*;

fn outline(text: &[u8]) -> (Outline, Vec<String>) {
    let mut entries = Vec::new();
    let outline = scan(text, Path::new("f.json"), "entries", &mut |at, entry| {
        let at = usize::try_from(at).unwrap();
        assert_eq!(&text[at..at + entry.len()], entry);
        entries.push(String::from_utf8_lossy(entry).into_owned());
    });
    (outline, entries)
}

#[test]
fn entries_are_found_in_any_layout() {
    let check = |text: &str, entries: &[&str]| {
        let (outline, found) = outline(text.as_bytes());
        assert_eq!(found, entries, "{text}");
        assert_eq!(outline.problems, [], "{text}");
        assert_eq!(outline.close, text.rfind(']').map(|at| at as u64), "{text}");
    };
    check("{\"entries\": []}", &[]);
    check(
        "\u{feff}{\n  \"entries\": [\n    {\"a\": 1}\n  ]\n}\n",
        &["{\"a\": 1}"],
    );
    check(
        "{\"entries\":[1,{\"x\":NaN} , \"s\"],\"other\":{}}",
        &["1", "{\"x\":NaN}", "\"s\""],
    );
    check("{\"format\": 1, \"entries\": [{}]}", &["{}"]);
}

#[test]
fn an_empty_file_is_empty_and_a_newer_one_says_so() {
    assert!(outline(b"").0.empty);
    assert!(outline(b" \n").0.empty);
    assert_eq!(outline(b"{\"format\": 7, \"entries\": []}").0.format, 7);
    assert_eq!(
        outline(b"{\"entries\": [], \"format\": \"x\"}").0.format,
        u64::MAX
    );
}

#[test]
fn a_file_cut_anywhere_keeps_every_whole_entry() {
    let text = "{\n  \"entries\": [\n    {\"a\": 1},\n    {\"b\": [2]}\n  ]\n}";
    let first = text.find("},").unwrap() + 1;
    let second = text.find("]}").unwrap() + 2;
    let array = text.find('[').unwrap();
    for end in array + 1..text.len() {
        let (outline, found) = outline(&text.as_bytes()[..end]);
        let whole = usize::from(end >= first) + usize::from(end >= second);
        assert_eq!(found.len(), whole, "{end}");
        if outline.close.is_none() {
            assert_eq!(outline.problems[0].kind, ProblemKind::TornTail, "{end}");
        }
    }
}

#[test]
fn damage_in_one_entry_hides_no_other() {
    let text = b"{\n  \"entries\": [\n    {\"a\": 1},\n    {\"b\": oops},\n    {\"c\": 3}\n  ]\n}";
    let (outline, found) = outline(text);
    assert_eq!(found, ["{\"a\": 1}", "{\"c\": 3}"]);
    assert_eq!(outline.problems.len(), 1);
    assert_eq!(outline.problems[0].kind, ProblemKind::Damage);
    assert_eq!(outline.problems[0].line, 4);
    assert!(outline.close.is_some());
}

#[test]
fn damage_in_the_last_entry_is_not_taken_for_a_crash() {
    let text = b"{\n  \"entries\": [\n    {\"a\": 1},\n    {\"b\" 2}\n  ]\n}\n";
    let (outline, found) = outline(text);
    assert_eq!(found.len(), 1);
    assert_eq!(outline.problems[0].kind, ProblemKind::Damage);
    assert_eq!(outline.close, Some(text.len() as u64 - 4));
    assert_eq!(outline.tail, text.len() as u64 - 7);
}

#[test]
fn zeros_at_the_end_are_a_crash() {
    let mut text = b"{\n  \"entries\": [\n    {\"a\": 1},\n    {\"b\": ".to_vec();
    text.extend([0; 64]);
    let (outline, found) = outline(&text);
    assert_eq!(found.len(), 1);
    assert_eq!(outline.problems[0].kind, ProblemKind::TornTail);
}

#[test]
fn file_without_entries_is_refused() {
    let check = |text: &[u8], message: &str| {
        let (outline, found) = outline(text);
        assert!(found.is_empty());
        assert_eq!(outline.problems[0].message, message);
    };
    check(b"[]", "the file is not a JSON object");
    check(b"{}", "the root object has no array `entries`");
    check(
        b"{\"entries\": {}}",
        "the root object has no array `entries`",
    );
    check(b"{\"entries\": [], x}", "the root object is broken here");
    check(
        b"{\"entries\": []} {}",
        "unexpected text after the end of the root",
    );
}
