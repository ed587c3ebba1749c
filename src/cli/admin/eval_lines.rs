//! Lines of the data sets that `eval` reads.

use std::path::Path;

use serde_json::{Map, Value};

use crate::model::error::UserError;
use memctl_files::named;

/// Reads the objects of a file, one per line; skips empty lines.
pub(crate) fn lines<T>(
    path: &Path,
    read: impl Fn(&Map<String, Value>) -> Result<T, String>,
) -> Result<Vec<T>, UserError> {
    let unreadable = |source| crate::store::workspace::Error::Unreadable {
        path: path.to_owned(),
        source,
    };
    let content = named::read_any_text(path).map_err(unreadable)?;
    let mut out = Vec::new();
    for (number, line) in (1..).zip(content.trim_start_matches('\u{feff}').lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let object: Result<Map<String, Value>, _> = serde_json::from_str(line);
        let read = object
            .map_err(|_| "not a JSON object".to_owned())
            .and_then(|object| read(&object));
        out.push(read.map_err(|why| {
            UserError::input(
                format!("cannot read `{}`, line {number}: {why}", path.display()),
                "memctl eval retrieval --help",
            )
        })?);
    }
    Ok(out)
}

/// Returns a field that holds text or a number, as text.
pub(crate) fn text(object: &Map<String, Value>, field: &str) -> Result<String, String> {
    match object.get(field) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Number(number)) => Ok(number.to_string()),
        Some(_) => Err(format!("`{field}` is not a string")),
        None => Err(format!("`{field}` is missing")),
    }
}
