//! Words of a text without case and marks, to tell if two texts say the same word for word.

/// Returns the words in lower case. Apostrophes stay: `don't` is one word.
pub(crate) fn plain_words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '\'');
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_marks_make_no_difference() {
        let check = |a: &str, b: &str, same: bool| {
            assert_eq!(plain_words(a) == plain_words(b), same, "{a} / {b}");
        };
        check("Use **pnpm**, never npm!", "use pnpm never `npm`", true);
        check("don't", "dont", false);
        check("use pnpm", "pnpm use", false);
        check("…", "", true);
    }
}
