//! Attributes that say with numbers in their names what is a list of objects.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// No message has more fields in a row than this; what has is not looked at further.
const DEEPEST: usize = 8;

/// The values below a prefix, by the numbers behind it: `PREFIX0.a.b` is `{"a": {"b": …}}`. What has numbers inside is
/// a list.
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

/// Values by what is left of their paths.
type Paths<'a> = Vec<(Vec<&'a str>, &'a Value)>;

/// Values by their paths, as a tree.
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
