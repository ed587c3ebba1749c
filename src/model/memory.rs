//! Typed notes that users write, and the expiry of records.

use chrono::{DateTime, Datelike as _, NaiveDate, NaiveDateTime, SecondsFormat, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::model::kind::{Document, Kind, Record, Trust, one_layout};
use crate::model::metadata::MemoryType;
use crate::model::words::{self, lenient};

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
