//! Drawing of the view: the list, the record, the status line and the keys, as painted lines.

use chrono::{DateTime, Utc};

use super::record::{Line, Piece, record, shown, words, wrap};
use super::state::{COMMON, HELP, Mode, State, decisions};
use crate::cli::output::Style;
use crate::cli::output::text::end;

/// Width from which the record is shown beside the list.
const WIDE: usize = 120;
/// Width of the kind and of the id in the list.
const KIND: usize = 13;
const ID: usize = 9;
/// Width of a rule in the question which one stays: two fit into 80 columns.
const STAYS: usize = 14;
/// Columns between the list and the record.
const GAP: usize = 2;

/// Look of the screen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Theme {
    /// `false` leaves colours out; bold, dim and reversed text stay.
    pub(crate) has_colour: bool,
    pub(crate) now: DateTime<Utc>,
}

impl Theme {
    /// Text of a line for a terminal, cut to a width.
    fn paint(self, line: &[Piece], width: usize) -> String {
        let pieces = line.iter().map(|(style, text)| match style {
            Style::Good | Style::Warn | Style::Bad if !self.has_colour => Style::Strong.paint(text),
            style => style.paint(text),
        });
        console::truncate_str(&pieces.collect::<String>(), width, "").into_owned()
    }

    /// Lines from `scroll` on, but so that the last ones fill the height.
    fn scrolled(self, lines: &[Line], scroll: usize, (width, height): Size) -> Vec<String> {
        let last = lines.len().saturating_sub(height);
        let visible = lines.iter().skip(scroll.min(last)).take(height);
        visible.map(|line| self.paint(line, width)).collect()
    }
}

/// Columns and rows.
type Size = (usize, usize);

/// Returns the whole screen: `rows` lines for a terminal, of at most `columns`.
pub(crate) fn frame(state: &State, theme: Theme, columns: usize, rows: usize) -> Vec<String> {
    let (all, matching) = state.counts();
    let mut title = if state.filter.is_empty() && state.mode != Mode::Filter {
        format!("memctl review: {all} waiting")
    } else {
        format!("memctl review: {matching} of {all} match")
    };
    if state.is_searching {
        title.push_str(", comparing rules …");
    }
    // The title, the status line, and two lines of keys.
    let height = rows.saturating_sub(4).max(1);
    let mut lines = vec![theme.paint(&[(Style::Strong, title)], columns)];
    lines.append(&mut body(state, theme, (columns, height)));
    lines.resize(height + 1, String::new());
    let own = state.selected().map(decisions).unwrap_or_default();
    let below = [vec![status(state)], keys(&own), keys(&COMMON)];
    lines.extend(below.iter().map(|line| theme.paint(line, columns)));
    lines.truncate(rows);
    lines
}

fn body(state: &State, theme: Theme, (columns, height): Size) -> Vec<String> {
    if state.mode == Mode::Help {
        let line = |(keys, text): &(&str, &str)| {
            let text = (Style::Plain, (*text).to_owned());
            vec![(Style::Strong, format!("{keys:<10}")), text]
        };
        let lines: Vec<Line> = HELP.iter().map(line).collect();
        return theme.scrolled(&lines, 0, (columns, height));
    }
    if let Mode::Seen(text) = &state.mode {
        let lines = text
            .iter()
            .flat_map(|(style, line)| wrap((*style, String::new()), &words(*style, line), columns));
        let lines: Vec<Line> = lines.collect();
        return theme.scrolled(&lines, state.scroll, (columns, height));
    }
    let of_record = |(width, height): Size| {
        let lines = state.selected().map(|one| record(one, theme.now, width));
        theme.scrolled(&lines.unwrap_or_default(), state.scroll, (width, height))
    };
    if columns < WIDE {
        let above = (height * 35).div_ceil(100);
        let mut lines = list(state, theme, (columns, above));
        lines.resize(above + 1, String::new());
        lines.extend(of_record((columns, height.saturating_sub(above + 1))));
        lines.truncate(height);
        return lines;
    }
    let left = columns * 45 / 100;
    let mut list = list(state, theme, (left, height));
    let mut record = of_record((columns - left - GAP, height));
    list.resize(height, String::new());
    record.resize(height, String::new());
    let beside = list.iter().zip(&record).map(|(list, record)| {
        let gap = (left + GAP).saturating_sub(console::measure_text_width(list));
        format!("{list}{}{record}", " ".repeat(gap))
    });
    beside.collect()
}

/// Returns the entries of the list around the selected one.
fn list(state: &State, theme: Theme, (width, height): Size) -> Vec<String> {
    let (all, matching) = state.counts();
    if matching == 0 {
        let nothing = match all {
            0 => "Nothing waits for a decision.",
            _ => "No entry matches; Esc shows all.",
        };
        return vec![theme.paint(&[(Style::Dim, nothing.to_owned())], width)];
    }
    let height = height.max(1);
    let start = state.at().saturating_sub(height / 2);
    let start = start.min(matching.saturating_sub(height));
    let room = width.saturating_sub(KIND + ID + 4);
    let entries = state.from(start).take(height).zip(start..);
    let rows = entries.map(|(one, place)| {
        let title = end(&shown(&one.title).replace('\n', " "), room);
        let (kind, id) = (one.kind.name(), shown(&one.id));
        let text = format!("{kind:<KIND$}  {id:<ID$}  {title}");
        let text = console::truncate_str(&text, width, "");
        if place == state.at() {
            let style = console::Style::new().force_styling(true).reverse();
            return style.apply_to(text).to_string();
        }
        text.into_owned()
    });
    rows.collect()
}

fn status(state: &State) -> Piece {
    match &state.mode {
        Mode::Filter => (Style::Strong, format!("/{}", shown(&state.filter))),
        Mode::Reason(text) => (Style::Strong, format!("reason: {}", shown(text))),
        Mode::Merge([first, second]) => (Style::Strong, which_stays(state, first, second)),
        Mode::Help => (Style::Dim, "any key closes the help".to_owned()),
        Mode::Seen(_) => {
            let keys = "j k PgDn PgUp scroll, any other key closes";
            (Style::Dim, keys.to_owned())
        }
        Mode::List => (state.status.0, shown(&state.status.1).replace('\n', " ")),
    }
}

/// Question which of two rules stays, with the text of each.
fn which_stays(state: &State, first: &str, second: &str) -> String {
    let text = |id: &str| {
        let one = state.selected()?;
        if let Some(near) = one.near.as_ref().filter(|near| near.id == id) {
            return Some(near.rule.as_str());
        }
        if id == one.id {
            one.text("rule").or_else(|| one.text("older"))
        } else {
            one.text("newer")
        }
    };
    let named = |id: &str| match text(id) {
        Some(text) => format!("{id} \"{}\"", end(&shown(text), STAYS)),
        None => id.to_owned(),
    };
    let (first, second) = (named(first), named(second));
    format!("which stays?  1 {first}  2 {second}  Esc neither")
}

fn keys(keys: &[(char, &str)]) -> Line {
    let pieces = keys.iter().map(|(key, name)| {
        let (key, name) = (format!("{key} "), format!("{name}  "));
        [(Style::Strong, key), (Style::Plain, name)]
    });
    pieces.flatten().collect()
}
