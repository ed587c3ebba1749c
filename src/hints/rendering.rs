//! Hints as text: the blocks of the source document, and their introductions.

use crate::guard::lines;
use crate::model::Kind;

use super::differing_name::{self, DifferingName};
use super::hint::Hint;

/// Hints in the source document's format; empty if there are none.
pub(crate) fn render_hints(hints: &[Hint]) -> String {
    if hints.is_empty() {
        return String::new();
    }
    "CODE HINTS (learned from prior errors -- use these patterns):\n".to_owned()
        + &render_blocks(hints)
}

/// Introduction of hints for a model: a statement of fact, because models distrust orders from
/// memory.
const STATEMENT: &str =
    "An agent met this error before. WRONG is what failed then, CORRECT is what worked.\n";

/// Hints in the source document's format, without a heading; empty if there are none.
pub(crate) fn render_blocks(hints: &[Hint]) -> String {
    let block = |hint: &Hint| {
        if hint.kind == Kind::Procedure {
            return render_steps(&hint.error_key, &hint.working_code);
        }
        let code = (hint.failing_code.as_str(), hint.working_code.as_str());
        render_block(&hint.error_key, code, &hint.differs)
    };
    hints.iter().map(block).collect()
}

/// Introduction of a hint before a call.
pub(crate) const STATEMENT_BEFORE: &str =
    "This call failed before in this project. WRONG is what failed then, CORRECT is what worked.\n";

/// Introduction of the steps of procedures.
const STEPS: &str = "WHAT HELPED are the steps that solved it.\n";

/// Introduction of hints of these kinds.
pub(crate) fn statement(kinds: impl IntoIterator<Item = Kind>) -> String {
    let (mut fixes, mut procedures) = (false, false);
    for kind in kinds {
        procedures |= kind == Kind::Procedure;
        fixes |= kind != Kind::Procedure;
    }
    match (fixes, procedures) {
        (false, false) => String::new(),
        (true, false) => STATEMENT.to_owned(),
        (true, true) => STATEMENT.to_owned() + STEPS,
        (false, true) => format!("An agent met this error before. {STEPS}"),
    }
}

/// Steps of a procedure in the form of a hint.
pub(crate) fn render_steps(error_key: &str, steps: &str) -> String {
    let mut text = error_line(error_key) + "  WHAT HELPED:\n";
    push_lines(&mut text, steps);
    text
}

fn error_line(error_key: &str) -> String {
    let key = lines(error_key).collect::<Vec<_>>().join(" ");
    format!("\n  ERROR: {key}\n")
}

fn push_lines(text: &mut String, code: &str) {
    for line in lines(code) {
        text.extend(["    ", line, "\n"]);
    }
}

/// One hint in that format, for failing and working code.
pub(crate) fn render_block(
    error_key: &str,
    (failing, working): (&str, &str),
    differs: &[DifferingName],
) -> String {
    let mut text = error_line(error_key);
    for (name, code) in [("WRONG", failing), ("CORRECT", working)] {
        text.extend(["  ", name, ":\n"]);
        push_lines(&mut text, code);
    }
    text + &differing_name::render(differs)
}

#[cfg(test)]
mod tests {
    use super::super::differing_name::NameSource;
    use super::*;

    fn hint(differs: Vec<DifferingName>) -> Hint {
        let fix = serde_json::json!({
            "fix_id": "FIX-001",
            "error_key": "TypeError: string indices must be integers",
            "failing_code": "print(drugs[\"mechanism\"])",
            "working_code": "for row in await drugs.search(\"kinase\"): print(row[\"mechanism\"])",
        });
        let fix = serde_json::from_value(fix).unwrap();
        Hint::of(fix, 1.0, "same error".to_owned(), differs)
    }

    #[test]
    fn hints_look_as_the_source_document_shows_them() {
        let hints = [hint(Vec::new())];
        let expected = "CODE HINTS (learned from prior errors -- use these patterns):\n\n  \
            ERROR: TypeError: string indices must be integers\n  WRONG:\n    \
            print(drugs[\"mechanism\"])\n  CORRECT:\n    \
            for row in await drugs.search(\"kinase\"): print(row[\"mechanism\"])\n";
        assert_eq!(render_hints(&hints), expected);
        assert!(expected.ends_with(&render_blocks(&hints)));
        assert_eq!(render_hints(&[]), "");
    }

    #[test]
    fn names_that_differ_are_told_below_the_code() {
        let hints = [hint(vec![DifferingName {
            then: "kinase".to_owned(),
            now: "protease".to_owned(),
            source: NameSource::Error,
        }])];
        let told = "  HERE: the error names `protease` where that one named `kinase`\n";
        assert!(render_blocks(&hints).ends_with(told));
    }
}
