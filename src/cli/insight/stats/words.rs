//! Number formats for people. A missing value is never shown as a number.

use crate::upkeep::Part;

/// Text for missing data.
pub(super) const NONE: &str = "no data yet";

/// Returns a number with at most one decimal, and none from 100 on.
pub(super) fn number(value: f64) -> String {
    let digits = usize::from(value.abs() < 100.0);
    let text = format!("{value:.digits$}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// Returns an amount in US dollars.
pub(super) fn usd(value: f64) -> String {
    if value == 0.0 || value >= 0.1 {
        format!("${value:.2}")
    } else {
        format!("${value:.4}")
    }
}

/// Returns a duration in milliseconds.
pub(super) fn ms(value: f64) -> String {
    if value < 1_000.0 {
        format!("{} ms", number(value))
    } else {
        format!("{} s", number(value / 1_000.0))
    }
}

/// Returns a share in whole percents.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Returns `75 % (3 of 4; 95 %: 30 to 95 %)`; `None` without data.
pub(super) fn part(part: &Part) -> Option<String> {
    Some(format!("{} ({})", percent(part.share?), basis(part)?))
}

/// Returns `3 of 4; 95 %: 30 to 95 %`; `None` without data.
pub(super) fn basis(part: &Part) -> Option<String> {
    let [low, high] = part.interval?;
    Some(format!(
        "{} of {}; 95 %: {:.0} to {}",
        part.count,
        part.of,
        low * 100.0,
        percent(high),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_long_as_they_are_sure() {
        assert_eq!([3.0, 3.12, 1568.4].map(number), ["3", "3.1", "1568"]);
        assert_eq!(
            [0.0, 0.01234, 12.3].map(usd),
            ["$0.00", "$0.0123", "$12.30"]
        );
        assert_eq!([ms(12.3), ms(1_500.0)], ["12.3 ms", "1.5 s"]);
        assert_eq!(part(&Part::default()), None);
    }
}
