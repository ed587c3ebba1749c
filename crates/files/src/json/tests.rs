use super::*;

#[test]
fn the_end_of_a_value_is_found() {
    let whole = |text: &str| {
        let padded = format!("{text} ");
        assert_eq!(skip_value(padded.as_bytes(), 0), Ok(text.len()), "{text}");
    };
    whole("{}");
    whole("[ ]");
    whole(r#"{"a": [1, {"b": "x\"]}"}, NaN, -Infinity, 1e+16], "c": null}"#);
    whole(r#""\ud83d lone \udcff""#);
    whole("123456789012345678901234567890");
    whole(
        &"[".repeat(100_000)
            .chars()
            .chain("]".repeat(100_000).chars())
            .collect::<String>(),
    );
}

#[test]
fn a_cut_value_is_incomplete_and_a_wrong_one_malformed() {
    let text = r#"{"a": [1, {"b": "x\\"}, true], "c": nul"#;
    for end in 0..text.len() {
        assert_eq!(
            skip_value(&text.as_bytes()[..end], 0),
            Err(Stop::Incomplete),
            "{end}"
        );
    }
    let malformed = |text: &str, position: usize| match skip_value(text.as_bytes(), 0) {
        Err(Stop::Malformed { at, .. }) => assert_eq!(at, position, "{text}"),
        other => panic!("{text}: {other:?}"),
    };
    malformed("{a: 1}", 1);
    malformed(r#"{"a" 1}"#, 5);
    malformed(r#"{"a": 1 "b": 2}"#, 8);
    malformed("[1, 2}", 5);
    malformed("[tru, 1]", 1);
    malformed("{\"a\": \"x\n}", 8);
    malformed("[1,]", 3);
}

#[test]
fn setting_a_field_leaves_the_others_as_they_are() {
    let check = |object: &str, expected: &str| {
        let changes = [("n", "2".to_owned()), ("new", "[1]".to_owned())];
        assert_eq!(with_fields(object, &changes, 2), expected);
    };
    check(
        "{\"big\":123456789012345678901234567890,  \"n\" : 1.0 }",
        "{\"big\":123456789012345678901234567890,  \"n\" : 2,\n  \"new\": [1] }",
    );
    check("{}", "{\n  \"n\": 2,\n  \"new\": [1]}");
    check("{\"x\": NaN}", "{\"x\": NaN,\n  \"n\": 2,\n  \"new\": [1]}");
}

#[test]
fn fields_are_taken_out_as_if_they_had_never_been() {
    let check = |object: &str, names: &[&str], expected: &str| {
        assert_eq!(
            without_fields(object, names),
            expected,
            "{object} {names:?}"
        );
    };
    check(r#"{"a": 1, "b": 2}"#, &["b"], r#"{"a": 1}"#);
    check(r#"{"a": 1, "b": 2}"#, &["a"], r#"{ "b": 2}"#);
    check(r#"{"a": 1, "b": 2, "c": 3}"#, &["a", "b"], r#"{ "c": 3}"#);
    check(r#"{"a": 1, "b": 2, "c": 3}"#, &["a", "c"], r#"{ "b": 2}"#);
    check(r#"{"a": 1}"#, &["a"], "{}");
    check(r#"{"a": 1}"#, &["x"], r#"{"a": 1}"#);
    let before = "{\n      \"a\": 1\n    }";
    let added = [("b", "2".to_owned()), ("c", "[]".to_owned())];
    let after = with_fields(before, &added, 6);
    check(&after, &["b", "c"], before);
}

#[test]
fn whole_strings_change_and_nothing_else() {
    let ids = [
        ("CORR-001", "CORR-009"),
        ("REFL-001", "REFL-002"),
        ("REFL-002", "REFL-003"),
    ];
    let ids: HashMap<String, String> = ids
        .iter()
        .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
        .collect();
    let check = |text: &str, expected: Option<&str>| {
        assert_eq!(
            with_other_strings(text, &ids).as_deref(),
            expected,
            "{text}"
        );
    };
    check(
        r#"{"correction_id":  "CORR-001", "all": ["REFL-001","REFL-002", "see REFL-001"], "CORR-001" : NaN}"#,
        Some(
            r#"{"correction_id":  "CORR-009", "all": ["REFL-002","REFL-003", "see REFL-001"], "CORR-001" : NaN}"#,
        ),
    );
    check(
        r#"{"a": "\"CORR-001\"", "b": "\\", "c": "CORR-001"}"#,
        Some(r#"{"a": "\"CORR-001\"", "b": "\\", "c": "CORR-009"}"#),
    );
    check(r#"{"a": "CORR-0010"}"#, None);
    check("{\"a\": \"CORR-001", None);
    check("{\"a\": \"\\", None);
}

#[test]
fn what_common_readers_refuse_is_found() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    for (json, expected) in [
        (&*nested(100), None),
        (
            &*nested(130),
            Some("more than 100 brackets within each other"),
        ),
        (
            r#"{"a": [1e308, -0.0, 12345678901234567890123], "b": "\ud83d\ude00 1e400", "c": null}"#,
            None,
        ),
        (r#"{"a": [1, 1e400]}"#, Some("1e400")),
        (r#"{"\ud800": true}"#, Some(r#""\ud800""#)),
        ("-1e999", Some("-1e999")),
    ] {
        assert_eq!(unreadable(json), expected, "{json}");
        assert_eq!(
            serde_json::from_str::<Value>(json).is_ok(),
            expected.is_none()
        );
    }
}

#[test]
fn pretty_changes_the_layout_only() {
    let json = r#"{"b":[1.0,{"a":"x, {y}"}],"a":{}, "e" : [ ]}"#;
    let expected = "{\n  \"b\": [\n    1.0,\n    {\n      \"a\": \"x, {y}\"\n    }\n  ],\n  \"a\": {},\n  \"e\": []\n}";
    assert_eq!(pretty(json, 0), expected);
    assert_eq!(pretty(expected, 0), expected);
    assert_eq!(pretty("3489.2794929999127", 2), "3489.2794929999127");
    assert_eq!(
        compact(expected),
        json.replace(' ', "").replace("x,{y}", "x, {y}")
    );
    assert_eq!(compact(" 1e+16 \n"), "1e+16");
}
