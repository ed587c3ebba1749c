//! The results of `test` in the XML that build servers read.
//!
//! The dialect is that of the `JUnit` task of Apache Ant: a suite for each skill, in it a case with
//! `<failure>` or `<skipped>` where it did not pass. A worthless test is a skipped one there: the
//! dialect knows no third way of not proving anything.

use crate::engine::{CaseReport, Status, TestReport};

/// The document.
pub(super) fn document(report: &TestReport) -> String {
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"memctl\"{}>\n",
        counts(&report.cases.iter().collect::<Vec<_>>())
    );
    let mut skills: Vec<String> = report.cases.iter().map(|c| c.skill.to_string()).collect();
    skills.dedup();
    for skill in skills {
        let cases: Vec<&CaseReport> = report
            .cases
            .iter()
            .filter(|case| case.skill.to_string() == skill)
            .collect();
        let open = format!(
            "  <testsuite name=\"{}\"{}>\n",
            escaped(&skill),
            counts(&cases)
        );
        xml.push_str(&open);
        for case in cases {
            let name = escaped(&case.id);
            let reason = escaped(&case.reason);
            let inner = match case.status {
                Status::Passed => String::new(),
                Status::Failed => format!("<failure message=\"{reason}\"/>"),
                Status::Worthless | Status::Skipped => format!("<skipped message=\"{reason}\"/>"),
            };
            let skill = escaped(&skill);
            let line =
                format!("    <testcase classname=\"{skill}\" name=\"{name}\">{inner}</testcase>\n");
            xml.push_str(&line);
        }
        xml.push_str("  </testsuite>\n");
    }
    xml + "</testsuites>\n"
}

fn counts(cases: &[&CaseReport]) -> String {
    let count = |wanted: &[Status]| {
        cases
            .iter()
            .filter(|case| wanted.contains(&case.status))
            .count()
    };
    format!(
        " tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"",
        cases.len(),
        count(&[Status::Failed]),
        count(&[Status::Worthless, Status::Skipped])
    )
}

/// The text as it may stand in an attribute: XML has no form for most control characters.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\r' | '\t' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
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
             <testsuites name=\"memctl\" tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\">\n  \
             <testsuite name=\"hr/x\" tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\">\n    \
             <testcase classname=\"hr/x\" name=\"a\"></testcase>\n    \
             <testcase classname=\"hr/x\" name=\"b\"><failure message=\"says &quot;&lt;x&gt;&quot; &amp; \u{fffd}[1m\"/></testcase>\n    \
             <testcase classname=\"hr/x\" name=\"c\"><skipped message=\"w\"/></testcase>\n  \
             </testsuite>\n</testsuites>\n"
        );
    }
}
