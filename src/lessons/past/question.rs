//! Question to a model about one past session: the instructions, the lessons that its project has already, and the
//! digest; the form of its answer, and the lessons in it that pass.
//!
//! A model that sees one session cannot know what others found out: it would say it once more in other words, or
//! contradict it. So the question names the lessons in use that share most words with the session; the answer may
//! replace one of them. A model is asked once, so a repairable answer is repaired. A lesson is left out if its quoted
//! words are not in the session. If the model quotes nothing at all, the other checks decide.
//!
//! Deliberately absent: lessons of other projects, and those that are not told.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::digest::{ReadSession, digest};
use crate::lessons::failure::without_home;
use crate::lessons::session::call_match::{Occurrence, occurrence, peeled};
use crate::lessons::storage::new_lesson::is_in_use;
use crate::lessons::storage::words::LessonArgs;
use crate::lessons::storage::words::holds;
use crate::model::text::{key_words, one_line, telling_words};
use crate::model::{LessonScope, Procedure};
use crate::store::workspace::Error;
use crate::store::{Scoped, Selection, same_project};
use memctl_llm::{Request, Schema};
use memctl_sessions::{Format, Speaker};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum number of lessons of a session: of what it found out, and of what documents of the project prescribe.
const MOST: usize = 8;
const MOST_PRESCRIBED: usize = 6;
/// Minimum length of the words of a result, in characters.
const SHORTEST: usize = 4;

/// Fields of a lesson that a model words; it may leave out all but the lesson.
const FIELDS: &[&str] = &["lesson", "commands", "errors", "not", "scope", "replaces"];

#[derive(Deserialize)]
struct Answer {
    lessons: Vec<Value>,
    prescribed: Option<Vec<Value>>,
}

/// Lesson of an answer.
pub(super) struct Answered {
    /// Words of the session that show it, as the model copied them; empty if it copied none.
    pub(super) seen: String,
    /// Objection of the model itself.
    pub(super) against: String,
    /// The model dropped it for that.
    pub(super) is_dropped: bool,
    /// `true` if a document of the project prescribes it.
    pub(super) is_prescribed: bool,
    /// The lesson, repaired.
    pub(super) args: LessonArgs,
}

/// Lesson that was not stored.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct RefusedLesson {
    /// The lesson.
    pub lesson: String,
    /// Field that is refused.
    pub field: &'static str,
    /// Reason.
    pub reason: String,
}

impl RefusedLesson {
    pub(super) fn of(lesson: &str, field: &'static str, reason: String) -> Self {
        let lesson = memctl_redact::redact(lesson).text.into_owned();
        Self {
            lesson,
            field,
            reason,
        }
    }
}

/// Returns the lessons of an answer, each read for itself: a bad item is left out with its reason.
pub(super) fn lessons_in(text: &str) -> Result<Vec<Result<Answered, RefusedLesson>>, String> {
    let answer: Answer =
        serde_json::from_str(text).map_err(|error| format!("unreadable answer: {error}"))?;
    let prescribed = answer
        .prescribed
        .into_iter()
        .flatten()
        .take(MOST_PRESCRIBED);
    let found_out = answer.lessons.into_iter().take(MOST);
    let found_out = found_out.map(|value| lesson(value, false));
    Ok(found_out
        .chain(prescribed.map(|value| lesson(value, true)))
        .collect())
}

fn lesson(mut value: Value, is_prescribed: bool) -> Result<Answered, RefusedLesson> {
    let text = |value: &Value| value.as_str().unwrap_or_default().trim().to_owned();
    let [seen, against, verdict, anew] =
        ["seen", "against", "verdict", "anew"].map(|name| text(&value[name]));
    if verdict == "reword" && !anew.is_empty() {
        value["lesson"] = anew.into();
    }
    let content = text(&value["lesson"]);
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|name, value| FIELDS.contains(&name.as_str()) && !value.is_null());
        if let Some(Value::String(scope)) = fields.get_mut("scope") {
            scope.make_ascii_lowercase();
        }
    }
    match serde_json::from_value(value) {
        Ok(args) => Ok(Answered {
            seen,
            against,
            is_dropped: verdict == "drop",
            is_prescribed,
            args: repaired(args),
        }),
        Err(error) => Err(RefusedLesson::of(&content, "lesson", error.to_string())),
    }
}

/// Calls, results and messages of the person that have the words; all, if there are none.
pub(super) fn holding<'s>(words: &str, session: &'s ReadSession) -> impl Iterator<Item = &'s str> {
    let words = plain(words.trim_start_matches("PERSON: "));
    let pieces = words.split('…').map(str::trim);
    let pieces: Vec<String> = pieces
        .filter(|piece| piece.chars().count() >= SHORTEST)
        .map(str::to_owned)
        .collect();
    let calls = session.calls.calls.iter();
    let calls = calls.flat_map(|call| [&call.output, &call.call]);
    let said = session.remarks.iter();
    let said = said.filter(|remark| remark.by == Speaker::User);
    let texts = calls.chain(said.map(|remark| &remark.text));
    texts.map(String::as_str).filter(move |text| {
        let text = plain(text);
        pieces.iter().all(|piece| text.contains(piece))
    })
}

/// Text without the quotes, escapes and line breaks in which a copy may differ; what it leaves out is `…`.
fn plain(text: &str) -> String {
    let text = text.replace("\\n", " ");
    let text: String = text.chars().filter(|c| !"\"'`\\".contains(*c)).collect();
    one_line(&text).to_lowercase().replace("...", "…")
}

/// Leaves out the commands that the session does not bear out beside what it does, and says so: no call begins like
/// them. A lesson that would have nothing left stays as it is. What a document prescribes holds in its project alone, at
/// calls that the session made or the document names.
pub(super) fn borne_out(answered: Answered, session: &ReadSession) -> (LessonArgs, Vec<String>) {
    let Answered {
        seen,
        is_prescribed,
        mut args,
        ..
    } = answered;
    let calls = &session.calls.calls;
    let peeled = peeled(calls);
    let ran = |command: &str| occurrence(command, &peeled) > Occurrence::Nowhere;
    let has = |phrase: &str| calls.iter().any(|call| holds(call, phrase));
    let mut left_out = Vec::new();
    let mut keep = |texts: &mut Vec<String>, why: &str, is_kept: &dyn Fn(&str) -> bool| {
        texts.retain(|text| {
            let is_kept = is_kept(text);
            if !is_kept {
                let text = memctl_redact::redact(text).text;
                left_out.push(format!("left out `{text}`: {why}"));
            }
            is_kept
        });
    };
    if is_prescribed {
        let texts = holding(&seen, session).chain([args.lesson.as_str()]);
        let texts: Vec<String> = texts.map(plain).collect();
        let is_named = |command: &str| {
            let fixed = plain(command.split(['<', '…']).next().unwrap_or_default());
            !fixed.is_empty() && texts.iter().any(|text| text.contains(&fixed))
        };
        let is_kept = |command: &str| ran(command) || is_named(command);
        keep(&mut args.commands, "no call or document has it", &is_kept);
        keep(&mut args.errors, "a document has no errors", &|_| false);
        args.scope = LessonScope::Project;
        return (args, left_out);
    }
    if args.commands.iter().any(|it| ran(it)) || args.errors.iter().any(|it| has(it)) {
        keep(&mut args.commands, "no call begins like it", &ran);
    }
    let is_of_nobody = |phrase: &str| without_home(phrase) == phrase;
    keep(&mut args.errors, "it names a home directory", &is_of_nobody);
    (args, left_out)
}

/// Repairs what a model is not asked about twice: a home directory becomes `~`.
fn repaired(mut args: LessonArgs) -> LessonArgs {
    args = LessonArgs {
        lesson: without_home(&args.lesson),
        files: Vec::new(),
        same: None,
        ..args
    };
    for texts in [&mut args.commands, &mut args.not] {
        for text in texts.iter_mut() {
            *text = without_home(text);
        }
    }
    args
}

/// Returns the schema of an answer. Items are described by reference: a provider that enforces a schema follows
/// it, and the check of the whole answer does not, so that one bad item spoils no other. `considered` makes a
/// model look at each failure before it words a lesson; nobody reads it. `prescribed` is a list of its own,
/// since a model that is asked for what calls were lost over passes by what was only read.
pub(super) fn schema() -> Value {
    serde_json::from_str(include_str!("prompts/past_session.schema.json")).unwrap_or_default()
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lessons::session::calls::{SessionCall, SessionCalls};
    use memctl_sessions::Remark;

    #[test]
    fn a_lesson_stands_on_words_of_the_session() {
        let call = SessionCall::new(
            Some("Bash"),
            "tools/build web",
            "{\"build\": \"refusing\"}\nbuild: refusing:  output would not be\n  reproducible (exit 3)",
            true,
        );
        let remark = |by, text: &str| Remark {
            before: 0,
            by,
            text: text.to_owned(),
        };
        let session = ReadSession {
            format: None,
            calls: SessionCalls {
                calls: vec![call],
                ..SessionCalls::default()
            },
            remarks: vec![
                remark(Speaker::User, "Never touch the generated files."),
                remark(Speaker::Agent, "The cache must be stale."),
            ],
        };
        let check = |words: &str, expected: bool| {
            let is_seen = holding(words, &session).next().is_some();
            assert_eq!(is_seen, expected, "{words}");
        };
        check("would not be reproducible", true);
        check("`build: refusing … (exit 3)`", true);
        check("refusing: ... reproducible", true);
        check("{\\\"build\\\": \\\"refusing", true);
        check("PERSON: never touch the generated files", true);
        check("tools/build web", true);
        check("The cache must be stale.", false);
        check("would be reproducible", false);
        check("", true);
    }

    #[test]
    fn lesson_without_support_in_the_session_is_left_out() {
        let code = "python3 -c \"\nimport json\"";
        let calls = [
            (code, "python3: command line: || goto :error", true),
            (
                "cat AGENTS.md",
                "Ask first.\nPush with `git push --no-thin`.",
                false,
            ),
        ];
        let calls = calls
            .map(|(call, output, failed)| SessionCall::new(Some("Bash"), call, output, failed));
        let session = ReadSession {
            format: None,
            calls: SessionCalls {
                calls: calls.to_vec(),
                ..SessionCalls::default()
            },
            remarks: Vec::new(),
        };
        let texts = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>()
        };
        let answered = |seen: &str, scope, commands: &[&str], errors: &[&str]| Answered {
            seen: seen.to_owned(),
            against: String::new(),
            is_dropped: false,
            is_prescribed: !seen.is_empty(),
            args: LessonArgs {
                commands: texts(commands),
                errors: texts(errors),
                scope,
                ..LessonArgs::default()
            },
        };
        let check = |commands: &[&str], errors: &[&str], expected: (&[&str], &[&str])| {
            let given = answered("", LessonScope::Everywhere, commands, errors);
            let (args, left_out) = borne_out(given, &session);
            assert_eq!(
                (args.commands, args.errors),
                (texts(expected.0), texts(expected.1))
            );
            let lost = commands.len() + errors.len() - expected.0.len() - expected.1.len();
            assert_eq!(left_out.len(), lost, "{left_out:?}");
        };
        let seen = "|| goto :error";
        check(
            &["python3 -c \" import", "python -c"],
            &[seen],
            (&["python3 -c \" import"], &[seen]),
        );
        let others = [seen, "goto: not found"];
        check(&["perl -e"], &others, (&[], &others));
        check(
            &["python3"],
            &["goto: not found"],
            (&["python3"], &["goto: not found"]),
        );
        check(
            &["perl -e"],
            &["goto: not found"],
            (&["perl -e"], &["goto: not found"]),
        );
        // The document says it, or the session did it.
        let commands = ["perl -e", "python3 -c", "git push <branch>"];
        let prescribed = answered("Ask first.", LessonScope::Everywhere, &commands, &[seen]);
        let (prescribed, left_out) = borne_out(prescribed, &session);
        assert_eq!(prescribed.commands, ["python3 -c", "git push <branch>"]);
        assert_eq!(
            (prescribed.errors.len(), prescribed.scope),
            (0, LessonScope::Project)
        );
        assert!(
            left_out[0].starts_with("left out `perl -e`"),
            "{left_out:?}"
        );
    }

    #[test]
    fn unreadable_item_is_named_and_a_readable_one_repaired() {
        let text = r#"{"lessons": [
            {"seen": "ok", "lesson": "Read /home/ann/x with `a`.", "commands": ["a"], "errors": ["no", "no such file: x"],
             "not": [], "scope": "project"},
            {"lesson": 3},
            {"lesson": "Run `c` last.", "scope": "galaxy", "commands": ["c"]},
            {"lesson": "Run `d` first.", "scope": "Everywhere", "errors": null, "certainty": 0.9},
            "Run `e`.",
            {"commands": ["f"]}
        ], "prescribed": [
            {"seen": "a", "lesson": "Change `b` with `a`.", "commands": [], "errors": [], "not": [], "scope": "project"}
        ]}"#;
        let lessons = lessons_in(text).unwrap();
        let first = lessons[0].as_ref().ok().unwrap();
        assert_eq!(
            (first.seen.as_str(), first.args.lesson.as_str()),
            ("ok", "Read ~/x with `a`.")
        );
        let bad = |at: usize| lessons[at].as_ref().err().unwrap();
        assert!(bad(1).reason.contains("invalid type"));
        assert_eq!(bad(2).lesson, "Run `c` last.");
        assert!(bad(2).reason.contains("galaxy"), "{:?}", bad(2));
        let fourth = &lessons[3].as_ref().ok().unwrap().args;
        let expected = ("Run `d` first.", LessonScope::Everywhere);
        assert_eq!((fourth.lesson.as_str(), fourth.scope), expected);
        assert!(bad(4).reason.contains("invalid type"));
        // Without words there is no lesson: the check of the words refuses it.
        assert_eq!(lessons[5].as_ref().ok().unwrap().args.lesson, "");
        let last = lessons[6].as_ref().ok().unwrap();
        assert_eq!(last.args.lesson, "Change `b` with `a`.");
        assert!(lessons_in("none").is_err());
    }
}
