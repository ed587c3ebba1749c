//! What a piece of text is, and the colour that follows from it.

/// What a piece of text is, not what colour it has: colours follow from it, and vanish where they
/// are not wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Style {
    /// Running text.
    Plain,
    /// A name or a heading.
    Strong,
    /// Less important than what stands around it.
    Dim,
    /// Something that is as it should be.
    Good,
    /// Something to look at.
    Warn,
    /// Something that is wrong.
    Bad,
}

impl Style {
    /// The text with this style's colour.
    pub(in crate::cli) fn paint(self, text: &str) -> String {
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
