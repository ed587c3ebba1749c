//! `doctor`: check and repair of the store, and search for secrets.

use std::path::PathBuf;

use clap::Args;

use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report, Style, plural};
use crate::cli::start::init;
use crate::cli::start::init::project;
use crate::store::ProblemKind;
use crate::upkeep;
use crate::upkeep::{DoctorReport, SecretsReport};

/// Check the store and repair damage
///
/// With `--secrets`, it searches for passwords and keys instead: in the memory and the skills, or
/// in the given files and directories. It prints their locations and never their values.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl doctor\n  memctl doctor --repair\n  memctl doctor --secrets\n  \
    memctl doctor --secrets ~/.claude/projects"
)]
pub(crate) struct DoctorArgs {
    /// Repair damaged files; keep a copy of each in `.agentura/recovered/`
    #[arg(long)]
    repair: bool,
    /// Search for secrets; with `--repair`, redact records and guardrail files
    #[arg(long)]
    secrets: bool,
    /// Files and directories to search for secrets; they are not changed
    #[arg(value_name = "PATH", requires = "secrets", conflicts_with = "repair")]
    paths: Vec<PathBuf>,
}

pub(crate) fn doctor(context: &Context, args: &DoctorArgs) -> Done {
    let printer = &context.printer;
    if args.secrets {
        let workspace = context.workspace(None)?;
        let paths = args.paths.iter();
        let paths: Vec<PathBuf> = paths
            .map(|path| context.environment.absolute(path))
            .collect();
        let search = || upkeep::secrets(&workspace, &paths, args.repair);
        return Ok(Box::new(printer.during("looking for secrets", search)?));
    }
    let workspace = context.workspace_over_files(None)?;
    let read = || upkeep::doctor(&workspace, args.repair);
    let mut report = printer.during("reading every record", read)?;
    report.git = init::problems(project(&context.places));
    report.git_offer = init::offer(project(&context.places));
    Ok(Box::new(report))
}

impl Report for DoctorReport {
    fn page(&self, page: &mut Page) {
        page.fails_if(!self.healthy);
        for repaired in &self.repaired {
            let found = match repaired.salvaged {
                0 => String::new(),
                n => format!(", {n} of them found after the damage"),
            };
            let line = format!(
                "{}: {} kept{found}; copy of the damaged file: {}",
                repaired.path.display(),
                plural(repaired.kept as u64, "record"),
                repaired.copy.display()
            );
            page.good("repaired ", &line);
        }
        for problem in &self.problems {
            let style = if problem.kind == ProblemKind::Unreadable {
                Style::Warn
            } else {
                Style::Bad
            };
            page.styled(&[(style, "data: "), (Style::Plain, &problem.to_string())]);
        }
        for file in &self.newer {
            let line = format!(
                "`{}` has format {}, of a newer memctl; this one ({}) reads it and writes nothing to it",
                file.file,
                file.format,
                env!("CARGO_PKG_VERSION")
            );
            page.warn("format: ", &line);
        }
        if !self.newer.is_empty() {
            page.note("hint: ", "install the newer memctl again");
        }
        for conflict in &self.conflicts {
            let (id, field) = (&conflict.id, &conflict.field);
            let line = format!("{id}: two branches set `{field}` to different values");
            page.warn("merge: ", &line);
        }
        for path in &self.finished {
            page.good("finished ", path);
        }
        for object in &self.irregular {
            page.bad("file: ", object);
        }
        for (name, found) in [
            ("reference: ", &self.dangling),
            ("evidence: ", &self.doubtful),
            ("guardrail: ", &self.guardrails),
            ("skill: ", &self.skills),
            ("git: ", &self.git),
        ] {
            for one in found {
                page.warn(name, one);
            }
        }
        if let Some(offer) = &self.git_offer {
            page.note("git: ", offer);
        }
        if !self.has_findings() {
            page.styled(&[(Style::Good, "No problems found.")]);
        } else if let Some(conflict) = self.conflicts.first() {
            let hint = format!("memctl memory resolve {} --ours (or --theirs)", conflict.id);
            page.note("hint: ", &hint);
        } else if !self.guardrails.is_empty()
            || self.problems.iter().any(|p| p.kind.is_repairable())
        {
            // All other problems need a person.
            page.note("hint: ", "memctl doctor --repair");
        }
    }
}

impl Report for SecretsReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        page.fails_if(!self.clean);
        for cleaned in &self.redacted {
            let line = format!(
                "{}: {}; copy with the secrets: {}",
                cleaned.path.display(),
                plural(cleaned.records as u64, "record"),
                cleaned.copy.display()
            );
            page.good("redacted ", &line);
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
            let hint = format!("check the records, then delete the copies in {copies}");
            page.note("hint: ", &hint);
        } else if !self.clean {
            let hint = "to redact the records of this memory: memctl doctor --secrets --repair";
            page.note("hint: ", hint);
        }
    }
}
