//! Rules that act on calls: those whose patterns this user has approved.
//!
//! A derived table holds texts that every match of a pattern contains, so that a call reads only the rules
//! that it may break. The table only pre-selects: each rule is read from its file, matched, and compared
//! with the user's approval. A damaged or stale table can lose a note, and never adds one.
//!
//! - `call`: a call as patterns match it. `patterns`: expressions, checked and compiled. `matching`: the two together.
//! - `required`: what the table holds of a pattern.
//! - `at_call`: what an agent is told before a call. `receipts`: what it did next.
//!
//! Rules of the memory come first, then those of the user store. Rules of other workspaces never act,
//! because nobody has approved their patterns here.

pub(crate) mod at_call;
pub(crate) mod call;
pub(crate) mod matching;
pub(crate) mod patterns;
pub(crate) mod receipts;
mod required;

use call::Call;
use matching::{breaks, fulfilled_by};
use memctl_sessions::Step;
use required::{Place, SUCCESS, Trigrams, numbers};

use crate::model::{CallAction, CallPart, Kind, Reflexion, USER_STORE, with_origin};
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

/// Describes a rule that agents break although they were told it; `None` for any other.
pub(crate) fn ignored(rule: &Reflexion) -> Option<String> {
    let receipts = rule.receipts();
    let notes = rule.action == CallAction::Note && !rule.seen_by.is_empty();
    (notes && receipts.is_ignored()).then(|| {
        format!(
            "`{}` was told in {} sessions and broken again in {}",
            rule.reflexion_id, receipts.told, receipts.recurred
        )
    })
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::Scope;
    use crate::store::{Approvals, Basis};
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
            .trust(Basis::Trusted, "2026-01-01T00:00:00Z", &mut random)
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
