//! The `kheya` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    kheya::cli::main()
}
