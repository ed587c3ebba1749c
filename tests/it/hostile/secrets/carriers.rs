//! Forms in which a text comes out of tools: numbered, quoted, logged, escaped, cut.

use super::templates::{FilledTemplate, Random};

/// A way in which tools hand on a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    Plain,
    CatNumbers,
    Arrows,
    GrepNumbers,
    GrepFile,
    GrepContext,
    Compose,
    Docker,
    Rfc3339,
    Syslog,
    Level,
    Quote,
    DiffAdd,
    Pipes,
    Box,
    Indent,
    Markdown,
    Comment,
    Json,
    JsonTwice,
    Colours,
    Crlf,
    CutBehind,
    CutMark,
    CutHead,
}

impl Carrier {
    pub(crate) const ALL: [Self; 25] = [
        Self::Plain,
        Self::CatNumbers,
        Self::Arrows,
        Self::GrepNumbers,
        Self::GrepFile,
        Self::GrepContext,
        Self::Compose,
        Self::Docker,
        Self::Rfc3339,
        Self::Syslog,
        Self::Level,
        Self::Quote,
        Self::DiffAdd,
        Self::Pipes,
        Self::Box,
        Self::Indent,
        Self::Markdown,
        Self::Comment,
        Self::Json,
        Self::JsonTwice,
        Self::Colours,
        Self::Crlf,
        Self::CutBehind,
        Self::CutMark,
        Self::CutHead,
    ];

    /// Whether the text is cut, so that only a part of its secret is left.
    pub(crate) const fn is_cut(self) -> bool {
        matches!(self, Self::CutBehind | Self::CutMark | Self::CutHead)
    }

    /// The text in this form, with ordinary lines around it. `None` where the form does not fit.
    pub(crate) fn carry(self, planted: &FilledTemplate, random: &mut Random) -> Option<String> {
        let text = &planted.text;
        let each = |line: &dyn Fn(usize, &str) -> String| -> String {
            let lines = text.lines().enumerate();
            lines.map(|(i, l)| line(i + 8, l) + "\n").collect()
        };
        Some(match self {
            Self::Plain => format!("$ run\n{text}\ndone.\n"),
            Self::CatNumbers => each(&|i, l| format!("{i:6}\t{l}")),
            Self::Arrows => each(&|i, l| format!("{i:6}→{l}")),
            Self::GrepNumbers => each(&|i, l| format!("{i}:{l}")),
            Self::GrepFile => each(&|i, l| format!("conf/app.conf:{i}:{l}")),
            Self::GrepContext => each(&|i, l| {
                let mark = if i == 8 { ':' } else { '-' };
                format!("conf/app.conf{mark}{i}{mark}{l}")
            }),
            Self::Compose => each(&|_, l| format!("web-1  | {l}")),
            Self::Docker => {
                each(&|i, l| format!("web-1  | 2026-02-20T10:00:{i:02}.{}Z {l}", 120 + i))
            }
            Self::Rfc3339 => {
                each(&|i, l| format!("2026-02-20T10:{:02}:{i:02}Z {l}", random_minute(i)))
            }
            Self::Syslog => each(&|i, l| format!("Feb 20 10:00:{i:02} host app[812]: {l}")),
            Self::Level => each(&|i, l| format!("[2026-02-20 10:00:{i:02}] INFO  {l}")),
            Self::Quote => each(&|_, l| format!("> {l}")),
            Self::DiffAdd => format!("@@ -1,2 +1,9 @@\n{}", each(&|_, l| format!("+{l}"))),
            Self::Pipes => each(&|_, l| format!("| {l}")),
            Self::Box => each(&|_, l| format!("│ {l:<40} │")),
            Self::Indent => each(&|_, l| format!("        {l}")),
            Self::Markdown => format!("Here it is:\n\n```\n{text}\n```\n"),
            Self::Comment => each(&|_, l| format!("# {l}")),
            Self::Json => format!("{{\"output\": {}}}", json(text)),
            Self::JsonTwice => format!("{{\"body\": {}}}", json(&json(text))),
            Self::Colours => each(&|_, l| format!("\u{1b}[32m{l}\u{1b}[0m")),
            Self::Crlf => text.replace('\n', "\r\n") + "\r\n",
            Self::CutBehind | Self::CutMark => {
                // Inside of the last secret, so far that something is there to be told.
                let secret = planted.secrets.last()?;
                let at = text.rfind(secret.as_str())?;
                let least = (secret.len() * 2 / 3).max(1);
                let cut = at + least + random.below(secret.len() / 4 + 1);
                let head = text.get(..cut.min(text.len()))?;
                if self == Self::CutMark {
                    format!("$ run\n{head}\n… [truncated]")
                } else {
                    format!("$ run\n{head}")
                }
            }
            Self::CutHead => {
                // Only blocks have an end by which their head is told.
                let at = text
                    .find("-----BEGIN")
                    .filter(|_| text.contains("-----END"))?;
                let cut = at + 40 + random.below(150);
                format!("… [truncated]\n{}\nok", text.get(cut..)?)
            }
        })
    }
}

const fn random_minute(line: usize) -> usize {
    line % 60
}

fn json(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}
