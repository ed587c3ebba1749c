//! What a rule says, taken apart: what it is for, what it is against, and when.
//!
//! `Avoid enums; use maps instead` is against `enum` and for `map`; `Prefer A over B` is for A and
//! against B; `never delete comments` is for `comment`, because deleting is against. Similarity
//! alone cannot tell a duplicate from a contradiction, and this can.
//!
//! A rule is cut into clauses (`clause`), and each clause is read from left to right (`reader`). Word
//! lists, English. A rule in another language has one claim, for all of its words.
//!
//! Deliberately absent: comparing two rules.

mod clause;
mod reader;

use std::collections::BTreeSet;

use crate::search::words;

use clause::clauses;
use reader::read_clause;

/// Words, as the search stems them; names of code as they are written, in lower case.
pub(super) type Terms = BTreeSet<String>;

/// For or against something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stance {
    For,
    Against,
}

impl Stance {
    pub(super) const fn opposite(self) -> Self {
        match self {
            Self::For => Self::Against,
            Self::Against => Self::For,
        }
    }
}

/// One demand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) stance: Stance,
    /// What is demanded: the things that stand before the first preposition, each by itself.
    pub(super) things: Vec<Terms>,
    /// The circumstances: what stands behind it.
    pub(super) about: Terms,
    /// Where or for what it holds: what stands behind `for`, `in`, `when` and the like.
    pub(super) scope: Terms,
    /// Whether it leaves exceptions open.
    pub(super) exception: bool,
}

impl Claim {
    fn new(stance: Stance) -> Self {
        Self {
            stance,
            things: vec![Terms::new()],
            about: Terms::new(),
            scope: Terms::new(),
            exception: false,
        }
    }

    /// All things together.
    pub(super) fn whole(&self) -> Terms {
        self.things.iter().flatten().cloned().collect()
    }

    /// All things and their circumstances.
    pub(super) fn all(&self) -> Terms {
        let mut all = self.whole();
        all.extend(self.about.iter().cloned());
        all.extend(self.scope.iter().cloned());
        all
    }

    fn is_empty(&self) -> bool {
        self.things.iter().all(Terms::is_empty) && self.about.is_empty() && self.scope.is_empty()
    }
}

/// Takes a rule apart. Never empty for a text that has a word in it.
pub(super) fn claims(rule: &str) -> Vec<Claim> {
    let mut out: Vec<Claim> = Vec::new();
    let clauses = clauses(rule);
    for (i, clause) in clauses.iter().enumerate() {
        if clause.is_title() && i + 1 < clauses.len() {
            continue;
        }
        // In lists of mistakes, `Use A — use B` means B and not A.
        if clause.after_dash
            && clause.begins_with("use")
            && let [only] = &mut out[..]
        {
            only.stance = Stance::Against;
        }
        read_clause(&clause.tokens, &mut out);
    }
    out.retain(|claim| !claim.is_empty());
    if out.is_empty() {
        let mut claim = Claim::new(Stance::For);
        claim.things = vec![words(rule).into_iter().collect()];
        out.push(claim);
    }
    out
}

/// The numbers that a text demands, as they are written, in their order.
pub(super) fn numbers(rule: &str) -> Vec<String> {
    rule.split(|c: char| !c.is_alphanumeric() && c != '.')
        .map(|token| token.trim_matches('.'))
        .filter(|token| !token.is_empty() && token.chars().all(|c| c.is_ascii_digit() || c == '.'))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `+a b/c @scope !` for each claim.
    fn read(rule: &str) -> Vec<String> {
        let join = |terms: &Terms| terms.iter().cloned().collect::<Vec<_>>().join(" ");
        claims(rule)
            .iter()
            .map(|claim| {
                let sign = if claim.stance == Stance::For {
                    "+"
                } else {
                    "-"
                };
                let things: Vec<String> = claim.things.iter().map(join).collect();
                let mut out = format!("{sign}{}", things.join("/"));
                if !claim.scope.is_empty() {
                    out.push_str(" @");
                    out.push_str(&join(&claim.scope));
                }
                if claim.exception {
                    out.push('!');
                }
                out
            })
            .collect()
    }

    #[test]
    fn what_a_rule_is_for_and_against() {
        let check = |rule: &str, expected: &[&str]| assert_eq!(read(rule), expected, "{rule}");
        check("Avoid enums; use maps instead.", &["-enum", "+map"]);
        check("Prefer tuples over lists", &["+tupl", "-list"]);
        check("Use `uv`, not pip", &["+uv", "-pip"]);
        check("NEVER delete old logs", &["+log"]);
        check("Never push on Fridays", &["-push @friday"]);
        check("No globals unless unavoidable", &["-global!"]);
        check("Use tabs for Makefiles", &["+tab @makefil"]);
        check(
            "When writing SQL, use upper case",
            &["+case upper @sql write"],
        );
        check(
            "Do not create notes or README.md files",
            &["-note/file readm"],
        );
        check(
            "Use `print` — use `log` and a level",
            &["-print", "+log/level"],
        );
        check("日付はISO形式で。", &["+日付はiso形式で"]);
    }

    #[test]
    fn numbers_are_read_as_written() {
        assert_eq!(numbers("at most 3 items, 1.5 each (v2)"), ["3", "1.5"]);
    }
}
