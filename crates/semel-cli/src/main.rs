//! The program `semel`.

use std::process::ExitCode;

/// A delivery is some hundred small allocations, made on one thread and freed on another.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(semel_cli::run(std::env::args_os()))
}
