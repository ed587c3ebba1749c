//! Markdown notes for agents: `CLAUDE.md`, `AGENTS.md`, `MEMORY.md` and the files next to it.
//!
//! Each bullet with its nested lines is one note, and so is each paragraph. A code block belongs to
//! the note that introduces it. Headings are not notes; each note records the headings above it.
//!
//! Deliberately absent: following `@path` and links. Import such files by name.

use serde_json::json;

use crate::model::MemoryType;

use super::agents_md::block;
use super::{Foreign, Found, Skipped, metadata};

/// Maximum characters of a note; longer text is a document.
const LONGEST: usize = 4_000;

/// Reads the notes of a file. `name` is its display name.
pub fn read(name: &str, text: &str) -> Found {
    let mut reader = Reader {
        name,
        found: Found::default(),
        headings: Vec::new(),
        item: None,
    };
    let mut lines = text.lines().enumerate().peekable();
    if lines
        .peek()
        .is_some_and(|(_, line)| line.trim_end() == "---")
    {
        lines.next();
        // Front matter describes the file and holds no notes.
        let closed = text.lines().skip(1).any(|line| line.trim_end() == "---");
        while closed
            && lines
                .next()
                .is_some_and(|(_, line)| line.trim_end() != "---")
        {}
        let what = format!("the front matter of `{name}`");
        reader.found.skipped.push(Skipped::one(
            what,
            "it says what the file is, and teaches nothing",
        ));
    }
    let mut fence: Option<Fence> = None;
    let mut comment = false;
    let mut own_block = false;
    for (i, line) in lines {
        let number = i + 1;
        if block::begins(line) && fence.is_none() {
            reader.end();
            reader.skip(number, "the rules of memctl itself");
            own_block = true;
        }
        if own_block {
            own_block = !block::ends(line);
            continue;
        }
        if comment {
            comment = !line.contains("-->");
            continue;
        }
        if let Some(open) = &mut fence {
            let closes = open.closes(line);
            open.lines.push(line.to_owned());
            if closes && let Some(fence) = fence.take() {
                reader.code(fence);
            }
            continue;
        }
        let trimmed = line.trim();
        if let Some(open) = Fence::opened(line, number) {
            fence = Some(open);
        } else if trimmed.starts_with("<!--") {
            reader.end();
            comment = !trimmed.contains("-->");
            reader.skip(number, "a comment is not shown to agents");
        } else if let Some(heading) = heading(line) {
            reader.end();
            reader.under(heading);
        } else if trimmed.is_empty() {
            reader.pause();
        } else if is_import(trimmed) {
            reader.skip(
                number,
                "an import of another file, which is not followed; import that file",
            );
        } else if trimmed
            .chars()
            .all(|c| matches!(c, '-' | '*' | '_' | '=' | ' '))
        {
            reader.end();
        } else {
            reader.line(number, line);
        }
    }
    if let Some(fence) = fence {
        reader.code(fence);
    }
    reader.end();
    reader.found
}

/// Open code block.
struct Fence {
    mark: char,
    length: usize,
    number: usize,
    lines: Vec<String>,
}

impl Fence {
    fn opened(line: &str, number: usize) -> Option<Self> {
        let inner = line.trim_start();
        let mark = inner.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = inner.chars().take_while(|c| *c == mark).count();
        (length >= 3).then(|| Self {
            mark,
            length,
            number,
            lines: vec![line.to_owned()],
        })
    }

    fn closes(&self, line: &str) -> bool {
        let inner = line.trim();
        inner.chars().count() >= self.length && inner.chars().all(|c| c == self.mark)
    }
}

/// Note being read.
struct Item {
    number: usize,
    /// Column of the bullet; `None` for a paragraph.
    bullet: Option<usize>,
    lines: Vec<String>,
    /// `true` after a blank line.
    paused: bool,
}

impl Item {
    /// Returns `true` if the last line says that something follows, also in bold.
    fn introduces(&self) -> bool {
        let last = self.lines.last().map_or("", |line| line.trim_end());
        last.trim_end_matches(['*', '_']).ends_with(':')
    }
}

struct Reader<'a> {
    name: &'a str,
    found: Found,
    headings: Vec<(usize, String)>,
    item: Option<Item>,
}

impl Reader<'_> {
    fn under(&mut self, (level, text): (usize, String)) {
        self.headings.retain(|(above, _)| *above < level);
        self.headings.push((level, text));
    }

    fn skip(&mut self, number: usize, reason: &str) {
        let what = format!("line {number} of `{}`", self.name);
        self.found.skipped.push(Skipped::one(what, reason));
    }

    fn pause(&mut self) {
        if let Some(item) = &mut self.item {
            item.paused = true;
        }
    }

    fn line(&mut self, number: usize, line: &str) {
        let indent = line.len() - line.trim_start().len();
        let bullet = bullet(line);
        let goes_on = self.item.as_ref().is_some_and(|item| match item.bullet {
            // Lines indented deeper than the bullet belong to it.
            Some(column) => indent > column || (bullet.is_none() && !item.paused),
            None => bullet.is_none() && !item.paused,
        });
        if goes_on && let Some(item) = &mut self.item {
            if item.paused {
                item.lines.push(String::new());
                item.paused = false;
            }
            item.lines.push(line.to_owned());
            return;
        }
        self.end();
        let first = bullet.unwrap_or_else(|| line.trim_start()).to_owned();
        self.item = Some(Item {
            number,
            bullet: bullet.map(|_| indent),
            lines: vec![first],
            paused: false,
        });
    }

    /// A code block belongs to the bullet that it is indented under, to the text before it in the
    /// same section, or to the heading above it.
    fn code(&mut self, fence: Fence) {
        let indent = fence
            .lines
            .first()
            .map_or(0, |line| line.len() - line.trim_start().len());
        let belongs = self.item.as_ref().is_some_and(|item| match item.bullet {
            // A list has ended where a block stands at its own column after a blank line.
            Some(column) => indent > column || !item.paused || item.introduces(),
            None => true,
        });
        match (&mut self.item, self.headings.last()) {
            (Some(item), _) if belongs => {
                item.lines.extend(item.paused.then(String::new));
                item.lines.extend(fence.lines);
                item.paused = false;
            }
            (_, Some((_, heading))) => {
                let heading = heading.clone();
                self.end();
                let mut lines = vec![heading];
                lines.extend(fence.lines);
                self.item = Some(Item {
                    number: fence.number,
                    bullet: None,
                    lines,
                    paused: false,
                });
            }
            (_, None) => {
                self.end();
                self.skip(fence.number, "a code block that no words introduce");
            }
        }
    }

    fn end(&mut self) {
        let Some(item) = self.item.take() else {
            return;
        };
        let text = item.lines.join("\n").trim().to_owned();
        if link_alone(&text) {
            return self.skip(
                item.number,
                "it only points to another file; import that file",
            );
        }
        if !text.chars().any(char::is_alphanumeric) {
            return self.skip(item.number, "it says nothing");
        }
        if text.chars().count() > LONGEST {
            let reason =
                format!("it is longer than {LONGEST} characters: a document, not a lesson");
            return self.skip(item.number, &reason);
        }
        let under: Vec<&str> = self
            .headings
            .iter()
            .map(|(_, text)| text.as_str())
            .collect();
        let fields = vec![
            ("file", json!(self.name)),
            ("line", json!(item.number)),
            ("heading", json!(under.join(" > "))),
        ];
        self.found.records.push(Foreign {
            what: format!("line {} of `{}`", item.number, self.name),
            // The id uses the text, since line numbers change with every edit.
            id: format!("{}:{text}", self.name),
            created: None,
            memory_type: MemoryType::UserPreferences,
            text,
            user: None,
            metadata: metadata(fields),
        });
    }
}

/// Level and text of a heading.
fn heading(line: &str) -> Option<(usize, String)> {
    let level = line.chars().take_while(|c| *c == '#').count();
    let text = line.get(level..)?;
    let is_heading = (1..=6).contains(&level) && (text.is_empty() || text.starts_with([' ', '\t']));
    is_heading.then(|| (level, text.trim().trim_end_matches('#').trim().to_owned()))
}

/// Text after a bullet mark or an item number.
fn bullet(line: &str) -> Option<&str> {
    let inner = line.trim_start();
    let digits = inner.bytes().take_while(u8::is_ascii_digit).count();
    let rest = if (1..=9).contains(&digits) {
        inner[digits..].strip_prefix(['.', ')'])?
    } else {
        inner.strip_prefix(['-', '*', '+'])?
    };
    rest.starts_with([' ', '\t']).then(|| rest.trim_start())
}

/// Import line such as `@docs/style.md`.
pub(super) fn is_import(line: &str) -> bool {
    let path = bullet(line).unwrap_or(line).strip_prefix('@');
    path.is_some_and(|path| !path.is_empty() && !path.contains(char::is_whitespace))
}

/// Link to a Markdown file, optionally with a description, as in an index of notes.
fn link_alone(text: &str) -> bool {
    let target = text
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]("))
        .and_then(|(_, rest)| rest.split_once(')'));
    target.is_some_and(|(path, _)| path.to_lowercase().ends_with(".md") && !text.contains('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, lessons: &[&str], skipped: usize) -> Found {
        let found = read("CLAUDE.md", text);
        let said: Vec<&str> = found.records.iter().map(|r| r.text.as_str()).collect();
        assert_eq!(said, lessons, "{text}");
        assert_eq!(found.skipped.len(), skipped, "{text}: {:?}", found.skipped);
        found
    }

    #[test]
    fn bullets_and_paragraphs_are_lessons() {
        let found = check(
            "# Build\nUse make.\nNever cargo clean.\n\n- run `make test`\n  - with one thread\n- 日本語\n\n## CI ##\n1. first\n2) second\n",
            &[
                "Use make.\nNever cargo clean.",
                "run `make test`\n  - with one thread",
                "日本語",
                "first",
                "second",
            ],
            0,
        );
        assert_eq!(found.records[3].metadata["heading"], "Build > CI");
        assert_eq!(found.records[1].metadata["line"], 5);
    }

    #[test]
    fn code_belongs_to_the_words_that_introduce_it() {
        check(
            "Run:\n```sh\n# no heading\n- no bullet\n```\nDone.\n",
            &["Run:\n```sh\n# no heading\n- no bullet\n```\nDone."],
            0,
        );
        check(
            "Some words.\n\n```\nx\n```\n",
            &["Some words.\n\n```\nx\n```"],
            0,
        );
        check(
            "## Deploy\n\n```\n./up\n```\n\n**By hand:**\n```\n./hand\n```\n",
            &["Deploy\n```\n./up\n```", "**By hand:**\n```\n./hand\n```"],
            0,
        );
        check(
            "# Use\n- one\n- two\n\n```\nx\n```\n",
            &["one", "two", "Use\n```\nx\n```"],
            0,
        );
        check(
            "- a\n  ```\n  x\n  ```\n- b",
            &["a\n  ```\n  x\n  ```", "b"],
            0,
        );
        check("~~~\nnever closed\n", &[], 1);
    }

    #[test]
    fn what_is_no_lesson_is_counted() {
        check(
            "---\nname: x\n---\n@docs/a.md\n- @~/b.md\n<!-- hidden\nlines -->\n* [A](a.md) — about a\n***\n",
            &[],
            5,
        );
        check("mail me @home today", &["mail me @home today"], 0);
        check(&"x".repeat(LONGEST + 1), &[], 1);
        check("", &[], 0);
        check("---\n", &[], 1);
    }
}
