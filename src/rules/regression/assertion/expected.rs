//! Assertions from an expected output.
//!
//! Only added fields and changed decisions count (a truth value, a label, a computed number). Prose
//! and numbers that are judgements are skipped, because two good answers differ in them.

use serde_json::Value;

use super::{Assertion, Check, Path, same, whole};

/// Field names of numbers that are judgements.
const JUDGEMENTS: &[&str] = &[
    "score", "confidence", "rating", "probability", "likelihood", "similarity", "relevance",
    "weight", "estimate", "sentiment", "quality", "fit",
];

/// Assertions from an expected output. Skips the paths in `covered`, which other assertions check.
pub(crate) fn derive(output: &Value, expected: &Value, covered: &[Path]) -> Vec<Assertion> {
    let (output, expected) = (whole(output), whole(expected));
    let mut checks = Vec::new();
    compare(output, expected, &Path::root(), false, &mut checks);
    checks.retain(|check| !covered.contains(check.path()));
    checks
        .into_iter()
        .map(|check| Assertion {
            check,
            said: "--expected".to_owned(),
        })
        .collect()
}

fn compare(output: &Value, expected: &Value, path: &Path, judged: bool, checks: &mut Vec<Check>) {
    match (output, expected) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, value) in after {
                let path = path.field(name);
                let judged = judged
                    || parts(name)
                        .iter()
                        .any(|part| JUDGEMENTS.contains(&part.as_str()));
                match before.get(name) {
                    Some(old) => compare(old, value, &path, judged, checks),
                    None if value.is_null() => {}
                    None if is_decision(value, judged) => checks.push(equals(path, value)),
                    None => checks.push(Check::Required { path }),
                }
            }
        }
        _ if same(output, expected) || !is_decision(expected, judged) => {}
        _ => checks.push(equals(path.clone(), expected)),
    }
}

fn equals(path: Path, value: &Value) -> Check {
    Check::Equals {
        path,
        value: value.clone(),
    }
}

fn is_decision(value: &Value, judged: bool) -> bool {
    match value {
        Value::Bool(_) => true,
        Value::Number(_) => !judged,
        // Label without white space.
        Value::String(text) => {
            !text.is_empty() && text.len() <= 40 && !text.contains(char::is_whitespace)
        }
        _ => false,
    }
}

/// Words of a name, lower-case and singular, so that `lineItems` equals "line items".
pub(crate) fn parts(name: &str) -> Vec<String> {
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
    fn decisions_are_demanded_and_judgements_are_not() {
        let before = json!({"total": 117, "overall_score": 72, "scores": {"skills": 80}, "status": "open", "note": "a b",
            "ok": false, "same": 1, "list": [1]});
        let after = json!({"total": 118.5, "overall_score": 54, "scores": {"skills": 60}, "status": "on_hold", "note": "c d",
            "ok": true, "same": 1.0, "list": [2], "reason": "because of it", "tag": "x"});
        let found: Vec<Value> = derive(&before, &after, &["$.tag".parse().unwrap()])
            .iter()
            .map(|assertion| json!(assertion.check))
            .collect();
        assert_eq!(
            found,
            [
                json!({"type": "equals", "path": "$.total", "value": 118.5}),
                json!({"type": "equals", "path": "$.status", "value": "on_hold"}),
                json!({"type": "equals", "path": "$.ok", "value": true}),
                json!({"type": "required", "path": "$.reason"}),
            ]
        );
        assert_eq!(derive(&json!("spam"), &json!("ham"), &[]).len(), 1);
        assert_eq!(derive(&json!("spam"), &json!("a whole sentence"), &[]), []);
    }

    #[test]
    fn names_are_split_into_singular_words() {
        let check = |name: &str, expected: &[&str]| assert_eq!(parts(name), expected, "{name}");
        check("lineItems", &["line", "item"]);
        check("overall_score", &["overall", "score"]);
        check("categories", &["category"]);
        check("status", &["status"]);
    }
}
