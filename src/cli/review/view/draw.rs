//! Drawing of the view: the list, the record, the status line and the keys.

use chrono::{DateTime, Utc};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style as Look};
use ratatui::text::{Line as Row, Span};
use ratatui::widgets::Paragraph;

use crate::cli::output::{Style, end};

use super::key::{COMMON, HELP, decisions};
use super::record::record;
use super::state::{Mode, State};
use super::text::{Line, Piece, shown, words, wrap};

/// Width from which the record is shown beside the list.
const WIDE: u16 = 120;
/// Width of the kind and of the id in the list.
const KIND: usize = 13;
const ID: usize = 9;

/// Look of the screen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Theme {
    /// `false` leaves colours out; bold, dim and reversed text stay.
    pub(super) has_colour: bool,
    pub(super) now: DateTime<Utc>,
}

impl Theme {
    fn look(self, style: Style) -> Look {
        let colour = |colour| {
            if self.has_colour {
                Look::new().fg(colour)
            } else {
                Look::new().add_modifier(Modifier::BOLD)
            }
        };
        match style {
            Style::Plain => Look::new(),
            Style::Strong => Look::new().add_modifier(Modifier::BOLD),
            Style::Dim => Look::new().add_modifier(Modifier::DIM),
            Style::Good => colour(Color::Green),
            Style::Warn => colour(Color::Yellow),
            Style::Bad => colour(Color::Red),
        }
    }
}

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, state: &State, theme: Theme) {
    let rows = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
        Constraint::Length(2),
    ]);
    let [head, body, status, keys] = rows.areas(frame.area());
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
    line(frame, head, theme.look(Style::Strong), title + more);
    if state.mode == Mode::Help {
        let rows = HELP.iter().map(|(keys, text)| {
            Row::from(vec![
                Span::styled(format!("{keys:<10}"), theme.look(Style::Strong)),
                Span::raw(*text),
            ])
        });
        frame.render_widget(Paragraph::new(rows.collect::<Vec<_>>()), body);
    } else if let Mode::Seen(lines) = &state.mode {
        draw_seen(frame, body, lines, state, theme);
    } else {
        let [list, record] = if body.width >= WIDE {
            Layout::horizontal([Constraint::Percentage(45), Constraint::Fill(1)])
                .spacing(2)
                .areas(body)
        } else {
            Layout::vertical([Constraint::Percentage(35), Constraint::Fill(1)])
                .spacing(1)
                .areas(body)
        };
        draw_list(frame, list, state, theme);
        draw_record(frame, record, state, theme);
    }
    draw_status(frame, status, state, theme);
    draw_keys(frame, keys, state, theme);
}

fn line(frame: &mut Frame<'_>, area: Rect, look: Look, text: String) {
    frame.render_widget(Paragraph::new(Row::styled(text, look)), area);
}

fn draw_list(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let height = usize::from(area.height).max(1);
    let start = state.at().saturating_sub(height / 2);
    let start = start.min(state.counts().1.saturating_sub(height));
    let room = usize::from(area.width).saturating_sub(KIND + ID + 4);
    let entries = state.from(start).take(height).zip(start..);
    let rows: Vec<Row<'_>> = entries
        .map(|(one, place)| {
            let text = format!(
                "{:<KIND$}  {:<ID$}  {}",
                one.kind.name(),
                shown(&one.id),
                end(&shown(&one.title).replace('\n', " "), room)
            );
            let look = if place == state.at() {
                Look::new().add_modifier(Modifier::REVERSED)
            } else {
                theme.look(Style::Plain)
            };
            Row::styled(text, look)
        })
        .collect();
    if rows.is_empty() {
        line(frame, area, theme.look(Style::Dim), nothing(state));
    } else {
        frame.render_widget(Paragraph::new(rows), area);
    }
}

fn nothing(state: &State) -> String {
    if state.counts().0 == 0 {
        "Nothing waits for a decision.".to_owned()
    } else {
        "No entry matches; Esc shows all.".to_owned()
    }
}

fn draw_record(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let Some(waiting) = state.selected() else {
        return;
    };
    let lines = record(waiting, theme.now, usize::from(area.width));
    draw_lines(frame, area, lines, state.scroll, theme);
}

fn draw_seen(frame: &mut Frame<'_>, area: Rect, text: &[Piece], state: &State, theme: Theme) {
    let width = usize::from(area.width);
    let lines = text
        .iter()
        .flat_map(|(style, line)| wrap((*style, String::new()), &words(*style, line), width));
    draw_lines(frame, area, lines.collect(), state.scroll, theme);
}

/// Draws lines from `scroll` on, but so that the last ones fill the area.
fn draw_lines(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line>, scroll: usize, theme: Theme) {
    let last = lines.len().saturating_sub(usize::from(area.height));
    let visible = lines.into_iter().skip(scroll.min(last));
    let rows: Vec<Row<'_>> = visible
        .take(usize::from(area.height))
        .map(|line| {
            let pieces = line.into_iter();
            let spans = pieces.map(|(style, text)| Span::styled(text, theme.look(style)));
            Row::from(spans.collect::<Vec<_>>())
        })
        .collect();
    frame.render_widget(Paragraph::new(rows), area);
}

fn draw_status(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let (style, text) = match &state.mode {
        Mode::Filter => (Style::Strong, format!("/{}", shown(&state.filter))),
        Mode::Reason(text) => (Style::Strong, format!("reason: {}", shown(text))),
        Mode::Merge([first, second]) => (
            Style::Strong,
            format!("which rule stays?  1 {first}  2 {second}  Esc neither"),
        ),
        Mode::Help => (Style::Dim, "any key closes the help".to_owned()),
        Mode::Seen(_) => (
            Style::Dim,
            "j k PgDn PgUp scroll, any other key closes".to_owned(),
        ),
        Mode::List => (state.status.0, shown(&state.status.1).replace('\n', " ")),
    };
    line(frame, area, theme.look(style), text);
}

fn draw_keys(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let own = state.selected().map(decisions).unwrap_or_default();
    let row = |keys: &[(char, &str)]| {
        let spans = keys.iter().flat_map(|(key, name)| {
            [
                Span::styled(format!("{key} "), theme.look(Style::Strong)),
                Span::raw(format!("{name}  ")),
            ]
        });
        Row::from(spans.collect::<Vec<_>>())
    };
    frame.render_widget(Paragraph::new(vec![row(&own), row(&COMMON)]), area);
}
