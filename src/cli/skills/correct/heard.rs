//! `correct --heard`: what a person said in the chat, as an agent passes it on.

use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report};
use crate::model::error::UserError;
use crate::rules::hearing::{EarlierState, HeardArgs, HeardReport, record_heard};

const FIELDS: &str = r#"memctl correct --heard '{"rule": "…", "quote": "…"}'; memctl correct --help lists all fields"#;

pub(super) fn record(context: &Context, json: &str) -> Done {
    let json = context.text(json)?;
    let args: HeardArgs = serde_json::from_str(&json)
        .map_err(|error| UserError::usage(format!("`--heard` cannot be read: {error}"), FIELDS))?;
    let workspace = context.workspace(None)?;
    Ok(Box::new(record_heard(&workspace, args)?))
}

impl Report for HeardReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        page.field("candidate", &self.id);
        page.field("rule", &self.rule);
        let project = match self.project.as_str() {
            "" => "everywhere",
            name => name,
        };
        page.field("for", project);
        if let Some(old) = &self.earlier {
            let (label, note) = match old.now {
                EarlierState::Superseded => ("replaces", "which was a candidate"),
                EarlierState::Suspended => ("suspends", "until a person decides"),
                EarlierState::InForce => ("beside", "which stays in force until a person decides"),
            };
            page.field(label, &format!("{}: {} ({note})", old.id, old.rule));
        }
        for other in &self.nearest {
            page.field("near", &format!("{}: {}", other.id, other.rule));
        }
        if !self.nearest.is_empty() {
            page.dim("if it changes one of these: the same command with \"replaces\": \"ID\"");
        }
        page.dim(format!("a person approves it: {}", self.approve));
    }
}
