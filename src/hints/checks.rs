//! Rules that act on calls: those with a check that this user confirmed.
//!
//! A derived table maps programs to rules, so that a call reads only the rules that it may match.
//! The table decides nothing: each rule is read from its file, matched and held against the user's
//! own confirmation. A damaged or stale table loses a note, and never adds one.
//!
//! Rules of other workspaces never act: nobody confirmed their checks here.

use crate::learn::check::{Call, SCHEME, terms, terms_of_call};
use crate::model::{CheckUse, Kind, Reflexion};
use crate::store::{Scoped, Terms};
use crate::workspace::Error;

/// Rebuilds the table after rules have changed, so that no later call has to.
pub(crate) fn prepare(store: &Scoped) -> Result<(), Error> {
    table(store).map(drop)
}

/// Returns the rules whose check matches a call and acts.
pub(crate) fn acting(store: &Scoped, call: &Call) -> Result<Vec<Reflexion>, Error> {
    let table = table(store)?;
    if table.is_blank() {
        return Ok(Vec::new());
    }
    let terms = terms_of_call(call).into_iter();
    let mut numbers: Vec<u32> = terms
        .flat_map(|term| table.holding(term, usize::MAX).0)
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    let rules = numbers.into_iter().filter_map(|number| {
        let rule: Reflexion = table.entry(number)?.parse().ok()?;
        let matches = rule.check.as_ref().is_some_and(|check| call.matches(check));
        matches.then_some(rule)
    });
    let mut rules: Vec<Reflexion> = rules.collect();
    if !rules.is_empty() {
        let own = store.approvals().own_words();
        rules.retain(|rule| own.confirms_check(rule));
    }
    Ok(rules)
}

/// Table of rules by the programs of their checks, without rules that are not in use.
fn table(store: &Scoped) -> Result<Terms, Error> {
    let of = |entry: &[u8]| {
        if memchr::memmem::find(entry, b"\"check\"").is_none() {
            return Vec::new();
        }
        let rule = serde_json::from_slice::<Reflexion>(entry).ok();
        let rule = rule.filter(Reflexion::is_in_use);
        let check = rule.and_then(|rule| rule.check);
        check.as_ref().map(terms).unwrap_or_default()
    };
    Ok(store.terms_on_disk(Kind::Reflexion, SCHEME, &of)?)
}

/// Describes the checks that most sessions override, one sentence each.
pub(crate) fn doubts<'r>(rules: impl IntoIterator<Item = &'r Reflexion>) -> Vec<String> {
    let rules = rules.into_iter().filter(|rule| rule.check.is_some());
    let doubtful = rules.filter(|rule| rule.check_use().is_doubtful());
    let sentence = |rule: &Reflexion| {
        let CheckUse {
            fired, overridden, ..
        } = rule.check_use();
        let id = &rule.reflexion_id;
        format!(
            "the check of `{id}` was overridden in {overridden} of {fired} sessions: memctl memory \
             check {id}"
        )
    };
    doubtful.map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::{Scope, Step};
    use crate::platform::named;
    use crate::store::Approvals;

    fn call(command: &str) -> Call {
        let step = Step {
            tool: "Bash".to_owned(),
            input: json!({"command": command}),
            ..Step::default()
        };
        Call::of(&step, "/p")
    }

    fn rule(fields: &Value) -> Value {
        let mut rule = json!({"reflexion_id": "REFL-001", "rule": "Use pnpm, not npm.",
            "check": {"command": "npm", "action": "note"}});
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

        fn confirms(&self) {
            let mut n = 0;
            let mut random = || {
                n += 1;
                n.to_string()
            };
            let mut writer = self.store.write(&mut random).unwrap();
            writer.confirm_check("REFL-001").unwrap();
        }

        fn acts(&self) -> bool {
            !acting(&self.store, &call("cd x && npm install"))
                .unwrap()
                .is_empty()
        }
    }

    #[test]
    fn only_a_check_that_this_user_confirmed_acts() {
        let user = User::new();
        user.writes(&[rule(&json!({}))]);
        assert!(!user.acts());
        user.confirms();
        assert!(user.acts());
        assert!(acting(&user.store, &call("echo npm")).unwrap().is_empty());
        // An edit of the file ends the confirmation.
        for edited in [
            json!({"check": {"command": "npm", "action": "deny"}}),
            json!({"check": {"command": "npm install", "action": "note"}}),
            json!({"check": {"tool": "Bash", "action": "note"}}),
            json!({"check": {"command": "npm", "path": "a", "action": "note"}}),
            json!({"rule": "Use npm."}),
            json!({"applies_when": "never"}),
            json!({"source": "chat", "status": "active"}),
        ] {
            user.writes(&[rule(&edited)]);
            assert!(!user.acts(), "{edited}");
        }
        // Counters and unknown fields are no claim.
        user.writes(&[rule(
            &json!({"check_fired": 7, "times_injected": 3, "x": 1}),
        )]);
        assert!(user.acts());
        // Another user has confirmed nothing.
        let stranger = User::new();
        stranger.writes(&[rule(&json!({}))]);
        assert!(!stranger.acts());
    }

    #[test]
    fn a_workspace_that_stands_confirms_no_check() {
        let user = User::new();
        let mut n = 0;
        user.store
            .approvals()
            .trust("2026-01-01T00:00:00Z", &mut || {
                n += 1;
                n.to_string()
            })
            .unwrap();
        user.writes(&[rule(&json!({}))]);
        assert!(user.store.trust_snapshot().is_whole());
        assert!(!user.acts());
        user.confirms();
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
        ] {
            user.writes(&[rule(&fields)]);
            user.confirms();
            assert_eq!(user.acts(), expected, "{fields}");
        }
    }
}
