//! Words that differ between two texts, for colours.

use similar::{Algorithm, capture_diff_slices};

/// Splits a text into lines of words; each word keeps the space behind it.
pub(super) fn words(text: &str) -> Vec<Vec<&str>> {
    text.lines()
        .map(|line| line.split_inclusive(' ').collect())
        .collect()
}

/// Returns for each word of both texts `true` if the other text lacks it there.
pub(super) fn changed(a: &[&str], b: &[&str]) -> (Vec<bool>, Vec<bool>) {
    let bare = |words: &[&str]| -> Vec<String> {
        let bare = words.iter().map(|word| word.trim_end().to_owned());
        bare.collect()
    };
    let mut of_a = vec![true; a.len()];
    let mut of_b = vec![true; b.len()];
    for same in capture_diff_slices(Algorithm::Patience, &bare(a), &bare(b)) {
        if let similar::DiffOp::Equal {
            old_index,
            new_index,
            len,
        } = same
        {
            of_a[old_index..old_index + len].fill(false);
            of_b[new_index..new_index + len].fill(false);
        }
    }
    (of_a, of_b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_words_that_differ_are_marked() {
        let check = |a: &str, b: &str, expected: (&str, &str)| {
            let (a, b): (Vec<&str>, Vec<&str>) = (words(a).concat(), words(b).concat());
            let (of_a, of_b) = changed(&a, &b);
            let marked = |words: &[&str], changed: &[bool]| -> String {
                let marked = words.iter().zip(changed).filter(|(_, changed)| **changed);
                let marked: Vec<&str> = marked.map(|(word, _)| word.trim_end()).collect();
                marked.join(" ")
            };
            assert_eq!(
                (marked(&a, &of_a).as_str(), marked(&b, &of_b).as_str()),
                expected
            );
        };
        check("npm i x", "pnpm i x", ("npm", "pnpm"));
        check(
            "pip install flask",
            "pip install --user flask",
            ("", "--user"),
        );
        check("a b c d", "x b y d z", ("a c", "x y z"));
        check("", "new", ("", "new"));
        check("same", "same", ("", ""));
        let long = "w ".repeat(600);
        check(&format!("{long}old"), &format!("{long}new"), ("old", "new"));
    }
}
