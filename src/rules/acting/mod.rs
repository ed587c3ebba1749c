//! Rules that act on calls: those whose patterns this user has approved.
//!
//! A derived table holds texts that every match of a pattern contains, so that a call reads only the rules
//! that it may break. The table only pre-selects: each rule is read from its file, matched, and compared
//! with the user's approval. A damaged or stale table can lose a note, and never adds one. Each number in the
//! table stands for the part of the call and up to three trigrams of one text. The trigrams are hashed, so a
//! collision costs a comparison and loses no match. `^` counts as a character.
//!
//! Rules of the memory come first, then those of the user store. Rules of other workspaces never act,
//! because nobody has approved their patterns here.

pub(crate) mod at_call;
pub(crate) mod call;
mod changed_paths;
mod command;
pub(crate) mod matching;
pub(crate) mod patterns;
pub(crate) mod receipts;

use call::Call;
use fancy_regex::{Assertion, Expr};
use matching::{breaks, fulfilled_by};
use memctl_sessions::Step;

use crate::model::{CallAction, CallPart, CallPattern, Kind, Reflexion, USER_STORE, with_origin};
use crate::store::workspace::Error;
use crate::store::{Scoped, Terms};

/// Version of the numbers in the table. A change invalidates saved tables.
const SCHEME: u64 = 3;

/// Rebuilds the table after rules have changed, so that no later call has to.
pub(crate) fn prepare(store: &Scoped) -> Result<(), Error> {
    table(store).map(drop)
}

/// Tables of the memory and of the user store.
pub(crate) struct Tables<'s>(Vec<(Terms, &'s Scoped)>);

impl<'s> Tables<'s> {
    pub(crate) fn open(store: &'s Scoped) -> Result<Self, Error> {
        let mut tables = vec![(table(store)?, store)];
        if let Some(user) = store.user_store() {
            // A user store that cannot be read is no reason to keep the others back.
            tables.extend(table(user).ok().map(|table| (table, user)));
        }
        tables.retain(|(table, _)| !table.is_blank());
        Ok(Self(tables))
    }

    /// Returns `true` if no rule has patterns.
    pub(crate) fn is_blank(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the rules that a call breaks and that act, with their ids as seen from here.
    pub(crate) fn broken(&self, call: &Call, is_done: &dyn Fn(&str) -> bool) -> Vec<Reflexion> {
        let parts = [
            (CallPart::Command, Trigrams::of(call.command_texts())),
            (CallPart::Path, Trigrams::of(call.path_texts())),
            (CallPart::Content, Trigrams::of(call.content_texts())),
        ];
        let may_break = |number: u64| {
            let mut parts = parts.iter();
            parts.any(|(part, trigrams)| trigrams.may_match(*part as Place, number))
        };
        self.confirmed(&may_break, &|rule| {
            breaks(call, &rule.rule, &rule.seen_by, is_done)
        })
    }

    /// Returns the `after` expressions of acting rules that a successful call matches.
    pub(crate) fn fulfilled(&self, call: &Call) -> Vec<String> {
        let trigrams = Trigrams::of(call.command_texts());
        let may_fulfil = |number: u64| trigrams.may_match(SUCCESS, number);
        let rules = self.confirmed(&may_fulfil, &|_| true).into_iter();
        rules
            .flat_map(|rule| fulfilled_by(call, &rule.seen_by))
            .collect()
    }

    /// Returns the first rule in force that forbids what a lesson advises, its working call or a command
    /// between backticks in its words, regardless of what ran before.
    pub(crate) fn against(&self, working: &str, lesson: &str) -> Option<Reflexion> {
        let mut rules = advised(working, lesson).flat_map(|line| {
            let step = Step {
                tool: "Bash".to_owned(),
                input: serde_json::json!({ "command": line }),
                ..Step::default()
            };
            // A call that is fine after another one is not forbidden.
            self.broken(&Call::of(&step, &[]), &|_| true)
        });
        rules.next()
    }

    fn confirmed(
        &self,
        may_match: &dyn Fn(u64) -> bool,
        matches: &dyn Fn(&Reflexion) -> bool,
    ) -> Vec<Reflexion> {
        let mut all = Vec::new();
        for (table, store) in &self.0 {
            let mut entries: Vec<u32> = table
                .postings()
                .filter(|(number, _)| may_match(*number))
                .map(|(_, entry)| entry)
                .collect();
            entries.sort_unstable();
            entries.dedup();
            let rules = entries.into_iter().filter_map(|number| {
                let rule: Reflexion = table.entry(number)?.parse().ok()?;
                (rule.action != CallAction::Off && matches(&rule)).then_some(rule)
            });
            let mut rules: Vec<Reflexion> = rules.collect();
            if rules.is_empty() {
                continue;
            }
            let own = store.approvals().own_words();
            rules.retain(|rule| own.lets_act(rule));
            for rule in rules.iter_mut().filter(|_| store.is_of_user()) {
                rule.reflexion_id = with_origin(&rule.reflexion_id, USER_STORE);
            }
            all.append(&mut rules);
        }
        all
    }
}

/// Table of rules by the texts of their patterns, without rules that are not in use.
fn table(store: &Scoped) -> Result<Terms, Error> {
    let of = |entry: &[u8]| {
        if memchr::memmem::find(entry, b"\"seen_by\"").is_none() {
            return Vec::new();
        }
        let rule = serde_json::from_slice::<Reflexion>(entry).ok();
        let rule = rule.filter(Reflexion::is_in_use);
        let patterns = rule.map(|rule| rule.seen_by).unwrap_or_default();
        patterns.iter().flat_map(numbers).collect()
    };
    store.terms(Kind::Reflexion, SCHEME, &of)
}

/// Describes the rules that agents break although they were told them, one sentence each.
pub(crate) fn ignored<'r>(rules: impl IntoIterator<Item = &'r Reflexion>) -> Vec<String> {
    let notes = |rule: &&Reflexion| rule.action == CallAction::Note && !rule.seen_by.is_empty();
    let rules = rules.into_iter().filter(notes);
    let ignored = rules.filter(|rule| rule.receipts().is_ignored());
    let sentence = |rule: &Reflexion| {
        let id = &rule.reflexion_id;
        let receipts = rule.receipts();
        format!(
            "`{id}` was told in {} sessions and broken again in {}: memctl approve {id} --action ask",
            receipts.told, receipts.recurred
        )
    };
    ignored.map(sentence).collect()
}

/// Returns `true` if a rule in force forbids what a lesson advises.
pub fn forbids_advice(store: &Scoped, working: &str, lesson: &str) -> bool {
    // Rules that cannot be read forbid nothing here; at the call they are read again.
    Tables::open(store).is_ok_and(|tables| tables.against(working, lesson).is_some())
}

/// Command lines that a lesson advises.
fn advised<'t>(working: &'t str, lesson: &'t str) -> impl Iterator<Item = &'t str> {
    let quoted = [lesson, working]
        .into_iter()
        .flat_map(|text| text.split('`').skip(1).step_by(2));
    std::iter::once(working)
        .chain(quoted)
        .filter(|line| !line.trim().is_empty())
}

/// Stands for the beginning of a text.
const START: u8 = 2;
/// Maximum number of alternatives; with more, the rule is always read.
const ALTERNATIVES: usize = 24;

/// Place of a pattern that a number is for: a [`CallPart`], or a successful call, for `after`.
type Place = u64;
const SUCCESS: Place = 3;

/// Returns the numbers of a pattern: a call that matches has one of them.
pub(crate) fn numbers(pattern: &CallPattern) -> Vec<u64> {
    let mut all = of_text(pattern.on as Place, &pattern.matches);
    if !pattern.after.is_empty() {
        all.extend(of_text(SUCCESS, &pattern.after));
    }
    all
}

fn of_text(place: Place, pattern: &str) -> Vec<u64> {
    let place_bits = place << 62;
    match required(pattern, place == CallPart::Content as Place) {
        Some(texts) => texts
            .iter()
            .map(|text| place_bits | trigrams_of(text))
            .collect(),
        None => vec![place_bits],
    }
}

/// Three trigrams of a text: its first, middle and last.
fn trigrams_of(text: &[u8]) -> u64 {
    let last = text.len().saturating_sub(3);
    let at = |n: usize| text.get(n..n + 3).map_or(0, hash);
    at(0) | at(last / 2) << 16 | at(last) << 32
}

/// Hash of a trigram, from 1 to 65,535.
fn hash(trigram: &[u8]) -> u64 {
    let number = trigram.iter().fold(0_u64, |sum, byte| {
        (sum << 8 | u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    (number >> 48).max(1)
}

/// Trigrams of the texts of a call.
pub(crate) struct Trigrams(Vec<u64>);

impl Trigrams {
    pub(crate) fn of<'t>(texts: impl Iterator<Item = &'t str>) -> Self {
        let mut bits = vec![0_u64; 1024];
        let mut add = |trigram: &[u8]| {
            let number = hash(trigram);
            if let Some(word) = bits.get_mut(usize::try_from(number / 64).unwrap_or_default()) {
                *word |= 1 << (number % 64);
            }
        };
        for text in texts {
            let bytes = text.as_bytes();
            if let [first, second, ..] = bytes {
                add(&[START, *first, *second]);
            }
            bytes.windows(3).for_each(&mut add);
        }
        Self(bits)
    }

    /// Returns `true` if a text with these trigrams may match a pattern with this number.
    pub(crate) fn may_match(&self, place: Place, number: u64) -> bool {
        let has = |shift: u32| {
            let one = number >> shift & 0xffff;
            let word = self.0.get(usize::try_from(one / 64).unwrap_or_default());
            one == 0 || word.is_some_and(|word| word >> (one % 64) & 1 == 1)
        };
        number >> 62 == place && has(0) && has(16) && has(32)
    }
}

/// Returns texts of which every match contains one; `None` if there are none.
fn required(pattern: &str, multi_line: bool) -> Option<Vec<Vec<u8>>> {
    // The two parsers read a quantifier of a quantifier in other ways.
    let is_twice = |two: &[u8]| matches!(two, [b'?' | b'*' | b'+' | b'}', b'{']);
    if pattern.as_bytes().windows(2).any(is_twice) {
        return None;
    }
    let tree = Expr::parse_tree(pattern).ok()?;
    best_of(&tree.expr, multi_line)
}

fn best_of(expression: &Expr, multi_line: bool) -> Option<Vec<Vec<u8>>> {
    let mut sequence = Sequence {
        multi_line,
        ..Sequence::default()
    };
    sequence.add(expression);
    sequence.end_run();
    sequence.best
}

/// Parts of an expression that follow each other in every match.
#[derive(Default)]
struct Sequence {
    /// `^` is the beginning of any line, which is no beginning of a text.
    multi_line: bool,
    /// Characters that follow each other without a gap, in lower case.
    run: Vec<u8>,
    /// The longest texts so far, of which every match contains one.
    best: Option<Vec<Vec<u8>>>,
}

impl Sequence {
    fn add(&mut self, expression: &Expr) {
        match expression {
            Expr::Literal { val, .. } => val.chars().for_each(|c| match u8::try_from(c) {
                Ok(byte) if byte.is_ascii() => self.run.push(byte.to_ascii_lowercase()),
                _ => self.end_run(),
            }),
            Expr::Assertion(Assertion::StartText) if !self.multi_line => self.run.push(START),
            // Text around a match need not be part of it.
            Expr::Empty | Expr::Assertion(_) | Expr::LookAround(..) => {}
            Expr::Concat(parts) => parts.iter().for_each(|part| self.add(part)),
            Expr::Group(inside) => self.add(inside),
            Expr::Repeat { child, lo, hi, .. } if *lo > 0 => {
                self.add(child);
                if *hi > 1 {
                    self.end_run();
                }
            }
            Expr::Alt(all) => {
                self.end_run();
                let texts = all.iter().map(|one| best_of(one, self.multi_line));
                if let Some(texts) = texts.collect::<Option<Vec<_>>>() {
                    self.offer(texts.concat());
                }
            }
            _ => self.end_run(),
        }
    }

    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        self.offer(vec![run]);
    }

    fn offer(&mut self, texts: Vec<Vec<u8>>) {
        let weight = |texts: &[Vec<u8>]| texts.iter().map(Vec::len).min().unwrap_or(0);
        let so_far = self.best.as_deref().map_or(2, weight);
        if weight(&texts) > so_far && texts.len() <= ALTERNATIVES {
            self.best = Some(texts);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::Scope;
    use crate::store::Approvals;
    use memctl_files::named;

    fn call(command: &str) -> Call {
        let step = Step {
            tool: "Bash".to_owned(),
            input: json!({"command": command}),
            ..Step::default()
        };
        Call::of(&step, &["/p"])
    }

    fn rule(fields: &Value) -> Value {
        let mut rule = json!({"reflexion_id": "REFL-001", "rule": "Use pnpm, not npm.",
            "seen_by": [{"on": "command", "match": r"^npm\b"}]});
        for (name, value) in fields.as_object().unwrap() {
            rule[name] = value.clone();
        }
        rule
    }

    /// User with a memory that holds these rules.
    struct User {
        dir: tempfile::TempDir,
        store: Scoped,
    }

    impl User {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let memory = dir.path().join("memory");
            named::create_dir(&memory).unwrap();
            let approvals = Approvals::of(Some(&dir.path().join("state")), &memory, false);
            let store = Scoped::new(&memory, Scope::All).trusting(approvals);
            Self { dir, store }
        }

        fn writes(&self, rules: &[Value]) {
            let path = self.dir.path().join("memory").join(Kind::Reflexion.file());
            let text = json!({"entries": rules}).to_string();
            named::replace(&path, text.as_bytes()).unwrap();
        }

        fn approves(&self) {
            let mut n = 0;
            let mut random = || {
                n += 1;
                n.to_string()
            };
            let mut writer = self.store.write(&mut random).unwrap();
            writer.let_act("REFL-001").unwrap();
        }

        fn is_told_at(&self, line: &str) -> bool {
            let tables = Tables::open(&self.store).unwrap();
            !tables.broken(&call(line), &|_| false).is_empty()
        }

        fn acts(&self) -> bool {
            self.is_told_at("cd x && npm install")
        }
    }

    #[test]
    fn only_patterns_that_this_user_approved_act() {
        let user = User::new();
        user.writes(&[rule(&json!({}))]);
        assert!(!user.acts());
        user.approves();
        assert!(user.acts());
        assert!(!user.is_told_at("echo npm"));
        // An edit of the file ends the approval.
        let pattern = |matches: &str| json!([{"on": "command", "match": matches}]);
        for edited in [
            json!({"action": "deny"}),
            json!({"seen_by": pattern("^npm install")}),
            json!({"seen_by": pattern("npm")}),
            json!({"seen_by": [{"on": "command", "match": r"^npm\b"}, {"on": "path", "match": "^a/"}]}),
            json!({"seen_by": [{"on": "command", "match": r"^npm\b", "after": "^x"}]}),
            json!({"rule": "Use npm."}),
            json!({"applies_when": "never"}),
            json!({"source": "chat", "status": "active"}),
        ] {
            user.writes(&[rule(&edited)]);
            assert!(!user.acts(), "{edited}");
        }
        // Counters and unknown fields are no claim.
        let counted = json!({"times_told": 7, "times_injected": 3, "x": 1});
        user.writes(&[rule(&counted)]);
        assert!(user.acts());
        // Another user has approved nothing.
        let stranger = User::new();
        stranger.writes(&[rule(&json!({}))]);
        assert!(!stranger.acts());
    }

    #[test]
    fn a_workspace_that_stands_lets_no_rule_act() {
        let user = User::new();
        let mut n = 0;
        let mut random = || {
            n += 1;
            n.to_string()
        };
        let approvals = user.store.approvals();
        approvals
            .trust("2026-01-01T00:00:00Z", &mut random)
            .unwrap();
        user.writes(&[rule(&json!({}))]);
        assert!(user.store.trust_snapshot().is_whole());
        assert!(!user.acts());
        user.approves();
        assert!(user.acts());
    }

    #[test]
    fn only_rules_in_use_act() {
        let user = User::new();
        for (fields, expected) in [
            (json!({}), true),
            (json!({"status": "candidate"}), false),
            (json!({"source": "chat", "status": "candidate"}), false),
            (json!({"source": "chat", "status": "active"}), true),
            (json!({"source": "chat"}), false),
            (json!({"source": "agent"}), false),
            (json!({"superseded_by": "REFL-002"}), false),
            (json!({"utility_score": 0.1}), false),
            (json!({"rule": " "}), false),
            (json!({"action": "off"}), false),
        ] {
            user.writes(&[rule(&fields)]);
            user.approves();
            assert_eq!(user.acts(), expected, "{fields}");
        }
    }

    #[test]
    fn working_calls_and_quoted_commands_are_advice() {
        let check = |working: &str, lesson: &str, expected: &[&str]| {
            assert_eq!(advised(working, lesson).collect::<Vec<_>>(), expected);
        };
        check("npm ci", "", &["npm ci"]);
        check(
            "",
            "Run `npm ci` before `make test`.",
            &["npm ci", "make test"],
        );
        check("1. `npm ci`", "", &["1. `npm ci`", "npm ci"]);
        check("", "Run it.", &[]);
    }
}

#[cfg(test)]
mod tests_of_literals {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn required_texts_of_a_pattern_are_found() {
        let check = |pattern: &str, expected: &[&str]| {
            let found = required(pattern, false).unwrap_or_default();
            let found: Vec<String> = found
                .into_iter()
                .map(|text| String::from_utf8_lossy(&text).replace('\u{2}', "^"))
                .collect();
            assert_eq!(found, expected, "{pattern}");
        };
        check(r"^npm\b", &["^npm"]);
        check(r"^rm\b", &["^rm"]);
        check(r"^(?:npm|yarn)\s+install", &["install"]);
        check(r"^(npm|yarn)\b", &["npm", "yarn"]);
        check(r"git push.*--force", &["git push"]);
        check(r"colou?r", &["colo"]);
        check(r"(?i)^NPM\b", &["^npm"]);
        check(r"^\S+$", &[]);
        check(r"npm|\d+", &[]);
        check(r"(npm)?", &[]);
        check(r"[npm]+", &[]);
        check(r"\x6epm install", &["npm install"]);
        check(r"(?x) n p m", &["npm"]);
        check("über", &["ber"]);
        check(r"(?<![\w.])print\s*\(", &["print"]);
        check(r"^npm i(?!.*(--dry-run|-n))", &["^npm i"]);
        check(r"(?=.*install)^npm\b", &["^npm"]);
        check(r"(?<name>npm)", &["npm"]);
        check(r"a(bc)+d", &["abc"]);
        check(r"(?m)^npm", &["npm"]);
        check(r"git\b push", &["git push"]);
    }

    proptest! {
        /// A text that matches is never ruled out.
        #[test]
        fn no_match_is_lost(pattern in "[\\^]?(npm|git|\\\\b|\\\\s|a|b|c|[(]?:?ab[)]?|[|]|[*+?]|[.]|\\[ab\\]| |[{]2[}]){1,8}",
            text in "(npm|git|a|b|c|ab| |bb){0,8}") {
            if let Ok(regex) = regex_lite::Regex::new(&pattern)
                && regex.is_match(&text)
            {
                let pattern = CallPattern { matches: pattern, ..CallPattern::default() };
                let place = CallPart::Command as Place;
                let trigrams = Trigrams::of(std::iter::once(text.as_str()));
                let numbers = numbers(&pattern);
                prop_assert!(numbers.iter().any(|n| trigrams.may_match(place, *n)));
            }
        }
    }
}
