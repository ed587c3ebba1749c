//! Typed notes that users write, with the schemas of their metadata; and the expiry of records.
//!
//! The tables of the schemas hold the source document's five and are the only definition. Metadata is checked as JSON
//! text and never rewritten: fields outside the schema are kept byte for byte.
//!
//! Deliberately absent: schemas for fields that users add, and automatic correction of a user's input.

use std::fmt;

use chrono::{DateTime, Datelike as _, NaiveDate, NaiveDateTime, SecondsFormat, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::kind::{Document, Kind, Record, Trust, one_layout};
use crate::model::words::{self, lenient, names, schema};

use Shape::{Fields, Number, OneOf, Text, Texts};

/// A typed note: an entry of `memories.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(remote = "Memory")]
pub struct Memory {
    /// `MEM-{NNN}`.
    #[serde(default)]
    pub id: String,
    /// Id of the user; `None` for the owner of the files.
    #[serde(
        default,
        deserialize_with = "words::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub user_id: Option<String>,
    /// Type of the note.
    pub memory_type: MemoryType,
    /// Text of the note.
    #[serde(default)]
    pub content: String,
    /// Fields of the type's schema, and any others that were given.
    #[serde(default)]
    pub metadata: Box<RawValue>,
    /// RFC 3339, UTC.
    #[serde(default)]
    pub created_at: String,
    /// RFC 3339, UTC.
    #[serde(default)]
    pub updated_at: String,
    /// RFC 3339, UTC; `None` means never.
    #[serde(default, deserialize_with = "words::text_or_none")]
    pub expires_at: Option<String>,
    /// `observed` if imported from another memory, `approved` if a user has approved the import;
    /// empty if a user entered the note here.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub trust: String,
}

impl Record for Memory {
    const KIND: Kind = Kind::Memory;

    fn labels(&self) -> Document {
        Document {
            expires: self.expires_at.clone(),
            memory_type: Some(self.memory_type),
            user_id: self.user_id.clone(),
            ..Document::new(Self::KIND, &self.id, &self.created_at)
        }
    }

    fn content(&self) -> String {
        self.content.clone()
    }

    fn trust(&self) -> Trust {
        match self.trust.as_str() {
            "" => Trust::User,
            field => Trust::stored(field),
        }
    }

    fn claims(&self) -> Vec<String> {
        let metadata = one_layout(&self.metadata);
        let kind = self.memory_type.name().to_owned();
        vec![kind, self.content.clone(), metadata]
    }
}

/// Expiry of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// The record never expires.
    Never,
    /// The record is hidden from this moment on.
    At(DateTime<Utc>),
    /// The expiry time cannot be parsed. The record is hidden, and is not removed until a user
    /// corrects the time.
    Unreadable,
}

impl Expiry {
    /// Parses `expires_at`; `None` and empty text mean no expiry. A time without a zone is UTC, and
    /// a date is its first moment: users and other programs write both.
    pub fn of(text: Option<&str>) -> Self {
        let text = text.map(str::trim).unwrap_or_default();
        if text.is_empty() {
            return Self::Never;
        }
        moment(text).map_or(Self::Unreadable, Self::At)
    }

    /// Returns `true` if the expiry has passed. Without a `now`, every expiry counts as passed.
    pub fn is_over(self, now: Option<DateTime<Utc>>) -> bool {
        match self {
            Self::Never => false,
            Self::At(end) => now.is_none_or(|now| end <= now),
            Self::Unreadable => true,
        }
    }
}

/// Parses an expiry given by a user: a time, a date, a span from now such as `30d`, or `never`.
///
/// # Errors
///
/// Returns a description of the valid forms.
pub fn ending(given: &str, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>, &'static str> {
    let given = given.trim();
    if given == "never" {
        return Ok(None);
    }
    let end = match span(given) {
        Some(span) => later(now, span).ok_or("that is too far away")?,
        None => moment(given).ok_or(
            "it must be a time, as in `2027-01-31T12:00:00Z` or `2027-01-31`, a span from now on, as in \
             `12h`, `30d`, `2w` or `1y`, or `never`",
        )?,
    };
    if end.year() > 9999 {
        return Err("that is too far away");
    }
    if end <= now {
        return Err("that is over already; it must be in the future");
    }
    Ok(Some(end))
}

/// Adds a span to a time; `None` after the year 9999, which RFC 3339 cannot express.
pub fn later(now: DateTime<Utc>, span: TimeDelta) -> Option<DateTime<Utc>> {
    let end = now.checked_add_signed(span)?;
    (end.year() <= 9999).then_some(end)
}

/// Parses a whole number of hours, days, weeks or years of 365 days.
fn span(text: &str) -> Option<TimeDelta> {
    let unit = text.chars().next_back()?;
    let hours = match unit {
        'h' => 1,
        'd' => 24,
        'w' => 7 * 24,
        'y' => 365 * 24,
        _ => return None,
    };
    let digits = &text[..text.len() - unit.len_utf8()];
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // A number that overflows becomes the longest span, which the caller rejects.
    let count: i64 = digits.parse().unwrap_or(i64::MAX);
    let span = TimeDelta::try_hours(count.saturating_mul(hours));
    Some(span.unwrap_or(TimeDelta::MAX))
}

/// Returns a stored time in the form of reports, RFC 3339 with `Z`. A text without a valid time
/// and zone is returned unchanged.
pub fn utc(time: &str) -> String {
    match DateTime::parse_from_rfc3339(time) {
        Ok(time) => time.to_utc().to_rfc3339_opts(SecondsFormat::AutoSi, true),
        Err(_) => time.to_owned(),
    }
}

/// Parses a time in the forms that files and users write.
pub(crate) fn moment(text: &str) -> Option<DateTime<Utc>> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.to_utc());
    }
    // Postgres writes `2026-01-31 12:00:00+00`.
    if let Ok(time) = DateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f%#z") {
        return Some(time.to_utc());
    }
    let zoneless = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f"];
    let mut zoneless = zoneless.into_iter();
    if let Some(time) = zoneless.find_map(|form| NaiveDateTime::parse_from_str(text, form).ok()) {
        return Some(time.and_utc());
    }
    let date: NaiveDate = text.parse().ok()?;
    Some(date.and_hms_opt(0, 0, 0)?.and_utc())
}

lenient!(Memory);

names! {
    /// The five types of note, in the order of the source document.
    #[expect(missing_docs, reason = "the names are the definition: they are the source document's")]
    MemoryType {
        BrandMemory = "brand_memory",
        UserPreferences = "user_preferences",
        CompetitiveMemory = "competitive_memory",
        TaskMemory = "task_memory",
        PerformanceMemory = "performance_memory",
    }
}

schema!(MemoryType, { "type": "string", "enum": Self::ALL.map(Self::name) });

/// A field of metadata: its key in the object, `true` if it must be present, and its allowed values.
pub type Field = (&'static str, bool, Shape);

const OPTIONAL: bool = false;
const REQUIRED: bool = true;

/// Allowed values of a metadata field.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// A text.
    Text,
    /// A list of texts.
    Texts,
    /// A number of at least 0, and at most the given one; `None` means no upper limit.
    Number(Option<f64>),
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// An object with these fields.
    Fields(&'static [Field]),
}

const BRAND: &[Field] = &[
    ("brand_name", OPTIONAL, Text),
    ("industry", OPTIONAL, Text),
    ("target_audience", OPTIONAL, Text),
    ("tone", OPTIONAL, Texts),
    ("keywords", OPTIONAL, Texts),
    ("competitors", OPTIONAL, Texts),
    (
        "source",
        OPTIONAL,
        OneOf(&["user_input", "agent_inferred", "uploaded_doc"]),
    ),
];

const PREFERENCES: &[Field] = &[
    (
        "preference_type",
        REQUIRED,
        OneOf(&["video_format", "actor", "music", "tone", "platform"]),
    ),
    ("confidence_score", REQUIRED, Number(Some(1.0))),
    ("last_updated", REQUIRED, Text),
    (
        "source",
        OPTIONAL,
        OneOf(&["explicit_choice", "inferred_from_usage"]),
    ),
];

const COMPETITIVE: &[Field] = &[
    ("competitor_name", OPTIONAL, Text),
    ("platform", OPTIONAL, OneOf(&["meta", "tiktok", "youtube"])),
    ("ad_id", OPTIONAL, Text),
    (
        "performance_metrics",
        OPTIONAL,
        Fields(&[
            ("engagement_rate", OPTIONAL, Number(None)),
            ("view_count", OPTIONAL, Number(None)),
            ("share_count", OPTIONAL, Number(None)),
        ]),
    ),
    ("date_captured", OPTIONAL, Text),
    ("hook_type", OPTIONAL, Text),
    ("cta_type", OPTIONAL, Text),
];

const TASK: &[Field] = &[
    ("session_id", REQUIRED, Text),
    (
        "task_type",
        REQUIRED,
        OneOf(&[
            "full_agent_run", "research_only", "script_generation", "video_generation",
        ]),
    ),
    (
        "outcome",
        REQUIRED,
        OneOf(&["success", "partial_success", "failure"]),
    ),
    (
        "user_feedback",
        OPTIONAL,
        OneOf(&["positive", "neutral", "negative"]),
    ),
    ("decisions_made", OPTIONAL, Texts),
    ("tools_used", OPTIONAL, Texts),
];

const PERFORMANCE: &[Field] = &[
    ("video_id", REQUIRED, Text),
    ("platform", OPTIONAL, Text),
    (
        "metrics",
        OPTIONAL,
        Fields(&[
            ("views", OPTIONAL, Number(None)),
            ("engagement_rate", OPTIONAL, Number(None)),
            ("conversion_rate", OPTIONAL, Number(None)),
            ("ctr", OPTIONAL, Number(None)),
        ]),
    ),
    ("campaign_context", OPTIONAL, Text),
    ("what_worked", OPTIONAL, Text),
    ("what_didnt_work", OPTIONAL, Text),
];

impl MemoryType {
    /// Returns the fields of the type's schema.
    pub const fn fields(self) -> &'static [Field] {
        match self {
            Self::BrandMemory => BRAND,
            Self::UserPreferences => PREFERENCES,
            Self::CompetitiveMemory => COMPETITIVE,
            Self::TaskMemory => TASK,
            Self::PerformanceMemory => PERFORMANCE,
        }
    }

    /// Returns every violation of the schema in the metadata.
    pub fn check(self, metadata: &RawValue) -> Vec<Misfit> {
        let mut misfits = Vec::new();
        let value = serde_json::from_str(metadata.get()).unwrap_or_default();
        check_value("metadata", Fields(self.fields()), &value, &mut misfits);
        misfits
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("a text"),
            Self::Texts => f.write_str("a list of texts"),
            Self::Number(Some(most)) => write!(f, "a number from 0 to {most}"),
            Self::Number(None) => f.write_str("a number, 0 or more"),
            Self::OneOf(names) => write!(f, "one of `{}`", names.join("`, `")),
            Self::Fields(fields) => {
                let names: Vec<&str> = fields.iter().map(|(name, ..)| *name).collect();
                write!(f, "an object, with the fields {}", names.join(", "))
            }
        }
    }
}

/// One violation of a metadata schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// Path of the field: `metadata.metrics.views`.
    pub field: String,
    /// The value found, as JSON; `None` if the field is missing.
    pub value: Option<String>,
    /// Description of the allowed values.
    pub allowed: String,
}

impl Misfit {
    /// Returns `true` for a field that is not given.
    pub const fn is_missing(&self) -> bool {
        self.value.is_none()
    }
}

/// Number of characters of a value shown in a message.
const SHOWN: usize = 60;

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (field, allowed) = (&self.field, &self.allowed);
        match &self.value {
            Some(value) => {
                let cut = value.char_indices().nth(SHOWN);
                let (value, rest) = cut.map_or((value.as_str(), ""), |(at, _)| (&value[..at], "…"));
                write!(f, "`{field}` is `{value}{rest}`, and must be {allowed}")
            }
            None => write!(f, "`{field}` is missing, and must be {allowed}"),
        }
    }
}

fn check_value(path: &str, shape: Shape, value: &Value, misfits: &mut Vec<Misfit>) {
    let fits = match shape {
        Text => value.is_string(),
        Texts => value
            .as_array()
            .is_some_and(|all| all.iter().all(Value::is_string)),
        Number(most) => value
            .as_f64()
            .is_some_and(|n| n >= 0.0 && most.is_none_or(|most| n <= most)),
        OneOf(names) => value.as_str().is_some_and(|text| names.contains(&text)),
        Fields(fields) => {
            let given = fields.iter().filter(|_| value.is_object());
            given.for_each(|field| check_field(path, *field, value, misfits));
            value.is_object()
        }
    };
    if !fits {
        misfits.push(Misfit {
            field: path.to_owned(),
            value: Some(value.to_string()),
            allowed: shape.to_string(),
        });
    }
}

fn check_field(above: &str, field: Field, object: &Value, misfits: &mut Vec<Misfit>) {
    let (name, is_required, shape) = field;
    let path = format!("{above}.{name}");
    match object.get(name) {
        // Programs write `null` for a value that they do not have.
        Some(Value::Null) if !is_required => {}
        Some(value) => check_value(&path, shape, value, misfits),
        None if is_required => misfits.push(Misfit {
            field: path,
            value: None,
            allowed: shape.to_string(),
        }),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_read_as_it_is_written() {
        let check = |text: Option<&str>, expected: Option<&str>| {
            let found = match Expiry::of(text) {
                Expiry::Never => Some("never".to_owned()),
                Expiry::At(time) => Some(time.to_rfc3339()),
                Expiry::Unreadable => None,
            };
            assert_eq!(found.as_deref(), expected, "{text:?}");
        };
        check(None, Some("never"));
        check(Some(" "), Some("never"));
        let noon = Some("2026-01-31T12:00:00+00:00");
        check(Some("2026-01-31T12:00:00Z"), noon);
        check(Some("2026-01-31T13:00:00.0+01:00"), noon);
        check(Some("2026-01-31 12:00:00+00"), noon);
        check(Some("2026-01-31T12:00:00.000000"), noon);
        check(Some("2026-01-31 12:00:00"), noon);
        check(Some("2026-01-31"), Some("2026-01-31T00:00:00+00:00"));
        for bad in ["soon", "2026-13-01", "90", "2026-01-31T25:00:00Z"] {
            check(Some(bad), None);
        }
    }

    #[test]
    fn an_end_is_asked_for_in_several_ways_and_lies_ahead() {
        let now = DateTime::parse_from_rfc3339("2026-01-31T12:00:00Z").unwrap();
        let check = |given: &str, expected: Option<&str>| {
            let found = ending(given, now.to_utc()).ok();
            let found = found.map(|end| end.map_or("never".to_owned(), |end| end.to_rfc3339()));
            assert_eq!(found.as_deref(), expected, "{given}");
        };
        check("never", Some("never"));
        check("36h", Some("2026-02-02T00:00:00+00:00"));
        check("30d", Some("2026-03-02T12:00:00+00:00"));
        check("2w", Some("2026-02-14T12:00:00+00:00"));
        check("1y", Some("2027-01-31T12:00:00+00:00"));
        check("2026-02-01", Some("2026-02-01T00:00:00+00:00"));
        check(
            "2026-01-31T14:00:00+01:00",
            Some("2026-01-31T13:00:00+00:00"),
        );
        for bad in [
            "", "0d", "-1d", "1.5d", "d", "30", "30m", "2026-01-31", "2026-01-31T12:00:00Z",
            "soon", "99999999999999999999d", "9999999h d", "9999999y",
        ] {
            check(bad, None);
        }
    }

    #[test]
    fn the_end_itself_is_over_and_so_is_what_nobody_can_read() {
        let at = |text: &str| DateTime::parse_from_rfc3339(text).unwrap().to_utc();
        let check = |text: &str, now: Option<&str>, expected: bool| {
            let over = Expiry::of(Some(text)).is_over(now.map(at));
            assert_eq!(over, expected, "{text} {now:?}");
        };
        check("2026-01-31", Some("2026-01-30T23:59:59.999Z"), false);
        check("2026-01-31", Some("2026-01-31T00:00:00Z"), true);
        check("2026-01-31", None, true);
        check("soon", Some("2000-01-01T00:00:00Z"), true);
        check("", None, false);
    }
}

#[cfg(test)]
mod tests_of_misfit {
    use super::*;

    fn misfits(of: MemoryType, json: &str) -> Vec<String> {
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        of.check(&raw).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn invalid_value_is_named_with_the_allowed_ones() {
        use MemoryType as T;
        let check = |of, json: &str, expected: &[&str]| {
            assert_eq!(misfits(of, json), expected, "{json}");
        };
        check(T::BrandMemory, "{}", &[]);
        check(
            T::BrandMemory,
            r#"{"tone": ["a"], "x": [1], "industry": null}"#,
            &[],
        );
        check(
            T::BrandMemory,
            r#"{"tone": "calm", "source": "user-input", "keywords": ["a", 1]}"#,
            &[
                "`metadata.tone` is `\"calm\"`, and must be a list of texts",
                "`metadata.keywords` is `[\"a\",1]`, and must be a list of texts",
                "`metadata.source` is `\"user-input\"`, and must be one of `user_input`, `agent_inferred`, \
                 `uploaded_doc`",
            ],
        );
        check(
            T::BrandMemory,
            "[]",
            &[
                "`metadata` is `[]`, and must be an object, with the fields brand_name, \
               industry, target_audience, tone, keywords, competitors, source",
            ],
        );
        check(
            T::UserPreferences,
            r#"{"preference_type": "tone", "confidence_score": 1.01, "last_updated": 7}"#,
            &[
                "`metadata.confidence_score` is `1.01`, and must be a number from 0 to 1",
                "`metadata.last_updated` is `7`, and must be a text",
            ],
        );
        for number in ["-0.1", "\"1\"", "null", "[1]"] {
            let json = format!(
                r#"{{"preference_type": "tone", "confidence_score": {number}, "last_updated": ""}}"#
            );
            assert_eq!(misfits(T::UserPreferences, &json).len(), 1, "{number}");
        }
        check(
            T::CompetitiveMemory,
            r#"{"platform": "tikok", "performance_metrics": {"view_count": -1, "other": "x"}}"#,
            &[
                "`metadata.platform` is `\"tikok\"`, and must be one of `meta`, `tiktok`, `youtube`",
                "`metadata.performance_metrics.view_count` is `-1`, and must be a number, 0 or more",
            ],
        );
        check(
            T::TaskMemory,
            r#"{"sesion_id": "s", "outcome": "won"}"#,
            &[
                "`metadata.session_id` is missing, and must be a text",
                "`metadata.task_type` is missing, and must be one of `full_agent_run`, `research_only`, \
                 `script_generation`, `video_generation`",
                "`metadata.outcome` is `\"won\"`, and must be one of `success`, `partial_success`, `failure`",
            ],
        );
        check(
            T::PerformanceMemory,
            r#"{"video_id": "v", "metrics": 5}"#,
            &[
                "`metadata.metrics` is `5`, and must be an object, with the fields \
                 views, engagement_rate, conversion_rate, ctr",
            ],
        );
    }

    #[test]
    fn a_long_value_is_not_repeated_as_a_whole() {
        let json = format!(r#"{{"video_id": [{:?}]}}"#, "ö".repeat(500));
        let text = misfits(MemoryType::PerformanceMemory, &json).remove(0);
        assert!(text.len() < 300 && text.contains('…'), "{text}");
    }

    #[test]
    fn names_are_those_of_the_files() {
        for of in MemoryType::ALL {
            assert_eq!(serde_json::to_value(of).unwrap(), of.name());
        }
    }
}
