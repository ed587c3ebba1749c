//! Any text as a SKILL.md and as a GUARDRAILS.md.

use memctl::store::skill::guardrails::{Guardrail, append};

pub(crate) fn run(text: &str) {
    drop(memctl::store::skill::read_front_matter(text));
    let guardrail = Guardrail {
        title: "",
        rule: text,
        correction_id: "CORR-001",
    };
    if let Some(new) = append(text, &guardrail) {
        assert!(new.len() > text.len());
        assert_eq!(append(&new, &guardrail), None, "it was added twice");
    }
}
