//! Fits hints into a length limit.
//!
//! The worst hints are dropped first. Only if the best one alone is too long, its code is cut, with
//! a mark. The cut must leave its two sides different: a hint with equal WRONG and CORRECT sides is
//! misleading.

use memctl_redact::beginning;

use crate::lessons::telling::hint::Hint;

/// Minimum length of a cut side, in UTF-16 units.
const LEAST: usize = 16;

/// As many hints as fit, best first. `fits` decides for a list of hints.
pub(crate) fn within(mut hints: Vec<Hint>, fits: impl Fn(&[Hint]) -> bool) -> Vec<Hint> {
    while hints.len() > 1 && !fits(&hints) {
        hints.pop();
    }
    match hints.as_slice() {
        [best] if !fits(&hints) => cut(best, &fits).into_iter().collect(),
        _ => hints,
    }
}

/// Hint cut until it fits; `None` if it never does.
fn cut(hint: &Hint, fits: &impl Fn(&[Hint]) -> bool) -> Option<Hint> {
    let texts = [&hint.error_key, &hint.failing_code, &hint.working_code];
    let mut most = texts.iter().map(|text| text.len()).max().unwrap_or(0);
    while most >= LEAST {
        let cut = Hint {
            error_key: beginning(&hint.error_key, most).into_owned(),
            failing_code: beginning(&hint.failing_code, most).into_owned(),
            working_code: beginning(&hint.working_code, most).into_owned(),
            ..hint.clone()
        };
        if fits(std::slice::from_ref(&cut)) {
            return Some(cut).filter(|cut| cut.failing_code.trim() != cut.working_code.trim());
        }
        most = most * 7 / 8;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lessons::telling::hint::render_blocks;
    use crate::model::{Evidence, Kind, Trust};
    use memctl_redact::length;

    fn hint(id: &str, wrong: &str, right: &str) -> Hint {
        Hint {
            id: id.to_owned(),
            kind: Kind::Procedure,
            lesson: String::new(),
            error_key: "E".to_owned(),
            failing_code: wrong.to_owned(),
            working_code: right.to_owned(),
            success_output: String::new(),
            score: 1.0,
            confidence: 0.5,
            evidence: Evidence::default(),
            trust: Trust::Observed,
            why: String::new(),
            advice: Vec::new(),
        }
    }

    fn shown(hints: Vec<Hint>, limit: usize) -> Vec<Hint> {
        within(hints, |hints| length(&render_blocks(hints)) <= limit)
    }

    #[test]
    fn last_hint_is_dropped_before_a_better_one_is_cut() {
        let all = vec![hint("a", "x", "y"), hint("b", &"z".repeat(500), "y")];
        assert_eq!(shown(all.clone(), 1_000), all);
        assert_eq!(shown(all.clone(), 200), all[..1]);
    }

    #[test]
    fn best_hint_is_cut_inside_its_code() {
        let best = hint("a", &"x\n".repeat(500), "y");
        let found = shown(vec![best], 300);
        assert_eq!(found.len(), 1);
        assert!(found[0].failing_code.ends_with('…'), "{found:?}");
        assert_eq!(found[0].working_code, "y");
        assert!((250..=300).contains(&length(&render_blocks(&found))));
    }

    #[test]
    fn hint_whose_difference_was_cut_away_is_not_shown() {
        let same = "x".repeat(400);
        let best = hint("a", &format!("{same}1"), &format!("{same}2"));
        assert_eq!(shown(vec![best.clone()], 10_000).len(), 1);
        assert_eq!(shown(vec![best.clone()], 300), []);
        assert_eq!(shown(vec![best], 10), []);
    }
}
