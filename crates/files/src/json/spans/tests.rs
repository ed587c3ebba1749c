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
