//! `cloudgo-bench`: reads the command line, runs, prints.

mod cli;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    cli::Cli::parse().run()
}
