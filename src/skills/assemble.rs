//! Assembles the prompt for the model of a skill: its layers, its rules, and approved procedures.
//!
//! Approved procedures are compared with the input as in `search`, by keywords and vectors. That loads the
//! embedder, so it happens only if there is an input and such a procedure. No hook assembles a prompt. Only
//! approved procedures may enter an instruction layer. The `trust` field of a file is a claim: it counts only
//! if this user vouches for the record.

use std::collections::HashSet;

use memctl_files::json;
use serde::Serialize;

use crate::model::{
    Kind, OBSERVED, Procedure, Record as _, Reflexion, SkillPath, Trust, push_values, with_origin,
};
use crate::notes::{FindOptions, compare};
use crate::rules::in_use::{self, suspicion};
use crate::skills::prompt::{self, Assembly, Choice};
use crate::store::skill::Skill;
use crate::store::workspace::{Error, Workspace};
use crate::store::{Problem, Pulled, Scoped, Selection};

/// Maximum number of procedures that are compared with an input.
const COMPARED: usize = 100;
/// Maximum length of an input that is compared, in characters: more than the embedder reads.
const LONGEST: usize = 4_000;

/// Prompt, its parts, and the problems of the skill.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct PromptReport {
    /// Path of the skill.
    pub skill: SkillPath,
    /// Prompt and its parts.
    #[serde(flatten)]
    pub assembly: Assembly,
    /// `true` if a damaged file may have kept rules out of it.
    #[serde(skip)]
    pub is_incomplete: bool,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Returns the prompt of a skill, for this input if one is given.
pub fn prompt(
    workspace: &Workspace,
    skill: &SkillPath,
    input: Option<&str>,
) -> Result<PromptReport, Error> {
    let (_, skill) = workspace.skill(skill)?;
    let mut warnings: Vec<String> = skill.problems.clone();
    let assembly = assemble(workspace, &skill, input, &mut warnings)?;
    Ok(PromptReport {
        skill: skill.path,
        is_incomplete: false,
        assembly,
        warnings,
    })
}

pub(crate) fn assemble(
    workspace: &Workspace,
    skill: &Skill,
    input: Option<&str>,
    warnings: &mut Vec<String>,
) -> Result<Assembly, Error> {
    let (rules, problems) = in_use::rules(&workspace.store, &Selection::of(&skill.path))?;
    let (procedures, of_procedures) = approved(&workspace.store)?;
    let problems = problems.iter().chain(&of_procedures);
    warnings.extend(problems.map(ToString::to_string));
    let shown = rules
        .iter()
        .filter(|rule| !rule.is_candidate() && !rule.observed);
    warnings.extend(shown.filter_map(suspicion));
    warnings.extend(untrusted(&rules));
    let path = skill.path.to_string();
    let may_fit = |procedure: &Procedure| procedure.skill.as_ref().is_none_or(|of| *of == path);
    let near = match input.filter(|_| procedures.iter().any(may_fit)) {
        Some(input) => near(workspace, input, warnings)?,
        None => Vec::new(),
    };
    Ok(of_records(
        workspace, skill, &rules, &procedures, &near, input,
    ))
}

/// Returns the approved procedures near an input, with their scores.
fn near(
    workspace: &Workspace,
    input: &str,
    warnings: &mut Vec<String>,
) -> Result<Vec<(String, f64)>, Error> {
    let mut text = String::new();
    match serde_json::from_str(input) {
        // Names of fields say nothing about the task.
        Ok(json) => push_values(json, &mut text),
        Err(_) => text.push_str(input),
    }
    let text = memctl_redact::redact(&text).text;
    let text = memctl_redact::beginning(&text, LONGEST).into_owned();
    let mut options = FindOptions::new(text, COMPARED);
    options.filter.kind = Some(Kind::Procedure);
    options.filter.trust = Some(Trust::Approved);
    let found = compare(workspace, &options, &mut |_, _| {})?;
    warnings.extend(found.warnings);
    let near = found.results.iter();
    Ok(near.map(|found| (found.name(), found.score)).collect())
}

/// Assembles the prompt from these rules, within the token budget. It has no procedures, since
/// tests judge rules.
pub(crate) fn assemble_layers(
    workspace: &Workspace,
    skill: &Skill,
    rules: &[Reflexion],
    input: Option<&str>,
) -> Assembly {
    of_records(workspace, skill, rules, &[], &[], input)
}

/// Assembles the prompt from rules and approved procedures with their scores for the input.
fn of_records(
    workspace: &Workspace,
    skill: &Skill,
    rules: &[Reflexion],
    procedures: &[Procedure],
    near: &[(String, f64)],
    input: Option<&str>,
) -> Assembly {
    let directory = workspace.store.directory();
    let memory = directory.file_name().unwrap_or(directory.as_os_str());
    let choice = Choice {
        input,
        near,
        skill: &skill.path.to_string(),
        memory: &memory.to_string_lossy(),
        budget: workspace.settings.rules_tokens,
        procedures_budget: workspace.settings.procedures_tokens,
        now: workspace.now,
        nonce: &(workspace.random)(),
    };
    let clean = |text: &mut String| *text = memctl_redact::redact(text).text.into_owned();
    let mut layers = skill.layers();
    for layer in &mut layers {
        clean(&mut layer.text);
    }
    // Data files from other programs or older versions may hold secrets.
    let mut rules = rules.to_vec();
    for rule in &mut rules {
        clean(&mut rule.rule);
        clean(&mut rule.applies_when);
        clean(&mut rule.source);
    }
    let mut procedures = procedures.to_vec();
    for procedure in &mut procedures {
        let clean = memctl_redact::redact_json(procedure.data.get()).text;
        // Redacted JSON is valid JSON; if it were not, nothing of it would be shown.
        procedure.data = serde_json::from_str(&clean).unwrap_or_default();
    }
    prompt::assemble(&layers, &rules, &procedures, &choice)
}

/// Warning about rules that the user has not approved.
fn untrusted(rules: &[Reflexion]) -> Option<String> {
    let count = rules.iter().filter(|rule| rule.observed).count();
    let noun = if count == 1 { "rule is" } else { "rules are" };
    (count > 0).then(|| {
        format!(
            "{count} {noun} not yours, and shown to the model as data only; to look and decide: memctl trust, \
             for those of a sync with --origin"
        )
    })
}

/// Returns the approved procedures, oldest first, and the problems of the files: those of this memory, then
/// those of other workspaces with other texts.
fn approved(store: &Scoped) -> Result<(Vec<Procedure>, Vec<Problem>), Error> {
    let (mut found, mut problems) = approved_in(store)?;
    let mut contents: HashSet<String> = found.iter().map(Procedure::content).collect();
    for Pulled { origin, store } in store.others() {
        let (theirs, trouble) = approved_in(&store)?;
        problems.extend(trouble);
        for mut procedure in theirs {
            if contents.insert(procedure.content()) {
                procedure.procedure_id = with_origin(&procedure.procedure_id, &origin);
                found.push(procedure);
            }
        }
    }
    Ok((found, problems))
}

fn approved_in(store: &Scoped) -> Result<(Vec<Procedure>, Vec<Problem>), Error> {
    let mut claimed: Vec<Procedure> = Vec::new();
    let problems = store.each_entry(Kind::Procedure, &Selection::default(), &mut |entry| {
        // Most procedures are observed, and are not worth parsing.
        let claim = json::string_field(&entry.text, "trust");
        if claim.is_some_and(|claim| !claim.is_empty() && claim != OBSERVED) {
            claimed.extend(entry.parse::<Procedure>().ok());
        }
    })?;
    if !claimed.is_empty() {
        let trust_snapshot = store.trust_snapshot();
        claimed.retain(|procedure| trust_snapshot.level(procedure) != Trust::Observed);
    }
    Ok((claimed, problems))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;
    use crate::store::{Approvals, PulledChange};
    use memctl_files::named;
    use serde_json::{Value, json};

    fn procedure(id: &str, trust: &str, name: &str) -> Value {
        json!({"procedure_id": id, "trust": trust, "data": {"procedure_name": name}})
    }

    #[test]
    fn only_what_this_user_vouches_for_is_approved() {
        let dir = tempfile::tempdir().unwrap();
        let own = json!({"entries": [procedure("PROC-001", "approved", "a"),
            procedure("PROC-002", "observed", "b"), procedure("PROC-003", "", "c")]});
        let path = dir.path().join(Kind::Procedure.file());
        named::replace(&path, own.to_string().as_bytes()).unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        let ids = |store: &Scoped| -> Vec<String> {
            let (found, _) = approved(store).unwrap();
            found.into_iter().map(|p| p.procedure_id).collect()
        };
        assert_eq!(ids(&store), [""; 0]);
        assert_eq!(ids(&store.trusting(Approvals::everything())), ["PROC-001"]);
    }

    #[test]
    fn procedure_of_another_workspace_comes_last_and_says_something_else() {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All).trusting(Approvals::everything());
        let change = |id: &str, name: &str| PulledChange {
            id: id.to_owned(),
            text: Some(procedure(id, "approved", name).to_string()),
        };
        let theirs = [change("PROC-001", "a"), change("PROC-002", "b")];
        let origin = "3f2a9c1b-0000-4000";
        store
            .pull()
            .unwrap()
            .apply(origin, Kind::Procedure, &theirs)
            .unwrap();
        let own = json!({"entries": [procedure("PROC-001", "approved", "a")]});
        let path = dir.path().join(Kind::Procedure.file());
        named::replace(&path, own.to_string().as_bytes()).unwrap();
        let (found, _) = approved(&store).unwrap();
        let ids: Vec<&str> = found.iter().map(|p| p.procedure_id.as_str()).collect();
        assert_eq!(ids, ["PROC-001", "PROC-002@3f2a9c1b"]);
    }
}
