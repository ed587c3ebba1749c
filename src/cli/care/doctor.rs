//! `doctor`: check and repair of the store.

use clap::Args;
use memctl_files::named;

use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report, Style};
use crate::cli::start::init;
use crate::store::{MERGE_AGAIN, ProblemKind};
use crate::upkeep::{self, DoctorReport};

/// Check the store and repair damage
///
/// ```console
/// $ memctl doctor
/// $ memctl doctor --repair
/// ```
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Repair damaged files; keep a copy of each in `.agentura/recovered/`
    #[arg(long)]
    repair: bool,
}

pub(crate) fn doctor(context: &Context, args: &DoctorArgs) -> Done {
    // Skills can be checked before the first record.
    if !named::is_dir(&context.places.skills) {
        context.needs_memory()?;
    }
    let workspace = context.workspace_over_files(None)?;
    let read = || upkeep::doctor(&workspace, args.repair);
    let mut report = context.printer.during("reading every record", read)?;
    (report.git, report.git_offer) = init::problems(context.project());
    Ok(Box::new(report))
}

impl Report for DoctorReport {
    fn page(&self, page: &mut Page) {
        page.fails_if(!self.healthy);
        for repaired in &self.repaired {
            page.facts("repaired", repaired);
            if !repaired.lost.is_empty() {
                let ids = repaired.lost.join(", ");
                page.warn(
                    "lost ",
                    format!("{ids}: mend it in the copy, and put that in the place of the file"),
                );
            }
        }
        for problem in &self.problems {
            match problem.kind {
                ProblemKind::Unreadable => page.warn("data: ", problem.to_string()),
                _ => page.bad("data: ", problem.to_string()),
            }
        }
        let own = env!("CARGO_PKG_VERSION");
        let newer = self.newer.iter().map(|file| {
            let (name, format) = (&file.file, file.format);
            format!(
                "`{name}` has format {format}, of a newer memctl: install that again; this one ({own}) only reads it"
            )
        });
        let merge = self.conflicts.iter().map(|conflict| {
            let (id, field) = (&conflict.id, &conflict.field);
            format!("{id}: two branches set `{field}` to different values")
        });
        let (newer, merge): (Vec<_>, Vec<_>) = (newer.collect(), merge.collect());
        for (style, name, found) in [
            (Style::Warn, "format: ", newer.as_slice()),
            (Style::Warn, "merge: ", &merge),
            (Style::Bad, "file: ", &self.irregular),
            (Style::Bad, "merge: ", &self.unmerged),
            (Style::Warn, "reference: ", &self.dangling),
            (Style::Warn, "calls: ", self.late_calls.as_slice()),
            (Style::Warn, "skill: ", &self.skills),
            (Style::Warn, "git: ", &self.git),
            (Style::Dim, "git: ", self.git_offer.as_slice()),
        ] {
            let found = found.iter();
            found.for_each(|one| page.styled(&[(style, name), (Style::Plain, one)]));
        }
        let has = |is: fn(ProblemKind) -> bool| self.problems.iter().any(|one| is(one.kind));
        if !self.has_findings() {
            page.good("No problems found.", "");
        } else if let Some(conflict) = self.conflicts.first() {
            let resolve = format!("memctl memory resolve {} --ours (or --theirs)", conflict.id);
            page.note("hint: ", resolve);
        } else if has(|kind| kind == ProblemKind::Conflict) {
            page.dim(
                "once the merge is committed, only an editor can decide what stays; until then:",
            );
            page.note("hint: ", MERGE_AGAIN);
        } else if has(ProblemKind::is_repairable) {
            // All other problems need a person.
            if has(|kind| kind == ProblemKind::Damage) {
                page.dim("a repair takes out what is broken: to keep it, mend the line in an editor first");
            }
            page.note("hint: ", "memctl doctor --repair");
        }
    }
}
