//! `learn`: lessons from agents' session files.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use memctl_files::named;
use memctl_sessions::Format;
use serde::Serialize;

use crate::cli::ask::{Spending, price};
use crate::cli::context::Context;
use crate::cli::ending::wait;
use crate::cli::output::{Done, Page, Report, Style, plural};
use crate::cli::start::places::directory;
use crate::host::Host;
use crate::lessons::past::past_sessions::{self, PastReport};
use crate::lessons::{self, LearnOptions, LearnReport, TidyReport, TranscriptReport, tidy};
use crate::model::error::{Kind, UserError};
use crate::store::workspace::Workspace;

/// Learn from failures and recoveries in agent sessions
///
/// Reads session files of Claude Code, Codex, Gemini CLI, SWE-agent and other agents, lists of OpenAI and
/// Anthropic messages, and JSON Lines of steps. Searches folders recursively, and skips unchanged
/// files that were read before. Without a path, it reads the sessions of this project that Claude Code
/// and Codex have kept, and the history in `.specstory`. Nothing is counted twice.
/// A recovery whose working call is the failing one with a small change becomes a pattern. It is told
/// only at the same failure in the same project, until a person approves it. `--json` lists every recovery, also
/// those without a pattern, with the reason.
///
/// With `--model`, a model words the lessons of each session in which something failed or was found out: one
/// question a session, over a digest of its calls. A lesson is stored only if the session bears it out.
/// Sessions that were asked about are not asked about again.
///
/// ```console
/// $ memctl learn
/// $ memctl learn ~/.claude/projects
/// $ memctl learn --model 'exec:claude -p' --max-calls 5
/// $ memctl learn --tidy
/// ```
#[derive(Debug, Args)]
pub(crate) struct LearnArgs {
    /// Show what would be learned, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Let this model word the lessons of each session: `provider/model`, `exec:PROGRAM` or
    /// `scripted:FILE`. Prints the calls and the estimated cost first
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Maximum number of model calls, one a session
    #[arg(long, value_name = "N", default_value_t = 20, requires = "model")]
    max_calls: usize,
    /// Call the model without a question about the cost
    #[arg(long, requires = "model")]
    yes: bool,
    /// Merge equal lessons and retire those that stopped working, without a model; reads no session
    #[arg(long, conflicts_with_all = ["model", "paths", "format"])]
    tidy: bool,
    /// Session files, or folders of them
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Format of the files, if it cannot be detected from the content
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(Format::ALL.map(|(_, name)| name)))]
    format: Option<String>,
}

pub(crate) fn learn(context: &Context, args: &LearnArgs) -> Done {
    let workspace = context.workspace(args.model.as_deref())?;
    if args.tidy {
        return Ok(Box::new(tidy(&workspace.records(), args.dry_run)?));
    }
    let (paths, project) = args.files(context)?;
    let options = LearnOptions {
        project_name: context.project_name(),
        paths,
        project,
        format: args.format.as_deref().and_then(Format::from_name),
        dry_run: args.dry_run,
        session: context.session(None),
        ..LearnOptions::default()
    };
    let mut lessons = None;
    let report = learn_from(context, &workspace, &options)?;
    if args.model.is_some() {
        lessons = past_lessons(context, &workspace, &options, args)?;
    }
    Ok(Box::new(SessionsLearned { report, lessons }))
}

/// Lets a model word the lessons of past sessions. `None` without a model.
fn past_lessons(
    context: &Context,
    workspace: &Workspace,
    options: &LearnOptions,
    args: &LearnArgs,
) -> Result<Option<PastReport>, UserError> {
    let Some(plan) = wait(past_sessions::plan(workspace, options, args.max_calls))?? else {
        return Ok(None);
    };
    if options.dry_run || plan.calls() == 0 {
        return Ok(Some(plan.unasked(workspace)?));
    }
    let left_out = match plan.report.left_out {
        0 => String::new(),
        count => format!("; {} left for another run", plural(count as u64, "session")),
    };
    let spending = Spending {
        models: std::slice::from_ref(&plan.report.model),
        calls: plan.calls(),
        cost_usd: plan.report.cost_usd,
        about: format!(" about {}", plural(plan.calls() as u64, "session")),
        also: left_out,
    };
    if !spending.announce(context, args.yes)? {
        return Ok(None);
    }
    let bar = context.printer.work("asking about sessions");
    let calls = plan.calls();
    bar.reach(0, calls);
    let mut on_session = |done: usize| bar.reach(done, calls);
    let report = past_sessions::ask(workspace, plan, &mut on_session);
    Ok(Some(wait(report)??))
}

/// Shows the lessons of past sessions, and what was refused.
pub(crate) fn show_past(past: &PastReport, page: &mut Page) {
    for session in &past.sessions {
        for stored in &session.lessons {
            let of = if stored.added { "" } else { " (known)" };
            let lesson = format!("{}{of}", stored.lesson);
            page.sentence(Style::Good, &format!("{}  ", stored.id), &lesson);
            if let Some(old) = &stored.replaced {
                page.note("  replaces ", old);
            }
            for warning in &stored.warnings {
                page.note("  ", warning);
            }
        }
        for refused in &session.refused {
            let (field, reason) = (&refused.field, &refused.reason);
            page.warn(format!("refused, `{field}`: {reason}: "), &refused.lesson);
        }
        if let Some(problem) = &session.problem {
            page.bad(format!("{}: ", session.path), problem);
        }
    }
    let answered = past.sessions.iter().filter(|one| one.problem.is_none());
    let ends = [
        (answered.count(), "asked about"),
        (past.questions.len(), "to ask about"),
        (past.asked_before, "asked about before"),
        (past.nothing, "found nothing out"),
        (past.left_out, "left for another run"),
    ];
    let ends = [vec![price(past.cost_usd)], counted("session", &ends)].concat();
    page.dim(ends.join(" · "));
}

impl Report for TidyReport {}

/// The counts above 0 of something, in words.
fn counted(noun: &str, counts: &[(usize, &str)]) -> Vec<String> {
    let there = counts.iter().filter(|(count, _)| *count > 0);
    let words = there.map(|(count, what)| format!("{} {what}", plural(*count as u64, noun)));
    words.collect()
}

/// Report of `learn`: patterns of session files, and the lessons that a model worded.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct SessionsLearned {
    #[serde(flatten)]
    report: LearnReport,
    /// Lessons that a model worded; absent if none was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    lessons: Option<PastReport>,
}

impl Report for SessionsLearned {
    fn page(&self, page: &mut Page) {
        // A file that the caller named and that is no session is bad input.
        if self.report.unread > 0 {
            page.exit_code = Kind::Usage.code();
        }
        show(&self.report, page);
        if let Some(past) = &self.lessons {
            if past.unreachable {
                page.exit_code = Kind::Model.code();
            }
            show_past(past, page);
        }
    }
}

/// Shows what was learned from session files, the result first.
fn show(report: &LearnReport, page: &mut Page) {
    let result = if report.dry_run {
        "nothing stored (dry run)".to_owned()
    } else {
        format!("{} learned", plural(report.learned.len() as u64, "lesson"))
    };
    let sum = |of: fn(&TranscriptReport) -> usize| report.transcripts.iter().map(of).sum::<usize>();
    let read = format!(
        " from {}: {}, {} failed, {} recovered",
        plural(report.transcripts.len() as u64, "session"),
        plural(sum(|one| one.steps) as u64, "call"),
        sum(|one| one.failures),
        report.episodes.len(),
    );
    page.styled(&[(Style::Strong, &result), (Style::Plain, &read)]);
    for transcript in &report.transcripts {
        for problem in &transcript.problems {
            let place = format!("{}:{}: ", transcript.path, problem.line);
            page.note(place, &problem.message);
        }
    }
    let lessons = [
        (report.merged.len(), "seen again"),
        (report.buried, "deleted earlier, not learned again"),
    ];
    let files = [
        (report.unchanged, "unchanged since the last run"),
        (report.skipped, "skipped"),
    ];
    let ends = [counted("lesson", &lessons), counted("file", &files)].concat();
    if !ends.is_empty() {
        page.dim(ends.join(" · "));
    }
    if !report.learned.is_empty() {
        page.dim("to approve it: memctl review");
    }
}

impl LearnArgs {
    /// Returns the absolute paths. Without any, those in which agent hosts keep the sessions of this
    /// project, with the directory that sessions must have run in.
    fn files(&self, context: &Context) -> Result<(Vec<PathBuf>, Option<String>), UserError> {
        if !self.paths.is_empty() {
            let paths = self
                .paths
                .iter()
                .map(|path| context.environment.absolute(path));
            return Ok((paths.collect(), None));
        }
        let project = context.project().display().to_string();
        let found = project_sessions(context);
        if found.is_empty() {
            return Err(UserError::usage(
                format!("no sessions of `{project}` found"),
                "name the files or a folder: memctl learn ~/.claude/projects",
            ));
        }
        Ok((found, Some(project)))
    }
}

/// Folders in which other hosts than Claude Code keep the sessions of all projects, below their settings.
const FOLDERS: [(Host, &str); 3] = [
    (Host::Codex, "sessions"),
    (Host::Gemini, "tmp"),
    (Host::Cline, "data/sessions"),
];

/// Folders in which the sessions of this project are kept: those of [`host_sessions`], and the history that `SpecStory`
/// keeps in the project. That one can come from others, with what it calls the user's words.
pub(crate) fn project_sessions(context: &Context) -> Vec<PathBuf> {
    let history = context.project().join(".specstory/history");
    let history = Some(history).filter(|path| named::is_dir(path));
    host_sessions(context).into_iter().chain(history).collect()
}

/// Folders in which agent hosts keep the sessions of this project. Those of all but Claude Code hold the
/// sessions of all projects.
pub(crate) fn host_sessions(context: &Context) -> Vec<PathBuf> {
    // Claude Code names a folder after the path that its sessions began in: the project or one below it. The sessions
    // themselves say which project they are of.
    let name = context.project().display().to_string();
    let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let below = format!("{name}-");
    let folders = directory(context, Host::ClaudeCode).map(|dir| dir.join("projects"));
    let folders = folders.and_then(|dir| named::list(&dir).ok());
    let claude = folders.into_iter().flatten().filter(|entry| {
        let folder = entry.file_name();
        let folder = folder.to_string_lossy();
        folder == name.as_str() || folder.starts_with(&below)
    });
    let claude = claude.map(|entry| entry.path());
    let of_all = FOLDERS.iter();
    let of_all = of_all.filter_map(|(host, name)| Some(directory(context, *host)?.join(name)));
    let all = claude.into_iter().chain(of_all);
    all.filter(|path| named::is_dir(path)).collect()
}

/// Learns from session files, with a line about how much is read.
pub(crate) fn learn_from(
    context: &Context,
    workspace: &Workspace,
    options: &LearnOptions,
) -> Result<LearnReport, UserError> {
    Ok(context.printer.counting("reading", |reach| {
        // In kilobytes, because reading takes most of the time.
        let count = |bytes: u64| usize::try_from(bytes >> 10).unwrap_or(usize::MAX);
        let progress = &mut |done, of| reach(count(done), count(of));
        lessons::learn(&workspace.records(), options, progress)
    })?)
}
