//! New content.

use super::*;

#[test]
fn only_new_content_counts() {
    let check = |old: &str, new: &str, expected: bool| {
        let input = json!({"file_path": "src/a.ts", "old_string": old, "new_string": new});
        let pattern = pattern(CallPart::Content, [r"console\.log", r"\.test\.ts$", ""]);
        let found = breaks(&call("Edit", input), "", &[pattern], &|_| false);
        assert_eq!(found, expected, "{old} → {new}");
    };
    check("a", "console.log(a)", true);
    check("console.log(a)\nb", "console.log(a)\nc", false);
    check("console.log(a)", "console.log(a)\nconsole.log(b)", true);
    let input = json!({"file_path": "src/a.test.ts", "content": "console.log(a)"});
    let pattern = pattern(CallPart::Content, [r"console\.log", r"\.test\.ts$", ""]);
    assert!(!breaks(&call("Write", input), "", &[pattern], &|_| false));
}

#[test]
fn text_with_a_place_counts_only_in_its_files() {
    let any = CallPattern {
        within: vec![r"^src/.*\.ts$".to_owned(), r"(^|/)web/".to_owned()],
        ..pattern(CallPart::Content, [r"\bany\b", r"\.d\.ts$", ""])
    };
    let check = |call: &Call, expected: bool, why: &str| {
        let found = breaks(call, "", std::slice::from_ref(&any), &|_| false);
        assert_eq!(found, expected, "{why}");
    };
    let write = |path: &str, text: &str| call("Write", json!({"file_path": path, "content": text}));
    check(&write("/home/u/p/src/a.ts", "x: any"), true, "in its place");
    check(
        &write("/home/u/p/docs/web/a.md", "any"),
        true,
        "in another place",
    );
    check(&write("/home/u/p/test/a.ts", "x: any"), false, "elsewhere");
    check(
        &write("/home/u/p/src/a.ts", "x: unknown"),
        false,
        "the place alone",
    );
    check(
        &write("/home/u/p/src/a.d.ts", "x: any"),
        false,
        "ruled out by its file",
    );
    let text = call("Write", json!({"content": "x: any"}));
    check(&text, false, "in no known file");
    check(
        &bash("cat > ../src/a.ts <<'E'\nx: any\nE"),
        true,
        "a here-document",
    );
    check(&bash("echo 'x: any' > ../src/a.ts"), true, "echo");
    check(&bash("echo 'x: any'"), false, "echo to nobody");
    check(
        &bash("touch ../src/a.ts && cat > /tmp/a.ts <<'E'\nx: any\nE"),
        false,
        "a file of another command",
    );
    let patch = |first: &str, second: &str| {
        let text = format!(
            "*** Begin Patch\n*** Update File: ../src/a.ts\n@@\n-a\n+{first}\n\
             *** Add File: ../b.md\n+{second}\n*** End Patch"
        );
        call("apply_patch", json!({ "input": text }))
    };
    check(&patch("x: any", "b"), true, "a patch");
    check(&patch("x: b", "any"), false, "another file of the patch");
    let edit = |path: &str| {
        let edits = json!([{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "any"}]);
        call("MultiEdit", json!({"file_path": path, "edits": edits}))
    };
    check(&edit("/home/u/p/src/a.ts"), true, "one of several edits");
    check(
        &edit("/home/u/p/README.md"),
        false,
        "several edits elsewhere",
    );
    // A pattern that cannot be compiled acts nowhere.
    let broken = CallPattern {
        within: vec!["(".to_owned()],
        ..any.clone()
    };
    let calls = [write("/home/u/p/src/a.ts", "x: any"), write("(", "any")];
    assert!(
        !calls
            .iter()
            .any(|call| breaks(call, "", std::slice::from_ref(&broken), &|_| false))
    );
}

#[test]
fn a_pattern_of_code_is_silent_in_prose() {
    let check = |path: &str, matches: &str, within: &[&str], expected: bool| {
        let pattern = CallPattern {
            within: within.iter().map(|&place| place.to_owned()).collect(),
            ..pattern(CallPart::Content, [matches, "", ""])
        };
        let text = "Call dbg.show(x) — simply.";
        let input = json!({"file_path": path, "content": text});
        let found = breaks(&call("Write", input), "", &[pattern], &|_| false);
        assert_eq!(found, expected, "{path} {matches} {within:?}");
    };
    check("src/a.rs", r"dbg\.show\(", &[], true);
    check("notes/a.md", r"dbg\.show\(", &[], false);
    check("notes/a.rst", r"\bdbg\.show\b", &[], false);
    check("notes/a.md", r"\bdbg\s*\??\.\s*(?:show|tell)\b", &[], false);
    check("notes/a.md", r"dbg\.show\(", &[r"\.md$"], true);
    check("notes/a.md", "—", &[], true);
    check("notes/a.md", r"\bsimply\b", &[], true);
}

#[test]
fn what_an_editor_of_streams_puts_in_is_new_content() {
    let of = pattern(CallPart::Content, [r"console\.log", "", ""]);
    let check = |line: &str, expected: bool| {
        let spoken = breaks(
            &bash(line),
            "No console.log here.",
            std::slice::from_ref(&of),
            &|_| false,
        );
        assert_eq!(spoken, expected, "{line}");
    };
    check("sed -i 's/debug(/console.log(/' src/a.js", true);
    check(r"perl -pi -e 's|log\(|console.log(|' src/a.js", true);
    check("sed -i 's/console.log(/debug(/' src/a.js", false);
    check("sed 's/debug(/console.log(/' src/a.js", false);
    check("sed -i '3i console.log(1)' src/a.js", true);
    check("sed -i -e 1d -e '/^a/a\\  console.log(1)' src/a.js", true);
    check("sed -i '$s/$/console.log(1)/' src/a.js", true);
    check("sed -i 1d src/console.log", false);
    let patch = |first: &str, second: &str| {
        format!(
            "patch -p1 <<'P'\n--- a/src/a.js\n+++ b/src/a.js\n@@ -1 +1 @@\n{first}1)\n{second}2)\nP"
        )
    };
    check(&patch("-debug(", "+console.log("), true);
    check(&patch("-console.log(", "+debug("), false);
    check(&patch(" console.log(", "+debug("), false);
}
