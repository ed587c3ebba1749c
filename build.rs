//! Links the program at a fixed address on Linux, so that nothing is relocated when it starts; see
//! `docs/adr/build.md`.

#![allow(
    clippy::disallowed_methods,
    reason = "cargo tells a build script about its target by the environment"
)]

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |part: &str| env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
