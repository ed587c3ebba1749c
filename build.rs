//! Links the program at a fixed address on Linux, so that nothing is relocated when it starts; see
//! `docs/adr/build.md`. Tells the program for what it is built.

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
    let features = env::vars()
        .filter_map(|(name, _)| Some(name.strip_prefix("CARGO_FEATURE_")?.to_lowercase()));
    let features: Vec<String> = features.map(|name| name.replace('_', "-")).collect();
    println!("cargo::rustc-env=MEMCTL_FEATURES={}", features.join(" "));
    println!(
        "cargo::rustc-env=MEMCTL_TARGET={}",
        env::var("TARGET").unwrap_or_default()
    );
}
