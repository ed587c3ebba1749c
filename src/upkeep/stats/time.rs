//! Periods of equal kind: days for a month, weeks for a year, else months.

use chrono::{DateTime, Datelike as _, Days, Months, NaiveDate, NaiveDateTime};

/// Kind of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Period {
    /// Day from midnight, UTC.
    Day,
    /// Week from Monday.
    Week,
    /// Month from the first day.
    Month,
}

impl Period {
    /// Selects the period for a time span: days up to a month, weeks up to a year, else months.
    pub(crate) fn of(first: NaiveDate, last: NaiveDate) -> Self {
        match (last - first).num_days() {
            ..=31 => Self::Day,
            32..=370 => Self::Week,
            _ => Self::Month,
        }
    }

    /// Returns the first day of the period that contains `day`.
    pub(crate) fn start(self, day: NaiveDate) -> NaiveDate {
        let back = match self {
            Self::Day => 0,
            Self::Week => u64::from(day.weekday().num_days_from_monday()),
            Self::Month => u64::from(day.day0()),
        };
        day.checked_sub_days(Days::new(back)).unwrap_or(day)
    }

    /// Returns the first day of the next period.
    pub(crate) fn next(self, start: NaiveDate) -> Option<NaiveDate> {
        match self {
            Self::Day => start.succ_opt(),
            Self::Week => start.checked_add_days(Days::new(7)),
            Self::Month => start.checked_add_months(Months::new(1)),
        }
    }
}

/// Parses the day of a time in a record. Python writes some times without a zone, and means UTC.
pub(crate) fn day(text: &str) -> Option<NaiveDate> {
    let with_zone = DateTime::parse_from_rfc3339(text).map(|time| time.to_utc().date_naive());
    let plain =
        || NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f").map(|time| time.date());
    // A year far away comes from a broken clock, and would stretch every chart.
    let day = with_zone.or_else(|_| plain()).ok()?;
    (2000..2200).contains(&day.year()).then_some(day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_weeks_and_months() {
        let date = |text: &str| text.parse::<NaiveDate>().unwrap();
        let check = |period: Period, day: &str, start: &str, next: &str| {
            assert_eq!(period.start(date(day)), date(start));
            assert_eq!(period.next(date(start)), Some(date(next)));
        };
        check(Period::Day, "2026-02-20", "2026-02-20", "2026-02-21");
        check(Period::Week, "2026-03-01", "2026-02-23", "2026-03-02");
        check(Period::Month, "2025-12-31", "2025-12-01", "2026-01-01");
        assert_eq!(
            Period::of(date("2026-01-01"), date("2026-02-01")),
            Period::Day
        );
        assert_eq!(
            Period::of(date("2026-01-01"), date("2026-06-01")),
            Period::Week
        );
        assert_eq!(
            Period::of(date("2020-01-01"), date("2026-06-01")),
            Period::Month
        );
    }

    #[test]
    fn times_with_and_without_a_zone() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(
                day(text).map(|day| day.to_string()).as_deref(),
                expected,
                "{text}"
            );
        };
        check("2026-02-20T23:30:00-05:00", Some("2026-02-21"));
        check("2026-02-20T12:43:41.681444", Some("2026-02-20"));
        check("2026-02-20T12:43:41", Some("2026-02-20"));
        check("20 February", None);
        check("0001-01-01T00:00:00Z", None);
    }
}
