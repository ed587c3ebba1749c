//! Notes of other tools: Markdown for agents, and exports of mem0.
//!
//! Markdown notes for agents are `CLAUDE.md`, `AGENTS.md`, `MEMORY.md` and the files next to it.
//!
//! Each bullet with its nested lines is one note, and so is each paragraph. A code block belongs to
//! the note before it, or to the heading above it. Headings are not notes; each note records the
//! headings above it.
//!
//! mem0's exports are the JSON of `get_all()` and `search()` (a list, `{"results": […]}` or the pages
//! of its platform), and JSON Lines of such objects, which other programs write too. A line may name
//! its `memory_type`.
//!
//! Deliberately absent: following `@path` and links, whose files are imported by name; and mem0's vector
//! stores, whose formats differ (a local Qdrant uses Python's pickle).

use serde_json::{Map, Value, json};

use crate::model::MemoryType;
use crate::upkeep::exchange::agents_md;
use crate::upkeep::exchange::{Foreign, Found, Skipped, metadata};

/// Maximum characters of a note; longer text is a document.
const LONGEST: usize = 4_000;

/// Reads the notes of a file. `name` is its display name.
pub fn read(name: &str, text: &str) -> Found {
    let mut reader = Reader {
        name,
        found: Found::default(),
        headings: Vec::new(),
        note: None,
    };
    // Text that ends a part which is no note, and the mark that ends a code block.
    let (mut left_out, mut fence): (Option<&str>, Option<&str>) = (None, None);
    for (number, line) in (1..).zip(text.lines()) {
        let trimmed = line.trim();
        if let Some(end) = left_out {
            left_out = left_out.filter(|_| !trimmed.contains(end));
        } else if let Some(mark) = fence {
            reader.push(line);
            fence = fence.filter(|_| !trimmed.starts_with(mark) || !is_made_of(trimmed, mark));
        } else if number == 1 && trimmed == "---" {
            reader.skip(
                number,
                "front matter says what the file is, and teaches nothing",
            );
            let mut rest = text.lines().skip(1);
            left_out = rest.any(|line| line.trim() == "---").then_some("---");
        } else if agents_md::begins(line) {
            reader.end();
            reader.skip(number, "the rules of memctl itself");
            left_out = Some(agents_md::END);
        } else if trimmed.starts_with("<!--") {
            reader.end();
            reader.skip(number, "a comment is not shown to agents");
            left_out = (!trimmed.contains("-->")).then_some("-->");
        } else if let Some(mark) = fence_of(trimmed) {
            if reader.introduce(number, line.len() - line.trim_start().len()) {
                reader.push(line);
                fence = Some(mark);
            } else {
                reader.skip(number, "a code block that no words introduce");
                left_out = Some(mark);
            }
        } else if let Some((level, heading)) = heading(line) {
            reader.end();
            reader.headings.retain(|(above, _)| *above < level);
            reader.headings.push((level, heading));
        } else if trimmed.is_empty() {
            reader.note.iter_mut().for_each(|note| note.paused = true);
        } else if is_import(trimmed) {
            let reason = "an import of another file, which is not followed; import that file";
            reader.skip(number, reason);
        } else if is_made_of(trimmed, "-*_= ") {
            reader.end();
        } else {
            reader.line(number, line);
        }
    }
    reader.end();
    reader.found
}

fn is_made_of(text: &str, marks: &str) -> bool {
    text.chars().all(|c| marks.contains(c))
}

/// Mark that opens a code block, and ends it: three or more backticks or tildes.
fn fence_of(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches(['`', '~']);
    let mark = &line[..line.len() - rest.len()];
    (mark.len() >= 3).then_some(mark)
}

/// Note being read.
struct Note {
    number: usize,
    /// Column of the bullet; `None` for a paragraph.
    bullet: Option<usize>,
    lines: Vec<String>,
    /// `true` after a blank line.
    paused: bool,
}

struct Reader<'a> {
    name: &'a str,
    found: Found,
    headings: Vec<(usize, String)>,
    note: Option<Note>,
}

impl Reader<'_> {
    fn skip(&mut self, number: usize, reason: &str) {
        let what = format!("line {number} of `{}`", self.name);
        self.found.skipped.push(Skipped::one(what, reason));
    }

    /// Makes sure that a code block has a note: that before it, unless the list has ended, or one under
    /// the heading. Returns `false` without any words for one.
    fn introduce(&mut self, number: usize, indent: usize) -> bool {
        let has_ended = |note: &Note| note.paused && note.bullet.is_some_and(|at| indent <= at);
        if self.note.as_ref().is_some_and(has_ended) {
            self.end();
        }
        if self.note.is_none() {
            self.note = self.headings.last().map(|(_, heading)| Note {
                number,
                bullet: None,
                lines: vec![heading.clone()],
                paused: false,
            });
        }
        self.note.is_some()
    }

    /// Adds a line to the note.
    fn push(&mut self, line: &str) {
        if let Some(note) = &mut self.note {
            note.lines.extend(note.paused.then(String::new));
            note.lines.push(line.to_owned());
            note.paused = false;
        }
    }

    /// Adds a line to the note that it belongs to, or begins a note with it.
    fn line(&mut self, number: usize, line: &str) {
        let indent = line.len() - line.trim_start().len();
        let bullet = bullet(line);
        let goes_on = self.note.as_ref().is_some_and(|note| {
            // Lines indented deeper than the bullet belong to it.
            let is_below = note.bullet.is_some_and(|column| indent > column);
            is_below || (bullet.is_none() && !note.paused)
        });
        if goes_on {
            return self.push(line);
        }
        self.end();
        self.note = Some(Note {
            number,
            bullet: bullet.map(|_| indent),
            lines: vec![bullet.unwrap_or_else(|| line.trim_start()).to_owned()],
            paused: false,
        });
    }

    fn end(&mut self) {
        let Some(note) = self.note.take() else {
            return;
        };
        let text = note.lines.join("\n").trim().to_owned();
        if link_alone(&text) {
            return self.skip(
                note.number,
                "it only points to another file; import that file",
            );
        }
        if !text.chars().any(char::is_alphanumeric) {
            return self.skip(note.number, "it says nothing");
        }
        if text.chars().count() > LONGEST {
            let reason = "it is longer than 4,000 characters: a document, not a lesson";
            return self.skip(note.number, reason);
        }
        let under: Vec<&str> = self
            .headings
            .iter()
            .map(|(_, text)| text.as_str())
            .collect();
        let fields = vec![
            ("file", json!(self.name)),
            ("line", json!(note.number)),
            ("heading", json!(under.join(" > "))),
        ];
        self.found.records.push(Foreign {
            what: format!("line {} of `{}`", note.number, self.name),
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
fn is_import(line: &str) -> bool {
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

/// Names of the text field, in the versions of the API.
const TEXT: [&str; 4] = ["memory", "data", "text", "content"];

/// Returns `true` for a JSON document in mem0's answer format.
pub fn is_answer(document: &Value) -> bool {
    let is_memory =
        |item: &Value| item.get("id").is_some() && item.get("memory").is_some_and(Value::is_string);
    match document {
        Value::Array(items) => items.first().is_some_and(is_memory),
        Value::Object(fields) => {
            let results = fields.get("results").and_then(Value::as_array);
            is_memory(document) || results.is_some_and(|items| items.iter().any(is_memory))
        }
        _ => false,
    }
}

/// Reads the memories of one or more documents.
pub fn answers(documents: Vec<Value>) -> Found {
    let listed = |value: Option<Value>| match value {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    let mut found = Found::default();
    for document in documents {
        let items = match document {
            Value::Array(items) => items,
            Value::Object(mut fields) if fields.contains_key("results") => {
                // Relations of mem0's graph.
                let relations = listed(fields.remove("relations")).len() as u64;
                if relations > 0 {
                    let reason = "a relation of mem0's graph is no text";
                    let skipped = Skipped::some(relations, "relations", reason);
                    found.skipped.push(skipped);
                }
                listed(fields.remove("results"))
            }
            other => vec![other],
        };
        for item in items {
            answer(item, &mut found);
        }
    }
    found
}

fn answer(item: Value, found: &mut Found) {
    let number = found.records.len() + found.skipped.len() + 1;
    let Value::Object(mut fields) = item else {
        let what = format!("item {number}");
        found.skipped.push(Skipped::one(what, "it is no object"));
        return;
    };
    let text = |fields: &Map<String, Value>, name: &str| -> Option<String> {
        let text = fields.get(name)?.as_str()?;
        (!text.trim().is_empty()).then(|| text.to_owned())
    };
    let id = text(&fields, "id");
    let what = id
        .as_ref()
        .map_or_else(|| format!("item {number}"), |id| format!("memory {id}"));
    let Some(content) = TEXT.iter().find_map(|name| text(&fields, name)) else {
        let reason = "it has no text in `memory`";
        found.skipped.push(Skipped::one(what, reason));
        return;
    };
    let user = text(&fields, "user_id");
    let created = text(&fields, "created_at");
    let named = text(&fields, "memory_type");
    let types = MemoryType::ALL.into_iter();
    let memory_type = types
        .clone()
        .find(|kind| named.as_deref() == Some(kind.name()));
    // These fields are stored elsewhere; a score belongs to a query.
    let stored = ["id", "user_id", "created_at", "memory_type", "score"];
    for name in TEXT.iter().chain(&stored) {
        fields.remove(*name);
    }
    let given = match fields.remove("metadata") {
        Some(Value::Object(given)) => given,
        _ => Map::new(),
    };
    let mut fields_left = metadata(
        fields
            .iter()
            .map(|(name, value)| (name.as_str(), value.clone()))
            .collect(),
    );
    fields_left.extend(given);
    found.records.push(Foreign {
        id: id.unwrap_or_else(|| content.clone()),
        what,
        created,
        memory_type: memory_type.unwrap_or(MemoryType::UserPreferences),
        text: content,
        user,
        metadata: fields_left,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, lessons: &[&str], skipped: usize) -> Found {
        let found = read("CLAUDE.md", text);
        let texts: Vec<&str> = found.records.iter().map(|r| r.text.as_str()).collect();
        assert_eq!(texts, lessons, "{text}");
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
    fn text_without_a_lesson_is_counted() {
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

#[cfg(test)]
mod tests_of_mem0 {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_form_of_an_answer_is_read_and_nothing_is_lost() {
        let memory = json!({"id": "a", "memory": "likes tea", "hash": "h", "score": 0.5, "user_id": "alice",
            "created_at": "2026-01-01T00:00:00+00:00", "metadata": {"n": 1}, "run_id": null});
        let check = |document: Value, records: usize, skipped: u64| {
            let found = answers(vec![document.clone()]);
            let lost: u64 = found.skipped.iter().map(|s| s.count).sum();
            assert_eq!(
                (found.records.len(), lost),
                (records, skipped),
                "{document}"
            );
            found
        };
        let found = check(json!([memory]), 1, 0);
        let record = &found.records[0];
        assert_eq!(
            (record.id.as_str(), record.text.as_str()),
            ("a", "likes tea")
        );
        assert_eq!(record.user.as_deref(), Some("alice"));
        assert_eq!(
            Value::Object(record.metadata.clone()),
            json!({"hash": "h", "n": 1})
        );
        check(
            json!({"results": [memory, {"id": "b"}, 7], "relations": [{"a": 1}]}),
            1,
            3,
        );
        check(memory.clone(), 1, 0);
        check(json!({"count": 1, "next": null, "results": [memory]}), 1, 0);
        let typed = json!({"id": "c", "memory": "built", "memory_type": "task_memory"});
        let found = check(typed, 1, 0);
        assert_eq!(found.records[0].memory_type, MemoryType::TaskMemory);
        check(json!({"results": []}), 0, 0);
        check(json!("x"), 0, 1);
        assert!(is_answer(&json!({"results": [memory]})));
        assert!(!is_answer(&json!({"results": [{"a": 1}]})) && !is_answer(&json!([])));
    }
}
