//! Extraction of claims and numbers from the text of a rule.

use crate::search::words;

use super::clause::clauses;
use super::reader::read_clause;
use super::{Claim, Stance};

/// Claims of a rule. Not empty for a text with at least one word.
pub(in super::super) fn claims(rule: &str) -> Vec<Claim> {
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

/// Numbers in a rule, as written and in order.
pub(in super::super) fn numbers(rule: &str) -> Vec<String> {
    rule.split(|c: char| !c.is_alphanumeric() && c != '.')
        .map(|token| token.trim_matches('.'))
        .filter(|token| !token.is_empty() && token.chars().all(|c| c.is_ascii_digit() || c == '.'))
        .map(str::to_owned)
        .collect()
}
