//! Export of everything that one user has in a memory: their records, and the log lines and audit
//! events that name them.
//!
//! The text is an export like any other. Rules, lessons and executions have no user and are not in it,
//! and neither are records that have expired.

use std::collections::BTreeMap;

use crate::model::Kind;
use crate::store::workspace::{Error, Workspace};
use crate::store::{self, AuditAction, Scoped, logs, redact};
use crate::upkeep::exchange::lines::{FORMAT, Header, Line, VERSION};

use super::{ExportFormat, ExportOptions, ExportReport, entries};

/// Returns the JSON Lines with everything of the user who asks, and audits the export.
///
/// # Errors
///
/// Fails unless the caller is a user with access to all domains: a part of the data must not be taken
/// for all of it.
pub fn export_user(workspace: &Workspace) -> Result<String, Error> {
    let user = workspace.whole_user()?;
    let cannot_write = store::Error::from;
    let mut report = ExportReport {
        output: None,
        format: ExportFormat::Jsonl,
        counts: BTreeMap::new(),
        bytes: 0,
        warnings: Vec::new(),
        text: None,
    };
    let options = ExportOptions {
        output: None,
        format: ExportFormat::Jsonl,
        kinds: Kind::ALL
            .into_iter()
            .filter(|kind| kind.has_user())
            .collect(),
        skill: None,
        force: false,
    };
    let mut lines = Vec::new();
    for entry in entries(workspace, &options, &mut report, &mut |_, _| {})? {
        lines.push(Line::Entry {
            kind: entry.kind,
            id: entry.id,
            text: entry.text,
        });
    }
    for (name, text) in lines_of_user(&workspace.store)? {
        *report.counts.entry(name.to_owned()).or_default() += 1;
        let name = name.to_owned();
        lines.push(Line::Log { name, text });
    }
    // Also an export of nothing is one.
    workspace.store.audit(
        AuditAction::Exported,
        &[("everything of a user", Some(&user))],
    )?;
    let header = Header {
        format: FORMAT.to_owned(),
        version: VERSION,
        workspace: workspace.store.identity().map(|identity| identity.origin),
        exported_at: workspace.timestamp(),
        counts: report.counts,
    };
    let mut text = serde_json::to_string(&header).map_err(cannot_write)?;
    text.push('\n');
    for line in lines {
        text.push_str(&line.write().map_err(cannot_write)?);
        text.push('\n');
    }
    Ok(text)
}

/// Returns the log lines of the user, and the audit events of them and on their records. An event of
/// somebody else that is also about others names only the user and their records.
fn lines_of_user(store: &Scoped) -> Result<Vec<(&'static str, Vec<u8>)>, Error> {
    let mut found = Vec::new();
    for (name, role) in logs() {
        if role == store::Role::Account {
            let mut failed = None;
            store.audited_by_all(&mut |line| match serde_json::to_vec(&line) {
                Ok(text) => found.push((name, text)),
                Err(error) => failed = Some(error),
            })?;
            if let Some(error) = failed {
                return Err(store::Error::from(error).into());
            }
            continue;
        }
        for text in store.lines(name)? {
            let text = match std::str::from_utf8(&text) {
                Ok(line) => redact(line).text.into_owned().into_bytes(),
                Err(_) => text,
            };
            found.push((name, text));
        }
    }
    Ok(found)
}
