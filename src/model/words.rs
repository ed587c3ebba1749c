//! Lenient reading of records that another program or an editor wrote with fields of another type.
//!
//! A confidence of `"0.9"` or a cost of `null` must not hide its record. A record that does not parse is
//! repaired. A field becomes the text or the number that it stands for, and a list loses the items that do not
//! fit. Any other field of a wrong type is left out. Serialization always uses the proper type.
//!
//! Here too: words of records, as closed sets of names and sets that other programs may extend.

use memctl_files::json;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize as _, Serializer};
use serde_json::value::RawValue;
use serde_json::{Error, Value};

/// Reads a type leniently whose derived code is for itself (`#[serde(remote = "Type")]`). Its own serialization
/// stays as it is.
macro_rules! lenient {
    ($($type:ty),+) => {$(
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let raw = Box::<serde_json::value::RawValue>::deserialize(from)?;
                let parse = |text: &str| {
                    <$type>::deserialize(&mut serde_json::Deserializer::from_str(text))
                };
                $crate::model::words::read(raw.get(), parse).map_err(serde::de::Error::custom)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                <$type>::serialize(self, to)
            }
        }
    )+};
}

pub(super) use lenient;

/// Parses a value, repaired if it has to be.
pub(super) fn read<T>(text: &str, parse: impl Fn(&str) -> Result<T, Error>) -> Result<T, Error> {
    parse(text).or_else(|error| {
        // A record without a field that it needs has no other field that is wrong.
        let fits = |object: &str| match parse(object) {
            Ok(_) => true,
            Err(error) => error.to_string().starts_with("missing field"),
        };
        if text.starts_with('{') {
            parse(&repaired(text, &fits))
        } else {
            Err(error)
        }
    })
}

/// Returns an object of the fields that fit, some of them in another form.
fn repaired(object: &str, fits: &dyn Fn(&str) -> bool) -> String {
    let mut fields = Vec::new();
    for (key, span) in json::fields(object.as_bytes()) {
        let (key, value) = (Value::from(&*key).to_string(), &object[span]);
        let fits = |value: &str| fits(&format!("{{{key}:{value}}}"));
        let value = match value.as_bytes() {
            _ if fits(value) => value.to_owned(),
            [b'"', ..] => value.trim_matches('"').trim().to_owned(),
            [b'[', ..] => {
                let mut items = json::items(value);
                items.retain(|item| fits(&format!("[{item}]")));
                format!("[{}]", items.join(","))
            }
            [b'0'..=b'9' | b'-' | b't' | b'f', ..] => format!("\"{value}\""),
            _ => continue,
        };
        if fits(&value) {
            fields.push(format!("{key}:{value}"));
        }
    }
    format!("{{{}}}", fields.join(","))
}

/// Writes a whole number without a fraction: `38`, not `38.0`.
#[expect(clippy::ref_option, reason = "the signature that `serialize_with` asks for")]
pub(super) fn plain_number<S: Serializer>(
    number: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "what is no small whole number is written as it is"
    )]
    match number {
        Some(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
            serializer.serialize_i64(*number as i64)
        }
        number => number.serialize(serializer),
    }
}

/// Reads a string; `null` is `None`. Keeps any other value as written, so that it does not count as
/// missing.
pub(super) fn text_or_none<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(match raw.get() {
        "null" => None,
        text => Some(serde_json::from_str(text).unwrap_or_else(|_| text.to_owned())),
    })
}

/// Reads a string; an empty one is `None`.
pub(super) fn optional_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.filter(|text| !text.is_empty()))
}

/// Reads a value of its type; anything else is the default, and does not hide the record.
pub(super) fn or_default<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

/// Defines an enum of names that are the same in files, JSON documents and options.
macro_rules! names {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every variant, in the order of the definition.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// Returns the name, as in files and JSON documents.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

/// Defines an enum of words that is read leniently: an unknown word is kept unchanged, and no word is
/// the default. Its schema has the known words as examples.
macro_rules! open_words {
    (
        $(#[$about:meta])* $name:ident, $schema:literal, $default:expr,
        { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $variant,)+
            /// Any other word.
            Other(String),
        }

        impl $name {
            /// Known words, in the order of the definition.
            pub const NAMES: &'static [&'static str] = &[$($word),+];

            /// Returns the word as written in the file.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Other(word) => word,
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                $default
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    "" => Self::default(),
                    $($word => Self::$variant,)+
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                String::deserialize(from).map(|word| Self::from(word.as_str()))
            }
        }

        $crate::model::words::schema!($name, {
            "type": "string", "description": $schema, "examples": Self::NAMES
        });
    };
}

/// Implements the schema of a type that is written as a text.
macro_rules! schema {
    ($type:ident, $schema:tt) => {
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}

pub(crate) use {names, open_words, schema};
