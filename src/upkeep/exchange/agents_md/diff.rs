//! Difference between two texts by lines, for a person who decides about a change.

/// Number of equal lines shown around a change.
const CONTEXT: usize = 2;
/// Maximum number of lines to compare one by one: longer changes are shown as a whole.
const LONGEST: usize = 2_000;

/// Returns the changed lines with `-` and `+`, after the lines around them; empty for equal texts.
pub(crate) fn diff(before: &str, after: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let begin = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let rest = a.len().min(b.len()) - begin;
    let tails = a.iter().rev().zip(b.iter().rev()).take(rest);
    let tail = tails.take_while(|(a, b)| a == b).count();
    let (old, new) = (&a[begin..a.len() - tail], &b[begin..b.len() - tail]);
    if old.is_empty() && new.is_empty() {
        return String::new();
    }
    let first = begin.saturating_sub(CONTEXT);
    let mut out = format!("@@ line {} @@\n", first + 1);
    let mut push = |mark: &str, lines: &[&str]| {
        for line in lines {
            out.extend([mark, line, "\n"]);
        }
    };
    push(" ", &a[first..begin]);
    for (mark, line) in edits(old, new) {
        push(mark, &[line]);
    }
    push(
        " ",
        &a[a.len() - tail..(a.len() - tail + CONTEXT).min(a.len())],
    );
    out
}

/// Shortest edit of the lines between: longest common subsequence.
fn edits<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(&'static str, &'t str)> {
    if old.len().max(new.len()) > LONGEST {
        let gone = old.iter().map(|line| ("-", *line));
        return gone.chain(new.iter().map(|line| ("+", *line))).collect();
    }
    let width = new.len() + 1;
    let mut length = vec![0_u16; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            length[i * width + j] = if old[i] == new[j] {
                length[(i + 1) * width + j + 1] + 1
            } else {
                length[(i + 1) * width + j].max(length[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut edits = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            edits.push((" ", old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len()
            || (i < old.len() && length[(i + 1) * width + j] >= length[i * width + j + 1])
        {
            edits.push(("-", old[i]));
            i += 1;
        } else {
            edits.push(("+", new[j]));
            j += 1;
        }
    }
    edits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_is_shown_with_its_neighbours() {
        let check = |before: &str, after: &str, expected: &str| {
            assert_eq!(diff(before, after), expected);
        };
        check("a\nb\n", "a\nb\n", "");
        check("", "a\n", "@@ line 1 @@\n+a\n");
        check(
            "1\n2\n3\nx\n4\ny\n5\n6\n7\n",
            "1\n2\n3\nz\n4\n5\n6\n7\n",
            "@@ line 2 @@\n 2\n 3\n-x\n+z\n 4\n-y\n 5\n 6\n",
        );
        check("a\n", "", "@@ line 1 @@\n-a\n");
    }
}
