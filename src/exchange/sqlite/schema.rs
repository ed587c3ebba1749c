//! Parser for the columns of a `CREATE TABLE` statement.

/// Stored column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    /// `true` for the row id, which the record stores as `NULL`.
    pub(super) is_row_id: bool,
}

/// SQL token.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    /// Bare word, in upper case and as written.
    Bare(String, String),
    /// Quoted name or text.
    Quoted(String),
    /// Any other character.
    Mark(char),
}

/// Stored columns; `None` for a virtual table or one `WITHOUT ROWID`.
pub(super) fn parse(sql: &str) -> Option<Vec<Column>> {
    let words = words(sql);
    let is_bare = |word: &Word, name: &str| matches!(word, Word::Bare(upper, _) if upper == name);
    if words.iter().take(3).any(|word| is_bare(word, "VIRTUAL")) {
        return None;
    }
    let open = words.iter().position(|word| *word == Word::Mark('('))?;
    let mut definitions: Vec<Vec<Word>> = vec![Vec::new()];
    let mut depth = 1;
    let mut rest = &words[open + 1..];
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        match word {
            Word::Mark('(') => depth += 1,
            Word::Mark(')') => depth -= 1,
            Word::Mark(',') if depth == 1 => {
                definitions.push(Vec::new());
                continue;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
        definitions.last_mut()?.push(word.clone());
    }
    if depth != 0 || rest.iter().any(|word| is_bare(word, "WITHOUT")) {
        return None;
    }
    Some(
        definitions
            .iter()
            .filter_map(|words| column(words))
            .collect(),
    )
}

/// Column of a definition; `None` for a table constraint, and for a generated column that is not
/// stored.
fn column(words: &[Word]) -> Option<Column> {
    let name = match words.first()? {
        Word::Quoted(name) => name.clone(),
        Word::Bare(upper, name) => match upper.as_str() {
            "CONSTRAINT" | "PRIMARY" | "UNIQUE" | "CHECK" | "FOREIGN" => return None,
            _ => name.clone(),
        },
        Word::Mark(_) => return None,
    };
    let has = |name: &str| {
        words[1..]
            .iter()
            .any(|word| matches!(word, Word::Bare(upper, _) if upper == name))
    };
    let computed = words.windows(2).any(|pair| {
        matches!(&pair[0], Word::Bare(upper, _) if upper == "AS") && pair[1] == Word::Mark('(')
    });
    if computed && !has("STORED") {
        return None;
    }
    let is_integer = matches!(words.get(1), Some(Word::Bare(upper, _)) if upper == "INTEGER")
        && !matches!(words.get(2), Some(Word::Mark('(')));
    Some(Column {
        is_row_id: is_integer && has("PRIMARY"),
        name,
    })
}

fn words(sql: &str) -> Vec<Word> {
    let chars: Vec<char> = sql.chars().collect();
    let mut words = Vec::new();
    let mut at = 0;
    let until = |from: usize, end: &dyn Fn(usize) -> bool| {
        (from..chars.len()).find(|i| end(*i)).unwrap_or(chars.len())
    };
    while let Some(&c) = chars.get(at) {
        let next = chars.get(at + 1).copied();
        match c {
            '-' if next == Some('-') => at = until(at, &|i| chars[i] == '\n'),
            '/' if next == Some('*') => {
                at = until(at + 2, &|i| {
                    chars[i] == '*' && chars.get(i + 1) == Some(&'/')
                }) + 2;
            }
            '\'' | '"' | '`' | '[' => {
                let close = if c == '[' { ']' } else { c };
                let mut text = String::new();
                at += 1;
                while let Some(&inside) = chars.get(at) {
                    at += 1;
                    if inside == close {
                        // A doubled quotation mark is part of the text.
                        if close == ']' || chars.get(at) != Some(&close) {
                            break;
                        }
                        at += 1;
                    }
                    text.push(inside);
                }
                words.push(Word::Quoted(text));
            }
            c if c.is_whitespace() => at += 1,
            c if c.is_alphanumeric() || c == '_' => {
                let end = until(at, &|i| {
                    !(chars[i].is_alphanumeric() || matches!(chars[i], '_' | '$'))
                });
                let word: String = chars[at..end].iter().collect();
                words.push(Word::Bare(word.to_uppercase(), word));
                at = end;
            }
            c => {
                words.push(Word::Mark(c));
                at += 1;
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sql: &str, expected: Option<&[&str]>) {
        let names = parse(sql).map(|columns| {
            columns
                .into_iter()
                .map(|c| format!("{}{}", if c.is_row_id { "*" } else { "" }, c.name))
                .collect::<Vec<_>>()
        });
        let expected = expected.map(|names| names.iter().map(|n| (*n).to_owned()).collect());
        assert_eq!(names, expected, "{sql}");
    }

    #[test]
    fn columns_are_found_among_everything_else() {
        check(
            "CREATE TABLE \"t\" (id INTEGER PRIMARY KEY AUTOINCREMENT, a TEXT CHECK(a IN ('x,(', 'y')) NOT NULL, -- b, c\n \
             \"the b\" DECIMAL(10, 2) DEFAULT (1+(2)), [c d] TEXT DEFAULT 'it''s, (', FOREIGN KEY(a) REFERENCES u(a), UNIQUE (a))",
            Some(&["*id", "a", "the b", "c d"]),
        );
        check(
            "CREATE TABLE t(a, b AS (a+1), c INT GENERATED ALWAYS AS (a) STORED /* , d */)",
            Some(&["a", "c"]),
        );
        check(
            "create table t (id integer, primary key (id))",
            Some(&["id"]),
        );
        check("CREATE TABLE t (a) STRICT", Some(&["a"]));
        check("CREATE TABLE t (a PRIMARY KEY) WITHOUT ROWID", None);
        check("CREATE VIRTUAL TABLE t USING fts5(a)", None);
        check("CREATE TABLE t (a", None);
        check("", None);
    }
}
