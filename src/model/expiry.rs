//! When a record is no longer to be found.

use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};

/// What a record says of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// It is kept for good.
    Never,
    /// From this moment on it is not to be found.
    At(DateTime<Utc>),
    /// It has an end, and nobody can read when. Somebody wanted it gone at some time: it is hidden, and
    /// is not removed before a person has mended the time.
    Unreadable,
}

impl Expiry {
    /// What the text of `expires_at` says; `None` and an empty one are no end. Times without a zone
    /// are UTC, a date is its first moment: both are what hands and other programs write.
    pub fn of(text: Option<&str>) -> Self {
        let text = text.map(str::trim).unwrap_or_default();
        if text.is_empty() {
            return Self::Never;
        }
        moment(text).map_or(Self::Unreadable, Self::At)
    }

    /// Whether that is over. Who does not know the time takes it for over, where there is an end at
    /// all.
    pub fn is_over(self, now: Option<DateTime<Utc>>) -> bool {
        match self {
            Self::Never => false,
            Self::At(end) => now.is_none_or(|now| end <= now),
            Self::Unreadable => true,
        }
    }
}

/// A moment as files and people write it.
fn moment(text: &str) -> Option<DateTime<Utc>> {
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
