//! Incremental decoder for server-sent events.
//!
//! Follows the event stream format of the HTML standard with one difference: an event at the end of
//! the stream counts without a blank line, since some servers and proxies omit it. `id` and `retry`
//! are ignored, because requests are never resumed. Pure: bytes in, events out. The caller limits
//! the size.

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Event {
    /// `event:` field; empty if missing.
    pub(super) name: String,
    /// `data:` lines, joined by line feeds.
    pub(super) data: String,
}

/// Decodes chunks of bytes into events. Chunks may end anywhere, even within a character.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    /// The last byte was a carriage return; a following line feed belongs to it.
    after_return: bool,
    past_first_line: bool,
}

impl Decoder {
    /// Adds bytes and returns the completed events.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        for &byte in bytes {
            let after_return = std::mem::replace(&mut self.after_return, byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => events.extend(self.end_of_line()),
                _ => self.line.push(byte),
            }
        }
        events
    }

    /// Ends the stream and returns an event that has no blank line.
    pub(super) fn finish(mut self) -> Option<Event> {
        if !self.line.is_empty() {
            self.end_of_line();
        }
        self.end_of_event()
    }

    fn end_of_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        let mut line = String::from_utf8_lossy(&line).into_owned();
        if !std::mem::replace(&mut self.past_first_line, true) && line.starts_with('\u{feff}') {
            line.remove(0);
        }
        if line.is_empty() {
            return self.end_of_event();
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.name),
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                self.has_data = true;
            }
            // Comments have an empty field name; OpenRouter sends them as keep-alive.
            _ => {}
        }
        None
    }

    fn end_of_event(&mut self) -> Option<Event> {
        let event = std::mem::take(&mut self.event);
        std::mem::take(&mut self.has_data).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes the stream whole and split at every byte, with the same result.
    fn check(stream: &str, expected: &[(&str, &str)]) {
        let decode = |chunks: &[&[u8]]| {
            let mut decoder = Decoder::default();
            let mut events: Vec<Event> = chunks.iter().flat_map(|c| decoder.push(c)).collect();
            events.extend(decoder.finish());
            events
                .into_iter()
                .map(|e| (e.name, e.data))
                .collect::<Vec<_>>()
        };
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, data)| ((*name).to_owned(), (*data).to_owned()))
            .collect();
        let bytes = stream.as_bytes();
        assert_eq!(decode(&[bytes]), expected, "whole: {stream:?}");
        for cut in 0..=bytes.len() {
            let (left, right) = bytes.split_at(cut);
            assert_eq!(decode(&[left, right]), expected, "{stream:?} cut at {cut}");
        }
    }

    #[test]
    fn events_come_out_however_the_lines_end() {
        let expected = [("a", "1"), ("", "2")];
        check("event: a\ndata: 1\n\ndata: 2\n\n", &expected);
        check("event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", &expected);
        check("event: a\rdata: 1\r\rdata: 2\r\r", &expected);
    }

    #[test]
    fn data_of_several_lines_is_joined() {
        check(
            "data: {\ndata:  \"a\": 1\ndata\ndata:}\n\n",
            &[("", "{\n \"a\": 1\n\n}")],
        );
    }

    #[test]
    fn the_last_event_needs_no_blank_line() {
        check(
            "data: 1\n\nevent: stop\ndata: 2",
            &[("", "1"), ("stop", "2")],
        );
        check("data: 1\n\nevent: stop", &[("", "1")]);
    }

    #[test]
    fn marks_comments_and_other_fields_are_no_events() {
        check("\u{feff}data: ä€😀\n\n", &[("", "ä€😀")]);
        check(
            ": keep open\n\nid: 7\nretry: 10\n\ndata: x\n\n",
            &[("", "x")],
        );
        check("event: ping\n\ndata: x\n\n", &[("", "x")]);
        check("", &[]);
    }
}
