//! A server under test. [`Kind`] says which there are, where their binaries are and how they are called;
//! [`Server`] is one that runs: a child process with an address, figures from `/proc`, and an end.
//! [`Family`] knows every child process, so that none outlives the run. What is sent to a server is not here.
//! Start at [`Server::start`].

mod family;
mod figures;
mod kind;
mod launch;
mod process;

pub use self::family::{Family, Member};
pub use self::figures::{Cpu, Memory, cpu, memory};
pub use self::kind::Kind;
pub use self::launch::{Code, Launch, Places};
pub use self::process::Server;
pub(crate) use self::process::complete;

use std::path::PathBuf;
use std::process::ExitStatus;

/// Why a server cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Something that it needs is not on this machine.
    #[error("{what} is missing: {hint}")]
    Missing {
        /// A server, a guest, a configuration.
        what: String,
        /// What would bring it.
        hint: String,
    },
    /// The process could not be started.
    #[error("cannot start {}", program.display())]
    Spawn {
        /// The binary.
        program: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The run is being ended, nothing starts any more.
    #[error("interrupted")]
    Interrupted,
    /// It ended although nobody asked it to.
    #[error("{name} ended by itself ({status}){}", shown(tail))]
    Died {
        /// The server.
        name: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// The last lines of its standard error.
        tail: String,
    },
    /// It runs but never said that it listens.
    #[error("{name} did not say that it listens within {waited} s{}", shown(tail))]
    NotReady {
        /// The server.
        name: &'static str,
        /// Seconds.
        waited: u64,
        /// The last lines of its standard error.
        tail: String,
    },
    /// A command that prepares a server failed.
    #[error("{what} failed ({status}){}", shown(tail))]
    Prepare {
        /// The command.
        what: String,
        /// How it ended.
        status: ExitStatus,
        /// The last lines of its standard error.
        tail: String,
    },
    /// A file for the server or a figure of the process cannot be had.
    #[error("{what}")]
    Io {
        /// The file or the call.
        what: String,
        /// What the system says.
        source: std::io::Error,
    },
}

impl ServerError {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// The tail of a log as the end of a message on one line.
fn shown(tail: &str) -> String {
    if tail.is_empty() {
        return String::new();
    }
    format!("; it said: {}", tail.replace('\n', " | "))
}
