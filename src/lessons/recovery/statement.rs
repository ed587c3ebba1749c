//! Statements for a database: a corrected one must reach no more, and nothing else, than the failing one.

/// Beginnings of statements that change rows.
const WRITES: [&str; 6] = ["update", "delete", "insert", "merge", "replace", "upsert"];
/// Words that bound what a statement reaches.
const BOUNDS: [&str; 4] = ["where", "limit", "having", "on"];
/// Words that make a statement destroy something.
const DESTROYS: [&str; 4] = ["drop", "truncate", "delete", "cascade"];

/// Returns `true` if a corrected statement may reach more rows, other ones, or more of them than the failing one: it
/// lost a bound, changes rows by other words, or destroys what the failing one left.
pub(super) fn reaches_more(old: &str, new: &str) -> bool {
    let (before, after) = (words(old), words(new));
    let count = |words: &[String], names: &[&str]| {
        words
            .iter()
            .filter(|word| names.contains(&word.as_str()))
            .count()
    };
    let is_write = before
        .iter()
        .chain(&after)
        .any(|word| WRITES.contains(&word.as_str()));
    let is_bounded = |names: &[&str]| count(&after, names) >= count(&before, names);
    // Quotes and signs are no words, and `lastname` is written `last_name`.
    let plain = |words: &[String]| words.concat().replace('_', "");
    is_write && plain(&before) != plain(&after)
        || !BOUNDS.iter().all(|bound| is_bounded(&[bound]))
        || count(&after, &DESTROYS) > count(&before, &DESTROYS)
}

/// Words of a statement in lower case, without its signs.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corrected_statement_keeps_its_bounds_and_its_words() {
        let check = |old: &str, new: &str, expected: bool| {
            assert_eq!(reaches_more(old, new), expected, "{old} -> {new}");
        };
        check(
            "update a set b = 1 where order = 4",
            "update a set b = 1 where \"order\" = 4",
            false,
        );
        check(
            "update a set b = 1 where lastid = 4",
            "update a set b = 1 where last_id = 4",
            false,
        );
        check(
            "insert into a values (1 2)",
            "insert into a values (1, 2)",
            false,
        );
        check(
            "alter table a add column b",
            "alter table a add column b text",
            false,
        );
        check(
            "select * from order limit 5",
            "select * from \"order\" limit 5",
            false,
        );
        check("update a set b = 1 where c = 4", "update a set b = 1", true);
        check(
            "update a set b = 1 where c = 4",
            "update a set b = 1 where true",
            true,
        );
        check("delete from a where c = 4", "delete from a", true);
        check(
            "insert into a values (1)",
            "insert into a values (1) on conflict do nothing",
            true,
        );
        check(
            "select * from order limit 5",
            "select * from \"order\"",
            true,
        );
        check("alter table a add b", "alter table a drop b", true);
    }
}
