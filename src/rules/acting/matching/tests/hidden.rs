//! A command behind options and runners.

use super::*;

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
