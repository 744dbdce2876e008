//! Why a run could not take place. Requests that fail during a run are counted in the outcome instead.

use std::io;
use std::net::SocketAddr;

use crate::load::Failure;

/// Why a run could not take place.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The plan makes no sense.
    #[error("{0}")]
    Plan(String),
    /// Nothing listens at the target.
    #[error("no server answers at {target}")]
    Unreachable {
        /// The address.
        target: SocketAddr,
        /// What connecting said.
        #[source]
        source: io::Error,
    },
    /// The system allows too few open files.
    #[error(
        "{needed} connections need more open files than the hard limit of {allowed}; raise it (ulimit -Hn)"
    )]
    Descriptors {
        /// The connections asked for.
        needed: u64,
        /// The hard limit.
        allowed: u64,
    },
    /// The client itself could not start.
    #[error("cannot start the client")]
    Client(#[source] io::Error),
    /// A connection that should stay idle did not get its first answer.
    #[error("connection {at} of {wanted} got no good answer: {failure}")]
    Idle {
        /// Which one, from 1.
        at: usize,
        /// How many were asked for.
        wanted: usize,
        /// What went wrong.
        failure: Failure,
    },
}
