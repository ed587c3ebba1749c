//! Markdown page of records for readers.
//!
//! Stored text is data: all Markdown and HTML characters are escaped, and the text is a block quote
//! on every line. So no record can forge a heading, a link or another record.

/// Record on the page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Section {
    /// Kind as a heading, such as `Rules`.
    pub kind: String,
    /// Group within the kind: a skill, or a memory type; empty for none.
    pub group: String,
    /// Record id.
    pub id: String,
    /// Main text.
    pub says: String,
    /// Other fields: names and texts.
    pub fields: Vec<(String, String)>,
}

/// Renders the page. Sections of the same kind and group have to be adjacent.
pub fn page(title: &str, about: &str, sections: &[Section]) -> String {
    let mut page = format!("# {}\n\n{}\n", escaped(title), escaped(about));
    let (mut kind, mut group) = (None, "");
    for section in sections {
        if kind != Some(section.kind.as_str()) {
            kind = Some(&section.kind);
            group = "";
            page.extend(["\n## ", &escaped(&section.kind), "\n"]);
        }
        if group != section.group {
            group = &section.group;
            page.extend(["\n### ", &escaped(group), "\n"]);
        }
        page.extend(["\n#### ", &escaped(&section.id), "\n\n"]);
        page.push_str(&quoted(&section.says));
        if !section.fields.is_empty() {
            page.push('\n');
        }
        for (name, text) in &section.fields {
            // Single-line fields; longer text is quoted below the name.
            if text.contains('\n') {
                let quoted = quoted(text).replace("\n>", "\n  >");
                page.extend([
                    "- ",
                    &escaped(name),
                    ":\n\n  ",
                    quoted.trim_end_matches("  "),
                ]);
            } else {
                page.extend(["- ", &escaped(name), ": ", &escaped(text), "\n"]);
            }
        }
    }
    page
}

/// Text as a block quote, escaped line by line.
fn quoted(text: &str) -> String {
    let mut out = String::new();
    for line in text.trim_end().lines() {
        let line = escaped(line);
        // The trailing backslash keeps the line break.
        out.push_str(if line.is_empty() { ">" } else { "> " });
        out.push_str(&line);
        out.push('\n');
    }
    if out.is_empty() {
        ">\n".to_owned()
    } else {
        out.replace("\n> ", "\\\n> ")
    }
}

/// Text on one line, with a backslash before every special character.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut chars = text.trim().chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\r' | '\t' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
                out.push(' ');
            }
            // Control characters are removed; `guard::visible` handles other invisible ones.
            c if c.is_control() => {}
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '&'
            | '$' => {
                out.extend(['\\', c]);
            }
            // At the start of a line these begin a list, an underlined heading or a numbered item.
            '-' | '+' | '=' if out.is_empty() => out.extend(['\\', c]),
            '.' | ')' if !out.is_empty() && out.bytes().all(|b| b.is_ascii_digit()) => {
                out.extend(['\\', c]);
            }
            // Some renderers turn addresses into links.
            '@' => out.push_str("\\@"),
            ':' if chars.peek() == Some(&'/') => out.push_str("\\:"),
            '.' if out.ends_with("www") || out.ends_with("WWW") => out.push_str("\\."),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_leaves_its_quotation() {
        for said in [
            "# A heading",
            "x\n# y\n===\n---",
            "- a\n1. b\n2) c",
            "```\ncode",
            "<script>alert(1)</script>",
            "[a](javascript:b) ![c](d)",
            "a\r\n\u{2028}## b",
            "    indented",
            "https://x.example a@b.example",
            "| a | b |\n|---|---|",
            "",
            "\n\n",
            "> quoted",
            "&lt;b&gt;",
            "\u{1b}[31mred",
        ] {
            let section = Section {
                kind: said.to_owned(),
                group: said.to_owned(),
                id: "MEM-001".to_owned(),
                says: said.to_owned(),
                fields: vec![("f".to_owned(), said.to_owned())],
            };
            let page = page(said, said, &[section]);
            let outside: Vec<&str> = page
                .lines()
                .skip(3)
                .filter(|line| {
                    !line.is_empty() && !line.starts_with('>') && !line.starts_with("  >")
                })
                .collect();
            assert!(outside.len() <= 4, "{said:?}: {page}");
            assert!(
                outside[0].starts_with("## ")
                    && outside[outside.len() - 2..]
                        .iter()
                        .any(|l| l.starts_with("- f:") || l.starts_with("#### ")),
                "{page}"
            );
            assert!(
                !page.replace("\\<", "").contains('<') && !page.contains('\u{1b}'),
                "{page}"
            );
            let inside = page
                .lines()
                .filter_map(|line| line.trim_start().strip_prefix("> "));
            for line in inside {
                assert!(
                    !line.starts_with(['#', '-', '>', '`', '=', '<', '|', ' ', '[']),
                    "{page}"
                );
            }
        }
    }

    #[test]
    fn records_are_grouped() {
        let section = |kind: &str, group: &str, id: &str| Section {
            kind: kind.to_owned(),
            group: group.to_owned(),
            id: id.to_owned(),
            says: "Do.\nTwice.".to_owned(),
            fields: Vec::new(),
        };
        let sections = [
            section("Rules", "hr/x", "REFL-001"),
            section("Rules", "hr/x", "REFL-002"),
            section("Procedures", "", "PROC-001"),
        ];
        let page = page("Memory", "3 records", &sections);
        let expected = "# Memory\n\n3 records\n\n## Rules\n\n### hr/x\n\n#### REFL-001\n\n> Do.\\\n> Twice.\n\n\
            #### REFL-002\n\n> Do.\\\n> Twice.\n\n## Procedures\n\n#### PROC-001\n\n> Do.\\\n> Twice.\n";
        assert_eq!(page, expected);
    }
}
