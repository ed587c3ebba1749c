//! Changed paths.

use super::*;

#[test]
fn changed_paths_are_tried_in_all_forms() {
    let check = |tool: &str, input: Value, matches: &str, expected: bool| {
        let found = breaks(
            &call(tool, input.clone()),
            "",
            &[pattern(CallPart::Path, [matches, "", ""])],
            &|_| false,
        );
        assert_eq!(found, expected, "{input} {matches}");
    };
    let edit = |path: &str| json!({"file_path": path, "old_string": "a", "new_string": "b"});
    check(
        "Edit",
        edit("/home/u/p/db/migrations/1.sql"),
        "^db/migrations/",
        true,
    );
    check(
        "Edit",
        edit("../db/migrations/1.sql"),
        "^db/migrations/",
        true,
    );
    check(
        "Edit",
        edit("/home/u/p/db/models/1.py"),
        "^db/migrations/",
        false,
    );
    check(
        "Write",
        json!({"file_path": "/etc/x", "content": "c"}),
        "^/etc/",
        true,
    );
    check("Edit", edit("/home/u/p/a.ts"), "(^|/)u/", false);
    check("Edit", edit("/home/u/p/a.ts"), "^/home/u/", true);
    check(
        "Read",
        json!({"file_path": "/home/u/p/db/1.sql"}),
        "^db/",
        false,
    );
    let bash = |line: &str, expected: bool| {
        check("Bash", json!({ "command": line }), "^db/", expected);
    };
    bash("cat ../db/1.sql", false);
    bash("rm ../db/1.sql", true);
    bash("cd .. && rm db/1.sql", true);
    bash("sed -i s/a/b/ ../db/1.sql", true);
    bash("echo x > ../db/1.sql", true);
    bash("git -C .. restore db/1.sql", true);
    bash("find ../db -name '*.sql' -exec sed -i s/a/b/ {} +", true);
    bash("for f in ../db/*.sql; do sed -i s/a/b/ \"$f\"; done", true);
    bash("scp far:1.sql ../db/", true);
    bash("docker exec web sh -c 'rm ../db/1.sql'", false);
    bash("docker exec web rm ../db/1.sql", false);
    bash(
        "git apply <<'P'\n--- a/../db/1.sql\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\nP",
        true,
    );
    let patch = "*** Begin Patch\n*** Update File: ../db/1.sql\n@@\n-a\n+b\n*** End Patch";
    check("apply_patch", json!({ "input": patch }), "^db/", true);
    check("apply_patch", json!({ "text": patch }), "^db/", true);
    let unified = "--- a/../db/1.sql\n+++ b/../db/1.sql\n@@ -1 +1 @@\n-a\n+b\n";
    check("change", json!({ "diff": unified }), "^db/", true);
    check(
        "Delete",
        json!({"file_path": "/home/u/p/db/1.sql"}),
        "^db/",
        true,
    );
    check("mcp__files__remove", json!({"path": "../db"}), "^db/", true);
}

#[test]
fn a_file_that_is_copied_out_of_the_project_stays_as_it_is() {
    let check = |line: &str, matches: &str, expected: bool| {
        let of = pattern(CallPart::Path, [matches, "", ""]);
        let found = breaks(&bash(line), "", &[of], &|_| false);
        assert_eq!(found, expected, "{line}: {matches}");
    };
    let notes = r"(^|/)NOTES\.md$";
    check("cp NOTES.md /srv/x/", notes, false);
    check(
        "cp NOTES.md /tmp/a.md && cp a.md /tmp/NOTES.md",
        notes,
        false,
    );
    check("echo a > /tmp/NOTES.md", notes, false);
    check("echo a > /tmp/NOTES.md", "^/tmp/", true);
    check("cp a.md NOTES.md", notes, true);
    check("cp /srv/x/NOTES.md .", notes, true);
    check("echo a > /etc/hosts", "(^|/)hosts$", true);
}
