//! Question to a model about one past session: the instructions, the lessons that its project has already, and the digest.
//!
//! A model that sees one session cannot know what others found out: it would say it once more in other words, or
//! contradict it. So the question names the lessons in use that share most words with the session; the answer may replace
//! one of them.
//!
//! Deliberately absent: lessons of other projects, and those that are not told.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use memctl_llm::{Request, Schema};
use memctl_sessions::Format;

use super::answer::schema;
use super::digest::{ReadSession, digest};
use crate::lessons::storage::new_lesson::is_in_use;
use crate::model::Procedure;
use crate::model::text::{key_words, telling_words};
use crate::store::workspace::Error;
use crate::store::{Scoped, Selection, same_project};

/// Default instructions; users can replace them.
pub(super) const PROMPT: &str = include_str!("prompts/past_session.md");
/// Maximum length of an answer, in tokens.
const LONGEST_ANSWER: u32 = 4_000;
/// Maximum number of existing lessons in a question.
const MOST_EXISTING: usize = 24;

/// Existing lesson: its id, and its text.
pub(super) type Existing = (String, String);

/// Returns the lessons in use of the project of a session that share most words with it.
pub(super) fn existing(store: &Scoped, session: &ReadSession) -> Result<Vec<Existing>, Error> {
    let project = &session.calls.head.project;
    let is_here = |name: &str| same_project(name, project);
    let mut lessons = store.list::<Procedure>(&Selection::default())?.records;
    lessons.retain(|lesson| is_in_use(lesson) && lesson.is_of(&is_here));
    if lessons.is_empty() {
        return Ok(Vec::new());
    }
    let calls = session.calls.calls.iter();
    let texts = calls.flat_map(|call| [&call.call, &call.output]);
    let words: BTreeSet<String> = texts.flat_map(|text| key_words(text)).collect();
    let shared = |lesson: &Procedure| {
        let mut own = key_words(&lesson.lesson);
        own.retain(|word| telling_words(word) > 0 && words.contains(word));
        own.len()
    };
    lessons.sort_by_cached_key(|lesson| Reverse(shared(lesson)));
    let lessons = lessons.into_iter().take(MOST_EXISTING);
    Ok(lessons
        .map(|lesson| (lesson.procedure_id, lesson.lesson))
        .collect())
}

/// Returns the question about a session.
pub(super) fn question(system: &str, session: &ReadSession, existing: &[Existing]) -> Request {
    let of = session.format.map_or("", Format::name);
    let digest = digest(&session.calls.calls, &session.remarks);
    let project = &session.calls.head.project;
    let lessons = if existing.is_empty() {
        String::new()
    } else {
        let lines = existing
            .iter()
            .map(|(id, lesson)| format!("{id}: {lesson}"));
        let lines = lines.collect::<Vec<_>>().join("\n");
        format!("<lessons>\n{}\n</lessons>\n", unmarked(&lines))
    };
    let user = format!(
        "{lessons}<session project=\"{project}\" host=\"{of}\">\n{}\n</session>",
        unmarked(&digest)
    );
    Request {
        system: system.to_owned(),
        user,
        schema: Some(Schema {
            name: "lessons".to_owned(),
            json: schema(),
        }),
        max_tokens: LONGEST_ANSWER,
    }
}

/// Text that ends none of the marked parts of a question.
fn unmarked(text: &str) -> String {
    text.replace("</", "<\\/")
}
