//! The kinds of failed requests.

use std::fmt;
use std::io;

/// Why a request counts as failed. The text of each kind is the key in `Outcome::failures`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// The server did not accept the connection.
    Refused,
    /// No local port was free for one more connection.
    NoPort,
    /// Connecting failed for another reason.
    Connect,
    /// The connection ended before the whole answer was there.
    Cut,
    /// The answer is no HTTP.
    Malformed,
    /// The answer had this status, and another was expected.
    Status(u16),
    /// The body is not the expected one.
    Body,
    /// No whole answer within the time for one request.
    Timeout,
    /// Open loop: scheduled, but no connection was free for it before the end.
    Late,
}

impl Failure {
    pub(crate) fn connecting(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::AddrNotAvailable => Self::NoPort,
            _ => Self::Connect,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => f.write_str("refused"),
            Self::NoPort => f.write_str("no free port"),
            Self::Connect => f.write_str("connect failed"),
            Self::Cut => f.write_str("cut"),
            Self::Malformed => f.write_str("malformed"),
            Self::Status(status) => write!(f, "status {status}"),
            Self::Body => f.write_str("wrong body"),
            Self::Timeout => f.write_str("timeout"),
            Self::Late => f.write_str("late"),
        }
    }
}
