//! Charts over time, each with a table of its numbers.

use super::chart::{self, Frame, Series};
use super::escape::escape;
use super::words::{NONE, ms, number, usd};
use crate::upkeep::{Period, Piece, StatsReport};

/// Name, CSS class of the colour, and value in a time bucket.
type Column = (&'static str, &'static str, fn(&Piece) -> Option<f64>);

/// Chart over time.
struct Figure {
    id: &'static str,
    title: &'static str,
    unit: fn(f64) -> String,
    columns: &'static [Column],
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
const FIGURES: [Figure; 5] = [
    Figure {
        id: "runs",
        title: "Runs",
        unit: number,
        columns: &[
            ("right", "a", |p| Some(p.right as f64)),
            ("wrong", "b", |p| Some(p.wrong as f64)),
            ("not judged", "c", |p| {
                Some(p.executions.saturating_sub(p.right + p.wrong) as f64)
            }),
        ],
    },
    Figure {
        id: "hints",
        title: "Hints",
        unit: number,
        columns: &[
            ("helped", "a", |p| Some(p.hints_helped as f64)),
            ("no effect seen", "b", |p| {
                Some(p.hints_shown.saturating_sub(p.hints_helped) as f64)
            }),
        ],
    },
    Figure {
        id: "learned",
        title: "Learned",
        unit: number,
        columns: &[
            ("rules", "a", |p| Some(p.rules as f64)),
            ("lessons", "d", |p| Some(p.lessons as f64)),
        ],
    },
    Figure {
        id: "cost",
        title: "Cost",
        unit: usd,
        columns: &[("US dollars", "d", |p| p.cost_usd)],
    },
    Figure {
        id: "latency",
        title: LATENCY,
        unit: ms,
        columns: &[("median", "d", |p| p.latency_ms)],
    },
];

/// Title of the only chart whose values cannot be summed.
const LATENCY: &str = "Latency";

pub(super) fn over_time(report: &StatsReport) -> String {
    let each = match report.period {
        Some(Period::Day) => "by day",
        Some(Period::Week) => "by week",
        _ => "by month",
    };
    let figures = FIGURES.iter().map(|of| figure(&report.over_time, of));
    format!(
        "<section aria-labelledby=\"time\"><h2 id=\"time\">Over time, {each}</h2>\
         <div class=\"figures\">{}</div></section>",
        figures.collect::<String>()
    )
}

fn figure(pieces: &[Piece], of: &Figure) -> String {
    let Figure {
        id,
        title,
        unit,
        columns,
    } = *of;
    let series: Vec<Series<'_>> = columns
        .iter()
        .map(|(name, class, value)| Series {
            name,
            class,
            values: pieces.iter().map(value).collect(),
        })
        .collect();
    let is_there = |value: &Option<f64>| value.is_some_and(|value| value > 0.0);
    if !series
        .iter()
        .any(|series| series.values.iter().any(is_there))
    {
        return format!(
            "<figure><figcaption>{title}</figcaption><p class=\"empty\">{NONE}</p></figure>"
        );
    }
    let sums: Vec<String> = series
        .iter()
        .map(|s| format!("{} {}", unit(s.values.iter().flatten().sum()), s.name))
        .collect();
    let about = if title == LATENCY {
        "Median per period; the table below lists the numbers.".to_owned()
    } else {
        format!(
            "Total: {}; the table below lists the numbers.",
            sums.join(", ")
        )
    };
    let frame = Frame {
        id,
        title,
        about,
        labels: pieces.iter().map(|piece| piece.from.as_str()).collect(),
        unit,
    };
    let svg = match &series[..] {
        [one] if title == LATENCY => chart::line(&frame, one),
        all => chart::columns(&frame, all),
    };
    let legend: Vec<String> = series
        .iter()
        .map(|s| format!("<span class=\"key {}\">{}</span>", s.class, escape(s.name)))
        .collect();
    let heads: Vec<String> = series
        .iter()
        .map(|s| format!("<th scope=\"col\">{}</th>", escape(s.name)))
        .collect();
    let rows: Vec<String> = pieces
        .iter()
        .enumerate()
        // Empty time buckets are left out.
        .filter(|(at, _)| series.iter().any(|s| is_there(&s.values[*at])))
        .map(|(at, piece)| {
            let cells: Vec<String> = series
                .iter()
                .map(|s| format!("<td>{}</td>", s.values[at].map_or("–".to_owned(), unit)))
                .collect();
            let from = escape(&piece.from);
            format!("<tr><th scope=\"row\">{from}</th>{}</tr>", cells.concat())
        })
        .collect();
    format!(
        "<figure><figcaption>{title}<span class=\"legend\">{}</span></figcaption>{svg}\
         <details><summary>{title} in numbers</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title} in numbers\">\
         <table><thead><tr><th scope=\"col\">From</th>{}</tr></thead><tbody>{}</tbody></table></div></details></figure>",
        legend.concat(),
        heads.concat(),
        rows.concat()
    )
}
