//! Page for a browser: one file, no script, no requests.
//!
//! Everything from the store is escaped, and the page forbids scripts and requests, so that stored
//! text cannot run. It is well-formed, follows the system's dark mode, and has one column on a
//! phone. A chart is a table of numbers whose cells carry a bar, so that nothing is said by a picture
//! alone.

use chrono::{DateTime, Utc};

use crate::cli::output::text::clean;
use crate::cli::review::stats::{basis, ms, number, percent, usd};
use crate::upkeep::{Part, Period, Piece, StatsReport, Used};

const STYLE: &str = include_str!("style.css");

/// Heading of a column over time, its format, and its value in a period.
type Column = (&'static str, fn(f64) -> String, fn(&Piece) -> Option<f64>);

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
const OVER_TIME: [Column; 8] = [
    ("Right", number, |p| Some(p.right as f64)),
    ("Wrong", number, |p| Some(p.wrong as f64)),
    ("Hints shown", number, |p| Some(p.hints_shown as f64)),
    ("Helped", number, |p| Some(p.hints_helped as f64)),
    ("Rules", number, |p| Some(p.rules as f64)),
    ("Lessons", number, |p| Some(p.lessons as f64)),
    ("Cost", usd, |p| p.cost_usd),
    ("Latency", ms, |p| p.latency_ms),
];

/// Returns the whole page.
pub(crate) fn page(report: &StatsReport, now: DateTime<Utc>) -> String {
    let days = report.days.as_ref();
    let days = days.map_or("No data yet".to_owned(), |[first, last]| {
        format!("{first} to {last}, UTC")
    });
    let body = if report.is_empty() {
        "<p class=\"empty\">No data yet. Run a skill with <code>memctl run</code>, or learn from \
         sessions with <code>memctl learn</code>; then create this page again.</p>"
            .to_owned()
    } else {
        [
            cards(report),
            over_time(report),
            evidence("Rules", "Skill", &report.rules),
            evidence("Lessons", "Used", &report.lessons),
        ]
        .concat()
    };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\
         <meta name=\"color-scheme\" content=\"light dark\"/>\
         <title>memctl: benefit of memory</title><style>{STYLE}</style></head><body>\
         <header><h1>Benefit of memory</h1><p>{} · created {}</p></header><main>{body}{MEANINGS}</main></body></html>\n",
        escape(&days),
        now.format("%Y-%m-%d %H:%M UTC")
    )
}

const MEANINGS: &str = "<details class=\"meanings\"><summary>Meaning of the figures</summary><dl>\
    <dt>Right</dt><dd>A run that a person accepted and nobody corrected, among those that were accepted, rejected or \
    corrected. More right runs with rules do not prove that the rules are the cause: skills and inputs differ.</dd>\
    <dt>Helped</dt><dd>A hint was shown at a failing call, and the call then recovered in the way that the hint named. \
    With k hints at once this is precision@k.</dd>\
    <dt>95 %</dt><dd>The range that contains the true value in 95 of 100 cases (Wilson).</dd>\
    <dt>Confidence</dt><dd>(helped + 2) / (helped + harmed + 4): 0.5 without any outcome.</dd></dl></details>";

/// Figures that have data, each with a note.
fn cards(report: &StatsReport) -> String {
    let (runs, hints, learnt) = (&report.executions, &report.hints, &report.learning);
    let share = |of: &Part| of.share.map(percent).zip(basis(of));
    let tokens = runs.tokens_with_rules.zip(runs.tokens_without_rules);
    let tokens =
        tokens.map(|(with, without)| (number(with), format!("{} without rules", number(without))));
    let total = format!(
        "{} rules, {} lessons in total",
        learnt.reflexions, learnt.procedures
    );
    let cost_of = match runs.cost_unknown {
        0 => format!("of {} runs", runs.total),
        unknown => format!("of {} runs, {unknown} of unknown cost", runs.total),
    };
    let latency = runs.latency_ms;
    let latency = latency.map(|l| (ms(l.p50), format!("median; {} at 95 %", ms(l.p95))));
    let cards = [
        ("Right with rules", share(&runs.right_with_rules)),
        ("Right without rules", share(&runs.right_without_rules)),
        ("Hints that helped", share(&hints.precision)),
        (
            "Learned per week",
            learnt.a_week.map(|mean| (number(mean), total)),
        ),
        ("Used again", share(&learnt.reused)),
        ("Tokens per run with rules", tokens),
        ("Cost", runs.cost_usd.map(|cost| (usd(cost), cost_of))),
        ("Latency", latency),
    ];
    let card = |(name, value): (&str, Option<(String, String)>)| {
        let (value, note) = value?;
        // A sign on its own line is confusing.
        let note = escape(&note).replace(" %", "\u{a0}%");
        let value = escape(&value);
        Some(format!(
            "<div class=\"card\"><dt>{name}</dt><dd class=\"value\">{value}</dd><dd class=\"note\">{note}</dd></div>"
        ))
    };
    let cards: String = cards.into_iter().filter_map(card).collect();
    format!("<dl class=\"cards\">{cards}</dl>")
}

/// Numbers of each period that has any; columns without a number are left out.
fn over_time(report: &StatsReport) -> String {
    let each = match report.period {
        Some(Period::Day) => "by day",
        Some(Period::Week) => "by week",
        _ => "by month",
    };
    let positive = |value: Option<f64>| value.filter(|value| *value > 0.0);
    let pieces = &report.over_time;
    let columns: Vec<(&Column, f64)> = OVER_TIME
        .iter()
        .map(|column| {
            (
                column,
                pieces.iter().filter_map(column.2).fold(0.0, f64::max),
            )
        })
        .filter(|(_, most)| *most > 0.0)
        .collect();
    let heads = columns
        .iter()
        .map(|((name, ..), _)| format!("<th scope=\"col\">{name}</th>"));
    let cell =
        |piece: &Piece, ((_, unit, value), most): &(&Column, f64)| match positive(value(piece)) {
            Some(value) => format!("<td>{}{}</td>", unit(value), bar(&[("d", value)], *most)),
            None => "<td>–</td>".to_owned(),
        };
    let rows = pieces
        .iter()
        .filter(|piece| {
            columns
                .iter()
                .any(|(column, _)| positive(column.2(piece)).is_some())
        })
        .map(|piece| {
            let cells: String = columns.iter().map(|column| cell(piece, column)).collect();
            format!(
                "<tr><th scope=\"row\">{}</th>{cells}</tr>",
                escape(&piece.from)
            )
        });
    let heads = format!("<th scope=\"col\">From</th>{}", heads.collect::<String>());
    section(
        &format!("Over time, {each}"),
        &heads,
        &rows.collect::<String>(),
    )
}

/// Rules or lessons that were used, and what came of it.
#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
fn evidence(title: &str, about: &str, all: &[Used]) -> String {
    let most = all.iter().map(|used| {
        used.evidence
            .shown
            .max(used.evidence.helped + used.evidence.harmed)
    });
    let most = most.max().unwrap_or(1) as f64;
    let row = |used: &Used| {
        let e = used.evidence;
        let rest = e.shown.saturating_sub(e.helped + e.harmed);
        let parts = [
            ("a", e.helped as f64),
            ("b", e.harmed as f64),
            ("c", rest as f64),
        ];
        format!(
            "<tr><th scope=\"row\">{}</th><td>{}{}</td><td>{}</td><td>{}</td><td>{:.2}</td><td>{}</td><td class=\"prose\">{}</td></tr>",
            escape(&used.id),
            e.shown,
            bar(&parts, most),
            e.helped,
            e.harmed,
            used.confidence,
            escape(&used.about),
            escape(&shortened(&used.text)),
        )
    };
    let heads = [
        "Id", "Shown", "Helped", "Harmed", "Confidence", about, "Text",
    ];
    let heads: String = heads
        .map(|head| format!("<th scope=\"col\">{head}</th>"))
        .concat();
    section(title, &heads, &all.iter().map(row).collect::<String>())
}

/// A table under its heading; nothing without rows.
fn section(title: &str, heads: &str, rows: &str) -> String {
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<section><h2>{title}</h2><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\">\
         <table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div></section>"
    )
}

/// A bar of parts, each with the class of its colour, as shares of the longest.
fn bar(parts: &[(&str, f64)], most: f64) -> String {
    let part = |(class, value): &(&str, f64)| {
        format!(
            "<i class=\"{class}\" style=\"width:{:.1}%\"></i>",
            value / most.max(1e-9) * 100.0
        )
    };
    format!(
        "<span class=\"bar\" aria-hidden=\"true\">{}</span>",
        parts.iter().map(part).collect::<String>()
    )
}

/// Returns the beginning of a long text; the record has all of it.
fn shortened(text: &str) -> String {
    let text = memctl_redact::redact(text).text;
    match text.char_indices().nth(280) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.into_owned(),
    }
}

/// Escapes text for HTML, redacted and without hidden characters.
fn escape(text: &str) -> String {
    let text = clean(&memctl_redact::redact(text).text);
    let escaped = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    escaped.replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_text_is_text() {
        assert_eq!(
            escape("<script>a('&\")</script>\u{1b}[31m\u{202e}"),
            "&lt;script&gt;a(&#39;&amp;&quot;)&lt;/script&gt;"
        );
    }
}
