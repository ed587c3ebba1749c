//! Drawing of the view: the list, the record, the status line and the keys, as lines of styled text.

use chrono::{DateTime, Utc};

use crate::cli::output::Style;
use crate::cli::output::text::end;
use crate::cli::review::view::key::{COMMON, HELP, decisions};
use crate::cli::review::view::record::{Line, Piece, record, shown, words, wrap};
use crate::cli::review::view::state::{Mode, State};

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
    fn paint(self, (style, text): &Piece) -> String {
        match style {
            Style::Good | Style::Warn | Style::Bad if !self.has_colour => Style::Strong.paint(text),
            style => style.paint(text),
        }
    }
}

/// Row of the screen.
struct Row {
    line: Line,
    /// Reversed, as the selected entry is.
    is_selected: bool,
}

impl Row {
    fn of(line: Line) -> Self {
        Self {
            line,
            is_selected: false,
        }
    }

    fn one(style: Style, text: String) -> Self {
        Self::of(vec![(style, text)])
    }

    /// Text for a terminal, cut to a width.
    fn paint(&self, width: usize, theme: Theme) -> String {
        let text: String = self.line.iter().map(|piece| theme.paint(piece)).collect();
        let text = console::truncate_str(&text, width, "");
        if self.is_selected {
            let style = console::Style::new().force_styling(true).reverse();
            return style.apply_to(text).to_string();
        }
        text.into_owned()
    }

    fn width(&self) -> usize {
        let widths = self.line.iter();
        widths
            .map(|(_, text)| console::measure_text_width(text))
            .sum()
    }
}

/// Returns the whole screen: `rows` lines for a terminal, of at most `columns`.
pub(crate) fn frame(state: &State, theme: Theme, columns: usize, rows: usize) -> Vec<String> {
    let (all, matching) = state.counts();
    let title = if state.filter.is_empty() && state.mode != Mode::Filter {
        format!("memctl review: {all} waiting")
    } else {
        format!("memctl review: {matching} of {all} match")
    };
    let more = if state.is_searching {
        ", comparing rules …"
    } else {
        ""
    };
    // The title, the status line, and two lines of keys.
    let height = rows.saturating_sub(4).max(1);
    let mut lines = vec![Row::one(Style::Strong, title + more).paint(columns, theme)];
    let mut body = body(state, theme, columns, height);
    body.resize(height, String::new());
    lines.append(&mut body);
    lines.push(status(state).paint(columns, theme));
    let own = state.selected().map(decisions).unwrap_or_default();
    lines.push(keys(&own).paint(columns, theme));
    lines.push(keys(&COMMON).paint(columns, theme));
    lines.truncate(rows);
    lines
}

fn body(state: &State, theme: Theme, columns: usize, height: usize) -> Vec<String> {
    let painted = |rows: Vec<Row>| -> Vec<String> {
        rows.iter().map(|row| row.paint(columns, theme)).collect()
    };
    if state.mode == Mode::Help {
        let rows = HELP.iter().map(|(keys, text)| {
            Row::of(vec![
                (Style::Strong, format!("{keys:<10}")),
                (Style::Plain, (*text).to_owned()),
            ])
        });
        let rows: Vec<Row> = rows.take(height).collect();
        return painted(rows);
    }
    if let Mode::Seen(text) = &state.mode {
        let lines = text
            .iter()
            .flat_map(|(style, line)| wrap((*style, String::new()), &words(*style, line), columns));
        return painted(scrolled(lines.collect(), state.scroll, height));
    }
    if columns < WIDE {
        let above = (height * 35).div_ceil(100);
        let mut rows = list(state, columns, above);
        rows.resize_with(above + 1, || Row::of(Vec::new()));
        let below = height.saturating_sub(above + 1);
        rows.extend(selected_record(state, theme, columns, below));
        rows.truncate(height);
        return painted(rows);
    }
    let left = columns * 45 / 100;
    let right = columns - left - GAP;
    let mut list = list(state, left, height).into_iter();
    let mut record = selected_record(state, theme, right, height).into_iter();
    let beside = |(list, record): (Option<Row>, Option<Row>)| {
        let list = list.unwrap_or_else(|| Row::of(Vec::new()));
        let gap = left.saturating_sub(list.width()) + GAP;
        let record = record
            .map(|row| row.paint(right, theme))
            .unwrap_or_default();
        format!("{}{}{record}", list.paint(left, theme), " ".repeat(gap))
    };
    (0..height)
        .map(|_| beside((list.next(), record.next())))
        .collect()
}

/// Returns the entries of the list around the selected one.
fn list(state: &State, width: usize, height: usize) -> Vec<Row> {
    let height = height.max(1);
    let start = state.at().saturating_sub(height / 2);
    let start = start.min(state.counts().1.saturating_sub(height));
    let room = width.saturating_sub(KIND + ID + 4);
    let entries = state.from(start).take(height).zip(start..);
    let rows: Vec<Row> = entries
        .map(|(one, place)| {
            let text = format!(
                "{:<KIND$}  {:<ID$}  {}",
                one.kind.name(),
                shown(&one.id),
                end(&shown(&one.title).replace('\n', " "), room)
            );
            Row {
                line: vec![(Style::Plain, text)],
                is_selected: place == state.at(),
            }
        })
        .collect();
    if rows.is_empty() {
        return vec![Row::one(Style::Dim, nothing(state))];
    }
    rows
}

fn nothing(state: &State) -> String {
    if state.counts().0 == 0 {
        "Nothing waits for a decision.".to_owned()
    } else {
        "No entry matches; Esc shows all.".to_owned()
    }
}

fn selected_record(state: &State, theme: Theme, width: usize, height: usize) -> Vec<Row> {
    let Some(waiting) = state.selected() else {
        return Vec::new();
    };
    scrolled(record(waiting, theme.now, width), state.scroll, height)
}

/// Returns the lines from `scroll` on, but so that the last ones fill the height.
fn scrolled(lines: Vec<Line>, scroll: usize, height: usize) -> Vec<Row> {
    let last = lines.len().saturating_sub(height);
    let visible = lines.into_iter().skip(scroll.min(last)).take(height);
    visible.map(Row::of).collect()
}

fn status(state: &State) -> Row {
    let (style, text) = match &state.mode {
        Mode::Filter => (Style::Strong, format!("/{}", shown(&state.filter))),
        Mode::Reason(text) => (Style::Strong, format!("reason: {}", shown(text))),
        Mode::Merge([first, second]) => (Style::Strong, which_stays(state, first, second)),
        Mode::Help => (Style::Dim, "any key closes the help".to_owned()),
        Mode::Seen(_) => (
            Style::Dim,
            "j k PgDn PgUp scroll, any other key closes".to_owned(),
        ),
        Mode::List => (state.status.0, shown(&state.status.1).replace('\n', " ")),
    };
    Row::one(style, text)
}

/// Question which of two rules stays, with the text of each.
fn which_stays(state: &State, first: &str, second: &str) -> String {
    let text = |id: &str| {
        let one = state.selected()?;
        let part = |name: &str| one.parts.iter().find(|part| part.name == name);
        let near = one.near.as_ref().filter(|near| near.id == id);
        let near = near.map(|near| near.rule.clone());
        let own = if id == one.id {
            part("rule").or_else(|| part("older"))
        } else {
            part("newer")
        };
        Some(end(
            &shown(&near.or_else(|| own.map(|part| part.text.clone()))?),
            STAYS,
        ))
    };
    let named = |id: &str| match text(id) {
        Some(text) => format!("{id} \"{text}\""),
        None => id.to_owned(),
    };
    format!(
        "which stays?  1 {}  2 {}  Esc neither",
        named(first),
        named(second)
    )
}

fn keys(keys: &[(char, &str)]) -> Row {
    let pieces = keys.iter().flat_map(|(key, name)| {
        [
            (Style::Strong, format!("{key} ")),
            (Style::Plain, format!("{name}  ")),
        ]
    });
    Row::of(pieces.collect())
}
