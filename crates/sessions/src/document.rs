//! Single-document formats: lists of messages, trajectories, older session files of Gemini CLI.
//! Read element by element, so memory depends only on the longest element.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufRead, Read};

use serde::de::{self, DeserializeSeed, Deserializer as _, IgnoredAny};
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::BrokenLine;

use super::calls::Calls;
use super::{Format, LineFormat, broken, cline, gemini, openai, opencode, swe};

/// Member names of lists. Only the first non-empty list counts, since some documents repeat the
/// session in another form.
const LISTS: &[&str] = &["trajectory", "traj", "messages", "conversation"];
/// Member name of the messages that a trajectory repeats. They count if there is no other list.
const HISTORY: &str = "history";

/// Reads a document and returns its detected format. A truncated document counts up to the error.
pub(super) fn read(
    format: Format,
    input: &mut dyn BufRead,
    calls: &mut Calls<'_>,
) -> io::Result<Format> {
    let line = Cell::new(1);
    let counted = CountLines { input, line: &line };
    let mut elements = Elements::new(format);
    let read = serde_json::Deserializer::from_reader(counted).deserialize_any(Top {
        elements: &mut elements,
        calls,
        line: &line,
    });
    if let Err(error) = read {
        if error.classify() == Category::Io {
            return Err(error.into());
        }
        let message = broken(&error);
        calls.broken(BrokenLine {
            line: error.line() as u64,
            message,
        });
    }
    Ok(elements.format)
}

/// Reader for messages, one per line.
pub(super) struct LineReader(Elements);

impl LineReader {
    pub(super) fn new(format: Format) -> Self {
        Self(Elements::new(format))
    }

    pub(super) fn format(&self) -> Format {
        self.0.format
    }
}

impl LineFormat for LineReader {
    fn line(&mut self, line: &[u8], calls: &mut Calls<'_>) -> Result<(), String> {
        let raw: &RawValue = serde_json::from_slice(line).map_err(|error| broken(&error))?;
        self.0.element(raw.get(), calls)
    }
}

/// Reader for list elements.
struct Elements {
    format: Format,
    gemini: gemini::Reader,
    actions: usize,
}

impl Elements {
    fn new(format: Format) -> Self {
        Self {
            format,
            gemini: gemini::Reader::default(),
            actions: 0,
        }
    }

    /// Reads an element, which is recognised by its role, action or type.
    fn element(&mut self, json: &str, calls: &mut Calls<'_>) -> Result<(), String> {
        if !json.starts_with('{') {
            return Err("an element is no object".to_owned());
        }
        match self.format {
            Format::OpenCode => return opencode::message(json, calls),
            Format::Cline => return cline::message(json, calls),
            _ => {}
        }
        let message: openai::Message<'_> = parse(json)?;
        if message.role.is_some() {
            if openai::message(&message, calls) {
                self.format = Format::AnthropicMessages;
            }
            return Ok(());
        }
        let turn: swe::Turn<'_> = parse(json)?;
        if turn.action.is_some() {
            self.format = Format::SweAgent;
            swe::turn(&turn, self.actions, calls);
            self.actions += 1;
            return Ok(());
        }
        let message: gemini::Message<'_> = parse(json)?;
        if message.is_one() {
            self.format = Format::Gemini;
            self.gemini.message(&message, calls);
            return Ok(());
        }
        // List of conversations.
        let line = Cell::new(0);
        let read = serde_json::Deserializer::from_str(json).deserialize_any(Top {
            elements: self,
            calls,
            line: &line,
        });
        read.map_err(|error| broken(&error))
    }
}

fn parse<'a, T: de::Deserialize<'a>>(json: &'a str) -> Result<T, String> {
    serde_json::from_str(json).map_err(|error| broken(&error))
}

/// Top-level value: a list, or an object that contains one.
struct Top<'e, 'c, 's> {
    elements: &'e mut Elements,
    calls: &'c mut Calls<'s>,
    line: &'e Cell<u64>,
}

impl<'de> de::Visitor<'de> for Top<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of messages or steps, or an object that holds one")
    }

    fn visit_seq<A: de::SeqAccess<'de>>(mut self, seq: A) -> Result<(), A::Error> {
        self.read_list(seq).map(|_| ())
    }

    fn visit_map<A: de::MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut found = false;
        let mut history: Option<Box<RawValue>> = None;
        while let Some(key) = map.next_key::<String>()? {
            if !found && key == HISTORY {
                history = Some(map.next_value()?);
            } else if !found && LISTS.contains(&key.as_str()) {
                found = map.next_value_seed(&mut self)?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        if let Some(history) = history.filter(|_| !found) {
            self.read_history(&history);
        }
        Ok(())
    }
}

impl Top<'_, '_, '_> {
    /// Reads the messages of a trajectory that has nothing else.
    fn read_history(&mut self, list: &RawValue) {
        let list: Vec<&RawValue> = serde_json::from_str(list.get()).unwrap_or_default();
        for (at, raw) in list.into_iter().enumerate() {
            if let Err(message) = swe::history(raw.get(), at, self.calls) {
                self.calls.broken(BrokenLine {
                    line: self.line.get(),
                    message: format!("element {}: {message}", at + 1),
                });
            }
        }
    }

    /// Reads a list. Returns `true` if it has elements.
    fn read_list<'de, A: de::SeqAccess<'de>>(&mut self, mut seq: A) -> Result<bool, A::Error> {
        let mut count = 0_usize;
        while let Some(raw) = seq.next_element::<Box<RawValue>>()? {
            count += 1;
            if let Err(message) = self.elements.element(raw.get(), self.calls) {
                self.calls.broken(BrokenLine {
                    line: self.line.get(),
                    message: format!("element {count}: {message}"),
                });
            }
        }
        Ok(count > 0)
    }
}

impl<'de> DeserializeSeed<'de> for &mut Top<'_, '_, '_> {
    type Value = bool;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Value of a member with a list name, which can have another type.
impl<'de> de::Visitor<'de> for &mut Top<'_, '_, '_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<bool, A::Error> {
        self.read_list(seq)
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(false)
    }

    fn visit_unit<E: de::Error>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<bool, E> {
        Ok(false)
    }
}

/// Counts line ends as they are read.
struct CountLines<'a> {
    input: &'a mut dyn BufRead,
    line: &'a Cell<u64>,
}

impl Read for CountLines<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        let ends = memchr::memchr_iter(b'\n', &buffer[..read]).count();
        self.line.set(self.line.get() + ends as u64);
        Ok(read)
    }
}
