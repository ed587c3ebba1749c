//! Lessons from past sessions, worded by a model: one question a session.
//!
//! The sessions, their number and an estimate of the price are known before the first call. Each answer is
//! checked against the calls of its session, as that of an agent is, and stored before the next call. A
//! session that was asked about is not asked about again while its file stays the same.

use serde::Serialize;
use serde_json::json;

use crate::model::{ActionType, ExecutionLog, Trust};
use crate::store::ProcessedFile;
use crate::store::workspace::providers::Chosen;
use crate::store::workspace::{Error, Refusal, Scribe, Workspace, data, dollars};
use memctl_llm::{ErrorKind, Llm};

use super::digest::{ReadSession, read};
use super::learn::LearnOptions;
use super::question::{
    Answered, Existing, PROMPT, RefusedLesson, borne_out, existing, holding, lessons_in, question,
};
use super::session_files::files;
use crate::lessons::storage::new_lesson::{LessonOrigin, StoredLesson, store_lesson};
use crate::lessons::storage::words::check;
use crate::lessons::storage::words::{check_words, code_spans};

/// Usual length of an answer, in tokens.
const USUAL_ANSWER: u64 = 1_400;
/// Bytes of a question per token, for the price estimate.
const BYTES_PER_TOKEN: u64 = 4;
/// Mark of a processed file, before its path.
const MARK: &str = "lessons:";

/// A past session.
#[derive(Debug)]
struct PastSession {
    path: String,
    file: ProcessedFile,
    read: ReadSession,
}

/// Planned questions.
#[derive(Debug)]
pub struct PastPlan {
    /// Report so far: the model, what is left out, and the estimated cost.
    pub report: PastReport,
    sessions: Vec<PastSession>,
    /// Instructions.
    system: String,
    llm: Box<Llm>,
    session: Option<String>,
}

/// Text of a question.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct PastQuestion {
    /// Path of the session file.
    pub path: String,
    /// Instructions.
    pub system: String,
    /// Existing lessons, and the digest of the session.
    pub user: String,
}

/// Lessons of past sessions.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct PastReport {
    /// Model, as `provider/model`.
    pub model: String,
    /// Sessions that were asked about.
    pub sessions: Vec<SessionLessons>,
    /// Number of sessions beyond the limits.
    pub left_out: usize,
    /// Number of sessions that were asked about before.
    pub asked_before: usize,
    /// Number of sessions that found nothing out.
    pub nothing: usize,
    /// Number of calls without a usable answer.
    pub failed_calls: usize,
    /// `true` if the last call met an error that every other would meet.
    #[serde(skip)]
    pub unreachable: bool,
    /// Cost of the calls in US dollars, or its estimate in a dry run; `None` if a price is unknown.
    pub cost_usd: Option<f64>,
    /// Questions that would be sent; only in a dry run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<PastQuestion>,
}

/// Lessons of one session.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct SessionLessons {
    /// Path of the session file.
    pub path: String,
    /// Stored lessons.
    pub lessons: Vec<StoredLesson>,
    /// Lessons that the session does not bear out.
    pub refused: Vec<RefusedLesson>,
    /// Reason why there is no answer; `None` if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl PastPlan {
    /// Returns the number of calls.
    pub fn calls(&self) -> usize {
        self.sessions.len()
    }

    /// Returns the report of a run that asks nothing, with the questions.
    ///
    /// # Errors
    ///
    /// [`Error`] if the lessons of the store cannot be read.
    pub fn unasked(self, workspace: &Workspace) -> Result<PastReport, Error> {
        let of_session = |session: &PastSession| {
            let existing = existing(&workspace.store, &session.read)?;
            let request = question(&self.system, &session.read, &existing);
            Ok::<_, Error>(PastQuestion {
                path: session.path.clone(),
                system: request.system,
                user: request.user,
            })
        };
        let questions: Result<Vec<_>, _> = self.sessions.iter().map(of_session).collect();
        Ok(PastReport {
            questions: questions?,
            ..self.report
        })
    }
}

/// Plans the questions: of the newest sessions, in their order, so that a later one may replace what an earlier one says.
/// `None` without a model. `max_calls` is the maximum number of questions.
///
/// # Errors
///
/// [`Error::Refused`] if a cost limit is set and the model has no known price.
pub async fn plan(
    workspace: &Workspace,
    options: &LearnOptions,
    max_calls: usize,
) -> Result<Option<PastPlan>, Error> {
    let Chosen::Model(llm) = workspace.providers.choose(None).await? else {
        return Ok(None);
    };
    let system = workspace
        .settings
        .past_session_prompt
        .as_deref()
        .unwrap_or(PROMPT);
    let report = PastReport {
        model: llm.model().to_owned(),
        cost_usd: Some(0.0),
        ..PastReport::default()
    };
    let mut plan = PastPlan {
        report,
        sessions: Vec::new(),
        system: system.to_owned(),
        llm,
        session: options.session.clone(),
    };
    let processed = workspace.store.processed_files();
    let mut files = files(&options.paths)?;
    files.sort_by_key(|file| std::cmp::Reverse(file.mtime));
    let mut bytes = 0;
    for file in &files {
        let path = file.path.display().to_string();
        if processed.contains(&format!("{MARK}{path}"), file.size, file.mtime) {
            plan.report.asked_before += 1;
            continue;
        }
        let root = workspace.store.directory().parent();
        let Some(read) = read(&file.path, options, root) else {
            continue;
        };
        if read.is_dull() {
            plan.report.nothing += 1;
            continue;
        }
        let request = question(system, &read, &existing(&workspace.store, &read)?);
        let length = (request.system.len() + request.user.len()) as u64;
        let calls = plan.sessions.len() as u64 + 1;
        let cost = plan
            .llm
            .estimate((bytes + length) / BYTES_PER_TOKEN, USUAL_ANSWER * calls);
        if plan.sessions.len() >= max_calls {
            plan.report.left_out += 1;
            continue;
        }
        bytes += length;
        plan.report.cost_usd = cost.map(dollars);
        plan.sessions.push(PastSession {
            path,
            file: ProcessedFile {
                size: file.size,
                mtime: file.mtime,
                steps: read.calls.calls.len() as u64,
            },
            read,
        });
    }
    plan.sessions.reverse();
    Ok(Some(plan))
}

/// Asks the planned questions. `on_session` is called after each session with their number so far.
pub async fn ask(
    workspace: &Workspace,
    plan: PastPlan,
    on_session: &mut dyn FnMut(usize),
) -> Result<PastReport, Error> {
    let mut report = PastReport {
        cost_usd: Some(0.0),
        ..plan.report
    };
    let scribe = Scribe::new(workspace.now, workspace.random, plan.session.as_deref());
    for session in &plan.sessions {
        let existing = existing(&workspace.store, &session.read)?;
        let request = question(&plan.system, &session.read, &existing);
        let answer = plan.llm.ask(&request, &mut |_| {}).await;
        let (cost, text, model) = match answer {
            Ok(reply) => (reply.cost_usd, Ok(reply.text), reply.model),
            Err(error) => {
                report.unreachable = meets_all_questions(error.kind);
                let paid = error.paid().map_or(Some(0.0), |paid| paid.cost_usd);
                (paid, Err(error.to_string()), report.model.clone())
            }
        };
        report.cost_usd = report
            .cost_usd
            .zip(cost)
            .map(|(sum, cost)| dollars(sum + cost));
        let mut writer = workspace.writer()?;
        writer.note_execution_logs(vec![ExecutionLog {
            tool_name: Some(model.clone()),
            output_data: data(
                &json!({ "session": session.read.calls.head.session, "cost_usd": cost }),
            ),
            ..scribe.line("learn", ActionType::Decision)
        }])?;
        drop(writer);
        let answer = text.and_then(|text| lessons_in(&text));
        let mut outcome = SessionLessons {
            path: session.path.clone(),
            lessons: Vec::new(),
            refused: Vec::new(),
            problem: None,
        };
        match answer {
            Ok(lessons) => {
                take(workspace, session, &model, lessons, &existing, &mut outcome)?;
                let mut processed = workspace.store.processed_files();
                processed.insert(format!("{MARK}{}", session.path), session.file);
                processed.save();
            }
            Err(problem) => {
                report.failed_calls += 1;
                outcome.problem = Some(problem);
            }
        }
        report.sessions.push(outcome);
        on_session(report.sessions.len());
        if report.unreachable {
            report.left_out += plan.sessions.len() - report.sessions.len();
            break;
        }
    }
    Ok(report)
}

/// Returns `true` if the next question would end with the same error.
fn meets_all_questions(error: ErrorKind) -> bool {
    matches!(
        error,
        ErrorKind::Config
            | ErrorKind::Auth
            | ErrorKind::SpendLimit
            | ErrorKind::RateLimited
            | ErrorKind::Overloaded
            | ErrorKind::BadRequest(404)
            | ErrorKind::Unreachable
            | ErrorKind::Program
    )
}

/// Checks and stores the lessons of a session.
fn take(
    workspace: &Workspace,
    session: &PastSession,
    model: &str,
    lessons: Vec<Result<Answered, RefusedLesson>>,
    existing: &[Existing],
    report: &mut SessionLessons,
) -> Result<(), Error> {
    let calls = &session.read.calls;
    let origin = LessonOrigin {
        by: format!("model:{model}"),
        trust: Trust::Observed,
        session: calls.head.session.clone(),
        project: calls.head.project.clone(),
        root: None,
    };
    for lesson in lessons {
        let answered = match lesson {
            Ok(answered) => answered,
            Err(refused) => {
                report.refused.push(refused);
                continue;
            }
        };
        let mut refuse = |field, reason: String| {
            let refused = RefusedLesson::of(&answered.args.lesson, field, reason);
            report.refused.push(refused);
        };
        if answered.is_dropped {
            let against = memctl_redact::redact(&answered.against).text;
            refuse("verdict", format!("the model itself dropped it: {against}"));
            continue;
        }
        let seen = &answered.seen;
        if holding(seen, &session.read).next().is_none() {
            let seen = memctl_redact::redact(seen).text;
            refuse("seen", format!("no result of the session has `{seen}`"));
            continue;
        }
        let is_quoted = !seen.is_empty();
        let is_prescribed = answered.is_prescribed;
        let is_of_document = is_quoted && is_prescribed;
        let (mut args, left_out) = borne_out(answered, &session.read);
        let is_shown = |id: &str| existing.iter().any(|(own, _)| own.starts_with(id));
        args.replaces.take_if(|id| id.is_empty() || !is_shown(id));
        if is_prescribed && args.commands.is_empty() && !names_a_place(&args.lesson) {
            let reason = "it names no call, file or folder at which it holds";
            let refused = RefusedLesson::of(&args.lesson, "lesson", reason.to_owned());
            report.refused.push(refused);
            continue;
        }
        let person = &workspace.settings.person;
        let checked = if is_of_document {
            check_words(&args, person)
        } else {
            check(&args, calls, is_quoted, person)
        };
        let checked = checked.map_err(Error::from);
        let stored = checked.and_then(|it| store_lesson(&workspace.records(), &it, &args, &origin));
        match stored {
            Ok(mut stored) => {
                stored.warnings.extend(left_out);
                report.lessons.push(stored);
            }
            Err(Error::Lesson(Refusal { field, reason, .. })) => {
                let reason = [vec![reason], left_out].concat().join("; ");
                report
                    .refused
                    .push(RefusedLesson::of(&args.lesson, field, reason));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns `true` if a text names a file or folder by its path, or a call in backticks. What a document says of no place
/// and no call is good work in general, and would be told at every start.
fn names_a_place(text: &str) -> bool {
    let mut words = text.split(|c: char| c.is_whitespace() || "`'\"(),;".contains(c));
    let is_path = |word: &str| {
        let is_name =
            |part: &str| part.starts_with(|c: char| c.is_alphanumeric() || "._<*".contains(c));
        let (folder, name) = word.split_once('/').unwrap_or_default();
        is_name(folder) && !folder.ends_with(':') && (name.is_empty() || is_name(name))
    };
    words.any(is_path) || code_spans(text).any(|(_, span)| span.contains(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_of_a_project_is_a_path() {
        let check = |text: &str, expected: bool| {
            assert_eq!(names_a_place(text), expected, "{text}");
        };
        check(
            "Never edit `db/migrations/0001_full.sql`: it is a snapshot.",
            true,
        );
        check("Put documents of the CLI into cli/docs, not docs/.", true);
        check(
            "A push that changes .github/workflows/ starts a release.",
            true,
        );
        check("Change lib/*.c together with its header.", true);
        check("Reproduce a problem before you mend it.", false);
        check(
            "Break lines of .md and .mdx files at 120 characters.",
            false,
        );
        check("See https://example.com/docs first.", false);
        check("Check a change with `bun run verify`.", true);
        check("Answer with `yes`.", false);
    }
}
