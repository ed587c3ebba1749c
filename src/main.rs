//! The `memctl` program. Everything that it does is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    memctl::cli::main()
}
