//! Rules in the order of the trust in them: those of this workspace, of the user store, and of other
//! workspaces.
//!
//! An id such as `REFL-003@3f2a9c1b` ends with the start of the workspace's name, so that a prompt,
//! a hint or an execution shows the origin. Evidence is counted in the origin only: use here
//! changes nothing in a remote record.
//!
//! Invariant: a rule that this user vouches for is neither left out, nor moved back, nor superseded
//! because of a record that they do not vouch for ([`Vouched::may_silence`]).

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::model::{Reflexion, UTILITY_FLOOR, with_origin};
use crate::store::{Problem, Pulled, Scoped, Selection, Vouched};

use crate::store::workspace::Error;

/// Returns the rules, those that this user vouches for first, and otherwise the local ones first. Of
/// rules with the same text only the first stays.
pub(crate) fn rules(
    store: &Scoped,
    selection: &Selection<'_>,
) -> Result<(Vec<Reflexion>, Vec<Problem>), Error> {
    let own = store.list::<Reflexion>(selection)?;
    let (mut records, mut problems) = (own.records, own.problems);
    let standing = mark_observed(store, &mut records);
    let mut rules: Vec<(Vouched, Reflexion)> = standing.into_iter().zip(records).collect();
    let pulled = store.others();
    if pulled.is_empty() {
        rules.sort_by_key(|(vouched, _)| Reverse(*vouched));
        return Ok((rules.into_iter().map(|(_, rule)| rule).collect(), problems));
    }
    let local = rules.len();
    for Pulled { origin, store } in pulled {
        let theirs = store.list::<Reflexion>(selection)?;
        problems.extend(theirs.problems);
        let mut records = theirs.records;
        let standing = mark_observed(&store, &mut records);
        for (vouched, mut rule) in standing.into_iter().zip(records) {
            rule.reflexion_id = with_origin(&rule.reflexion_id, &origin);
            rules.push((vouched, rule));
        }
    }
    Ok((without_repetitions(rules, local), problems))
}

/// Sorts rules by standing, and removes those that an earlier one silences by saying the same. The
/// first `local` rules are of this workspace; they stay beside each other.
fn without_repetitions(rules: Vec<(Vouched, Reflexion)>, local: usize) -> Vec<Reflexion> {
    let words = |rule: &Reflexion| rule.rule.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut rules: Vec<(Vouched, bool, Reflexion)> = rules
        .into_iter()
        .enumerate()
        .map(|(at, (vouched, rule))| (vouched, at < local, rule))
        .collect();
    rules.sort_by_key(|(vouched, ..)| Reverse(*vouched));
    let mut first: HashMap<(String, String), Vouched> = HashMap::new();
    rules.retain(|(vouched, is_local, rule)| {
        // A candidate is not a rule yet, and blocks none.
        if rule.is_candidate() {
            return true;
        }
        let key = (rule.skill.clone(), words(rule));
        // A rule that was retired or superseded here must not return as a remote rule.
        match first.get(&key) {
            Some(first) => *is_local || !first.may_silence(*vouched),
            None => first.insert(key, *vouched).is_none(),
        }
    });
    rules.into_iter().map(|(_, _, rule)| rule).collect()
}

/// Marks the rules that no one here vouches for, and undoes replacements of vouched rules by others.
/// Returns the standing of each rule.
pub(crate) fn mark_observed(store: &Scoped, rules: &mut [Reflexion]) -> Vec<Vouched> {
    if rules.is_empty() {
        return Vec::new();
    }
    let trust_snapshot = store.trust_snapshot();
    let standing: Vec<Vouched> = rules
        .iter()
        .map(|rule| trust_snapshot.vouched(rule))
        .collect();
    let replacing: HashMap<String, Vouched> = rules
        .iter()
        .zip(&standing)
        .map(|(rule, vouched)| (rule.reflexion_id.clone(), *vouched))
        .collect();
    for (rule, vouched) in rules.iter_mut().zip(&standing) {
        // A candidate is data in any case, and is in no prompt.
        rule.observed = !rule.is_candidate() && *vouched == Vouched::Nothing;
        // Only the text is the user's word: whether another rule replaced it, that rule must be
        // theirs too.
        let by = replacing.get(&rule.superseded_by).copied();
        if *vouched == Vouched::Text && by.unwrap_or_default() == Vouched::Nothing {
            rule.superseded_by.clear();
        }
    }
    standing
}

/// Returns the reason why prompts leave a rule out; `None` if they may show it.
pub(crate) fn why_unused(rule: &Reflexion) -> Option<String> {
    let id = &rule.reflexion_id;
    if rule.rule.trim().is_empty() {
        Some("it has no rule text".to_owned())
    } else if !rule.superseded_by.is_empty() {
        Some(format!("`{}` was put in its place", rule.superseded_by))
    } else if rule.is_candidate() {
        Some(format!("candidate: approve with `memctl approve {id}`"))
    } else if rule.is_retired() {
        let utility = rule.utility();
        Some(format!("its utility {utility:.2} is below {UTILITY_FLOOR}"))
    } else {
        None
    }
}

/// Warning about a suspicious rule that is in the prompt because a person gave it.
pub(crate) fn suspicion(rule: &Reflexion) -> Option<String> {
    let text = format!("{}\n{}", rule.rule, rule.applies_when);
    let reason = memctl_redact::screen(&text).reason()?;
    let id = &rule.reflexion_id;
    if rule.is_candidate() {
        return Some(format!("`{id}` is suspicious: {reason}"));
    }
    Some(format!(
        "`{id}` is suspicious: {reason}; a person said it, so it counts; if nobody did: memctl forget {id}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Kind, Scope};
    use crate::store::{Approvals, PulledChange};
    use memctl_files::named;
    use serde_json::{Value, json};

    fn pulled(kind: Kind, origin: &str, entries: &[Value]) -> (tempfile::TempDir, Scoped) {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        let changes: Vec<PulledChange> = entries
            .iter()
            .map(|entry| PulledChange {
                id: entry[kind.id_field()].as_str().unwrap().to_owned(),
                text: Some(entry.to_string()),
            })
            .collect();
        store.pull().unwrap().apply(origin, kind, &changes).unwrap();
        (dir, store)
    }

    #[test]
    fn rules_of_others_stand_behind_ones_own_and_say_something_else() {
        let rule = |id: &str, rule: &str| json!({"reflexion_id": id, "skill": "hr/x", "rule": rule, "correction_id": "CORR-001"});
        let theirs = [
            rule("REFL-001", "Never  ask for a photo."),
            rule("REFL-002", "Name it."),
        ];
        let (dir, store) = pulled(Kind::Reflexion, "3f2a9c1b-0000-4000", &theirs);
        let own = json!({"entries": [rule("REFL-001", "Never ask for a photo.")]});
        let path = dir.path().join(Kind::Reflexion.file());
        named::replace(&path, own.to_string().as_bytes()).unwrap();
        let (rules, problems) = rules(&store, &Selection::default()).unwrap();
        let ids: Vec<&str> = rules
            .iter()
            .map(|rule| rule.reflexion_id.as_str())
            .collect();
        assert_eq!(
            (ids.as_slice(), problems.len()),
            (&["REFL-001", "REFL-002@3f2a9c1b"][..], 0)
        );
    }

    #[test]
    fn records_that_nobody_vouches_for_silence_no_rule_of_the_user() {
        let own = |rule: Value| -> (Vouched, Reflexion) {
            (Vouched::Whole, serde_json::from_value(rule).unwrap())
        };
        let theirs = |mut rule: Value| -> (Vouched, Reflexion) {
            rule["created_at"] = json!("2099-01-01T00:00:00+00:00");
            (Vouched::Nothing, serde_json::from_value(rule).unwrap())
        };
        let user = own(json!({"reflexion_id": "REFL-001@user", "rule": "Name  it."}));
        let check = |forged: Value, expected: &[&str]| {
            let found = without_repetitions(vec![theirs(forged), user.clone()], 1);
            let ids: Vec<&str> = found.iter().map(|r| r.reflexion_id.as_str()).collect();
            assert_eq!(ids, expected);
        };
        let both = &["REFL-001@user", "REFL-009"][..];
        check(
            json!({"reflexion_id": "REFL-009", "rule": "Name it."}),
            both,
        );
        check(
            json!({"reflexion_id": "REFL-009", "rule": "Name it.", "applies_when": "Never."}),
            both,
        );
        check(
            json!({"reflexion_id": "REFL-009", "rule": "Name it.", "superseded_by": "REFL-008"}),
            both,
        );
        check(
            json!({"reflexion_id": "REFL-009", "rule": "Name it.",
                "said": [{"quote": "q", "session": "s", "workspace": "/elsewhere", "turn": 1}]}),
            both,
        );
    }

    #[test]
    fn a_candidate_keeps_no_rule_of_others_out() {
        let rule = |status: &str| json!({"reflexion_id": "REFL-001", "skill": "hr/x", "rule": "Name it.", "status": status});
        let (dir, store) = pulled(Kind::Reflexion, "3f2a9c1b-0000-4000", &[rule("")]);
        let store = store.trusting(Approvals::everything());
        let path = dir.path().join(Kind::Reflexion.file());
        for (status, expected) in [("candidate", 2), ("active", 1)] {
            let own = json!({"entries": [rule(status)]});
            named::replace(&path, own.to_string().as_bytes()).unwrap();
            let (rules, _) = rules(&store, &Selection::default()).unwrap();
            assert_eq!(rules.len(), expected, "{status}");
        }
    }
}
