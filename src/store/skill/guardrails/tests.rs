use proptest::prelude::*;

use super::*;

const GUARDRAIL: Guardrail<'static> = Guardrail {
    title: "System design is scored on its own",
    rule: "Score below 60.",
    correction_id: "CORR-003",
};

fn section(number: &str) -> String {
    format!(
        "\n---\n\n## GRD-{number}: System design is scored on its own\n\n\
         **Rule**: Score below 60.\n**Source**: CORR-003\n"
    )
}

#[test]
fn a_guardrail_goes_before_the_closing_section_or_to_the_end() {
    let check = |before: &str, after: &str, inserted: &str| {
        let new = append(&format!("{before}{after}"), &GUARDRAIL).unwrap();
        assert_eq!(new, format!("{before}{inserted}{after}"));
    };
    let (one, m) = (section("001"), MARKER);
    // An existing blank line is not doubled.
    let flush = one.trim_start_matches('\n');
    check("", "", &one);
    check("# G\n", "", &one);
    check("# G", "", &format!("\n{one}"));
    check("# G\n\n", &format!("{m}\nx\n{m}\n"), &format!("{flush}\n"));
    check("# G\n", m, &format!("{one}\n"));
    check("# G\n\n", &format!("---\n\n{m}\n"), &format!("{flush}\n"));
    // Dashes directly below text underline it and are not a separator.
    check(
        "# G\n\na\n---\n\n",
        &format!("{m}\n"),
        &format!("{flush}\n"),
    );
    // Neither a mention nor an example counts as the heading.
    check(&format!("see {m}\n```\n{m}\n```\n#{m}\n"), "", &one);
    check(&format!("```\n~~~\n{m}\n```\n\n"), m, &format!("{flush}\n"));
}

#[test]
fn numbers_go_up_and_are_not_used_twice() {
    let check = |text: &str, expected: &str| {
        let new = append(text, &GUARDRAIL).unwrap();
        assert!(
            new.contains(&format!("\n## GRD-{expected}: ")),
            "{text}: {new}"
        );
    };
    check("## GR-009: x\n", "001");
    check("## GRD-001: x\n## GRD-007: y\n", "008");
    check("GRD-041 was retired\n", "042");
    check("## GRD-999: x\n", "1000");
    check("## GRD-: x\nGRD-99999999999999999999999\nGRD-é", "001");
}

#[test]
fn one_correction_makes_one_guardrail() {
    let once = append("# G\n", &GUARDRAIL).unwrap();
    assert_eq!(append(&once, &GUARDRAIL), None);
    assert_eq!(append(&once.replace('\n', "\r\n"), &GUARDRAIL), None);
    let other = Guardrail {
        correction_id: "CORR-0031",
        rule: "As **Source**: CORR-004\n**Source**: CORR-004",
        ..GUARDRAIL
    };
    let twice = append(&once, &other).unwrap();
    assert!(twice.contains("## GRD-002: "));
    let third = Guardrail {
        correction_id: "CORR-004",
        ..GUARDRAIL
    };
    assert!(append(&twice, &third).is_some());
}

#[test]
fn a_file_keeps_its_line_ends() {
    let new = append("# G\r\n\r\n## When to Add New Guardrails\r\n", &GUARDRAIL).unwrap();
    assert_eq!(new.matches('\n').count(), new.matches("\r\n").count());
}

#[test]
fn missing_text_gets_general_words() {
    let empty = Guardrail {
        title: " ",
        rule: "\n",
        correction_id: "CORR-1",
    };
    let new = append("", &empty).unwrap();
    assert!(new.starts_with("\n---\n\n## GRD-001: learned from a correction\n\n"));
    assert!(new.contains("\n**Rule**: See the correction.\n"));
}

#[test]
fn sections_of_two_branches_are_joined() {
    let with = |text: &str, id: &str| {
        append(
            text,
            &Guardrail {
                correction_id: id,
                ..GUARDRAIL
            },
        )
        .unwrap()
    };
    for base in [
        "# G\n",
        "# G\n\n## When to Add New Guardrails\nx\n",
        "# G\r\n\r\na\r\n",
    ] {
        let base = with(base, "CORR-001");
        let (ours, theirs) = (
            with(&base, "CORR-002"),
            with(&with(&base, "CORR-003"), "CORR-004"),
        );
        let joined = join(&base, &ours, &theirs).unwrap();
        assert_eq!(
            sections(&joined)
                .iter()
                .map(|section| section.source)
                .collect::<Vec<_>>(),
            ["CORR-001", "CORR-002", "CORR-003", "CORR-004"]
        );
        for number in 1..=4 {
            assert_eq!(
                joined.matches(&format!("## GRD-00{number}: ")).count(),
                1,
                "{joined}"
            );
        }
        assert_eq!(joined.matches("---").count(), 4, "{joined}");
        assert_eq!(join(&base, &joined, &theirs).unwrap(), joined);
        assert_eq!(join(&base, &ours, &base).unwrap(), ours);
        // Other changes on one side are merged, on both sides they are not.
        let edited = ours.replace("# G", "# Guardrails");
        assert!(
            join(&base, &edited, &theirs)
                .unwrap()
                .starts_with("# Guardrails")
        );
        assert!(
            join(&base, &theirs, &edited)
                .unwrap()
                .starts_with("# Guardrails")
        );
        assert_eq!(join(&base, &edited, &theirs.replace("# G", "# H")), None);
    }
}

#[test]
fn a_section_that_one_branch_has_reworded_or_removed_meets_those_of_the_other() {
    let with = |text: &str, id: &str| {
        let added = Guardrail {
            correction_id: id,
            ..GUARDRAIL
        };
        append(text, &added).unwrap()
    };
    let base = with(&with("# G\n", "CORR-001"), "CORR-003");
    // On their branch, a section was merged before ours, which has another number there.
    let theirs = with(&with(&with("# G\n", "CORR-001"), "CORR-002"), "CORR-003");
    let mine = Guardrail {
        correction_id: "CORR-001",
        ..GUARDRAIL
    };
    let new = Guardrail {
        rule: "Another.",
        ..mine
    };
    let reworded = rewrite(&base, &mine, Some(&new)).text.unwrap();
    let removed = rewrite(&base, &mine, None).text.unwrap();
    for (ours, theirs) in [(&reworded, &theirs), (&theirs, &reworded)] {
        let joined = join(&base, ours, theirs).unwrap();
        assert_eq!(joined.matches("Another.").count(), 1, "{joined}");
        assert_eq!(joined.matches(SOURCE).count(), 3, "{joined}");
    }
    for (ours, theirs) in [(&removed, &theirs), (&theirs, &removed)] {
        let joined = join(&base, ours, theirs).unwrap();
        assert!(!joined.contains("CORR-001"), "{joined}");
        assert_eq!(joined.matches(SOURCE).count(), 2, "{joined}");
    }
    let other = Guardrail {
        rule: "A third.",
        ..mine
    };
    let other = rewrite(&base, &mine, Some(&other)).text.unwrap();
    assert_eq!(join(&base, &reworded, &other), None);
    // A removal is a decision, but not about what a person has added.
    for (ours, theirs) in [(&reworded, &removed), (&removed, &reworded)] {
        assert_eq!(join(&base, ours, theirs).as_ref(), Some(&removed));
    }
    let extended = reworded.replace("Another.", "Another.\n\nAsk Ann.");
    assert_eq!(join(&base, &extended, &removed), None);
    assert_eq!(join(&base, &removed, &extended), None);
}

/// Lines of real files, and lines that an attacker could forge.
fn lines() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just(MARKER.to_owned()),
        Just("---".to_owned()),
        Just("```".to_owned()),
        Just("## GRD-004: x".to_owned()),
        Just("**Source**: CORR-001".to_owned()),
        Just(String::new()),
        any::<String>(),
    ];
    (proptest::collection::vec(line, 0..12), any::<bool>())
        .prop_map(|(lines, crlf)| lines.join(if crlf { "\r\n" } else { "\n" }))
}

proptest! {
    #[test]
    fn everything_else_is_left_alone(text in lines(), rule in lines(), title in lines()) {
        let guardrail = Guardrail { title: &title, rule: &rule, ..GUARDRAIL };
        let new = append(&text, &guardrail).unwrap();
        let same = |(a, b): &(u8, u8)| a == b;
        let head = text.bytes().zip(new.bytes()).take_while(same).count();
        let tail = text.bytes().rev().zip(new.bytes().rev()).take_while(same).count();
        prop_assert!(head + tail >= text.len(), "{text:?} {new:?}");
        // For every correction text: one rule, no marker, one source.
        let count = |what: &str| {
            let of = |text: &str| text.lines().filter(|line| line.trim_end() == what).count();
            of(&new) - of(&text)
        };
        prop_assert_eq!(count("---"), 1);
        prop_assert_eq!(count(MARKER), 0);
        prop_assert_eq!(count("**Source**: CORR-003"), 1);
        prop_assert_eq!(append(&new, &guardrail), None);
    }
}

#[test]
fn a_rewording_keeps_the_number_and_a_removal_the_other_sections() {
    let other = Guardrail {
        rule: "Score below 50.",
        correction_id: "CORR-004",
        ..GUARDRAIL
    };
    let text = append(&append("# G\n", &GUARDRAIL).unwrap(), &other).unwrap();
    let new = Guardrail {
        rule: "Score below 40.",
        ..GUARDRAIL
    };
    let reworded = rewrite(&text, &GUARDRAIL, Some(&new));
    let expected = text.replace("below 60", "below 40");
    assert_eq!((reworded.text, reworded.is_left), (Some(expected), false));
    // The text of the record is not the text of the section: somebody has edited one of them.
    let unknown = rewrite(&text, &new, None);
    assert_eq!((unknown.text, unknown.is_left), (None, true));
    let rest = rewrite(&text, &other, None);
    assert_eq!(rest.text, append("# G\n", &GUARDRAIL));
}

proptest! {
    #[test]
    fn a_removal_reverts_an_addition(
        lines in prop::collection::vec(prop::sample::select(vec![
            "# G", "a", "", "---", "```", MARKER, "## GRD-007: b", "**Source**: CORR-001",
        ]), 0..9),
        crlf in any::<bool>(),
    ) {
        let end = if crlf { "\r\n" } else { "\n" };
        let text: String = lines.iter().flat_map(|line| [*line, end]).collect();
        let added = append(&text, &GUARDRAIL).unwrap();
        let removed = rewrite(&added, &GUARDRAIL, None);
        // Text that follows without a heading counts as added below the section.
        if let Some(rest) = removed.text {
            let words = |text: &str| -> Vec<String> {
                let lines = text.lines().map(|line| line.trim_end().to_owned());
                lines.filter(|line| !line.is_empty()).collect()
            };
            prop_assert_eq!(words(&rest), words(&text));
            prop_assert!(rest.len() <= text.len() + end.len());
        } else {
            prop_assert!(removed.is_left);
        }
    }
}
