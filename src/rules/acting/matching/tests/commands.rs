//! A command in the forms in which a pattern finds it, also behind options and runners.

use super::*;

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
fn command_in_another_directory_names_its_place() {
    let check = |line: &str, texts: [&str; 3], expected: bool| {
        let found = breaks(
            &bash(line),
            "",
            &[pattern(CallPart::Command, texts)],
            &|_| false,
        );
        assert_eq!(found, expected, "{line}: {texts:?}");
    };
    let moved = [r"^mv\b.*\bart/", "", ""];
    check("cd ../art && mv -n a.png b.png", moved, true);
    check("cd ../art/icons && mv a.png b.png", moved, true);
    check("D=../art; cd $D; mv a.png b.png", moved, true);
    check("cd ../artist && mv a.png b.png", moved, false);
    check(
        "cd ../art && ls && cd ../web && mv a.png b.png",
        moved,
        false,
    );
    check(
        "cd ../keys && base64 root.pem",
        [r"\bkeys/root\.pem", "", ""],
        true,
    );
    check(
        "cd ../pkg/own-a && npm publish",
        [r"^npm publish\b.*/own-", "", ""],
        true,
    );
    check(
        "cd ../pkg && npm publish",
        [r"^npm publish\s+\S", "", ""],
        false,
    );
    check("cd ../art && git commit -m 'mv art/a'", moved, false);
    check("cd ../build && rm -r a", [r"^rm\b", r"\bbuild/", ""], false);
    // The agent works in web.
    check("mv a.png b.png", [r"^mv\b.*\bweb/", "", ""], true);
}

#[test]
fn a_loop_runs_each_of_its_values() {
    let check = |line: &str, matches: &str, expected: bool| {
        let of = pattern(CallPart::Command, [matches, "", ""]);
        assert_eq!(
            breaks(&bash(line), "", &[of], &|_| false),
            expected,
            "{line}: {matches}"
        );
    };
    check(
        "for h in live-1 live-2; do ssh $h reboot; done",
        r"^ssh live-2\b",
        true,
    );
    check("h=live-1; ssh \"$h\" reboot", r"^ssh live-", true);
    check(
        "for h in test-1; do ssh $h reboot; done",
        r"^ssh live-",
        false,
    );
    check(
        "ssh live-1 <<'E'\nreboot\nE",
        r"^ssh live-.*\breboot\b",
        true,
    );
    check(
        "for f in ../db/*.sql; do cat $f; done",
        r"^cat .*\.sql\b",
        true,
    );
}

#[test]
fn a_dry_run_is_known_in_its_spellings() {
    let check = |line: &str, matches: &str, expected: bool| {
        let of = pattern(CallPart::Command, [matches, "", ""]);
        assert_eq!(
            breaks(&bash(line), "", &[of], &|_| false),
            expected,
            "{line}: {matches}"
        );
    };
    check(
        "shipit sync a --delete --dryrun",
        r"^shipit sync\b.*--delete",
        false,
    );
    check(
        "shipit -z far publish --dry_run=yes",
        r"^shipit\b.*\bpublish\b",
        false,
    );
    check("shipit publish --what-if", r"^shipit publish\b", false);
    check("shipit publish --dry-fruit", r"^shipit publish\b", true);
    check("echo 'shipit publish' > /dev/null", "shipit publish", false);
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

#[test]
fn options_of_an_unknown_program_hide_nothing() {
    let check = |line: &str, matches: &str, expected: bool| {
        let of = pattern(CallPart::Command, [matches, "", ""]);
        let rule = "Do not start it directly; use the button.";
        assert_eq!(
            breaks(&bash(line), rule, &[of], &|_| false),
            expected,
            "{line}: {matches}"
        );
    };
    check("shipit -v release", "^shipit release", true);
    check("shipit -z far release", "^shipit release", true);
    check("npx spellcheck a", r"^spellcheck\b", true);
    check("podbox shell web -- spellcheck a", r"^spellcheck\b", true);
}
