//! `edit` and `forget`: changes to the text of a record, by an argument or in an editor, and its end.

use clap::Args;
use dialoguer::Confirm;

use crate::cli::ask::{ask, editor};
use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report};
use crate::model::error::UserError;
use crate::model::{USER_STORE, with_origin};
use crate::review::{Draft, EditReport};
use crate::store::workspace::Workspace;
use crate::upkeep::ForgetReport;
use crate::{review, upkeep};

/// Change the text of a record
///
/// Without a text, on a terminal, opens the text of the record in the editor. Other fields, including
/// those that other programs added, keep every byte. A rule or a lesson with a new text loses the
/// results of its tests and its usage counts.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl edit REFL-001\n  \
    memctl edit REFL-001 \"Escalate tickets that mention an audit.\"\n  \
    memctl edit REFL-001 --set confidence=0.9 \\\n    \
    --set \"rule=When a ticket mentions an audit, ALWAYS escalate.\"\n  \
    memctl edit MEM-002 --set expires_at=30d --set metadata.tone='[\"calm\"]'")]
pub(crate) struct EditArgs {
    /// Record id, a prefix of one, or `latest` for the newest execution
    id: String,
    /// New text of the record: of a rule its rule, of a note its content; `-` reads standard input
    #[arg(conflicts_with = "set", allow_hyphen_values = true)]
    text: Option<String>,
    /// Field and its new value; `-` as the value reads standard input
    #[arg(long, value_name = "FIELD=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
}

fn assignment(given: &str) -> Result<(String, String), &'static str> {
    let (name, value) = given.split_once('=').ok_or("expected FIELD=VALUE")?;
    Ok((name.trim().to_owned(), value.to_owned()))
}

pub(crate) fn edit(context: &Context, args: &EditArgs) -> Done {
    let (workspace, id) = context.workspace_of_id(&args.id)?;
    let mut given = Vec::new();
    for (name, value) in &args.set {
        given.push((name.clone(), context.text(value)?));
    }
    if given.is_empty() {
        let draft = review::draft(&workspace, &id)?;
        match &args.text {
            Some(text) => given.push((draft.field.to_owned(), context.text(text)?)),
            None if context.is_interactive() => {
                return Ok(Box::new(in_editor(context, &workspace, &draft)?));
            }
            None => {
                return Err(UserError::usage(
                    "nothing to change",
                    format!("memctl edit {} --set {}=…", draft.id, draft.field),
                ));
            }
        }
    }
    let mut report = review::edit(&workspace, &id, &given)?;
    if id != args.id {
        report.id = with_origin(&report.id, USER_STORE);
        context.note_change_of_user_store();
    }
    Ok(Box::new(report))
}

/// Opens the text of a record in the editor until it is valid or the user gives up.
pub(crate) fn in_editor(
    context: &Context,
    workspace: &Workspace,
    draft: &Draft,
) -> Result<EditReport, UserError> {
    let mut text = draft.text.clone();
    loop {
        let edited = editor(&context.environment)
            .extension(".txt")
            .require_save(true)
            .edit(&text);
        let edited = edited.map_err(|error| {
            UserError::usage(
                format!("cannot open the editor: {error}"),
                format!("memctl edit {} --set FIELD=VALUE", draft.id),
            )
        })?;
        // A file that was not saved leaves the record unchanged.
        let edited = edited.unwrap_or_else(|| draft.text.clone());
        let given = edited.trim_end();
        let is_changed = given != draft.text.trim_end();
        let given = is_changed.then(|| (draft.field.to_owned(), given.to_owned()));
        let error = match review::edit(workspace, &draft.id, given.as_slice()) {
            Ok(report) => return Ok(report),
            Err(error) => UserError::from(error),
        };
        context.printer.warn(&error.message);
        let question = Confirm::new().with_prompt("Edit again?").default(true);
        if !ask(|| question.interact())? {
            return Err(error);
        }
        text = edited;
    }
}

impl Report for EditReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        if self.changed.is_empty() {
            page.line(format!("{} is unchanged.", self.id));
            return;
        }
        page.good("edited ", &self.id);
        for (name, text) in &self.now {
            page.field(name, text);
        }
        page.list("guardrail", &self.guardrails);
        if !self.reset.is_empty() {
            page.dim(format!("reset: {}", self.reset.join(", ")));
        }
    }
}

/// Delete a record, and do not learn its content again
///
/// A rule takes its guardrail and its generated tests along, unless a person has edited them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl forget REFL-003\n  memctl forget MEM-001 --for-good")]
pub(crate) struct ForgetArgs {
    /// Record id, or a prefix of one
    id: String,
    /// Delete the record permanently: `memctl undo` cannot restore it
    #[arg(long)]
    for_good: bool,
}

pub(crate) fn forget(context: &Context, args: &ForgetArgs) -> Done {
    let (workspace, id) = context.workspace_of_id(&args.id)?;
    let mut report = upkeep::forget(&workspace, &id, args.for_good)?;
    if id != args.id {
        report.id = with_origin(&report.id, USER_STORE);
        context.note_change_of_user_store();
    }
    Ok(Box::new(report))
}

impl Report for ForgetReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        page.good("forgotten ", &self.id);
        page.field(self.kind.noun(), &self.summary);
        for (name, files) in [
            ("guardrail", &self.files.guardrails),
            ("tests", &self.files.tests),
        ] {
            if !files.is_empty() {
                page.field(name, &format!("removed from {}", files.join(", ")));
            }
        }
    }
}
