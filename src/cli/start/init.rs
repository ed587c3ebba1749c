//! `init`: creation of a workspace.

use clap::Args;

use super::merge_driver;
use super::merge_driver::project;
use super::setup::next::offer_to_join;
use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report};
use crate::model::SkillPath;
use crate::store::skill::Skills;
use crate::upkeep::merge::git::Repository;
use crate::upkeep::{InitReport, initialise};

/// Create a workspace here: `.agentura/` for records
///
/// Git sees what people share: approved rules and lessons, memories, corrections. What a session
/// changes is ignored. `--git` installs a merge driver, which merges the records of two branches; in a
/// clone without it, git leaves conflict markers, and `memctl init --git && git checkout --merge
/// .agentura` merges the files again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl init\n  memctl init --git")]
pub(crate) struct InitArgs {
    /// Install the git merge driver for a memory that branches share
    #[arg(long)]
    git: bool,
}

pub(crate) fn init(context: &Context, args: &InitArgs) -> Done {
    let places = &context.places;
    // Nothing is created without the repository that was asked for.
    let repository = if args.git {
        Some(Repository::of(project(places)).ok_or_else(merge_driver::no_repository)?)
    } else {
        None
    };
    let mut random = || uuid::Uuid::new_v4().to_string();
    let store = context.store(&context.config(&[])?)?;
    let mut report = initialise(&store, &places.skills, &mut random)?;
    report.first_skill = first_skill(context).map(|skill| skill.to_string());
    report.offer = offer_to_join(context);
    if let Some(repository) = repository {
        let (done, warnings) = merge_driver::install(context, &repository)?;
        report.created.extend(done);
        report.warnings.extend(warnings);
    }
    Ok(Box::new(report))
}

/// Returns the first skill of the workspace; `None` if there is none.
pub(super) fn first_skill(context: &Context) -> Option<SkillPath> {
    let skills = Skills::open(&context.places.skills).ok()?;
    skills.list().ok()?.skills.into_iter().next()
}

impl Report for InitReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        if self.created.is_empty() {
            if !page.is_quiet() {
                page.line(format!("Already set up: {}", self.directory));
            }
            return;
        }
        if page.is_quiet() {
            return;
        }
        for created in &self.created {
            page.good("created ", created);
        }
        page.line("\nNext:");
        page.line("  memctl setup                  let coding agents use this memory, and learn from past sessions");
        if let Some(offer) = &self.offer {
            page.line(format!("  {offer}"));
        }
        if let Some(skill) = &self.first_skill {
            page.line(format!("  memctl run {skill} --input FILE"));
        } else {
            page.line("  put a skill into `skills/<domain>/<skill>/SKILL.md`, and run it:");
            page.line("  memctl run <domain>/<skill> --input FILE");
        }
    }
}
