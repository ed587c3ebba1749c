//! Counts by day, in UTC.

use std::collections::BTreeMap;

use chrono::{DateTime, Datelike as _, NaiveDate, NaiveDateTime};

use super::{Day, quotient};
use crate::store::workspace::dollars;

/// Maximum number of days in a report: those of a year.
const NEWEST: usize = 366;

/// Counts by day. Those without a valid date count on no day.
#[derive(Debug, Default)]
pub(crate) struct Days(BTreeMap<Option<NaiveDate>, (Day, Vec<f64>)>);

impl Days {
    pub(crate) fn at(&mut self, time: &str) -> &mut Day {
        &mut self.0.entry(day(time)).or_default().0
    }

    pub(crate) fn latencies(&mut self, time: &str) -> &mut Vec<f64> {
        &mut self.0.entry(day(time)).or_default().1
    }

    pub(crate) fn first_and_last(&self) -> Option<[NaiveDate; 2]> {
        let mut days = self.0.keys().flatten();
        let first = *days.next()?;
        Some([first, *days.next_back().unwrap_or(&first)])
    }

    /// Average per week; `None` for less than a week.
    pub(crate) fn a_week(&self, count: u64) -> Option<f64> {
        let [first, last] = self.first_and_last()?;
        let days = u64::try_from((last - first).num_days() + 1).ok()?;
        quotient(count * 7, days).filter(|_| days >= 7)
    }

    /// Returns the newest days on which something happened, oldest first.
    pub(crate) fn newest(self) -> Vec<Day> {
        let dated = self
            .0
            .into_iter()
            .filter_map(|(date, counts)| Some((date?, counts)));
        let mut days: Vec<Day> = dated
            .map(|(date, (day, mut latencies))| Day {
                day: date.to_string(),
                cost_usd: day.cost_usd.map(dollars),
                latency_ms: percentile(&mut latencies, 50),
                ..day
            })
            .collect();
        days.drain(..days.len().saturating_sub(NEWEST));
        days
    }
}

/// Nearest-rank percentile; `None` without values.
pub(crate) fn percentile(values: &mut [f64], percent: usize) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() * percent).div_ceil(100).max(1);
    values.get(rank - 1).copied()
}

/// Parses the day of a time in a record. Python writes some times without a zone, and means UTC.
fn day(text: &str) -> Option<NaiveDate> {
    let with_zone = DateTime::parse_from_rfc3339(text).map(|time| time.to_utc().date_naive());
    let plain =
        || NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f").map(|time| time.date());
    // A year far away comes from a broken clock, and would stretch every average.
    let day = with_zone.or_else(|_| plain()).ok()?;
    (2000..2200).contains(&day.year()).then_some(day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_on_which_something_happened_are_told() {
        let mut days = Days::default();
        days.at("2026-01-01T10:00:00Z").executions += 1;
        days.at("2026-01-03T10:00:00Z").cost_usd = Some(0.5);
        days.latencies("2026-01-03T10:00:00Z")
            .extend([3.0, 1.0, 2.0]);
        days.at("someday").executions += 1;
        assert_eq!(days.a_week(4), None);
        let told: Vec<_> = days
            .newest()
            .into_iter()
            .map(|one| (one.day, one.executions, one.cost_usd, one.latency_ms))
            .collect();
        assert_eq!(
            told,
            [
                ("2026-01-01".to_owned(), 1, None, None),
                ("2026-01-03".to_owned(), 0, Some(0.5), Some(2.0))
            ]
        );
    }

    #[test]
    fn rates_are_by_week() {
        let mut days = Days::default();
        days.at("2026-01-01T10:00:00Z").rules += 1;
        assert_eq!(days.a_week(1), None);
        days.at("2026-01-14T10:00:00Z").rules += 1;
        assert_eq!(days.a_week(3), Some(1.5));
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
