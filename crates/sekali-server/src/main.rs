//! The `sekali` binary: receives webhooks over HTTP and applies each of them once.
//!
//! `run` starts and stops the server, `http` is the way of a delivery, `fetch` asks other servers, `cli` has a module per
//! command. What a delivery means is not decided here but in the crate `sekali`.

mod cli;
mod config;
mod fetch;
mod http;
mod role;
mod run;
mod telemetry;

/// A tenth of the time of a delivery went into the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cli::main()
}
