//! The shapes of keys: sets of characters, and runs of them.
//!
//! A shape is data. How a text is searched for all of them at once is `scan`; how a body is read
//! that a line break stands in is `body`; which shape belongs to which vendor is `patterns`.

/// The characters that a part of a key is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Set {
    /// `0-9`
    Digits,
    /// `0-9a-f` in either case
    Hex,
    /// `A-Z0-9`
    Upper,
    /// `A-Za-z0-9`
    Alnum,
    /// `A-Za-z0-9_-`
    Word,
    /// `A-Za-z0-9_-.`
    Dotted,
    /// `A-Za-z0-9+/=`
    Base64,
    /// `A-Za-z0-9+/=_-.~%`: whatever a header or a query may carry.
    Header,
    /// `A-Za-z0-9./`: what crypt(3) writes.
    Crypt,
    /// `A-Za-z0-9=,`: the parameters in front of a hash.
    Params,
}

impl Set {
    pub(super) fn holds(self, byte: u8) -> bool {
        match self {
            Self::Digits => byte.is_ascii_digit(),
            Self::Hex => byte.is_ascii_hexdigit(),
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Alnum => byte.is_ascii_alphanumeric(),
            Self::Word => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
            Self::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='),
            Self::Crypt => byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'/'),
            Self::Params => byte.is_ascii_alphanumeric() || matches!(byte, b'=' | b','),
            Self::Header => {
                byte.is_ascii_alphanumeric()
                    || matches!(byte, b'+' | b'/' | b'=' | b'_' | b'-' | b'.' | b'~' | b'%')
            }
        }
    }
}

/// A part of what follows a prefix.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    /// So many characters of a set: at least, at most.
    Run(Set, usize, usize),
    /// Exactly this character.
    Is(u8),
}
