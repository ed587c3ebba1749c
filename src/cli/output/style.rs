//! Styles of text by meaning, and their colours.

/// Meaning of a piece of text. Colours follow from it, and are left out where they are off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Running text.
    Plain,
    /// A name or a heading.
    Strong,
    /// Less important than the text around it.
    Dim,
    /// Correct or successful.
    Good,
    /// Needs attention.
    Warn,
    /// Wrong or failed.
    Bad,
}

impl Style {
    /// Returns the text with this style's colour.
    pub(crate) fn paint(self, text: &str) -> String {
        let style = console::Style::new().force_styling(true);
        let style = match self {
            Self::Plain => return text.to_owned(),
            Self::Strong => style.bold(),
            Self::Dim => style.dim(),
            Self::Good => style.green(),
            Self::Warn => style.yellow(),
            Self::Bad => style.red(),
        };
        style.apply_to(text).to_string()
    }
}
