//! Report of a command whose result is one text.

use super::{Page, Report};

/// Text that is printed unchanged.
pub(crate) struct Verbatim(pub(crate) String);

impl Report for Verbatim {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&serde_json::json!({ "text": self.0 }))
    }

    fn page(&self, page: &mut Page) {
        page.verbatim(&self.0);
    }
}
