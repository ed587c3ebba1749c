//! Any text as what may not be stored, and as what is set apart from instructions.

use memctl_redact::{admit, fence, findings, redact, redact_json, screen, strip_fenced, visible};

pub(crate) fn run(text: &str) {
    let mut end = 0;
    for finding in findings(text) {
        assert!(end <= finding.at.start && finding.at.start < finding.at.end);
        end = finding.at.end;
        assert!(text.get(finding.at).is_some());
    }
    let once = redact(text);
    assert_eq!(once.found.is_empty(), once.text == text);
    assert!(once.text.len() <= text.len() * 8 + 32);
    let twice = redact(&once.text);
    assert_eq!(twice.text, once.text);
    let json = redact_json(text);
    if serde_json::from_str::<serde_json::Value>(text).is_ok() {
        serde_json::from_str::<serde_json::Value>(&json.text).unwrap();
    }
    assert_eq!(redact_json(&json.text).text, json.text);
    let quoted = serde_json::to_string(&[text]).unwrap();
    serde_json::from_str::<serde_json::Value>(&redact_json(&quoted).text).unwrap();
    assert_eq!(strip_fenced(&fence(&[text], "n0nce-1")), "");
    assert_eq!(visible(&visible(text)), visible(text));
    drop(screen(text));
    drop(admit(text));
}
