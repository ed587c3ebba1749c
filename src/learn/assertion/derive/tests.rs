use serde_json::{Value, json};

use super::derive;

fn found(said: &str, output: &Value, expected: Option<&Value>) -> Vec<String> {
    derive(said, output, expected)
        .assertions
        .iter()
        .map(|assertion| {
            let json = json!(assertion.check);
            let field = |name: &str| match &json[name] {
                Value::Null => String::new(),
                Value::String(text) => format!(" {text}"),
                other => format!(" {other}"),
            };
            let names = ["path", "unit", "is", "value", "values", "text", "pattern"];
            let rest: String = names.iter().map(|name| field(name)).collect();
            format!("{}{rest}", json["type"].as_str().unwrap())
        })
        .collect()
}

fn check(said: &str, output: &Value, expected: &[&str]) {
    assert_eq!(found(said, output, None), expected, "{said}");
}

#[test]
fn numbers_are_compared_where_the_field_is_clear() {
    let output = json!({"overall_score": 72, "scores": {"technical_skills": 80, "role_fit": 45}, "recommendation": "hold",
        "total": 1200.5, "confidence": 0.9});
    let below = ["compare $.overall_score < 60"];
    check(
        "When screening for senior backend roles, system design experience should be weighted separately from coding skills. A candidate with 5 years Python but no distributed systems should score below 60.",
        &output,
        &below,
    );
    check(
        "Candidates who do not know Kafka should score below 60",
        &output,
        &below,
    );
    check("The overall score must be less than 60.", &output, &below);
    check("overall_score < 60", &output, &below);
    check(
        "`overall_score` should be under 60 when there is no degree",
        &output,
        &below,
    );
    check(
        "Score candidates without distributed systems below 60.",
        &output,
        &below,
    );
    check(
        "The score should not be above 60",
        &output,
        &["compare $.overall_score <= 60"],
    );
    check(
        "The score must never exceed 60",
        &output,
        &["compare $.overall_score <= 60"],
    );
    check(
        "Role fit must be at least 50",
        &output,
        &["compare $.scores.role_fit >= 50"],
    );
    check(
        "the total must be over 1,500",
        &output,
        &["compare $.total > 1500"],
    );
    check(
        "The confidence must be between 0 and 0.5",
        &output,
        &["compare $.confidence >= 0", "compare $.confidence <= 0.5"],
    );
    for nothing in [
        "The score is too high",
        "The score should be about 60",
        "Scores should be lower",
        "Candidates with 5 years of Python and more than 3 projects are senior",
        "The salary must be below 60",
        "The total must be below 2 million",
        "Respond within 60 seconds",
        "Unless the degree is missing, the score must be below 60",
        "Should the score be below 60?",
        "If there is no degree the score must be below 40. If there is one, the score must be above 60.",
        "The confidence must be below 60%",
        "Applicants over 60 must be treated like everybody else",
    ] {
        check(nothing, &output, &[]);
    }
}

#[test]
fn lists_and_texts_have_limits() {
    let output =
        json!({"questions": ["a", "b", "c", "d"], "summary": "one two three four", "tags": []});
    check(
        "Never return more than 3 questions",
        &output,
        &["count $.questions <= 3"],
    );
    check(
        "At most three questions!",
        &output,
        &["count $.questions <= 3"],
    );
    check(
        "Limit the list to 3 questions",
        &output,
        &["count $.questions <= 3"],
    );
    check("Never return more than 3 items", &output, &[]);
    check(
        "Never return more than 3 items",
        &json!({"items": [1, 2, 3, 4]}),
        &["count $.items <= 3"],
    );
    check(
        "Never return more than 3 items",
        &json!({"found": [1, 2, 3, 4], "n": 4}),
        &["count $.found <= 3"],
    );
    check(
        "no more than 3 results",
        &json!([1, 2, 3, 4]),
        &["count $ <= 3"],
    );
    check(
        "You need at least 5 questions, please",
        &output,
        &["count $.questions >= 5"],
    );
    check(
        "The summary must be under 3 words",
        &output,
        &["length $.summary words < 3"],
    );
    check(
        "Keep it under 3 words",
        &output,
        &["length $.summary words < 3"],
    );
    check(
        "Keep the summary to 3 words or less",
        &output,
        &["length $.summary words <= 3"],
    );
    check(
        "No longer than 280 characters",
        &json!({"raw_output": "so"}),
        &["length $ characters <= 280"],
    );
    check("Keep each rationale under 3 words", &output, &[]);
    check("Ask more than 3 people", &output, &[]);
    check("The summary is over 3 words too long", &output, &[]);
}

#[test]
fn values_are_taken_where_they_are_values() {
    let output = json!({"status": "open", "priority": "LOW", "note": "as it is", "score": 7.5});
    check(
        "status must be approved or rejected",
        &output,
        &["one_of $.status [\"approved\",\"rejected\"]"],
    );
    check(
        "`status` has to be one of `a`, `b` or `c`.",
        &output,
        &["one_of $.status [\"a\",\"b\",\"c\"]"],
    );
    check(
        "The priority should be high, not low",
        &output,
        &["equals $.priority HIGH"],
    );
    check(
        "The status should have been \"on hold\"",
        &output,
        &["equals $.status on hold"],
    );
    check(
        "the score must be an integer",
        &output,
        &["type $.score integer"],
    );
    for nothing in [
        "The priority should be higher",
        "The priority should be lower than before",
        "The status must not be closed",
        "The status should be consistent",
        "The note should be short",
        "The priority should be carefully chosen",
        "The status should be Closed",
        "The status should be set after a call",
        "The status should be open",
    ] {
        check(nothing, &output, &[]);
    }
}

#[test]
fn fields_have_to_be_there() {
    let output = json!({"items": [{"n": 1}], "score": 1});
    check(
        "Always include a `reason` field",
        &output,
        &["required $.reason"],
    );
    check(
        "always include a reason field.",
        &output,
        &["required $.reason"],
    );
    check(
        "The output must have a field called reason_code",
        &output,
        &["required $.reason_code"],
    );
    check(
        "Each item must have a `price` field",
        &output,
        &["required $.items[*].price"],
    );
    check(
        "The `reason` field is missing",
        &output,
        &["required $.reason"],
    );
    for nothing in [
        "Never include a `reason` field",
        "Remove the `score` field",
        "Include the reason",
        "Add the following fields",
        "Mocks: Generate Protocol-based Mocks for all external dependencies.",
    ] {
        check(nothing, &output, &[]);
    }
    check(
        "Always include a `reason` field",
        &json!({"raw_output": "x"}),
        &[],
    );
}

#[test]
fn texts_are_said_or_not() {
    let output = json!({"reply": "A cheap offer, any time"});
    check("Must mention \"GDPR\"", &output, &["contains $ GDPR"]);
    check(
        "The reply must always mention “data protection”.",
        &output,
        &["contains $.reply data protection"],
    );
    check("Never say \"cheap\".", &output, &["not_contains $ cheap"]);
    check("never say cheap", &output, &["not_contains $ cheap"]);
    check("Don't use the word 'any'", &output, &["not_contains $ any"]);
    check("Avoid `any`", &output, &["not_contains $ any"]);
    check(
        "Use `unknown` instead of `any`",
        &output,
        &["not_contains $ any"],
    );
    check(
        "Say \"inexpensive\", not \"cheap\"",
        &output,
        &["contains $ inexpensive", "not_contains $ cheap"],
    );
    check("「御中」は mention `御中`", &output, &[]);
    for nothing in [
        "Must mention the deadline",
        "Never mention competitors",
        "never say expensive",
        "Prefer `x` over `y`",
        "Use `uv` for dependency management",
        "Do not use jargon when it can be avoided",
        "Include `reason`",
        "Never say why",
        "Always include \"fixes #1\" or \"closes #1\" in the reply",
        "Always mention \"<name>\"",
        "Avoid `unwrap()` outside tests",
    ] {
        check(nothing, &output, &[]);
    }
    let expected = json!({"reply": "An offer until the deadline"});
    assert_eq!(
        found("Must mention the deadline", &output, Some(&expected)),
        ["contains $ deadline"]
    );
    assert_eq!(
        found("Must mention \"GDPR\"", &output, Some(&expected)),
        [] as [String; 0]
    );
}

#[test]
fn dates_have_a_form() {
    check(
        "Use ISO dates",
        &json!({"due": "31.01.2026", "n": "x"}),
        &[
            r"not_matches $ \b[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{2,4}\b|\b[0-9]{4}[./][0-9]{1,2}[./][0-9]{1,2}\b",
            "matches $.due ^[0-9]{4}-[0-9]{2}-[0-9]{2}",
        ],
    );
    assert_eq!(
        found(
            "dates must be in ISO 8601",
            &json!({"raw_output": "by March 3"}),
            None
        )
        .len(),
        1
    );
    check("Use ISO dates", &json!({"due": "2026-01-31"}), &[]);
    check("Don't use ISO dates", &json!({"due": "31.01.2026"}), &[]);
}

#[test]
fn what_is_expected_says_what_was_meant() {
    let output =
        json!({"overall_score": 72, "recommendation": "proceed_to_interview", "gaps": ["a b"]});
    let expected = json!({"overall_score": 54, "recommendation": "hold", "gaps": ["c d"]});
    assert_eq!(
        found("Should score below 60.", &output, Some(&expected)),
        [
            "compare $.overall_score < 60",
            "equals $.recommendation hold"
        ]
    );
    // The sentence referred to something else.
    assert_eq!(
        found("Should score below 50.", &output, Some(&expected)),
        ["equals $.recommendation hold"]
    );
}

#[test]
fn a_demand_on_one_field_looks_at_that_field() {
    let output = json!({"summary": "A cheap offer", "note": "cheap", "title": "x", "score": 3});
    for said in [
        "Never say \"cheap\" in the summary",
        "never say cheap in the summary",
        "The summary must not say \"cheap\"",
        "Never use the word \"cheap\" in the summary field.",
    ] {
        check(said, &output, &["not_contains $.summary cheap"]);
    }
    check(
        "Use \"inexpensive\" instead of \"cheap\" in the summary",
        &output,
        &["not_contains $.summary cheap"],
    );
    check(
        "The title must mention \"GDPR\"",
        &output,
        &["contains $.title GDPR"],
    );
    // The output has no such part.
    check("Never say \"cheap\" in the footer", &output, &[]);
    check(
        "Never say \"cheap\" in emails",
        &json!({"raw_output": "so cheap"}),
        &["not_contains $ cheap"],
    );
    check(
        "Use ISO dates for `due`",
        &json!({"due": "31.01.2026", "born": "01.02.1980"}),
        &["matches $.due ^[0-9]{4}-[0-9]{2}-[0-9]{2}"],
    );
}

#[test]
fn a_condition_among_other_demands_is_left_to_the_judge() {
    let output = json!({"priority": "low", "cause": "load", "score": 72});
    // A condition demands nothing.
    let four = json!({"questions": [1, 2], "logic": ""});
    check("When more than 3 questions are asked, stop.", &four, &[]);
    check(
        "Return an empty string if the price field is missing",
        &four,
        &[],
    );
    check(
        "Never commit secrets (use `logic`)",
        &json!({"a": "logic"}),
        &[],
    );
    // The person corrects this output, so the only condition holds for it.
    check(
        "If the customer is new, the priority must be high.",
        &output,
        &["equals $.priority high"],
    );
    check(
        "Always name the tier. If the customer is new, the priority must be high.",
        &output,
        &[],
    );
    check(
        "Always say \"SLA\". Say \"unknown\" if it is not in the timeline.",
        &output,
        &["contains $ SLA"],
    );
}

#[test]
fn a_correction_is_whole_if_every_demand_is_asserted() {
    let output = json!({"overall_score": 72, "status": "open", "reply": "a cheap offer"});
    let check = |said: &str, expected: bool| {
        let derived = derive(said, &output, None);
        assert!(!expected || !derived.assertions.is_empty(), "{said}");
        assert_eq!(derived.is_whole, expected, "{said} {derived:?}");
    };
    for whole in [
        "The score must be below 60.",
        "No, wrong. The score must be below 60!",
        "The score must be between 0 and 60",
        "The score must be below 60 and the status must be closed",
        "status must be approved, rejected or hold",
        "Never say \"cheap\". The score must be below 60.",
        "The status should be closed, not open",
        "When there is no degree, the score must be below 60",
        "A candidate with 5 years Python but no distributed systems should score below 60.",
        "Candidates without a degree, who also lack Kafka, should score below 60",
    ] {
        check(whole, true);
    }
    for part in [
        // One sentence of two.
        "When screening for senior roles, design should be weighted separately. A candidate \
         without distributed systems should score below 60.",
        "The score must be below 60. Weigh design separately.",
        // One clause of two.
        "The score must be below 60 and the reply polite",
        "Never say \"cheap\", and answer in German",
        "Greet warmly, and the score must be below 60",
        "Never say \"cheap\" - name the price",
        "Say `inexpensive` instead of `cheap`",
        // Hedged, contradictory, or with a condition among others.
        "The score must be below 60. Preferably mention the degree.",
        "The score must be below 60. The score must be above 80.",
        "Never say \"cheap\". If there is no degree, the score must be below 60.",
        "Be kinder.",
        "",
    ] {
        check(part, false);
    }
}
