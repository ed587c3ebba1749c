//! Answers of a run: from a model, with the files that it asks for, or offline from the nearest known case.
//!
//! Installed coding agents can answer instead of a model. They need no key here, because their user has signed
//! in to them. The user is told their names, but none is chosen automatically, because its answers may count
//! against a subscription.

use std::path::PathBuf;
use std::time::Instant;

use memctl_files::{json, named};
use memctl_llm::{Llm, OnProgress, Request};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::RunReport;
use crate::model::error::Kind as ErrorKind;
use crate::model::{NearestCase, SkillPath};
use crate::skills::nearest::nearest;
use crate::skills::prompt::tokens;
use crate::store::skill::{Skill, Skills};
use crate::store::workspace::{Error, Workspace, dollars, milliseconds};

/// Similarity of a case that answers although nobody asked for an offline answer: nearly the same
/// input, so that a model would have little to add.
const NEARLY_THE_SAME: f64 = 0.9;
/// Model name of offline answers in records.
const OFFLINE: &str = "offline/nearest-case";
/// Maximum size of the files of one request, in tokens.
const BUDGET: usize = 4_000;
/// Program of an agent, and the command that reads a prompt from standard input.
const AGENTS: [(&str, &str); 3] = [
    ("claude", "claude -p"),
    ("codex", "codex exec --skip-git-repo-check -"),
    ("gemini", "gemini"),
];

/// Answers with a model. One that asks for files of the skill is called once more, with them.
pub(super) async fn answer(
    skills: &Skills,
    skill: &Skill,
    llm: &Llm,
    mut request: Request,
    progress: OnProgress<'_>,
    report: &mut RunReport,
) -> Result<(), memctl_llm::Error> {
    let mut reply = llm.ask(&request, progress).await?;
    if let Some(files) = requested_files(skills, skill, &reply.text) {
        request.system.push_str(&files);
        let asking = std::mem::replace(&mut reply, llm.ask(&request, progress).await?);
        reply.latency += asking.latency;
        reply.cost_usd = reply.cost_usd.zip(asking.cost_usd).map(|(a, b)| a + b);
        reply.usage = reply.usage.zip(asking.usage).map(|(mut all, more)| {
            all.input_tokens += more.input_tokens;
            all.output_tokens += more.output_tokens;
            all
        });
    }
    report.output = output(&reply.text);
    report.model_used = reply.model;
    report.cost_usd = reply.cost_usd.map(dollars);
    report.latency_ms = milliseconds(reply.latency);
    report.usage = reply.usage;
    Ok(())
}

/// Answer that asks for files.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    read: Vec<String>,
}

/// Returns the files that an answer asks for, as a further part of the prompt; `None` if it is an answer.
/// A file that is not listed, cannot be read or exceeds the budget is named with the reason.
pub(crate) fn requested_files(skills: &Skills, skill: &Skill, answer: &str) -> Option<String> {
    if skill.files.is_empty() {
        return None;
    }
    let Wanted { mut read } = serde_json::from_str(output(answer).get()).ok()?;
    read.dedup();
    read.truncate(skill.files.len());
    let mut budget = BUDGET;
    let mut part = "\n\n---\n\n# Files that you asked for; answer now".to_owned();
    for path in &read {
        let is_listed = skill.files.iter().any(|file| file.path == *path);
        let text = is_listed.then(|| skills.read(&skill.dir.join(path)).ok().flatten());
        let text = text
            .flatten()
            .map(|text| memctl_redact::redact(&text).text.into_owned());
        let text = match text {
            Some(text) if tokens(&text) <= budget => {
                budget -= tokens(&text);
                text
            }
            Some(_) => format!("(left out: more than {BUDGET} tokens with the others)"),
            None => "(not a file of this skill that can be read)".to_owned(),
        };
        let shown = path.escape_debug().to_string();
        part.extend(["\n\n## ", &shown, "\n\n", text.trim()]);
    }
    Some(part)
}

/// Parses a model's answer: a JSON object, bare or in one code fence. Any other text becomes
/// `raw_output`.
pub(crate) fn output(text: &str) -> Box<RawValue> {
    let trimmed = text.trim();
    let fenced = trimmed
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"));
    let fenced = fenced.and_then(|rest| rest.split_once('\n'));
    let inner = fenced.map_or(trimmed, |(_, inner)| inner.trim());
    let object = Some(inner).filter(|inner| inner.starts_with('{'));
    // An object that could not be stored is kept as text.
    let object = object.filter(|object| json::unreadable(object).is_none());
    let object = object.and_then(|object| serde_json::from_str(object).ok());
    let text = || serde_json::value::to_raw_value(&json!({ "raw_output": text })).ok();
    object.or_else(text).unwrap_or_default()
}

/// Answers with the nearest known case. Where nobody asked for that, it must be nearly the same as
/// the input.
pub(super) fn answer_offline(
    workspace: &Workspace,
    skills: &Skills,
    skill: &Skill,
    input: &RawValue,
    report: &mut RunReport,
) -> Result<(), Error> {
    let start = Instant::now();
    let mut examples = skills.examples(&skill.path)?;
    report.warnings.append(&mut examples.problems);
    let store = (!report.stateless).then_some(&workspace.store);
    let floor = workspace.settings.min_similarity;
    let found = nearest(store, &skill.path, &examples.cases, input, floor)?;
    let is_requested = workspace.providers.asks_for_offline();
    let percent = |share: f64| format!("{:.0}%", share * 100.0);
    let skill = &skill.path;
    let (nearest, replayable) = match found {
        Some(case) if is_requested || case.similarity >= NEARLY_THE_SAME => {
            report.warnings.extend(case.wrong.map(|correction| format!(
                "this output is known to be wrong: {correction} corrected it without saying what it \
                 should be; give that with `memctl correct {skill} --execution-id … --expected FILE`"
            )));
            report.output = case.output;
            OFFLINE.clone_into(&mut report.model_used);
            report.cost_usd = Some(0.0);
            report.latency_ms = milliseconds(start.elapsed());
            report.nearest_case = Some(NearestCase {
                source: case.source,
                similarity: (case.similarity * 1000.0).round() / 1000.0,
            });
            return Ok(());
        }
        Some(case) => (
            format!("the nearest is {} alike", percent(case.similarity)),
            true,
        ),
        None => (format!("none is {} alike", percent(floor)), false),
    };
    let (message, hint) = if is_requested {
        (
            format!("no known case of `{skill}` is near enough to this input ({nearest})"),
            format!(
                "add a case to `skills/{skill}/examples/`, lower `offline.min_similarity`, or name a \
                 model: memctl run {skill} --model PROVIDER/MODEL"
            ),
        )
    } else {
        (
            format!("no model is configured, and no known case answers for `{skill}` ({nearest})"),
            ways_to_a_model(workspace, skill, replayable),
        )
    };
    Err(Error::Refused(ErrorKind::Model, message, hint))
}

/// Lists the ways to a model, one a line: a program, a key, a server; and the nearest case, where
/// there is one.
fn ways_to_a_model(workspace: &Workspace, skill: &SkillPath, replayable: bool) -> String {
    let agents = installed_agents(&workspace.providers.search_path);
    let agent =
        |agent: &String| format!("an installed agent: memctl run {skill} --model '{agent}'");
    let mut ways: Vec<String> = agents.iter().map(agent).collect();
    if ways.is_empty() {
        ways.push(format!(
            "an agent's program: memctl run {skill} --model 'exec:claude -p'"
        ));
    }
    ways.push("a key: set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY".to_owned());
    ways.push(
        "a local server: start Ollama (port 11434), or set MEMCTL_LOCAL_BASE_URL to another"
            .to_owned(),
    );
    if replayable {
        ways.push(format!(
            "or replay the nearest case: memctl run {skill} --model offline"
        ));
    }
    format!("choose who answers\n  {}", ways.join("\n  "))
}

/// Returns the commands of the agents that are installed in these directories, as `--model` takes
/// them: `exec:claude -p`.
pub(crate) fn installed_agents(search_path: &[PathBuf]) -> Vec<String> {
    let is_there = |program: &str| {
        search_path
            .iter()
            .any(|dir| named::is_file(&dir.join(program)))
    };
    let installed = AGENTS.iter().filter(|(program, _)| is_there(program));
    installed
        .map(|(_, command)| format!("exec:{command}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_its_object_or_its_text() {
        let check = |text: &str, expected: &str| assert_eq!(output(text).get(), expected);
        check(" {\"a\": 1.0} \n", "{\"a\": 1.0}");
        check("```json\n{\"a\": 1}\n```", "{\"a\": 1}");
        check("Here: {\"a\": 1}", r#"{"raw_output":"Here: {\"a\": 1}"}"#);
        check("[1, 2]", r#"{"raw_output":"[1, 2]"}"#);
        check("{broken", r#"{"raw_output":"{broken"}"#);
        check("", r#"{"raw_output":""}"#);
        check("{\"a\": 1e400}", r#"{"raw_output":"{\"a\": 1e400}"}"#);
    }

    #[test]
    fn agents_on_the_path_are_named_with_their_command() {
        let dir = tempfile::tempdir().unwrap();
        let path = [dir.path().join("missing"), dir.path().to_owned()];
        assert_eq!(installed_agents(&path), [""; 0]);
        std::fs::write(dir.path().join("gemini"), "").unwrap();
        std::fs::write(dir.path().join("claude"), "").unwrap();
        std::fs::create_dir(dir.path().join("codex")).unwrap();
        assert_eq!(installed_agents(&path), ["exec:claude -p", "exec:gemini"]);
    }
}
