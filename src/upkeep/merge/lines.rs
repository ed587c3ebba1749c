//! Merges log lines: the union of both sides, sorted by time.

use std::collections::HashMap;

use chrono::{DateTime, FixedOffset};

use crate::store::text_field;

/// Returns our lines and the new ones of theirs. A base line that one side removed is dropped.
pub(crate) fn union(base: &[String], ours: &[String], theirs: &[String]) -> Vec<String> {
    let (of_base, of_ours, of_theirs) = (counted(base), counted(ours), counted(theirs));
    let count = |counts: &HashMap<&str, usize>, line: &str| counts.get(line).copied().unwrap_or(0);
    // Number of copies of a line in the union.
    let wanted = |line: &str| {
        let (b, o, t) = (
            count(&of_base, line),
            count(&of_ours, line),
            count(&of_theirs, line),
        );
        if o == b {
            t
        } else if t == b {
            o
        } else if o < b || t < b {
            o.min(t)
        } else {
            o.max(t)
        }
    };
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut coming = Vec::new();
    for line in theirs {
        let nth = seen.entry(line).or_default();
        *nth += 1;
        let extra = wanted(line).saturating_sub(count(&of_ours, line));
        if *nth + extra > count(&of_theirs, line) {
            coming.push(line);
        }
    }
    let mut coming = coming.into_iter().peekable();
    let mut out = Vec::with_capacity(ours.len());
    let mut kept: HashMap<&str, usize> = HashMap::new();
    for line in ours {
        if count(&of_base, line) == 0 {
            while let Some(other) = coming.next_if(|other| is_older(other, line)) {
                out.push(other.clone());
            }
        }
        let nth = kept.entry(line).or_default();
        *nth += 1;
        if *nth <= wanted(line) {
            out.push(line.clone());
        }
    }
    out.extend(coming.cloned());
    out
}

fn counted(lines: &[String]) -> HashMap<&str, usize> {
    let mut counts = HashMap::new();
    for line in lines {
        *counts.entry(line.as_str()).or_default() += 1;
    }
    counts
}

fn is_older(a: &str, b: &str) -> bool {
    let time = |line: &str| -> Option<DateTime<FixedOffset>> {
        let at = ["at", "created_at"]
            .into_iter()
            .find_map(|name| text_field(line.as_bytes(), name))?;
        DateTime::parse_from_rfc3339(&at).ok()
    };
    matches!((time(a), time(b)), (Some(a), Some(b)) if a < b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_sides_stand_in_the_order_of_time() {
        let line = |n: u32| format!("{{\"at\": \"2026-01-01T00:00:{n:02}Z\"}}");
        let check = |base: &[u32], ours: &[u32], theirs: &[u32], expected: &[u32]| {
            let lines = |numbers: &[u32]| numbers.iter().map(|n| line(*n)).collect::<Vec<_>>();
            let found = union(&lines(base), &lines(ours), &lines(theirs));
            assert_eq!(found, lines(expected), "{base:?} {ours:?} {theirs:?}");
        };
        check(&[1], &[1, 3, 5], &[1, 2, 4, 6], &[1, 2, 3, 4, 5, 6]);
        check(&[], &[1], &[1], &[1]);
        check(&[1, 2], &[1], &[1, 2, 3], &[1, 3]);
        check(&[1, 2], &[1, 2, 3], &[2], &[2, 3]);
        check(&[1], &[1, 1], &[1, 1, 1], &[1, 1, 1]);
        check(&[], &[], &[], &[]);
        let text = |text: &str| vec![text.to_owned()];
        assert_eq!(union(&[], &text("x"), &text("y")), ["x", "y"]);
    }
}
