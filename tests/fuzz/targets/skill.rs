//! Any text as a SKILL.md and as a GUARDRAILS.md.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memctl::skill::guardrails::{Guardrail, append};

fuzz_target!(|text: &str| {
    drop(memctl::skill::read_front_matter(text));
    let guardrail = Guardrail {
        title: "",
        mistake: text,
        rule: text,
        correction_id: "CORR-001",
    };
    if let Some(new) = append(text, &guardrail) {
        assert!(new.len() > text.len());
        assert_eq!(append(&new, &guardrail), None, "it was added twice");
    }
});
