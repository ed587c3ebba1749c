//! The ends of values in a text that is broken, found by looking at each place once.
//!
//! What follows a bracket depends on nothing in front of it. So where the reading of a value stops, every
//! container that is open there stops at that place too, and every one that had closed has its end:
//! whoever goes on inside of it, in search of something whole, need not read it again. Without that a
//! text of brackets that are never closed costs the square of its length.
//!
//! Positions are given and answered from the beginning of the file; the text may be a part of it.

use std::borrow::Cow;
use std::collections::HashMap;

use super::{Brackets, Stop, decode, skip_key, skip_space, skip_string, walk_value};

/// What is known of the containers of a text.
#[derive(Debug, Default)]
pub(in crate::store) struct Walk {
    /// Where those that start here end.
    closed: HashMap<u64, u64>,
    /// Those that never end, and which of the stops is why.
    endless: HashMap<u64, usize>,
    /// Places at which a reading has stopped.
    stops: Vec<(u64, Stop)>,
}

/// A reading that makes use of what is known, and adds to it.
struct Learning<'a> {
    walk: &'a mut Walk,
    base: u64,
    open: Vec<(u8, u64)>,
    /// The reading has come to a container that never ends.
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
    /// What is known of the value that starts here without reading it: the place behind it, or why it has
    /// none, with positions in a part of the text that begins at `base`.
    pub(in crate::store) fn known(&self, at: u64, base: u64) -> Option<Result<usize, Stop>> {
        if let Some(end) = self.closed.get(&at) {
            return Some(Ok(relative(*end, base)));
        }
        let stop = *self.endless.get(&at)?;
        Some(Err(self.stop(stop, base)))
    }

    /// The position behind the value that starts at `at` of this text, whose first byte is at `base`. What is
    /// `Incomplete` here must be so for good.
    pub(in crate::store) fn end_of(
        &mut self,
        text: &[u8],
        at: usize,
        base: u64,
    ) -> Result<usize, Stop> {
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

    /// The string field `name` of the object that starts at `at` and was found whole; the last one counts.
    /// Containers in it are not read again.
    pub(in crate::store) fn string_field<'t>(
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
        /// However much is known already, the answer is that of a reading of its own.
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
