//! `memory check`: the calls that a rule acts on.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use dialoguer::Confirm;
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::learning::session_files::{project_sessions, reading};
use crate::cli::output::{Page, Report, Style, end, middle, plural};
use crate::cli::question::ask;
use crate::error::UserError;
use crate::insight::{DryRunOptions, DryRunReport, dry_run};
use crate::model::{Check, CheckAction, Reflexion};
use crate::platform::named;
use crate::review::{self, CheckReport};

/// Maximum number of calls on the page; `--json` has all of them.
const SHOWN: usize = 20;

/// Choose the calls of agents that a rule acts on
///
/// An approved rule with a check is told to the agent at the call itself: as a note, or the host
/// asks or refuses. Without patterns, the check is proposed from the words of the rule. Nothing acts
/// before you confirm it, here or with `--yes`.
///
/// A command pattern is a program, and words that follow in this order: `npm`, `git push --force`.
/// `*` and `?` are wildcards. It is matched with the parsed command line: `cd x && npm install`
/// runs `npm`, `echo npm` does not. A path pattern names files that the call changes, relative to
/// the project: `db/migrations/`, `**/*.pb.go`. All given patterns must match.
///
/// A check is a reminder for agents, and no security boundary.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl memory check REFL-001\n  \
    memctl memory check REFL-001 --command npm --dry-run\n  \
    memctl memory check REFL-001 --path 'db/migrations/' --action ask --yes\n  \
    memctl memory check REFL-001 --remove")]
pub(in crate::cli) struct CheckArgs {
    /// Id of the rule, or the beginning of it
    id: String,
    /// Pattern for a command
    #[arg(long, value_name = "PATTERN")]
    command: Option<String>,
    /// Pattern for the path of a file
    #[arg(long, value_name = "GLOB")]
    path: Option<String>,
    /// Pattern for the name of a tool; alternatives with `|`
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Answer to a call that matches
    #[arg(long, value_name = "ACTION")]
    action: Option<ActionName>,
    /// Show the calls of past sessions that match, and store nothing
    #[arg(long)]
    dry_run: bool,
    /// Session files or folders for the dry run. Default: Claude Code's and Codex's of this project
    #[arg(long, value_name = "PATH", num_args = 1..)]
    sessions: Vec<PathBuf>,
    /// Store without asking
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    /// Remove the check
    #[arg(long, conflicts_with_all = ["command", "path", "tool", "action", "dry_run", "yes", "sessions"])]
    remove: bool,
}

/// Answer to a call.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ActionName {
    /// Tell the agent, and let the call run
    Note,
    /// Let the host ask you
    Ask,
    /// Let the host refuse the call
    Deny,
}

impl ActionName {
    const fn action(self) -> CheckAction {
        match self {
            Self::Note => CheckAction::Note,
            Self::Ask => CheckAction::Ask,
            Self::Deny => CheckAction::Deny,
        }
    }
}

/// Check, with where it comes from and its dry run.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(in crate::cli) struct Shown {
    #[serde(flatten)]
    report: CheckReport,
    /// `given`, `stored` or `proposed`.
    from: &'static str,
    /// Words that the proposal comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dry_run: Option<DryRunReport>,
    /// Command that stores the check; `None` if nothing is left to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

pub(in crate::cli) fn check(
    context: &Context,
    args: &CheckArgs,
) -> Result<Box<dyn Report>, UserError> {
    let workspace = context.workspace(None)?;
    if args.remove {
        return Ok(Box::new(Shown {
            report: review::remove_check(&workspace, &args.id)?,
            from: "stored",
            because: None,
            dry_run: None,
            next: None,
        }));
    }
    let known = review::checked_rule(&workspace, &args.id)?;
    let id = known.rule.reflexion_id.clone();
    let (mut check, from, because) = wanted(context, args, &known.rule)?;
    if let Some(action) = args.action {
        check.action = action.action();
    }
    let is_active = known.confirmed && known.rule.check.as_ref() == Some(&check);
    let mut shown = Shown {
        report: CheckReport {
            id: id.clone(),
            rule: known.rule.rule,
            check: Some(check.clone()),
            active: is_active,
            warnings: Vec::new(),
        },
        from,
        because,
        dry_run: None,
        next: (!is_active).then(|| command_for(&id, &check)),
    };
    let asks = !is_active && !args.yes && !args.dry_run && context.is_interactive();
    if args.dry_run || asks {
        shown.dry_run = Some(replay(context, args, &check)?);
    }
    let next = if asks { shown.next.take() } else { None };
    let stores = args.yes && !is_active || asks && confirms(context, &shown)?;
    shown.next = shown.next.or(next);
    if stores {
        shown.report = review::check(&workspace, &id, &check)?;
        shown.next = None;
        shown.dry_run = None;
    }
    Ok(Box::new(shown))
}

/// Returns the check that the user means, where it comes from, and the words of a proposal.
fn wanted(
    context: &Context,
    args: &CheckArgs,
    rule: &Reflexion,
) -> Result<(Check, &'static str, Option<String>), UserError> {
    let text = |given: &Option<String>| given.as_deref().unwrap_or_default().trim().to_owned();
    let given = Check {
        tool: text(&args.tool),
        command: text(&args.command),
        path: text(&args.path),
        action: CheckAction::Note,
    };
    if !given.is_blank() {
        return Ok((given, "given", None));
    }
    if let Some(check) = &rule.check {
        return Ok((check.clone(), "stored", None));
    }
    let id = &rule.reflexion_id;
    let proposal = review::propose_check(rule, &|word| is_program(context, word));
    let proposal = proposal.map_err(|reason| {
        UserError::usage(
            format!("no check can be proposed for `{id}`: {reason}"),
            format!("memctl memory check {id} --command PATTERN, or --path GLOB, or --tool NAME"),
        )
    })?;
    Ok((proposal.check, "proposed", Some(proposal.because)))
}

/// One line about the check that a newly approved rule could have; `None` if it has one, or none can
/// be proposed.
pub(super) fn proposal_line(context: &Context, rule: &Reflexion) -> Option<String> {
    if rule.check.is_some() {
        return None;
    }
    let proposal = review::propose_check(rule, &|word| is_program(context, word)).ok()?;
    Some(format!(
        "{} could get a note; to confirm: memctl memory check {}",
        words(&proposal.check),
        rule.reflexion_id
    ))
}

/// Returns `true` if a directory of the `PATH` holds a program of this name.
fn is_program(context: &Context, word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    if word.len() < 2 || !word.chars().all(plain) || word.starts_with('.') {
        return false;
    }
    let path = context.environment.var("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| named::is_file(&directory.join(word)))
}

fn replay(context: &Context, args: &CheckArgs, check: &Check) -> Result<DryRunReport, UserError> {
    let absolute = |path: &PathBuf| context.environment.absolute(path);
    let options = DryRunOptions {
        paths: if args.sessions.is_empty() {
            project_sessions(context)
        } else {
            args.sessions.iter().map(absolute).collect()
        },
        format: None,
        project: context.project().display().to_string(),
        anywhere: !args.sessions.is_empty(),
    };
    Ok(reading(context, |progress| {
        dry_run(check, &options, progress)
    })?)
}

fn confirms(context: &Context, shown: &Shown) -> Result<bool, UserError> {
    let mut page = context.printer.page();
    shown.page(&mut page);
    context.printer.note(page.into_text().trim_end());
    let prompt = format!("Activate this check of `{}`?", shown.report.id);
    let question = Confirm::new().with_prompt(prompt).default(false);
    ask(|| question.interact())
}

/// Command that stores a check.
fn command_for(id: &str, check: &Check) -> String {
    let mut command = format!("memctl memory check {id}");
    for (name, pattern) in check.patterns() {
        let pattern = pattern.replace('\'', r"'\''");
        command.extend([" --", name, " '", &pattern, "'"]);
    }
    if check.action != CheckAction::Note {
        command.extend([" --action ", check.action.name()]);
    }
    command + " --yes"
}

/// Calls that a check matches, in words.
fn words(check: &Check) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (name, pattern) in check.patterns() {
        parts.push(match name {
            "tool" => format!("of the tool `{pattern}`"),
            "command" => format!("that run `{pattern}`"),
            _ if parts.is_empty() => format!("that change `{pattern}`"),
            _ => format!("with the file `{pattern}`"),
        });
    }
    format!("calls {}", parts.join(" "))
}

impl Report for Shown {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        page.field("rule", &self.report.rule);
        let Some(check) = &self.report.check else {
            page.styled(&[
                (Style::Plain, &self.report.id),
                (Style::Good, " check removed"),
            ]);
            return;
        };
        page.field("check", &words(check));
        if let Some(because) = &self.because {
            page.field("because", because);
        }
        let answer = match check.action {
            CheckAction::Note => "note: the agent reads the rule, and the call runs",
            CheckAction::Ask => "ask: the host asks the person, with the rule as the reason",
            CheckAction::Deny => "deny: the host refuses the call, with the rule as the reason",
        };
        page.field("action", answer);
        if let Some(run) = &self.dry_run {
            replayed(run, page);
        }
        let (style, state) = match (self.report.active, self.from) {
            (true, _) => (Style::Good, " check is active"),
            (false, "stored") => (
                Style::Warn,
                " check is not confirmed here, and does not act",
            ),
            (false, "proposed") => (Style::Dim, " check is proposed, and does not act"),
            (false, _) => (Style::Dim, " check is not stored"),
        };
        page.styled(&[(Style::Plain, &self.report.id), (style, state)]);
        if let Some(next) = &self.next {
            page.field("to confirm", next);
        }
    }

    fn warnings(&self) -> &[String] {
        match &self.dry_run {
            Some(run) if self.report.warnings.is_empty() => &run.warnings,
            _ => &self.report.warnings,
        }
    }
}

/// Shows the calls of past sessions.
fn replayed(run: &DryRunReport, page: &mut Page) {
    let sessions = plural(run.sessions as u64, "session");
    if run.calls == 0 {
        page.field(
            "past",
            "no calls in sessions of this project; name files with --sessions",
        );
        return;
    }
    page.field(
        "past",
        &format!(
            "would have fired on {} of {} in {sessions}",
            run.fired.len(),
            plural(run.calls as u64, "call")
        ),
    );
    let mut session = "";
    for fired in run.fired.iter().take(SHOWN) {
        if fired.transcript != session {
            session = &fired.transcript;
            let name = session.rsplit('/').next().unwrap_or_default();
            page.styled(&[(Style::Dim, &format!("  {}", middle(name, page.width())))]);
        }
        let call: Vec<&str> = fired.call.split_whitespace().collect();
        let outcome = if fired.failed { "failed " } else { "" };
        let text = format!("{outcome}{}", call.join(" "));
        let room = page.width().saturating_sub(10).max(20);
        page.styled(&[
            (Style::Dim, &format!("{:>8}  ", fired.step)),
            (Style::Plain, &end(&text, room)),
        ]);
    }
    let rest = run.fired.len().saturating_sub(SHOWN);
    if rest > 0 {
        page.styled(&[(Style::Dim, &format!("  {rest} more in `--json`"))]);
    }
}
