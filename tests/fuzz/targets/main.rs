//! Throws bytes at every reader, as libFuzzer invents them. `make fuzz` runs it.
//!
//! One program holds all targets, so that it is linked once; `FUZZ_TARGET` names the one to run.
#![no_main]

mod correction;
mod fence;
mod guard;
mod hook;
mod journal;
mod skill;
mod store;
mod transcript;

use std::env;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

const TARGETS: [(&str, fn(&[u8])); 8] = [
    ("correction", |bytes| correction::run(text(bytes))),
    ("fence", |bytes| fence::run(text(bytes))),
    ("guard", |bytes| guard::run(text(bytes))),
    ("hook", hook::run),
    ("journal", journal::run),
    ("skill", |bytes| skill::run(text(bytes))),
    ("store", store::run),
    ("transcript", transcript::run),
];

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let wanted = env::var("FUZZ_TARGET").unwrap_or_default();
    let names = TARGETS.map(|(name, _)| name).join(", ");
    let found = TARGETS.into_iter().find(|(name, _)| *name == wanted);
    found
        .unwrap_or_else(|| panic!("FUZZ_TARGET is `{wanted}`, not one of {names}"))
        .1
});

fuzz_target!(|bytes: &[u8]| TARGET(bytes));

/// The text that the bytes begin with.
fn text(bytes: &[u8]) -> &str {
    bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}
