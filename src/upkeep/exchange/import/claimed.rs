//! Approvals that an imported file claims for its records.
//!
//! Others may have written the file. A record whose text this user has not said or approved on this
//! machine is imported as observed, even from the user's own workspace. `--trust` accepts the
//! claims.

use crate::model::{CANDIDATE, Kind, Memory, Procedure, Record, Reflexion, Trust};
use crate::store::TrustSnapshot;
use memctl_files::json::with_fields;

/// Returns the text without its claimed approval; `None` if it claims none that needs this user.
pub(crate) fn observed(own: &TrustSnapshot, kind: Kind, text: &str) -> Option<String> {
    let (field, value) = match kind {
        Kind::Procedure => lacks::<Procedure>(own, text).map(|_| TRUST),
        Kind::Memory => lacks::<Memory>(own, text).map(|_| TRUST),
        Kind::Reflexion => lacks::<Reflexion>(own, text)
            .filter(Reflexion::is_in_use)
            .map(|_| ("status", CANDIDATE)),
        // These are only ever shown as data.
        Kind::Execution | Kind::Correction | Kind::Session => None,
    }?;
    Some(with_fields(text, &[(field, format!("\"{value}\""))], 6))
}

const TRUST: (&str, &str) = ("trust", crate::model::OBSERVED);

/// Returns the record if its file claims an approval that this user has not given.
fn lacks<R: Record>(own: &TrustSnapshot, text: &str) -> Option<R> {
    let record: R = serde_json::from_str(text).ok()?;
    let is_claimed = record.trust() != Trust::Observed;
    (is_claimed && own.level(&record) == Trust::Observed).then_some(record)
}
