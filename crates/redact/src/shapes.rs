//! Key shapes: character sets and runs of them, as data.
//!
//! `scan` searches a text for all shapes at once, `body` reads a key across line breaks, and
//! `patterns` assigns shapes to vendors.

/// Character set of a part of a key.
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
    /// `A-Za-z0-9+/=_-.~%`: characters of header and query values.
    Header,
    /// `A-Za-z0-9./`: the crypt(3) alphabet.
    Crypt,
    /// `A-Za-z0-9=,`: parameters before a hash.
    Params,
}

impl Set {
    /// Returns the set of this name in `vendors.tsv`.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "digits" => Self::Digits,
            "hex" => Self::Hex,
            "upper" => Self::Upper,
            "alnum" => Self::Alnum,
            "word" => Self::Word,
            "dotted" => Self::Dotted,
            "base64" => Self::Base64,
            "header" => Self::Header,
            "crypt" => Self::Crypt,
            "params" => Self::Params,
            _ => return None,
        })
    }

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

/// Part of a key after its prefix.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    /// Run of a set, with minimum and maximum length.
    Run(Set, usize, usize),
    /// One fixed byte.
    Is(u8),
}
