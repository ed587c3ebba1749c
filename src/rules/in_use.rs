//! Rules in use, of this workspace, the user store and other workspaces, ordered by trust; and those for the
//! start of a session.
//!
//! An id such as `REFL-003@3f2a9c1b` ends with the start of the workspace's name, so that a prompt, a hint or
//! an execution shows the origin. Evidence is counted in the origin only: use here changes no remote record.
//!
//! The start of a session leaves out rules that people stated in another project. The others are ordered by
//! their relevance for the place of the session, then by their worth. Only whole rules are shown, followed by
//! the number of the others and the command that lists them.
//!
//! Invariant: a rule that this user vouches for is never left out, moved back or superseded because of a
//! record that they do not vouch for ([`TrustedPart::may_silence`]).

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use crate::model::text::{later_first, one_line, told_line};
use crate::model::{CHAT, Kind, Reflexion, UTILITY_FLOOR, with_origin};
use crate::store::Here;
use crate::store::workspace::Error;
use crate::store::{Problem, Pulled, Scoped, Selection, TrustedPart};

/// Returns the rules, those that this user vouches for first, and otherwise the local ones first. A remote rule
/// that says the same as an earlier one is left out; those of this workspace stay beside each other.
pub(crate) fn rules(
    store: &Scoped,
    selection: &Selection<'_>,
) -> Result<(Vec<Reflexion>, Vec<Problem>), Error> {
    let mut rules: Vec<(TrustedPart, bool, Reflexion)> = Vec::new();
    let mut problems = Vec::new();
    let mut add = |store: &Scoped, origin: Option<&str>| -> Result<(), Error> {
        let mut listed = store.list::<Reflexion>(selection)?;
        problems.append(&mut listed.problems);
        let standing = mark_observed(store, &mut listed.records);
        for (trusted, mut rule) in standing.into_iter().zip(listed.records) {
            if let Some(origin) = origin {
                rule.reflexion_id = with_origin(&rule.reflexion_id, origin);
            }
            rules.push((trusted, origin.is_none(), rule));
        }
        Ok(())
    };
    add(store, None)?;
    for Pulled { origin, store } in store.others() {
        add(&store, Some(&origin))?;
    }
    Ok((without_repetitions(rules), problems))
}

/// Sorts rules by their standing, and removes those that an earlier one silences by saying the same. The rules
/// of this workspace, marked `true`, stay beside each other.
fn without_repetitions(mut rules: Vec<(TrustedPart, bool, Reflexion)>) -> Vec<Reflexion> {
    rules.sort_by_key(|(trusted, ..)| Reverse(*trusted));
    let mut first: HashMap<(String, String), TrustedPart> = HashMap::new();
    rules.retain(|(trusted, is_local, rule)| {
        // A candidate is not a rule yet, and blocks none.
        if rule.is_candidate() {
            return true;
        }
        let key = (rule.skill.clone(), one_line(&rule.rule));
        // A rule that was retired or superseded here must not return as a remote rule.
        match first.get(&key) {
            Some(first) => *is_local || !first.may_silence(*trusted),
            None => first.insert(key, *trusted).is_none(),
        }
    });
    rules.into_iter().map(|(.., rule)| rule).collect()
}

/// Marks the rules that no one here vouches for, and undoes replacements of vouched rules by others.
/// Returns the standing of each rule.
pub(crate) fn mark_observed(store: &Scoped, rules: &mut [Reflexion]) -> Vec<TrustedPart> {
    if rules.is_empty() {
        return Vec::new();
    }
    let trust_snapshot = store.trust_snapshot();
    let standing: Vec<TrustedPart> = rules
        .iter()
        .map(|rule| trust_snapshot.trusted_part(rule))
        .collect();
    let replacing: HashMap<String, TrustedPart> = rules
        .iter()
        .zip(&standing)
        .map(|(rule, trusted)| (rule.reflexion_id.clone(), *trusted))
        .collect();
    for (rule, trusted) in rules.iter_mut().zip(&standing) {
        // A candidate is data in any case, and is in no prompt.
        rule.observed = !rule.is_candidate() && *trusted == TrustedPart::Nothing;
        // Only the text is the user's word: whether another rule replaced it, that rule must be
        // theirs too.
        let by = replacing.get(&rule.superseded_by).copied();
        if *trusted == TrustedPart::Text && by.unwrap_or_default() == TrustedPart::Nothing {
            rule.superseded_by.clear();
        }
    }
    standing
}

/// Message for the person where [`are_unread`] holds.
pub const UNREAD: &str = "memctl cannot read all rules of this project: memctl doctor";

/// Returns `true` if the file of the rules is damaged or cannot be read: those that are left are told.
pub fn are_unread(store: &Scoped) -> bool {
    let damaged = store.damaged_files(Kind::Reflexion);
    damaged.map_or(true, |files| !files.is_empty())
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
    } else if rule.withdraws {
        Some(format!(
            "it only takes back `{}`",
            rule.replaces.join("`, `")
        ))
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

/// Maximum number of newest records to examine.
pub(crate) const LOOKED_AT: usize = 500;
/// Maximum number of lessons, and of observed rules, in a briefing.
pub(crate) const TOLD: usize = 5;
/// Maximum length of a line, in characters.
pub(crate) const LINE: usize = 240;

/// Rules for a session, best first.
#[derive(Debug, Default)]
pub(crate) struct SessionRules {
    /// Rules that this user said or approved.
    pub(crate) own: Vec<Reflexion>,
    /// The first rules that nobody here has approved, without suspicious ones.
    pub(crate) observed: Vec<Reflexion>,
    /// Number of candidates from chats.
    pub(crate) waiting: usize,
}

/// Maximum length of a rule, in characters: a rule that is cut may say something else.
pub(crate) const RULE: usize = 600;

/// Relevance of a rule for a place, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Relevance {
    /// People said it in this project.
    Project,
    /// It is for every skill, or for one that is here.
    Skill,
    Other,
}

/// Returns the rules among the newest records that prompts may show here.
pub(crate) fn session_rules(
    store: &Scoped,
    now: DateTime<Utc>,
    here: &Here<'_>,
) -> Result<SessionRules, Error> {
    let newest = Selection::newest(None, LOOKED_AT);
    let (mut rules, _) = rules(store, &newest)?;
    let waiting = rules.iter().filter(|rule| waits(rule)).count();
    rules.retain(|rule| rule.is_in_use() && here.covers(rule));
    let mut seen = HashSet::new();
    rules.retain(|rule| seen.insert((rule.skill.clone(), rule.rule.clone())));
    let relevance = |rule: &Reflexion| match rule.skill.as_str() {
        _ if !rule.projects().is_empty() => Relevance::Project,
        "" => Relevance::Skill,
        skill if here.has_skill(skill) => Relevance::Skill,
        _ => Relevance::Other,
    };
    let worth =
        |rule: &Reflexion| rule.confidence.unwrap_or(0.5) * rule.utility() * rule.newness(now);
    let mut ranked: Vec<(Relevance, f64, Reflexion)> = rules
        .into_iter()
        .map(|rule| (relevance(&rule), worth(&rule), rule))
        .collect();
    ranked.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    let ranked = ranked.into_iter().map(|(_, _, rule)| rule);
    // A file that claims a high confidence moves no rule before those of this user.
    let (observed, mut own): (Vec<Reflexion>, Vec<Reflexion>) =
        ranked.partition(|rule| rule.observed);
    later_first(&mut own, |rule| (rule.rule.clone(), rule.born()));
    let observed = observed
        .into_iter()
        .filter(is_harmless)
        .take(TOLD)
        .collect();
    Ok(SessionRules {
        own,
        observed,
        waiting,
    })
}

/// Returns `true` for a candidate from a chat that nobody has judged.
pub(crate) fn waits(rule: &Reflexion) -> bool {
    rule.is_candidate() && rule.source == CHAT && rule.judgement.is_none()
}

/// Returns the lines of rules.
pub(crate) fn lines(rules: &[Reflexion]) -> impl ExactSizeIterator<Item = String> {
    rules.iter().map(|rule| {
        let text = told_line(&rule.rule, RULE);
        match rule.skill.as_str() {
            "" => format!("  - {text}"),
            skill => format!("  - {}: {text}", told_line(skill, LINE)),
        }
    })
}

/// Returns a heading with the first lines that fit the budget, in UTF-16 units, and the number of
/// the others; empty if no line fits. Lines that do not fit are not made.
pub(crate) fn filled(
    heading: &str,
    lines: impl ExactSizeIterator<Item = String>,
    budget: usize,
) -> String {
    let more = |left: usize| match left {
        0 => String::new(),
        left => format!("  and {left} more: memctl list rules -n 1000\n"),
    };
    let mut text = format!("{heading}\n");
    let mut best = String::new();
    let total = lines.len();
    for (shown, line) in (1..).zip(lines) {
        text.extend([line.as_str(), "\n"]);
        let more = more(total - shown);
        if memctl_redact::length(&text) > budget {
            break;
        }
        if memctl_redact::length(&text) + memctl_redact::length(&more) <= budget {
            best = format!("{text}{more}");
        }
    }
    best
}

/// Returns true if an unapproved rule may be shown as data.
fn is_harmless(rule: &Reflexion) -> bool {
    let text = format!("{}\n{}\n{}", rule.skill, rule.rule, rule.applies_when);
    memctl_redact::admit(&text).quarantine.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;
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
        let own = |rule: Value| -> (TrustedPart, bool, Reflexion) {
            (
                TrustedPart::Whole,
                false,
                serde_json::from_value(rule).unwrap(),
            )
        };
        let theirs = |mut rule: Value| -> (TrustedPart, bool, Reflexion) {
            rule["created_at"] = json!("2099-01-01T00:00:00+00:00");
            (
                TrustedPart::Nothing,
                true,
                serde_json::from_value(rule).unwrap(),
            )
        };
        let user = own(json!({"reflexion_id": "REFL-001@user", "rule": "Name  it."}));
        let check = |forged: Value, expected: &[&str]| {
            let found = without_repetitions(vec![theirs(forged), user.clone()]);
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

#[cfg(test)]
mod tests_of_briefing {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;
    use crate::model::Scope;
    use crate::store::Approvals;
    use memctl_files::named;

    fn rule(text: &str, skill: &str, confidence: f64) -> Value {
        json!({"reflexion_id": text, "skill": skill, "rule": text, "confidence": confidence,
            "created_at": "2026-02-01T00:00:00+00:00"})
    }

    fn rule_of_project(text: &str, project: &str) -> Value {
        let mut rule = rule(text, "", 0.1);
        rule["said"] = json!([{"quote": text, "session": "s", "workspace": project, "turn": 1}]);
        rule
    }

    fn order(rules: &[Value]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("shop");
        let memory = root.join(".agentura");
        for name in ["shop/skills/hr/here", "shop/.agentura"] {
            named::create_dir(&dir.path().join(name)).unwrap();
        }
        let text = json!({ "entries": rules }).to_string();
        named::replace(&memory.join(Kind::Reflexion.file()), text.as_bytes()).unwrap();
        let store = Scoped::new(&*memory, Scope::All).trusting(Approvals::everything());
        let now = DateTime::parse_from_rfc3339("2026-02-20T00:00:00Z").unwrap();
        let skills = root.join("skills");
        let here = Here {
            directory: Some(&root),
            root: Some(&root),
            skills: Some(Path::new(&skills)),
            ..Here::default()
        };
        let rules = session_rules(&store, now.to_utc(), &here).unwrap();
        rules.own.into_iter().map(|rule| rule.rule).collect()
    }

    #[test]
    fn rules_of_this_project_come_before_skills_of_this_place() {
        let mut old = rule("old", "hr/here", 0.9);
        old["created_at"] = json!("2024-02-01T00:00:00+00:00");
        let mut proven = rule("proven", "hr/here", 0.6);
        proven["utility_score"] = json!(0.9);
        let rules = [
            rule("other", "dev/other", 1.0),
            old,
            proven,
            rule("general", "", 0.3),
            rule_of_project("bound", "shop"),
            rule_of_project("elsewhere", "blog"),
        ];
        let expected = ["bound", "proven", "old", "general", "other"];
        assert_eq!(order(&rules), expected);
    }

    #[test]
    fn whole_lines_fill_the_budget_and_the_rest_is_counted() {
        let lines: Vec<String> = (0..12).map(|n| format!("  - rule {n}")).collect();
        let check = |budget: usize, expected: &str| {
            let text = filled("Rules:", lines[..3].iter().cloned(), budget);
            assert_eq!(text, expected, "{budget}");
            assert!(memctl_redact::length(&text) <= budget);
        };
        let all = "Rules:\n  - rule 0\n  - rule 1\n  - rule 2\n";
        check(all.len(), all);
        check(all.len() - 1, "");
        let one = "Rules:\n  - rule 0\n  and 11 more: memctl list rules -n 1000\n";
        let filled = |budget| filled("Rules:", lines.iter().cloned(), budget);
        assert_eq!(filled(one.len()), one);
        assert_eq!(filled(one.len() - 1), "");
        // A number with fewer digits may make room for one rule more.
        let text = filled(one.len() + 2 * 11 - 1);
        assert!(
            text.contains("rule 2") && text.contains("and 9 more"),
            "{text}"
        );
        assert_eq!(super::filled("Rules:", std::iter::empty(), 100), "");
    }
}
