//! Results of `test` as XML for build servers, in the `JUnit` format of Apache Ant.
//!
//! There is one suite per skill, with a case for each test. A worthless test counts as skipped,
//! because the format has no other result that proves nothing.

use crate::skills::{CaseReport, Status, TestReport};

/// Result of a test in this format.
#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    Success,
    Failure,
    Skipped,
}

/// Returns the XML document.
pub(crate) fn document(report: &TestReport) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    push_line(
        &mut text,
        &format!("<testsuites name=\"memctl\" {}>", counts(&report.cases)),
    );
    for cases in report.cases.chunk_by(|a, b| a.skill == b.skill) {
        let skill = attribute(&cases[0].skill.to_string());
        push_line(
            &mut text,
            &format!("    <testsuite name=\"{skill}\" {}>", counts(cases)),
        );
        for case in cases {
            push_case(&mut text, &skill, case);
        }
        push_line(&mut text, "    </testsuite>");
    }
    push_line(&mut text, "</testsuites>");
    text
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn push_case(text: &mut String, skill: &str, case: &CaseReport) {
    let id = attribute(&case.id);
    let head = format!("        <testcase name=\"{id}\" classname=\"{skill}\"");
    let element = match outcome(case) {
        Outcome::Success => return push_line(text, &format!("{head}/>")),
        Outcome::Failure => "failure",
        Outcome::Skipped => "skipped",
    };
    push_line(text, &format!("{head}>"));
    let reason = attribute(&case.reason);
    push_line(
        text,
        &format!("            <{element} message=\"{reason}\"/>"),
    );
    push_line(text, "        </testcase>");
}

fn outcome(case: &CaseReport) -> Outcome {
    match case.status {
        Status::Passed => Outcome::Success,
        // Nothing fails, but nothing tests the other demands either.
        Status::Partial if case.with_rule == Some(Status::Passed) => Outcome::Success,
        Status::Failed | Status::Partial => Outcome::Failure,
        Status::Worthless | Status::Skipped => Outcome::Skipped,
    }
}

/// Attributes with the numbers of tests by their results.
fn counts(cases: &[CaseReport]) -> String {
    let count = |wanted| cases.iter().filter(|case| outcome(case) == wanted).count();
    format!(
        "tests=\"{}\" skipped=\"{}\" errors=\"0\" failures=\"{}\"",
        cases.len(),
        count(Outcome::Skipped),
        count(Outcome::Failure)
    )
}

/// Text of an attribute: line breaks and characters that XML forbids are replaced.
fn attribute(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            '"' => out.push_str("&quot;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(id: &str, status: Status, reason: &str) -> CaseReport {
        CaseReport {
            id: id.to_owned(),
            skill: "hr/x".parse().unwrap(),
            correction_id: None,
            reflexion_id: None,
            status,
            without_rule: None,
            with_rule: None,
            broken_by: Vec::new(),
            reason: reason.to_owned(),
        }
    }

    #[test]
    fn reasons_are_data() {
        let report = TestReport {
            cases: vec![
                case("a", Status::Passed, ""),
                case("b", Status::Failed, "says \"<x>\" & \u{1b}[1m"),
                case("c", Status::Worthless, "w"),
            ],
            ..TestReport::default()
        };
        assert_eq!(
            document(&report),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <testsuites name=\"memctl\" tests=\"3\" skipped=\"1\" errors=\"0\" failures=\"1\">\n    \
             <testsuite name=\"hr/x\" tests=\"3\" skipped=\"1\" errors=\"0\" failures=\"1\">\n        \
             <testcase name=\"a\" classname=\"hr/x\"/>\n        \
             <testcase name=\"b\" classname=\"hr/x\">\n            \
             <failure message=\"says &quot;&lt;x&gt;&quot; &amp; \u{fffd}[1m\"/>\n        \
             </testcase>\n        \
             <testcase name=\"c\" classname=\"hr/x\">\n            \
             <skipped message=\"w\"/>\n        \
             </testcase>\n    \
             </testsuite>\n</testsuites>\n"
        );
    }
}
