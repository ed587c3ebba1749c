//! `edit` and `forget`: changes to the text of a record, by an argument or in an editor, and its end.

use clap::Args;
use dialoguer::Confirm;

use crate::cli::ask::{ask, editor};
use crate::cli::context::Context;
use crate::cli::output::page::Page;
use crate::cli::output::{Done, Report};
use crate::model::error::UserError;
use crate::model::{USER_STORE, with_origin};
use crate::review::{Draft, EditReport};
use crate::store::workspace::Workspace;
use crate::upkeep::ForgetReport;
use crate::{review, upkeep};

/// Change the text of a record
///
/// Without `--set`, on a terminal, opens the record's fields in the editor. Other fields, including
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
    let mut set = args.set.clone();
    if let Some(text) = &args.text {
        let draft = review::draft(&workspace, &id)?;
        set.extend(
            draft
                .fields
                .first()
                .map(|(name, _)| ((*name).to_owned(), text.clone())),
        );
    }
    if !set.is_empty() {
        let mut given = Vec::new();
        for (name, value) in set {
            given.push((name, context.text(&value)?));
        }
        let mut report = review::edit(&workspace, &id, &given)?;
        if id != args.id {
            report.id = with_origin(&report.id, USER_STORE);
            context.note_change_of_user_store();
        }
        return Ok(Box::new(report));
    }
    let draft = review::draft(&workspace, &id)?;
    if !context.is_interactive() {
        let name = draft.fields.first().map_or("FIELD", |(name, _)| name);
        return Err(UserError::usage(
            "nothing to change",
            format!("memctl edit {} --set {name}=…", draft.id),
        ));
    }
    Ok(Box::new(in_editor(context, &workspace, &draft)?))
}

/// Opens the editor until the text is valid or the user gives up.
pub(crate) fn in_editor(
    context: &Context,
    workspace: &Workspace,
    draft: &Draft,
) -> Result<EditReport, UserError> {
    let mut text = sheet(draft);
    loop {
        // An unchanged file leaves the record unchanged.
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
        let Some(edited) = edited else {
            return Ok(review::edit(workspace, &draft.id, &[])?);
        };
        let done = match changes(draft, &edited) {
            Ok(given) => review::edit(workspace, &draft.id, &given).map_err(UserError::from),
            Err(missing) => Err(UserError::usage(
                format!("the line `{}` is missing", heading(missing)),
                "do not change the headings".to_owned(),
            )),
        };
        let error = match done {
            Ok(report) => return Ok(report),
            Err(error) => error,
        };
        context.printer.warn(&error.message);
        if !asks_again()? {
            return Err(error);
        }
        text = edited;
    }
}

fn asks_again() -> Result<bool, UserError> {
    let question = Confirm::new().with_prompt("Edit again?").default(true);
    ask(|| question.interact())
}

fn heading(name: &str) -> String {
    format!("=== {name} ===")
}

/// Returns the fields of a record, each below its heading.
fn sheet(draft: &Draft) -> String {
    let mut text = format!(
        "{} {}: edit the text below the headings, save and close.\n",
        draft.kind, draft.id
    );
    for (name, value) in &draft.fields {
        text.extend(["\n", &heading(name), "\n", value, "\n"]);
    }
    text
}

/// Returns the changed fields of a sheet, or the first field whose heading is missing.
fn changes<'a>(draft: &'a Draft, sheet: &str) -> Result<Vec<(String, String)>, &'a str> {
    let lines: Vec<&str> = sheet.lines().collect();
    let mut starts = Vec::new();
    let mut from = 0;
    // Headings are in order, so that the text of a field cannot pass for the heading of an earlier
    // one.
    for (name, _) in &draft.fields {
        let found = lines[from..]
            .iter()
            .position(|line| line.trim_end() == heading(name));
        let at = from + found.ok_or(*name)?;
        starts.push(at);
        from = at + 1;
    }
    let ends = starts.iter().skip(1).copied().chain([lines.len()]);
    let mut given = Vec::new();
    for ((name, before), (start, end)) in draft.fields.iter().zip(starts.iter().zip(ends)) {
        let after = lines[start + 1..end].join("\n");
        if after.trim_end() != before.trim_end() {
            given.push(((*name).to_owned(), after.trim_end().to_owned()));
        }
    }
    Ok(given)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Kind;

    #[test]
    fn a_sheet_comes_back_with_what_was_changed() {
        let draft = Draft {
            id: "PROC-001".to_owned(),
            kind: Kind::Procedure,
            fields: vec![
                ("error_key", "KeyError: <name>".to_owned()),
                ("failing_code", "a = 1\n\nb['=== x ===']\n".to_owned()),
                ("tool", String::new()),
            ],
        };
        let text = sheet(&draft);
        assert_eq!(changes(&draft, &text), Ok(Vec::new()));
        let edited = text.replace("a = 1", "a = 2\n=== error_key ===");
        let expected = "a = 2\n=== error_key ===\n\nb['=== x ===']";
        assert_eq!(
            changes(&draft, &edited),
            Ok(vec![("failing_code".to_owned(), expected.to_owned())])
        );
        let broken = text.replace("=== tool ===", "");
        assert_eq!(changes(&draft, &broken), Err("tool"));
    }
}
