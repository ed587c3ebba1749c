//! Claims of a rule: what it demands, what it forbids, and when.
//!
//! `Avoid enums; use maps instead` is against `enum` and for `map`; `Prefer A over B` is for A and
//! against B; `never delete comments` is for `comment`, because deleting is itself against. Claims
//! distinguish a duplicate from a contradiction, which similarity alone cannot.
//!
//! `clause` splits a rule into clauses, and `reader` reads each from left to right, with English
//! word lists. A rule in another language becomes one claim with all of its words.
//!
//! Rules are compared in `conflict`.

mod clause;
mod extract;
mod reader;

use std::collections::BTreeSet;

pub(super) use extract::{claims, numbers};

/// Stemmed words, as in search; code names in lower case.
pub(super) type Terms = BTreeSet<String>;

/// Direction of a claim.
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
    /// Things demanded: the words before the first preposition, one set per thing.
    pub(super) things: Vec<Terms>,
    /// Circumstances: the words after other prepositions.
    pub(super) about: Terms,
    /// Scope: the words after `for`, `in`, `when` and the like.
    pub(super) scope: Terms,
    /// Allows exceptions.
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

    /// Terms of all things.
    pub(super) fn whole(&self) -> Terms {
        self.things.iter().flatten().cloned().collect()
    }

    /// Terms of things, circumstances and scope.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Each claim as `+a b/c @scope !`.
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
