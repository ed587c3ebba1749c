//! Tests of what patterns match in calls.

use serde_json::{Value, json};

use super::*;
use memctl_sessions::Step;

fn call(tool: &str, input: Value) -> Call {
    let step = Step {
        tool: tool.to_owned(),
        input,
        cwd: Some("/home/u/p/web".to_owned()),
        ..Step::default()
    };
    Call::of(&step, &["/home/u/p"])
}

fn bash(line: &str) -> Call {
    call("Bash", json!({ "command": line }))
}

fn pattern(on: CallPart, texts: [&str; 3]) -> CallPattern {
    let [matches, unless, after] = texts.map(str::to_owned);
    CallPattern {
        on,
        matches,
        unless,
        after,
        within: Vec::new(),
    }
}

#[test]
fn short_patterns_find_the_command_wherever_it_stands() {
    let check = |line: &str, expected: bool| {
        let pattern = pattern(CallPart::Command, [r"^npm\b", "", ""]);
        assert_eq!(
            breaks(&bash(line), "", &[pattern], &|_| false),
            expected,
            "{line}"
        );
    };
    for line in [
        "npm install",
        "cd x && npm install",
        "cd x; FOO=1 sudo -u deploy npm install | tee log",
        "bash -lc 'cd x && npm ci'",
        "/usr/local/bin/npm ci",
        "timeout 60 npm ci",
        "bash <<'EOF'\nnpm ci\nEOF",
        "echo $(npm root)",
        "find . -exec npm ci {} \\;",
        "ssh box npm ci",
        "ls | xargs -n1 npm i",
    ] {
        check(line, true);
    }
    for line in [
        "echo npm",
        "echo 'npm install' > notes",
        "git commit -m 'use npm install'",
        "cat <<EOF > x\nnpm install\nEOF",
        "# npm install\nls",
        "pnpm install",
        "npx jest",
    ] {
        check(line, false);
    }
}

#[test]
fn exception_is_matched_beside_the_command() {
    let check = |line: &str, matches: &str, unless: &str, expected: bool| {
        let pattern = pattern(CallPart::Command, [matches, unless, ""]);
        let found = breaks(&bash(line), "", &[pattern], &|_| false);
        assert_eq!(found, expected, "{line}: {matches} unless {unless}");
    };
    check("git push --force", "^git push", "--dry-run", true);
    check("git push --dry-run", "^git push", "--dry-run", false);
    check(
        "git push --dry-run && git push",
        "^git push",
        "--dry-run",
        true,
    );
    check("CI=1 pnpm test", "^pnpm test", r"\bCI=1", false);
    check("export CI=1 && pnpm test", "^pnpm test", r"\bCI=1", false);
    check("pnpm test && export CI=1", "^pnpm test", r"\bCI=1", true);
    check("sudo ls", "^sudo", "", true);
    // Quotes.
    check("cat 'a b'", "^cat a b", "", true);
    check("cat 'a[0]'", r#"^cat [^"']*\["#, "", false);
    check("cat a[0]", r#"^cat [^"']*\["#, "", true);
    check("cat a[0]", r"^cat \w+\[", "", true);
    check("cat 'a[0]'", r"^cat \w+\[", "", false);
    check("rm \"$each\"", r"(^|\s)\$\w+(\s|$)", "", false);
    check("rm $each", r"(^|\s)\$\w+(\s|$)", "", true);
    // The whole line.
    check("a && b", "&&", "", true);
    check("curl x | sh", r"curl .*\|\s*sh", "", true);
    check("a\nb", r"\n", "", true);
    check("git commit -m \"a\nb\"", "^git commit .*a b", "", true);
}

#[test]
fn text_for_people_is_no_use() {
    let check = |line: &str, rule: &str, matches: &str, expected: bool| {
        let pattern = pattern(CallPart::Command, [matches, "", ""]);
        let found = breaks(&bash(line), rule, &[pattern], &|_| false);
        assert_eq!(found, expected, "{line}: {matches}");
    };
    let (rule, name) = ("Keep off db_live.", r"\bdb_live\b");
    check("psql db_live", rule, name, true);
    check("echo 'select 1' | psql db_live", rule, name, true);
    check("psql <<E\nselect * from db_live\nE", rule, name, true);
    check("echo db_live > .target", rule, name, true);
    check("git commit -m 'off db_live'", rule, name, false);
    check("git commit -F - <<E\noff db_live\nE", rule, name, false);
    check("git log -S db_live", rule, name, false);
    check("echo 'off db_live' >> notes.md", rule, name, false);
    check("rg db_live src", rule, name, false);
    check("rg x src/db_live", rule, name, true);
    check("echo db_live", rule, name, false);
    check("ls # db_live", rule, name, false);
    check("cat > a.md <<E\ndb_live\nE", rule, name, false);
    let trailer = "No Signed-by in commit messages.";
    check(
        "git commit -m 'a\n\nSigned-by: b'",
        trailer,
        "Signed-by",
        true,
    );
    check(
        "git commit -F - <<E\na\nSigned-by: b\nE",
        trailer,
        "Signed-by",
        true,
    );
    check("git commit -m 'wip: a'", "", r"^git commit\b.*wip", true);
    check(
        "git commit -m 'never --wip'",
        "",
        r"^git commit\b.*--wip\b",
        false,
    );
    check("git commit --wip -m a", "", r"^git commit\b.*--wip\b", true);
    let signed = [r"^git commit\b", r"--sign\b", ""];
    let signed = pattern(CallPart::Command, signed);
    let line = bash("git commit -m 'use --sign'");
    assert!(breaks(&line, "", &[signed], &|_| false));
}

#[test]
fn several_commands_are_matched_only_by_patterns_that_say_so() {
    let check = |line: &str, matches: &str, expected: bool| {
        let pattern = pattern(CallPart::Command, [matches, "", ""]);
        let found = breaks(&bash(line), "", &[pattern], &|_| false);
        assert_eq!(found, expected, "{line}: {matches}");
    };
    let live = r"^shipit\b.*-e live\b.*\bdrop\b";
    check("shipit -e live drop x", live, true);
    check("shipit -e live show | grep drop", live, false);
    check("shipit -e live show && shipit -e dev drop x", live, false);
    let piped = r"^fetch\b.*\|\s*(ba)?sh\b";
    for line in [
        "cd /tmp && fetch x | sh",
        "fetch x | sudo -u a bash -s -- -y",
        "sudo fetch x \\\n | sh",
        "bash -c 'set -e; fetch x | sh'",
        "fetch x | tee a | env B=1 sh",
    ] {
        check(line, piped, true);
    }
    for line in [
        "fetch x > a; cat a | sh",
        "fetch x || sh a.sh",
        "git commit -m 'fetch x | sh'",
    ] {
        check(line, piped, false);
    }
    check("make a 2>&1 | tail -3", r"\|\s*tail\b", true);
}

#[test]
fn command_of_a_runner_is_matched_unless_the_rule_is_about_the_runner() {
    let check = |line: &str, rule: &str, matches: &str, expected: bool| {
        let pattern = pattern(CallPart::Command, [matches, "", ""]);
        let found = breaks(&bash(line), rule, &[pattern], &|_| false);
        assert_eq!(found, expected, "{line}: {matches}");
    };
    let tests = "Run the tests with `make probe`.";
    check("poetry run spectest -q", tests, "^spectest", true);
    check("cd a && npx --yes spectest@2", tests, "^spectest", true);
    check("uv run python -m spectest", tests, "^spectest", true);
    check("npx spectest --ci", tests, r"^spectest(?!.*--ci)", false);
    check("npx spectest", tests, r"^spectest(?!.*--ci)", true);
    let other = "No spectest; test with uv run proptest.";
    check("uv run spectest", other, "^spectest", true);
    let runner = "Run spectest only with `uv run`.";
    check("uv run spectest", runner, "^spectest", false);
    check("spectest", runner, "^spectest", true);
    let started = "Never start spectest directly, the venv has another one.";
    check("uv run spectest", started, "^spectest", false);
    check("spectest", started, "^spectest", true);
    let after = pattern(CallPart::Command, ["^git push", "", "^spectest"]);
    assert!(!fulfilled_by(&bash("bundle exec spectest"), std::slice::from_ref(&after)).is_empty());
    assert!(!breaks(
        &bash("npx spectest && git push"),
        "",
        &[after],
        &|_| false
    ));
}

#[test]
fn a_call_after_another_is_fine() {
    let check = |line: &str, is_done: bool, expected: bool| {
        let pattern = pattern(CallPart::Command, ["^git commit", "", "^cargo fmt"]);
        let found = breaks(&bash(line), "", &[pattern], &|_| is_done);
        assert_eq!(found, expected, "{line}");
    };
    check("git commit -m x", false, true);
    check("git commit -m x", true, false);
    check("cargo fmt && git commit -m x", false, false);
    check("cargo fmt; git commit -m x", false, true);
    check("git commit -m x && cargo fmt", false, true);
    check("cargo fmt || true && git commit -m x", false, true);
    check("cargo fmt || exit 1; git commit -m x", false, false);
    check(
        "cargo fmt && cargo test | tail -3 && git commit -m x",
        false,
        false,
    );
}

#[test]
fn earlier_success_makes_later_calls_fine() {
    let check = |line: &str, expected: bool| {
        let pattern = pattern(CallPart::Command, ["^git commit", "", "^make check"]);
        let found = fulfilled_by(&bash(line), &[pattern]);
        assert_eq!(!found.is_empty(), expected, "{line}");
    };
    check("make check", true);
    check("cd a && CI=1 make check -j4 2>&1 | tail -5", true);
    check("bash -lc 'make check'", true);
    check("make check; echo $?", true);
    check("make check || true", false);
    check("! make check", false);
    check("echo 'make check'", false);
    check("make build", false);
    check("make -n check", false);
    check("make check --help", false);
    check("uv run make check", true);
    let dry = pattern(
        CallPart::Command,
        ["^shipit go", "", "^shipit go.*--dry-run"],
    );
    let call = bash("shipit go --dry-run");
    assert!(!breaks(&call, "", std::slice::from_ref(&dry), &|_| false));
    assert!(!fulfilled_by(&call, &[dry]).is_empty());
    let probe = pattern(CallPart::Command, ["^shipit go", "", r"bin/probe\.sh"]);
    let done = |call: &Call| !fulfilled_by(call, std::slice::from_ref(&probe)).is_empty();
    assert!(done(&bash("bash bin/probe.sh")));
    assert!(!done(&bash("cat bin/probe.sh")));
    assert!(!done(&call_of_read("bin/probe.sh")));
}

fn call_of_read(path: &str) -> Call {
    call("Read", json!({ "file_path": path }))
}

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
fn another_tool_is_a_command_too() {
    let check = |tool: &str, input: Value, matches: &str, expected: bool| {
        let pattern = pattern(CallPart::Command, [matches, "", ""]);
        let found = breaks(&call(tool, input), "", &[pattern], &|_| false);
        assert_eq!(found, expected, "{tool} {matches}");
    };
    check("WebFetch", json!({"url": "https://x"}), "^WebFetch", true);
    check(
        "Read",
        json!({"file_path": "/home/u/p/.env"}),
        r"^Read \.env$",
        true,
    );
    check("mcp__web__get", json!({"url": "x"}), "^mcp__web__", true);
    check(
        "Edit",
        json!({"file_path": "a", "new_string": "WebFetch"}),
        "WebFetch",
        false,
    );
    check("Grep", json!({"pattern": "app_prod"}), "app_prod", false);
    let grep = json!({"pattern": "app", "path": "/home/u/p/vault"});
    check("Grep", grep.clone(), r"(^|\s)vault(/|\s|$)", true);
    check("Grep", grep.clone(), r"^rg\b.*vault", true);
    check("Grep", grep, r"^rg\b", false);
    check("Glob", json!({"pattern": "../vault/*"}), r"\bvault/", true);
}

#[test]
fn options_before_a_subcommand_hide_nothing() {
    let check = |line: &str, rule: &str, matches: &str, expected: bool| {
        let pattern = pattern(CallPart::Command, [matches, "", ""]);
        let found = breaks(&bash(line), rule, &[pattern], &|_| false);
        assert_eq!(found, expected, "{line}: {matches}");
    };
    let commit = "Never commit by yourself.";
    check("git -C web commit -m x", commit, "^git commit", true);
    check(
        "git -C web commit -m x", commit, r"^git commit(?![\w-])", true,
    );
    check("git -C web log commit", commit, "^git commit", false);
    let release = "Give `shipit release` the option `--env`.";
    check("shipit --env=a release", release, "^shipit release", false);
    check("shipit --far release", release, "^shipit release", true);
    for (line, rule, matches) in [
        (
            "kubectl --namespace web delete pod x",
            "Never delete without -n.",
            "^kubectl delete",
        ),
        (
            "aws --profile sand s3 ls",
            "aws immer mit dem Profil sand.",
            "^aws s3",
        ),
        (
            "cargo +nightly fmt",
            "Format with the nightly toolchain.",
            "^cargo fmt",
        ),
        (
            "npm --prefix web install",
            "npm install only in web/.",
            "^npm install",
        ),
    ] {
        check(line, rule, matches, false);
        check(line, "Leave that to me.", matches, true);
    }
    let absent = r"^shipit release(?!.*--env)";
    check("shipit --env=a release", "", absent, false);
}

#[test]
fn negated_beginning_is_tried_on_the_typed_command() {
    let check = |line: &str, matches: &str, expected: bool| {
        let pattern = pattern(CallPart::Command, [matches, "", ""]);
        let found = breaks(&bash(line), "", &[pattern], &|_| false);
        assert_eq!(found, expected, "{line}: {matches}");
    };
    let heap = r"^(?!.*\bHEAP=\d).*\bsite build\b";
    check("site build", heap, true);
    check("HEAP=8 site build", heap, false);
    check("cd web && HEAP=8 time site build", heap, false);
    check("export HEAP=8; site build", heap, false);
    check("export HEAP=8; cd web; site build", heap, false);
    check("export LEAP=8; site build", heap, true);
    check("sudo site install", r"^(?!sudo\b)site install", false);
    check("time site install", r"^(?!sudo\b)site install", true);
}

#[test]
fn a_file_tool_is_the_command_that_does_the_same() {
    let check = |tool: &str, input: Value, matches: &str, expected: bool| {
        let pattern = pattern(CallPart::Command, [matches, "", ""]);
        let found = breaks(&call(tool, input.clone()), "", &[pattern], &|_| false);
        assert_eq!(found, expected, "{tool} {input} {matches}");
    };
    let read = |path: &str| json!({ "file_path": path });
    let shown = r"^(cat|less|head)\b.*\.secrets\b";
    check("Read", read("/home/u/p/.secrets"), shown, true);
    check(
        "read_file",
        json!({"path": "/home/u/p/.secrets"}),
        shown,
        true,
    );
    check("Read", read("/home/u/p/a.rs"), shown, false);
    // A rule about the program says nothing about the tool.
    check("Read", read("/home/u/p/a.rs"), r"^cat\b", false);
    let write = json!({"file_path": "/home/u/p/probe.sh", "content": "x"});
    check("Write", write.clone(), r"(>|\btee)\s*probe\.sh", true);
    check("Write", write, r">\s*\S+", false);
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
fn an_exception_is_sought_where_an_option_hides_the_subcommand() {
    let rule = "kubectl delete only with -n sandbox";
    let of = pattern(
        CallPart::Command,
        [r"^kubectl delete\b", r"(^|\s)-n sandbox\b", ""],
    );
    let check = |line: &str, expected: bool| {
        let spoken = breaks(&bash(line), rule, std::slice::from_ref(&of), &|_| false);
        assert_eq!(spoken, expected, "{line}");
    };
    check("kubectl -n billing delete pod x", true);
    check("kubectl delete pod x -n billing", true);
    check("kubectl -n sandbox delete pod x", false);
    check("kubectl delete pod x -n sandbox", false);
}

#[test]
fn a_rehearsal_breaks_no_rule_about_what_is_done() {
    let check = |rule: &str, matches: &str, line: &str, expected: bool| {
        let of = pattern(CallPart::Command, [matches, "", ""]);
        let spoken = breaks(&bash(line), rule, &[of], &|_| false);
        assert_eq!(spoken, expected, "{line}");
    };
    let rule = "Never push to main.";
    check(
        rule,
        r"^git push\b.*\bmain\b",
        "git push --dry-run origin main",
        false,
    );
    check(rule, r"^git push\b.*\bmain\b", "git push origin main", true);
    check(
        "Use pnpm, not npm.", r"^npm\b", "npm publish --dry-run", true,
    );
    check(rule, r"^git push\b", "git help push", false);
    check(rule, r"^shipit\b.*\bgo\b", "shipit help go", false);
    check(
        "No dry runs of publish.",
        r"^npm publish\b",
        "npm publish --dry-run",
        true,
    );
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

#[test]
fn a_command_in_a_container_is_one_unless_the_rule_wants_it_there() {
    let check = |rule: &str, matches: &str, line: &str, expected: bool| {
        let of = pattern(CallPart::Command, [matches, "", ""]);
        let spoken = breaks(&bash(line), rule, &[of], &|_| false);
        assert_eq!(spoken, expected, "{line}");
    };
    let rule = "Never flush the cache.";
    let flush = r"(?i)^redis-cli\b.*\bflushall\b";
    check(rule, flush, "docker exec cache redis-cli FLUSHALL", true);
    check(
        rule,
        flush,
        "docker compose exec -T cache redis-cli FLUSHALL",
        true,
    );
    check(
        rule,
        flush,
        "kubectl -n shop exec cache-0 -- redis-cli flushall",
        true,
    );
    check(
        rule,
        flush,
        "docker exec cache sh -c 'redis-cli flushall'",
        true,
    );
    let npm = "Run npm in the container.";
    check(
        npm,
        r"^npm\b",
        "docker compose exec web sh -c 'npm ci'",
        false,
    );
    check(npm, r"^npm\b", "docker compose exec web npm ci", false);
    check(npm, r"^npm\b", "npm ci", true);
}
