//! Charts as inline SVG: stacked columns, lines, share bars, differences with confidence intervals.
//!
//! Every chart has a title and a description for screen readers, and a table of its numbers.
//! Colours are classes, so that the page decides on light and dark. No colour alone carries a
//! meaning: the legend names the parts of a column in order.

use std::fmt::Write as _;

use super::escape::escape;

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 24.0;

/// Named series over time; `None` for a missing value.
pub(super) struct Series<'a> {
    /// Name in the legend.
    pub(super) name: &'a str,
    /// CSS class of the colour: `a` to `d`.
    pub(super) class: &'a str,
    /// One value per label.
    pub(super) values: Vec<Option<f64>>,
}

/// Title, description and x-axis labels of a chart.
pub(super) struct Frame<'a> {
    /// Id of the chart within the page; letters only.
    pub(super) id: &'a str,
    pub(super) title: &'a str,
    pub(super) about: String,
    pub(super) labels: Vec<&'a str>,
    /// Formats a value.
    pub(super) unit: fn(f64) -> String,
}

fn open(frame: &Frame<'_>) -> String {
    let (id, title, about) = (frame.id, escape(frame.title), escape(&frame.about));
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\
         <title id=\"{id}-t\">{title}</title><desc id=\"{id}-d\">{about}</desc>"
    )
}

/// Returns the smallest round number that is not below the greatest value.
fn ceiling(greatest: f64) -> f64 {
    if greatest <= 0.0 || !greatest.is_finite() {
        return 1.0;
    }
    let power = 10_f64.powf(greatest.log10().floor());
    let steps = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0].map(|step| step * power);
    steps
        .into_iter()
        .find(|step| *step >= greatest * 0.999_999)
        .unwrap_or(greatest)
}

/// Draws lines at zero, half and top, with their values, and the first, middle and last label.
fn axes(svg: &mut String, frame: &Frame<'_>, top: f64) {
    let bottom = HEIGHT - BOTTOM;
    for share in [0.0, 0.5, 1.0] {
        let y = bottom - share * (bottom - TOP);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 4.0,
            escape(&(frame.unit)(top * share)),
        );
    }
    let last = frame.labels.len().saturating_sub(1);
    let mut places = vec![(0, "start"), (last / 2, "middle"), (last, "end")];
    if last < 4 {
        places.remove(1);
    }
    if last == 0 {
        places.truncate(1);
    }
    for (at, anchor) in places {
        let x = match anchor {
            "start" => LEFT,
            "end" => WIDTH - RIGHT,
            _ => middle(at, frame.labels.len()),
        };
        let label = frame.labels.get(at).copied().unwrap_or_default();
        let _ = write!(
            svg,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            HEIGHT - 6.0,
            escape(label)
        );
    }
}

#[expect(clippy::cast_precision_loss, reason = "a chart has few columns")]
fn slot(count: usize) -> f64 {
    (WIDTH - LEFT - RIGHT) / count.max(1) as f64
}

#[expect(clippy::cast_precision_loss, reason = "a chart has few columns")]
fn middle(at: usize, count: usize) -> f64 {
    LEFT + slot(count) * (at as f64 + 0.5)
}

/// Returns a chart of stacked columns.
pub(super) fn columns(frame: &Frame<'_>, all: &[Series<'_>]) -> String {
    let count = frame.labels.len();
    let value =
        |series: &Series<'_>, at: usize| series.values.get(at).copied().flatten().unwrap_or(0.0);
    let sum = |at: usize| all.iter().map(|series| value(series, at)).sum::<f64>();
    // A scale of counts goes up to 2 at least, because half a run does not exist.
    let least = if all.len() > 1 { 2.0 } else { 0.0 };
    let top = ceiling((0..count).map(sum).fold(least, f64::max));
    let mut svg = open(frame);
    axes(&mut svg, frame, top);
    let width = (slot(count) * 0.78).min(34.0);
    for (at, label) in frame.labels.iter().enumerate() {
        if sum(at) <= 0.0 {
            continue;
        }
        let values: Vec<String> = all
            .iter()
            .map(|s| format!("{} {}", (frame.unit)(value(s, at)), s.name))
            .collect();
        let _ = write!(
            svg,
            "<g><title>{}</title>",
            escape(&format!("{label}: {}", values.join(", ")))
        );
        let mut bottom = HEIGHT - BOTTOM;
        for series in all {
            let height = value(series, at) / top * (HEIGHT - BOTTOM - TOP);
            if height <= 0.0 {
                continue;
            }
            bottom -= height;
            let _ = write!(
                svg,
                "<rect class=\"{}\" x=\"{:.1}\" y=\"{bottom:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"1.5\"/>",
                series.class,
                middle(at, count) - width / 2.0,
            );
        }
        svg.push_str("</g>");
    }
    svg.push_str("</svg>");
    svg
}

/// Returns a line chart with gaps at missing values.
pub(super) fn line(frame: &Frame<'_>, series: &Series<'_>) -> String {
    let top = ceiling(series.values.iter().copied().flatten().fold(0.0, f64::max));
    let mut svg = open(frame);
    axes(&mut svg, frame, top);
    let count = frame.labels.len();
    let place = |at: usize, value: f64| {
        let y = HEIGHT - BOTTOM - value / top * (HEIGHT - BOTTOM - TOP);
        format!("{:.1},{y:.1}", middle(at, count))
    };
    for piece in pieces(&series.values) {
        let points: Vec<String> = piece.iter().map(|(at, value)| place(*at, *value)).collect();
        let _ = write!(
            svg,
            "<polyline class=\"line {}\" points=\"{}\"/>",
            series.class,
            points.join(" ")
        );
    }
    for (at, value) in series
        .values
        .iter()
        .enumerate()
        .filter_map(|(at, v)| Some((at, (*v)?)))
    {
        let place = place(at, value);
        let (x, y) = place.split_once(',').unwrap_or_default();
        let label = frame.labels.get(at).copied().unwrap_or_default();
        let _ = write!(
            svg,
            "<circle class=\"{}\" cx=\"{x}\" cy=\"{y}\" r=\"3\"><title>{}</title></circle>",
            series.class,
            escape(&format!("{label}: {}", (frame.unit)(value)))
        );
    }
    svg.push_str("</svg>");
    svg
}

/// Splits values at gaps; each value has its index. Drops single values.
fn pieces(values: &[Option<f64>]) -> Vec<Vec<(usize, f64)>> {
    let mut pieces = vec![Vec::new()];
    for (at, value) in values.iter().enumerate() {
        match value {
            Some(value) => pieces
                .last_mut()
                .into_iter()
                .for_each(|piece| piece.push((at, *value))),
            None => pieces.push(Vec::new()),
        }
    }
    pieces.retain(|piece: &Vec<_>| piece.len() > 1);
    pieces
}

/// Returns one horizontal bar of consecutive parts, for a table cell.
pub(super) fn bar(parts: &[(&str, f64)], whole: f64) -> String {
    let mut svg = "<svg class=\"bar\" viewBox=\"0 0 120 12\" aria-hidden=\"true\">".to_owned();
    let mut x = 0.0;
    for (class, value) in parts {
        let width = if whole > 0.0 {
            value / whole * 120.0
        } else {
            0.0
        };
        let _ = write!(
            svg,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"1\" width=\"{width:.1}\" height=\"10\"/>"
        );
        x += width;
    }
    svg.push_str("</svg>");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_edge_is_round() {
        let cases = [
            (0.0, 1.0),
            (1.0, 1.0),
            (3.1, 4.0),
            (17.0, 20.0),
            (0.05, 0.05),
            (1e9, 1e9),
        ];
        for (greatest, expected) in cases {
            let found = ceiling(greatest);
            assert!(
                (found - expected).abs() < expected * 1e-9,
                "{greatest}: {found}"
            );
        }
        assert!((ceiling(f64::NAN) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_line_is_broken_where_there_is_nothing() {
        let found = pieces(&[
            Some(1.0),
            Some(2.0),
            None,
            Some(3.0),
            None,
            Some(4.0),
            Some(5.0),
        ]);
        let places: Vec<Vec<usize>> = found
            .iter()
            .map(|piece| piece.iter().map(|(at, _)| *at).collect())
            .collect();
        assert_eq!(places, [vec![0, 1], vec![5, 6]]);
    }
}
