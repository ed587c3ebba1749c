//! Trust by machine, workspace and time.

use serde_json::json;

use super::*;
use crate::model::Procedure;

struct Machine {
    home: tempfile::TempDir,
    next: u32,
}

impl Machine {
    fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
            next: 0,
        }
    }

    fn random(&mut self) -> impl FnMut() -> String + use<> {
        self.next += 1;
        let home = self.home.path().file_name().unwrap_or_default();
        let name = format!("{}-{}", home.display(), self.next);
        let mut n = 0;
        move || {
            n += 1;
            format!("{name}-{n}")
        }
    }

    fn on(&self, workspace: &Path) -> Approvals {
        Approvals::of(Some(self.home.path()), workspace, false)
    }
}

fn procedure(working: &str, trust: &str) -> Procedure {
    let procedure = json!({"procedure_id": "PROC-001", "lesson": working, "trust": trust});
    serde_json::from_value(procedure).unwrap()
}

fn entry(procedure: &Procedure) -> Entry {
    Entry {
        kind: Kind::Procedure,
        id: procedure.procedure_id.clone(),
        text: serde_json::to_vec(procedure).unwrap(),
        is_local: false,
        offset: 0,
    }
}

#[test]
fn nothing_is_trusted_by_default() {
    let workspace = tempfile::tempdir().unwrap();
    let approved = procedure("w", "approved");
    for approvals in [
        Approvals::default(),
        Approvals::of(None, workspace.path(), false),
        Machine::new().on(workspace.path()),
    ] {
        assert_eq!(approvals.trust_snapshot().level(&approved), Trust::Observed);
    }
    let all = Approvals::everything().trust_snapshot();
    assert_eq!(all.level(&approved), Trust::Approved);
    assert_eq!(all.level(&procedure("w", "")), Trust::Observed);
}

#[test]
fn workspace_is_trusted_by_its_creator_and_at_its_path() {
    let mut machine = Machine::new();
    let workspace = tempfile::tempdir().unwrap();
    let mut random = machine.random();
    machine
        .on(workspace.path())
        .begin("now", &mut random)
        .unwrap();
    assert!(machine.on(workspace.path()).is_trusted());
    assert!(!Machine::new().on(workspace.path()).is_trusted());
    // A copy with the same marker, and another directory at the same path.
    let copy = tempfile::tempdir().unwrap();
    let marker = std::fs::read(workspace.path().join(MARKER)).unwrap();
    named::replace(&copy.path().join(MARKER), &marker).unwrap();
    assert!(!machine.on(copy.path()).is_trusted());
    named::replace(&workspace.path().join(MARKER), b"another\n").unwrap();
    assert!(!machine.on(workspace.path()).is_trusted());
    // Two empty markers do not match.
    named::replace(&workspace.path().join(MARKER), b"\n").unwrap();
    assert!(!machine.on(workspace.path()).is_trusted());
}

#[test]
fn an_approval_is_of_a_text_at_a_level() {
    let mut machine = Machine::new();
    let workspace = tempfile::tempdir().unwrap();
    let approvals = machine.on(workspace.path());
    let approved = procedure("w", "approved");
    approvals
        .approve(&[entry(&approved)], &mut machine.random())
        .unwrap();
    let trust_snapshot = approvals.trust_snapshot();
    assert_eq!(trust_snapshot.level(&approved), Trust::Approved);
    assert_eq!(
        trust_snapshot.of_entry(&entry(&approved), Trust::Approved),
        Trust::Approved
    );
    assert_eq!(
        trust_snapshot.level(&procedure("other", "approved")),
        Trust::Observed
    );
    let mut counted = approved.clone();
    counted.shown = Some(9.0);
    assert_eq!(trust_snapshot.level(&counted), Trust::Approved);
    // A text approved as data gains no trust from another word in the file.
    let observed = procedure("data", "");
    approvals
        .approve(&[entry(&observed)], &mut machine.random())
        .unwrap();
    let trust_snapshot = approvals.trust_snapshot();
    assert_eq!(
        trust_snapshot.level(&procedure("data", "approved")),
        Trust::Observed
    );
    // Another user has another key.
    let other = Machine::new();
    let list = std::fs::read(machine.home.path().join("approved")).unwrap();
    named::replace(&other.home.path().join("approved"), &list).unwrap();
    assert_eq!(
        other.on(workspace.path()).trust_snapshot().level(&approved),
        Trust::Observed
    );
}

#[test]
fn pulled_records_stand_by_their_origin() {
    let mut machine = Machine::new();
    let workspace = tempfile::tempdir().unwrap();
    let approvals = machine.on(workspace.path());
    approvals.begin("now", &mut machine.random()).unwrap();
    assert!(!approvals.of_origin("3f2a").is_trusted());
    approvals
        .trust_origin("3f2a", &mut machine.random())
        .unwrap();
    assert!(approvals.of_origin("3f2a").is_trusted() && !approvals.of_origin("4f2a").is_trusted());
    assert!(approvals.is_trusted());
    approvals.revoke(&[]).unwrap();
    assert!(!approvals.is_trusted() && !approvals.of_origin("3f2a").is_trusted());
}

#[test]
fn only_a_whole_record_silences_what_the_user_vouches_for() {
    use TrustedPart::{Nothing, Text, Whole};
    let check = |one: TrustedPart, other: TrustedPart, expected: bool| {
        assert_eq!(one.may_silence(other), expected, "{one:?} {other:?}");
    };
    for other in [Nothing, Text, Whole] {
        check(other, Nothing, true);
        check(Nothing, other, other == Nothing);
        check(Text, other, other == Nothing);
        check(Whole, other, true);
    }
    assert!(Nothing < Text && Text < Whole);
}
