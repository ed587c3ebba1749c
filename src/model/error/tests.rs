//! Table of errors with their kinds and exit codes.

use std::path::PathBuf;

use super::*;
use crate::store::{Error, skill};
use crate::{model, remote};

fn os(kind: io::ErrorKind) -> io::Error {
    io::Error::from(kind)
}

fn path() -> PathBuf {
    PathBuf::from("a.json")
}

fn json_error() -> serde_json::Error {
    serde_json::from_str::<u8>("{").unwrap_err()
}

#[track_caller]
fn check(error: impl Into<UserError>, kind: Kind, code: u8) {
    let error = error.into();
    assert_eq!((error.kind, error.kind.code()), (kind, code), "{error:?}");
    assert!(!error.message.is_empty());
}

#[test]
fn kinds_have_the_documented_names_and_codes() {
    let table = [
        (Kind::Usage, "usage", 2),
        (Kind::Input, "input", 2),
        (Kind::NotFound, "not_found", 2),
        (Kind::Store, "store", 3),
        (Kind::Model, "model", 4),
        (Kind::Permission, "permission", 5),
        (Kind::Remote, "remote", 6),
        (Kind::Internal, "internal", 70),
        (Kind::Io, "io", 74),
        (Kind::Interrupted, "interrupted", 130),
    ];
    let page = include_str!("../../../docs/reference/exit-codes.md");
    for (kind, name, code) in table {
        assert_eq!((kind.name(), kind.code()), (name, code));
        let row = page.lines().find(|line| {
            line.starts_with(&format!("| {code} |")) && line.contains(&format!("`{name}`"))
        });
        assert!(row.is_some(), "the page has no row for {code} `{name}`");
    }
}

#[test]
fn engine_errors_have_their_kinds() {
    check(Error::usage("x", "y"), Kind::Usage, 2);
    check(Error::NoId("x".to_owned()), Kind::Input, 2);
    check(Error::EmptyCorrection, Kind::Input, 2);
    let error = Error::NotJson {
        path: path(),
        source: json_error(),
    };
    check(error, Kind::Input, 2);
    check(Error::missing("x", "y"), Kind::NotFound, 2);
    let forgotten = Error::Forgotten {
        id: "REFL-1".to_owned(),
        kind: model::Kind::Reflexion,
        day: "2026-02-20".to_owned(),
    };
    check(forgotten, Kind::NotFound, 2);
    check(Error::Index, Kind::Store, 3);
    check(Error::from(embedder::Error::NoVector), Kind::Model, 4);
    let runtime = embedder::Error::Runtime {
        source: os(io::ErrorKind::OutOfMemory),
    };
    check(Error::from(runtime), Kind::Io, 74);
    // A failed store keeps the kind `store` for every cause, except that of a remote store.
    let not_stored = |source| Error::NotStored {
        file: path(),
        source: Box::new(source),
    };
    let exists = Error::Exists("EXEC-1".to_owned());
    check(not_stored(exists), Kind::Store, 3);
    let no_primary = Error::NoPrimary(path());
    check(not_stored(no_primary), Kind::Remote, 6);
}

#[test]
fn unreadable_files_have_the_kind_of_their_cause() {
    let read = |kind| Error::Unreadable {
        path: path(),
        source: os(kind),
    };
    check(read(io::ErrorKind::NotFound), Kind::NotFound, 2);
    check(read(io::ErrorKind::InvalidData), Kind::Input, 2);
    check(read(io::ErrorKind::IsADirectory), Kind::Input, 2);
    check(read(io::ErrorKind::PermissionDenied), Kind::Io, 74);
    check(os(io::ErrorKind::StorageFull), Kind::Io, 74);
}

#[test]
fn store_remote_skill_and_model_errors_have_their_kinds() {
    let missing = Error::NotFound {
        kind: None,
        id: "REFL-9".to_owned(),
        similar: Vec::new(),
    };
    check(missing, Kind::NotFound, 2);
    let outside = Error::OutOfScope("hr/x".to_owned());
    check(outside, Kind::Permission, 5);
    let failed = Error::Io {
        action: "write",
        path: path(),
        source: os(io::ErrorKind::StorageFull),
    };
    check(failed, Kind::Store, 3);
    let disabled = Error::Disabled(path());
    check(disabled, Kind::Usage, 2);
    let disabled = Error::DisabledForUser("ada".to_owned());
    check(disabled, Kind::Permission, 5);
    check(
        Error::from(remote::Address::parse("no").unwrap_err()),
        Kind::Input,
        2,
    );
    check(remote::Error::NoAnswer, Kind::Remote, 6);
    let no_skill = Error::NoSkill {
        skill: "hr/x".parse().unwrap(),
        candidates: Vec::new(),
    };
    check(no_skill, Kind::NotFound, 2);
    let reason = Reason::Link;
    let link = Refused {
        path: path(),
        reason,
    };
    check(skill::refused(&link), Kind::Input, 2);
    let refused = memctl_llm::Error::new(memctl_llm::ErrorKind::Auth, "no".to_owned());
    check(refused, Kind::Model, 4);
}

#[test]
fn internal_error_says_what_to_report() {
    for error in [
        UserError::from(json_error()),
        Error::Serialize(json_error()).into(),
        UserError::internal("x"),
    ] {
        assert_eq!((error.kind, error.kind.code()), (Kind::Internal, 70));
        let hint = error.hint.unwrap();
        assert!(hint.contains("memctl --version"), "{hint}");
        assert!(hint.contains("SECURITY.md"), "{hint}");
    }
}

#[test]
fn message_joins_the_chain_without_repetitions() {
    let error = Error::Unreadable {
        path: path(),
        source: io::Error::other("cause"),
    };
    assert_eq!(message(&error), "cannot read `a.json`: cause");
    let error = Error::Primary(Box::new(io::Error::other("cause")));
    assert_eq!(message(&error), "cause");
}
