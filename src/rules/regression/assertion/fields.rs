//! Words of the names of fields.

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
    use super::*;

    #[test]
    fn names_are_split_into_singular_words() {
        let check = |name: &str, expected: &[&str]| assert_eq!(parts(name), expected, "{name}");
        check("lineItems", &["line", "item"]);
        check("overall_score", &["overall", "score"]);
        check("categories", &["category"]);
        check("status", &["status"]);
    }
}
