//! Report of a command whose result is one text.

use serde::Serialize;

use super::{Page, Report};

/// Text that is printed unchanged.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Verbatim {
    /// Whole text.
    text: String,
}

impl Verbatim {
    pub(crate) const fn new(text: String) -> Self {
        Self { text }
    }
}

impl Report for Verbatim {
    fn page(&self, page: &mut Page) {
        page.verbatim(&self.text);
    }
}
