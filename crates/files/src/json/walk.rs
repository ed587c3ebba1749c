//! Ends of values in broken JSON text, found in linear time.
//!
//! The parse after a bracket is independent of the text before it. Where the parse of a value
//! stops, every open container therefore stops at the same position, and every closed one has a
//! known end. A later search inside the value reuses both. Otherwise, text with many unclosed
//! brackets would take quadratic time.
//!
//! Stored positions are relative to the start of the file, returned ones to the given part of it.

use std::borrow::Cow;
use std::collections::HashMap;

use super::spans::{Brackets, Stop, decode, skip_key, skip_space, skip_string, walk_value};

/// Known results for the containers of a text.
#[derive(Debug, Default)]
pub struct Walk {
    /// Ends of complete containers, by start position.
    closed: HashMap<u64, u64>,
    /// Containers without an end, by start position, with the index of the stop.
    endless: HashMap<u64, usize>,
    /// Positions at which a parse stopped, with the reason.
    stops: Vec<(u64, Stop)>,
}

/// A parse that uses the known results and adds to them.
struct Learning<'a> {
    walk: &'a mut Walk,
    base: u64,
    open: Vec<(u8, u64)>,
    /// Index of the stop, if the parse has reached a container known to have no end.
    stopped: Option<usize>,
}

impl Brackets for Learning<'_> {
    fn open(&mut self, close: u8, at: usize) -> Option<Result<usize, Stop>> {
        let start = self.base + at as u64;
        if let Some(end) = self.walk.closed.get(&start) {
            return Some(Ok(relative(*end, self.base)));
        }
        if let Some(stop) = self.walk.endless.get(&start) {
            self.stopped = Some(*stop);
            return Some(Err(self.walk.stops[*stop].1));
        }
        self.open.push((close, start));
        None
    }

    fn innermost(&self) -> Option<u8> {
        self.open.last().map(|(close, _)| *close)
    }

    fn close(&mut self, end: usize) {
        if let Some((_, start)) = self.open.pop() {
            self.walk.closed.insert(start, self.base + end as u64);
        }
    }
}

impl Walk {
    /// Returns the known result for the value that starts here: the position after it, or the
    /// reason why it has none. Positions are relative to `base`.
    pub fn known(&self, at: u64, base: u64) -> Option<Result<usize, Stop>> {
        if let Some(end) = self.closed.get(&at) {
            return Some(Ok(relative(*end, base)));
        }
        let stop = *self.endless.get(&at)?;
        Some(Err(self.stop(stop, base)))
    }

    /// The position behind the value that starts at `at` of this text, whose first byte is at `base`. What is
    /// `Incomplete` here must be so for good.
    pub fn end_of(&mut self, text: &[u8], at: usize, base: u64) -> Result<usize, Stop> {
        let mut learning = Learning {
            walk: self,
            base,
            open: Vec::new(),
            stopped: None,
        };
        let done = walk_value(text, at, &mut learning);
        let Learning { open, stopped, .. } = learning;
        let Err(stop) = done else {
            return done;
        };
        let number = stopped.unwrap_or_else(|| {
            let place = match stop {
                Stop::Malformed { at, .. } => base + at as u64,
                Stop::Incomplete => base + text.len() as u64,
            };
            self.stops.push((place, stop));
            self.stops.len() - 1
        });
        self.endless
            .extend(open.into_iter().map(|(_, start)| (start, number)));
        Err(self.stop(number, base))
    }

    /// Returns the string field `name` of the complete object that starts at `at`; the last one
    /// wins. Does not parse nested containers again.
    pub fn string_field<'t>(
        &mut self,
        text: &'t [u8],
        at: usize,
        name: &str,
    ) -> Option<Cow<'t, str>> {
        let mut found = None;
        let mut at = skip_space(text, at + 1);
        while let Ok(value) = skip_key(text, at) {
            let key = decode(&text[at..skip_string(text, at).ok()?]);
            let end = self.end_of(text, value, 0).ok()?;
            if key == name {
                let value = &text[value..end];
                found = (value.first() == Some(&b'"')).then(|| decode(value));
            }
            let next = skip_space(text, end);
            if text.get(next) != Some(&b',') {
                break;
            }
            at = skip_space(text, next + 1);
        }
        found
    }

    fn stop(&self, number: usize, base: u64) -> Stop {
        let (place, stop) = self.stops[number];
        match stop {
            Stop::Incomplete => stop,
            Stop::Malformed { expected, .. } => Stop::Malformed {
                at: relative(place, base),
                expected,
            },
        }
    }
}

fn relative(at: u64, base: u64) -> usize {
    usize::try_from(at.saturating_sub(base)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{skip_value, string_field};
    use super::*;

    proptest! {
        /// With any prior results, the answer equals that of a fresh parse.
        #[test]
        fn what_is_known_changes_no_answer(text in "[\\[\\]{}\",:a1 \n]{0,60}") {
            let text = text.as_bytes();
            let mut walk = Walk::default();
            for at in 0..text.len() {
                if !matches!(text[at], b'{' | b'[') {
                    continue;
                }
                let alone = skip_value(text, at);
                prop_assert_eq!(walk.end_of(text, at, 0), alone);
                prop_assert_eq!(walk.known(at as u64, 0), Some(alone));
                if let (Ok(end), b'{') = (alone, text[at]) {
                    let expected = string_field(&text[at..end], "a");
                    prop_assert_eq!(walk.string_field(text, at, "a"), expected);
                }
            }
        }
    }
}
