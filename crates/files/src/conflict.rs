//! Conflict markers: the lines with which git shows the two sides of a place that it could not merge.

/// Returns the position of the first line that opens a conflict, if another one closes it.
pub fn first(text: &[u8]) -> Option<usize> {
    let open = line_with(text, b"<<<<<<< ")?;
    line_with(&text[open..], b">>>>>>> ").map(|_| open)
}

fn line_with(text: &[u8], mark: &[u8]) -> Option<usize> {
    let mut found = memchr::memmem::find_iter(text, mark);
    found.find(|at| *at == 0 || text[at - 1] == b'\n')
}

/// Returns the two texts that were merged: without the lines of theirs, and without those of ours.
pub fn sides(text: &str) -> [String; 2] {
    let mut sides = [String::new(), String::new()];
    // Which sides the next line belongs to; none, for the common version that some settings of git show.
    let mut of: &[usize] = &[0, 1];
    for line in text.split_inclusive('\n') {
        let mark = line.get(..7).unwrap_or_default();
        of = match (mark, of) {
            ("<<<<<<<", [0, 1]) => &[0],
            ("|||||||", [0]) => &[],
            ("=======", [0] | []) => &[1],
            (">>>>>>>", [1]) => &[0, 1],
            _ => {
                for side in of {
                    sides[*side].push_str(line);
                }
                continue;
            }
        };
    }
    sides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_a_conflict_are_found_in_each_style_of_git() {
        let check = |text: &str, first_at: Option<usize>, ours: &str, theirs: &str| {
            assert_eq!(first(text.as_bytes()), first_at, "{text}");
            assert_eq!(sides(text), [ours, theirs], "{text}");
        };
        check("a\n=======\n", None, "a\n=======\n", "a\n=======\n");
        let plain = "a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> other\nd";
        check(plain, Some(2), "a\nb\nd", "a\nc\nd");
        let diff3 = "<<<<<<< ours\nb\n||||||| base\nx\n=======\n>>>>>>> theirs\n";
        check(diff3, Some(0), "b\n", "");
        assert_eq!(first(b"<<<<<<< HEAD\nb\n"), None);
        assert_eq!(first(b"x <<<<<<< HEAD\n>>>>>>> a\n"), None);
    }
}
