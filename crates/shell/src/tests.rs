//! Tests of the commands of a line.

use proptest::prelude::*;

use super::*;

/// Each command without layers and quotes.
fn peeled(line: &str) -> Vec<String> {
    commands(line)
        .into_iter()
        .map(|simple| simple.typed.plain)
        .collect()
}

#[test]
fn the_last_of_many_commands_is_read() {
    let line = "cp a b\n".repeat(500) + "npm ci";
    let last = peeled(&line).pop();
    assert_eq!(last.as_deref(), Some("npm ci"));
}

#[test]
fn chains_wrappers_and_quotes_are_taken_off() {
    let check = |line: &str, expected: &[&str]| assert_eq!(peeled(line), expected, "{line}");
    check("npm i", &["npm i"]);
    check(
        "cd x && FOO=1 npm i; ls | wc -l",
        &["cd x", "npm i", "ls", "wc -l"],
    );
    check("sudo -u deploy -E npm i", &["npm i"]);
    check("doas -u www npm i", &["npm i"]);
    check(
        "env -i -u B A=1 nice -n 5 timeout -k 3 60 npm i",
        &["npm i"],
    );
    check("nohup setsid npm i &", &["npm i"]);
    check("time -p exec npm i", &["npm i"]);
    check("coproc npm i", &["npm i"]);
    check("ls | xargs -n 1 -I {} npm i {}", &["ls", "npm i {}"]);
    check(
        "find . -name '*.js' -exec npm i {} \\; -exec rm {} +",
        &[
            "npm i {}",
            "rm {}",
            "find . -name *.js -exec npm i {} ; -exec rm {} +",
        ],
    );
    check(
        "ssh -p 22 me@box 'cd app && npm i'",
        &["ssh -p 22 me@box cd app && npm i", "cd app", "npm i"],
    );
    check(
        "bash -lc \"cd x && npm i\"",
        &["bash -lc cd x && npm i", "cd x", "npm i"],
    );
    check(
        "echo $(npm root) `npm bin`",
        &["npm root", "npm bin", "echo $(npm root) `npm bin`"],
    );
    check(
        "echo \"in $(npm root)\"",
        &["npm root", "echo in $(npm root)"],
    );
    check("(npm i)", &["npm i"]);
    check("{ npm i; }", &["npm i"]);
    check("if true; then npm i; fi", &["true", "npm i"]);
    check("for a in npm yarn; do $a i; done", &["$a i"]);
    check("bash <<'EOF'\nnpm i\nEOF\nls", &["bash", "npm i", "ls"]);
    check("cat > a <<EOF\nnpm i\nEOF", &["cat"]);
    check("/usr/bin/npm i", &["npm i"]);
    check("\"npm\" 'i'", &["npm i"]);
    check("echo 'npm i' # npm i", &["echo npm i"]);
    check("! npm i", &["npm i"]);
    check("command -v npm", &["command -v npm"]);
    check("eval 'npm i'", &["eval npm i", "npm i"]);
    check("npm \\\n  i", &["npm i"]);
    check("a\nb", &["a", "b"]);
}

#[test]
fn each_layer_is_a_form() {
    let simple = &commands("A=1 sudo /bin/npm 'i x' > out")[0];
    let forms = &simple.typed.forms;
    let expected = [
        "A=1 sudo /bin/npm 'i x' > out",
        "sudo /bin/npm 'i x' > out",
        "/bin/npm 'i x' > out",
        "npm 'i x' > out",
    ];
    assert_eq!(forms, &expected);
    assert_eq!(simple.typed.plain, "npm i x");
}

#[test]
fn earlier_commands_of_the_line_are_reported() {
    let all = commands("export CI=1; cd web && A=2; rm x && ls");
    let rm = &all[3];
    assert_eq!((rm.words[0].as_str(), rm.directory.as_str()), ("rm", "web"));
    assert_eq!(rm.variables, "export CI=1\nA=2\n");
    let chains: Vec<usize> = all.iter().map(|one| one.chain).collect();
    assert_eq!(chains, [1, 2, 2, 3, 3]);
    assert_eq!(commands("echo a > b 2>&1")[0].targets, ["b"]);
}

#[test]
fn command_after_a_success_is_in_its_chain() {
    // Does `y` run only if `x` succeeded, and does the line fail if `x` does?
    let check = |line: &str, is_chained: bool, fails: bool| {
        let all = commands(line);
        let of = |name: &str| all.iter().find(|one| one.typed.plain == name).unwrap();
        assert_eq!(of("x").chain == of("y").chain, is_chained, "{line}");
        assert_eq!(!of("x").may_fail, fails, "{line}");
    };
    check("x && y", true, true);
    check("x; y", false, true);
    check("x | tail && y", false, true);
    check("set -euo pipefail; x | tail && y", true, true);
    check("x && a | tail && y", true, true);
    check("a && x && b; y", false, true);
    check("x || true; y", false, false);
    check("x || true && y", false, false);
    check("x || exit 1; y", true, true);
    check("x || exit 1\na && y", true, true);
    check("set -e\nx\ny", true, true);
    check("if x; then y; fi", true, true);
    check("x && if a; then y; fi", true, true);
    check("x && bash -c 'y'", true, true);
    check("bash -c 'a; x' && y", false, true);
    check("x && (a; b) && y", false, true);
    check("x && sudo sh -c 'a && b' && y", true, true);
    check("! x && y", true, false);
    check("x && a &\ny", false, true);
}

#[test]
fn files_that_are_handed_on_stand_in_the_command() {
    let check = |line: &str, program: &str, expected: &str| {
        let all = commands(line);
        let of = all
            .iter()
            .find(|one| one.executed.first().is_some_and(|name| name == program));
        let of = of.map(|one| [&one.executed[..], &one.targets[..]].concat().join(" "));
        assert_eq!(of.as_deref(), Some(expected), "{line}");
    };
    check(
        "find a -name '*.c' -exec shred -u {} +",
        "shred",
        "shred -u a/*.c",
    );
    check(
        r"find a b/ ! -name x -exec shred {} \;",
        "shred",
        "shred a/* b/*",
    );
    check("find a | xargs -0 shred", "shred", "shred a/*");
    check(
        "find a | grep -v x | xargs -I{} cp {} {}.old",
        "cp",
        "cp a/* a/*.old",
    );
    check("grep -rl spell a | xargs shred", "shred", "shred a");
    check("git ls-files a | xargs shred", "shred", "shred ls-files a");
    check("cat list | xargs shred", "shred", "shred");
    check(
        "for f in a/*.c b; do shred \"$f\"; done",
        "shred",
        "shred a/*.c b",
    );
    check(
        "for f in a; do shred $file > ${f}.log; done",
        "shred",
        "shred $file a.log",
    );
    check(
        "find a | while read -r f; do shred $f; done",
        "shred",
        "shred a/*",
    );
    check("shred $(rg -l spell a)", "shred", "shred a");
    check("uv run shred a", "shred", "shred a");
    assert_eq!(commands("docker exec web shred a")[0].executed, [""; 0]);
}

#[test]
fn values_that_the_line_gives_stand_in_the_command() {
    let check = |line: &str, expected: &[&str]| {
        let last = commands(line).pop().unwrap();
        assert_eq!(last.typed.filled, expected, "{line}");
    };
    check(
        "for s in spell potion; do $s cast; done",
        &["spell cast", "potion cast"],
    );
    check(
        "for n in 1 2; do spell cast \"${n}.txt\" b; done",
        &["spell cast 1.txt b", "spell cast 2.txt b"],
    );
    check(
        "BOOK=a/b; export PAGE=$BOOK/1; spell cast $PAGE",
        &["spell cast a/b/1"],
    );
    check("ls a | xargs spell -v", &["spell -v a"]);
    check("spell $PAGE", &[]);
    check("PAGE=1 spell $PAGE", &[]);
    check("spell {} a", &[]);
    let said = commands("for n in spell; do git commit -m \"$n\"; done").pop();
    assert_eq!(said.unwrap().silent.unwrap().filled, [""; 0]);
    let cd = commands("BOOK=a/b; cd $BOOK; spell cast").pop().unwrap();
    assert_eq!(cd.directory, "a/b");
}

#[test]
fn line_of_a_shell_behind_a_runner_is_read() {
    for line in [
        "docker exec -it web sh -c 'cd a && spell cast'",
        "docker compose exec web bash -lc \"spell cast\"",
        "kubectl -n far exec web-0 -- sh -c 'spell cast > a'",
        "docker exec -i web sh <<E\nspell cast\nE",
        "poetry run sh -c 'spell cast'",
    ] {
        let all = commands(line);
        let inner = all.iter().find(|one| one.typed.plain == "spell cast");
        let inner = inner.unwrap_or_else(|| panic!("{line}"));
        assert!(
            !inner.runners.is_empty() && inner.targets.is_empty(),
            "{line}"
        );
    }
}

proptest! {
    #[test]
    fn no_line_makes_it_panic(line in "[a-zé \"'\\\\$()<>|&;\n#={}`!-]{0,80}") {
        drop(commands(&line));
    }

    #[test]
    fn no_wrappers_make_it_panic(line in "(sudo |env |-u |x |timeout |xargs |find |-exec |ssh |bash |-c |A=1 |nice |; |docker |exec |for |in |\\{\\} |\\$x |\\| |uv |run ){0,12}") {
        drop(commands(&line));
    }
}
