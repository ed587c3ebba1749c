//! Report of `setup`: the plan, and what was done.

use std::path::PathBuf;

use serde::Serialize;

use crate::cli::learn::repeats;
use crate::cli::output::{Page, Report, Style, plural};
use crate::cli::start::setup::steps::{State, Step};
use crate::host::ServerHost;
use crate::lessons::LearnReport;
use crate::review::Repeats;

/// Agent host that is set up.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct SetupHost {
    #[serde(skip)]
    pub(crate) host: ServerHost,
    /// Name of the agent host.
    pub(crate) name: &'static str,
    /// Program or directory that shows that it is installed; null if it was named.
    pub(crate) found_by: Option<String>,
}

impl SetupHost {
    pub(crate) fn new(host: ServerHost, found_by: Option<PathBuf>) -> Self {
        Self {
            host,
            name: host.name(),
            found_by: found_by.map(|path| path.display().to_string()),
        }
    }
}

/// Numbers of what was learned from past sessions.
#[derive(Debug, Clone, Copy, Serialize, schemars::JsonSchema)]
pub(crate) struct Learned {
    /// Session files read.
    pub(crate) sessions: usize,
    /// Session files that were read before.
    pub(crate) unchanged: usize,
    /// Failing tool calls.
    pub(crate) failures: usize,
    /// New lessons.
    pub(crate) records: usize,
}

impl Learned {
    pub(crate) fn of(report: &LearnReport) -> Self {
        Self {
            sessions: report.transcripts.len(),
            unchanged: report.unchanged,
            failures: report.transcripts.iter().map(|one| one.failures).sum(),
            records: report.learned.len(),
        }
    }
}

/// Plan of `setup`, and what was done.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub(crate) struct SetupReport {
    /// Agent hosts.
    pub(crate) hosts: Vec<SetupHost>,
    /// Steps in order.
    pub(crate) steps: Vec<Step>,
    /// Numbers of the past sessions; null if none was read.
    pub(crate) learned: Option<Learned>,
    /// Repetitions in past sessions.
    pub(crate) repeats: Repeats,
    /// Files of the project that git will see; empty outside of a repository.
    pub(crate) git: Vec<String>,
    /// Next steps, at most three.
    pub(crate) next: Vec<String>,
    /// Home directory of the user, which pages write as `~`.
    #[serde(skip)]
    pub(crate) home: Option<String>,
    /// `true` if a person has just seen the plan.
    #[serde(skip)]
    pub(crate) is_confirmed: bool,
    /// Remark about the whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    /// Non-fatal problems.
    pub(crate) warnings: Vec<String>,
}

impl SetupReport {
    /// Path with `~` for the home directory.
    fn short(&self, path: &str) -> String {
        let home = self.home.as_deref().filter(|home| home.len() > 1);
        match home.and_then(|home| path.strip_prefix(home)) {
            Some(rest) if rest.starts_with('/') => format!("~{rest}"),
            _ => path.to_owned(),
        }
    }

    fn show(&self, step: &Step, page: &mut Page) {
        let (style, mark) = match step.state {
            State::Planned => (Style::Strong, "will     "),
            State::Done => (Style::Good, "done     "),
            State::Already => (Style::Dim, "already  "),
            State::Failed => (Style::Bad, "failed   "),
            State::Skipped => (Style::Dim, "skipped  "),
        };
        let what = match step.name {
            "memory" => "create the memory",
            "hooks" => "install the hooks",
            "mcp" => "install the MCP server",
            "status line" => "show a status line",
            "remove status line" => "remove the status line",
            "allow tool" => "allow the tool that records lessons",
            "remove allowed tool" => "no longer allow the tool that records lessons",
            "remove hooks" => "remove the hooks",
            "remove mcp" => "remove the MCP server",
            _ => "learn from past sessions",
        };
        let host = step.host.map(|host| format!("{host}: "));
        let what = host.unwrap_or_default() + what;
        let path = step.path.as_deref().map(|path| self.short(path));
        let path = path.unwrap_or_default();
        let beside = match path.as_str() {
            "" => String::new(),
            path => format!(" ({path})"),
        };
        let fits = mark.len() + what.len() + beside.len() <= page.width();
        page.styled(&[
            (style, mark),
            (Style::Plain, &what),
            (Style::Dim, if fits { &beside } else { "" }),
        ]);
        if !fits {
            page.field("", &path);
        }
        match &step.detail {
            Some(detail) if step.state == State::Failed => page.bad("              ", detail),
            Some(detail) => page.field("", detail),
            None => {}
        }
    }
}

impl Report for SetupReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        page.fails_if(self.steps.iter().any(|step| step.state == State::Failed));
        if self.hosts.is_empty() {
            page.line("No agent host was found; name one: memctl setup claude-code");
        }
        for host in self.hosts.iter().filter(|_| !self.is_confirmed) {
            if let Some(found_by) = &host.found_by {
                page.note(
                    "found ",
                    format!("{} ({})", host.name, self.short(found_by)),
                );
            }
        }
        for step in &self.steps {
            self.show(step, page);
        }
        if !self.git.is_empty() && !self.is_confirmed {
            page.field("git will see", &self.git.join(", "));
            page.field("", "What sessions change stays out of it.");
        }
        match &self.learned {
            None => {}
            Some(learned) if learned.sessions + learned.unchanged == 0 => {
                page.line("\nNo past sessions were found.");
            }
            Some(learned) => page.line(format!(
                "\nRead {}{}: {}, {} learned.",
                plural(learned.sessions as u64, "session"),
                match learned.unchanged {
                    0 => String::new(),
                    unchanged => format!(" ({unchanged} more were read before)"),
                },
                plural(learned.failures as u64, "failing call"),
                plural(learned.records as u64, "record"),
            )),
        }
        if self.repeats.sessions > 0 {
            page.line("");
        }
        repeats::show(&self.repeats, page);
        if let Some(note) = &self.note {
            page.line(note);
        }
        if !self.next.is_empty() {
            page.line("\nNext:");
        }
        for next in &self.next {
            page.line(format!("  {next}"));
        }
    }
}
