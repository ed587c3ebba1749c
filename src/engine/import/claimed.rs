//! Approvals that a file claims for its records.
//!
//! Others write the files that are imported. A record whose text this user has not said or approved on this
//! machine comes in as observed, in a workspace of one's own too; `--trust` takes the file at its word.

use crate::model::{CANDIDATE, Fix, Kind, Memory, Procedure, Record, Reflexion, Trust};
use crate::store::{Standing, with_fields};

/// The text without its approval; `None` where it claims none, or none that needs this user.
pub(super) fn observed(own: &Standing, kind: Kind, text: &str) -> Option<String> {
    let (field, value) = match kind {
        Kind::Fix => lacks::<Fix>(own, text).map(|_| TRUST),
        Kind::Procedure => lacks::<Procedure>(own, text).map(|_| TRUST),
        Kind::Memory => lacks::<Memory>(own, text).map(|_| TRUST),
        Kind::Reflexion => lacks::<Reflexion>(own, text)
            .filter(Reflexion::is_in_use)
            .map(|_| ("status", CANDIDATE)),
        // These are shown as data only.
        Kind::Execution | Kind::Correction | Kind::Session => None,
    }?;
    Some(with_fields(text, &[(field, format!("\"{value}\""))], 6))
}

const TRUST: (&str, &str) = ("trust", super::OBSERVED);

/// The record, where its file calls it approved and this user has not.
fn lacks<R: Record>(own: &Standing, text: &str) -> Option<R> {
    let record: R = serde_json::from_str(text).ok()?;
    let is_claimed = record.trust() != Trust::Observed;
    (is_claimed && own.level(&record) == Trust::Observed).then_some(record)
}
