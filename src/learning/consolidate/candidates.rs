//! Records that nobody has reviewed, and the approved ones that they may repeat.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::guard;
use crate::hints::fixes::QUARANTINED;
use crate::learn::distil::LEARNED;
use crate::learn::error_key::normalised;
use crate::learn::fix::NoHint;
use crate::learn::triage::Item;
use crate::model::{Fix, Judgement, Kind, Procedure, Record as _, Reflexion, Trust};
use crate::store::{Scoped, Selection};
use crate::workspace::Error;

/// Maximum length of a text in a question, in characters.
const MAX_FIELD: usize = 1_500;
/// Maximum length of output in a question, in characters.
const MAX_OUTPUT: usize = 300;

/// Records of a store, for triage.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// Observed fixes in use.
    pub(super) fixes: Vec<Fix>,
    /// Episodes of one place, which a model may turn into fixes.
    pub(super) episodes: Vec<Fix>,
    /// Approved fixes in use.
    pub(super) approved: Vec<Fix>,
    /// Procedures by id.
    pub(super) procedures: HashMap<String, Procedure>,
    /// Observed procedures without a fix.
    pub(super) alone: Vec<Procedure>,
    /// Candidate rules.
    pub(super) rules: Vec<Reflexion>,
    /// Rules in use.
    pub(super) in_use: Vec<Reflexion>,
}

impl Candidates {
    pub(super) fn read(store: &Scoped) -> Result<Self, Error> {
        let all = Selection::default();
        let trust_snapshot = store.trust_snapshot();
        let mut found = Self::default();
        let mut of_fix = HashSet::new();
        for fix in store.list::<Fix>(&all)?.records {
            of_fix.insert(fix.procedure_id.clone());
            if !fix.is_active() || fix.status == QUARANTINED {
                continue;
            }
            match trust_snapshot.level(&fix) {
                Trust::Observed if !fix.is_episode() => found.fixes.push(fix),
                Trust::Observed => {
                    let is_harmless = guard::admit(&fix.content()).quarantine.is_none();
                    if fix.no_hint == NoHint::OneOff.name() && is_harmless {
                        found.episodes.push(fix);
                    }
                }
                Trust::Approved | Trust::User => found.approved.push(fix),
            }
        }
        for procedure in store.list::<Procedure>(&all)?.records {
            let is_open = trust_snapshot.level(&procedure) == Trust::Observed
                && procedure.status == LEARNED
                && !of_fix.contains(&procedure.procedure_id)
                && guard::admit(procedure.data.get()).quarantine.is_none();
            if is_open {
                found.alone.push(procedure.clone());
            }
            found
                .procedures
                .insert(procedure.procedure_id.clone(), procedure);
        }
        for rule in store.list::<Reflexion>(&all)?.records {
            if rule.is_candidate() {
                if guard::admit(&rule.content()).quarantine.is_none() {
                    found.rules.push(rule);
                }
            } else if rule.is_in_use() && trust_snapshot.level(&rule) != Trust::Observed {
                found.in_use.push(rule);
            }
        }
        Ok(found)
    }

    /// Questions about the records that no model has judged, similar ones side by side.
    /// `settled` are ids that already have a verdict.
    pub(super) fn items(&self, settled: &HashSet<&str>) -> Vec<Item> {
        let is_open = |id: &str, judgement: Option<&Judgement>| {
            !settled.contains(id) && !judgement.is_some_and(Judgement::is_of_model)
        };
        let fixes = self
            .fixes
            .iter()
            .chain(&self.episodes)
            .filter(|fix| is_open(&fix.fix_id, fix.judgement.as_ref()))
            .map(|fix| self.of_fix(fix));
        let alone = self
            .alone
            .iter()
            .filter(|one| is_open(&one.procedure_id, one.judgement.as_ref()))
            .map(of_procedure);
        let rules = self
            .rules
            .iter()
            .filter(|rule| is_open(&rule.reflexion_id, rule.judgement.as_ref()))
            .map(of_rule);
        let mut items: Vec<Item> = fixes.chain(alone).chain(rules).collect();
        items.sort_by(|a, b| {
            let order = a.id.split('-').next().cmp(&b.id.split('-').next());
            order.then_with(|| a.group.cmp(&b.group).then_with(|| a.id.cmp(&b.id)))
        });
        items
    }

    /// Approved records of the same error or skill, which `items` may repeat.
    pub(super) fn known(&self, items: &[Item]) -> Vec<Item> {
        let groups: HashSet<(Kind, &str)> = items
            .iter()
            .map(|item| (item.kind, item.group.as_str()))
            .collect();
        let fixes = self.approved.iter().map(|fix| self.of_fix(fix));
        let rules = self.in_use.iter().map(of_rule);
        fixes
            .chain(rules)
            .filter(|item| groups.contains(&(item.kind, item.group.as_str())))
            .collect()
    }

    fn of_fix(&self, fix: &Fix) -> Item {
        let error = if fix.error_line.is_empty() {
            &fix.error_key
        } else {
            &fix.error_line
        };
        let mut fields = BTreeMap::new();
        put(&mut fields, "no_hint", &fix.no_hint, MAX_FIELD);
        put(&mut fields, "tool", &fix.tool, MAX_FIELD);
        put(&mut fields, "error", error, MAX_FIELD);
        put(&mut fields, "failed", &fix.failing_code, MAX_FIELD);
        put(&mut fields, "worked", &fix.working_code, MAX_FIELD);
        put(&mut fields, "printed", &fix.success_output, MAX_OUTPUT);
        if let Some(procedure) = self.procedures.get(&fix.procedure_id) {
            let data = data(procedure);
            put(
                &mut fields,
                "cause",
                &text(&data["identified_root_cause"]),
                MAX_FIELD,
            );
            put(
                &mut fields,
                "situation",
                &text(&data["example_scenario_abstract"]),
                MAX_FIELD,
            );
        }
        Item {
            id: fix.fix_id.clone(),
            kind: Kind::Fix,
            fields,
            group: normalised(&fix.error_key),
        }
    }
}

fn of_procedure(procedure: &Procedure) -> Item {
    let data = data(procedure);
    let mut fields = BTreeMap::new();
    for (name, field) in [
        ("name", "procedure_name"),
        ("description", "semantic_description"),
        ("failure", "initial_failure_summary"),
        ("cause", "identified_root_cause"),
        ("steps", "learned_procedure_steps"),
    ] {
        put(&mut fields, name, &text(&data[field]), MAX_FIELD);
    }
    Item {
        id: procedure.procedure_id.clone(),
        kind: Kind::Procedure,
        fields,
        group: procedure.skill.clone().unwrap_or_default(),
    }
}

fn of_rule(rule: &Reflexion) -> Item {
    let mut fields = BTreeMap::new();
    put(&mut fields, "skill", &rule.skill, MAX_FIELD);
    put(&mut fields, "rule", &rule.rule, MAX_FIELD);
    put(&mut fields, "applies_when", &rule.applies_when, MAX_FIELD);
    put(&mut fields, "mistake", &rule.mistake, MAX_FIELD);
    let quotes: Vec<&str> = rule.said.iter().map(|said| said.quote.as_str()).collect();
    put(&mut fields, "quote", &quotes.join("\n\n"), MAX_FIELD);
    if let Some(said) = rule.said.first() {
        put(&mut fields, "after_call", &said.after, MAX_OUTPUT);
    }
    Item {
        id: rule.reflexion_id.clone(),
        kind: Kind::Reflexion,
        fields,
        group: rule.skill.clone(),
    }
}

/// The eight fields of a procedure.
pub(super) fn data(procedure: &Procedure) -> serde_json::Value {
    serde_json::from_str(procedure.data.get()).unwrap_or_default()
}

/// Text of a field; the items of a list become lines.
fn text(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join("\n"),
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

/// Adds a text without secrets, which older data files may hold.
fn put(fields: &mut BTreeMap<&'static str, String>, name: &'static str, text: &str, room: usize) {
    let text = guard::redact(&guard::strip_fenced(text)).text.into_owned();
    if !text.trim().is_empty() {
        fields.insert(name, guard::beginning(&text, room).into_owned());
    }
}
