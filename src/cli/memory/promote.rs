//! `memory promote`: a rule or a lesson for all projects of the user.

use clap::Args;
use dialoguer::Confirm;

use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report, Style};
use crate::cli::question::ask;
use crate::model::error::UserError;
use crate::review::{self, Promoted};
use memctl_files::Directory;

/// Copy a rule or a lesson to the user store, for all of your projects
///
/// The user store is in your data directory. The first `promote` creates it, after a question; from
/// then on its rules start sessions and its lessons are told in every project that has a memory. Its
/// records have ids such as `REFL-001@user`: `memctl show`, `approve`, `edit` and `forget` take
/// them. The setting `memory.user_store` switches it off.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl memory promote REFL-003\n  \
    memctl list --user-store\n  memctl forget REFL-001@user")]
pub(crate) struct PromoteArgs {
    /// Id of a rule or a procedure, or a prefix of one
    id: String,
    /// Create the user store without a question
    #[arg(long)]
    yes: bool,
}

pub(crate) fn promote(context: &Context, args: &PromoteArgs) -> Done {
    let of_user = context.of_user_store()?;
    let workspace = context.workspace(None)?;
    let directory = &of_user.places.memory;
    if *directory == context.places.memory {
        return Err(UserError::usage(
            "this memory is the user store",
            "memctl list",
        ));
    }
    // Without a terminal, the command itself is the decision.
    if !Directory::at(directory).is_there() && !args.yes && context.is_interactive() {
        context.printer.note(&format!(
            "The user store is new: {}\nIts rules and lessons reach agents in all of your projects.",
            directory.display()
        ));
        let question = Confirm::new().with_prompt("Create it?").default(false);
        if !ask(|| question.interact())? {
            return Err(UserError::usage(
                "the user store was not created",
                "memctl memory promote ID --yes",
            ));
        }
    }
    let promoted = review::promote(&workspace, &of_user.workspace(None)?, &args.id)?;
    Ok(Box::new(promoted))
}

impl Report for Promoted {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        let (style, done) = if self.created {
            (Style::Good, "promoted ")
        } else {
            (Style::Dim, "known already ")
        };
        page.styled(&[
            (style, done),
            (Style::Plain, &self.id),
            (Style::Dim, " → "),
            (Style::Plain, &self.user_id),
        ]);
        page.field(self.kind.noun(), &self.summary);
    }
}
