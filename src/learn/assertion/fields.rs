//! Fields of an output, and lookup of a field by words.

use serde_json::Value;

use super::Path;

/// Field of an output.
#[derive(Debug, Clone)]
pub(super) struct Field<'v> {
    pub(super) path: Path,
    /// Name; empty for the items of an array.
    pub(super) name: String,
    pub(super) depth: usize,
    pub(super) value: &'v Value,
}

/// All fields of an output, outermost first. For an array, those of its first item.
pub(super) fn fields(output: &Value) -> Vec<Field<'_>> {
    fn walk<'v>(value: &'v Value, path: &Path, depth: usize, all: &mut Vec<Field<'v>>) {
        match value {
            Value::Object(object) => {
                for (name, value) in object {
                    let path = path.field(name);
                    all.push(Field {
                        path: path.clone(),
                        name: name.clone(),
                        depth,
                        value,
                    });
                    walk(value, &path, depth + 1, all);
                }
            }
            Value::Array(items) => {
                if let Some(first) = items.first().filter(|first| first.is_object()) {
                    walk(first, &path.each(), depth + 1, all);
                }
            }
            _ => {}
        }
    }
    let mut all = Vec::new();
    walk(output, &Path::root(), 0, &mut all);
    all.sort_by_key(|field| field.depth);
    all
}

/// Field that a word or a phrase means; `None` if ambiguous.
///
/// A full match of the name comes first, then a match of its last word: a "score" can be
/// `overall_score`, but not `score_reason`. If several match, the least nested one is meant,
/// provided that it is the only one at its depth.
pub(super) fn meant<'f, 'v>(
    fields: &'f [Field<'v>],
    word: &str,
    fits: impl Fn(&Value) -> bool,
) -> Option<&'f Field<'v>> {
    let wanted = parts(word);
    if wanted.is_empty() {
        return None;
    }
    let of = |same: &dyn Fn(&[String]) -> bool| {
        let mut found = fields
            .iter()
            .filter(|field| fits(field.value) && same(&parts(&field.name)));
        let first = found.next()?;
        let alone = found.next().is_none_or(|second| second.depth > first.depth);
        Some(alone.then_some(first))
    };
    of(&|name| name == wanted)
        .or_else(|| {
            of(&|name| wanted.len() == 1 && name.len() > 1 && name.last() == wanted.first())
        })
        .flatten()
}

/// Words of a name, lower-case and singular, so that `lineItems` equals "line items".
pub(super) fn parts(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut after_lower = false;
    let mut open = false;
    for c in name.chars() {
        if !c.is_alphanumeric() {
            open = false;
            continue;
        }
        if !open || (after_lower && c.is_uppercase()) {
            words.push(String::new());
        }
        open = true;
        after_lower = c.is_lowercase() || c.is_numeric();
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    words.into_iter().map(singular).collect()
}

fn singular(word: String) -> String {
    if let Some(stem) = word.strip_suffix("ies").filter(|stem| stem.len() > 2) {
        return format!("{stem}y");
    }
    match word.strip_suffix('s') {
        Some(stem) if stem.len() > 2 && !stem.ends_with(['s', 'u', 'i']) => stem.to_owned(),
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_word_means_one_field_or_none() {
        let output = json!({"overall_score": 72, "scores": {"fit_score": 1, "skills": 2}, "score_reason": "x",
            "lineItems": [{"unit_price": 3}], "status": "new", "a_rate": 1, "b_rate": 2});
        let all = fields(&output);
        let check = |word: &str, expected: Option<&str>| {
            let found = meant(&all, word, Value::is_number).map(|field| field.path.to_string());
            assert_eq!(found.as_deref(), expected, "{word}");
        };
        check("score", Some("$.overall_score"));
        check("overall score", Some("$.overall_score"));
        check("Overall_Score", Some("$.overall_score"));
        check("skill", Some("$.scores.skills"));
        check("price", Some("$.lineItems[*].unit_price"));
        check("rate", None);
        check("overall", None);
        check("reason", None);
        check("status", None);
        check("", None);
        assert_eq!(parts("line items"), parts("lineItems"));
        assert_eq!(parts("status"), ["status"]);
    }
}
