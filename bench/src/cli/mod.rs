//! The command line: one file for each command, which turns its arguments into a call of the library and shows
//! what that returned. Nothing is measured here.

mod compare;
mod load;
mod request;
mod show;
mod users;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What can end a command.
type Fault = Box<dyn Error + Send + Sync>;

/// Puts load on HTTP servers and compares them.
#[derive(Debug, Parser)]
#[command(version, about)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Starts servers in turn, puts the same load on each, shows ratios and writes a report.
    Compare(compare::Args),
    /// Puts load on one server and shows its rate and latencies.
    Load(load::Args),
    /// Shows how long N users at once take for M requests each, each request on its own connection.
    Users(users::Args),
}

impl Cli {
    /// Runs the command; what goes wrong is told on standard error.
    pub(crate) fn run(self) -> ExitCode {
        let ended = match self.command {
            Command::Compare(args) => args.run(),
            Command::Load(args) => args.run(),
            Command::Users(args) => args.run(),
        };
        ended.unwrap_or_else(|fault| {
            show::fault(fault.as_ref());
            ExitCode::FAILURE
        })
    }
}
