//! Lists of objects that are spread over attributes with numbered names.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Maximum depth of a field; deeper ones are ignored.
const DEEPEST: usize = 8;

/// Values below a prefix, ordered by the number after it: `PREFIX0.a.b` is `{"a": {"b": …}}`.
/// Objects with only numeric names are lists.
pub(super) fn numbered(attributes: &Map<String, Value>, prefix: &str) -> Vec<Value> {
    let below = attributes.iter().filter_map(|(key, value)| {
        let path: Vec<&str> = key.strip_prefix(prefix)?.split('.').collect();
        (path.len() <= DEEPEST).then_some((path, value))
    });
    match tree(below.collect()) {
        Value::Array(values) => values,
        _ => Vec::new(),
    }
}

/// Values with their remaining paths.
type Paths<'a> = Vec<(Vec<&'a str>, &'a Value)>;

/// Builds a tree from values and paths.
fn tree(paths: Paths<'_>) -> Value {
    if let [(path, value)] = paths.as_slice()
        && path.is_empty()
    {
        return (*value).clone();
    }
    let mut fields: BTreeMap<&str, Paths<'_>> = BTreeMap::new();
    for (path, value) in paths {
        if let Some((first, rest)) = path.split_first() {
            let below = fields.entry(first).or_default();
            below.push((rest.to_vec(), value));
        }
    }
    let number = |field: &str| field.parse::<usize>().ok();
    if fields.keys().all(|field| number(field).is_some()) {
        let mut values: Vec<_> = fields.into_iter().collect();
        values.sort_by_key(|(field, _)| number(field));
        return values.into_iter().map(|(_, below)| tree(below)).collect();
    }
    let fields = fields.into_iter();
    fields
        .map(|(field, below)| (field.to_owned(), tree(below)))
        .collect()
}
