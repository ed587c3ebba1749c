//! Regular expressions of rules: checked before they are stored, compiled, and matched.
//!
//! `regex_lite` matches in linear time. It has no look-around, which models write all the same
//! (`^npm\s+i(?!.*--dry-run)`): such an expression is tried for at most [`STEPS`] steps, and matches
//! nothing if they do not suffice. So a bad pattern loses a note, and never the time of an agent.
//!
//! In a command `^` is the beginning of a simple command or of the line; in content, the beginning of
//! any line.
//!
//! A command pattern is tried with each form of each simple command, and with the whole line if it has a sign
//! of a chain; one with a sign of a pipe with each pipeline. The form without quotes is only for a pattern that
//! has none. The form without the options before a subcommand, or without a runner such as `npx`, is
//! not for a rule that speaks of one of these, and the first not for a pattern that looks for what is absent.
//! Text for people, such as the message of a commit, is only for a pattern that names the program, or for a
//! rule about messages. What
//! may not stand at the beginning (`^(?!…)`) may stand in no form, and in no variable set before. A call of a
//! tool that is no shell is matched only by a pattern that depends on the name of the tool, or on the path of
//! a command that does the same. A path within the project is absolute only for patterns that say so.
//!
//! A pattern that speaks of code is no pattern for prose: in Markdown and other texts it counts only if its
//! place names them.
//!
//! `unless` rules out what it matches: for a command, any of its forms with the variables set
//! before it; for the whole line, the line; for content, the content and its files. Content with a place
//! (`within`) counts only in a file that matches: without a known file it does not. With `after`, a
//! call is fine if such a call succeeded earlier in the session, or stands before it in its chain. What
//! may fail without the line (`x || true`) has not succeeded, and neither has a dry run or a look.

use memctl_shell::{Bare, Simple};

use super::call::{Call, Content};
use super::command::{has_pipe, is_help, names_taken, only_looks, reading, spans_commands};
use crate::model::{CallPart, CallPattern};

/// Maximum length of an expression, in bytes.
const LONGEST: usize = 2_000;
/// Maximum number of patterns of a rule.
const MOST: usize = 24;
/// Maximum size of a compiled expression, in bytes.
const LARGEST: usize = 1 << 18;
/// Maximum size of a part without look-around, in an expression with it.
const LARGEST_DELEGATE: usize = 1 << 20;
/// Maximum number of steps of a match that looks around: some milliseconds, and more than the
/// characters of the longest text.
const STEPS: usize = 250_000;
/// Beginnings of look-around.
const LOOKS: [&str; 4] = ["(?=", LOOK_AHEAD, "(?<=", "(?<!"];
/// Beginning of a look-ahead for what is absent.
const LOOK_AHEAD: &str = "(?!";

/// Texts of many kinds: an expression that matches all of them says nothing.
const ANYTHING: [&str; 8] = [
    "ls", "cat notes.txt", "echo hello world", "README.md", "src/main.rs", "/home/me/a/b.py",
    "let total = 1;", "make test 2>&1 | tail",
];

/// Reason to refuse a pattern, with the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct BadPattern {
    reason: String,
    /// Form to give instead.
    pub hint: &'static str,
}

impl BadPattern {
    fn new(reason: String, hint: &'static str) -> Self {
        Self { reason, hint }
    }

    fn too_large(reason: String) -> Self {
        let hint =
            "chains, wrappers, assignments and quotes are taken off first: `^npm\\b` is enough";
        Self::new(reason, hint)
    }

    fn too_many() -> Self {
        Self::too_large(format!("a rule has at most {MOST} patterns"))
    }
}

/// Checks the patterns of a rule.
pub fn checked(patterns: &[CallPattern]) -> Result<(), BadPattern> {
    if patterns.len() > MOST {
        return Err(BadPattern::too_many());
    }
    patterns
        .iter()
        .try_for_each(|pattern| Compiled::of(pattern).map(drop))
}

fn is_everything(regex: &Expression) -> bool {
    regex.is_match("") || ANYTHING.iter().all(|text| regex.is_match(text))
}

/// Expression that is ready to match.
#[derive(Debug)]
pub(crate) enum Expression {
    /// Matches in linear time.
    Linear(regex_lite::Regex),
    /// Looks around; matches in a bounded number of steps.
    LooksAround(fancy_regex::Regex),
}

impl Expression {
    /// Compiles an expression; the error is the message of the parser.
    fn of(on: CallPart, pattern: &str) -> Result<Self, String> {
        let multi_line = on == CallPart::Content;
        if LOOKS.iter().any(|look| pattern.contains(look)) {
            let mut builder = fancy_regex::RegexBuilder::new(pattern);
            builder.multi_line(multi_line).backtrack_limit(STEPS);
            let built = builder.delegate_size_limit(LARGEST_DELEGATE).build();
            return built
                .map(Self::LooksAround)
                .map_err(|error| error.to_string());
        }
        let mut builder = regex_lite::RegexBuilder::new(pattern);
        let built = builder.multi_line(multi_line).size_limit(LARGEST).build();
        built.map(Self::Linear).map_err(|error| error.to_string())
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        match self {
            Self::Linear(regex) => regex.is_match(text),
            Self::LooksAround(regex) => regex.is_match(text).unwrap_or(false),
        }
    }

    /// Returns the number of matches, up to the one that takes too many steps.
    pub(crate) fn count(&self, text: &str) -> usize {
        match self {
            Self::Linear(regex) => regex.find_iter(text).count(),
            Self::LooksAround(regex) => regex.find_iter(text).map_while(Result::ok).count(),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Linear(regex) => regex.as_str(),
            Self::LooksAround(regex) => regex.as_str(),
        }
    }
}

/// Pattern that is ready to match.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) on: CallPart,
    pub(crate) matches: Expression,
    pub(crate) unless: Option<Expression>,
    /// Expression that no command may begin with.
    not_ahead: Option<Expression>,
    /// It looks for what is absent, beyond the end of a word.
    wants_absent: bool,
    pub(crate) after: Option<Expression>,
    /// Places of new text; empty: everywhere.
    pub(crate) within: Vec<Expression>,
}

impl Compiled {
    /// Checks and compiles a pattern. One that cannot be compiled never matches.
    fn of(pattern: &CallPattern) -> Result<Self, BadPattern> {
        let compiled = |on, text: &String| {
            if text.len() > LONGEST {
                let reason = format!("a pattern has at most {LONGEST} bytes");
                return Err(BadPattern::too_large(reason));
            }
            Expression::of(on, text).map_err(|reason| {
                let reason = format!("`{text}` is not a valid regular expression: {reason}");
                BadPattern::new(reason, "write it as for ripgrep: `^npm\\b`")
            })
        };
        let telling = |on, text: &String| {
            let expression = compiled(on, text)?;
            if is_everything(&expression) {
                let reason = format!("`{text}` matches every call");
                let hint = "begin with the program, as in `^npm\\b`";
                return Err(BadPattern::new(reason, hint));
            }
            Ok(expression)
        };
        // An exception that matches everything would rule out every match.
        let optional =
            |on, text: &String| (!text.is_empty()).then(|| telling(on, text)).transpose();
        let (on, within) = (pattern.on, &pattern.within);
        let matches = telling(on, &pattern.matches)?;
        if !within.is_empty() && on != CallPart::Content {
            let reason = "only new text has a place".to_owned();
            return Err(BadPattern::new(reason, "give `within` beside `content`"));
        }
        if within.len() > MOST {
            return Err(BadPattern::too_many());
        }
        let within = within.iter().map(|place| compiled(CallPart::Path, place));
        let not_ahead = leading_look_ahead(&pattern.matches);
        let not_ahead =
            not_ahead.and_then(|(absent, _)| Expression::of(on, &format!("^(?:{absent})")).ok());
        Ok(Self {
            on,
            matches,
            unless: optional(on, &pattern.unless)?,
            not_ahead,
            wants_absent: wants_absent(&pattern.matches),
            after: optional(CallPart::Command, &pattern.after)?,
            within: within.collect::<Result<_, _>>()?,
        })
    }
}

/// Returns the part of an expression that may not stand at its beginning (`^(?!part)rest`), and the
/// expression without it.
pub(crate) fn leading_look_ahead(pattern: &str) -> Option<(&str, String)> {
    let start = pattern.strip_prefix('^').unwrap_or(pattern);
    let begin = &pattern[..pattern.len() - start.len()];
    let inside = start.strip_prefix(LOOK_AHEAD)?;
    let end = end_of_group(inside)?;
    Some((&inside[..end], format!("{begin}{}", &inside[end + 1..])))
}

/// Returns the place of the parenthesis that closes a group, given the text behind its beginning.
pub(crate) fn end_of_group(inside: &str) -> Option<usize> {
    let (mut depth, mut in_class, mut is_escaped) = (1_usize, false, false);
    for (at, c) in inside.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' if !in_class => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => depth += 1,
            ')' if !in_class => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns `true` if an expression looks for what is absent. `git(?![\w-])` only ends a word.
fn wants_absent(pattern: &str) -> bool {
    let mut looks = pattern.split(LOOK_AHEAD).skip(1);
    looks.any(|inside| {
        let inside = &inside[..end_of_group(inside).unwrap_or(inside.len())];
        let is_class = inside.starts_with('[') && inside.find(']') == Some(inside.len() - 1);
        !is_class && inside.len() > 2
    })
}

/// Returns `true` if one of the patterns of a rule with these words matches the call. `is_done` says whether
/// a call that matches an `after` succeeded earlier.
pub fn breaks(
    call: &Call,
    rule: &str,
    patterns: &[CallPattern],
    is_done: &dyn Fn(&str) -> bool,
) -> bool {
    patterns.iter().any(|pattern| {
        let is_fine = !pattern.after.is_empty() && is_done(&pattern.after);
        !is_fine && Compiled::of(pattern).is_ok_and(|compiled| compiled.matches_call(call, rule))
    })
}

/// Extensions of files with text for people.
const PROSE: [&str; 7] = ["md", "markdown", "mdx", "rst", "txt", "adoc", "asciidoc"];

fn is_prose(forms: &[String]) -> bool {
    let path = forms.last().map_or("", String::as_str);
    let extension = path.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|one| PROSE.iter().any(|prose| one.eq_ignore_ascii_case(prose)))
}

/// Returns `true` if an expression speaks of code: a call, a member, an operator, or a keyword that it begins
/// with.
fn is_of_code(pattern: &str) -> bool {
    const SIGNS: [&str; 8] = [r"\{", "::", "=>", "->", "==", ";", "#include", r"\$\{"];
    const KEYWORDS: [&str; 12] = [
        "import", "from", "require", "include", "def", "fn", "func", "class", "const", "let",
        "var", "return",
    ];
    // `console\s*\??\.(?:log|info)` is a member, too.
    let dense = pattern.replace(r"\s*", "").replace(r"\?", "");
    let dense = dense.replace(['?', ':', '(', '['], "");
    let parts: Vec<&str> = dense.split(r"\.").collect();
    let is_member = |two: &[&str]| {
        let ends = two[0].ends_with(|c: char| c.is_ascii_lowercase());
        ends && two[1].starts_with(|c: char| c.is_ascii_lowercase())
    };
    let is_address = pattern.contains("http") || pattern.contains("www");
    // `\]\(` is a link.
    let mut calls = pattern.match_indices(r"\(");
    let is_call = calls.any(|(at, _)| at > 0 && !pattern[..at].ends_with(']'));
    let begin = pattern.trim_start_matches("(?m)").trim_start_matches('^');
    let begin = begin.trim_start_matches(r"\s*").trim_start_matches(r"\b");
    let mut keywords = KEYWORDS.iter().filter_map(|word| begin.strip_prefix(word));
    is_call
        || !is_address && pattern.contains("//")
        || SIGNS.iter().any(|sign| pattern.contains(sign))
        || !is_address && parts.windows(2).any(is_member)
        || keywords.any(|rest| rest.starts_with([' ', '\\']))
}

/// Returns the `after` expressions that a successful call matches.
pub fn fulfilled_by(call: &Call, patterns: &[CallPattern]) -> Vec<String> {
    let mut patterns: Vec<&CallPattern> = patterns.iter().collect();
    patterns.retain(|pattern| {
        let after = Compiled::of(pattern)
            .ok()
            .and_then(|compiled| compiled.after);
        after.is_some_and(|after| {
            let mut sure = call.commands.iter().filter(|one| !one.may_fail);
            let is_sure = |one: &Simple| !one.may_fail && !only_looks(one, after.as_str());
            let is_line = call.is_tool() || spans_commands(after.as_str());
            sure.any(|simple| fulfils(&after, simple))
                || is_line
                    && call.commands.iter().all(is_sure)
                    && after.is_match(&call.line)
                    && !call.is_match_unnamed(&after)
        })
    });
    patterns.into_iter().map(|one| one.after.clone()).collect()
}

/// Returns `true` if a command is what an `after` wants, and not only a look at it.
fn fulfils(after: &Expression, simple: &Simple) -> bool {
    let mut texts = reading(simple, "", after.as_str()).texts();
    texts.any(|text| after.is_match(text)) && !only_looks(simple, after.as_str())
}

impl Compiled {
    fn matches_call(&self, call: &Call, rule: &str) -> bool {
        match self.on {
            CallPart::Command => self.matches_commands(call, rule) || self.matches_alike(call),
            CallPart::Path => call.paths.iter().any(|forms| {
                let forms = forms_for(&self.matches, forms);
                let is_seen = forms.iter().any(|form| self.matches.is_match(form));
                is_seen && !forms.iter().any(|form| self.rules_out(form))
            }),
            CallPart::Content => call.contents.iter().any(|content| {
                let files = call.files_of(content);
                let mut paths = files.iter().flatten();
                self.is_placed(files)
                    && !self.is_out_of_place(files)
                    && !paths.any(|path| self.rules_out(path))
                    && self.is_new(content)
            }),
        }
    }

    /// Returns `true` if a command that does the same as a tool matches, because of its path.
    fn matches_alike(&self, call: &Call) -> bool {
        call.alike.iter().any(|alike| {
            self.matches.is_match(&alike.command)
                && !self.matches.is_match(&alike.pathless)
                && !self.rules_out(&alike.command)
        })
    }

    fn matches_commands(&self, call: &Call, rule: &str) -> bool {
        let is_before = |at: usize| {
            let chain = call.commands.get(at).map(|one| one.chain);
            let before = call.commands[..at.min(call.commands.len())].iter();
            let mut before =
                before.filter(|one| !one.may_fail && chain.is_none_or(|chain| one.chain == chain));
            let after = self.after.as_ref();
            after.is_some_and(|after| before.any(|one| fulfils(after, one)))
        };
        let mut commands = call.commands.iter().enumerate();
        if commands.any(|(at, simple)| {
            let is_match = self.matches_simple(simple, rule) || self.matches_pipeline(simple);
            is_match && !is_before(at)
        }) {
            return true;
        }
        // A match of a single command is judged above, with its own `unless` and `after`.
        let is_single = |one: &Simple| {
            self.forms(one, rule)
                .any(|form| self.matches.is_match(form))
        };
        (call.is_tool() || spans_commands(self.matches.as_str()))
            && !call.commands.iter().any(is_single)
            && self.matches.is_match(&call.line)
            && !call.is_match_unnamed(&self.matches)
            && !self.rules_out(&call.line)
            && !is_before(call.commands.len())
    }

    fn matches_simple(&self, simple: &Simple, rule: &str) -> bool {
        let mut forms = self.forms(simple, rule);
        let own = simple.quiet.as_ref().unwrap_or(&simple.typed);
        let after = self.after.as_ref();
        forms.any(|form| self.matches.is_match(form))
            && !own.texts().any(|form| self.rules_out(form))
            && !self.rules_out(&simple.variables)
            && !self.is_ahead(simple)
            && !is_help(simple, self.matches.as_str())
            // The first command breaks nothing itself.
            && !after.is_some_and(|after| fulfils(after, simple))
    }

    /// Returns `true` if the pipeline that ends with a command matches.
    fn matches_pipeline(&self, simple: &Simple) -> bool {
        let mut pipelines = simple.pipeline.iter();
        has_pipe(self.matches.as_str())
            && pipelines.any(|form| self.matches.is_match(form))
            && !simple.pipeline.iter().any(|form| self.rules_out(form))
            && !self.rules_out(&simple.variables)
    }

    /// Returns `true` if what may not stand at the beginning does, in a form or in a variable set before.
    fn is_ahead(&self, simple: &Simple) -> bool {
        let Some(absent) = &self.not_ahead else {
            return false;
        };
        let written = simple.typed.forms.iter().map(String::as_str);
        let mut texts = written.chain(simple.variables.lines());
        texts.any(|text| absent.is_match(text))
    }

    /// Forms of a command that the pattern is for.
    fn forms<'s>(&self, simple: &'s Simple, rule: &str) -> impl Iterator<Item = &'s str> + use<'s> {
        // Text that a shell reads in another way between quotation marks is sought as it is typed.
        let pattern = self.matches.as_str();
        let is_about_quotes = pattern.contains(['"', '\''])
            || [r"\$", r"\*", r"\["]
                .iter()
                .any(|sign| pattern.contains(sign));
        let reading = reading(simple, rule, pattern);
        let plain = (!is_about_quotes).then_some(&reading.plain);
        let looks_behind = pattern.contains("(?<");
        let is_for = |bare: &Bare| {
            let is_wanted = self.wants_absent && bare.lacks_options || looks_behind;
            !is_wanted && !names_taken(rule, bare)
        };
        let bare: Vec<&Bare> = reading.bare.iter().filter(|bare| is_for(bare)).collect();
        let bare = bare.into_iter().flat_map(|bare| &bare.forms);
        let written = reading.forms.iter().chain(plain).chain(&reading.fed);
        written.chain(bare).map(String::as_str)
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

    /// Returns `true` if the pattern speaks of code, and all its files are prose that its places do not name.
    fn is_out_of_place(&self, files: &[Vec<String>]) -> bool {
        let names_prose = |place: &Expression| {
            let place = place.as_str();
            place.contains("doc") || PROSE.iter().any(|extension| place.contains(extension))
        };
        !files.is_empty()
            && files.iter().all(|forms| is_prose(forms))
            && !self.within.iter().any(names_prose)
            && is_of_code(self.matches.as_str())
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
    use super::*;

    fn pattern(on: CallPart, matches: &str, unless: &str) -> CallPattern {
        CallPattern {
            on,
            matches: matches.to_owned(),
            unless: unless.to_owned(),
            ..CallPattern::default()
        }
    }

    #[test]
    fn patterns_without_sense_are_refused() {
        let check = |matches: &str, unless: &str, expected: Option<&str>| {
            let found = checked(&[pattern(CallPart::Command, matches, unless)]);
            let found = found.err().map(|error| error.to_string());
            let is_right = match (&found, expected) {
                (None, None) => true,
                (Some(found), Some(expected)) => found.contains(expected),
                _ => false,
            };
            assert!(is_right, "{matches} {unless}: {found:?}");
        };
        check(r"^npm\b", "", None);
        check(r"^git push\b", "--dry-run", None);
        check(r"\n", "", None);
        check("", "", Some("matches every call"));
        check(".*", "", Some("matches every call"));
        check("a?", "", Some("matches every call"));
        check(r"\S", "", Some("matches every call"));
        check(r"^npm\b", ".*", Some("matches every call"));
        check("(npm", "", Some("not a valid regular expression"));
        check("npm(?! ci)", "(?<!a)b(?=c)", None);
        check("(?=.*)", "", Some("matches every call"));
        check("npm(?! ci", "", Some("not a valid regular expression"));
        check(&"a".repeat(LONGEST + 1), "", Some("at most"));
        check(
            "(a{1000}){1000}",
            "",
            Some("not a valid regular expression"),
        );
        let placed = |on: CallPart, place: &str| {
            checked(&[CallPattern {
                within: vec![place.to_owned()],
                ..pattern(on, "x", "")
            }])
        };
        assert_eq!(placed(CallPart::Content, r"\.ts$"), Ok(()));
        assert!(placed(CallPart::Command, r"\.ts$").is_err());
        assert!(placed(CallPart::Content, "(").is_err());
        let many = vec![pattern(CallPart::Command, "^npm", ""); MOST + 1];
        assert_eq!(checked(&many), Err(BadPattern::too_many()));
    }

    #[test]
    fn look_around_is_matched_in_bounded_time() {
        let regex = |pattern: &str| Expression::of(CallPart::Content, pattern).unwrap();
        let print = regex(r"(?<![\w.])print\s*\(");
        assert_eq!(print.count("print(a)\nlog.print(b)\n  print (c)"), 2);
        assert!(print.is_match(&("x ".repeat(60_000) + "print(1)")));
        let start = std::time::Instant::now();
        let slow = regex("^(a|a)+(a|aa)+$(?!b)");
        assert!(!slow.is_match(&("a".repeat(5_000) + "c")));
        assert!(start.elapsed().as_secs() < 5);
    }
}

#[cfg(test)]
mod tests_of_matching {
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
    fn what_rules_out_is_seen_beside_the_command() {
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
    fn what_a_runner_runs_is_matched_unless_the_rule_is_about_the_runner() {
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
        let runner = "Run spectest only with `uv run`.";
        check("uv run spectest", runner, "^spectest", false);
        check("spectest", runner, "^spectest", true);
        let started = "Never start spectest directly, the venv has another one.";
        check("uv run spectest", started, "^spectest", false);
        check("spectest", started, "^spectest", true);
        let after = pattern(CallPart::Command, ["^git push", "", "^spectest"]);
        assert!(
            !fulfilled_by(&bash("bundle exec spectest"), std::slice::from_ref(&after)).is_empty()
        );
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
        let patch = "*** Begin Patch\n*** Update File: ../db/1.sql\n@@\n-a\n+b\n*** End Patch";
        check("apply_patch", json!({ "input": patch }), "^db/", true);
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
    fn what_may_not_be_ahead_is_looked_for_in_the_command_as_it_is_typed() {
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
}
