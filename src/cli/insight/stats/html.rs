//! Page for a browser: one file, no script, no requests.
//!
//! Everything from the store is escaped, and the page forbids scripts and requests, so that stored
//! text cannot run. It is well-formed, follows the system's dark mode, and has one column on a
//! phone.

use chrono::{DateTime, Utc};

use super::chart;
use super::escape::escape;
use super::figures::over_time;
use super::words::{NONE, basis, ms, number, percent, usd};
use crate::upkeep::{Part, StatsReport, Used};

const STYLE: &str = include_str!("style.css");

/// Returns the whole page.
pub(super) fn page(report: &StatsReport, now: DateTime<Utc>) -> String {
    let when = report
        .days
        .as_ref()
        .map_or(NONE.to_owned(), |[first, last]| {
            format!("{first} to {last}, UTC")
        });
    let mut body = format!(
        "<header><h1>Benefit of memory</h1><p>{} · created {}</p></header><main>",
        escape(&when),
        now.format("%Y-%m-%d %H:%M UTC")
    );
    if report.is_empty() {
        body.push_str(
            "<p class=\"empty\">No data yet. Run a skill with <code>memctl run</code>, or learn from \
             sessions with <code>memctl learn</code>; then create this page again.</p>",
        );
    } else {
        body.push_str(&cards(report));
        body.push_str(&over_time(report));
        body.push_str(&evidence("rules", "Rules", "Skill", &report.rules));
        body.push_str(&evidence("lessons", "Lessons", "Used", &report.lessons));
    }
    body.push_str(MEANINGS);
    body.push_str("</main>");
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\
         <meta name=\"color-scheme\" content=\"light dark\"/>\
         <title>memctl: benefit of memory</title><style>{STYLE}</style></head><body>{body}</body></html>\n"
    )
}

const MEANINGS: &str = "<details class=\"meanings\"><summary>Meaning of the figures</summary><dl>\
    <dt>Right</dt><dd>A run that a person accepted and nobody corrected, among those that were accepted, rejected or \
    corrected. More right runs with rules do not prove that the rules are the cause: skills and inputs differ.</dd>\
    <dt>Helped</dt><dd>A hint was shown at a failing call, and the call then recovered in the way that the hint named. \
    With k hints at once this is precision@k.</dd>\
    <dt>95 %</dt><dd>The range that contains the true value in 95 of 100 cases: Wilson's interval of a share.</dd>\
    <dt>Confidence</dt><dd>(helped + 2) / (helped + harmed + 4): 0.5 without any outcome.</dd></dl></details>";

fn card(name: &str, value: Option<String>, note: &str) -> String {
    let (class, value) = match value {
        Some(value) => ("value", value),
        None => ("value none", NONE.to_owned()),
    };
    format!(
        "<div class=\"card\"><dt>{}</dt><dd class=\"{class}\">{}</dd><dd class=\"note\">{}</dd></div>",
        escape(name),
        escape(&value),
        // A sign on its own line is confusing.
        escape(note).replace(" %", "\u{a0}%")
    )
}

fn cards(report: &StatsReport) -> String {
    let (runs, hints, learnt) = (&report.executions, &report.hints, &report.learning);
    let share = |of: &Part| (of.share.map(percent), basis(of).unwrap_or_default());
    let (right, right_note) = share(&runs.right_with_rules);
    let (plain, plain_note) = share(&runs.right_without_rules);
    let (helped, helped_note) = share(&hints.precision);
    let (reused, reused_note) = share(&learnt.reused);
    let tokens = runs.tokens_with_rules.zip(runs.tokens_without_rules);
    let tokens_note = tokens.map_or(String::new(), |(_, without)| {
        format!("{} without rules", number(without))
    });
    let cost_note = match runs.cost_unknown {
        0 => format!("of {} runs", runs.total),
        unknown => format!("of {} runs, {unknown} of unknown cost", runs.total),
    };
    let latency_note = runs
        .latency_ms
        .map_or(String::new(), |l| format!("median; {} at 95 %", ms(l.p95)));
    let all = [
        card("Right with rules", right, &right_note),
        card("Right without rules", plain, &plain_note),
        card("Hints that helped", helped, &helped_note),
        card(
            "Learned per week",
            learnt.a_week.map(number),
            &format!(
                "{} rules, {} lessons in total",
                learnt.reflexions, learnt.procedures
            ),
        ),
        card("Used again", reused, &reused_note),
        card(
            "Tokens per run with rules",
            tokens.map(|(with, _)| number(with)),
            &tokens_note,
        ),
        card("Cost", runs.cost_usd.map(usd), &cost_note),
        card("Latency", runs.latency_ms.map(|l| ms(l.p50)), &latency_note),
    ];
    format!("<dl class=\"cards\">{}</dl>", all.concat())
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
fn evidence(id: &str, title: &str, about: &str, all: &[Used]) -> String {
    if all.is_empty() {
        return format!(
            "<section aria-labelledby=\"{id}\"><h2 id=\"{id}\">{title}</h2><p class=\"empty\">{NONE}: none was used</p></section>"
        );
    }
    let most = all.iter().map(|used| {
        used.evidence
            .shown
            .max(used.evidence.helped + used.evidence.harmed)
    });
    let most = most.max().unwrap_or(1) as f64;
    let rows: Vec<String> = all
        .iter()
        .map(|used| {
            let e = used.evidence;
            let rest = e.shown.saturating_sub(e.helped + e.harmed);
            let parts = [("a", e.helped as f64), ("b", e.harmed as f64), ("c", rest as f64)];
            format!(
                "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.2}</td><td>{}</td><td class=\"prose\">{}</td></tr>",
                escape(&used.id),
                chart::bar(&parts, most),
                e.shown,
                e.helped,
                e.harmed,
                used.confidence,
                escape(&used.about),
                escape(&shortened(&used.text)),
            )
        })
        .collect();
    format!(
        "<section aria-labelledby=\"{id}\"><h2 id=\"{id}\">{title}</h2><p><span class=\"legend\">\
         <span class=\"key a\">helped</span><span class=\"key b\">harmed</span><span class=\"key c\">shown, outcome unknown</span></span></p>\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-labelledby=\"{id}\"><table><thead><tr><th scope=\"col\">Id</th>\
         <th scope=\"col\" class=\"picture\">Evidence</th><th scope=\"col\">Shown</th><th scope=\"col\">Helped</th><th scope=\"col\">Harmed</th>\
         <th scope=\"col\">Confidence</th><th scope=\"col\">{about}</th><th scope=\"col\">Text</th></tr></thead>\
         <tbody>{}</tbody></table></div></section>",
        rows.concat()
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
