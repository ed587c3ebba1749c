//! Names of regression tests, which contain the number of their correction.

use crate::model::{IdShape, Kind};

/// Names of a correction's regression test before and after, which contain its number.
pub(crate) fn tests(kind: Kind, from: &str, to: &str) -> Option<(String, String)> {
    let name = |id: &str| Some(format!("test_correction_{}", IdShape::of(kind, id)?.number));
    (kind == Kind::Correction).then(|| name(from).zip(name(to)))?
}
