//! Decides if a call breaks a rule, by the patterns of the rule.
//!
//! A command pattern is tried with each form of each simple command, and with the whole line; the
//! form without quotes only if the pattern has none. A call of a tool that is no shell is matched
//! only by a pattern that depends on the name of the tool. A path within the project is absolute
//! only for patterns that say so.
//!
//! `unless` rules out what it matches: for a command, any of its forms with the variables set
//! before it; for the whole line, the line; for content, the content and its files. Content with a place
//! (`within`) counts only in a file that matches: without a known file it does not. With `after`, a
//! call is fine if such a call succeeded earlier in the session, or stands before it in its chain. What
//! may fail without the line (`x || true`) has not succeeded.

use crate::model::{CallPart, CallPattern};

use super::call::{Call, Content};
use super::patterns::{Compiled, Expression};
use memctl_shell::Simple;

/// Returns `true` if one of the patterns matches the call. `is_done` says whether a call that
/// matches an `after` succeeded earlier.
pub fn breaks(call: &Call, patterns: &[CallPattern], is_done: &dyn Fn(&str) -> bool) -> bool {
    patterns.iter().any(|pattern| {
        let is_fine = !pattern.after.is_empty() && is_done(&pattern.after);
        !is_fine && Compiled::of(pattern).is_some_and(|compiled| compiled.matches_call(call))
    })
}

/// Returns the `after` expressions that a successful call matches.
pub fn fulfilled_by(call: &Call, patterns: &[CallPattern]) -> Vec<String> {
    let mut patterns: Vec<&CallPattern> = patterns.iter().collect();
    patterns.retain(|pattern| {
        let compiled = Compiled::of(pattern).and_then(|compiled| compiled.after);
        compiled.is_some_and(|after| {
            let sure = call.commands.iter().filter(|one| !one.may_fail);
            let is_sure = call.commands.iter().all(|one| !one.may_fail);
            let mut forms = sure.flat_map(Simple::texts);
            forms.any(|form| after.is_match(form)) || is_sure && after.is_match(&call.line)
        })
    });
    patterns.into_iter().map(|one| one.after.clone()).collect()
}

impl Compiled {
    fn matches_call(&self, call: &Call) -> bool {
        match self.on {
            CallPart::Command => self.matches_commands(call),
            CallPart::Path => call.paths.iter().any(|forms| {
                let forms = forms_for(&self.matches, forms);
                let is_seen = forms.iter().any(|form| self.matches.is_match(form));
                is_seen && !forms.iter().any(|form| self.rules_out(form))
            }),
            CallPart::Content => call.contents.iter().any(|content| {
                let files = call.files_of(content);
                let mut paths = files.iter().flatten();
                self.is_placed(files)
                    && !paths.any(|path| self.rules_out(path))
                    && self.is_new(content)
            }),
        }
    }

    fn matches_commands(&self, call: &Call) -> bool {
        let is_before = |at: usize| {
            let chain = call.commands.get(at).map(|one| one.chain);
            let before = call.commands[..at.min(call.commands.len())].iter();
            let mut before =
                before.filter(|one| !one.may_fail && chain.is_none_or(|chain| one.chain == chain));
            let after = self.after.as_ref();
            after
                .is_some_and(|after| before.any(|one| one.texts().any(|form| after.is_match(form))))
        };
        let mut commands = call.commands.iter().enumerate();
        if commands.any(|(at, simple)| self.matches_simple(simple) && !is_before(at)) {
            return true;
        }
        // A match of a single command is judged above, with its own `unless` and `after`.
        let is_single = |one: &Simple| self.forms(one).any(|form| self.matches.is_match(form));
        !call.line.is_empty()
            && !call.commands.iter().any(is_single)
            && self.matches.is_match(&call.line)
            && (call.unnamed.is_empty() || !self.matches.is_match(&call.unnamed))
            && !self.rules_out(&call.line)
            && !is_before(call.commands.len())
    }

    fn matches_simple(&self, simple: &Simple) -> bool {
        let mut forms = self.forms(simple);
        forms.any(|form| self.matches.is_match(form))
            && !simple.texts().any(|form| self.rules_out(form))
            && !self.rules_out(&simple.variables)
    }

    /// Forms of a command that the pattern is for.
    fn forms<'s>(&self, simple: &'s Simple) -> impl Iterator<Item = &'s str> + use<'s> {
        let has_quotes = self.matches.as_str().contains(['"', '\'']);
        let plain = (!has_quotes).then_some(simple.plain.as_str());
        simple.forms.iter().map(String::as_str).chain(plain)
    }

    /// Returns `true` if one of the files is where new text counts.
    fn is_placed(&self, files: &[Vec<String>]) -> bool {
        let is_at = |place: &Expression, forms: &[String]| {
            let mut forms = forms_for(place, forms).iter();
            forms.any(|form| place.is_match(form))
        };
        let is_in = |forms: &Vec<String>| self.within.iter().any(|place| is_at(place, forms));
        self.within.is_empty() || files.iter().any(is_in)
    }

    fn rules_out(&self, text: &str) -> bool {
        let unless = self.unless.as_ref();
        unless.is_some_and(|unless| unless.is_match(text))
    }

    /// Returns `true` if the new text has more matches than the text that it replaces.
    fn is_new(&self, content: &Content) -> bool {
        let count = |text: &str| self.matches.count(text);
        count(&content.new) > count(&content.old) && !self.rules_out(&content.new)
    }
}

/// Forms of a path that an expression is for.
fn forms_for<'p>(expression: &Expression, forms: &'p [String]) -> &'p [String] {
    let pattern = expression.as_str();
    // `[^/]` is a class.
    let mut places = pattern.match_indices("^/");
    let is_absolute = places.any(|(at, _)| !pattern[..at].ends_with('['));
    match forms {
        [relative @ .., _] if !relative.is_empty() && !is_absolute => relative,
        forms => forms,
    }
}

#[cfg(test)]
mod tests {
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
                breaks(&bash(line), &[pattern], &|_| false),
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
    fn what_rules_out_is_seen_beside_the_command() {
        let check = |line: &str, matches: &str, unless: &str, expected: bool| {
            let pattern = pattern(CallPart::Command, [matches, unless, ""]);
            let found = breaks(&bash(line), &[pattern], &|_| false);
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
        // The whole line.
        check("a && b", "&&", "", true);
        check("curl x | sh", r"curl .*\|\s*sh", "", true);
        check("a\nb", r"\n", "", true);
        check("git commit -m \"a\nb\"", "^git commit .*a b", "", true);
    }

    #[test]
    fn a_call_after_another_is_fine() {
        let check = |line: &str, is_done: bool, expected: bool| {
            let pattern = pattern(CallPart::Command, ["^git commit", "", "^cargo fmt"]);
            let found = breaks(&bash(line), &[pattern], &|_| is_done);
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
    fn what_succeeded_makes_later_calls_fine() {
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
    }

    #[test]
    fn changed_paths_are_tried_in_all_forms() {
        let check = |tool: &str, input: Value, matches: &str, expected: bool| {
            let found = breaks(
                &call(tool, input.clone()),
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
        let patch = "*** Begin Patch\n*** Update File: ../db/1.sql\n@@\n-a\n+b\n*** End Patch";
        check("apply_patch", json!({ "input": patch }), "^db/", true);
    }

    #[test]
    fn only_new_content_counts() {
        let check = |old: &str, new: &str, expected: bool| {
            let input = json!({"file_path": "src/a.ts", "old_string": old, "new_string": new});
            let pattern = pattern(CallPart::Content, [r"console\.log", r"\.test\.ts$", ""]);
            let found = breaks(&call("Edit", input), &[pattern], &|_| false);
            assert_eq!(found, expected, "{old} → {new}");
        };
        check("a", "console.log(a)", true);
        check("console.log(a)\nb", "console.log(a)\nc", false);
        check("console.log(a)", "console.log(a)\nconsole.log(b)", true);
        let input = json!({"file_path": "src/a.test.ts", "content": "console.log(a)"});
        let pattern = pattern(CallPart::Content, [r"console\.log", r"\.test\.ts$", ""]);
        assert!(!breaks(&call("Write", input), &[pattern], &|_| false));
    }

    #[test]
    fn text_with_a_place_counts_only_in_its_files() {
        let any = CallPattern {
            within: vec![r"^src/.*\.ts$".to_owned(), r"(^|/)web/".to_owned()],
            ..pattern(CallPart::Content, [r"\bany\b", r"\.d\.ts$", ""])
        };
        let check = |call: &Call, expected: bool, why: &str| {
            let found = breaks(call, std::slice::from_ref(&any), &|_| false);
            assert_eq!(found, expected, "{why}");
        };
        let write =
            |path: &str, text: &str| call("Write", json!({"file_path": path, "content": text}));
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
                .any(|call| breaks(call, std::slice::from_ref(&broken), &|_| false))
        );
    }

    #[test]
    fn another_tool_is_a_command_too() {
        let check = |tool: &str, input: Value, matches: &str, expected: bool| {
            let pattern = pattern(CallPart::Command, [matches, "", ""]);
            let found = breaks(&call(tool, input), &[pattern], &|_| false);
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
    }
}
