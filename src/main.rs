//! The `memctl` program. Everything that it does is in the library.

fn main() {}
