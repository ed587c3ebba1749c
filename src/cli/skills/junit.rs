//! Results of `test` as XML for build servers, in the `JUnit` format of Apache Ant.
//!
//! There is one suite per skill, with a case for each test. A worthless test counts as skipped,
//! because the format has no other result that proves nothing.

use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};

use crate::engine::{CaseReport, Status, TestReport};

/// Returns the XML document.
pub(in crate::cli) fn document(report: &TestReport) -> Result<String, SerializeError> {
    let mut document = Report::new("memctl");
    for cases in report.cases.chunk_by(|a, b| a.skill == b.skill) {
        let skill = cases[0].skill.to_string();
        let mut suite = TestSuite::new(skill.as_str());
        suite.add_test_cases(cases.iter().map(|case| test_case(&skill, case)));
        document.add_test_suite(suite);
    }
    document.to_string()
}

fn test_case(skill: &str, case: &CaseReport) -> TestCase {
    let mut status = match case.status {
        Status::Passed => TestCaseStatus::success(),
        // Nothing fails, but nothing tests the other demands either.
        Status::Partial if case.with_rule == Some(Status::Passed) => TestCaseStatus::success(),
        Status::Failed | Status::Partial => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Status::Worthless | Status::Skipped => TestCaseStatus::skipped(),
    };
    status.set_message(printable(&case.reason));
    let mut test = TestCase::new(printable(&case.id), status);
    test.set_classname(skill);
    test
}

/// Replaces line breaks and characters that XML forbids. The library removes control characters
/// together with escape sequences, and writes `U+FFFE` and `U+FFFF`.
fn printable(text: &str) -> String {
    let replaced = |c| match c {
        '\n' | '\r' | '\t' => ' ',
        c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => '\u{fffd}',
        c => c,
    };
    text.chars().map(replaced).collect()
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
            document(&report).unwrap(),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <testsuites name=\"memctl\" tests=\"3\" skipped=\"1\" failures=\"1\" errors=\"0\">\n    \
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
