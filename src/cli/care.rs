//! `doctor`, `completions`, `man`: looking after the workspace and the program.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

use crate::engine::{DoctorReport, SecretsReport};
use crate::store::ProblemKind;

use super::context::Context;
use super::error::CliError;
use super::merge_driver::project;
use super::output::{Page, Report, Style, plural};
use super::setup_git;

/// Look everything over, and mend what a crash or a hand has damaged
///
/// With `--secrets` it looks for passwords and keys instead: in the memory and the skills, or in
/// the files and directories that are named. It tells where they stand and never what they are.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl doctor\n  memctl doctor --repair\n  memctl doctor --secrets\n  \
    memctl doctor --secrets ~/.claude/projects"
)]
pub(super) struct DoctorArgs {
    /// Mend damaged files; a copy of each is kept in `.agentura/recovered/`
    #[arg(long)]
    repair: bool,
    /// Look for secrets; with `--repair`, take them out of the records and guardrail files
    #[arg(long)]
    secrets: bool,
    /// Files and directories to look for secrets in; nothing is changed in them
    #[arg(value_name = "PATH", requires = "secrets", conflicts_with = "repair")]
    paths: Vec<PathBuf>,
}

pub(super) fn doctor(context: &Context, args: &DoctorArgs) -> Result<Box<dyn Report>, CliError> {
    if args.secrets {
        let spinner = context.printer.spinner("looking for secrets");
        let paths: Vec<PathBuf> = args
            .paths
            .iter()
            .map(|path| context.environment.absolute(path))
            .collect();
        let report = context.engine(None)?.secrets(&paths, args.repair);
        drop(spinner);
        return Ok(Box::new(report?));
    }
    let spinner = context.printer.spinner("reading every record");
    let report = context.engine_over_files(None)?.doctor(args.repair);
    drop(spinner);
    let mut report = report?;
    report.git = setup_git::problems(project(&context.places));
    Ok(Box::new(report))
}

impl Report for DoctorReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        for repaired in &self.repaired {
            let found = match repaired.salvaged {
                0 => String::new(),
                n => format!(", {n} of them found behind the damage"),
            };
            let line = format!(
                "{}: {} kept{found}; as it was: {}",
                repaired.path.display(),
                plural(repaired.kept as u64, "record"),
                repaired.copy.display()
            );
            page.styled(&[(Style::Good, "mended "), (Style::Plain, &line)]);
        }
        for problem in &self.problems {
            let style = if problem.kind == ProblemKind::Unreadable {
                Style::Warn
            } else {
                Style::Bad
            };
            page.styled(&[(style, "data: "), (Style::Plain, &problem.to_string())]);
        }
        for dangling in &self.dangling {
            page.styled(&[(Style::Warn, "reference: "), (Style::Plain, dangling)]);
        }
        for doubtful in &self.doubtful {
            page.styled(&[(Style::Warn, "evidence: "), (Style::Plain, doubtful)]);
        }
        for conflict in &self.conflicts {
            let (id, field) = (&conflict.id, &conflict.field);
            let line = format!("{id}: two branches have set `{field}` to different values");
            page.styled(&[(Style::Warn, "merge: "), (Style::Plain, &line)]);
        }
        for path in &self.unfinished {
            let line = format!("{path}: does not follow the new ids of the last merge yet");
            page.styled(&[(Style::Warn, "merge: "), (Style::Plain, &line)]);
        }
        for path in &self.finished {
            page.styled(&[(Style::Good, "finished "), (Style::Plain, path)]);
        }
        for object in &self.irregular {
            page.styled(&[(Style::Bad, "file: "), (Style::Plain, object)]);
        }
        for guardrail in &self.guardrails {
            page.styled(&[(Style::Warn, "guardrail: "), (Style::Plain, guardrail)]);
        }
        for problem in &self.git {
            page.styled(&[(Style::Warn, "git: "), (Style::Plain, problem)]);
        }
        for skill in &self.skills {
            page.styled(&[(Style::Warn, "skill: "), (Style::Plain, skill)]);
        }
        if self.healthy {
            page.styled(&[(Style::Good, "Everything that is remembered is sound.")]);
        } else if let Some(conflict) = self.conflicts.first() {
            let hint = format!("memctl memory resolve {} --ours (or --theirs)", conflict.id);
            page.styled(&[(Style::Dim, "hint: "), (Style::Plain, &hint)]);
        } else if !self.unfinished.is_empty()
            || !self.guardrails.is_empty()
            || self.problems.iter().any(|p| p.kind.is_mendable())
        {
            // Whatever else is wrong is for a person to look at.
            page.styled(&[
                (Style::Dim, "hint: "),
                (Style::Plain, "memctl doctor --repair"),
            ]);
        }
    }

    fn exit_code(&self) -> u8 {
        u8::from(!self.healthy)
    }
}

impl Report for SecretsReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        for cleaned in &self.redacted {
            let line = format!(
                "{}: {}; as it was, with the secrets: {}",
                cleaned.path.display(),
                plural(cleaned.records as u64, "record"),
                cleaned.copy.display()
            );
            page.styled(&[(Style::Good, "cleaned "), (Style::Plain, &line)]);
        }
        for secret in &self.secrets {
            let place = format!("{}:{}: ", secret.path.display(), secret.line);
            page.styled(&[(Style::Plain, &place), (Style::Bad, secret.kind)]);
        }
        let files = plural(self.files, "file");
        if self.clean {
            let line = format!("No secrets in {files}.");
            page.styled(&[(Style::Good, &line)]);
        } else {
            let found = plural(self.secrets.len() as u64, "secret");
            page.line(format!("{found} in {files}."));
        }
        if let Some(cleaned) = self.redacted.first() {
            let copies = cleaned.copy.parent().unwrap_or(&cleaned.copy).display();
            let hint = format!("look the records over, then delete the copies in {copies}");
            page.styled(&[(Style::Dim, "hint: "), (Style::Plain, &hint)]);
        } else if !self.clean {
            let hint = "memctl doctor --secrets --repair cleans the records of this memory";
            page.styled(&[(Style::Dim, "hint: "), (Style::Plain, hint)]);
        }
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn exit_code(&self) -> u8 {
        u8::from(!self.clean)
    }
}

/// Print a script that completes commands in a shell
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  memctl completions bash > ~/.local/share/bash-completion/completions/memctl"
)]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(super) fn completions(args: &CompletionsArgs, mut command: clap::Command) -> Box<dyn Report> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "memctl", &mut script);
    Box::new(Text(String::from_utf8_lossy(&script).into_owned()))
}

/// Print the manual page, or write one for each command
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl man | man -l -\n  memctl man --dir ~/.local/share/man/man1"
)]
pub(super) struct ManArgs {
    /// Write a page for each command into this directory, which must exist
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(super) fn man(args: &ManArgs, command: &clap::Command) -> Result<Box<dyn Report>, CliError> {
    if let Some(dir) = &args.dir {
        clap_mangen::generate_to(command.clone(), dir)?;
        return Ok(Box::new(Text(format!("written to {}", dir.display()))));
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    Ok(Box::new(Text(String::from_utf8_lossy(&page).into_owned())))
}

/// Text that is the product itself.
struct Text(String);

impl Report for Text {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&serde_json::json!({ "text": self.0 }))
    }

    fn page(&self, page: &mut Page) {
        page.verbatim(&self.0);
    }
}
