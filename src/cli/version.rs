//! `--version`: facts about this program, for people and for package tests.

use std::ffi::OsString;

use serde::Serialize;

use crate::store;
use crate::upkeep::exchange;

/// Facts about this program.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct VersionReport {
    /// Version of the program.
    version: &'static str,
    /// Platform that it was built for, in Rust's words: `x86_64-unknown-linux-gnu`.
    target: &'static str,
    /// Formats that it writes. It reads these and older ones, and refuses to write to newer ones.
    formats: Formats,
    /// Optional parts that it was built with.
    features: Vec<&'static str>,
}

/// Versions of formats.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct Formats {
    /// Data files in `.agentura/`: their root key `format`.
    store: u64,
    /// `memory export --format jsonl`.
    export: u64,
}

/// Returns the output of `--version` if the arguments are it, with or without `--json`.
pub(super) fn answer(arguments: &[OsString]) -> Option<String> {
    let asks = |a: &OsString| a == "--version" || a == "-V";
    match arguments {
        [_, only] if asks(only) => {
            Some(concat!("memctl ", env!("CARGO_PKG_VERSION"), "\n").to_owned())
        }
        [_, one, other] if (asks(one) && other == "--json") || (asks(other) && one == "--json") => {
            let json = serde_json::to_string(&VersionReport::new()).ok()?;
            Some(json + "\n")
        }
        _ => None,
    }
}

impl VersionReport {
    fn new() -> Self {
        let features = env!("MEMCTL_FEATURES").split(' ');
        Self {
            version: env!("CARGO_PKG_VERSION"),
            target: env!("MEMCTL_TARGET"),
            formats: Formats {
                store: store::FORMAT,
                export: exchange::lines::VERSION,
            },
            features: features.filter(|name| !name.is_empty()).collect(),
        }
    }
}
