//! JSON as text: finds the ends of values without interpreting them.
//!
//! The store must keep entries that a strict parser rejects (Python writes `NaN`, `Infinity` and
//! lone surrogates), and must preserve unchanged bytes. It therefore works on spans of text. Only
//! the structure is checked: brackets, quotes, commas and colons. The meaning of numbers and
//! escapes is left to the parser of the entry.
//!
//! No function recurses: text nested 10⁵ deep takes a long loop, not a stack overflow.
//!
//! - `spans`: ends of values. `object_fields`: fields of an object, on those spans.
//! - `walk`: ends of values in broken text.
//! - `edit`: changes of fields. `other_strings`: changes of string values. `layout`: changes of white space.

mod edit;
mod layout;
mod object_fields;
mod other_strings;
mod spans;
mod walk;

pub use edit::with_fields;
pub use edit::without_fields;
pub use layout::compact;
pub use layout::pretty;
pub use object_fields::{field, fields, string_field};
pub use other_strings::with_other_strings;
pub use spans::{Stop, skip_space, skip_value};
pub use walk::Walk;
