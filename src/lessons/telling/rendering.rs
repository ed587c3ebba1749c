//! Hints as text: the blocks of the source document, and lessons in one line.

use memctl_redact::lines;

use super::hint::Hint;

/// Hints in the source document's format; empty if there are none.
pub(crate) fn render_hints(hints: &[Hint]) -> String {
    if hints.is_empty() {
        return String::new();
    }
    "CODE HINTS (learned from prior errors -- use these patterns):\n".to_owned()
        + &render_blocks(hints)
}

/// Hints in the source document's format, without a heading; empty if there are none.
pub(crate) fn render_blocks(hints: &[Hint]) -> String {
    let block = |hint: &Hint| {
        let code = (hint.failing_code.as_str(), hint.working_code.as_str());
        render_block(&hint.lesson, &hint.error_key, code)
    };
    hints.iter().map(block).collect()
}

/// One hint: its lesson if it has one, else failing and working code, else the steps of a procedure
/// without a failing call.
pub(crate) fn render_block(
    lesson: &str,
    error_key: &str,
    (failing, working): (&str, &str),
) -> String {
    if !lesson.is_empty() {
        let lesson = lines(lesson).collect::<Vec<_>>().join(" ");
        return format!("\n  LESSON: {lesson}\n");
    }
    let key = lines(error_key).collect::<Vec<_>>().join(" ");
    let mut text = format!("\n  ERROR: {key}\n");
    let parts: &[(&str, &str)] = match failing {
        "" => &[("WHAT HELPED", working)],
        failing => &[("WRONG", failing), ("CORRECT", working)],
    };
    for (name, code) in parts {
        text.extend(["  ", name, ":\n"]);
        for line in lines(code) {
            text.extend(["    ", line, "\n"]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Procedure;

    #[test]
    fn hints_look_as_the_source_document_shows_them() {
        let procedure = serde_json::json!({"procedure_id": "PROC-001", "pattern": {
            "error_key": "TypeError: string indices must be integers",
            "failing_code": "print(drugs[\"mechanism\"])",
            "working_code": "for row in await drugs.search(\"kinase\"): print(row[\"mechanism\"])",
        }});
        let procedure: Procedure = serde_json::from_value(procedure).unwrap();
        let hints = [Hint::of(&procedure, "", 1.0, "same error".to_owned())];
        let expected = "CODE HINTS (learned from prior errors -- use these patterns):\n\n  \
            ERROR: TypeError: string indices must be integers\n  WRONG:\n    \
            print(drugs[\"mechanism\"])\n  CORRECT:\n    \
            for row in await drugs.search(\"kinase\"): print(row[\"mechanism\"])\n";
        assert_eq!(render_hints(&hints), expected);
        assert!(expected.ends_with(&render_blocks(&hints)));
        assert_eq!(render_hints(&[]), "");
    }
}
