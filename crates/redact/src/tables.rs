//! Table columns whose header names a secret: CSV, Markdown, database output.

use std::ops::Range;

use super::assignments::{Name, ValuePosition, judge};
use super::keys::{Set, skip};
use super::lines;

/// Number of rows that are read.
const ROWS: usize = 200;

/// Column below a name in a table header. A line prefix can look like a column, so the smallest
/// number of prefix marks is tried first.
pub(super) fn column(text: &[u8], name: &Name) -> Vec<Range<usize>> {
    let is_mark = |b: &u8| matches!(b, b',' | b';' | b'\t' | b'|' | 0xE2);
    let behind = skip(text, name.stop, b" \"");
    let before = text[name.start.saturating_sub(60)..name.start]
        .trim_ascii_end()
        .last();
    let marked = text.get(behind).is_some_and(is_mark)
        || before.is_some_and(|b| is_mark(b) || *b == 0x82)
        || matches!(text.get(behind), None | Some(b'\n' | b'\r'));
    if !marked {
        return Vec::new();
    }
    (0..=lines::DEEP)
        .map(|marks| column_of(text, name, marks))
        .find(|found| !found.is_empty())
        .unwrap_or_default()
}

fn column_of(text: &[u8], name: &Name, marks: usize) -> Vec<Range<usize>> {
    let own = lines::line_at(text, name.start);
    let inner = |line: &Range<usize>| inner(text, line, marks);
    let mut head = inner(&own);
    // Field that contains the table, if the table is escaped in a document.
    let field = memchr::memmem::rfind(&text[head.start..name.start.max(head.start)], b": \"");
    head.start += field.map_or(0, |n| n + 3);
    let front = text[head.clone()]
        .iter()
        .take_while(|b| b" |\"".contains(b));
    head.start += front.count();
    if name.start < head.start || name.stop > head.end {
        return Vec::new();
    }
    let behind = text.get(skip(text, name.stop, b" \""));
    let before = text[head.start..name.start].trim_ascii_end().last();
    let mut signs = behind.into_iter().chain(before).copied();
    let mark = signs.find(|b| b",;\t|".contains(b));
    let framed = text[head.clone()].windows(3).any(|w| w == "│".as_bytes());
    let Some(mark) = mark.or(framed.then_some(0xE2)) else {
        return Vec::new();
    };
    let mut cells = cells(text, &head, mark);
    let at = cells
        .iter()
        .position(|cell| cell.start <= name.start && name.stop <= cell.end);
    let plain = |cell: &Range<usize>| {
        let cell = &text[cell.clone()];
        // A list in code ends in a comma and continues in the same form.
        let of_name = |b: &u8| Set::DOTTED.holds(*b) || matches!(b, b' ' | b'"');
        (1..=40).contains(&cell.len()) && cell.iter().all(of_name)
    };
    let Some(mut at) = at else {
        return Vec::new();
    };
    // In a quoted argument of a command, other words of the line stand before the table.
    let words = cells[..at].iter().rposition(|cell| !plain(cell));
    let is_quoted = |end: usize| text[head.start..end].iter().any(|b| b"'\"".contains(b));
    if let Some(last) = words.filter(|last| is_quoted(cells[*last].end)) {
        let next = lines::next(text, own.end);
        let row = next.map(|next| self::cells(text, &inner(&next), mark).len());
        let left = cells.len() - last - 1;
        if left >= 2 && row == Some(left) {
            cells.drain(..=last);
            at -= last + 1;
        } else {
            // The last of these words is the first column.
            let cell = cells[last].clone();
            let length = Set::DOTTED.run_before(text, cell.end, cell.len());
            cells[last].start = cell.end - length;
            cells.drain(..last);
            at -= last;
        }
    }
    if cells.len() < 2 || !cells.iter().all(plain) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for line in lines::below(text, own.end).take(ROWS) {
        let row = inner(&line);
        let rule = text[row.clone()].iter().all(|b| !b.is_ascii_alphanumeric());
        if rule && !row.is_empty() {
            continue;
        }
        let row = self::cells(text, &row, mark);
        let cut = row.len() > at && lines::is_cut(text, line.end);
        if row.len() != cells.len() && !cut
            || row.last().is_none_or(Range::is_empty) && mark == b','
        {
            break;
        }
        let mut cell = row[at].clone();
        if matches!(text[cell.clone()], [b'"', .., b'"']) {
            cell = cell.start + 1..cell.end - 1;
        }
        if judge(text, &cell, name, ValuePosition::Loose) && !text[cell.clone()].contains(&b' ') {
            found.push(cell);
        }
    }
    found
}

/// Line without its tool prefix and its table frame.
fn inner(text: &[u8], line: &Range<usize>, marks: usize) -> Range<usize> {
    let length = lines::prefix_of(&text[line.clone()], marks);
    let start = line.start + length;
    let frame = "│".as_bytes();
    let ends: [&[u8]; 8] = [
        b"\x1b[0m", b"\"}}", b"\"}", b"\"]", b" ", b"|", b"\r", frame,
    ];
    let mut content = lines::without_ends(&text[start..line.end], &ends);
    let end = start + content.len();
    let starts: [&[u8]; 3] = [b" ", b"|", frame];
    while let Some(rest) = starts.iter().find_map(|mark| content.strip_prefix(*mark)) {
        content = rest;
    }
    end - content.len()..end
}

fn cells(text: &[u8], line: &Range<usize>, mark: u8) -> Vec<Range<usize>> {
    let mut cells = Vec::new();
    let mut at = line.start;
    while at <= line.end {
        let end = memchr::memchr(mark, &text[at..line.end]).map_or(line.end, |n| at + n);
        let cell = &text[at..end];
        let blank = cell.iter().take_while(|b| **b == b' ').count();
        let trimmed = cell.trim_ascii().len();
        cells.push(at + blank..at + blank + trimmed);
        at = end + if mark == 0xE2 { 3 } else { 1 };
        if cells.len() > 64 {
            break;
        }
    }
    cells
}
