//! Counts of each week: sessions with their hints and rules, verdicts, and learned records.
//!
//! A week begins on Monday and ends on Sunday, in UTC. Weeks without data are left out.

use std::collections::BTreeMap;

use chrono::{DateTime, Datelike as _, Days, NaiveDate, NaiveDateTime};
use serde::Serialize;

use super::quotient;

/// Maximum number of weeks in a report: the newest.
const SHOWN: usize = 12;

/// Counts of a week. Runs of skills count by the day of the run, whenever they were judged.
#[derive(Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Week {
    /// Monday of the week, in UTC.
    pub week: String,
    /// Sessions of agents that began in it and whose end a hook has seen.
    pub sessions: u64,
    /// Calls of these sessions.
    pub calls: u64,
    /// Failing calls of these sessions.
    pub failed: u64,
    /// Rules that these sessions were told at calls.
    pub told: u64,
    /// Rules among them that no later call of the session broke.
    pub heeded: u64,
    /// Lessons that these sessions were told.
    pub hints: u64,
    /// Lessons among them that a call followed with success.
    pub helped: u64,
    /// Judged runs of skills.
    pub judged: u64,
    /// Right runs among them.
    pub right: u64,
    /// New rules and lessons.
    pub learned: u64,
}

/// Parses the day of a time in a record. Python writes some times without a zone, and means UTC.
pub(super) fn day(text: &str) -> Option<NaiveDate> {
    let with_zone = DateTime::parse_from_rfc3339(text).map(|time| time.to_utc().date_naive());
    let plain =
        || NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f").map(|time| time.date());
    // A year far away comes from a broken clock, and would stretch every average.
    let day = with_zone.or_else(|_| plain()).ok()?;
    (2000..2200).contains(&day.year()).then_some(day)
}

/// Counts by week, and the days between which they lie.
#[derive(Debug, Default)]
pub(super) struct Weeks {
    /// First and last day on which something happened, in UTC.
    days: Option<[NaiveDate; 2]>,
    by_monday: BTreeMap<NaiveDate, Week>,
}

impl Weeks {
    /// Counts something of a day. Without a readable time it counts in no week.
    pub(super) fn count(&mut self, day: Option<NaiveDate>, count: impl FnOnce(&mut Week)) {
        let Some(day) = day else { return };
        let [first, last] = self.days.unwrap_or([day, day]);
        self.days = Some([first.min(day), last.max(day)]);
        let since_monday = Days::new(day.weekday().num_days_from_monday().into());
        let monday = day.checked_sub_days(since_monday).unwrap_or(day);
        count(self.by_monday.entry(monday).or_default());
    }

    /// First and last day with data.
    pub(super) fn days(&self) -> Option<[String; 2]> {
        self.days.map(|days| days.map(|day| day.to_string()))
    }

    /// Average per week; `None` for less than a week.
    pub(super) fn a_week(&self, count: u64) -> Option<f64> {
        let [first, last] = self.days?;
        let days = u64::try_from((last - first).num_days() + 1).ok()?;
        quotient(count * 7, days).filter(|_| days >= 7)
    }

    /// The newest weeks with data, oldest first.
    pub(super) fn newest(self) -> Vec<Week> {
        let older = self.by_monday.len().saturating_sub(SHOWN);
        let newest = self.by_monday.into_iter().skip(older);
        let named = newest.map(|(monday, week)| Week {
            week: monday.to_string(),
            ..week
        });
        named.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_with_and_without_a_zone() {
        let check = |text: &str, expected: Option<&str>| {
            let found = day(text).map(|day| day.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        };
        check("2026-02-20T23:30:00-05:00", Some("2026-02-21"));
        check("2026-02-20T12:43:41.681444", Some("2026-02-20"));
        check("2026-02-20T12:43:41", Some("2026-02-20"));
        check("20 February", None);
        check("0001-01-01T00:00:00Z", None);
    }

    #[test]
    fn rates_are_by_week() {
        let mut weeks = Weeks::default();
        weeks.count(day("2026-01-14T10:00:00Z"), |_| {});
        weeks.count(day("someday"), |_| {});
        assert_eq!(weeks.a_week(1), None);
        weeks.count(day("2026-01-01T10:00:00Z"), |_| {});
        assert_eq!(weeks.a_week(3), Some(1.5));
    }

    #[test]
    fn a_week_is_from_monday_to_sunday_and_old_weeks_are_left_out() {
        let mut weeks = Weeks::default();
        for (day_of_2026, count) in [("01-05", 1), ("01-11", 2), ("01-12", 4)] {
            let at = day(&format!("2026-{day_of_2026}T23:00:00Z"));
            weeks.count(at, |week| week.learned += count);
        }
        let learned = |weeks: Weeks| -> Vec<(String, u64)> {
            let all = weeks.newest().into_iter();
            all.map(|week| (week.week, week.learned)).collect()
        };
        let two = [("2026-01-05".to_owned(), 3), ("2026-01-12".to_owned(), 4)];
        assert_eq!(learned(weeks), two);
        let mut weeks = Weeks::default();
        let first = NaiveDate::from_ymd_opt(2026, 1, 5).unwrap();
        for n in 0..20 {
            weeks.count(first.checked_add_days(Days::new(7 * n)), |week| {
                week.learned = n;
            });
        }
        let newest = learned(weeks);
        assert_eq!((newest.len(), newest[0].1, newest[11].1), (SHOWN, 8, 19));
    }
}
