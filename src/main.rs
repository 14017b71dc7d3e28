//! The binary: reports of panics, the command line, the exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    // For bugs only: a user's error is a diagnostic with exit code 2. Without the hook, panics are still reported.
    let _ = color_eyre::install();
    tui_transformer::cli::main(std::env::args_os())
}
