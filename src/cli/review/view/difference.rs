//! Words that differ between two texts, for colours.

/// Maximum product of the numbers of words that are compared word by word. Longer texts share only
/// their beginning and their end.
const LARGEST: usize = 250_000;

/// Splits a text into lines of words; each word keeps the space behind it.
pub(super) fn words(text: &str) -> Vec<Vec<&str>> {
    text.lines()
        .map(|line| line.split_inclusive(' ').collect())
        .collect()
}

/// Returns for each word of both texts `true` if the other text lacks it there.
pub(super) fn changed(a: &[&str], b: &[&str]) -> (Vec<bool>, Vec<bool>) {
    let same = |a: &str, b: &str| a.trim_end() == b.trim_end();
    let begin = a.iter().zip(b).take_while(|(a, b)| same(a, b)).count();
    let rest = a.len().min(b.len()) - begin;
    let pairs = a.iter().rev().zip(b.iter().rev()).take(rest);
    let end = pairs.take_while(|(a, b)| same(a, b)).count();
    let (old, new) = (&a[begin..a.len() - end], &b[begin..b.len() - end]);
    let mut of_a = vec![false; a.len()];
    let mut of_b = vec![false; b.len()];
    of_a[begin..a.len() - end].fill(true);
    of_b[begin..b.len() - end].fill(true);
    if old.len().saturating_mul(new.len()) > LARGEST {
        return (of_a, of_b);
    }
    // Lengths of the longest common subsequences of the rests.
    let columns = new.len() + 1;
    let mut lengths = vec![0_u32; (old.len() + 1) * columns];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            lengths[i * columns + j] = if same(old[i], new[j]) {
                lengths[(i + 1) * columns + j + 1] + 1
            } else {
                lengths[(i + 1) * columns + j].max(lengths[i * columns + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old.len() && j < new.len() {
        if same(old[i], new[j]) {
            (of_a[begin + i], of_b[begin + j]) = (false, false);
            (i, j) = (i + 1, j + 1);
        } else if lengths[(i + 1) * columns + j] >= lengths[i * columns + j + 1] {
            i += 1;
        } else {
            j += 1;
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
