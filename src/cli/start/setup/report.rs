//! Report of `setup`: the plan, and what was done.

use std::path::Path;

use serde::Serialize;

use crate::cli::learn::repeats;
use crate::cli::output::page::Page;
use crate::cli::output::text::plural;
use crate::cli::output::{Report, Style};
use crate::cli::start::setup::FoundHost;
use crate::lessons::LearnReport;
use crate::review::Repeats;

/// State of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// To be done.
    Planned,
    /// Done now.
    Done,
    /// Done before.
    Already,
    /// Not possible; `detail` has the reason.
    Failed,
    /// Nothing to do.
    Skipped,
}

/// One step.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct Step {
    /// `memory`, `hooks`, `status line`, `allow tool`, `mcp` or `learn`; with `remove` before it for an undo.
    pub(crate) name: &'static str,
    /// Agent host, for hooks and the MCP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<&'static str>,
    /// State of the step.
    pub(crate) state: State,
    /// File or directory that is changed or read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
    /// Reason, or note for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
}

/// Agent host that is set up.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct HostReport {
    /// Name of the agent host.
    pub(crate) name: &'static str,
    /// Program or directory that shows that it is installed; null if it was named.
    pub(crate) found_by: Option<String>,
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

/// Program that could answer for a model.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub(crate) struct ModelOffer {
    /// Value for the setting `model`.
    pub(crate) model: String,
    /// Settings file of the user.
    pub(crate) settings: String,
    /// `true` if the setting was written.
    pub(crate) set: bool,
}

/// Plan of `setup`, and what was done.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub(crate) struct SetupReport {
    /// Agent hosts.
    pub(crate) hosts: Vec<HostReport>,
    /// Steps in order.
    pub(crate) steps: Vec<Step>,
    /// Numbers of the past sessions; null if none was read.
    pub(crate) learned: Option<Learned>,
    /// Repetitions in past sessions.
    pub(crate) repeats: Repeats,
    /// Installed program that could answer for a model; null if there is none, or a model is set.
    pub(crate) model: Option<ModelOffer>,
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
    pub(crate) fn new(hosts: &[FoundHost], home: Option<&Path>) -> Self {
        let hosts = hosts.iter().map(|one| HostReport {
            name: one.host.name(),
            found_by: one.found_by.as_ref().map(|path| path.display().to_string()),
        });
        Self {
            hosts: hosts.collect(),
            home: home.map(|home| home.display().to_string()),
            ..Self::default()
        }
    }
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
}

impl Report for SetupReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        page.fails_if(self.steps.iter().any(|step| step.state == State::Failed));
        if self.hosts.is_empty() {
            page.line("No agent host was found; name one: memctl setup claude-code");
        }
        let found = self.hosts.iter().filter(|_| !self.is_confirmed);
        for host in found {
            if let Some(found_by) = &host.found_by {
                let found = format!("found {}", host.name);
                page.styled(&[
                    (Style::Plain, &found),
                    (Style::Dim, &format!(" ({})", self.short(found_by))),
                ]);
            }
        }
        for step in &self.steps {
            show(
                step,
                step.path.as_deref().map(|path| self.short(path)),
                page,
            );
        }
        if !self.git.is_empty() && !self.is_confirmed {
            page.field("git will see", &self.git.join(", "));
            page.field("", "What sessions change stays out of it.");
        }
        if let Some(learned) = &self.learned {
            show_learned(*learned, page);
        }
        if self.repeats.sessions > 0 {
            page.line("");
        }
        repeats::show(&self.repeats, page);
        if let Some(offer) = &self.model {
            show_offer(offer, &self.short(&offer.settings), page);
        }
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

fn show(step: &Step, path: Option<String>, page: &mut Page) {
    let (style, mark) = match step.state {
        State::Planned => (Style::Strong, "will"),
        State::Done => (Style::Good, "done"),
        State::Already => (Style::Dim, "already"),
        State::Failed => (Style::Bad, "failed"),
        State::Skipped => (Style::Dim, "skipped"),
    };
    let what = match step.name {
        "memory" => "create the memory",
        "hooks" => "install the hooks",
        "mcp" => "install the MCP server",
        "status line" => "show a status line",
        "allow tool" => "allow the tool that records lessons",
        "remove allowed tool" => "no longer allow the tool that records lessons",
        "remove status line" => "remove the status line",
        "remove hooks" => "remove the hooks",
        "remove mcp" => "remove the MCP server",
        _ => "learn from past sessions",
    };
    let host = step
        .host
        .map_or_else(String::new, |host| format!("{host}: "));
    let what = format!("{host}{what}");
    let path = path.unwrap_or_default();
    let fits = mark.len().max(9) + what.len() + path.len() + 3 <= page.width();
    let is_beside = fits && !path.is_empty();
    let beside = if is_beside {
        format!(" ({path})")
    } else {
        String::new()
    };
    page.styled(&[
        (style, &format!("{mark:<9}")),
        (Style::Plain, &what),
        (Style::Dim, &beside),
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

fn show_learned(learned: Learned, page: &mut Page) {
    if learned.sessions == 0 && learned.unchanged == 0 {
        return page.line("\nNo past sessions were found.");
    }
    let before = match learned.unchanged {
        0 => String::new(),
        unchanged => format!(" ({unchanged} more were read before)"),
    };
    let text = format!(
        "\nRead {}{before}: {}, {} learned.",
        plural(learned.sessions as u64, "session"),
        plural(learned.failures as u64, "failing call"),
        plural(learned.records as u64, "record"),
    );
    page.line(text);
}

fn show_offer(offer: &ModelOffer, settings: &str, page: &mut Page) {
    let line = format!("model = \"{}\"", offer.model);
    if offer.set {
        page.line(format!("\nWrote `{line}` to {settings}."));
        return;
    }
    page.line(
        "\nNo model is configured, and nothing above needs one. Where you ask for one (`run`,",
    );
    page.line(format!(
        "`correct`), your agent can answer, and its plan pays: {line} in"
    ));
    page.line(settings);
}
