//! Rules at the start of a session: which ones, in which order, and how many fit.
//!
//! A rule that people said in another project is left out. The others come in the order of their
//! relevance for the place of the session, then of their worth. Only whole rules are shown, and the
//! number of the others with the command that lists them.

use std::borrow::Cow;
use std::collections::HashSet;

use chrono::{DateTime, Utc};
use memctl_files::json;

use crate::model::text::later_first;
use crate::model::{CHAT, Judgement, Kind, Reflexion};
use crate::rules::in_use as active_rules;
use crate::store::here::Here;
use crate::store::workspace::Error;
use crate::store::{Scoped, Selection};

/// Maximum number of newest records to examine.
pub(crate) const LOOKED_AT: usize = 500;
/// Maximum number of lessons, and of observed rules, in a briefing.
pub(crate) const TOLD: usize = 5;
/// Maximum length of a line, in characters.
pub(crate) const LINE: usize = 240;
/// Number of newest executions whose skills count as run here.
const RUNS: usize = 50;

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
    /// It is for every skill, or for one that is here or ran here.
    Skill,
    Other,
}

/// Returns the rules among the newest records that prompts may show here.
pub(crate) fn session_rules(
    store: &Scoped,
    now: DateTime<Utc>,
    here: &Here<'_>,
) -> Result<SessionRules, Error> {
    let newest = Selection {
        skill: None,
        newest: Some(LOOKED_AT),
    };
    let (mut rules, _) = active_rules::rules(store, &newest)?;
    let waiting = rules.iter().filter(|rule| waits(rule)).count();
    rules.retain(|rule| rule.is_in_use() && here.covers(rule));
    let mut seen = HashSet::new();
    rules.retain(|rule| seen.insert((rule.skill.clone(), rule.rule.clone())));
    let skills: HashSet<&str> = rules.iter().map(|rule| rule.skill.as_str()).collect();
    let skills = skills.into_iter().filter(|skill| !skill.is_empty());
    let (present, absent): (Vec<&str>, Vec<&str>) = skills.partition(|skill| here.has_skill(skill));
    let mut known: HashSet<String> = present.into_iter().map(str::to_owned).collect();
    // Executions are read only for skills that are not here.
    if !absent.is_empty() {
        known.extend(skills_run(store)?);
    }
    let relevance = |rule: &Reflexion| match rule.skill.as_str() {
        _ if !rule.projects().is_empty() => Relevance::Project,
        "" => Relevance::Skill,
        skill if known.contains(skill) => Relevance::Skill,
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

/// Returns the skills of the newest executions.
fn skills_run(store: &Scoped) -> Result<HashSet<String>, Error> {
    let newest = Selection {
        skill: None,
        newest: Some(RUNS),
    };
    let mut skills = HashSet::new();
    store.each_entry(Kind::Execution, &newest, &mut |entry| {
        let skill = json::string_field(&entry.text, "skill");
        skills.extend(skill.map(Cow::into_owned));
    })?;
    Ok(skills)
}

/// Returns `true` for a candidate from a chat that nobody has judged.
pub(crate) fn waits(rule: &Reflexion) -> bool {
    let is_discarded = rule.judgement.as_ref().is_some_and(Judgement::is_against);
    rule.is_candidate() && rule.source == CHAT && !is_discarded
}

/// Returns the lines of rules.
pub(crate) fn lines(rules: &[Reflexion]) -> impl ExactSizeIterator<Item = String> {
    rules.iter().map(|rule| match rule.skill.as_str() {
        "" => format!("  - {}", line(&rule.rule, RULE)),
        skill => format!("  - {}: {}", line(skill, LINE), line(&rule.rule, RULE)),
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
        left => format!("  and {left} more: memctl list rules\n"),
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

/// Text on one line: redacted, without fence markers, and cut to `room` characters.
pub(crate) fn line(text: &str, room: usize) -> String {
    let text = memctl_redact::unfenced(&memctl_redact::redact(text).text);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(room) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
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

    fn said(text: &str, project: &str) -> Value {
        let mut rule = rule(text, "", 0.1);
        rule["said"] = json!([{"quote": text, "session": "s", "workspace": project, "turn": 1}]);
        rule
    }

    fn order(rules: &[Value], runs: &[&str]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("shop");
        let memory = root.join(".agentura");
        for name in ["shop/skills/hr/here", "shop/.agentura"] {
            named::create_dir(&dir.path().join(name)).unwrap();
        }
        let runs: Vec<Value> = runs
            .iter()
            .map(|skill| json!({"execution_id": "EXEC-1", "skill": skill}))
            .collect();
        for (kind, entries) in [(Kind::Reflexion, rules), (Kind::Execution, &runs)] {
            let text = json!({ "entries": entries }).to_string();
            named::replace(&memory.join(kind.file()), text.as_bytes()).unwrap();
        }
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
            rule("ran", "dev/ran", 0.2),
            old,
            proven,
            rule("general", "", 0.3),
            said("bound", "shop"),
            said("elsewhere", "blog"),
        ];
        let expected = ["bound", "proven", "old", "general", "ran", "other"];
        assert_eq!(order(&rules, &["dev/ran"]), expected);
        assert_eq!(order(&rules, &[])[4..], ["other", "ran"]);
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
        let one = "Rules:\n  - rule 0\n  and 11 more: memctl list rules\n";
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
