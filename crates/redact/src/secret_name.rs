//! Name of a secret, and the check of its value.

use std::ops::Range;

use super::base64;
use super::body::over_breaks;
use super::class::{Class, ValuePosition};
use super::lines;
use super::placeholders;
use super::randomness;
use super::values;

/// Name that contains the word of an anchor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name {
    pub(super) start: usize,
    pub(super) stop: usize,
    pub(super) kind: &'static str,
    pub(super) class: Class,
    /// Short word with other meanings, which needs a separator after it.
    pub(super) is_bare: bool,
}

/// Returns `true` if the value at `range` beside a name is a secret.
pub(super) fn judge(text: &[u8], range: &Range<usize>, name: &Name, stands: ValuePosition) -> bool {
    let joined = without_breaks(&text[range.clone()]);
    if name.kind == "authorization" {
        return (randomness::is_random(&joined) || base64::is_login(&joined))
            && !placeholders::is_placeholder(&joined);
    }
    // A value that is called or indexed is code.
    let is_called =
        stands != ValuePosition::Quoted && matches!(text.get(range.end), Some(b'(' | b'['));
    // A value with a truncation mark may have lost the digits that identify it as a password.
    let is_left = name.class == Class::Password
        && stands != ValuePosition::Prose
        && joined.len() >= 6
        && joined.iter().all(u8::is_ascii_alphabetic)
        && lines::is_marked(text, range.end)
        && values::is_given(&joined);
    !is_called && (is_left || values::is_secret(&joined, name.class, stands))
}

fn without_breaks(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    let mut at = 0;
    while at < value.len() {
        let next = over_breaks(value, at);
        if next > at {
            at = next;
        } else {
            out.push(value[at]);
            at += 1;
        }
    }
    out
}

/// Position after at most 48 bytes that `over` accepts.
pub(super) fn skip(text: &[u8], at: usize, over: impl Fn(&u8) -> bool) -> usize {
    let at = at.min(text.len());
    at + text[at..].iter().take(48).take_while(|b| over(b)).count()
}
