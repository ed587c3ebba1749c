//! JSON as text: finds the ends of values without interpreting them.
//!
//! The store must keep entries that a strict parser rejects (Python writes `NaN`, `Infinity` and
//! lone surrogates), and must preserve unchanged bytes. It therefore works on spans of text. Only
//! the structure is checked: brackets, quotes, commas and colons. The meaning of numbers and
//! escapes is left to the parser of the entry.
//!
//! No function recurses: text nested 10⁵ deep takes a long loop, not a stack overflow.
//!
//! - `spans`: ends of values, and the fields of an object.
//! - `edit`: changes of fields, of string values, and of white space.

mod edit;
mod spans;

pub use edit::{compact, pretty, with_fields, with_other_strings, without_fields};
pub use spans::{Stop, field, fields, item_spans, items, skip_space, skip_value, string_field};
