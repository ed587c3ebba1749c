//! Checks of rules: which calls a rule is about.
//!
//! - `pattern`: the pattern language for words and paths.
//! - `call`: a call of an agent as its commands and paths, and the match with a check.
//! - `proposal`: a check from the words of a rule, for a person to confirm. `rule_words`, `named_call`: its
//!   words, and the calls that they name.
//!
//! A check is a reminder and no security boundary: nothing is expanded or evaluated, and a call in
//! another form (`$(…)`, `eval`, a script) is not seen.
//!
//! Deliberately absent: trust. The store decides if a check acts.

mod call;
mod named_call;
mod pattern;
mod proposal;
mod rule_words;

pub use call::Call;
pub use pattern::{Refused, refused};
pub use proposal::{NoProposal, Proposal, propose};

use crate::model::Check;

/// Version of the index terms. A change invalidates saved tables.
pub const SCHEME: u64 = 1;

/// Term of checks that any call may match.
const ANY: u64 = 1;
/// Term of checks that only calls with written paths may match.
const WRITES: u64 = 2;

/// Index terms of a check: a call that matches it has at least one of them.
pub fn terms(check: &Check) -> Vec<u64> {
    if check.is_blank() {
        return Vec::new();
    }
    let program = check.command.split_whitespace().next();
    match program {
        Some(program) if !pattern::is_open(program) => vec![program_term(program)],
        None if check.tool.is_empty() => vec![WRITES],
        _ => vec![ANY],
    }
}

/// Index terms of the checks that a call may match.
pub fn terms_of_call(call: &Call) -> Vec<u64> {
    let mut terms = vec![ANY];
    if call.writes() {
        terms.push(WRITES);
    }
    terms.extend(call.programs().map(program_term));
    terms.sort_unstable();
    terms.dedup();
    terms
}

/// FNV-1a hash of a program's name, apart from the terms above. A collision only costs one
/// comparison.
fn program_term(program: &str) -> u64 {
    let hash = program
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    hash | 4
}
