use proptest::prelude::*;

use super::super::samples;
use super::*;

/// Longest piece of a secret that may remain, in characters.
const LEFT: usize = 6;

/// Asserts that the secret is gone and its kind is reported.
fn check(kind: &str, text: &str, secret: &str) {
    let redacted = redact(text);
    assert!(
        redacted.found.contains(&kind),
        "{kind}: {redacted:?} from {text}"
    );
    let left = redacted.text.replace(&marker(kind), "");
    let secret: Vec<char> = secret.chars().filter(char::is_ascii_alphanumeric).collect();
    for piece in secret.windows(LEFT.min(secret.len())) {
        let piece: String = piece.iter().collect();
        assert!(!left.contains(&piece), "{kind}: {redacted:?} from {text}");
    }
}

#[test]
fn a_password_ends_where_its_text_ends() {
    let check = |before: &str, secret: &str, after: &str| {
        let expected = format!("{before}{}{after}", marker("password"));
        assert_eq!(redact(&format!("{before}{secret}{after}")).text, expected);
    };
    check("The password is ", "Tr0ub4dor&3xyz", ".");
    check("The password is ", "aB&3dors9", ", I think.");
    check("password: ", "Tr0ub4dor&3xyz", "\nport: 1");
    // Text after the secret stays.
    check("https://x.example/?password=", "hunter2", "&next=1");
    check("password: ", "hunter2", "&mode=1");
    check("<b>password: ", "hunter2", "&amp;</b>");
    check("set password: ", "hunter2", " && ls");
    let text = "fn login(password: Name&Value, pass: &str)";
    assert_eq!(redact(text).text, text);
}

#[test]
fn keys_of_vendors_go_wherever_they_stand() {
    for (kind, key) in samples::keys() {
        for (before, after) in [
            ("", ""),
            ("use ", " now"),
            ("'", "'"),
            ("\"key\":\"", "\"}"),
            ("export X=", "\n"),
            ("a\\n", "\\n"),
            ("\u{1b}[32m", "\u{1b}[0m"),
            ("(", ")."),
            ("é", "é"),
            ("https://x.example/?k=", "&b=1"),
        ] {
            let text = format!("{before}{key}{after}");
            check(kind, &text, &key);
            let redacted = redact(&text).text.into_owned();
            assert!(
                redacted.starts_with(before.trim_end_matches("?k=")),
                "{redacted}"
            );
            if kind != "azure-signature" {
                assert!(redacted.ends_with(after), "{redacted} {after}");
            }
        }
    }
}

#[test]
fn a_key_that_a_line_end_has_broken_goes_whole() {
    for (kind, key) in samples::keys() {
        for wrap in [
            "\n", "\r\n", "\\\n", "\\\n    ", "\n  ", "\\n", "\\r\\n", "\\\\n", "\u{200b}",
        ] {
            for at in [key.len() / 4, key.len() / 2, key.len() * 3 / 4] {
                let text = format!("run {}{wrap}{} end", &key[..at], &key[at..]);
                check(kind, &text, &key);
            }
        }
    }
}

#[test]
fn a_prefix_that_a_line_end_has_broken_is_a_prefix() {
    for (kind, key) in samples::keys().into_iter().take(26) {
        // Patterns that extend backwards or lack a prefix are identified by their middle.
        if matches!(
            kind,
            "jwt" | "telegram-token" | "discord-token" | "slack-webhook"
        ) {
            continue;
        }
        for wrap in ["\n", "\\\n", "\\n"] {
            let text = format!("run {}{wrap}{} end", &key[..2], &key[2..]);
            check(kind, &text, &key);
        }
    }
}

#[test]
fn keys_that_are_wrapped_at_the_width_of_a_terminal_go_whole() {
    for (kind, key) in samples::keys()
        .into_iter()
        .filter(|(_, key)| key.len() > 60)
    {
        let lines: Vec<&str> = (0..key.len())
            .step_by(30)
            .map(|at| &key[at..key.len().min(at + 30)])
            .collect();
        check(kind, &format!("key: {}\n\nDone.", lines.join("\n")), &key);
    }
}

#[test]
fn named_secrets_go_and_their_names_stay() {
    for (kind, text, secret) in samples::named() {
        check(kind, &text, &secret);
        let redacted = redact(&text);
        let (before, after) = text.split_once(&secret).unwrap();
        assert!(redacted.text.starts_with(before), "{redacted:?}");
        assert!(redacted.text.ends_with(after), "{redacted:?}");
    }
}

#[test]
fn a_named_token_that_a_line_end_has_broken_goes_whole() {
    for (kind, text, secret) in samples::named() {
        let long = secret.len() >= 32 && kind != "cookie";
        let at = text.find(&secret).unwrap() + secret.len() / 2;
        for wrap in ["\n", "\\\n  ", "\\n"].into_iter().filter(|_| long) {
            check(
                kind,
                &format!("{}{wrap}{}", &text[..at], &text[at..]),
                &secret,
            );
        }
    }
}

#[test]
fn blocks_of_private_keys_go_with_everything_in_them() {
    for label in ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "] {
        let block = samples::key_block(label, 5);
        let body = block.lines().nth(2).unwrap().to_owned();
        for text in [
            block.clone(),
            format!("before\n{block}\nafter"),
            block.replace('\n', "\r\n"),
            block.replace('\n', "\\n"),
            block.replace('\n', "\n    "),
            block.replace("PRIVATE KEY", "PRIV\nATE KEY"),
            // Cut off at the end and at the beginning.
            format!(
                "{}\n$ ls",
                block.lines().take(4).collect::<Vec<_>>().join("\n")
            ),
            format!("{}\n", block.lines().skip(2).collect::<Vec<_>>().join("\n")),
        ] {
            check("private-key", &text, &body);
        }
        let redacted = redact(&format!("before\n{block}\nafter")).text.into_owned();
        assert_eq!(redacted, "before\n[REDACTED:private-key]\nafter");
    }
}

/// Reading each of them to the end of the text would take minutes.
#[test]
fn a_text_of_beginnings_of_keys_is_read_once() {
    for beginning in ["ghp_", "sk-", "password="] {
        let text = beginning.repeat(40_000);
        let started = std::time::Instant::now();
        drop(redact(&text));
        assert!(started.elapsed().as_secs() < 10, "{beginning}");
    }
}

#[test]
fn secrets_escaped_for_addresses_and_pages_go() {
    let word = samples::random(20);
    for (before, after) in [
        ("curl -d payload=Authorization%3A%20Bearer%20", " x.io"),
        (
            "GET /c?url=postgres%3A%2F%2Fapp%3A",
            "%40db.internal%3A5432%2Fx",
        ),
        ("POST user=ann&data=password%3D", ""),
        ("state=%7B%22api_key%22%3A%22", "%22%7D"),
        (
            "<pre>connect(host=&#39;h&#39;, password=&#39;",
            "&#39;)</pre>",
        ),
        ("<p>admin_password = &quot;", "&quot;</p>"),
        ("curl -u &#39;admin:", "&#39; https://x.io"),
        ("web | \x1b[1mredis-cli -a ", " ping\x1b[0m"),
        ("10:02:11 \x1b[31mmysql -u root -p", " db\x1b[0m"),
    ] {
        let redacted = redact(&format!("{before}{word}{after}")).text.into_owned();
        assert!(!redacted.contains(&word[4..12]), "{redacted}");
    }
    let page = "<a href=\"/s?q=a%20b&amp;password%3F\">50%25 of &quot;tokens&quot;</a>";
    assert_eq!(redact(page).text, page);
}

#[test]
fn private_passages_are_never_kept() {
    let check = |text: &str, expected: &str| assert_eq!(redact(text).text, expected);
    check("a <private>b</private> c", "a [PRIVATE] c");
    check("a <PRIVATE>b\nc", "a [PRIVATE]");
    check("<private>a<private>b</private>c</private>d", "[PRIVATE]d");
    check("a <private reason=\"x\">b</private>", "a [PRIVATE]");
    check("a </private> b <privateer>", "a </private> b <privateer>");
    check("<private></private>", "[PRIVATE]");
    check("the tag `<private>` hides", "the tag `<private>` hides");
}

#[test]
fn text_without_a_secret_stays() {
    for line in include_str!("../../fixtures/no-secrets.txt").lines() {
        assert_eq!(redact(line).text, line);
    }
    for text in [
        include_str!("../../fixtures/no-secrets.txt"),
        include_str!("../../fixtures/benign.txt"),
        include_str!("../../../../README.md"),
        include_str!("../../../../SECURITY.md"),
        include_str!("../../../../Cargo.lock"),
    ] {
        let redacted = redact(text);
        assert!(
            matches!(redacted.text, Cow::Borrowed(_)),
            "{:?}",
            redacted.found
        );
    }
}

/// Parts of secrets and of similar texts.
fn pieces() -> impl Strategy<Value = String> {
    let mut pieces: Vec<String> = samples::keys().into_iter().map(|(_, key)| key).collect();
    pieces.extend(samples::named().into_iter().map(|(_, text, _)| text));
    pieces.extend(
        [
            "-----BEGIN RSA PRIVATE", " KEY-----", "-----END", "<private>", "</private>", "://",
            "@", ":", "=", "\"", "\\", "\\\"", "\n", "\\n", "password", "token", "secret", "sk-",
            "eyJ", "[REDACTED:password]", "[PRIVATE]", "[", "é", "\u{200b}", " ", "Bearer ",
            "Cookie: a=", "AAAAAAAA11111111", "Q~", "-us1", ":AA",
        ]
        .map(str::to_owned),
    );
    let piece = prop_oneof![3 => proptest::sample::select(pieces), 1 => any::<String>()];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn redacting_twice_is_redacting_once(text in pieces()) {
        let once = redact(&text);
        let twice = redact(&once.text);
        prop_assert_eq!(&twice.text, &once.text);
        prop_assert!(twice.found.is_empty());
        // A marker replaces at least four characters.
        prop_assert!(once.text.len() <= text.len() * 8 + 32);
        prop_assert_eq!(once.found.is_empty(), once.text == text);
    }

    #[test]
    fn json_stays_json_and_other_values_stay_as_they_are(texts in proptest::collection::vec(pieces(), 1..5), number in any::<f64>()) {
        let json = serde_json::json!({ "a": texts, "password": texts[0], "n": number, "o": { "k": texts } });
        let text = json.to_string();
        let redacted = redact_json(&text);
        let after: serde_json::Value = serde_json::from_str(&redacted.text).unwrap();
        prop_assert!(after.is_object());
        let number = format!("\"n\":{}", json["n"]);
        prop_assert!(redacted.text.contains(&number));
        let again = redact_json(&redacted.text).text.into_owned();
        prop_assert_eq!(again, redacted.text.into_owned());
    }
}

#[test]
fn markers_and_characters_stay_whole() {
    let text = Clean::of("a [REDACTED:password] é [PRIVATE] b");
    for at in 0..=text.as_str().len() {
        for part in [text.head(at), text.tail(at)] {
            assert_eq!(
                part.matches(['[', ':']).count(),
                part.matches("[REDACTED:password]").count() * 2 + part.matches("[PRIVATE]").count(),
                "{part}"
            );
        }
    }
    assert_eq!(text.head(8), "a ");
    assert_eq!(text.tail(4), " b");
    assert_eq!(text.ends(3, 2), "a \n…\n b");
    assert_eq!(text.cut(1000), text.as_str());
}

proptest! {
    #[test]
    fn no_cut_of_a_clean_text_shows_what_the_whole_hides(
        before in "[ -~\n]{0,40}",
        kind in 0..samples::keys().len(),
        after in "[ -~\n]{0,40}",
        head in 0_usize..200,
        tail in 0_usize..200,
    ) {
        let (_, key) = samples::keys().swap_remove(kind);
        let text = format!("{before} {key} {after}");
        let clean = Clean::of(&text);
        for part in [clean.head(head), clean.tail(tail), &clean.ends(head, tail), &clean.cut(head)] {
            for piece in key.as_bytes().windows(12) {
                let piece = std::str::from_utf8(piece).unwrap();
                prop_assert!(!part.contains(piece) || before.contains(piece) || after.contains(piece));
            }
            let again = redact(part);
            prop_assert!(again.found.is_empty() || !clean.as_str().contains(part), "{again:?}");
        }
    }
}

#[test]
fn fields_with_the_name_of_a_secret_lose_their_value() {
    let check = |json: &str, expected: &str| {
        assert_eq!(redact_json(json).text, expected);
    };
    check(
        r#"{"password" : "letmein2", "n": 1062.0, "x": NaN}"#,
        r#"{"password" : "[REDACTED:password]", "n": 1062.0, "x": NaN}"#,
    );
    check(
        r#"["run", "--password", "k1ngk0ng", "-v"]"#,
        r#"["run", "--password", "[REDACTED:password]", "-v"]"#,
    );
    check(
        r#"{"name": "DB_PASSWORD", "value": "k1ngk0ng"}"#,
        r#"{"name": "DB_PASSWORD", "value": "[REDACTED:password]"}"#,
    );
    check(
        r#"{"headers": {"Cookie": "a=b1c2d3e4", "authorization": ["Bearer a1B2c3D4e5F6g7H8"]}}"#,
        r#"{"headers": {"Cookie": "[REDACTED:cookie]", "authorization": ["Bearer [REDACTED:bearer-token]"]}}"#,
    );
    for same in [
        r#"{"password": {"type": "string"}, "token": "string", "secret": null}"#,
        r#"{"user": "Password", "label": "Token", "password": "Password"}"#,
        r#"{"token": 12345678901234567890, "sha": "4272f13c9b1de0a7f1f8a0b2c3d4e5f60718293a"}"#,
        r#"["\ud800 lone", 1e400]"#,
        "not json at all \"open",
        "}}]] {",
    ] {
        check(same, same);
    }
}

#[test]
fn secrets_are_found_in_decoded_strings() {
    for (kind, key) in samples::keys() {
        let hidden: Vec<String> = key.bytes().map(|b| format!("\\u{b:04x}")).collect();
        let hidden = hidden.concat();
        for json in [
            format!("{{\"a\": [\"{key}\"]}}"),
            format!("{{\"{key}\": 1}}"),
            format!("{{\"a\": \"{hidden}\"}}"),
            format!(
                "{{\"a\": \"x\\n{}\\n{}\"}}",
                &key[..key.len() / 2],
                &key[key.len() / 2..]
            ),
            format!("{{\"a\": \"\\ud800 {key}\"}}"),
        ] {
            let redacted = redact_json(&json);
            assert!(
                redacted.found.contains(&kind),
                "{kind}: {redacted:?} from {json}"
            );
            assert!(!redacted.text.contains(&key[key.len() / 2..]), "{json}");
        }
    }
}

#[test]
fn a_key_block_in_a_list_of_lines_goes_line_by_line() {
    let block = samples::key_block("RSA ", 4);
    let lines: Vec<&str> = block.lines().collect();
    let json = serde_json::json!({ "lines": lines, "after": ["kept"] }).to_string();
    let redacted = redact_json(&json);
    assert!(lines[1..5].iter().all(|line| !redacted.text.contains(line)));
    assert!(redacted.text.ends_with(r#""after":["kept"]}"#));
}

#[test]
fn depth_is_no_danger() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    assert_eq!(redact_json(&deep).text, deep);
}
