//! Named secrets with the value on another line: in a block below the name, in the column of a table, or in
//! the data of a Kubernetes Secret before or after its kind.
//!
//! Lines are read through `lines`, which ignores numbers and marks in front of them.

use std::ops::Range;

use super::bytes::{SPACE, Set, near, skip};
use super::extent::{Name, judge};
use super::lines;
use super::values::{self, Class, ValuePosition, is_made};

/// Number of lines of a block or a table that are read.
const ROWS: usize = 200;

/// Values in the lines below a name, or in its table column.
pub(super) fn values(text: &[u8], name: &Name) -> Vec<Range<usize>> {
    let below = block(text, name);
    if below.is_empty() {
        table_column(text, name)
    } else {
        below
    }
}

/// Lines of a block below a name: `password: |`, `password = <<EOF`, `Your password:`.
fn block(text: &[u8], name: &Name) -> Vec<Range<usize>> {
    let own = lines::line_at(text, name.start);
    let closed = skip(text, name.stop, b"\"' *");
    if !matches!(text.get(closed), Some(b':' | b'=')) {
        return Vec::new();
    }
    let rest = text[closed + 1..own.end.max(closed + 1)].trim_ascii();
    let rest = lines::without_ends(rest, &[b"\x1b[0m", "│".as_bytes(), b" ", b"**"]);
    if let Some(mark) = rest.strip_prefix(b"<<") {
        return heredoc(text, &own, mark);
    }
    let is_mark = |b: &u8| b.is_ascii_digit() || b"-+".contains(b);
    let folded = match rest {
        [b'|' | b'>', marks @ ..] => marks.len() <= 2 && marks.iter().all(is_mark),
        _ => false,
    };
    if !folded && !rest.is_empty() {
        return Vec::new();
    }
    let (own_indent, _) = content(text, &own, &own);
    let mut found = Vec::new();
    let mut count = 0;
    for line in lines::below(text, own.end) {
        let (indent, body) = content(text, &line, &own);
        let is_blank = body.is_empty();
        if is_blank && (folded || count == 0) && line.end - own.end < 400 {
            continue;
        }
        count += 1;
        if is_blank || indent <= own_indent && (folded || count > 1) || count > ROWS {
            break;
        }
        let value = &text[body.clone()];
        // Without a YAML block mark: one line with one value, and only if it is clearly a secret.
        let firm =
            folded || values::is_random(value) || (name.class == Class::Password && is_made(value));
        if firm && judge(text, &body, name, ValuePosition::Quoted) {
            found.push(body);
        }
        if !folded {
            break;
        }
    }
    found
}

fn heredoc(text: &[u8], own: &Range<usize>, mark: &[u8]) -> Vec<Range<usize>> {
    let mark = mark.iter().copied().filter(u8::is_ascii_alphanumeric);
    let mark: Vec<u8> = mark.collect();
    if mark.is_empty() {
        return Vec::new();
    }
    let lines = lines::below(text, own.end).take(20);
    let bodies = lines.map(|line| content(text, &line, own).1);
    let inside = bodies.take_while(|body| text[body.clone()] != mark);
    let is_value = |body: &Range<usize>| {
        let value = &text[body.clone()];
        value.len() >= 4 && !values::is_placeholder(value) && !value.contains(&b' ')
    };
    inside.filter(is_value).collect()
}

/// Indentation of a line, and its content without tool prefix and closing frame. A dash in front counts as a
/// diff mark if the other line has one too.
fn content(text: &[u8], line: &Range<usize>, own: &Range<usize>) -> (usize, Range<usize>) {
    let marks = lines::prefix(&text[line.clone()]);
    let is_dashed = |line: &Range<usize>| text[line.clone()].starts_with(b"- ");
    let is_diff = marks == 0 && is_dashed(line) && is_dashed(own);
    let start = line.start + marks + usize::from(is_diff);
    let ends: [&[u8]; 5] = [b"\x1b[0m", "│".as_bytes(), b" ", b"\t", b"\r"];
    let content = lines::without_ends(&text[start..line.end], &ends);
    let indent = content.len() - content.trim_ascii_start().len();
    (indent, start + indent..start + content.len())
}

/// Column below a name in a table header. A line prefix can look like a column, so the smallest
/// number of prefix marks is tried first.
fn table_column(text: &[u8], name: &Name) -> Vec<Range<usize>> {
    let is_mark = |b: &u8| b",;\t|\xE2".contains(b);
    let behind = text.get(skip(text, name.stop, b" \""));
    let before = &text[name.start.saturating_sub(60)..name.start];
    let before = before.trim_ascii_end().last();
    let marked = before.is_some_and(|b| is_mark(b) || *b == 0x82)
        || behind.is_none_or(|b| is_mark(b) || matches!(b, b'\n' | b'\r'));
    if !marked {
        return Vec::new();
    }
    (0..=lines::DEEP)
        .map(|marks| table_column_of(text, name, marks))
        .find(|found| !found.is_empty())
        .unwrap_or_default()
}

fn table_column_of(text: &[u8], name: &Name, marks: usize) -> Vec<Range<usize>> {
    const NAME: Set = Set::of(b"09AZaz__--..  \"\"");
    let own = lines::line_at(text, name.start);
    let inner = |line: &Range<usize>| inner(text, line, marks);
    let mut head = inner(&own);
    // Field that contains the table, if the table is escaped in a document.
    let field = memchr::memmem::rfind(&text[head.start..name.start.max(head.start)], b": \"");
    head.start += field.map_or(0, |n| n + 3);
    head.start = skip(&text[..head.end], head.start, b" |\"");
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
    let holds_name = |cell: &Range<usize>| cell.start <= name.start && name.stop <= cell.end;
    let at = cells.iter().position(holds_name);
    let plain = |cell: &Range<usize>| {
        let cell = &text[cell.clone()];
        // A list in code ends in a comma and continues in the same form.
        (1..=40).contains(&cell.len()) && NAME.holds_all(cell)
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
        let start = end - cell.trim_ascii_start().len();
        cells.push(start..start + cell.trim_ascii().len());
        at = end + if mark == 0xE2 { 3 } else { 1 };
        if cells.len() > 64 {
            break;
        }
    }
    cells
}

/// Distance from the kind that is read, in bytes.
const NEAR: usize = 16 << 10;

/// Values of the Kubernetes Secret whose kind is at `at`.
pub(super) fn secret_data(text: &[u8], at: usize, end: usize) -> Vec<Range<usize>> {
    if text[at..end].ends_with(b"\"") && text[at..end].starts_with(b"kind\"") {
        return json_data(text, at, end);
    }
    let line = lines::line_at(text, at);
    let behind = text[end..line.end.max(end)].trim_ascii();
    if ![&b""[..], b"\"", b"\x1b[0m", "│".as_bytes()].contains(&behind) {
        return Vec::new();
    }
    let (own, _) = column(text, &line);
    // Lines of the document that stand no deeper than its kind, in both directions.
    let is_of_document = |line: &Range<usize>| {
        let (indent, body) = column(text, line);
        let words = &text[body];
        let ends = words.starts_with(b"---")
            || indent == own && words.starts_with(b"kind:")
            || indent < own && !words.is_empty();
        !ends && line.start.abs_diff(at) <= NEAR
    };
    let above = lines::above(text, line.start).take_while(is_of_document);
    let below = lines::below(text, line.end).take_while(is_of_document);
    let lines = above.chain(below);
    let heads = lines.filter(|line| {
        let (indent, body) = column(text, line);
        indent == own && matches!(&text[body], b"data:" | b"stringData:")
    });
    let mut found = Vec::new();
    for head in heads {
        for line in lines::below(text, head.end) {
            let (indent, body) = column(text, &line);
            if indent <= own || body.is_empty() {
                break;
            }
            let Some(colon) = memchr::memmem::find(&text[body.clone()], b": ") else {
                continue;
            };
            let start = skip(text, body.start + colon + 2, b" \"");
            let value = &text[start..body.end.max(start)];
            let value = value.strip_suffix(b"\"").unwrap_or(value);
            if values::is_given(value) && !matches!(value.first(), Some(b'|' | b'>')) {
                found.push(start..start + value.len());
            }
        }
    }
    found
}

/// Indentation and content of a line; `- kind: Secret` in a list stands at its `kind`.
fn column(text: &[u8], line: &Range<usize>) -> (usize, Range<usize>) {
    let (indent, mut body) = content(text, line, line);
    let item = usize::from(text[body.clone()].starts_with(b"- ")) * 2;
    body.start += item;
    (indent + item, body)
}

fn json_data(text: &[u8], at: usize, end: usize) -> Vec<Range<usize>> {
    const KIND: &[u8] = b"\"kind\"";
    const HEADS: [&[u8]; 2] = [b"ata\": {", b"ata\":{"];
    let from = at.saturating_sub(NEAR);
    let first =
        memchr::memmem::rfind(&text[from..at], KIND).map_or(from, |n| from + n + KIND.len());
    let behind = near(text, end, NEAR);
    let last = end + memchr::memmem::find(behind, KIND).unwrap_or(behind.len());
    let rfind = |head: &&[u8]| memchr::memmem::rfind(&text[first..at], head);
    let find = |head: &&[u8]| memchr::memmem::find(&text[end..last], head);
    let before = HEADS.iter().find_map(rfind).map(|n| first + n);
    let after = HEADS.iter().find_map(find).map(|n| end + n);
    let heads = before.into_iter().chain(after);
    let mut found = Vec::new();
    // `metadata` contains names, not secrets.
    for head in heads.filter(|head| !text[..*head].ends_with(b"metad")) {
        let close = head + memchr::memchr(b'}', near(text, head, NEAR)).unwrap_or(0);
        let mut at = head + b"ata\":".len();
        while let Some(colon) = text
            .get(at..close)
            .and_then(|rest| memchr::memchr(b':', rest))
        {
            let open = skip(text, at + colon + 1, SPACE) + 1;
            let length = memchr::memchr(b'"', near(text, open, NEAR));
            let Some(length) = length.filter(|_| text[open - 1] == b'"') else {
                break;
            };
            at = open + length + 1;
            if values::is_given(&text[open..open + length]) {
                found.push(open..open + length);
            }
        }
    }
    found
}
