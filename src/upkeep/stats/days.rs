//! Counts by day, and sums by day, week or month without gaps.

use std::collections::BTreeMap;

use chrono::NaiveDate;

use super::time::{Period, day};
use super::{Piece, quotient};
use crate::store::workspace::dollars;

/// Maximum number of periods in a report: ten years of months.
const NEWEST: usize = 120;

/// Counts by day.
#[derive(Debug, Default)]
pub(crate) struct Days {
    pieces: BTreeMap<NaiveDate, Piece>,
    latencies: BTreeMap<NaiveDate, Vec<f64>>,
    /// Counts without a valid date.
    undated: Piece,
    undated_latencies: Vec<f64>,
}

impl Days {
    pub(crate) fn at(&mut self, time: &str) -> &mut Piece {
        match day(time) {
            Some(day) => self.pieces.entry(day).or_default(),
            None => &mut self.undated,
        }
    }

    pub(crate) fn latencies(&mut self, time: &str) -> &mut Vec<f64> {
        match day(time) {
            Some(day) => self.latencies.entry(day).or_default(),
            None => &mut self.undated_latencies,
        }
    }

    pub(crate) fn first_and_last(&self) -> Option<[NaiveDate; 2]> {
        let (first, last) = (self.pieces.keys().next()?, self.pieces.keys().next_back()?);
        Some([*first, *last])
    }

    /// Average per week; `None` for less than a week.
    pub(crate) fn a_week(&self, count: u64) -> Option<f64> {
        let [first, last] = self.first_and_last()?;
        let days = u64::try_from((last - first).num_days() + 1).ok()?;
        quotient(count * 7, days).filter(|_| days >= 7)
    }

    pub(crate) fn pieces(mut self) -> (Option<Period>, Vec<Piece>) {
        let Some([first, last]) = self.first_and_last() else {
            return (None, Vec::new());
        };
        let period = Period::of(first, last);
        let mut pieces = Vec::new();
        let mut from = Some(period.start(first));
        while let Some(start) = from.filter(|start| *start <= last) {
            from = period.next(start);
            let mut sum = Piece {
                from: start.to_string(),
                ..Piece::default()
            };
            let mut latencies = Vec::new();
            // Days before the end of this period; those of earlier periods are already removed.
            let end = from.unwrap_or(NaiveDate::MAX);
            while let Some(entry) = self.pieces.first_entry().filter(|entry| *entry.key() < end) {
                add(&mut sum, &entry.remove());
            }
            while let Some(entry) = self.latencies.first_entry().filter(|e| *e.key() < end) {
                latencies.extend(entry.remove());
            }
            sum.cost_usd = sum.cost_usd.map(dollars);
            sum.latency_ms = percentile(&mut latencies, 50);
            pieces.push(sum);
        }
        pieces.drain(..pieces.len().saturating_sub(NEWEST));
        (Some(period), pieces)
    }
}

/// Nearest-rank percentile; `None` without values.
pub(crate) fn percentile(values: &mut [f64], percent: usize) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() * percent).div_ceil(100).max(1);
    values.get(rank - 1).copied()
}

fn add(sum: &mut Piece, day: &Piece) {
    sum.executions += day.executions;
    sum.right += day.right;
    sum.wrong += day.wrong;
    if let Some(cost) = day.cost_usd {
        *sum.cost_usd.get_or_insert_default() += cost;
    }
    sum.rules += day.rules;
    sum.lessons += day.lessons;
    sum.hints_shown += day.hints_shown;
    sum.hints_helped += day.hints_helped;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_told_without_gaps() {
        let mut days = Days::default();
        days.at("2026-01-01T10:00:00Z").executions += 1;
        days.at("2026-01-03T10:00:00Z").cost_usd = Some(0.5);
        days.latencies("2026-01-03T10:00:00Z")
            .extend([3.0, 1.0, 2.0]);
        days.at("someday").executions += 1;
        assert_eq!(days.a_week(4), None);
        let (period, pieces) = days.pieces();
        assert_eq!(period, Some(Period::Day));
        let told: Vec<_> = pieces
            .iter()
            .map(|p| (p.from.as_str(), p.executions, p.cost_usd, p.latency_ms))
            .collect();
        assert_eq!(
            told,
            [
                ("2026-01-01", 1, None, None),
                ("2026-01-02", 0, None, None),
                ("2026-01-03", 0, Some(0.5), Some(2.0))
            ]
        );
    }

    #[test]
    fn only_the_newest_pieces_are_told() {
        let mut days = Days::default();
        for year in ["0001", "2001", "2099", "9999"] {
            days.at(&format!("{year}-12-31T00:00:00Z")).executions += 1;
        }
        let (period, pieces) = days.pieces();
        assert_eq!(period, Some(Period::Month));
        assert_eq!((pieces.len(), &*pieces[119].from), (NEWEST, "2099-12-01"));
    }
}
